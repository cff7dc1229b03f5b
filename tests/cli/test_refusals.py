"""What each command refuses: in one sentence, with exit code 2, and with nothing left behind."""

import gzip
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from commands import PAIR_SIZES, SENTENCE, SMALL, TRAIN_PAIRS, fine, refused, write_pairs

from slp_guitar import make_practice_corpus, write_tab
from slp_transformer.cli import main
from slp_transformer.training.checkpoints import save_checkpoint


class HandModel(torch.nn.Linear):
    """In the place of a fingering model of version 0.3, which no command knows any more."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of each task, one by LoRA, one that diverged at once, and files of all kinds."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
        Path("wolf.txt").write_text(SENTENCE * 20, encoding="utf-8")
        Path("odd.txt").write_text("Ω" * 40, encoding="utf-8")
        Path("latin.csv").write_bytes("a,b\nx,é\n".encode("latin-1"))
        Path("cut.csv.gz").write_bytes(gzip.compress(b"a,b\nx,y\n")[:-6])
        write_pairs()
        fine("train", "text", "fox.txt", "--out-dir", "text", *SMALL)
        fine("train", "text", "fox.txt", *BASE, "--lora-rank", "2", "--out-dir", "lora", *SHORT)
        Path("songs").mkdir()
        for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=12)):
            write_tab(tab, f"songs/{number:02}.txt")
        fine("train", "tabs", "songs", "--out-dir", "tabs", *SMALL)
        fine(*TRAIN_PAIRS, "--out-dir", "pairs")
        save_checkpoint("hand", 3, HandModel(2, 3))
        diverges = ["--learning-rate", "1e30", "--out-dir", "diverged"]
        assert main(["train", "text", "fox.txt", *SMALL, *diverges]) == 2
    return folder


@pytest.fixture
def check(runs, capsys, monkeypatch):
    """Refuses words, and has not changed any file."""
    monkeypatch.chdir(runs)

    def check(sentence, *words):
        before = sorted(runs.rglob("*"))
        assert sentence in refused(capsys, *words)
        assert sorted(runs.rglob("*")) == before

    return check


def table(*rows):
    """A test for each row: the words of a command, and its sentence."""
    ids = [" ".join(words)[:60] or "nothing" for words, _ in rows]
    return pytest.mark.parametrize(("words", "sentence"), rows, ids=ids)


BASE, SHORT = ["--init-from", "text"], SMALL[-9:]
FOX = ["text", "fox.txt", "--out-dir", "new", *SMALL]
NO_BASE = ["text", "fox.txt", "--out-dir", "new", *SHORT]
BOOKS = ["--no-scaled-embeddings", "--initialization", "gpt2"]
CSV = ["pairs", "pairs.csv", "--out-dir", "new", *PAIR_SIZES, "--quiet"]


@table(
    (["trian"], 'There is no command "trian": did you mean "train"?'),
    (["train"], "Name the task: slp-transformer train text|pairs|tabs"),
    (["train", "--out-dir", "new"], "Name the task"),
    (["train", "txt", "fox.txt"], "There is no task txt: slp-transformer train text|pairs|tabs"),
    (["train", "text", "--out-dir", "new"], "Name what to train on"),
    (["train", "text", "fox.txt"], "--out-dir FOLDER"),
    (["train", "text", "fox.txt", "--out-dir", ""], "One of the arguments is empty"),
    (["train", *FOX, "--seed", str(2**63)], "seed must be a whole number from 0 to 2**63 - 1"),
    (
        ["train", *FOX, "--gradient-accumulation-steps", "9" * 20],
        "gradient_accumulation_steps must be a whole number from 1 to 1,000,000",
    ),
    (["train", *FOX, "--eval-interval", str(2**63)], "--eval-interval must be between -2**63 and"),
    (["train", *FOX, "--stpes", "3"], "There is no option --stpes: did you mean --steps?"),
    (["train", *FOX, "--step", "3"], "did you mean --steps?"),
    (["train", *FOX, "--model-dimension", "3"], "did you mean --model-dim?"),
    (["train", *FOX, "--lora-rnak", "3"], "did you mean --lora-rank?"),
    (["train", *FOX, "--qiuet"], "did you mean --quiet?"),
    (["train", *FOX, "--lr", "1e-3"], "There is no option --lr: did you mean --learning-rate?"),
    (["train", *FOX, "--n_layer=3"], "There is no option --n-layer: did you mean --num-blocks?"),
    (["train", *FOX, "--max-length", "3"], "did you mean --sequence-length?"),
    (["generate", "text", "--max-length", "3"], "did you mean --max-new-tokens?"),
    (["train", *FOX, "--nothing-like-it"], "--nothing-like-it (see slp-transformer train text"),
    (["train", *FOX, "--steps", "x"], "Error parsing --steps: invalid literal for int()"),
    (["train", *FOX, "--steps"], "Missing value for argument '--steps'"),
    (["train", *FOX, "--steps", "0"], "steps must be a whole number of 1"),
    (["train", *FOX, "--dropout", "2"], "share to drop"),
    (
        ["train", *FOX, "--positions", "rotary", "--rope-base", "inf"],
        "rope_base must be above 1 and at most 1e+30, not inf",
    ),
    (["train", *FOX, "--rope-base", "5"], 'rope_base belongs to positions = "rotary"'),
    (["train", *FOX, "--norm", "none"], "invalid choice 'none' for argument '--norm'"),
    (["train", *FOX, "--num-heads", "3"], "num_heads = 3"),
    (["train", *FOX, "--context-length", "999"], "too little data"),
    (["train", *FOX, "--device", "tpu"], "device must be"),
    (["train", *FOX, "--batch-tokens", "9"], "batch_tokens has no effect"),
    (["train", *FOX, "--target", "fox.txt"], "--target"),
    (["train", *FOX, "--config", "txet"], 'did you mean "text"?'),
    (["train", *FOX, "--config", "tabs"], "configures another task than text"),
    (["train", "text", "nowhere", "--out-dir", "new"], "nor a corpus of that name"),
    (["train", "tabs", "nowhere", "--out-dir", "new"], "nowhere: name one with .txt"),
    (["train", "tabs", "--tokenizer", "bpe", "--out-dir", "new"], "--tokenizer"),
    (["train", "tabs", "--config", "shakespeare", "--out-dir", "new"], "another task than tabs"),
    (["train", *FOX, "--out-dir", "text"], "holds a run already"),
    (["train", "text", "fox\udcff.txt", "--out-dir", "new"], r"'fox\udcff.txt' is not UTF-8"),
)
def test_train(words, sentence, check):
    check(sentence, *words)


@table(
    (["--out-dir", "none", "--resume"], "There is no run in none to resume"),
    (["--out-dir", "hand", "--resume"], "in hand to resume, but a HandModel without a config.toml"),
    (["tabs", "--out-dir", "text", "--resume"], "configures another task than tabs"),
    (["--out-dir", "text", "--resume", "--eval-interval", "3"], "started with eval_interval 2"),
    (["text", "wolf.txt", "--out-dir", "text", "--resume"], "started with source"),
    (["--out-dir", "lora", "--resume", "--lora-rank", "3"], "started with lora_rank 2, not 3"),
    (["--out-dir", "text", "--resume", "--steps", "3"], "is at step 4 already"),
)
def test_resume(words, sentence, check):
    check(sentence, "train", *words)


@table(
    ([*NO_BASE, *BASE, "--lora-rank", "0"], "lora_rank must be a whole number of 1 or more, not 0"),
    ([*NO_BASE, *BASE, "--lora-rank", "two"], "Error parsing --lora-rank"),
    ([*NO_BASE, *BASE, "--lora-rank", "9"], "rank must be at most 8 for a matrix of [8×8], not 9"),
    ([*NO_BASE, "--lora-rank", "2"], "lora_rank fine-tunes the model of another run"),
    ([*NO_BASE, "--init-from", "lora", "--lora-rank", "2"], "merge it with its base first"),
    ([*NO_BASE, "--init-from", "lora"], "(`slp-transformer merge`)"),
    ([*NO_BASE, "--init-from", "none"], "There is no folder none"),
    ([*NO_BASE, *BASE, "--num-blocks", "3"], "has num_blocks 1, not 3: leave out --num-blocks"),
    (
        [*NO_BASE, *BASE, "--context-length", "5"],
        "(--sequence-length 5 trains on windows that short)",
    ),
    ([*NO_BASE, *BASE, "--tokenizer", "bpe"], "has tokenizer characters, not bpe"),
    ([*CSV, *BASE], "text was trained for the task text, not pairs"),
    (["tabs", "--out-dir", "new", "--init-from", "pairs"], "for the task pairs, not tabs"),
    ([*CSV, "--init-from", "pairs", "--lora-rank", "2"], "lora_rank is for language models"),
)
def test_begin_with_another_run(words, sentence, check):
    check(sentence, "train", *words)


@table(
    (["no.csv"], "no.csv cannot be read"),
    (["pairs.csv", "--target", "no.es"], "There is no use for"),
    (["pairs.csv", "--target", "latin.csv"], "There is no use for"),
    (
        ["pairs.csv", "--source-language", "Thai", "--target-language", "x"],
        "has the columns English, Spanish: name two",
    ),
    (["latin.csv"], "line 2 has the byte 0xE9"),
    (["cut.csv.gz"], "cut.csv.gz is damaged: Compressed file ended"),
    (["pairs.csv", "--sequence-length", "9"], "sequence_length has no effect"),
    (["pairs.csv", "--batch-tokens", "3"], "batch just 3"),
    (["pairs.csv", "--context-length", "2"], "--overlong"),
    (["pairs.csv", "--qk-norm", *BOOKS], "Only language models have qk_norm, not translators"),
    (["pairs.csv", "--batch-tokens", "None", "--eval-interval", "epoch"], "have none: give a"),
    (["pairs.csv", "--eval-interval", "epochs"], "Error parsing --eval-interval"),
)
def test_train_pairs(words, sentence, check):
    check(sentence, "train", "pairs", *words[:1], "--out-dir", "new", *PAIR_SIZES, *words[1:])


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[train]\nstpes = 3", '[train] has no "stpes": did you mean "steps"?'),
        ("[trani]\nsteps = 3", 'A configuration has no "trani": did you mean "train"?'),
        ("steps = 3", 'A configuration has no "steps"'),
        ("train = 3", "train: Input should be an object (found 3)"),
        ('[train]\nsteps = "many"', "steps: Input should be a valid integer (found 'many')"),
        ("[train]\nsteps = true", "steps: Input should be a valid integer (found True)"),
        ("[train]\nsteps = 2.5", "steps: Input should be a valid integer"),
        ("[train]\nbf16 = 1", "bf16: Input should be a valid boolean (found 1)"),
        ("init_from = 3", "init_from: Input should be a valid string (found 3)"),
        ('[model]\nnorm = "none"', "norm: Input should be a valid string (found None)"),
        ('[model]\nactivation = "tanh"', 'activation must be "relu" or "gelu" or "swiglu" or '),
        ("[model]\nvocab_size = 9", '[model] has no "vocab_size"'),
        ("[model]\nnum_heads = 0", "num_heads must be a whole number of 1 or more"),
        ("[data]\nval_split = 1.5", "val_split must be a share between 0 and 1"),
        ('task = "tabs"', "configures another task than text"),
        ('task = "txet"', 'there is no task "txet": did you mean "text"?'),
        ("task = {}", 'there is no task "{}": there are pairs'),
        ("[data\n", "is not TOML"),
    ],
)
def test_configuration(toml, sentence, check, tmp_path):
    (tmp_path / "wrong.toml").write_text(toml, encoding="utf-8")
    check(sentence, "train", *FOX, "--config", str(tmp_path / "wrong.toml"))


@table(
    (["none"], "There is no folder none"),
    (["."], "There is no checkpoint in ."),
    (["diverged"], "has not been trained yet"),
    (["pairs"], "holds no language model: it translates"),
    (["text", "extra"], "Unrecognized options: extra"),
    (["text", "--promt", "a"], "did you mean --prompt?"),
    (["text", "--max-new-tokens", "0"], "--max-new-tokens must be from 1 to 1,000,000, not 0"),
    (
        ["text", "--temperature", "-1"],
        "--temperature must be 0, or a number above 0, from 1e-6 on, not -1.",
    ),
    (["text", "--prompt", ""], "The prompt is empty"),
    (["text", "--prompt", "Ω"], "'Ω'"),
    (["text", "--prompt-file", "none.txt"], "none.txt cannot be read"),
    (["text", "--prompt-file", "latin.csv"], "latin.csv is not UTF-8: line 2 has the byte 0xE9"),
    (["text", "--output", "none/q.txt"], "There is no folder none to write q.txt to."),
    (["text", "--output", "text"], "text is a folder: name a file to write to."),
    (["text", "--seed", str(2**63)], "--seed must be a whole number from 0 to 2**63 - 1"),
    (
        ["text", "--num-samples", "1000001"],
        "--num-samples must be from 1 to 1,000,000, not 1000001",
    ),
    (["text", "--max-new-tokens", "1000001"], "--max-new-tokens must be from 1 to 1,000,000"),
    (["text", "--top-k", "9" * 30], "--top-k must be between -2**63 and 2**63"),
    (["text", "--top-p", "2"], "--top-p must be a share above 0 and at most 1, not 2."),
    (["text", "--temperature", "1e-45"], "--temperature must be 0, or a number above 0, from 1e-6"),
    (["text", "--temperature", "0", "--top-p", "0.9"], "--top-p has no effect with --temperature"),
    (["text", "--output", "q.gp5"], "text writes text, and q.gp5 is no file of text"),
    (["text", "--tuning", "drop-D"], "--tuning has no effect here: it is for the task tabs, and"),
    (["text", "--capo", "2"], "--capo has no effect here"),
    (["text", "--time-signature", "3/4"], "--time-signature has no effect here"),
    (["text", "--ending", "any"], "--ending has no effect here"),
    (["text", "--one-channel"], "--one-channel has no effect here"),
    (["hand"], "was saved without a tokenizer, so its tokens have no names"),
    (["tabs", "--one-channel"], "--one-channel has no effect here: standard output is no MIDI"),
    (["--style", "Jazz", "text"], "and text is of the task text."),
    (["tabs", "--tuning", "drop-d"], 'no choice "drop-d": did you mean "drop-D"?'),
    (["tabs", "--key", "H"], '--key has no choice "H"'),
    (["tabs", "--style", "Jazz"], "--style has no effect here: this model has no tokens for it"),
    (["tabs", "--output", "q.doc"], "q.doc does not say what to write"),
    (["tabs", "--prompt", "la la"], "The prompt is not tablature"),
)
def test_generate(words, sentence, check):
    check(sentence, "generate", *words)


def test_a_library_for_the_output_is_named_before_any_work(check, monkeypatch):
    monkeypatch.setitem(sys.modules, "guitarpro", None)
    check("generate needs guitarpro, which", "generate", "tabs", "--output", "q.gp5")


@table(
    (["none"], "There is no folder none"),
    (["."], "There is no checkpoint in ."),
    (["text", "--samples", "0"], "--samples must be from 1 to 1,000,000, not 0"),
    (["text", "--samples", "1000001"], "--samples must be from 1 to 1,000,000, not 1000001"),
    (["text", "--samples", "1", "--max-new-tokens", "1000001"], "--max-new-tokens must be from 1"),
    (
        ["text", "--samples", "1", "--temperature", "-1"],
        "--temperature must be 0, or a number above 0",
    ),
    (["text", "--max-new-tokens", "3"], "--max-new-tokens has no effect here: it is for --samples"),
    (["text", "--min-p", "0.1"], "--min-p has no effect here: it is for --samples"),
    (["text", "--num-beams", "2"], "no effect here: it is for the task pairs, and text is of"),
    (["text", "odd.txt"], "'Ω'"),
    (["pairs", "--target", "latin.csv"], "name its source too"),
    (["pairs", "--max-new-tokens", "9"], "--max-new-tokens has no effect"),
    (["pairs", "--top-k", "9"], "--top-k has no effect here: a translation ends by itself"),
    (["pairs", "fox.txt"], "--target"),
    (["pairs", "--num-beams", "0"], "--num-beams must be a whole number from 1 to 1,000, not 0"),
    (["pairs", "--num-beams", "1001"], "--num-beams must be a whole number from 1 to 1,000"),
)
def test_evaluate(words, sentence, check):
    check(sentence, "evaluate", *words)


@table(
    (["text", "five"], "text does not translate"),
    (["pairs", "five", "five " * 40], "Line 2 has 41 tokens"),
    (["pairs", "x", "--num-beams", "0"], "--num-beams must be a whole number from 1 to 1,000"),
    (["pairs", "x", "--num-beams", "1001"], "--num-beams must be a whole number from 1 to 1,000"),
    (["pairs", "x", "--n-best", "1001"], "--n-best must be a whole number from 1 to 1,000"),
    (["pairs", "x", "--length-penalty", "nan"], "--length-penalty must be a number from -10 to 10"),
    (["pairs", "x", "--length-penalty", "1e6"], "--length-penalty must be a number from -10 to 10"),
    (["pairs", "x", "--num-beams", "2", "--n-best", "3"], "give --num-beams 3"),
    (["pairs", "--input", "none.txt"], "none.txt"),
    (["pairs", "--input", "latin.csv"], "line 2 has the byte 0xE9"),
    (["pairs", "a", "b", "--attention", "a.svg"], "--attention draws one sentence"),
    (["pairs", "", "--attention", "a.svg"], "--attention draws one sentence"),
    (["pairs", "--attention", "a.svg"], "--attention draws one sentence"),
    (["pairs", "five", "--attention", "a.png"], "drawn as .html or .svg, and a.png is neither"),
)
def test_translate(words, sentence, check):
    check(sentence, "translate", *words)


@table(
    (["info", "none"], "hf download OWNER/NAME --local-dir FOLDER"),
    (["merge", "lora"], "--out-dir"),
    (["merge", "lora", "--out-dir", "text"], "text holds a run already"),
    (["merge", "text", "--out-dir", "new"], "text is not a LoRA run"),
    (["merge", "none", "--out-dir", "new"], "There is no folder none"),
)
def test_info_and_merge(words, sentence, check):
    check(sentence, *words)


@pytest.fixture
def pipe(tmp_path):
    """A pipe that nobody writes to, under names of all kinds of files."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
