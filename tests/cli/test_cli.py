"""The command line, from text to text and from tabs to tabs; what it says, and where."""

import errno
import io
import os
import shutil
import sys
import tomllib
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from commands import SENTENCE, SMALL, fine, output, refused, result, weights

from slp_guitar import (
    TabTokenizer,
    format_tab,
    make_practice_corpus,
    read_tab_folder,
    write_tab,
)
from slp_guitar.formats.registry import read_any_tab_file
from slp_guitar.tab_task import GenerateTabs, TabTask
from slp_guitar.theory import KEY_NAMES, ends_on_tonic
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer._internal import progress_bar
from slp_transformer.cli import main
from slp_transformer.data import TextTokenizer, load_corpus
from slp_transformer.sampling import SAMPLING
from slp_transformer.tasks.base import LoadedRun
from slp_transformer.tasks.generation_session import GeneratedText, continue_prompts
from slp_transformer.tasks.saved_runs import load_run, open_run
from slp_transformer.tasks.text import TextSession
from slp_transformer.training import callbacks, devices
from slp_transformer.training.checkpoints import load_model

TRAIN = ["train", "text", "fox.txt", "--out-dir", "a"]


def test_from_a_file_to_text_in_three_commands(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "runs/a", *SMALL)
    said = capsys.readouterr()
    assert "Trained 4 steps. Best val loss" in said.out and "training tokens" in said.err
    assert "slp-transformer generate runs/a" in said.out
    text = output(capsys, "generate", "runs/a", "--prompt", "The", "--max-new-tokens", "7")
    assert text.startswith("The") and len(text) == 3 + 7 + 1
    Path("prompt.txt").write_text("The\n", encoding="utf-8")
    given = ["--prompt-file", "prompt.txt", "--max-new-tokens", "7", "--output", "out.txt"]
    assert output(capsys, "generate", "runs/a", *given) == ""
    assert Path("out.txt").read_text(encoding="utf-8") == text
    assert "bits per character" in output(capsys, "evaluate", "runs/a")


def test_a_terminal_sees_bars_of_the_data_unless_quiet(at, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress_bar, "BAR_DELAY_S", 0)
    monkeypatch.setattr(callbacks, "BAR_INTERVAL", 0)
    for run, quiet in (("a", ["--quiet"]), ("b", [])):
        monkeypatch.setattr(sys, "stderr", terminal := io.StringIO())
        monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
        fine("train", "text", "fox.txt", "--out-dir", run, *SMALL[:-1], *quiet)
        for shown in ("Vocabulary:   0%", "Tokens:   0%", "Training on CPU", "4/4", "loss "):
            assert (shown in terminal.getvalue()) is not bool(quiet)


def test_a_folder_and_standard_input(at, monkeypatch):
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


def test_the_seed_decides_what_is_written(text_run, capsys):
    how = ["--max-new-tokens", "30", "--seed"]
    one = ["generate", "a", "--prompt", "The", *how]
    texts = [output(capsys, *one, seed) for seed in ("3", "3", "4")]
    assert texts[0] == texts[1] != texts[2]
    prompts = ["--prompt", "The", "--prompt", "fox j", "--num-samples", "2"]
    listed = result(capsys, "generate", "a", *prompts, *how, "3")
    assert [each["text"][:3] for each in listed] == ["The", "The", "fox", "fox"]
    assert [each["seed"] for each in listed] == [3, 4, 5, 6]
    # Each text is what it would be alone, window after window, however long its neighbors are.
    assert listed[0]["text"] + "\n" == texts[0] and listed[1]["text"] + "\n" == texts[2]


def test_past_the_window_it_goes_on_with_the_end_and_says_so(text_run, capsys):
    greedy = ["generate", "a", "--prompt", "The", "--temperature", "0", "--max-new-tokens"]
    capsys.readouterr()
    fine(*greedy, "40")
    said = capsys.readouterr()
    assert len(said.out) == 3 + 40 + 1 and "window of 13 tokens was full" in said.err
    fine(*greedy, "10")
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


def session_for(*characters: str) -> TextSession:
    tokenizer = TextTokenizer("characters", list(characters))
    return TextSession(tokenizer, tokenizer.end_id)


