"""Points for a submission, as Gradescope's autograder takes them.

Gradescope runs a program of the teacher's in a container of its own and reads `results.json`: a
list of tests with their points. Here each function is a test, and a file of the teacher's states
the points. Nothing but `class_report` runs what was handed in.
"""

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any

from slp_transformer._internal.atomic_write import write_file
from slp_transformer.check.diagnosing.diagnosis import CHECKS
from slp_transformer.check.grading.class_report import Report, report_on_class, report_on_file
from slp_transformer.check.student_file import read_regular_file

MAX_POINTS = 1_000_000


def read_points(path: Path) -> dict[str, float]:
    """Return the points of each function, by the name of its check.

    Raises:
        ValueError: if the file cannot be read, names no check, or states no number.
    """
    try:
        points = tomllib.loads(read_regular_file(path, str(path)).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is no TOML: {error}.") from None
    for name, value in points.items():
        if name not in CHECKS:
            near = difflib.get_close_matches(name, CHECKS, 1)
            hint = f" Is it {near[0]}?" if near else ""
            raise ValueError(f"{path}: there is no check named {name!r}.{hint}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{path}: the points of {name} are no number: {value!r}.")
        if not 0 <= value <= MAX_POINTS:
            raise ValueError(f"{path}: the points of {name} should be from 0 to {MAX_POINTS}.")
    if not points:
        raise ValueError(f"{path} states no points: write a line such as `softmax = 2`.")
    return points


def write_results(submission: Path, points: dict[str, float], path: Path) -> tuple[float, float]:
    """Write `results.json`; return the points and how many there might be.

    Args:
        submission: a script, a notebook, or a folder with some; a function that is right in one of
            them has its points.
        points: from `read_points`.
        path: of the file to write.
    """
    is_file = submission.is_file()
    files = [report_on_file(submission)] if is_file else report_on_class(submission)["files"]
    tests = [_make_test_entry(name, most, files) for name, most in points.items()]
    errors = [f"{one['file']}: {one['error']}" for one in files if "error" in one]
    results: dict[str, Any] = {"tests": tests, "visibility": "visible"}
    if not files:
        errors = ["There is no script and no notebook in what was handed in."]
    if errors:
        results["output"] = "\n".join(errors)
    if unlimited := sorted({text for one in files for text in one.get("not limited", ())}):
        results["extra_data"] = {"not limited": unlimited}  # Gradescope shows it to nobody
    write_file(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    return sum(one["score"] for one in tests), sum(points.values())


def _make_test_entry(name: str, most: float, files: list[Report]) -> dict[str, Any]:
    is_right = any(name in one["right"] for one in files)
    test = {"name": name, "score": most if is_right else 0, "max_score": most}
    said = {
        "status": "passed" if is_right else "failed",
        "output": _describe_best_result(name, files),
    }
    return test | said


def _describe_best_result(name: str, files: list[Report]) -> str:
    """Return a sentence about a function: the best that the files have."""
    if any(name in one["right"] for one in files):
        return f"It agrees with {CHECKS[name].source}."
    for one in files:
        if text := one["wrong"].get(name):
            return str(text)
    for one in files:
        if name in one.get("uses the package", ()):
            uses = ", ".join(one["uses the package"][name])
            return f"It uses this course's package ({uses}); write it without."
        if where := one.get("imported", {}).get(name):
            return f"It is imported ({where}); write it yourself."
    if any("error" in one for one in files):
        return "It was not tried, or did not come to an end: see above."
    signature = CHECKS[name].signature_text
    return f"It is not there: write {signature}, or my_{signature}."
