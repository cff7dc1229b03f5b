"""Claims of chapters are found, with what they rest on."""

import chapter_source
import claims

TEXT = """\
# %% [markdown] tags=["path"]
# # 1 · One
#
# This is plain. In Fig. 8.3 (8.4) nothing is claimed. A half is exact.

# %%
import torch

torch.manual_seed(0)

# %% [markdown]
# ## Two
#
# It is right in 81% of cases. Over seeds 0 to 2 it is the best.

# %% [markdown]
# ## Three
#
# The loss is 0.35.

# %%
assert True

# %% [markdown]
# ## Four
#
# The fewest slips, 4, are in `benchmarks/results/slips`.
"""


def test_claims_are_found_with_what_they_rest_on(tmp_path):
    path = tmp_path / "chapters" / "01_one.py"
    path.parent.mkdir()
    path.write_text(TEXT, encoding="utf-8")
    found = list(claims.claims_of(chapter_source.read_chapter(path, tmp_path)))
    assert [(one.sentence, one.basis) for one in found] == [
        ("A half is exact.", "nothing random so far"),
        ("It is right in 81% of cases.", ""),
        ("Over seeds 0 to 2 it is the best.", "says its seeds"),
        ("The loss is 0.35.", "asserted in its section"),
        (
            "The fewest slips, 4, are in `benchmarks/results/slips`.",
            "recorded in benchmarks/results/slips",
        ),
    ]
    assert found[1].place == "01_one.py:12"
