"""lm-eval's questions: answered as by its wrapper of Hugging Face's models, on the same model."""

import importlib.util
import re
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from foreign import MODELS, foreign
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers import decoders as decoding_of

from slp_transformer.generation import HarnessModel
from slp_transformer.modern import from_pretrained
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer

TEXT = "The guitar is tuned in fourths, and one third. Play it, and play it again.\n"
Request = namedtuple("Request", "args")
V = 290


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Hugging Face's model, and ours with the same weights and tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    before = MODELS["gpt2"]
    MODELS["gpt2"] = (*before[:2], before[2] | {"vocab_size": V})
    theirs = foreign("gpt2", folder)
    MODELS["gpt2"] = before
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoding_of.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    kind = {"vocab_size": V, "initial_alphabet": alphabet, "special_tokens": ["<end>"]}
    library.train_from_iterator([TEXT], trainers.BpeTrainer(**kind, show_progress=False))
    library.save(str(folder / "tokenizer.json"))
    tokenizer = PretrainedTokenizer(library, end_ids=(0,))
    return theirs, HarnessModel(from_pretrained(folder), tokenizer, begin_id=0)


def scored(theirs, inputs, targets) -> tuple[float, bool]:
    """The last predictions of a pass, as lm-eval sums them."""
    with torch.no_grad():
        log_y = theirs(torch.tensor([inputs])).logits[0].log_softmax(dim=-1)[-len(targets) :]
    chosen = log_y.gather(-1, torch.tensor(targets)[:, None])
    return chosen.sum().item(), log_y.argmax(dim=-1).tolist() == targets


PAIRS = [
    ("The guitar is", " tuned"),
    ("The guitar ", "is tuned"),  # the blank belongs to what follows
    ("", "Play"),
    (TEXT * 3, " again"),  # longer than the window
]


@pytest.mark.parametrize("context, continuation", PAIRS)
def test_the_log_probability_of_a_continuation(context, continuation, both):
    theirs, ours = both
    window = theirs.config.n_positions
    ((found, is_greedy),) = ours.loglikelihood([Request((context, continuation))])
    encode, kept = ours.tokenizer.encode, context.rstrip()
    whole = encode(context + continuation) if context else [0, *encode(continuation)]
    rest = whole[len(encode(kept)) if context else 1 :]
    inputs = whole[-window - 1 :][:-1]
    expected, greedy = scored(theirs, inputs, rest)
    assert found == pytest.approx(expected, abs=1e-4) and is_greedy == greedy
    assert len(whole) > window + 1 or context != TEXT * 3


@pytest.mark.parametrize(
    "context, continuation",
    [("The gui", "tar"), ("The g", "uitar is tuned"), ("Pl", "ay"), ("The guitar is tun", "ed in")],
)
def test_a_token_that_spans_the_join_is_scored_on_both_sides(context, continuation, both):
    """lm-eval stops there, or scores what is behind that token alone."""
    theirs, ours = both
    encode = ours.tokenizer.encode
    prompt, rest = encode(context), encode(continuation)
    assert encode(context + continuation)[: len(prompt)] != prompt or len(prompt) > 1
    assert encode(context + continuation) != prompt + rest
    ((found, is_greedy),) = ours.loglikelihood([Request((context, continuation))])
    expected, greedy = scored(theirs, [*prompt, *rest][:-1], rest)
    assert found == pytest.approx(expected, abs=1e-4) and is_greedy == greedy
    assert ours.tokenizer.decode(rest) == continuation and found < -0.1


@pytest.mark.parametrize("context", ["The guitar", "", "Play it"])
def test_an_empty_continuation_is_not_certain_but_refused(context, both):
    with pytest.raises(ValueError, match=f"The continuation of '{context}' is empty"):
        both[1].loglikelihood([Request((context, ""))])


@pytest.mark.parametrize("text", ["Play it", TEXT, TEXT * 3, ""])
def test_the_log_probability_of_a_text_in_windows(text, both):
    theirs, ours = both
    ids, window = ours.tokenizer.encode(text), theirs.config.n_positions
    (found,) = ours.loglikelihood_rolling([Request((text,))])
    expected = 0.0
    for start in range(0, len(ids), window):
        end = min(start + window, len(ids))
        inputs = [0, *ids][max(0, end - window) : end]
        expected += scored(theirs, inputs, ids[start:end])[0]
    assert found == pytest.approx(expected, abs=1e-3)
    assert text != TEXT * 3 or len(ids) > 2 * window


def test_greedy_text_up_to_a_string(both):
    theirs, ours = both
    settings = {"max_gen_toks": 12, "until": []}
    (whole,) = ours.generate_until([Request(("The guitar", settings))])
    ids = torch.tensor([ours.tokenizer.encode("The guitar")])
    written = theirs.generate(ids, max_new_tokens=12, do_sample=False, eos_token_id=0)
    assert whole == ours.tokenizer.decode(written[0, ids.shape[1] :].tolist()) and len(whole) > 3
    until = [whole[2:4], "never"]
    (part,) = ours.generate_until([Request(("The guitar", settings | {"until": until}))])
    assert part == whole[: whole.index(until[0])]
    long = TEXT * 3  # cut off at the front, to leave room
    (found,) = ours.generate_until([Request((long, settings))])
    ids = torch.tensor([ours.tokenizer.encode(long)[-(theirs.config.n_positions - 12) :]])
    written = theirs.generate(ids, max_new_tokens=12, do_sample=False, eos_token_id=0)
    assert found == ours.tokenizer.decode(written[0, ids.shape[1] :].tolist())
    with pytest.raises(ValueError, match="leave no room"):
        ours.generate_until([Request(("The", {"max_gen_toks": 99}))])


@pytest.mark.skipif(not importlib.util.find_spec("lm_eval"), reason="lm-eval is not installed")
def test_lm_eval_takes_it_and_its_own_wrapper_says_the_same(both):
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM
    from lm_eval.models.huggingface import HFLM
    from transformers import PreTrainedTokenizerFast

    theirs, ours = both
    library = PreTrainedTokenizerFast(tokenizer_object=ours.tokenizer.library, eos_token="<end>")
    own = HFLM(pretrained=theirs, tokenizer=library, batch_size=1, max_length=41)

    class Ours(HarnessModel, LM):
        pass

    wrapped = Ours(ours.model, ours.tokenizer, 0)

    def ask(kind, *questions):
        requests = [Instance(kind, {}, q, n) for n, q in enumerate(questions)]
        return [getattr(model, kind)(requests) for model in (wrapped, own)]

    # One by one: lm-eval takes two that are the same text, divided elsewhere, for one.
    for (a,), (b,) in (ask("loglikelihood", pair) for pair in PAIRS):
        assert a[0] == pytest.approx(b[0], abs=1e-3) and a[1] == b[1]
    for a, b in zip(*ask("loglikelihood_rolling", ("Play it",), (TEXT * 3,)), strict=True):
        assert a == pytest.approx(b, abs=1e-2)
    settings = {"until": ["\n"], "max_gen_toks": 9, "do_sample": False}
    found, expected = ask("generate_until", ("The guitar", settings), (TEXT * 3, settings))
    assert found == expected


def test_the_page_reuse_shows_how_lm_eval_gets_it():
    page = (Path(__file__).parents[2] / "docs" / "reuse.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    tree = compile(program, "reuse.md", "exec")
    assert {"HarnessModel", "LM", "simple_evaluate"} <= set(tree.co_names)
