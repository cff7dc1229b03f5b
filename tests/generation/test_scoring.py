"""Scores of continuations: by hand, in batches as alone, and Hugging Face's log probabilities."""

import pytest
import torch
from foreign import MODELS, foreign
from writers import WINDOW, V, make

import slp_transformer
from slp_transformer import EncoderDecoder
from slp_transformer.generation import scoring
from slp_transformer.generation.scoring import score, score_continuations
from slp_transformer.modern import from_pretrained

PAIRS = [([3, 1], [4, 1, 5]), ([9], [2]), ([2, 6, 5, 3], [5]), ([7], list(range(V))), ([1], [])]


def by_hand(model, prompt, rest) -> list[float]:
    """Word after word, each in a pass of its own."""
    found = []
    for n, word in enumerate(rest):
        log_y = model(torch.tensor([prompt + rest[:n]]))[0, -1].log_softmax(dim=-1)
        found.append(log_y[word].item())
    return found


@pytest.mark.parametrize("max_logits", [1, 40 * V, 2**26])  # one by one, a few, all at once
def test_scores_are_log_probabilities_word_by_word(max_logits, monkeypatch):
    monkeypatch.setattr(scoring, "MAX_LOGITS", max_logits)
    model = make().double()
    for (prompt, rest), one in zip(PAIRS, score_continuations(model, PAIRS), strict=True):
        expected = by_hand(model, prompt, rest)
        assert list(one.token_log_probabilities) == pytest.approx(expected, abs=1e-9)
        assert score(model, prompt, rest) == pytest.approx(sum(expected), abs=1e-9)
    assert slp_transformer.score is score


def test_a_continuation_is_greedy_if_greedy_decoding_writes_it():
    model = make()
    (written,) = slp_transformer.generate(model, [[3, 1]], 6, temperature=0)
    other = [*written.new_ids[:-1], (written.new_ids[-1] + 1) % V]
    found = score_continuations(model, [([3, 1], written.new_ids), ([3, 1], other), ([3, 1], [])])
    assert [one.is_greedy for one in found] == [True, False, True]


@pytest.mark.parametrize("name", ["gpt2", "llama 3, tied", "qwen3"])
def test_scores_are_hugging_faces(name, tmp_path):
    theirs = foreign(name, tmp_path).double()
    ours = from_pretrained(tmp_path).double()
    draw = torch.Generator().manual_seed(0)
    size = MODELS[name][2]["vocab_size"]
    prompt, rest = torch.randint(size, (2, 11), generator=draw).tolist()
    with torch.no_grad():
        log_y = theirs(torch.tensor([prompt + rest])).logits[0, 10:-1].log_softmax(dim=-1)
    expected = log_y.gather(-1, torch.tensor(rest)[:, None]).sum().item()
    assert score(ours, prompt, rest) == pytest.approx(expected, rel=1e-6)


def test_a_full_window_and_one_more_token_can_be_scored():
    model, ids = make(), [i % V for i in range(WINDOW)]
    assert score(model, ids, [3]) == pytest.approx(by_hand(model, ids, [3])[0], abs=1e-4)


@pytest.mark.parametrize(
    ("prompt", "rest", "message"),
    [
        ([], [1], "The prompt is empty"),
        ([1], [V], "outside the vocabulary"),
        ([1] * 10, [2] * 11, "10 tokens and the continuation 11, but the model's window is 19"),
        ("the", [1], "token ids: encode the text first"),
        ([[1]], [1], "one sequence of ids"),
    ],
)
def test_bad_input_is_named(prompt, rest, message, unchecked):
    with pytest.raises(ValueError, match=message):
        score(make(), prompt, rest)


def test_an_encoder_decoder_is_refused(unchecked):
    with pytest.raises(ValueError, match="A language model scores.*EncoderDecoder is none"):
        score(make(EncoderDecoder), [1], [2])
