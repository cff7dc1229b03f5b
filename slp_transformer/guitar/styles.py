"""Styles of music: valid names, and the styles of some tabs."""

from collections.abc import Iterable

from slp_transformer.guitar.tab import Tab

MAX_STYLE_CHARACTERS = 40  # characters
MAX_STYLES = 64  # styles that a new tokenizer takes


def is_valid_style(style_name: str) -> bool:
    """Return whether a text will do as the name of a style.

    It has 1 to 40 printable characters, none of them ``<`` or ``>``, which tokens have around it,
    and no spaces but single ones between words. What a tab without a style is called, none, is no
    style.
    """
    in_words = style_name == " ".join(style_name.split()) and style_name.isprintable()
    return (
        in_words
        and 0 < len(style_name) <= MAX_STYLE_CHARACTERS
        and not set("<>") & set(style_name)
        and not is_no_style(style_name)
    )


def is_no_style(style_name: str) -> bool:
    """Return whether a text says that there is no style."""
    return style_name.casefold() == "none"


def check_styles(styles: tuple[str, ...]) -> None:
    """Refuse names that will not do.

    Raises:
        ValueError: naming the first that is no style or is there twice.
    """
    for number, name in enumerate(styles):
        if not isinstance(name, str) or not is_valid_style(name):
            raise ValueError(
                f"A style has a name of 1 to {MAX_STYLE_CHARACTERS} printable characters, without "
                f"< and >, and other than none: {name!r:.60} will not do."
            )
        if name in styles[:number]:
            raise ValueError(f"The style {name!r} is there twice.")


def collect_styles(tabs: Iterable[Tab]) -> tuple[tuple[str, ...], list[str]]:
    """The styles that a model of some tabs can be asked for.

    Returns:
        Their names, sorted: none where all that have a style have the same, which then carries no
        information, and none where there are more than 64. And a warning in the latter case.
    """
    found = sorted({tab.style for tab in tabs if is_valid_style(tab.style)})
    if len(found) > MAX_STYLES:
        return (), [f"styles have no tokens: there are {len(found)} styles, more than {MAX_STYLES}"]
    return (tuple(found) if len(found) > 1 else ()), []
