"""The command line, mostly called in this process; what needs a process of its own comes last."""

import dataclasses
import importlib.metadata
import io
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import own_process
import pytest
import torch

from slp_transformer import TransformerConfig, TransformerLM, progress
from slp_transformer.checkpoint import checkpoint_folder, load_model
from slp_transformer.command_line import main
from slp_transformer.command_line.flags import flag_name
from slp_transformer.command_line.samples import playability
from slp_transformer.command_line.writing import Tablature, Text, Writing, write_on
from slp_transformer.guitar import (
    STANDARD,
    Bar,
    Event,
    Note,
    Tab,
    TabTokenizer,
    practice_corpus,
    read_tabs,
    write_tab,
)
from slp_transformer.loss import mean_loss
from slp_transformer.recipes import BUILT_IN, make_recipe
from slp_transformer.recipes.settings import NOT_TO_CHOOSE, all_settings
from slp_transformer.text import TextTokenizer, moby_dick, reopen
from slp_transformer.training_settings import TrainingSettings

for needed in ("safetensors", "tomli_w"):
    pytest.importorskip(needed, reason="keeping a run needs the text extra")

SENTENCE = "The quick brown fox jumps over the lazy dog, and so do I.\n"
SIZES = ["--model-dim", "8", "--num-heads", "2", "--num-blocks", "1", "--context-length", "13"]
SMALL = [*SIZES, "--steps", "4", "--every", "2", "--batch-size", "3", "--device", "cpu", "--quiet"]


