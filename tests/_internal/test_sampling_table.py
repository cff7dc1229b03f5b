"""The table of sampling options reaches the flags, the documentation and the pages by itself."""

import json
import re
from pathlib import Path
from pkgutil import resolve_name

import own_process
import pytest

from slp_transformer._internal.sampling_table import SAMPLING, SamplingOption

for library in ("tyro", "pydantic"):
    pytest.importorskip(library, reason="flags need the text extra")
ROOT = Path(__file__).parents[2]
OUTSIDE = """
import json, sys
from slp_transformer._internal.sampling_table import SAMPLING, SamplingOption
SAMPLING.add("keep_every", SamplingOption(
    "nowhere:keep_every", "keep each e-th word", (lambda e: e > 1, "2 or more"), example=3
))
from slp_transformer.cli import main
sys.stderr = sys.stdout
for words in json.loads(sys.argv[1]):
    print(main(words), end="\\0")
assert "torch" not in sys.modules
"""


def test_an_entry_from_outside_is_a_flag_with_help_and_refusals():
    asked = [
        (["generate", "--help"], 0, "--keep-every INT keep each e-th word."),
        (["evaluate", "--help"], 0, "--keep-every INT keep each e-th word."),
        (["generate", ".", "--keep-evry", "3"], 2, "did you mean --keep-every?"),
        (["generate", ".", "--keep-every", "1"], 2, "--keep-every must be 2 or more, not 1."),
        (["generate", ".", "--keep-every", "3", "--temperature", "0"], 2, "has no effect with"),
        (["generate", ".", "--keep-every", "3"], 2, "There is no checkpoint in ."),
    ]
    said = own_process.printed(OUTSIDE, json.dumps([words for words, _, _ in asked]))
    for answer, (_, code, sentence) in zip(said.split("\0")[:-1], asked, strict=True):
        assert sentence in re.sub(r"[│\s]+", " ", answer) and answer.endswith(str(code))


def test_the_documentation_has_the_table_that_an_entry_from_outside_joins(request):
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"<!-- choices (\S*sampling\S*) -->", page)
    option = SamplingOption("nowhere:f", "keep each e-th", (lambda e: True, "any"), example=3)
    SAMPLING.add("keep_every", option)
    request.addfinalizer(lambda: SAMPLING.remove("keep_every"))
    rows = resolve_name(shown).to_markdown().splitlines()
    assert "| `keep_every` | keep each e-th |" in rows
    names = [name for row in rows if (name := re.match(r"\| `(\w+)` \|", row))]
    assert [name[1] for name in names] == list(SAMPLING)
