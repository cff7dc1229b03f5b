"""Everything that computes runs on a second device: the same numbers, and no needless waiting."""

import pytest
import standin
import torch
from test_trainer import encoder_decoder, language_model, pairs

from slp_transformer import generate, padding_mask
from slp_transformer.data.batches import LengthBucketedPairs
from slp_transformer.lora import add_lora, lora_state_dict
from slp_transformer.training import load_model, train
from slp_transformer.training.devices import pick_device

STREAM = torch.arange(7).repeat(5)
VARIANTS = [
    {},
    {"norm": "post"},
    {"positions": "sinusoidal"},
    {"activation": "gelu"},
    {"activation": "swiglu"},
]


@pytest.fixture(scope="module")
def device(request) -> torch.device:
    """The stand-in, or the device that the tests are run on."""
    asked = request.config.getoption("--device")
    if asked not in ("cpu", standin.NAME):
        return torch.device(asked)
    if standin.plug_in() is None:
        pytest.skip(f"PyTorch {torch.__version__} has no devices that are written in Python.")
    return standin.plug_in()


@pytest.fixture
def waits(device):
    if device.type != standin.NAME:
        pytest.skip("Only the stand-in counts.")
    standin.WAITS.clear()
    return standin.WAITS


def same_gradients(here, there) -> None:
    for mine, yours in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, yours.grad.cpu(), rtol=1e-4, atol=1e-5)


# --- The device itself -------------------------------------------------------------------------


# --- Models ------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", VARIANTS)
def test_a_language_model_computes_there_what_it_computes_here(device, changes):
    ids = STREAM[None, :5]
    here, there = language_model(**changes), language_model(**changes).to(device)
    U = there(ids.to(device))
    torch.testing.assert_close(U.cpu(), here(ids), rtol=1e-4, atol=1e-5)
    U.square().sum().backward()
    here(ids).square().sum().backward()
    same_gradients(here, there)


@pytest.mark.parametrize("changes", VARIANTS)
def test_nothing_is_waited_for_there_and_back(device, changes, waits):
    model, ids = language_model(**changes).to(device), STREAM[None, :5].to(device)
    waits.clear()
    model(ids).square().sum().backward()
    assert sum(waits.values()) == 0


@pytest.mark.parametrize("changes", VARIANTS)
def test_an_encoder_decoder_does_too(device, changes):
    source, target = torch.tensor([[3, 4, 5], [6, 7, 0]]), torch.tensor([[1, 9], [1, 2]])
    mask = padding_mask(source, 0)
    here, there = encoder_decoder(**changes), encoder_decoder(**changes).to(device)
    inputs = [X.to(device) for X in (source, target, mask)]
    there(*inputs).square().sum().backward()
    here(source, target, mask).square().sum().backward()
    same_gradients(here, there)


# --- Writing -----------------------------------------------------------------------------------

MODES = [
    {"temperature": 0},
    {"temperature": 0, "cached": False},
    {"temperature": 0.9, "top_k": 4},
    {"top_p": 0.8, "repetition_penalty": 1.2},
    {"temperature": 0, "stop": 3},
    {"allowed": lambda ids: [1, 2, 5]},
    {"num_beams": 3},
    {"num_beams": 3, "stop": {2, 3}, "repetition_penalty": 1.1},
    {"num_beams": 2, "cached": False, "length_penalty": 0.0},
]


@pytest.mark.parametrize("how", MODES, ids=lambda how: "-".join(how))
def test_the_same_words_are_written_there(device, how):
    if device.type != standin.NAME and "num_beams" not in how and how.get("temperature") != 0:
        pytest.skip("Its random numbers are its own.")
    prompts = [[1, 2], [3], [4, 5, 6]]

    def write(model):
        torch.manual_seed(1)
        return [(each.ids, each.finish_reason) for each in generate(model, prompts, **how)]

    assert write(language_model(context_length=11).to(device)) == write(
        language_model(context_length=11)
    )


@pytest.mark.parametrize("how", [{"temperature": 0}, {"num_beams": 3, "stop": 2}], ids=str)
def test_the_same_translations_are_written_there(device, how):
    given = {"prompts": [[1], [1, 4]], "max_new_tokens": 5, "sources": [[3, 4, 5], [6]]}
    here = generate(encoder_decoder(), **given, **how)
    there = generate(encoder_decoder().to(device), **given, **how)
    assert [each.ids for each in there] == [each.ids for each in here]


@pytest.mark.parametrize("how", [{"temperature": 0}, {"top_k": 3}, {"top_p": 0.9}], ids=str)
def test_words_are_waited_for_once_at_the_end(device, how, waits):
    """Each prompt is looked at once; how much is written makes no difference."""
    model = language_model(context_length=43).to(device)

    def count(words: int) -> int:
        waits.clear()
        generate(model, [[1, 2], [3]], words, **how)
        return sum(waits.values())

    assert count(5) == count(40) <= 3