@pytest.fixture
def at(tmp_path, monkeypatch):
    """A folder to work in, with a text in it."""
    monkeypatch.chdir(tmp_path)
    Path("fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
    return tmp_path


def weights(run: str) -> bytes:
    return (checkpoint_folder(run) / "model.safetensors").read_bytes()


def fine(*words: str) -> None:
    assert main([*words]) == 0


def refused(capsys, *words: str) -> str:
    """The sentence with which a command is refused; nothing may be on stdout."""
    capsys.readouterr()
    assert main([*words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1, said
    return said.err


# --- From text to text ---------------------------------------------------------------------------


def test_from_a_file_to_text_in_three_commands(at, capsys):
    fine("train", "fox.txt", "--run", "runs/a", *SMALL)
    said = capsys.readouterr()
    assert "Trained 4 steps. Loss" in said.out
    assert "slp-transformer generate" in said.out and "The quick" in said.out
    assert "tokens to learn from" in said.err
    fine("generate", "runs/a", "--prompt", "The", "--tokens", "7")
    written = capsys.readouterr().out
    assert written.startswith("The") and len(written) == 3 + 7 + 1
    fine("evaluate", "runs/a")
    assert "bits per character" in capsys.readouterr().out


def test_the_bar_and_all_messages_go_to_stderr(at, capsys):
    pytest.importorskip("tqdm")
    fine("train", "fox.txt", "--run", "a", *SMALL[:-1])
    said = capsys.readouterr()
    assert "Training on CPU" in said.err and "4/4" in said.err
    assert "Training on" not in said.out and "step/s" not in said.out


def test_a_terminal_sees_bars_of_the_data_unless_quiet(at, monkeypatch):
    pytest.importorskip("tqdm")
    monkeypatch.setattr(progress, "DELAY", 0)
    for run, quiet in (("a", ["--quiet"]), ("b", [])):
        monkeypatch.setattr(sys, "stderr", terminal := io.StringIO())
        monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
        fine("train", "fox.txt", "--run", run, *SMALL[:-1], *quiet)
        for work in ("Vocabulary", "Tokens", "Split"):
            assert (f"{work}:   0%" in terminal.getvalue()) is not bool(quiet)


def test_a_folder_standard_input_and_a_named_corpus(at, monkeypatch):
    Path("texts/below").mkdir(parents=True)
    Path("texts/a.txt").write_text(SENTENCE * 10, encoding="utf-8")
    Path("texts/below/b.txt").write_text(SENTENCE * 10, encoding="utf-8")
    fine("train", "texts", "--run", "folder", *SMALL)
    piped = io.TextIOWrapper(io.BytesIO(SENTENCE.encode() * 20))
    monkeypatch.setattr(sys, "stdin", piped)
    fine("train", "-", "--run", "piped", *SMALL)
    fine("train", "fox.txt", "--run", "file", *SMALL)
    assert weights("piped") == weights("file") != weights("folder")
    fine("train", "--run", "piped", "--resume", "--quiet")  # nothing is read again
    fine("train", "moby-dick", "--run", "moby", *SMALL)


def test_the_seed_decides_what_is_written(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    texts = []
    for seed in ("3", "3", "4"):
        capsys.readouterr()
        fine("generate", "a", "--prompt", "The", "--tokens", "30", "--seed", seed)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]
    fine("generate", "a", "--prompt", "The", "--prompt", "fox j", "--num-samples", "2",
         "--tokens", "30", "--seed", "3", "--json")  # fmt: skip
    listed = json.loads(capsys.readouterr().out)
    assert [each["text"][:3] for each in listed] == ["The", "The", "fox", "fox"]
    assert [each["seed"] for each in listed] == [3, 4, 5, 6]
    # Each text is what it would be alone, window after window, however long its neighbours are.
    assert listed[0]["text"] + "\n" == texts[0] and listed[1]["text"] + "\n" == texts[2]


def test_past_the_window_it_goes_on_with_the_end_and_says_so(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    capsys.readouterr()
    fine("generate", "a", "--prompt", "The", "--tokens", "40", "--temperature", "0")
    said = capsys.readouterr()
    assert len(said.out) == 3 + 40 + 1 and "window of 13 tokens was full" in said.err
    fine("generate", "a", "--prompt", "The", "--tokens", "10", "--temperature", "0")
    short = capsys.readouterr()
    assert short.err == "" and said.out.startswith(short.out[:-1])
    # By hand: to the end of the window, then from the last half of it, and so on.
    model, text = load_model("a"), said.out[:13]
    tokenizer = reopen("a/tokens").tokenizer
    while len(text) < 43:
        seen = text[-6:]
        while len(seen) < 13 and len(text) < 43:
            next_id = model(torch.tensor([tokenizer.encode(seen)]))[0, -1].argmax().item()
            seen, text = seen + tokenizer.decode([next_id]), text + tokenizer.decode([next_id])
    assert text == said.out[:-1]


def test_a_stop_token_beyond_what_was_asked_for_is_no_end():
    world = Text(TextTokenizer("characters", ["<|end|>", "a", "b"]))
    torch.manual_seed(0)
    model = TransformerLM(TransformerConfig(3, 7, 4, 2, 1))
    written = write_on(model, world, [[1], [2, 1]], 5, seed=1)
    for each in written:
        new = each.ids[each.prompt_length :]
        assert len(new) <= 5 and 0 not in new[:-1]
        assert (each.ended == "stop") == (new[-1] == 0) and each.ended


def test_a_prompt_from_a_file_and_output_to_one(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    Path("prompt.txt").write_text("The quick\n", encoding="utf-8")
    fine("generate", "a", "--prompt-file", "prompt.txt", "--tokens", "4", "--output", "out.txt")
    text = Path("out.txt").read_text(encoding="utf-8")
    assert text.startswith("The quick") and len(text.removesuffix("\n")) >= 9 + 3
    assert "Trained" in capsys.readouterr().out  # and no more
    assert capsys.readouterr().out == ""


def test_words_and_bpe_without_a_prompt(at, capsys):
    pytest.importorskip("tokenizers")
    for kind in ("words", "bpe"):
        fine("train", "fox.txt", "--run", kind, "--tokenizer", kind, *SMALL)
        fine("generate", kind, "--tokens", "5")
        capsys.readouterr()
        fine("info", kind, "--json")
        assert json.loads(capsys.readouterr().out)["tokenizer"]["kind"] == kind


def test_without_a_prompt_a_text_begins_at_its_end_token_or_a_new_line():
    assert Text(TextTokenizer("characters", ["a", "\n"])).begin(None) == [1]
    assert Text(TextTokenizer("characters", ["<|end|>", "a", "\n"])).begin(None) == [0]
    assert Text(TextTokenizer("characters", ["a", "b"])).begin(None) == [0]


# --- Guitar --------------------------------------------------------------------------------------


def test_guitar_learns_from_a_folder_and_writes_tabs_that_can_be_read(at, capsys):
    Path("tabs").mkdir()
    for number, tab in enumerate(practice_corpus(seed=3, pieces=12)):
        write_tab(tab, f"tabs/{number:02}.txt")
    Path("tabs/notes.txt").write_text("No tab here.\n", encoding="utf-8")
    fine("train", "tabs", "--guitar", "--run", "g", *SMALL)
    assert "skipped: notes.txt:1: no tablature" in capsys.readouterr().err
    fine("generate", "g", "--tokens", "60", "--tuning", "drop-D", "--output", "piece.txt")
    (tab,), problems = read_tabs("piece.txt")
    assert not problems and tab.tuning.open_pitches[-1] == 38
    fine("generate", "g", "--prompt-file", "tabs/00.txt", "--tokens", "50", "--json")
    capsys.readouterr()
    fine("evaluate", "g", "tabs", "--json")
    measured = json.loads(capsys.readouterr().out)
    assert measured["loss"] > 0 and "bits_per_byte" not in measured
    assert "no tablature to go on from" in refused(capsys, "generate", "g", "--prompt", "la la")


def test_guitar_without_a_source_practises(at, capsys):
    fine("train", "--guitar", "--run", "g", *SMALL)
    assert tomllib.loads(Path("g/recipe.toml").read_text("utf-8"))["data"]["source"] == "none"


# --- Measuring, and what is known of a run -------------------------------------------------------


def test_evaluate_is_the_mean_loss_and_bits_follow_from_it(at, capsys):
    text = SENTENCE * 20
    text = text[:1148] + "ü" + text[1149:]  # the last character that counts, and the only wide one
    Path("apples.txt").write_text(text, encoding="utf-8")
    fine("train", "apples.txt", "--run", "a", *SMALL)
    capsys.readouterr()
    fine("evaluate", "a", "--json")
    measured = json.loads(capsys.readouterr().out)
    held_out = reopen("a/tokens").held_out
    assert measured["loss"] == mean_loss(load_model("a"), held_out, 13, batch_size=3)
    fine("info", "a", "--json")
    assert measured["loss"] == json.loads(capsys.readouterr().out)["training"]["best_valid_loss"]
    count = (len(held_out) - 1) // 13 * 13
    said = text[-len(held_out) :][1 : count + 1]
    nats = torch.tensor(measured["loss"] * count, dtype=torch.float64)
    bits = (nats / torch.tensor(2.0).double().log()).item()
    assert measured["tokens"] == measured["characters"] == len(said) < measured["bytes"]
    assert measured["bits_per_character"] == pytest.approx(bits / len(said))
    assert measured["bits_per_byte"] == pytest.approx(bits / len(said.encode()))
    assert measured["perplexity"] == pytest.approx(2 ** (bits / count))


def test_evaluate_another_source_takes_all_of_it(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    Path("other.txt").write_text(SENTENCE[:40], encoding="utf-8")
    capsys.readouterr()
    fine("evaluate", "a", "other.txt", "--json")
    assert json.loads(capsys.readouterr().out)["tokens"] == 39
    Path("odd.txt").write_text("Ω" * 40, encoding="utf-8")
    assert "'Ω'" in refused(capsys, "evaluate", "a", "odd.txt")


def test_evaluate_shows_the_samples_that_generate_writes(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    which = ["--tokens", "30", "--seed", "3"]
    capsys.readouterr()
    fine("generate", "a", "--num-samples", "2", *which)
    texts = capsys.readouterr()
    fine("evaluate", "a")
    numbers = capsys.readouterr().out
    fine("evaluate", "a", "--samples", "2", *which)
    said = capsys.readouterr()
    assert said.out == f"{numbers}\n{texts.out}" and said.err == texts.err
    fine("generate", "a", "--num-samples", "2", *which, "--json")
    listed = json.loads(capsys.readouterr().out)
    fine("evaluate", "a", "--samples", "2", *which, "--json")
    measured = json.loads(capsys.readouterr().out)
    assert measured["samples"] == listed and "events" not in measured
    fine("evaluate", "a", "--json")
    assert "samples" not in json.loads(capsys.readouterr().out)


def test_evaluate_says_how_much_of_its_tabs_can_be_played(at, capsys):
    fine("train", "--guitar", "--run", "g", *SMALL)
    which = ["--samples", "2", "--tokens", "80", "--seed", "5"]
    capsys.readouterr()
    fine("evaluate", "g", *which, "--json")
    measured = json.loads(capsys.readouterr().out)
    assert 0 < measured["chords"] < measured["events"] and len(measured["samples"]) == 2
    assert measured["playable_chords"] < measured["playable_events"] < 1  # it hardly learned
    fine("evaluate", "g", *which)
    said = capsys.readouterr().out
    for what in ("events", "chords"):
        share = f"{measured[f'playable_{what}']:.1%} of {measured[what]}"
        assert f"playable {what}  {share}\n" in said
    fine("evaluate", "g", "--samples", "1", "--tokens", "1")  # no room for a chord
    assert "playable chords  none written\n" in capsys.readouterr().out


def test_what_is_playable_is_counted_over_all_samples():
    tokenizer = TabTokenizer()
    world = Tablature(tokenizer, STANDARD)
    single, chord = (Note(6, 3),), (Note(5, 3), Note(4, 2))
    out_of_reach, open_string = (Note(6, 1), Note(1, 9)), (Note(6, 0), Note(1, 9))
    pieces = [[single, out_of_reach, chord], [open_string], [single, single, out_of_reach]]
    written = []
    for piece in pieces:
        bar = Bar(16, tuple(Event(step, notes) for step, notes in enumerate(piece)))
        written.append(Writing(tokenizer.encode(Tab(bars=(bar,))), 4, 0))
    assert playability(world, written) == {
        "events": 7, "playable_events": 5 / 7, "chords": 4, "playable_chords": 2 / 4,
    }  # fmt: skip


def test_info_tells_of_a_run_and_of_this_machine(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL, "--tokenizer", "characters")
    capsys.readouterr()
    fine("info", "a", "--json")
    told = json.loads(capsys.readouterr().out)
    model = load_model("a")
    assert told["parameters"]["total"] == sum(p.numel() for p in model.parameters())
    assert told["training"]["step"] == told["training"]["of"] == 4 and told["training"]["finished"]
    assert told["model"]["model_dim"] == 8 and told["settings"]["every"] == 2
    fine("info", "a")
    assert "characters" in capsys.readouterr().out
    fine("info", "--json")
    here = json.loads(capsys.readouterr().out)
    assert "moby-dick" in here["data"]["corpora"] and set(here["recipes"]) == set(BUILT_IN)
    assert here["versions"]["torch"] == torch.__version__ and "cpu" in here["machine"]["devices"]


# --- Recipes -------------------------------------------------------------------------------------


def test_every_setting_has_a_flag_and_an_explanation(capsys):
    settings = {(s.table, s.name): s for s in all_settings()}
    for table, owner in (("model", TransformerConfig), ("training", TrainingSettings)):
        fields = {(table, field.name) for field in dataclasses.fields(owner)}
        assert fields - NOT_TO_CHOOSE <= settings.keys()
    fine("train", "--help")
    shown = capsys.readouterr().out
    for setting in settings.values():
        assert setting.help
        if setting.name not in ("source", "kind"):
            assert f"  {flag_name(setting)}" in shown


def test_flags_win_over_the_recipe_and_the_recipe_over_the_built_in_one(at, capsys):
    Path("mine.toml").write_text(
        '[data]\nsource = "fox.txt"\n[model]\nmodel_dim = 24\n'
        '[training]\nsteps = 7\nclip = "none"\n',
        encoding="utf-8",
    )
    fine("train", "--recipe", "mine.toml", "--steps", "9", "--bf16", "--show-recipe")
    told = tomllib.loads(capsys.readouterr().out)
    built_in = make_recipe("text").tables()
    assert told["training"]["steps"] == 9 and told["training"]["bf16"] is True
    assert told["model"]["model_dim"] == 24 and told["training"]["clip"] == "none"
    assert told["training"]["batch_size"] == built_in["training"]["batch_size"]
    assert told["data"]["source"] == str(at.resolve() / "fox.txt")
    assert not (at / "runs").exists()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_resolved_recipe_survives_its_file(name, tmp_path):
    recipe = make_recipe(name, {"training": {"clip": None, "patience": 3}})
    recipe.save(tmp_path / "recipe.toml")
    assert make_recipe(tmp_path / "recipe.toml").tables() == recipe.tables()


def test_the_kept_recipe_repeats_the_run(at, monkeypatch):
    fine("train", "fox.txt", "--run", "a", *SMALL, "--dropout", "0.2", "--seed", "5")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    fine("train", "--recipe", "../a/recipe.toml", "--run", "b", "--quiet")
    assert weights("../a") == weights("b")


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[training]\nstpes = 3", '[training] has no "stpes": did you mean "steps"?'),
        ("[trainign]\nsteps = 3", 'A recipe has no "trainign": did you mean "training"?'),
        ("steps = 3", 'A recipe has no "steps"'),
        ("training = 3", "training must be a table"),
        ('[training]\nsteps = "many"', "steps must be a whole number, not 'many'"),
        ("[training]\nsteps = true", "steps must be a whole number, not True"),
        ("[training]\nsteps = 2.0", "steps must be a whole number, not 2.0"),
        ("[training]\nbf16 = 1", "bf16 must be true or false, not 1"),
        ('[model]\nnorm = "none"', 'norm must be "pre" or "post", not \'none\''),
        ('[model]\nactivation = "tanh"', 'must be "relu" or "gelu" or "swiglu"'),
        ("[model]\nvocab_size = 9", '[model] has no "vocab_size"'),
        ("[model]\nnum_heads = 0", "num_heads must be a whole number of 1 or more"),
        ("[data]\nheld_out = 1.5", "held_out must be a share between 0 and 1"),
        ("[data\n", "is no TOML"),
    ],
)
def test_a_wrong_recipe_is_refused_by_name(toml, sentence, at, capsys):
    Path("r.toml").write_text(toml, encoding="utf-8")
    said = refused(capsys, "train", "fox.txt", "--recipe", "r.toml", "--run", "a")
    assert sentence in said and not Path("a").exists()


# --- Resuming ------------------------------------------------------------------------------------


def test_resume_refuses_what_contradicts(at, capsys):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    kept = weights("a")
    said = refused(capsys, "train", "--run", "a", "--resume", "--steps", "5")
    assert "begun with steps 4, which 5 contradicts" in said
    Path("wolf.txt").write_text(SENTENCE * 20, encoding="utf-8")
    assert "source" in refused(capsys, "train", "wolf.txt", "--run", "a", "--resume")
    assert "holds a run already" in refused(capsys, "train", "fox.txt", "--run", "a")
    assert "no run in b to resume" in refused(capsys, "train", "--run", "b", "--resume")
    fine("train", "fox.txt", "--run", "a", "--resume", *SMALL)
    assert weights("a") == kept


# --- Saying no -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["trian"], 'did you mean "train"?'),
        (["train", "fox.txt", "--run", "a", "--stpes", "3"], 'did you mean "--steps"?'),
        (["train", "fox.txt", "--run", "a", "--steps", "x"], "must be a whole number, not 'x'"),
        (["train", "fox.txt", "--run", "a", "--steps", "0"], "steps must be a whole number of 1"),
        (
            ["train", "fox.txt", "--run", "a", "--context-length", "9", "--num-heads", "3"],
            "num_heads = 3",
        ),
        (["train", "fox.txt"], "--run FOLDER"),
        (["train", "--run", "a"], "Name what to learn from"),
        (["train", "nowhere", "--run", "a"], "nowhere"),
        (["train", "nowhere", "--guitar", "--run", "a"], "There is no folder"),
        (["train", "fox.txt", "--run", "a", "--recipe", "txet"], 'did you mean "text"?'),
        (["train", "fox.txt", "--run", "a/b", "--context-length", "999"], "too little"),
        (["train", "fox.txt", "--run", "a", "--device", "tpu"], "device must be"),
        (["generate", "nowhere"], "There is no folder nowhere"),
        (["generate", "."], "There is no checkpoint in ."),
        (["generate", "nowhere", "--tokens", "0"], "--tokens must be 1 or more"),
        (["evaluate", "."], "There is no checkpoint in ."),
        (["evaluate", "nowhere", "--samples", "0"], "--samples must be 1 or more, not 0"),
        (["evaluate", "nowhere", "--samples", "1", "--tokens", "0"], "--tokens must be 1 or more"),
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
        capsys, "train", "fox.txt", "--run", "a", "--context-length", "999"
    )
    assert [path.name for path in Path("a").iterdir()] == ["keep.md"]


def test_a_missing_extra_is_named(at, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    said = refused(capsys, "train", "fox.txt", "--run", "a", *SMALL)
    assert 'python -m pip install "slp-transformer[text]"' in said and not Path("a").exists()


@pytest.mark.parametrize("bug", [KeyError("a bug"), ModuleNotFoundError("no", name="ours")])
def test_a_mistake_of_ours_is_not_hidden(bug, at, monkeypatch):
    def broken(path):
        raise bug

    monkeypatch.setattr("slp_transformer.command_line.info.about_run", broken)
    with pytest.raises(type(bug)):
        main(["info", "a"])


def test_the_script_is_installed():
    scripts = importlib.metadata.entry_points(group="console_scripts")
    found = [script.value for script in scripts if script.name == "slp-transformer"]
    if not found:
        pytest.skip("installed before the package had a command: install it anew")
    assert found[0] == "slp_transformer.command_line:main"


# --- Processes of their own ----------------------------------------------------------------------

ENVIRONMENT = {**os.environ, **own_process.OWN}
COMMAND = [sys.executable, "-m", "slp_transformer"]
POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to groups of processes")


def process(*words: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, env=ENVIRONMENT, timeout=300, **options
    )


def test_standard_input_and_utf8_in_a_process(at):
    text = ("Süße Äpfel, €5.\n" * 40).encode()
    ended = process("train", "-", "--run", "a", *SMALL, input=text)
    assert ended.returncode == 0, ended.stderr
    ended = process("generate", "a", "--prompt", "Süße", "--tokens", "3")
    assert ended.stdout.decode("utf-8").startswith("Süße")
    ended = process("train", "-", "--run", "b", input=b"")
    assert ended.returncode == 2 and b"Standard input is empty" in ended.stderr
    assert b"Traceback" not in ended.stderr and not Path("b").exists()


@POSIX
def test_ctrl_c_keeps_the_run_and_resuming_gives_the_same_weights(at):
    long = [*SIZES, "--steps", "400", "--every", "50", "--batch-size", "2", "--dropout", "0.1"]
    whole = process("train", "fox.txt", "--run", "whole", *long)
    assert whole.returncode == 0, whole.stderr
    started = subprocess.Popen(
        [*COMMAND, "train", "fox.txt", "--run", "a b", *long],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    while not Path("a b/step-00000050").exists():
        assert started.poll() is None, started.stderr.read()
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=300)
    assert started.returncode == 130 and out == b"", err
    assert b"slp-transformer train --run 'a b' --resume" in err and b"Traceback" not in err
    step = json.loads((checkpoint_folder("a b") / "checkpoint.json").read_text("utf-8"))["step"]
    assert 50 <= step < 400 and f"step {step} of 400 is kept".encode() in err
    Path("fox.txt").unlink()  # its tokens are kept
    resumed = process("train", "--run", "a b", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert weights("a b") == weights("whole")


@pytest.fixture(autouse=True)
def heed_ctrl_c():
    """Where Ctrl-C is ignored, as in a shell's background jobs, so it is by what is started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(words: list, at_work, environment=ENVIRONMENT, **options) -> tuple[int, str]:
    """Exit code and stderr of a process that gets Ctrl-C once it is at work."""
    started = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options
    )
    while not at_work(started):
        assert started.poll() is None, started.stderr.read()
        time.sleep(0.01)
    started.send_signal(signal.SIGINT)
    started.wait(timeout=300)
    with started.stdout, started.stderr:
        return started.returncode, started.stderr.read().decode("utf-8")


@pytest.fixture
def slow_torch(tmp_path):
    """Variables with which Python imports a torch that takes as long as it likes, and says so."""
    (tmp_path / "slow/torch").mkdir(parents=True)
    (tmp_path / "slow/torch/__init__.py").write_text(
        "import time\nprint('loading', flush=True)\ntime.sleep(300)\n", encoding="utf-8"
    )
    path = os.pathsep.join([str(tmp_path / "slow"), ENVIRONMENT["PYTHONPATH"]])
    return ENVIRONMENT | {"PYTHONPATH": path}


def is_loading(started: subprocess.Popen) -> bool:
    return started.stdout.readline() == b"loading\n"


SCRIPT = "import sys\nfrom slp_transformer.command_line import main\nsys.exit(main())\n"


@POSIX
@pytest.mark.parametrize("start", [["-m", "slp_transformer"], ["-mslp_transformer"], ["script"]])
@pytest.mark.parametrize("words", [[], ["train", "-m", "other"]])
def test_ctrl_c_while_torch_is_loaded_is_a_sentence(start, words, slow_torch, at):
    if start == ["script"]:  # as pip writes it
        Path("slp-transformer").write_text(SCRIPT, encoding="utf-8")
        start = ["slp-transformer"]
    ended = interrupted([sys.executable, *start, *words], is_loading, slow_torch)
    assert ended == (130, "slp-transformer: Stopped before it began.\n")
    ended = interrupted([sys.executable, *start, *words], is_loading, slow_torch | {"RANK": "1"})
    assert ended == (130, "")


@POSIX
@pytest.mark.parametrize(
    "start", [["-c", "import slp_transformer"], ["-m", "another"], ["other.py"]]
)
def test_whoever_imports_the_package_keeps_their_ctrl_c(start, slow_torch, at):
    Path("another").mkdir()
    for name in ("other.py", "another/__init__.py"):
        Path(name).write_text("import slp_transformer\n", encoding="utf-8")
    words = [sys.executable, *start, "slp_transformer", "slp-transformer"]
    code, said = interrupted(words, is_loading, slow_torch)
    assert code == -signal.SIGINT and said.endswith("KeyboardInterrupt\n")


@POSIX
@pytest.mark.parametrize("kind", ["characters", "words", "bpe", "standard input"])
def test_ctrl_c_before_the_first_step_leaves_nothing(kind, at):
    piped = kind == "standard input"
    if not piped:
        pytest.importorskip("tokenizers")
        Path("long.txt").write_text(moby_dick() * 40, encoding="utf-8")
    begun = Path("a/text.txt") if piped else Path("a/tokens/.preparing")
    options = [] if piped else ["--tokenizer", kind]
    words = [*COMMAND, "train", "-" if piped else "long.txt", "--run", "a", *options, *SMALL]
    code, said = interrupted(words, lambda _: begun.exists(), stdin=subprocess.PIPE)
    assert (code, said) == (
        130, "slp-transformer: Stopped before the first step; nothing is kept.\n",
    )  # fmt: skip
    assert not Path("a").exists()


@pytest.mark.skipif(os.name == "nt", reason="pipes break differently on Windows")
def test_a_broken_pipe_is_quiet(at):
    fine("train", "fox.txt", "--run", "a", *SMALL)
    started = subprocess.Popen(
        [*COMMAND, "generate", "a", "--tokens", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    started.stdout.read(20)
    started.stdout.close()
    err = started.stderr.read()
    assert started.wait(timeout=300) == 141 and err == b"", err


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch without distributed")
@pytest.mark.skipif(os.name == "nt", reason="torchrun needs a store that Windows' builds lack")
def test_two_processes_train_as_one_and_the_first_one_speaks(at):
    # The "--" keeps torchrun from taking our --run for an abbreviation of its own --run-path.
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words = ["train", "fox.txt", *SMALL, "--batch-size", "2"]
    ended = subprocess.run(
        [*torchrun, "--nproc-per-node=2", "-m", "--", "slp_transformer", *words, "--run", "two",
         "--accumulation", "2", "--dropout", "0"],
        capture_output=True, text=True, encoding="utf-8", env=ENVIRONMENT, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Trained 4 steps") == 1
    fine(*words, "--run", "one", "--accumulation", "2", "--dropout", "0")
    two, one = (load_model(run).state_dict() for run in ("two", "one"))
    assert all(torch.allclose(two[name], one[name], atol=1e-5) for name in one)
