"""Tables of choices: refusals, help and docs follow from the table, later entries included."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import pytest
from whole import whole

from slp_transformer._internal.choices import (
    Choices,
    check_choice_fields,
    check_in_choices,
    make_tyro_registry,
)


@dataclass(frozen=True)
class Shade:
    """An entry."""

    summary: str


SHADES = Choices("shade", {"plain": Shade("as it is"), "dim": Shade("half as bright")})


@dataclass(frozen=True)
class Settings:
    """Settings with choices of every kind.

    Attributes:
        shade: how bright.
        second: the same again.
        side: a fixed choice.
        bias: yes, no, or a word.
        count: a number.
    """

    shade: Annotated[str, SHADES] = "plain"
    second: Annotated[str, SHADES] | None = None
    side: Literal["left", "right"] = "left"
    bias: bool | Literal["some"] = False
    count: int = 1
    named: ClassVar[str]  # by subclasses, and not here

    def __post_init__(self) -> None:
        """Refuse what is no choice."""
        check_choice_fields(self)


@pytest.fixture
def vivid() -> Iterator[None]:
    """Add an entry from outside, for one test."""
    SHADES.add("vivid", Shade("twice as bright"))
    yield
    SHADES.remove("vivid")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shade": "gray"}, """shade must be "plain" or "dim", not 'gray'."""),
        ({"shade": None}, 'shade must be "plain" or "dim", not None.'),
        ({"shade": ["dim"]}, """shade must be "plain" or "dim", not ['dim']."""),
        ({"second": "gray"}, """second must be "plain" or "dim", not 'gray'."""),
        ({"side": "up"}, """side must be "left" or "right", not 'up'."""),
        ({"bias": "all"}, """bias must be "some", not 'all'."""),
    ],
)
def test_unknown_names_are_refused(settings, message):
    with pytest.raises(ValueError, match="must be") as error:
        Settings(**settings)
    assert str(error.value) == message


def test_known_names_are_taken():
    Settings("dim", "plain", "right", True, 7)
    Settings(second=None, bias="some")
    check_in_choices(SHADES, shade="dim")
    with pytest.raises(ValueError, match="shade must be"):
        check_in_choices(SHADES, shade="gray")


def test_an_entry_from_outside_is_everywhere(vivid, capsys):
    tyro = pytest.importorskip("tyro")
    assert Settings("vivid").shade == "vivid"
    with pytest.raises(
        ValueError, match=whole('shade must be "plain" or "dim" or "vivid", not \'gray\'.')
    ):
        Settings("gray")
    assert "| `vivid` | twice as bright |" in SHADES.to_markdown()
    parsed = tyro.cli(Settings, args=["--second", "vivid"], registry=make_tyro_registry())
    assert parsed == Settings(second="vivid")
    for args in (["--help"], ["--shade", "gray"]):
        with pytest.raises(SystemExit):
            tyro.cli(Settings, args=args, registry=make_tyro_registry())
    printed = " ".join("".join(capsys.readouterr()).translate({ord(c): " " for c in "│"}).split())
    assert "--shade {plain,dim,vivid}" in printed
    assert "--second {None,plain,dim,vivid}" in printed
    assert 'how bright. "plain" (as it is), "dim" (half as bright), "vivid" (twice' in printed
    assert "Expected one of ('plain', 'dim', 'vivid')" in printed


def test_a_name_is_taken_once():
    with pytest.raises(
        ValueError, match=whole('There are two entries "dim" for shade: rename one.')
    ):
        SHADES.add("dim", Shade("again"))


def test_a_table_reads_as_a_mapping():
    assert list(SHADES) == ["plain", "dim"] and len(SHADES) == 2
    assert SHADES["dim"].summary == "half as bright" and "gray" not in SHADES
    with pytest.raises(KeyError):
        SHADES["gray"]
