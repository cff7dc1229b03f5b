"""A model that was downloaded, held against transformers; skipped unless a folder is named.

hf download HuggingFaceTB/SmolLM2-135M --local-dir models/smollm2
python -m pytest tests/modern/test_downloaded.py --pretrained models/smollm2
"""

import pytest
import torch

from slp_transformer import generate
from slp_transformer.modern import from_pretrained
from slp_transformer.modern.hf_tokenizer import load_tokenizer

TEXT = "The guitar has six strings, and the lowest of them sounds an E."


@pytest.fixture(scope="module")
def both(request):
    """Theirs, ours, our tokenizer, and its ids of a text."""
    folder = request.config.getoption("--pretrained")
    if folder is None:
        pytest.skip("No folder of a downloaded model was named by --pretrained.")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ours = from_pretrained(folder)
    tokenizer = load_tokenizer(folder, ours.config)
    ids = tokenizer.encode(TEXT, whole=True)
    assert ids == AutoTokenizer.from_pretrained(folder)(TEXT).input_ids
    assert tokenizer.decode(ids) == TEXT
    return theirs, ours, torch.tensor([ids])


@torch.no_grad()
def test_its_logits_are_theirs(both):
    theirs, ours, ids = both
    torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=0, atol=1e-4)


def test_its_words_are_theirs(both):
    theirs, ours, ids = both
    how = {"do_sample": False, "max_new_tokens": 20}
    expected = theirs.generate(ids, attention_mask=torch.ones_like(ids), **how)[0].tolist()
    (written,) = generate(ours, ids, max_new_tokens=20, temperature=0)
    assert written.ids[: len(expected)] == expected, "theirs may end before"
