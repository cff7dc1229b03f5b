"""The command line, from text to text; what it refuses, and how."""

import importlib.metadata
import io
import json
import shutil
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from commands import SENTENCE, SMALL, fine, refused, weights

from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal import progress_bar
from slp_transformer.cli import main
from slp_transformer.cli.options import Generate
from slp_transformer.data import TextTokenizer, load_corpus
from slp_transformer.guitar import (
    TabTokenizer,
    make_practice_corpus,
    read_tab_folder,
    tab_dataset,
    write_tab,
)
from slp_transformer.guitar.formats.registry import read_any_tab_file
from slp_transformer.tasks.base import LoadedRun
from slp_transformer.tasks.generation_session import TextSession, continue_prompts
from slp_transformer.tasks.loaded_run import load_tokenizer_of
from slp_transformer.tasks.tabs import TabTask
from slp_transformer.training.checkpoints import load_model

# --- From text to text ---------------------------------------------------------------------------


def test_from_a_file_to_text_in_three_commands(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "runs/a", *SMALL)
    said = capsys.readouterr()
    assert "Trained 4 steps. Best val loss" in said.out
    assert "slp-transformer generate" in said.out and "The quick" in said.out
    assert "training tokens" in said.err
    fine("generate", "runs/a", "--prompt", "The", "--max-new-tokens", "7")
    written = capsys.readouterr().out
    assert written.startswith("The") and len(written) == 3 + 7 + 1
    fine("evaluate", "runs/a")
    assert "bits per character" in capsys.readouterr().out


def test_the_bar_and_all_messages_go_to_stderr(at, capsys, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL[:-1])
    said = capsys.readouterr()
    assert "Training on CPU" in said.err and "4/4" in said.err
    assert "Training on" not in said.out and "step/s" not in said.out


def test_a_terminal_sees_bars_of_the_data_unless_quiet(at, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress_bar, "BAR_DELAY_S", 0)
    for run, quiet in (("a", ["--quiet"]), ("b", [])):
        monkeypatch.setattr(sys, "stderr", terminal := io.StringIO())
        monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
        fine("train", "text", "fox.txt", "--out-dir", run, *SMALL[:-1], *quiet)
        for work in ("Vocabulary", "Tokens", "Split"):
            assert (f"{work}:   0%" in terminal.getvalue()) is not bool(quiet)


def test_a_folder_standard_input_and_a_named_corpus(at, monkeypatch):
    Path("texts/below").mkdir(parents=True)
    Path("texts/a.txt").write_text(SENTENCE * 10, encoding="utf-8")
    Path("texts/below/b.txt").write_text(SENTENCE * 10, encoding="utf-8")
    fine("train", "text", "texts", "--out-dir", "folder", *SMALL)
    piped = io.TextIOWrapper(io.BytesIO(SENTENCE.encode() * 20))
    monkeypatch.setattr(sys, "stdin", piped)
    fine("train", "text", "-", "--out-dir", "piped", *SMALL)
    fine("train", "text", "fox.txt", "--out-dir", "file", *SMALL)
    assert weights("piped") == weights("file") != weights("folder")
    fine("train", "--out-dir", "piped", "--resume", "--quiet")  # nothing is read again
    fine("train", "text", "moby-dick", "--out-dir", "moby", *SMALL)


