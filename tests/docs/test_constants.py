"""What Python and the pages' scripts share is written from Python, all of it and nothing else."""

import json
import re

from js_engines import DOCS, FOLDER, Racer, constants


def imported():
    """Return what each script imports from the constants."""
    pattern = r'(?m)^import \{([^}]*)\} from "\./constants\.js"'
    return {
        path.name: set(re.findall(r"\w+", " ".join(re.findall(pattern, path.read_text("utf-8")))))
        for path in sorted(FOLDER.glob("*.js"))
    }


def test_scripts_import_all_constants_and_no_others():
    used = imported()
    assert set().union(*used.values()) == set(constants.constants())
    assert {"checkpoint.js", "fingering.js", "hand.js", "midi.js", "tab.js"} <= {
        name for name, some in used.items() if some
    }


def test_the_module_says_in_javascript_what_python_has():
    shared = constants.constants()
    engine = Racer("constants.js")
    for name, constant in shared.items():
        found = engine.run(f"(M) => M.{name}")
        assert found == json.loads(json.dumps(constant.value)), name
    engine.close()


def test_a_new_entry_of_a_table_reaches_the_page(monkeypatch):
    monkeypatch.setitem(constants.TUNINGS, "all-fourths", constants.TUNINGS["standard"])
    shared = constants.constants()
    assert shared["TUNINGS"].value["all-fourths"] == (64, 59, 55, 50, 45, 40)
    assert '"all-fourths": [64, 59, 55, 50, 45, 40]' in constants.as_module()


def test_no_line_of_the_scripts_is_longer_than_100_characters():
    paths = [path for path in DOCS.glob("assets/**/*.js") if not path.name.endswith(".min.js")]
    assert len(paths) > 10
    for path in paths:
        lines = path.read_text("utf-8").splitlines()
        assert [n for n, line in enumerate(lines, 1) if len(line) > 100] == [], path.name
