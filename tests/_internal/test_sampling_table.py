"""The table of sampling options reaches the flags, the documentation and the pages by itself."""

import json
import re
from pathlib import Path
from pkgutil import resolve_name

import own_process
import pytest
from whole import whole

from slp_transformer._internal.sampling_table import (
    SAMPLING,
    SamplingOption,
    validate_sampling_options,
)

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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"temprature": 1.0},
            "There is no sampling option -temprature: did you mean -temperature?",
        ),
        ({"zzz": 1}, f"There is no sampling option -zzz: {', '.join(SAMPLING)}."),
        ({"top_k": 0}, "-top_k must be a whole number of 1 or more, not 0."),
        (
            {"temperature": 1e-7},
            "-temperature must be 0, or a number above 0, from 1e-6 on, not 1e-07.",
        ),
        (
            {"top_k": 3, "temperature": 0},
            "-top_k has no effect with -temperature 0, which always takes the most probable token: "
            "leave out one of them.",
        ),
    ],
)
def test_an_option_that_cannot_be_is_refused_in_one_whole_sentence(given, message):
    with pytest.raises((TypeError, ValueError), match=whole(message)):
        validate_sampling_options(given, lambda name: f"-{name}")


def test_options_that_change_something_stay_in_the_order_in_which_they_are_applied():
    given = {"top_p": 0.5, "top_k": None, "temperature": 1.0, "repetition_penalty": 1.5}
    changed = {"repetition_penalty": 1.5, "top_p": 0.5}
    assert [*validate_sampling_options(given).items()] == [*changed.items()]
    given = {"temperature": 0, "repetition_penalty": 1.5, "min_p": None}
    assert validate_sampling_options(given) == {"repetition_penalty": 1.5, "temperature": 0}
