"""Measures that mean what they say, and leave everything else as it was."""

import json
import math
import shutil
import signal
from pathlib import Path

import pytest
import torch
from commands import SENTENCE, SMALL, fine, output, result
from tiny_training import with_dropout

from slp_transformer import TransformerLM
from slp_transformer.data.batches import PaddedPairs, TokenWindows, eval_subset
from slp_transformer.guitar import make_practice_corpus, write_tab
from slp_transformer.training import trainer
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.evaluation import mean_loss
from slp_transformer.training.run_folder import checkpoint_folder
from slp_transformer.training.trainer import train

STREAM = torch.arange(7).repeat(30)


def tiny() -> TransformerLM:
    return with_dropout(num_blocks=2)


class Own:
    """A source of somebody's own, which cannot give a part."""

    def draw(self, batch_size, generator): ...

    def iter_eval(self, batch_size): ...

    def fingerprint(self): ...


# --- A part while training, all at the end -------------------------------------------------------


def test_a_part_is_windows_from_all_over_by_hand():
    windows = TokenWindows(torch.arange(23), 5)  # four windows, two of which are the part
    part = eval_subset(windows, 2)
    batch = next(part.iter_eval(9))
    assert batch.inputs[0].tolist() == [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]]
    assert batch.targets.tolist() == [[1, 2, 3, 4, 5], [11, 12, 13, 14, 15]]
    assert len(windows) == 4 and len(part) == 2
    for size in (4, 5, None):
        assert eval_subset(windows, size) is windows
    rows = [(torch.tensor([n]), torch.tensor([n])) for n in range(7)]
    pairs = PaddedPairs(rows, pad_id=0, begin_id=1, end_id=2)
    assert [int(source) for source, _ in eval_subset(pairs, 3).pairs] == [0, 2, 4]
    own = Own()
    assert eval_subset(own, 2) is own


def test_while_training_a_part_is_measured_and_all_at_the_end():
    """The measure of each moment is the one that `mean_loss` gives afterwards."""
    model = tiny()
    held_out = STREAM.flip(0)
    records = train(
        model, STREAM, held_out, steps=4, eval_interval=2, batch_size=2, max_eval_samples=3
    )
    windows = TokenWindows(held_out, 5)
    assert [record.full_val_loss for record in records[:-1]] == [None]
    assert records[-1].val_loss == pytest.approx(mean_loss(model, eval_subset(windows, 3)))
    assert records[-1].full_val_loss == pytest.approx(mean_loss(model, windows))
    assert records[-1].full_val_loss != pytest.approx(records[-1].val_loss, abs=1e-6)
    everything = train(
        tiny(), STREAM, held_out, steps=4, eval_interval=2, batch_size=2, max_eval_samples=None
    )
    assert everything[-1].full_val_loss is None
    assert everything[-1].val_loss == pytest.approx(records[-1].full_val_loss)


def test_the_command_says_what_it_was_measured_on(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL[:-1], "--max-eval-samples", "2")
    said = capsys.readouterr()
    assert "Evaluating on 2 of 8 validation sequences; on all of them at the end." in said.err
    assert "That is the loss on 2 validation sequences; on all of them" in said.out
    assert "Held out: " in said.err and "fox.txt, tokens 1045 to 1160 of 1160" in said.err


# --- The same held-out pieces for good -----------------------------------------------------------


def test_a_guitar_run_keeps_its_split_when_the_folder_changes_or_goes(at, capsys):
    Path("tabs").mkdir()
    for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=14)):
        write_tab(tab, f"tabs/{number:02}.txt")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    held_out = json.loads(Path("g/tokens/held-out.json").read_text("utf-8"))
    assert len(held_out) == 1 and ".txt" in held_out[0]

    before = result(capsys, "evaluate", "g")
    for number, tab in enumerate(make_practice_corpus(seed=5, num_pieces=9)):
        write_tab(tab, f"tabs/a{number}.txt")
    assert result(capsys, "evaluate", "g") == before
    shutil.rmtree("tabs")
    assert result(capsys, "evaluate", "g") == before


# --- Bits per byte -------------------------------------------------------------------------------


