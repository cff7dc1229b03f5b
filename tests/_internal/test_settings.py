"""Every setting acts: its example changes a logit, a gradient, a weight or a drawn token."""

import json
import shutil
from dataclasses import MISSING, dataclass
from types import SimpleNamespace

import pytest
import torch
from checkpoint_folders import checkpoint_folder
from commands import PAIRS, SENTENCE, SIZES, TRAIN_PAIRS, fine, output, result, write_pairs
from tiny_training import BEGIN, END, PAD, encoder_decoder, with_dropout

from slp_transformer import (
    EncoderDecoder,
    KVCache,
    TransformerConfig,
    TransformerLM,
    next_token_loss,
)
from slp_transformer._internal.config_checks import SIZE
from slp_transformer._internal.settings import (
    DECLARED,
    check_settings,
    setting,
    settings,
    settings_of,
)
from slp_transformer.cli.generate import GenerateOptions
from slp_transformer.cli.score import ScoreOptions
from slp_transformer.cli.translate import RunOptions, TranslateOptions
from slp_transformer.interpret import logit_lens, residual_stream
from slp_transformer.modern import Bert, BertConfig, ModernConfig, ModernLM, RopeScaling
from slp_transformer.tasks.base import EvaluateOptions
from slp_transformer.tasks.pairs import EvaluatePairs, PairData, TranslationTask
from slp_transformer.tasks.run_config import ModelSettings, RunConfig
from slp_transformer.tasks.text import TextData, TextTask
from slp_transformer.training import train
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.train_config import TrainConfig

TRANSLATORS = ("source_vocab_size", "num_encoder_blocks")
NOT_TODAY = {"scaled_embeddings", "initialization", *TRANSLATORS}  # refused in a ModernConfig
APART = {"batch_tokens", "keep_last", "context_length", *TRANSLATORS}  # seen in ways of their own
IDS = torch.arange(2 * 17).view(2, 17) * 5 % 11


def computed(config: TransformerConfig, kind: type) -> dict[str, torch.Tensor]:
    """A model's logits in training, and its gradients."""
    torch.manual_seed(0)
    model = kind(config).train()
    torch.manual_seed(1)
    U = model(IDS, IDS) if kind is EncoderDecoder else model(IDS)
    next_token_loss(U, IDS).backward()
    return {"logits": U.detach()} | {name: W.grad for name, W in model.named_parameters()}


def book(name: str, **changes):
    kind = EncoderDecoder if name in TRANSLATORS else TransformerLM
    return computed(TransformerConfig(**{"vocab_size": 11} | changes), kind)


def modern(name: str, **changes):
    if name == "context_length":  # rotations are computed up to any length, and a table is not
        changes |= {"positions": "learned"}
    return computed(ModernConfig(**{"vocab_size": 11} | changes), ModernLM)


def bert(name: str, **changes):
    return computed(BertConfig(**{"vocab_size": 11} | changes), Bert)


def stretched(name: str, **changes):
    scaling = RopeScaling(**{"rope_type": "linear", "factor": 4.0} | changes)
    return modern(name, rope_scaling=scaling)


