"""The programs of the page on clusters run as they stand, in smaller sizes."""

import re
from pathlib import Path

import pytest
from own_process import python

PAGE = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
SMALLER = {
    "model_dim=384": "model_dim=12",
    "steps=10_000": "steps=2",
    "batch_size=32": "batch_size=2",
}


@pytest.mark.slow
def test_tokens_are_made_and_trained_on(tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "my-texts").mkdir()
    text = "The cat sat on the mat, and the dog did not. " * 900
    (tmp_path / "my-texts" / "a.txt").write_text(text, encoding="utf-8")
    programs = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL))
    assert list(programs) == ["my_training.py", "my_tokens.py"]
    for name in reversed(programs):
        for ours, smaller in SMALLER.items():
            assert name != "my_training.py" or ours in programs[name]
            programs[name] = programs[name].replace(ours, smaller)
        (tmp_path / name).write_text(programs[name], encoding="utf-8")
        result = python(name, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "runs" / "mine" / "step-00000002").is_dir()
