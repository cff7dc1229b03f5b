"""Claims of chapters are found, with what they rest on, and each rests on something."""

from pathlib import Path

import chapter_source
import claims
import pytest

ROOT = Path(__file__).parents[2]

TEXT = """\
# %% [markdown] tags=["path"]
# # 1 · One
#
# This is plain. In Fig. 8.3 (8.4) and section 8.5 nothing is claimed. A half is exact.

# %%
import torch

torch.manual_seed(0)

# %% [markdown]
# ## Two
#
# It is right in 81% of cases. Over seeds 0 to 2 it is the best. Is `0.5` the best?

# %% [markdown]
# ## Three
#
# The loss is 0.35, and not 0.45. It is 0.25, a quarter. It is the best. It is 0.55.

# %%
assert loss < 0.35

# %% [markdown]
# ## Four
#
# The fewest slips, 4, are in `benchmarks/results/slips`.

# %% [markdown]
# ## Try it
#
# 1. Set it to 0.1. Does it fail?
#
#    <details><summary>What happens</summary>
#
#    It works. And well.
#
#    </details>
#
# 2. And with seed 1?
#
#    <details><summary>What happens</summary>
#
#    With two seeds, too.
#
#    </details>

# %%
assert True
"""


def test_claims_are_found_with_what_they_rest_on(tmp_path):
    path = tmp_path / "chapters" / "01_one.py"
    path.parent.mkdir()
    path.write_text(TEXT, encoding="utf-8")
    stated = {"a quarter": "0.25 = 1 / 4"}
    found = list(claims.claims_of(chapter_source.read_chapter(path, tmp_path), stated))
    assert [(one.sentence, one.basis) for one in found] == [
        ("A half is exact.", "nothing random so far"),
        ("It is right in 81% of cases.", ""),
        ("Over seeds 0 to 2 it is the best.", "says its seeds"),
        ("The loss is 0.35, and not 0.45.", "asserted next to it"),
        ("It is 0.25, a quarter.", "0.25 = 1 / 4"),
        ("It is the best.", "asserted next to it"),
        ("It is 0.55.", ""),
        (
            "The fewest slips, 4, are in `benchmarks/results/slips`.",
            "recorded in benchmarks/results/slips",
        ),
        ("It works. And well.", ""),
        ("With two seeds, too.", "says its seeds"),
    ]
    assert found[1].place == "01_one.py:12"


def test_a_stated_basis_is_a_record_that_exists_or_sums_that_come_out_or_a_reason(tmp_path):
    (tmp_path / "benchmarks" / "results" / "slips").mkdir(parents=True)

    def sound(basis):
        return claims.is_sound(basis, "It is 0.45 of 1,200.", tmp_path)

    assert sound("benchmarks/results/slips") and sound("benchmarks/results/slips: Try it")
    assert not sound("benchmarks/results/falls")
    assert sound("0.45 = (1 - 0.9) / sqrt(1 - 0.95)") and sound("0.45 = 0.449; 1,200 = 12 * 100")
    assert (
        not sound("0.45 = 0.444") and not sound("0.46 = 0.46") and not sound("0.45 = 0.45; 3 = 3")
    )
    assert sound("It follows from the definition.") and not sound("known")


def test_a_number_that_its_record_does_not_have_is_told(tmp_path):
    (tmp_path / "benchmarks" / "results" / "slips").mkdir(parents=True)
    kept = tmp_path / "benchmarks" / "results" / "slips" / "slips.json"
    kept.write_text('{"shares": [0.4449, 0.081], "loss": 1.4697}', encoding="utf-8")

    def unknown(sentence, basis="recorded in benchmarks/results/slips"):
        return claims.numbers_without_record(claims.Claim("1", sentence, basis), tmp_path)

    assert unknown("It is 0.44, or 44%, with `0.7` 8.1 % and 1.47 nats.") == []
    assert unknown("It is 0.45, or 1.46.") == ["0.45", "1.46"]
    assert unknown("It is 0.5.", "benchmarks/results/slips: seen; 0.5 = 4 / 8") == []
    assert unknown("It is 0.5.", "says its seeds") == []


def test_what_rests_on_nothing_or_is_not_in_its_record_is_listed(tmp_path, capsys):
    path, kept = tmp_path / "chapters" / "99_one.py", tmp_path / "benchmarks" / "results"
    for folder in (path.parent, kept):
        folder.mkdir(parents=True)
    (kept / "slips.json").write_text("[0.25, 4]", encoding="utf-8")
    more = (
        "It is 0.25 and 0.75 (`benchmarks/results/slips`).\n#\n# 0.25: `benchmarks/results/slips`."
    )
    path.write_text(TEXT.replace("A half is exact.", more), encoding="utf-8")
    claims.main(tmp_path, ["99"], every=False)
    said = capsys.readouterr().out.splitlines()
    recorded = "[recorded in benchmarks/results/slips, but 0.75 is not there]"
    assert said[0].endswith(f"It is 0.25 and 0.75 (`benchmarks/results/slips`).  {recorded}")
    assert "It is right in 81% of cases." in said[1] and not any("half" in line for line in said)
    assert not any("0.25: `bench" in line or "fewest slips" in line for line in said)


@pytest.mark.slow
def test_every_claim_rests_on_something():
    stated = claims.stated_bases()
    unused = {(stem, piece) for stem, pieces in stated.items() for piece in pieces}
    for chapter in chapter_source.read_chapters(ROOT):
        own = stated.get(chapter.path.stem, {})
        for claim in claims.claims_of(chapter, own):
            assert claim.basis, f"{claim.place} claims without a basis: {claim.sentence}"
            unknown = claims.numbers_without_record(claim, ROOT)
            assert not unknown, (claim.place, unknown, claim.basis)
            for piece in own:
                if piece in claim.sentence:
                    unused.discard((chapter.path.stem, piece))
                    assert claims.is_sound(own[piece], claim.sentence, ROOT), (piece, own[piece])
    assert not unused, "no claim has this any more"