@pytest.mark.parametrize(
    ("words", "suffix"),
    [
        (["train", "tabs", "PIPE", "--out-dir", "new"], ".mid"),
        (["train", "tabs", "songs", "--val-data", "PIPE", "--out-dir", "new"], ".txt"),
        (["train", "text", "fox.txt", "--config", "PIPE", "--out-dir", "new"], ".toml"),
        (["train", "text", "fox.txt", "--init-from", "PIPE", "--out-dir", "new"], ""),
        *((["tab", "PIPE"], suffix) for suffix in (".mid", ".gp5", ".gp", ".mxl", ".atex", ".tab")),
        (["evaluate", "tabs", "PIPE"], ".mid"),
        *(([command, "PIPE"], "") for command in ("generate", "evaluate", "info")),
        (["translate", "PIPE", "five"], ""),
        (["export", "PIPE", "new"], ""),
        (["merge", "PIPE", "--out-dir", "new"], ""),
    ],
)
def test_a_pipe_where_a_file_is_needed_is_refused_and_not_waited_for(words, suffix, pipe, check):
    """A table of each input that is no text; texts are read from pipes, as from standard input."""
    named = pipe.rename(pipe.with_suffix(suffix))
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for a writer"))
    signal.alarm(60)
    try:
        check(str(named), *(str(named) if word == "PIPE" else word for word in words))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