def test_texts_are_shown_as_far_as_they_are_asked_for():
    """Of two lengths, so that one needs new windows when the other needs fewer words."""
    session = session_for(*"abcdef")
    torch.manual_seed(0)
    model, heard = TransformerLM(TransformerConfig(6, 7, 4, 2, 1)), ["", ""]

    def on_text(row, text):
        heard[row] += text

    rows = [[1], [2, 1, 3, 4, 5]]
    texts = continue_prompts(model, session, rows, 40, seed=2, on_text=on_text)
    assert heard == [text.render(session) for text in texts]
    assert [len(text.ids) - text.prompt_length for text in texts] == [40, 40]


def test_a_stop_token_beyond_what_was_asked_for_is_no_end():
    session = session_for("<|end|>", "a", "b")
    torch.manual_seed(0)
    model = TransformerLM(TransformerConfig(3, 7, 4, 2, 1))
    written = continue_prompts(model, session, [[1], [2, 1]], 5, seed=1)
    for each in written:
        new = each.ids[each.prompt_length :]
        assert len(new) <= 5 and 0 not in new[:-1]
        assert (each.finish_reason == "stop") == (new[-1] == 0) and each.finish_reason


def test_without_a_prompt_a_text_begins_at_its_end_token_or_a_new_line():
    assert session_for("a", "\n").begin(None) == [1]
    assert session_for("<|end|>", "a", "\n").begin(None) == [0]
    assert session_for("a", "b").begin(None) == [0]


def test_words_and_bpe_without_a_prompt(at, capsys):
    pytest.importorskip("tokenizers")
    for kind in ("words", "bpe"):
        fine("train", "text", "fox.txt", "--out-dir", kind, "--tokenizer", kind, *SMALL)
        fine("generate", kind, "--max-new-tokens", "5")
        assert result(capsys, "info", kind)["data"]["tokenizer"] == kind


def session_of(tokenizer, **options):
    """The session that `generate` begins with these options."""
    run = LoadedRun(TabTask(), Path("g"), model=None, tokenizer=tokenizer)
    return TabTask().session(run, GenerateTabs(**options))


def begun(session, count):
    """The tokens of a new piece's header, the first of those that are allowed each time."""
    ids = session.begin(None)
    for _ in range(count):
        ids.append(min(session.allowed(ids)))
    return ids


def make_tabs(folder, *styles):
    """A folder of tabs, three of each style."""
    Path(folder).mkdir()
    for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=3 * len(styles))):
        write_tab(replace(tab, style=styles[number % len(styles)]), f"{folder}/{number:02}.txt")


def generated(name, *words):
    """The tab that `generate` writes into a file."""
    fine("generate", "g", "--max-new-tokens", "30", *words, "--output", name)
    return read_any_tab_file(name)[0][0]


@pytest.mark.slow
def test_guitar_learns_from_a_folder_and_writes_tabs_that_can_be_read(at, capsys):
    make_tabs("tabs", *[""] * 4)
    Path("tabs/notes.txt").write_text("No tab here.\n", encoding="utf-8")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert "skipped: notes.txt:1: no tablature" in capsys.readouterr().err
    tab = generated("piece.txt", "--tuning", "drop-D")
    assert tab.tuning.open_pitches[-1] == 38
    for name in ("piece.gp5", "piece.mid", "piece.atex"):
        same = generated(name, "--tuning", "drop-D")
        assert same.tuning == tab.tuning
        assert [e.notes for e in same.iter_events()] == [e.notes for e in tab.iter_events()]
    fine("generate", "g", "--max-new-tokens", "30", "--output", "piece.musicxml")
    fine("generate", "g", "--max-new-tokens", "30", "--num-samples", "2", "--output", "two.gp5")
    assert Path("two-1.gp5").exists() and Path("two-2.gp5").exists()
    measured = result(capsys, "evaluate", "g", "tabs")
    assert measured["loss"] > 0 and "bits_per_byte" not in measured