@pytest.mark.parametrize("how", [{}, {"stop": 2}, {"repetition_penalty": 1.2}], ids=str)
def test_a_beam_is_waited_for_where_it_chooses(device, how, waits):
    """For the words it kept and for their scores, whatever the number of layers."""
    model, counts = language_model(context_length=43, num_blocks=3).to(device), {}
    for words in (5, 25):
        waits.clear()
        generate(model, [[1, 2]], words, num_beams=3, **how)
        counts[words] = sum(waits.values())
    assert 0 < counts[25] - counts[5] <= 2 * 20


# --- Training ----------------------------------------------------------------------------------


def numbers(record) -> dict[str, float]:
    return {name: value for name, value in vars(record).items() if value is not None}


def test_records_are_those_of_the_cpu(device):
    how = {"steps": 6, "eval_interval": 2, "batch_size": 3}
    here = train(language_model(), STREAM, STREAM, **how)
    there = train(language_model(), STREAM, STREAM, device=device.type, **how)
    for mine, yours in zip(there, here, strict=True):
        assert numbers(mine) == pytest.approx(numbers(yours), rel=1e-5)


def test_low_ranks_are_learned_there(device):
    learned = []
    for place in ("cpu", device.type):
        model = language_model()
        add_lora(model, 2)
        train(model, STREAM, STREAM, steps=3, eval_interval=3, batch_size=3, device=place)
        learned.append(lora_state_dict(model))
    for name, W in learned[0].items():
        torch.testing.assert_close(learned[1][name], W, rtol=1e-4, atol=1e-6)
        assert W.abs().max() > 0, name


def test_an_encoder_decoder_learns_there(device):
    data = pairs((3, 5), (2, 1), (7, 2), (1, 6))
    how = {"steps": 4, "eval_interval": 2, "batch_size": 2, "gradient_accumulation_steps": 2}
    here = train(encoder_decoder(), data, data, **how)
    there = train(encoder_decoder(), data, data, device=device.type, **how)
    for mine, yours in zip(there, here, strict=True):
        assert numbers(mine) == pytest.approx(numbers(yours), rel=1e-5)


def test_pairs_of_similar_length_are_learned_there(device):
    padded = pairs((3, 5), (2, 1), (7, 2), (1, 6), (2, 2))
    special = {name: getattr(padded, name) for name in ("pad_id", "begin_id", "end_id")}
    how = {
        "steps": 5,
        "eval_interval": 5,
        "batch_tokens": 9,
        "gradient_accumulation_steps": 2,
        "label_smoothing": 0.2,
    }
    records = []
    for place in ("cpu", device.type):
        data = LengthBucketedPairs(padded.pairs, max_tokens=18, **special)
        records += train(encoder_decoder(), data, data, device=place, **how)
    assert numbers(records[1]) == pytest.approx(numbers(records[0]), rel=1e-5)


def test_only_measurements_wait_for_the_device(device, waits):
    def count(**how) -> int:
        waits.clear()
        train(language_model(), STREAM, STREAM, device=device.type, batch_size=3, **how)
        return sum(waits.values())

    once = count(steps=4, eval_interval=4)
    assert count(steps=12, eval_interval=12) == once
    assert count(steps=12, eval_interval=3) == once + 3 * 2, (
        "one for the steps' losses, one held out"
    )


def test_a_run_goes_on_there_to_the_last_bit(device, tmp_path):
    """Dropout's random numbers are the device's own, so they are kept with the run."""
    how = {"eval_interval": 2, "batch_size": 3, "device": device.type, "progress": False}

    def run(folder, **more):
        model = language_model(dropout=0.3)
        return train(model, STREAM, STREAM, out_dir=tmp_path / folder, steps=6, **how, **more)

    def stop(record):
        if record.step == 4:
            raise RuntimeError("pulled out")

    whole = run("whole")
    with pytest.raises(RuntimeError, match="pulled out"):
        run("halves", report=stop)
    torch.rand(3)
    last, end = run("halves", resume=True)[-1], whole[-1]
    assert (last.step, last.train_loss) == (6, pytest.approx(end.train_loss, rel=1e-5))
    weights = (load_model(tmp_path / name, "last").state_dict() for name in ("whole", "halves"))
    off = 0.0 if device.type == standin.NAME else 1e-5  # sums may come in another order
    torch.testing.assert_close(*weights, rtol=off, atol=off)


def test_a_device_is_asked_for_by_name_and_number(device, waits):
    assert pick_device("standin") == torch.device("standin")
    assert pick_device("standin:0") == device
    for wrong in ("standin:1", "cpu:x", "cud", "meta"):
        with pytest.raises(ValueError, match=f'on this machine, not "{wrong}"'):
            pick_device(wrong)