def trained(name: str, folder, **changes):
    """Losses of a run, its last weights, and the average of those that it keeps."""
    given = TrainConfig(**{"steps": 8, "eval_interval": 2} | changes)
    train_ids = torch.arange(35) % 6 + 1  # without 0, so that the loss on 0 rises from the first
    val_ids = torch.zeros(35, dtype=torch.long).index_fill(0, torch.arange(12, 18), 3)
    model, data = with_dropout(), (train_ids, val_ids)
    if name == "batch_tokens":
        special = SimpleNamespace(pad_id=PAD, begin_id=BEGIN, end_id=END)
        pairs = [(IDS[0, :n] % 8 + 3, IDS[1, : 12 - n] % 8 + 3) for n in range(1, 12)]
        parts = SimpleNamespace(train=pairs, val=pairs, tokenizer=special)
        run = RunConfig(PairData(), ModelSettings(), given)
        model, data = encoder_decoder(), TranslationTask().sources(run, parts)
    kept = folder if name == "keep_last" else None
    records = train(model, *data, given, out_dir=kept, progress=False)
    average = load_model(kept, "average").state_dict() if kept else {}
    losses = {f"loss {each.step}": torch.tensor(each.val_loss) for each in records}
    return losses | model.state_dict() | {f"average {key}": W for key, W in average.items()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of text whose best checkpoint is not the last, and one of pairs."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_pairs()
        (folder / "fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
        (folder / "xof.txt").write_text(SENTENCE[::-1] * 9, encoding="utf-8")
        library = folder / "library"
        library.mkdir()
        (library / "fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
        row = json.dumps({"text": SENTENCE, "title": "A fox, and no dog."})
        (library / "foxes.jsonl").write_text(f"{row}\n" * 20, encoding="utf-8")
        rows = [f"{a}\t{b}\t{a[::-1]}\n" for a, b in PAIRS]
        (folder / "three.tsv").write_text("English\tSpanish\tGerman\n" + "".join(rows), "utf-8")
        how = ["--steps", "40", "--eval-interval", "5", "--learning-rate", "0.1", "--quiet"]
        source = ["fox.txt", "--val-data", "xof.txt"]
        fine("train", "text", *source, "--out-dir", "text", *SIZES, *how)
        fine(*TRAIN_PAIRS, "--out-dir", "pairs")
    return folder


def flags(changes: dict) -> list[str]:
    """The words that give settings on the command line."""
    words = []
    for name, value in changes.items():
        flag = f"--{name.replace('_', '-')}"
        for each in value if isinstance(value, tuple) else (value,):
            words += [flag] if each is True else [flag, str(each)]
    return words


def written(name: str, runs, capsys, **changes):
    return output(capsys, "generate", str(runs / "text"), *flags({"max_new_tokens": 40} | changes))


def translated(name: str, runs, capsys, **changes):
    sentence = "one two three four"
    return output(capsys, "translate", str(runs / "pairs"), sentence, *flags(changes))


def scored(name: str, runs, capsys, **changes):
    given = {"continuation": ("fox",)} | changes
    return output(capsys, "score", str(runs / "text"), *flags(given))


def evaluated(name: str, runs, capsys, **changes):
    if name != "max_new_tokens" and "samples" in changes:
        changes |= {"max_new_tokens": 20}
    return result(capsys, "evaluate", str(runs / "text"), *flags(changes)).get("samples")


def compared(name: str, runs, capsys, **changes):
    return result(capsys, "evaluate", str(runs / "pairs"), "--samples", "9", *flags(changes))[
        "samples"
    ]


def prepared(name: str, runs, capsys, **changes):
    """How much of a folder of text is held out, and the tokens."""
    return split(TextTask(), TextData(str(runs / "library"), **changes), runs)


def paired(name: str, runs, capsys, **changes):
    """The same of pairs, some of which are longer than the model's window."""
    named = {"source_language": "English", "target_language": "German"}
    return split(TranslationTask(), PairData(str(runs / "three.tsv"), **named | changes), runs)


def split(task, data, runs):
    folder = runs / "split"
    shutil.rmtree(folder, ignore_errors=True)
    made = task.prepare(RunConfig(data, ModelSettings(context_length=13), TrainConfig(1)), folder)
    return len(made.train), len(made.val), made.tokenizer.to_json(), made.warnings


def tuned(name: str, runs, capsys, **changes):
    """What a checkpoint holds of a run that begins with another."""
    out = runs / "-".join(["tuned", *changes])
    source = str(runs / "fox.txt"), "--init-from", str(runs / "text"), "--out-dir", str(out)
    fine("train", "text", *source, "--steps", "1", "--quiet", *flags(changes))
    return sorted(path.name for path in checkpoint_folder(out).iterdir())


COMPUTED = {
    TextData: prepared,
    PairData: paired,
    RunConfig: tuned,
    TransformerConfig: book,
    ModernConfig: modern,
    RopeScaling: stretched,
    BertConfig: bert,  # the others of its settings have a test of their own
    ModelSettings: None,  # they are those of the two first
    TrainConfig: trained,
    RunOptions: written,
    GenerateOptions: written,
    TranslateOptions: translated,
    ScoreOptions: scored,
    EvaluateOptions: evaluated,
    EvaluatePairs: compared,
}
OF_RUNS = settings_of(RunOptions)
CASES = [
    pytest.param(made, name, about, id=f"{made.__name__}.{name}")
    for made in COMPUTED
    for name, about in settings_of(made).items()
    if about.example is not MISSING
    and not (made in (GenerateOptions, TranslateOptions, ScoreOptions) and name in OF_RUNS)
    and not (made is BertConfig and name in settings_of(ModernConfig))
]


def differ(one, other) -> bool:
    """Whether more differs than the rounding of another kernel."""
    if not isinstance(one, dict):
        return one != other
    return one.keys() != other.keys() or not all(
        one[n].shape == other[n].shape and torch.allclose(one[n], other[n], atol=1e-5) for n in one
    )


@pytest.fixture(scope="module")
def usual():
    """What is computed without an example, once for all settings that it is compared with."""
    return {}


@pytest.mark.parametrize(("made", "name", "about"), CASES)
def test_the_example_of_a_setting_changes_what_is_computed(
    made, name, about, usual, request, tmp_path, capsys
):
    if made is ModernConfig and name in NOT_TODAY:
        with pytest.raises(ValueError, match=name):
            ModernConfig(11, **{name: about.example})
        return
    tell, more = COMPUTED[made], {}
    if tell is trained:
        more = {"folder": tmp_path / "usual"}
    elif tell not in (book, modern, bert, stretched):
        more = {"runs": request.getfixturevalue("runs"), "capsys": capsys}
    key = (tell, name if name in APART else "", str(about.given))
    if key not in usual:
        usual[key] = tell(name, **more, **about.given)
    more |= {"folder": tmp_path / "changed"} if tell is trained else {}
    assert differ(usual[key], tell(name, **more, **{**about.given, name: about.example}))


OF_TODAY = [
    pytest.param(name, about, id=name)
    for name, about in settings_of(ModernConfig).items()
    if about.example is not MISSING and name not in NOT_TODAY
]


OF_THE_BOOK = [
    pytest.param(name, about, id=f"book's {name}")
    for name, about in settings_of(TransformerConfig).items()
    if name not in TRANSLATORS
]


@pytest.mark.parametrize(("name", "about"), [*OF_TODAY, *OF_THE_BOOK])
def test_every_way_through_a_model_reads_a_setting(name, about, request):
    """With `position_ids`, with a cache token by token, and through the logit lens."""
    changes = {"vocab_size": 11} | about.given | {name: about.example}
    of_the_book = "book's" in request.node.name
    kind, made = (TransformerLM, TransformerConfig) if of_the_book else (ModernLM, ModernConfig)
    model = kind(made(**changes))
    with torch.no_grad():
        U = model.eval()(IDS)
        torch.testing.assert_close(model(IDS, position_ids=torch.arange(17)), U)
        cache = KVCache()
        parts = [model(ids, cache=cache) for ids in IDS.split((13, 1, 1, 2), dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), U, atol=1e-4, rtol=1e-4)
        if model.stack.final_norm is not None:
            top = [*residual_stream(model, IDS).values()][-1]
            torch.testing.assert_close(logit_lens(model, top), U)


@pytest.mark.parametrize(("name", "about"), OF_TODAY)
def test_a_bert_reads_a_setting_or_refuses_it(name, about, usual):
    others = {"activation": "relu", "norm": "pre", "normalization": "rms", "ffn_bias": False}
    changes = {**about.given, name: others.get(name, about.example)}
    key = (bert, str(about.given))
    if key not in usual:
        usual[key] = bert(name, **about.given)
    try:
        found = bert(name, **changes)
    except ValueError as error:
        assert name in str(error)
    else:
        assert differ(usual[key], found)


def test_every_class_of_settings_takes_part():
    """Those of the guitar are tried in `tests/guitar`."""
    assert {*COMPUTED} == {made for made in DECLARED if made.__module__.startswith("slp_trans")}


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (0.0, "z_loss needs a setting"),
        (setting(0.0, example=1.0), "number.* needs a range"),
        (setting(0.0, SIZE), "needs an example"),
        (setting(0.0, SIZE, example=0.0), "needs an example, not its default"),
    ],
)
def test_a_setting_that_lacks_something_cannot_be_declared(field, sentence):
    class Own:
        """One.

        Attributes:
            z_loss: the weight of z.
        """

        z_loss: float = field

    with pytest.raises(TypeError, match=sentence):
        settings(dataclass(Own))
    Own.__doc__ = "One."
    with pytest.raises(TypeError, match="z_loss needs a .* line in the docstring"):
        settings(dataclass(Own))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("made", COMPUTED)
def test_a_number_out_of_its_range_is_refused_by_name(made):
    """`nan` is in no range, and neither is a word."""
    known = {"vocab_size": 11, "steps": 6, "rope_type": "linear", "factor": 4.0}
    for name, about in settings_of(made).items():
        for wrong in (float("nan"), "x") if about.range else ():
            one = object.__new__(made)
            for each in settings_of(made):
                default = made.__dataclass_fields__[each].default
                value = known.get(each) if default is MISSING else default
                object.__setattr__(one, each, wrong if each == name else value)
            with pytest.raises(ValueError, match=rf"^{name} must be .*, not {wrong!r}\.$"):
                check_settings(one)