@pytest.mark.slow
def test_guitar_goes_on_from_a_riff_in_the_key_and_time_signature_asked_for(at, capsys):
    fine("train", "tabs", "--out-dir", "g", *SMALL)  # generated practice tabs
    assert tomllib.loads(Path("g/config.toml").read_text("utf-8"))["data"]["source"] == "none"
    write_tab(make_practice_corpus(seed=3, num_pieces=1)[0], "my_riff.txt")
    (read,), _ = read_tab_folder("my_riff.txt")
    longer = generated("longer.txt", "--prompt-file", "my_riff.txt", "--seed", "2")
    notes = [[[e.notes for e in bar.events] for bar in tab.bars] for tab in (longer, read)]
    assert notes[0][: len(notes[1])] == notes[1] and len(notes[0]) > len(notes[1])
    tokenizer = load_run(open_run("g")).tokenizer
    session = session_of(tokenizer, tuning="drop-D", key="Em", time_signature="3/4")
    ids = begun(session, 3)  # unit, metre, key: the model chooses the first alone
    assert tokenizer.to_tokens(ids)[-2:] == ["METRE<3/4>", "KEY<Em>"]
    assert {name[:4] for name in tokenizer.to_tokens(session.allowed(ids))} == {"BAR<"}
    assert "KEY<Em>" in tokenizer.to_tokens(session.begin(Path("my_riff.txt").read_text("utf-8")))
    waltz = generated("waltz.gp5", "--key", "Em", "--time-signature", "3/4", "--tuning", "drop-D")
    assert {Fraction(bar.steps, waltz.steps_per_quarter) for bar in waltz.bars} == {3}
    Path("columns.txt").write_text(format_tab(replace(read, steps_per_quarter=None)), "utf-8")
    asked = ["--prompt-file", "columns.txt", "--time-signature", "5/4"]
    said = refused(capsys, "generate", "g", *asked)
    assert "--time-signature 5/4 does not fit the prompt, whose bars have 6 columns." in said
    texts = [GeneratedText(tokenizer.encode(tab), 0, 0) for tab in make_practice_corpus(3, 2)]
    remark = "Not in Gm, by an estimate from the notes: 1 of 2 (Bb)."
    assert session_of(tokenizer, key="Gm").remarks(texts) == [remark]


