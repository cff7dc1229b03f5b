"""What the command line tells of a run: evaluate, and info."""

import math
import re
from pathlib import Path

import pytest
import torch
from commands import SENTENCE, SMALL, fine, output, result

from slp_guitar import make_practice_corpus, write_tab
from slp_guitar.tab_evaluation import compute_piece_bits
from slp_transformer import TransformerConfig, TransformerLM
from slp_transformer.data import load_corpus, text_corpus, token_file
from slp_transformer.data.token_file import TokenStore
from slp_transformer.tasks import evaluation
from slp_transformer.tasks.config_files import PRESETS
from slp_transformer.tasks.generation_session import BATCH_SIZE
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.evaluation import mean_loss


def test_evaluate_is_the_mean_loss_and_bits_follow_from_it(at, capsys):
    text = SENTENCE * 20
    text = text[:1148] + "ü" + text[1149:]  # the last character that counts, and the only wide one
    Path("apples.txt").write_text(text, encoding="utf-8")
    fine("train", "text", "apples.txt", "--out-dir", "a", *SMALL)
    measured = result(capsys, "evaluate", "a")
    held_out = load_corpus("a/tokens").val
    assert measured["loss"] == mean_loss(load_model("a"), held_out, 13, batch_size=3)
    assert measured["loss"] == result(capsys, "info", "a")["training"]["best_val_loss"]
    count = (len(held_out) - 1) // 13 * 13
    said = text[-len(held_out) :][1 : count + 1]
    nats = torch.tensor(measured["loss"] * count, dtype=torch.float64)
    bits = (nats / torch.tensor(2.0).double().log()).item()
    assert measured["tokens"] == measured["characters"] == len(said) < measured["bytes"]
    assert measured["bits_per_character"] == pytest.approx(bits / len(said))
    assert measured["bits_per_byte"] == pytest.approx(bits / len(said.encode()))
    assert measured["perplexity"] == pytest.approx(2 ** (bits / count))


def test_evaluate_another_source_takes_all_of_it(text_run, capsys):
    Path("other.txt").write_text(SENTENCE[:40], encoding="utf-8")
    assert result(capsys, "evaluate", "a", "other.txt")["tokens"] == 39


def test_evaluate_looks_at_few_tokens_at_a_time(text_run, monkeypatch):
    looked_at, look = [], TokenStore.__getitem__

    def record(self, positions):
        looked_at.append(len(look(self, positions).flatten()))
        return look(self, positions)

    monkeypatch.setattr(TokenStore, "__getitem__", record)
    for module in (token_file, text_corpus):
        monkeypatch.setattr(module, "CHUNK_TOKENS", 50)
    fine("evaluate", "a")
    Path("other.txt").write_text(SENTENCE * 99, encoding="utf-8")
    fine("evaluate", "a", "other.txt")
    assert sum(looked_at) > len(SENTENCE) * 99 and max(looked_at) == 50  # more than 3 windows of 14


def test_evaluate_shows_the_samples_that_generate_writes(text_run, capsys, monkeypatch):
    batches = []
    continues = evaluation.continue_prompts
    monkeypatch.setattr(
        evaluation,
        "continue_prompts",
        lambda model, session, rows, *given, **how: (
            batches.append(len(rows)) or continues(model, session, rows, *given, **how)
        ),
    )
    which = ["--max-new-tokens", "30", "--seed", "3"]
    texts = output(capsys, "generate", "a", "--num-samples", "2", *which)
    numbers = output(capsys, "evaluate", "a")
    note = "The model's window of 13 tokens was full: it continued from the last half window, "
    shown = output(capsys, "evaluate", "a", "--samples", "2", *which)
    assert shown == f"{numbers}\n{texts}\n{note}without what came before.\n"
    measured = result(capsys, "evaluate", "a", "--samples", "2", *which)
    assert measured["samples"] == result(capsys, "generate", "a", "--num-samples", "2", *which)
    assert measured["note"].startswith(note) and "statistics" not in measured
    fits = ["--samples", "1", "--max-new-tokens", "11"]  # after the token that it begins with
    assert "note" not in result(capsys, "evaluate", "a", *fits)
    assert "samples" not in result(capsys, "evaluate", "a")
    many = ["--max-new-tokens", "2", "--seed", "3"]
    drawn = result(capsys, "evaluate", "a", "--samples", "40", *many)["samples"]
    assert drawn == result(capsys, "generate", "a", "--num-samples", "40", *many)
    assert max(batches) == BATCH_SIZE