def test_the_seed_decides_what_is_written(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    texts = []
    for seed in ("3", "3", "4"):
        capsys.readouterr()
        fine("generate", "a", "--prompt", "The", "--max-new-tokens", "30", "--seed", seed)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    fine("generate", "a", "--prompt", "The", "--prompt", "fox j", "--num-samples", "2",
         "--max-new-tokens", "30", "--seed", "3", "--json")  # fmt: skip
    listed = json.loads(capsys.readouterr().out)
    assert [each["text"][:3] for each in listed] == ["The", "The", "fox", "fox"]
    assert [each["seed"] for each in listed] == [3, 4, 5, 6]
    # Each text is what it would be alone, window after window, however long its neighbors are.
    assert listed[0]["text"] + "\n" == texts[0] and listed[1]["text"] + "\n" == texts[2]


def test_past_the_window_it_goes_on_with_the_end_and_says_so(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    capsys.readouterr()
    fine("generate", "a", "--prompt", "The", "--max-new-tokens", "40", "--temperature", "0")
    said = capsys.readouterr()
    assert len(said.out) == 3 + 40 + 1 and "window of 13 tokens was full" in said.err
    fine("generate", "a", "--prompt", "The", "--max-new-tokens", "10", "--temperature", "0")
    short = capsys.readouterr()
    assert short.err == "" and said.out.startswith(short.out[:-1])
    # By hand: to the end of the window, then from the last half of it, and so on.
    model, text = load_model("a"), said.out[:13]
    tokenizer = load_corpus("a/tokens").tokenizer
    while len(text) < 43:
        seen = text[-6:]
        while len(seen) < 13 and len(text) < 43:
            next_id = model(torch.tensor([tokenizer.encode(seen)]))[0, -1].argmax().item()
            seen, text = seen + tokenizer.decode([next_id]), text + tokenizer.decode([next_id])
    assert text == said.out[:-1]


def test_a_stop_token_beyond_what_was_asked_for_is_no_end():
    session = TextSession(TextTokenizer("characters", ["<|end|>", "a", "b"]))
    torch.manual_seed(0)
    model = TransformerLM(TransformerConfig(3, 7, 4, 2, 1))
    written = continue_prompts(model, session, [[1], [2, 1]], 5, seed=1)
    for each in written:
        new = each.ids[each.prompt_length :]
        assert len(new) <= 5 and 0 not in new[:-1]
        assert (each.finish_reason == "stop") == (new[-1] == 0) and each.finish_reason


def test_a_prompt_from_a_file_and_output_to_one(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    Path("prompt.txt").write_text("The quick\n", encoding="utf-8")
    given = ["--prompt-file", "prompt.txt", "--max-new-tokens", "4", "--output", "out.txt"]
    fine("generate", "a", *given)
    text = Path("out.txt").read_text(encoding="utf-8")
    assert text.startswith("The quick") and len(text.removesuffix("\n")) >= 9 + 3
    assert "Trained" in capsys.readouterr().out  # and no more
    assert capsys.readouterr().out == ""


def test_words_and_bpe_without_a_prompt(at, capsys):
    pytest.importorskip("tokenizers")
    for kind in ("words", "bpe"):
        fine("train", "text", "fox.txt", "--out-dir", kind, "--tokenizer", kind, *SMALL)
        fine("generate", kind, "--max-new-tokens", "5")
        capsys.readouterr()
        fine("info", kind, "--json")
        assert json.loads(capsys.readouterr().out)["tokenizer"]["kind"] == kind


def test_without_a_prompt_a_text_begins_at_its_end_token_or_a_new_line():
    assert TextSession(TextTokenizer("characters", ["a", "\n"])).begin(None) == [1]
    assert TextSession(TextTokenizer("characters", ["<|end|>", "a", "\n"])).begin(None) == [0]
    assert TextSession(TextTokenizer("characters", ["a", "b"])).begin(None) == [0]


# --- Guitar --------------------------------------------------------------------------------------


def session_of(tokenizer, **options):
    """The session that `generate` begins with these options."""
    run = LoadedRun(TabTask(), Path("g"), None, tokenizer, None)
    return TabTask().session(run, Generate(Path("g"), **options))


def test_guitar_learns_from_a_folder_and_writes_tabs_that_can_be_read(at, capsys):
    Path("tabs").mkdir()
    for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=12)):
        write_tab(tab, f"tabs/{number:02}.txt")
    Path("tabs/notes.txt").write_text("No tab here.\n", encoding="utf-8")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert "skipped: notes.txt:1: no tablature" in capsys.readouterr().err
    fine("generate", "g", "--max-new-tokens", "60", "--tuning", "drop-D", "--output", "piece.txt")
    (tab,), problems = read_tab_folder("piece.txt")
    assert not problems and tab.tuning.open_pitches[-1] == 38
    for name in ("piece.gp5", "piece.mid", "piece.musicxml", "piece.atex"):
        fine("generate", "g", "--max-new-tokens", "60", "--tuning", "drop-D", "--output", name)
    for name in ("piece.gp5", "piece.mid", "piece.atex"):
        (same,), _ = read_any_tab_file(name)
        assert same.tuning == tab.tuning
        assert [e.notes for e in same.iter_events()] == [e.notes for e in tab.iter_events()]
    fine("generate", "g", "--max-new-tokens", "30", "--num-samples", "2", "--output", "two.gp5")
    assert Path("two-1.gp5").exists() and Path("two-2.gp5").exists()
    said = refused(capsys, "generate", "g", "--output", "piece.pdf")
    assert "piece.pdf does not say what to write" in said
    fine("generate", "g", "--prompt-file", "tabs/00.txt", "--max-new-tokens", "50", "--json")
    capsys.readouterr()
    fine("evaluate", "g", "tabs", "--json")
    measured = json.loads(capsys.readouterr().out)
    assert measured["loss"] > 0 and "bits_per_byte" not in measured
    assert "not tablature" in refused(capsys, "generate", "g", "--prompt", "la la")


def test_guitar_goes_on_from_a_riff_in_the_key_and_metre_asked_for(at, capsys):
    fine("train", "tabs", "--out-dir", "g", *SMALL)
    riff = make_practice_corpus(seed=3, num_pieces=1)[0]
    write_tab(riff, "my_riff.txt")
    (read,), _ = read_tab_folder("my_riff.txt")
    asked = ["--prompt-file", "my_riff.txt", "--max-new-tokens", "50", "--seed", "2"]
    fine("generate", "g", *asked, "--output", "longer.txt")
    (longer,), _ = read_tab_folder("longer.txt")
    count = len(read.bars)
    notes = [[[e.notes for e in bar.events] for bar in tab.bars] for tab in (longer, read)]
    assert notes[0][:count] == notes[1]
    assert len(longer.bars) > count
    tokenizer = load_tokenizer_of(Path("g"))
    session = session_of(tokenizer, tuning="drop-D", key="Em", time_signature="3/4")
    ids = session.begin(None)
    for _ in range(3):  # unit, metre, key: the model chooses the first alone
        ids.append(min(session.allowed(ids)))
    assert tokenizer.to_tokens(ids)[-2:] == ["METRE<3/4>", "KEY<Em>"]
    assert {name[:4] for name in tokenizer.to_tokens(session.allowed(ids))} == {"BAR<"}
    assert "KEY<Em>" in tokenizer.to_tokens(session.begin(Path("my_riff.txt").read_text("utf-8")))
    fine("generate", "g", "--key", "Em", "--time-signature", "3/4", "--max-new-tokens", "20")
    Path("words.txt").write_text("La la la.\n", encoding="utf-8")
    said = refused(capsys, "generate", "g", "--prompt-file", "words.txt")
    assert "not tablature" in said
    assert "nowhere.txt cannot be read" in refused(
        capsys, "generate", "g", "--prompt-file", "nowhere.txt"
    )


def test_keys_are_for_models_whose_tokens_tell_them(at, capsys):
    with pytest.raises(ValueError, match="--key has no effect here"):
        session_of(TabTokenizer(), key="Em")
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    said = refused(capsys, "generate", "a", "--time-signature", "3/4")
    assert "--time-signature has no effect here: a writes text, not tabs" in said


def make_tabs(folder, *styles):
    """A folder of tabs, three of each style."""
    Path(folder).mkdir()
    for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=3 * len(styles))):
        write_tab(replace(tab, style=styles[number % len(styles)]), f"{folder}/{number:02}.txt")


