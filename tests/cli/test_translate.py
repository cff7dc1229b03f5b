"""Translation from the command line: trained, killed, resumed, judged and used."""

import io
import json
import os
import random
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from commands import PAIR_SIZES, PAIRS, TRAIN_PAIRS, fine, output, result, write_pairs
from unheard_signal import pipe_with_unheard_signal

pytest.importorskip("sacrebleu", reason="judging translations needs the translation extra")

from checkpoint_folders import checkpoint_folder
from torch._inductor.exc import CppCompileError, InductorError

from slp_transformer._internal.bounds import MAX_LINE_BYTES
from slp_transformer.cli import console, main
from slp_transformer.data import train_pair_tokenizer
from slp_transformer.generation import translation
from slp_transformer.generation.translation import Translator, compute_translation_metrics
from slp_transformer.tasks.config_files import load_config
from slp_transformer.tasks.pairs import TranslationTask
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.run_folder import list_checkpoints, load_trainer_state


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A folder with pairs, and a run that learned from them."""
    folder = tmp_path_factory.mktemp("translation")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_pairs()
        fine(*TRAIN_PAIRS, "--out-dir", "run")
        (folder / "pairs.csv").unlink()  # a run needs its source no more
    return folder


@pytest.fixture
def at(trained, tmp_path, monkeypatch) -> Path:
    """A folder with such a run, to work in."""
    shutil.copytree(trained / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_training_shows_sentences_with_reference_prediction_and_scores(at, capsys):
    write_pairs()
    capsys.readouterr()
    fine(*[word for word in TRAIN_PAIRS if word != "--quiet"], "--out-dir", "loud")
    told = capsys.readouterr().err
    assert "From English to Spanish." in told and "Steps in an epoch: about" in told
    assert told.count("\n  source ") == told.count("\n  prediction ") == 3 * 3
    held_out = json.loads(Path("loud/tokens/held-out.json").read_text(encoding="utf-8"))
    assert f"  reference  {held_out[0][1]}\n" in told
    assert told.count("BLEU") == 3 and "nrefs:1|case:mixed|eff:no|tok:13a" in told


@pytest.mark.slow
def test_the_first_run_needs_no_files(at, capsys):
    fine("train", "pairs", "--out-dir", "numbers", *PAIR_SIZES, "--steps", "1", "--quiet")
    assert "English" in output(capsys, "info", "numbers")


def test_evaluate_judges_what_the_run_held_out(at, capsys):
    told = result(capsys, "evaluate", "run", "--samples", "2")
    held_out = json.loads(Path("run/tokens/held-out.json").read_text("utf-8"))
    assert told["pairs"] == 3 == len(held_out)
    best = result(capsys, "info", "run")["training"]["best_val_loss"]
    assert told["loss"] == pytest.approx(best, rel=1e-5)
    sources = [sample["source"] for sample in told["samples"]]
    translations = [sample["prediction"] for sample in told["samples"]]
    assert output(capsys, "translate", "run", *sources) == "".join(f"{t}\n" for t in translations)
    assert "tok:13a" in told["bleu_signature"] and 0 <= told["bleu"] <= 100


def test_evaluate_takes_other_pairs(at, capsys):
    Path("a.en").write_text("twelve\nfive\n", encoding="utf-8")
    Path("a.es").write_text("doce\ncinco\n", encoding="utf-8")
    told = output(capsys, "evaluate", "run", "a.en", "--target", "a.es", "--num-beams", "1")
    assert "2, translated with 1 beams" in told and "BLEU" in told


def test_without_sacrebleu_the_loss_is_given_all_the_same(at, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    told = output(capsys, "evaluate", "run")
    assert "nats per token" in told and "BLEU and chrF  none: " in told and "[translation]" in told


def test_judging_counts_as_sacrebleu_does():
    references = ["the cat sat on the mat today", "a dog"]
    assert compute_translation_metrics(references, references).bleu == pytest.approx(100)
    assert compute_translation_metrics(references, references).chrf == pytest.approx(100)
    worse = compute_translation_metrics(["the cat sat on the mat", "a cow"], references)
    assert 0 < worse.bleu < 100 and "version:" in worse.bleu_signature
    with pytest.raises(ValueError, match="there are 1 and 2"):
        compute_translation_metrics(["a"], references)


def test_scores_are_sacrebleu_s_and_are_summed_sentences_at_a_time(monkeypatch, caplog):
    library, asked = pytest.importorskip("sacrebleu.metrics"), []
    words = "the cat sat on a mat , dog ran so far . Üß".split()
    draw = random.Random(2)
    references = [" ".join(draw.choices(words, k=draw.randint(4, 13))) + " ." for _ in range(223)]
    written = [text.replace("cat", draw.choice(words)) for text in references]
    written[7] = written[11] = ""
    counted = library.CHRF._extract_corpus_statistics
    monkeypatch.setattr(translation, "SENTENCES_PER_SUM", 109)
    monkeypatch.setattr(
        library.CHRF,
        "_extract_corpus_statistics",
        lambda self, rows, of: asked.append(len(rows)) or counted(self, rows, of),
    )
    scores = compute_translation_metrics(written, references)
    assert asked == [109, 109, 5]
    assert sum("100 lines that end" in each.message for each in caplog.records) == 1
    assert scores.bleu == library.BLEU().corpus_score(written, [references]).score
    assert scores.chrf == library.CHRF().corpus_score(written, [references]).score
    assert 0 < scores.bleu < scores.chrf < 100


def piped(monkeypatch, content: bytes, terminal: bool = False) -> None:
    buffer = io.BytesIO(content)

    def no_file() -> int:
        raise OSError("no file")

    stdin = SimpleNamespace(buffer=buffer, isatty=lambda: terminal, fileno=no_file)
    monkeypatch.setattr(sys, "stdin", stdin)


def test_lines_come_from_words_files_and_pipes_alike(at, capsys, monkeypatch):
    lines = ["twelve", "", "five hundred and one", "\x00\x1b[2J 日本\x0b", "   "]
    by_words = output(capsys, "translate", "run", *lines)
    assert by_words.count("\n") == 5 and by_words.split("\n")[1] == by_words.split("\n")[4] == ""
    Path("lines.txt").write_bytes("\r\n".join(lines).encode() + b"\r\n")
    assert output(capsys, "translate", "run", "--input", "lines.txt") == by_words
    piped(monkeypatch, "\n".join(lines).encode(), terminal=True)
    fine("translate", "run")
    told = capsys.readouterr()
    assert told.out == by_words and "From English into Spanish" in told.err
    assert output(capsys, "translate", "run", "--input", "lines.txt", "--output", "out.txt") == ""
    assert Path("out.txt").read_text(encoding="utf-8") == by_words


def test_a_tokenizer_of_another_model_is_refused(at):
    other = train_pair_tokenizer([("a b c", "d e f g h")], ("en", "th"), "words")
    with pytest.raises(ValueError, match="the tokenizer 12 and 12: they do not belong together"):
        Translator(load_model("run"), other)


def test_n_best_are_different_and_in_the_order_of_their_scores(at, capsys):
    sources = [source for source, _ in PAIRS[:9]]
    told = output(capsys, "translate", "run", *sources, "--n-best", "2", "--scores")
    blocks = [block.splitlines() for block in told.split("\n\n")[:-1]]
    assert len(blocks) == 9 and max(map(len, blocks)) == 2
    for block in blocks:
        scores, texts = zip(*(line.split("\t") for line in block), strict=True)
        assert list(map(float, scores)) == sorted(map(float, scores), reverse=True)
        assert float(scores[0]) < 0 and len(set(texts)) == len(texts)
    told = output(capsys, "translate", "run", sources[0], "--json", "--num-beams", "3")
    (best,) = json.loads(told)["translations"]
    assert best["text"] == blocks[0][0].split("\t")[1]


def test_attention_is_drawn(at, capsys):
    word = "hundred"
    told = output(capsys, "translate", "run", word, "--attention", "heads.html")
    page = Path("heads.html").read_text(encoding="utf-8")
    assert told.count("\n") == 1 and "Cross-attention" in page and word in page


def test_a_pipe_in_another_encoding_is_refused(at, capsys, monkeypatch):
    piped(monkeypatch, b"five\n\xe9\n")
    assert main(["translate", "run"]) == 2  # after the first line was translated
    assert "line 2 has the byte 0xE9" in capsys.readouterr().err


class Blocks(io.RawIOBase):
    """Each read gives the next block, which is made when it is asked for."""

    def __init__(self, blocks):
        self.blocks = iter(blocks)

    def readable(self):
        return True

    def readinto(self, room):
        block = next(self.blocks, b"")
        room[: len(block)] = block
        return len(block)


def test_a_line_is_translated_before_the_next_is_waited_for(at, capsys, monkeypatch):
    told, answers = [], []

    def typed():
        for block in [b"\xef\xbb\xbftw", b"elve\r", b"\nfive\ntwo\n\nsi", b"x\r"]:
            yield block
            told.append(capsys.readouterr().out)
            answers.append("".join(told).count("\n"))

    expected = output(capsys, "translate", "run", "twelve", "five", "two", "", "six")
    stdin = SimpleNamespace(buffer=io.BufferedReader(Blocks(typed())), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    fine("translate", "run")
    assert answers == [0, 0, 4, 4] and "".join(told) + capsys.readouterr().out == expected


def test_a_line_without_an_end_is_refused(at, capsys, monkeypatch):
    def zeros():
        yield b"five\n"
        for _ in range(1000):
            taken.append(1 << 12)
            yield bytes(1 << 12)

    taken = []
    stdin = SimpleNamespace(buffer=io.BufferedReader(Blocks(zeros())), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["translate", "run"]) == 2  # after the first line was translated
    told = capsys.readouterr()
    assert told.out.count("\n") == 1 and sum(taken) <= 2 * MAX_LINE_BYTES
    assert "Standard input, line 2: it has more than 1,048,576 bytes" in told.err
    piped(monkeypatch, b" " * MAX_LINE_BYTES + b"\n" + b" " * (MAX_LINE_BYTES + 1) + b"\n")
    assert main(["translate", "run"]) == 2
    told = capsys.readouterr()
    assert told.out == "\n" and "Standard input, line 2" in told.err


@pytest.mark.skipif(os.name == "nt", reason="signals are sent as POSIX has them")
def test_a_signal_while_it_waits_for_a_line_is_heeded(at, capsys, monkeypatch):
    in_time, answered = [], threading.Event()
    show = console.print_text
    monkeypatch.setattr(console, "print_text", lambda *text: (show(*text), answered.set()))
    with pipe_with_unheard_signal(b"five\n", in_time, answered) as stream:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream, isatty=lambda: False))
        assert main(["translate", "run"]) == 130
    assert in_time == [True] and capsys.readouterr().out.count("\n") == 1


def test_a_checkpoint_is_kept_after_each_epoch(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pairs()
    by_epoch = ["--eval-interval", "epoch", "--keep-last", "9"]
    by_epoch += ["--batch-tokens", "400", "--steps", "7"]
    fine(*TRAIN_PAIRS, *by_epoch, "--out-dir", "run")
    config = load_config("run/config.toml")
    source, _ = TranslationTask().sources(
        config, TranslationTask().open(config, Path("run/tokens"))
    )
    drawn, steps = 0, 0
    while drawn < len(source):  # until each pair was drawn once
        drawn += len(source.draw(512, torch.Generator().manual_seed(0)).targets)
        steps += 1
    kept = {load_trainer_state(folder).step for folder in list_checkpoints(Path("run"))} - {0}
    assert 1 < steps < 4 and drawn == len(source) and kept == {*range(steps, 8, steps), 7}
    assert '"epoch"' in Path("run/config.toml").read_text(encoding="utf-8")
    fine("train", "--out-dir", "run", "--resume", "--steps", "9", "--quiet")


def test_a_compiler_that_fails_is_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_pairs()

    def fails(model):
        def compile(*given):
            raise InductorError(CppCompileError(["g++"], "a page of errors"), None)

        model.register_forward_pre_hook(compile)
        return model

    monkeypatch.setattr(torch, "compile", fails)
    assert main([*TRAIN_PAIRS, "--compile", "--out-dir", "run"]) == 2
    said = capsys.readouterr().err
    assert "train without --compile" in said.splitlines()[-1] and "page of errors" not in said
    fine("train", "--out-dir", "run", "--resume", "--no-compile", "--quiet")
    assert load_trainer_state(checkpoint_folder(Path("run"))).step == 6
