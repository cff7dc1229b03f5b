"""A chapter's kernel notes the functions of the package that ran: all of them, and no others."""

import importlib
import json
import os
import sys
import traceback
from importlib.util import cache_from_source
from pathlib import Path

import recording

MODULE = '''\
"""A module."""


def idle():
    return 1


def twice(f):
    """Run when a decorator is applied."""

    def inner(*given):
        return f(f(*given))

    return inner


class Counter:
    """Counts."""

    def silent(self):
        """Only says so."""

    @property
    def size(self):
        return 3

    def unused(self):
        return self.size

    if True:

        @staticmethod
        @twice
        def nested(x=0):
            class Local:
                def method(self):
                    return 11

            return Local().method() + x


def steps():
    yield 5


async def later():
    return 7


def fail():
    """Raise on the last line."""
    raise KeyError("k")
'''


def test_functions_that_run_are_noted_and_lines_stay(tmp_path, monkeypatch, capsys):
    path = tmp_path / "noted" / "counter.py"
    path.parent.mkdir()
    (path.parent / "__init__.py").write_text("", encoding="utf-8")
    path.write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "slp_ran", {}, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    recording.start(str(path.parent))
    counter = importlib.import_module("noted.counter")
    made = counter.Counter()
    assert made.silent() is None and made.size == 3 and made.nested() == 22
    unread = counter.steps()
    try:
        counter.later().send(None)
    except StopIteration as end:
        assert end.value == 7
    try:
        counter.fail()
    except KeyError as error:
        assert traceback.extract_tb(error.__traceback__)[-1].lineno == MODULE.count("\n")
    recording.report()
    ran = json.loads(capsys.readouterr().out)
    within = "Counter.nested.<locals>.Local.method"
    names = {"Counter.nested", "Counter.silent", "Counter.size", "fail", "later", within}
    assert set(ran[str(path)]) == {"<module>", "twice", "twice.<locals>.inner", *names}
    assert ran[str(path.with_name("__init__.py"))] == ["<module>"]
    assert list(unread) == [5] and counter.Counter.__doc__ == "Counts."
    assert not list(path.parent.glob("**/*.pyc"))
    for name in ("noted", "noted.counter"):
        monkeypatch.delitem(sys.modules, name)


def test_bytecode_is_that_of_the_source_even_in_the_same_second(tmp_path):
    path = tmp_path / "low.py"
    names = {}
    for number in (3, 5, 3):
        path.write_text(f"def low():\n    return {number}\n", encoding="utf-8")
        os.utime(path, (11, 11))
        for _ in range(2):  # compiled, then kept
            names = {recording.RAN: set()}
            exec(recording.NotingLoader("low", str(path)).get_code("low"), names)
            assert names["low"]() == number and names[recording.RAN] == {"low"}
    kept = Path(cache_from_source(path)).with_suffix(".noted")
    kept.write_bytes(kept.read_bytes()[:-1])  # damaged
    assert recording.NotingLoader("low", str(path)).get_code("low").co_name == "<module>"