def test_guitar_plays_in_a_style_that_its_tabs_told(at, capsys):
    make_tabs("tabs", "Jazz", "Blues", "")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert load_tokenizer_of(Path("g")).styles == ("Blues", "Jazz")
    fine("generate", "g", "--style", "Jazz", "--max-new-tokens", "40", "--output", "piece.txt")
    (piece,), _ = read_tab_folder("piece.txt")
    assert piece.style == "Jazz"
    for flags, style in (([], "Blues"), (["--style", "Jazz"], "Jazz")):
        riff = ["--prompt-file", "tabs/01.txt", *flags]
        fine("generate", "g", *riff, "--max-new-tokens", "40", "--output", "longer.txt")
        (longer,), _ = read_tab_folder("longer.txt")
        assert longer.style == style
    session = session_of(load_tokenizer_of(Path("g")), key="Em", style="Blues")
    ids = session.begin(None)
    for _ in range(4):  # unit, metre, key, style
        ids.append(min(session.allowed(ids)))
    assert session.tokenizer.to_tokens(ids)[-2:] == ["KEY<Em>", "STYLE<Blues>"]
    for unknown in ("Rock", "jazz", "none", ""):
        said = refused(capsys, "generate", "g", "--style", unknown)
        assert "--style must be one that this model knows, Blues, Jazz." in said


def test_a_run_keeps_its_styles_whatever_becomes_of_its_tabs(at):
    make_tabs("tabs", "Jazz", "Blues", "")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    make_tabs("others", "Rock", "Funk")
    fine("train", "tabs", "others", "--out-dir", "h", "--init-from", "g", *SMALL[-9:])
    assert load_tokenizer_of(Path("h")).styles == ("Blues", "Jazz")
    shutil.rmtree("g/tokens")
    for path in Path("tabs").iterdir():
        path.write_text(path.read_text("utf-8").replace("style: Jazz", "style: Rock"), "utf-8")
    fine("train", "--out-dir", "g", "--resume", "--steps", "6", "--quiet")
    assert load_tokenizer_of(Path("g"), "last").styles == ("Blues", "Jazz")


