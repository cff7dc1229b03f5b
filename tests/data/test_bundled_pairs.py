"""The pairs that come with the package: said as the two languages say them, and never twice."""

from datetime import date

import pytest

from slp_transformer.data import make_number_pairs
from slp_transformer.data.bundled_pairs import (
    date_to_english,
    date_to_spanish,
    number_to_english,
    number_to_spanish,
)

BOTH = (number_to_english, number_to_spanish)
NUMBERS = {
    0: ("zero", "cero"),
    16: ("sixteen", "dieciséis"),
    21: ("twenty-one", "veintiuno"),
    100: ("one hundred", "cien"),
    515: ("five hundred and fifteen", "quinientos quince"),
    1000: ("one thousand", "mil"),
    2342: ("two thousand three hundred and forty-two", "dos mil trescientos cuarenta y dos"),
    21_000: ("twenty-one thousand", "veintiún mil"),
    100_000: ("one hundred thousand", "cien mil"),
    101_021: ("one hundred and one thousand and twenty-one", "ciento un mil veintiuno"),
    999_999: (
        "nine hundred and ninety-nine thousand nine hundred and ninety-nine",
        "novecientos noventa y nueve mil novecientos noventa y nueve",
    ),
}


@pytest.mark.parametrize("n", NUMBERS)
def test_numbers_are_said_as_people_say_them(n):
    assert (number_to_english(n), number_to_spanish(n)) == NUMBERS[n]


@pytest.mark.parametrize("language", BOTH)
def test_no_two_numbers_sound_alike(language):
    numbers = [*range(3000), *range(3000, 1_000_000, 1013)]
    assert len({language(n) for n in numbers}) == len(numbers)


DATES = {
    date(1984, 3, 21): (
        "Wednesday, March twenty-first, nineteen eighty-four",
        "Wednesday, the twenty-first of March, nineteen eighty-four",
        "miércoles, veintiuno de marzo de mil novecientos ochenta y cuatro",
    ),
    date(1900, 1, 1): (
        "Monday, January first, nineteen hundred",
        "Monday, the first of January, nineteen hundred",
        "lunes, primero de enero de mil novecientos",
    ),
    date(1807, 8, 12): (
        "Wednesday, August twelfth, eighteen oh seven",
        "Wednesday, the twelfth of August, eighteen oh seven",
        "miércoles, doce de agosto de mil ochocientos siete",
    ),
    date(2005, 9, 30): (
        "Friday, September thirtieth, two thousand and five",
        "Friday, the thirtieth of September, two thousand and five",
        "viernes, treinta de septiembre de dos mil cinco",
    ),
}


@pytest.mark.parametrize("day", DATES)
def test_dates_are_said_as_people_say_them(day):
    said = date_to_english(day), date_to_english(day, day_first=True), date_to_spanish(day)
    assert said == DATES[day]


def test_pairs_are_different_the_same_again_and_begin_alike():
    pairs = make_number_pairs(3011, seed=3)
    assert len(set(pairs)) == 3011
    assert len({spanish for _, spanish in pairs}) == 3011  # nothing is said twice in other words
    assert make_number_pairs(211, seed=3) == pairs[:211] != make_number_pairs(211, seed=5)


@pytest.mark.parametrize(
    ("say", "value", "sentence"),
    [
        *((say, n, "from 0 to 999,999, not") for say in BOTH for n in (-1, 1_000_000)),
        (date_to_english, date(2100, 1, 1), "from 1800 to 2099, not of 2100"),
        (date_to_spanish, date(2100, 1, 1), "from 1800 to 2099, not of 2100"),
        *((make_number_pairs, count, "from 0 to 109,573 pairs, not") for count in (-1, 200_000)),
    ],
)
def test_what_has_no_words_is_refused(say, value, sentence):
    with pytest.raises(ValueError, match=sentence):
        say(value)