@pytest.mark.parametrize("capo", [0, 2])
@pytest.mark.parametrize(
    ("key", "bars", "again"),
    [
        ("Em", "BAR<4> TAB<6,3> POS<2> TAB<4,2>", False),  # E, after G
        ("Em", "BAR<4> TAB<4,2> POS<2> TAB<6,3> WITH<4,2>", True),  # E, but G is below
        ("E", "BAR<4> TAB<4,2> BAR<4>", False),  # a bar of rests
        ("C", "BAR<4> TAB<5,3> BAR<9> TAB<6,0> SAME<2>", False),
        ("C", "BAR<4> TAB<6,0> BAR<4> TAB<5,3> BAR<9> SAME<3>", True),
    ],
)
def test_a_piece_that_does_not_end_on_its_tonic_gets_a_cadence(key, bars, again, capo):
    tokenizer = TabTokenizer()
    place = KEY_NAMES.index(key)
    named = KEY_NAMES[(place + capo) % 12 + place // 12 * 12]  # the capo raises the tonic as well
    tokens = ["<bos>", "TUNING<standard>", f"CAPO<{capo}>", "COLUMNS", "METRE<none>", "KEY<none>"]
    ids = tokenizer.to_ids([*tokens, *bars.split(), "<eos>"])
    assert session_of(tokenizer, ending="any").reopen(ids) is None
    session = session_of(tokenizer, key=named)
    before = session.reopen(ids)
    assert (before is not None) == again
    if not again:
        return
    assert before == ids[:-1]

    def allowed(*names):
        found = session.allowed([*before, *tokenizer.to_ids(names)])
        return set(tokenizer.to_tokens(found))

    dominant = ["BAR<4>", "TAB<5,2>" if key == "Em" else "TAB<6,3>"]  # B or G
    tonic = [*dominant, "BAR<4>", "TAB<5,7>" if key == "Em" else "TAB<5,3>"]
    assert allowed() == {"BAR<4>"}
    said = allowed("BAR<4>")
    assert said > ({"TAB<5,2>", "TAB<2,0>"} if key == "Em" else {"TAB<6,3>", "TAB<3,0>"})
    assert not said & {"TAB<4,1>", "TAB<5,0>", "BAR<4>", "TAB<5,3>"}
    said = allowed(*dominant)  # sevenths, and a major third in minor; no E or C
    assert said > {"BAR<4>", *({"WITH<3,2>", "WITH<4,1>"} if key == "Em" else {"WITH<1,1>"})}
    assert not said & {"WITH<4,2>", "WITH<5,3>", "<eos>", "POS<1>"}
    assert key != "C" or "WITH<4,0>" not in allowed("BAR<4>", "TAB<6,15>")  # below the bass
    roots = {"Em": {"TAB<6,0>", "TAB<5,7>", "TAB<1,12>"}, "C": {"TAB<6,8>", "TAB<5,3>", "TAB<2,1>"}}
    said = allowed(*tonic[:-1])
    assert roots[key] < said and all(name.startswith("TAB") for name in said)
    said = allowed(*tonic)
    assert {"<eos>", "WITH<1,0>" if key == "Em" else "WITH<3,0>"} < said
    assert not said & {"WITH<4,1>", "WITH<3,2>", "POS<1>", "BAR<4>", "WITH<6,12>"}
    assert session.reopen([*before, *tokenizer.to_ids([*tonic, "<eos>"])]) is None


@pytest.mark.parametrize(("count", "other", "returns"), [(7, 4, 0), (8, 4, 4), (8, 5, 0)])
def test_a_piece_that_breaks_off_has_its_first_bars_again_before_its_cadence(count, other, returns):
    tokenizer = TabTokenizer()
    header = ["<bos>", "TUNING<standard>", "CAPO<0>", "COLUMNS", "METRE<none>", "KEY<none>"]
    bars = [f"BAR<{4 if n else other}> TAB<5,{n}>" for n in range(count)]
    whole = tokenizer.to_ids(" ".join([*header, *bars]).split())
    session = session_of(tokenizer, key="C")
    before = session.reopen([*whole, *tokenizer.to_ids(["BAR<4>", "TAB<6,1>", "POS<1>"])])
    assert before == [*whole, *tokenizer.to_ids([f"SAME<{count}>"] * returns)]
    played = tokenizer.decode(before).tab.bars
    assert [b.events for b in played[count:]] == [b.events for b in played[:returns]]


class Wanderer(TransformerLM):
    """A model that never ends a piece of its own will."""

    def forward(self, *args, **kwargs):
        u = super().forward(*args, **kwargs).clone()
        u[..., TabTokenizer.eos_id] -= 1e4
        return u


def test_a_piece_ends_with_its_cadence_within_the_tokens_it_may_have():
    torch.manual_seed(0)
    tokenizer = TabTokenizer()
    model = Wanderer(TransformerConfig(len(tokenizer), 64, model_dim=8, num_heads=2, num_blocks=1))
    for most, reason in ((90, "stop"), (40, "length")):  # 40 leave too little room for an ending
        session = session_of(tokenizer, key="C")
        (text,) = continue_prompts(model.eval(), session, [session.begin(None)], most, seed=1)
        assert text.finish_reason == reason
        assert len(text.ids) - text.prompt_length <= most
        tab = tokenizer.decode(text.ids).tab
        assert ends_on_tonic(tab, "C") or most == 40


def test_a_piece_without_a_key_ends_in_the_one_that_its_notes_suggest():
    tokenizer, scale = TabTokenizer(), [(5, 3), (4, 0), (4, 2), (4, 3), (3, 0), (3, 2), (2, 0)]
    bars = [f"BAR<4> TAB<{s},{f}>" for s, f in [*scale, (5, 3), (3, 0), (4, 2), (4, 0)]]  # C to D
    tokens = ["<bos>", "TUNING<standard>", "CAPO<0>", "COLUMNS", "METRE<none>", "KEY<Eb>"]
    ids = tokenizer.to_ids([*tokens, *" ".join(bars).split(), "<eos>"])
    session = session_of(tokenizer)
    before = session.reopen(ids)
    allowed = tokenizer.to_tokens(session.allowed([*before, *tokenizer.to_ids(["BAR<4>"])]))
    assert "TAB<6,3>" in allowed and "TAB<5,3>" not in allowed  # G of C
    assert session.reopen([*ids[:-3], tokenizer.eos_id]) is not None  # E, in the bass
    assert session.reopen([*ids[:-7], tokenizer.eos_id]) is None  # C


def test_a_key_that_is_asked_for_allows_the_notes_of_its_scale_alone():
    tokenizer = TabTokenizer()
    session = session_of(tokenizer, key="Am", tuning="drop-D", capo=2)
    ids = [*begun(session, 3), tokenizer.to_ids(["BAR<8>"])[0]]
    said = set(tokenizer.to_tokens(session.allowed(ids)))
    low = {f"TAB<6,{fret}>" for fret in range(12)}  # from E, that is D and the capo
    assert said & low == low - {f"TAB<6,{fret}>" for fret in (2, 6, 9, 11)} and "POS<2>" in said


@pytest.mark.slow
def test_guitar_plays_in_a_style_that_its_tabs_told(at, capsys):
    make_tabs("tabs", "Jazz", "Blues", "")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert load_run(open_run("g")).tokenizer.styles == ("Blues", "Jazz")
    assert generated("piece.txt", "--style", "Jazz").style == "Jazz"
    riff = ["--prompt-file", "tabs/01.txt"]
    assert generated("longer.txt", *riff).style == "Blues"
    assert generated("longer.txt", *riff, "--style", "Jazz").style == "Jazz"
    session = session_of(load_run(open_run("g")).tokenizer, key="Em", style="Blues")
    ids = begun(session, 4)  # unit, metre, key, style
    assert session.tokenizer.to_tokens(ids)[-2:] == ["KEY<Em>", "STYLE<Blues>"]
    for unknown in ("Rock", "jazz", "none", ""):
        said = refused(capsys, "generate", "g", "--style", unknown)
        assert "--style must be one that this model knows, Blues, Jazz." in said


@pytest.mark.slow
def test_a_run_keeps_its_split_and_its_styles_whatever_becomes_of_its_tabs(at, capsys):
    make_tabs("tabs", "Jazz", "Blues", "")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    assert ".txt" in Path("g/tokens/held-out.json").read_text("utf-8")
    before = result(capsys, "evaluate", "g")
    write_tab(make_practice_corpus(seed=5, num_pieces=1)[0], "tabs/new.txt")
    assert result(capsys, "evaluate", "g") == before
    make_tabs("others", "Rock", "Funk")
    fine("train", "tabs", "others", "--out-dir", "h", "--init-from", "g", *SMALL[-9:])
    assert load_run(open_run("h")).tokenizer.styles == ("Blues", "Jazz")
    shutil.rmtree("tabs")
    assert result(capsys, "evaluate", "g") == before
    fine("train", "--out-dir", "g", "--resume", "--steps", "6", "--quiet")
    assert load_run(open_run("g", "last")).tokenizer.styles == ("Blues", "Jazz")


def test_a_model_without_tokens_for_styles_says_so():
    with pytest.raises(ValueError, match="--style has no effect here"):
        session_of(TabTokenizer(), style="Jazz")


def test_a_diverged_run_goes_on_with_a_lower_learning_rate(at, capsys):
    assert "is NaN or infinite" in refused(capsys, *TRAIN, *SMALL, "--learning-rate", "1e30")
    assert "has not been trained yet" in refused(capsys, "generate", "a")
    fine("train", "--out-dir", "a", "--resume", "--learning-rate", "1e-3", "--quiet")
    fine("generate", "a", "--max-new-tokens", "3")


def test_a_missing_extra_is_named(at, capsys, monkeypatch):
    for library in ("safetensors", "tomli_w", "mido"):
        monkeypatch.setitem(sys.modules, library, None)
    said = refused(capsys, "train", "text", "fox.txt", "--out-dir", "a", *SMALL)
    assert "train needs safetensors, tomli_w, which" in said and not Path("a").exists()
    assert 'python -m pip install "slp-transformer[text]"' in said
    assert "steps must be" in refused(capsys, *TRAIN, "--steps", "0")  # what is wrong comes first
    said = refused(capsys, "tab", "song.mid")
    assert "tab needs mido" in said and '"slp-transformer[guitar]"' in said
    monkeypatch.setitem(sys.modules, "tyro", None)
    assert "train needs tyro, safetensors, tomli_w" in refused(capsys, *TRAIN, *SMALL)


def test_info_needs_no_library_for_downloads(at, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("SLP_TRANSFORMER_DATA", raising=False)
    fine("info")
    assert "moby-dick" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("system", "error", "code"),
    [
        ("posix", BrokenPipeError(errno.EPIPE, "Broken pipe"), 141),
        ("nt", OSError(errno.EINVAL, "Invalid argument"), 141),  # Windows' word for it
        ("posix", OSError(errno.EINVAL, "Invalid argument"), 2),
        ("posix", ConnectionError("Another process died."), 1),
    ],
)
def test_a_reader_that_has_left_is_no_mistake(at, monkeypatch, system, error, code):
    def closed():
        monkeypatch.setattr(os, "name", system)
        raise error

    monkeypatch.setattr("slp_transformer.cli.info.collect_machine_info", closed)
    assert main(["info"]) == code


@pytest.mark.parametrize(
    "bug", [KeyError("a bug"), ModuleNotFoundError("no", name="ours"), RuntimeError("a shape")]
)
def test_a_mistake_of_ours_is_not_hidden(bug, at, monkeypatch):
    def broken():
        raise bug

    monkeypatch.setattr("slp_transformer.cli.info.collect_machine_info", broken)
    with pytest.raises(type(bug)):
        main(["info"])


@pytest.mark.parametrize("name", SAMPLING)
def test_every_flag_of_drawing_makes_a_difference(name, text_run, capsys):
    how = ["--max-new-tokens", "30", "--seed", "4"]
    flag = [f"--{name.replace('_', '-')}", str(SAMPLING[name].example)]
    alone, other = (output(capsys, "generate", "a", *how, *more) for more in ([], flag))
    assert alone != other
    measured = result(capsys, "evaluate", "a", "--samples", "1", *how, *flag)
    assert measured["samples"][0]["text"] == other.removesuffix("\n")


def test_a_window_longer_than_the_context_is_refused_before_there_is_a_folder(at, capsys):
    args = ["--context-length", "8", "--sequence-length", "9"]
    said = refused(capsys, *TRAIN, *SMALL, *args)
    assert "sequence_length = 9 is more than the 8 tokens that the model can read" in said
    assert not Path("a").exists()


def test_a_model_larger_than_the_memory_is_refused_before_the_data_are_read(
    at, capsys, monkeypatch
):
    monkeypatch.setattr(devices, "total_memory_bytes", lambda device: 10_000)
    monkeypatch.setattr("slp_transformer.data.prepare_corpus", lambda *_, **__: 1 / 0)
    assert "choose a smaller batch_size" in refused(capsys, *TRAIN, *SMALL)
    assert not Path("a").exists()


def test_settings_that_were_changed_on_the_way_stay_in_config_toml(at, capsys):
    fine(*TRAIN, *SMALL, "--learning-rate", "0.01")
    begun = Path("a/config.toml").read_text(encoding="utf-8")
    assert begun.startswith("# slp-transformer train") and "# until" not in begun
    resume = ["train", "--out-dir", "a", "--resume"]
    fine(*resume, "--steps", "6", "--learning-rate", "0.003")
    fine(*resume, "--steps", "8")
    text = Path("a/config.toml").read_text(encoding="utf-8")
    assert "repeats the run, but for what was changed on the way:\n# until step 4: " in text
    comments = [line for line in text.splitlines() if line.startswith("# until")]
    assert sorted(comments) == [
        "# until step 4: learning_rate = 0.01", "# until step 4: steps = 4",
        "# until step 6: steps = 6",
    ]  # fmt: skip
    assert (
        tomllib.loads(text)["train"]["steps"],
        tomllib.loads(text)["train"]["learning_rate"],
    ) == (8, 0.003)
