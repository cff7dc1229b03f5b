"""Pairs that come with the package: numbers and dates in English and in Spanish words.

Both sides follow from a number or a day by the rules of their language, so every pair is right, and
a translation is right or wrong and nothing between. What there is to learn:

- One word may become several, *nineteen* (of a year) *mil novecientos*, and several one,
  *twenty-one* *veintiuno*.
- The order changes: *March twenty-first*, but *veintiuno de marzo*.
- A word depends on others: *one hundred* is *cien* alone and *ciento* before more, *one* is *un*
  before *mil*, and nothing at all where a number begins with *one thousand*.
"""

import random
import re
from datetime import date

Pair = tuple[str, str]

MAX_DIGITS = 6
MAX_NUMBER = 10**MAX_DIGITS - 1  # the largest number that has words here
YEAR_RANGE = (1800, 2099)  # the first and the last year of the dates

# --- English -----------------------------------------------------------------------------------

_ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
    "twenty": "twentieth",
    "thirty": "thirtieth",
}
_ENGLISH_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_ENGLISH_MONTHS = (
    "January February March April May June July August September October November December"
).split()


def number_to_english(n: int) -> str:
    """Return a number in English words: 2,342 is "two thousand three hundred and forty-two".

    Raises:
        ValueError: if it is below 0 or above 999,999.
    """
    _check_range(n)
    if n < 20:
        return _ENGLISH[n]
    if n < 100:
        tens, ones = _ENGLISH_TENS[n // 10 - 2], n % 10
        return f"{tens}-{_ENGLISH[ones]}" if ones else tens
    size, name = (100, "hundred") if n < 1000 else (1000, "thousand")
    words, rest = f"{number_to_english(n // size)} {name}", n % size
    link = " and " if rest < 100 else " "
    return f"{words}{link}{number_to_english(rest)}" if rest else words


def date_to_english(day: date, day_first: bool = False) -> str:
    """Return a date in English words: "Wednesday, March twenty-first, nineteen eighty-four".

    Args:
        day: from 1800 to 2099.
        day_first: put the day first, "the twenty-first of March".

    Raises:
        ValueError: if the year is another.
    """
    _check_range(day)
    *tens, last = number_to_english(day.day).split("-")
    number = "-".join([*tens, _ORDINALS.get(last, last + "th")])
    month, (century, rest) = _ENGLISH_MONTHS[day.month - 1], divmod(day.year, 100)
    if century == 20 and rest < 10:
        year = number_to_english(day.year)
    elif not rest:
        year = f"{number_to_english(century)} hundred"
    else:
        oh = "oh " if rest < 10 else ""
        year = f"{number_to_english(century)} {oh}{number_to_english(rest)}"
    words = f"the {number} of {month}" if day_first else f"{month} {number}"
    return f"{_ENGLISH_DAYS[day.weekday()]}, {words}, {year}"


# --- Spanish -----------------------------------------------------------------------------------

_SPANISH = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
    "dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro "
    "veinticinco veintiséis veintisiete veintiocho veintinueve"
).split()
_SPANISH_TENS = "treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_SPANISH_HUNDREDS = (
    "ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos "
    "novecientos"
).split()
_SPANISH_DAYS = "lunes martes miércoles jueves viernes sábado domingo".split()
_SPANISH_MONTHS = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
).split()


def number_to_spanish(n: int) -> str:
    """Return a number in Spanish words: 2,342 is "dos mil trescientos cuarenta y dos".

    Raises:
        ValueError: if it is below 0 or above 999,999.
    """
    _check_range(n)
    if n < 30:
        return _SPANISH[n]
    if n < 100:
        tens, ones = _SPANISH_TENS[n // 10 - 3], n % 10
        return f"{tens} y {_SPANISH[ones]}" if ones else tens
    if n == 100:
        return "cien"
    if n < 1000:
        words, rest = _SPANISH_HUNDREDS[n // 100 - 1], n % 100
    else:  # "mil" alone for one of them, and "uno" shortened before it
        thousands, rest = number_to_spanish(n // 1000).replace("veintiuno", "veintiún"), n % 1000
        words = "mil" if n < 2000 else re.sub("uno$", "un", thousands) + " mil"
    return f"{words} {number_to_spanish(rest)}" if rest else words


def date_to_spanish(day: date) -> str:
    """Return a date in Spanish: "miércoles, veintiuno de marzo de dos mil doce".

    Raises:
        ValueError: if the year is not one from 1800 to 2099.
    """
    _check_range(day)
    number = "primero" if day.day == 1 else number_to_spanish(day.day)
    words = f"{number} de {_SPANISH_MONTHS[day.month - 1]} de {number_to_spanish(day.year)}"
    return f"{_SPANISH_DAYS[day.weekday()]}, {words}"


# --- Pairs -------------------------------------------------------------------------------------


def make_number_pairs(num_pairs: int, seed: int = 0) -> list[Pair]:
    """Return pairs of an English sentence and the Spanish one of the same meaning, all different.

    Half are numbers of up to six digits, each length as often as the others while there are any
    left; half are dates of the years 1800 to 2099, in one of the two orders that English has. No
    number and no day comes twice, so whatever is cut off the list is never seen in the rest:

        pairs = make_number_pairs(10_000)
        learned, held_out = pairs[:-500], pairs[-500:]

    Args:
        num_pairs: how many pairs.
        seed: others for another; the same seed begins with the same pairs.

    Returns:
        The pairs, in an order drawn at random.

    Raises:
        ValueError: if there are not so many days and numbers, or `num_pairs` is negative.
    """
    first, last = date(YEAR_RANGE[0], 1, 1).toordinal(), date(YEAR_RANGE[1], 12, 31).toordinal()
    most = last - first + 1
    if not 0 <= num_pairs <= most:
        raise ValueError(f"There are from 0 to {most:,} pairs, not {num_pairs:,}.")
    draw = random.Random(seed)
    pairs: dict[int | date, Pair] = {}
    while len(pairs) < num_pairs:
        if draw.random() < 0.5:
            n = draw.randrange(10 ** draw.randint(1, MAX_DIGITS))
            pairs.setdefault(n, (number_to_english(n), number_to_spanish(n)))
        else:
            day = date.fromordinal(draw.randint(first, last))
            english = date_to_english(day, day_first=draw.random() < 0.5)
            pairs.setdefault(day, (english, date_to_spanish(day)))
    return list(pairs.values())


def _check_range(value: int | date) -> None:
    """Refuse numbers and days that have no words here."""
    if isinstance(value, date) and not YEAR_RANGE[0] <= value.year <= YEAR_RANGE[1]:
        first, last = YEAR_RANGE
        raise ValueError(f"There are words for dates from {first} to {last}, not of {value.year}.")
    if isinstance(value, int) and not 0 <= value <= MAX_NUMBER:
        raise ValueError(f"There are words for numbers from 0 to {MAX_NUMBER:,}, not {value:,}.")
