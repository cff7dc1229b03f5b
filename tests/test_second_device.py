"""Everything that computes runs on a second device: the same numbers, and no needless waiting."""

import pytest
import standin
import torch
from tiny_training import STREAM, encoder_decoder, language_model, pairs, stop_at

from slp_transformer import generate, padding_mask
from slp_transformer.data.pair_batches import LengthBucketedPairSource
from slp_transformer.lora import add_lora
from slp_transformer.training import load_model, train
from slp_transformer.training.devices import pick_device

VARIANTS = [{}, {"norm": "post"}, {"positions": "sinusoidal", "activation": "swiglu"}]


@pytest.fixture(scope="module")
def device(request) -> torch.device:
    """The one that the tests are run on, or that the machine has; the stand-in if it has none."""
    asked = request.config.getoption("--device")
    if asked not in ("cpu", standin.NAME):
        return torch.device(asked)
    found = standin.second_device() if asked == "cpu" else standin.plug_in()
    if found is None:
        pytest.skip(f"PyTorch {torch.__version__} has no devices that are written in Python.")
    return found


@pytest.fixture
def waits(device):
    if device.type != standin.NAME:
        pytest.skip("Only the stand-in counts.")
    standin.WAITS.clear()
    return standin.WAITS


@pytest.mark.parametrize("changes", VARIANTS)
def test_nothing_is_waited_for_there_and_back(device, changes, waits):
    model, ids = language_model(**changes).to(device), STREAM[None, :5].to(device)
    waits.clear()
    model(ids).square().sum().backward()
    assert sum(waits.values()) == 0


SOURCE, TARGET = torch.tensor([[3, 4, 5], [6, 0, 0]]), torch.tensor([[1, 5], [1, 2]])


@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (language_model, [STREAM[None, :5]]),
        (encoder_decoder, [SOURCE, TARGET, padding_mask(SOURCE, 0)]),
    ],
)
def test_a_model_computes_there_what_it_computes_here(device, make, inputs, changes):
    here, there = make(**changes), make(**changes).to(device)
    U, expected = there(*(X.to(device) for X in inputs)), here(*inputs)
    torch.testing.assert_close(U.cpu(), expected, rtol=1e-4, atol=1e-5)
    U.square().sum().backward()
    expected.square().sum().backward()
    for mine, yours in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, yours.grad.cpu(), rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize("how", [{"temperature": 0}, {"num_beams": 3}], ids=str)
def test_long_texts_are_the_same_with_a_recorded_step(device, how):
    """An NVIDIA GPU records the kernels of one step, and again once 256 rows are full."""
    if device.type != "cuda":
        pytest.skip("Only NVIDIA's GPUs record.")
    prompts = [[1, 2], [3], [4, 5, 6]]
    here, there = (language_model(context_length=307).double() for _ in range(2))
    written = generate(there.to(device), prompts, **how)
    assert [each.ids for each in written] == [each.ids for each in generate(here, prompts, **how)]


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

    assert count(2) == count(11) <= 3


@pytest.mark.parametrize("how", [{}, {"stop": 2}, {"repetition_penalty": 1.2}], ids=str)
def test_a_beam_is_waited_for_where_it_chooses(device, how, waits):
    """For the words it kept and for their scores, whatever the number of layers."""
    model, counts = language_model(context_length=43, num_blocks=3).to(device), {}
    for words in (2, 9):
        waits.clear()
        generate(model, [[1, 2]], words, num_beams=3, **how)
        counts[words] = sum(waits.values())
    assert 0 < counts[9] - counts[2] <= 2 * 7


def numbers(record) -> dict[str, float]:
    plain = {name: value for name, value in vars(record).items() if isinstance(value, int | float)}
    means = ("val_metrics", "full_val_metrics")  # of each metric, by its name
    return plain | {f"{m} {n}": value for m in means for n, value in getattr(record, m).items()}


def with_lora():
    model = language_model()
    add_lora(model, 2)
    return model


LENGTHS = (3, 5), (2, 1), (7, 2), (1, 6), (2, 2)
PADDED = pairs(*LENGTHS)
SPECIAL = {name: getattr(PADDED, name) for name in ("pad_id", "begin_id", "end_id")}
CASES = {
    "windows": (language_model, lambda: STREAM, {}),
    "low ranks": (with_lora, lambda: STREAM, {}),
    "pairs": (encoder_decoder, lambda: PADDED, {"gradient_accumulation_steps": 2}),
    "pairs of similar length": (
        encoder_decoder,
        lambda: LengthBucketedPairSource(PADDED.pairs, max_tokens=18, **SPECIAL),
        {"batch_tokens": 9, "gradient_accumulation_steps": 2, "label_smoothing": 0.2},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_what_is_learned_there_is_what_the_cpu_learns(device, case):
    make, data, options = CASES[case]
    how = {"steps": 6, "eval_interval": 2, "batch_size": 3} | options
    here, there = make(), make()
    expected = train(here, data(), data(), **how)
    records = train(there, data(), data(), device=device.type, **how)
    for mine, yours in zip(records, expected, strict=True):
        assert numbers(mine) == pytest.approx(numbers(yours), rel=1e-5)
    for W, other in zip(there.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(W.cpu(), other.cpu(), rtol=1e-4, atol=1e-5)


def test_only_measurements_wait_for_the_device(device, waits):
    def count(**how) -> int:
        waits.clear()
        train(language_model(), STREAM, STREAM, device=device.type, batch_size=3, **how)
        return sum(waits.values())

    once = count(steps=2, eval_interval=2)
    assert count(steps=6, eval_interval=6) == once
    assert count(steps=6, eval_interval=2) == once + 2 * 2, (
        "one for the steps' losses, one held out"
    )


def test_a_run_goes_on_there_to_the_last_bit(device, tmp_path):
    """Dropout's random numbers are the device's own, so they are kept with the run."""
    how = {"eval_interval": 2, "batch_size": 3, "device": device.type, "progress": False}

    def run(folder, **more):
        model = language_model(dropout=0.3)
        return train(model, STREAM, STREAM, out_dir=tmp_path / folder, steps=6, **how, **more)

    whole = run("whole")
    with pytest.raises(OSError, match="plug"):
        run("halves", report=stop_at(4))
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