@pytest.mark.slow
def test_evaluate_puts_tabs_beside_those_of_people(at, capsys):
    Path("tabs").mkdir()
    for number, tab in enumerate(make_practice_corpus(seed=3, num_pieces=12)):
        write_tab(tab, f"tabs/{number:02}.txt")
    fine("train", "tabs", "tabs", "--out-dir", "g", *SMALL)
    which = ["--samples", "2", "--max-new-tokens", "40", "--temperature", "1", "--seed", "5"]
    measured = result(capsys, "evaluate", "g", *which)
    bits, figures = measured["bits_per_note"], measured["statistics"]
    assert list(bits) == ["model", "1-gram", "3-gram", "5-gram"]
    assert bits["model"] > bits["1-gram"] > bits["3-gram"] > 0  # four steps are next to nothing
    assert list(figures) == ["people", "model", "unconstrained"]
    people, model, free = figures.values()
    assert people["pieces"] == 1 and model["pieces"] == free["pieces"] == 2
    assert model["well_formed"] == 1 > free["well_formed"]
    said = output(capsys, "evaluate", "g", *which)
    assert re.search(r"^ +people +model +unconstrained$", said, re.MULTILINE)
    assert re.search(r"^bits per note, 5-gram +\d+\.\d{4}$", said, re.MULTILINE)


def test_bits_of_a_piece_longer_than_the_window_count_each_token_once():
    torch.manual_seed(0)
    model = TransformerLM(TransformerConfig(7, context_length=6, model_dim=8, num_heads=2))
    piece = [1, 3, 5, 2, 4, 6, 0, 2, 2, 5, 1, 3, 6, 6]
    expected = 0.0
    for told in range(1, len(piece)):  # windows begin at 0, then go on by half of six
        first = next(f for f in (0, 4, 8) if told <= f + 6)
        u = model.eval()(torch.tensor([piece[first:told]]))[0, -1]
        expected -= u.log_softmax(-1)[piece[told]].item() / math.log(2)
    assert compute_piece_bits(model, piece) == pytest.approx(expected, rel=1e-5)
    assert compute_piece_bits(model, piece[:1]) == 0


def test_info_describes_a_run_and_this_machine(text_run, capsys):
    about = result(capsys, "info", "a")
    assert about["parameters"]["total"] == sum(p.numel() for p in load_model("a").parameters())
    progress = about["training"]
    assert progress["step"] == progress["of"] == 4 and progress["finished"]
    assert about["model"]["model_dim"] == 8 and about["settings"]["eval_interval"] == 2
    assert "characters" in output(capsys, "info", "a")
    here = result(capsys, "info")
    assert "moby-dick" in here["data"]["corpora"] and set(here["presets"]) == set(PRESETS)
    assert here["versions"]["torch"] == torch.__version__ and "cpu" in here["machine"]["devices"]


def test_the_command_says_what_it_was_measured_on(at, capsys):
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL[:-1], "--max-eval-samples", "2")
    said = capsys.readouterr()
    assert "Evaluating on 2 of 8 validation sequences; on all of them at the end." in said.err
    assert "That is the loss on 2 validation sequences; on all of them" in said.out
    assert "Held out: " in said.err and "fox.txt, tokens 1045 to 1160 of 1160" in said.err


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
