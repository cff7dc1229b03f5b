"""Flags that belong to a run's task: which word is the run, and names that are taken."""

from dataclasses import dataclass, make_dataclass

import pytest
from commands import refused

from slp_transformer.cli.flags import check_task_flags, collect_flag_types, find_run_argument

pytest.importorskip("tyro", reason="flags need the text extra")

from slp_transformer.cli.evaluate import EvaluateRunOptions  # noqa: E402
from slp_transformer.cli.generate import GenerateOptions  # noqa: E402
from slp_transformer.cli.train_options import TrainOptions  # noqa: E402
from slp_transformer.tasks.data_settings import DataSettings, NoFlags, UseAppendAction  # noqa: E402
from slp_transformer.tasks.registry import load_task  # noqa: E402
from slp_transformer.tasks.text import TextData, TextTask  # noqa: E402


@dataclass(frozen=True)
class Own:
    """Flags of a task: one takes a value, one does not, and one is another task's with a value."""

    key: str | None = None
    loud: bool = False


@dataclass(frozen=True)
class Other:
    """Flags of another task."""

    loud: int = 3


KNOWN = [*collect_flag_types(GenerateOptions[Own]).items()]


@pytest.mark.parametrize(
    ("words", "run"),
    [
        ("a --key b", "a"),
        ("--key b a", "a"),
        ("--key=b a", "a"),
        ("--loud a --key b", "a"),
        ("--top_p 0.9 --json a", "a"),
        ("--temperature -1 a", "a"),
        ("--help -h a", "a"),
        ("--no-such-flag a b", "b"),
        ("--key b", None),
        ("--key", None),
    ],
)
def test_the_run_is_the_first_word_that_is_no_flag_and_no_flags_value(words, run):
    assert find_run_argument(words.split(), KNOWN) == run


def test_a_flag_that_takes_a_value_in_one_task_alone_stands_after_the_run():
    known = [*KNOWN, *collect_flag_types(Other).items()]
    assert find_run_argument(["a", "--loud", "b"], known) == "a"
    with pytest.raises(ValueError, match="Name the run before --loud, which means another thing"):
        find_run_argument(["--loud", "a"], known)


def test_flags_of_dataclasses_in_dataclasses_are_found_and_arguments_without_a_name_are_not():
    flags = collect_flag_types(EvaluateRunOptions[Own])
    assert {"--key", "--loud", "--samples", "--seed", "--json", "--device", "--top-k"} <= {*flags}
    assert not {"--run", "--source", "--flags", "--asked"} & {*flags} and flags["--loud"] is bool
    settings = collect_flag_types(TrainOptions[TextData])
    assert {"--vocab-size", "--num-blocks", "--steps", "--out-dir"} <= {*settings}


@dataclass(frozen=True)
class Taken(DataSettings):
    """A task's settings and flags, of which two are taken."""

    steps: int = 1
    seed: int = 2


@pytest.mark.parametrize("kind", [int, float | None])
def test_a_number_of_a_task_s_data_without_a_range_is_refused(monkeypatch, capsys, kind):
    field = ("depth", kind, 3)
    monkeypatch.setattr(
        TextTask, "Data", make_dataclass("Deep", [field], bases=(TextData,), frozen=True)
    )
    said = refused(capsys, "train", "text", "--out-dir", "new")
    assert "Deep.depth needs a setting with a range" in said


@pytest.mark.parametrize("kind", [tuple[str, ...], list[int] | None, UseAppendAction[tuple[int]]])
def test_a_flag_of_a_task_that_takes_several_values_is_refused(monkeypatch, kind):
    flags = make_dataclass("Flags", [("loud", bool), ("other_keys", kind)])
    monkeypatch.setattr(TextTask, "EvaluateFlags", flags)
    with pytest.raises(ValueError, match="text has an option --other-keys that takes several"):
        load_task("text")
    monkeypatch.setattr(TextTask, "EvaluateFlags", Own)
    assert load_task("text").EvaluateFlags is Own


@pytest.mark.parametrize(
    ("general", "name", "flag"),
    [
        (GenerateOptions[NoFlags], "generate", "--seed"),
        (TrainOptions[DataSettings], "train", "--seed"),
    ],
)
def test_a_task_cannot_have_a_flag_that_every_task_has(general, name, flag):
    check_task_flags("mine", Own, general, name)
    with pytest.raises(ValueError, match=f"The task mine has an option {flag}, but so has {name}"):
        check_task_flags("mine", Taken, general, name)