def test_styles_are_for_models_that_know_some(at, capsys):
    with pytest.raises(ValueError, match="--style has no effect here: this model knows no styles"):
        session_of(TabTokenizer(), style="Jazz")
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    said = refused(capsys, "generate", "a", "--style", "Jazz")
    assert "--style has no effect here: a writes text, not tabs" in said
    make_tabs("tabs", "Jazz")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert not load_tokenizer_of(Path("g")).styles
    said = refused(capsys, "generate", "g", "--style", "Jazz")
    assert "--style has no effect here: this model knows no styles" in said


def test_too_many_styles_are_told_and_get_no_tokens(at, capsys, monkeypatch):
    monkeypatch.setattr(tab_dataset, "MAX_STYLES", 1)
    make_tabs("tabs", "Jazz", "Blues")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert "styles have no tokens: there are 2 styles, more than 1" in capsys.readouterr().err
    assert not load_tokenizer_of(Path("g")).styles


def test_guitar_without_a_source_practises(at, capsys):
    fine("train", "tabs", "--out-dir", "g", *SMALL)
    assert tomllib.loads(Path("g/config.toml").read_text("utf-8"))["data"]["source"] == "none"


# --- Saying no -----------------------------------------------------------------------------------


TRAIN = ["train", "text", "fox.txt", "--out-dir", "a"]
LONG = ["--context-length", "999"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], 'did you mean "train"?'),
        ([*TRAIN, "--stpes", "3"], "Perhaps you meant: --steps"),
        ([*TRAIN, "--steps", "x"], "Error parsing --steps: invalid literal for int()"),
        ([*TRAIN, "--steps", "0"], "steps must be a whole number of 1"),
        ([*TRAIN, "--context-length", "9", "--num-heads", "3"], "num_heads = 3"),
        (["train", "text", "fox.txt"], "--out-dir FOLDER"),
        (["train", "--out-dir", "a"], "Name the task: slp-transformer train text|pairs|tabs"),
        (["train", "text", "--out-dir", "a"], "Name what to train on"),
        (["train", "text", "nowhere", "--out-dir", "a"], "nowhere"),
        (["train", "tabs", "nowhere", "--out-dir", "a"], "There is no folder"),
        ([*TRAIN, "--config", "txet"], 'did you mean "text"?'),
        (["train", "text", "fox.txt", "--out-dir", "a/b", *LONG], "too little"),
        ([*TRAIN, "--device", "tpu"], "device must be"),
        (["generate", "nowhere"], "There is no folder nowhere"),
        (["generate", "."], "There is no checkpoint in ."),
        (["generate", "nowhere", "--max-new-tokens", "0"], "--max-new-tokens must be 1 or more"),
        (["evaluate", "."], "There is no checkpoint in ."),
        (["evaluate", "nowhere", "--samples", "0"], "--samples must be 1 or more, not 0"),
        (["evaluate", "nowhere", "--max-new-tokens", "0"], "--max-new-tokens must be 1 or more"),
        (["info", "nowhere"], "There is no folder nowhere"),
    ],
)
def test_bad_input_gets_one_sentence_and_2_and_leaves_nothing(words, sentence, at, capsys):
    assert sentence in refused(capsys, *words)
    assert [path.name for path in at.iterdir()] == ["fox.txt"]


def test_a_folder_that_was_there_is_left_as_it_was(at, capsys):
    Path("a").mkdir()
    Path("a/keep.md").write_text("mine", encoding="utf-8")
    assert "too little" in refused(
        capsys, "train", "text", "fox.txt", "--out-dir", "a", "--context-length", "999"
    )
    assert [path.name for path in Path("a").iterdir()] == ["keep.md"]


def test_a_missing_extra_is_named(at, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    said = refused(capsys, "train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    assert 'python -m pip install "slp-transformer[text]"' in said and not Path("a").exists()


@pytest.mark.parametrize("bug", [KeyError("a bug"), ModuleNotFoundError("no", name="ours")])
def test_a_mistake_of_ours_is_not_hidden(bug, at, monkeypatch):
    def broken():
        raise bug

    monkeypatch.setattr("slp_transformer.cli.info.machine_info", broken)
    with pytest.raises(type(bug)):
        main(["info"])


def test_the_script_is_installed():
    scripts = importlib.metadata.entry_points(group="console_scripts")
    found = [script.value for script in scripts if script.name == "slp-transformer"]
    if not found:
        pytest.skip("installed before the package had a command: install it anew")
    assert found[0] == "slp_transformer.__main__:main"