def test_words_that_are_unknown_leave_bits_per_byte_out(at, capsys):
    pytest.importorskip("tokenizers")
    words = ["--tokenizer", "words", *SMALL]
    fine("train", "text", "fox.txt", "--out-dir", "known", *words)
    fine("train", "text", "fox.txt", "--out-dir", "unknown", *words, "--vocab-size", "6")
    for run in ("known", "unknown"):
        measured, said = result(capsys, "evaluate", run), output(capsys, "evaluate", run)
        assert ("bits_per_byte" in measured) == (run == "known")
        assert ("unknown" in measured) == (run == "unknown")
    assert measured["unknown"] > 10 and "none: " in said and "unknown words" in said
    Path("other.txt").write_text(SENTENCE.replace("fox", "vixen") * 9, encoding="utf-8")
    assert result(capsys, "evaluate", "known", "other.txt")["unknown"] > 0


# --- Numbers that are none -----------------------------------------------------------------------


def files(folder: Path) -> dict[Path, bytes]:
    """All but the lock, and metrics.json, which is for people and plots."""
    found = (path for path in folder.rglob("*") if path.is_file())
    others = (path for path in found if path.name not in (".lock", "metrics.json"))
    return {path.relative_to(folder): path.read_bytes() for path in others}


@pytest.mark.parametrize("moment", ["a loss on the way", "the last update", "held out alone"])
def test_a_run_that_diverges_keeps_its_last_good_checkpoint(tmp_path, monkeypatch, moment):
    how = {"steps": 8, "eval_interval": 2, "batch_size": 2, "out_dir": tmp_path, "progress": False}
    kept = {}

    def remember(record):
        kept.update(files(tmp_path)) if record.step == 4 else None

    step, count = torch.optim.AdamW.step, iter(range(99))

    def ruin(self, *arguments):
        result = step(self, *arguments)
        if next(count) == (4 if moment == "a loss on the way" else 5):
            self.param_groups[0]["params"][0].data.fill_(math.nan)
        return result

    if moment == "held out alone":
        losses = iter([1.0, 1.0, math.inf])
        monkeypatch.setattr(trainer, "mean_loss", lambda *_, **__: next(losses))
    else:
        monkeypatch.setattr(torch.optim.AdamW, "step", ruin)
    with pytest.raises(ValueError, match=r"is NaN or infinite, at step 6 .*learning_rate") as told:
        train(tiny(), STREAM, STREAM, report=remember, **how)
    assert "\n" not in str(told.value)
    assert kept and files(tmp_path) == kept
    assert all(p.isfinite().all() for p in load_model(tmp_path, "last").parameters())


def test_weights_that_are_none_are_not_kept_by_ctrl_c_either(tmp_path, monkeypatch):
    step, count = torch.optim.AdamW.step, iter(range(99))

    def ruin(self, *arguments):
        result = step(self, *arguments)
        if next(count) == 2:
            self.param_groups[0]["params"][0].data.fill_(math.nan)
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(torch.optim.AdamW, "step", ruin)
    how = {"steps": 8, "eval_interval": 2, "batch_size": 2, "out_dir": tmp_path, "progress": False}
    with pytest.raises(ValueError, match="A weight is NaN or infinite, at step 3"):
        train(tiny(), STREAM, STREAM, **how)
    assert checkpoint_folder(tmp_path).name == "step-00000002"


# --- What is left as it was ----------------------------------------------------------------------


def test_measuring_leaves_frozen_parts_alone_even_when_it_fails():
    model = tiny()
    model.stack.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    assert True in modes and False in modes
    mean_loss(model, STREAM, 5)
    assert [module.training for module in model.modules()] == modes

    def fail(count):
        assert not any(module.training for module in model.modules())
        raise OSError

    with pytest.raises(OSError):
        mean_loss(model, STREAM, 5, on_batch=fail)
    assert [module.training for module in model.modules()] == modes


def test_training_leaves_the_caller_s_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    model = tiny()
    torch.manual_seed(5)
    train(model, STREAM, STREAM, steps=2, batch_size=2, seed=3)
    assert torch.equal(torch.rand(3), expected)
