"""Whole texts in six languages: what stands above the strings reaches the tab."""

import pytest

from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.fretboard import (
    DOUBLE_DROP_D,
    DROP_D,
    HALF_STEP_DOWN,
    OPEN_D,
    OPEN_G,
    STANDARD,
    Tuning,
)

ROWS = "|-0---2-|\n" + "|-------|\n" * 5
WHOLE_STEP_DOWN = Tuning((62, 57, 53, 48, 43, 38))
THREE_DOWN = Tuning((61, 56, 52, 47, 42, 37))
FOUR_DOWN = Tuning((60, 55, 51, 46, 41, 36))
THIRD_AT_F_SHARP = Tuning((64, 59, 54, 50, 45, 40))

# Lines above the strings; then the tuning, capo, meter, tempo and title that they state.
TEXTS = [
    # German
    (
        "Titel: Lied|Stimmung: E A D G H E|Takt: 3/4 und ruhig|Viertel = 96",
        *(STANDARD, 0, (3, 4), 96, "Lied"),
    ),
    ("Gestimmt: D A D G H E|Kapo 3. Bund|Achtel = 90", DROP_D, 3, None, 45, ""),
    ("Stimmung: einen Halbton tiefer|Kapodaster im 2. Bund", HALF_STEP_DOWN, 2, None, None, ""),
    ("Gitarre: einen halben Ton tiefer gestimmt|Halbe = 60", HALF_STEP_DOWN, 0, None, 120, ""),
    ("Stimmung: einen Ganzton tiefer|mit Kapo am V. Bund", WHOLE_STEP_DOWN, 5, None, None, ""),
    ("Stimmung: ganzen Ton tiefer", WHOLE_STEP_DOWN, 0, None, None, ""),
    ("6. Saite auf D|punktiert: dotted quarter = 40", DROP_D, 0, None, 60, ""),
    ("Drop D|Stimmung: normal", STANDARD, 0, None, None, ""),
    ("Kapo: Bund 4", STANDARD, 4, None, None, ""),
    ("Kapo auf 3", STANDARD, 3, None, None, ""),
    # French
    ("Accordée un ton plus bas|Capo: case 4", WHOLE_STEP_DOWN, 4, None, None, ""),
    ("corde: 6e corde en ré|Capo: frette 5", STANDARD, 5, None, None, ""),
    ("6e corde en ré", DROP_D, 0, None, None, ""),
    (
        "Titre : Chanson|Accordage : Ré La Ré Sol Si Mi|Mesure : 6/8 assez vif|noire = 72",
        *(DROP_D, 0, (6, 8), 72, "Chanson"),
    ),
    (
        "Accordée un demi-ton plus bas|Capo à la 2e case|croche = 120",
        *(HALF_STEP_DOWN, 2, None, 60, ""),
    ),
    (
        "Accordage : un ton en dessous|blanche = 60|capodastre 4ème frette",
        *(WHOLE_STEP_DOWN, 4, None, 120, ""),
    ),
    ("6ème corde en ré|avec capo au 1er", DROP_D, 1, None, None, ""),
    ("demi ton au-dessous, accordé", HALF_STEP_DOWN, 0, None, None, ""),
    ("Drop D|Accordage standard", STANDARD, 0, None, None, ""),
    # Spanish
    (
        "Título: Copla|Afinación: Re La Re Sol Si Mi|Compás: 3/4 lento|negra = 80",
        *(DROP_D, 0, (3, 4), 80, "Copla"),
    ),
    ("Afinada medio tono más abajo|Cejilla en el 2º traste", HALF_STEP_DOWN, 2, None, None, ""),
    ("afinado un tono abajo|corchea = 90|con cejilla en III", WHOLE_STEP_DOWN, 3, None, 45, ""),
    ("6ª cuerda en Re|blanca = 50", DROP_D, 0, None, 100, ""),
    ("Drop D|Afinación estándar", STANDARD, 0, None, None, ""),
    ("3ª cuerda en Fa", Tuning((64, 59, 53, 50, 45, 40)), 0, None, None, ""),
    ("Capo: traste 3", STANDARD, 3, None, None, ""),
    # Italian
    ("accordata un tono sotto|Capo: tasto 2", WHOLE_STEP_DOWN, 2, None, None, ""),
    (
        "Titolo: Aria|Accordatura: Re La Re Sol Si Mi|Misura: 6/8 lenta|semiminima = 66",
        *(DROP_D, 0, (6, 8), 66, "Aria"),
    ),
    ("accordata mezzo tono sotto|Capotasto al II tasto", HALF_STEP_DOWN, 2, None, None, ""),
    ("Accordatura: un tono più basso|minima = 50", WHOLE_STEP_DOWN, 0, None, 100, ""),
    ("6a corda in Re|con capotasto sul 5", DROP_D, 5, None, None, ""),
    ("Drop D|Accordatura normale", STANDARD, 0, None, None, ""),
    # Portuguese
    ("um semitom abaixo, afinada|Capo: casa 3", HALF_STEP_DOWN, 3, None, None, ""),
    ("Capotraste na 6ª casa", STANDARD, 6, None, None, ""),
    ("Capo em 2", STANDARD, 2, None, None, ""),
    (
        "Afinação: Ré Lá Ré Sol Si Mi|Compasso: 2/4 lento|mínima = 44|Título: Fado",
        *(DROP_D, 0, (2, 4), 88, "Fado"),
    ),
    ("Afinação: meio tom abaixo|Braçadeira na 3ª casa", HALF_STEP_DOWN, 3, None, None, ""),
    ("afinada um tom abaixo|com pestana no 4|semínima = 70", WHOLE_STEP_DOWN, 4, None, 70, ""),
    ("6ª corda em Ré", DROP_D, 0, None, None, ""),
    ("Drop D|Afinação padrão", STANDARD, 0, None, None, ""),
    # English
    ("Title: Air|Tuning: Drop D|Time: 4/4|Tempo: 90", DROP_D, 0, (4, 4), 90, "Air"),
    ("Double drop D|Capo on 2nd fret|120 bpm", DOUBLE_DROP_D, 2, None, 120, ""),
    (
        "Open G tuning|Meter 12/8|crotchet = 50|place capo at the seventh fret",
        *(OPEN_G, 7, (12, 8), 50, ""),
    ),
    ("Open D (DADF#AD)|quavers = 90", OPEN_D, 0, None, 45, ""),
    ("Tune down 1/2 step|minim = 40", HALF_STEP_DOWN, 0, None, 80, ""),
    ("Drop D, half a step down", Tuning((63, 58, 54, 49, 44, 37)), 0, None, None, ""),
    ("tuned down a whole step|J = 100", WHOLE_STEP_DOWN, 0, None, 100, ""),
    ("Tuning: one and a half steps down", THREE_DOWN, 0, None, None, ""),
    ("Tuning: two steps lower", FOUR_DOWN, 0, None, None, ""),
    ("3rd string tuned to F#|w/ capo IX", THIRD_AT_F_SHARP, 9, None, None, ""),
    ("Tuning: Nashville", Tuning((64, 59, 67, 62, 57, 52)), 0, None, None, ""),
    ("Tuning: open Em|9/8, tempo 80", Tuning((64, 59, 55, 52, 47, 40)), 0, (9, 8), 80, ""),
    ("Tuning: open G minor", Tuning((62, 58, 55, 50, 43, 38)), 0, None, None, ""),
    ("Tuning: open A|3/4 time", Tuning((64, 61, 57, 52, 45, 40)), 0, (3, 4), None, ""),
    ("Tuning: Eb", STANDARD, 0, None, None, ""),
    ("Double drop D, 3 = F#", Tuning((62, 59, 54, 50, 45, 38)), 0, None, None, ""),
    ("Tune the low E string to D", DROP_D, 0, None, None, ""),
    ("6th string tuned to C", Tuning((64, 59, 55, 50, 45, 36)), 0, None, None, ""),
    ("A standard tuning", Tuning((57, 52, 48, 43, 38, 33)), 0, None, None, ""),
    ("E flat tuning", HALF_STEP_DOWN, 0, None, None, ""),
    ("E\u266d tuning|Capo on the 4th fret", HALF_STEP_DOWN, 4, None, None, ""),
    ("Tuning: Eb Ab Db Gb Bb Eb (half a step down)", HALF_STEP_DOWN, 0, None, None, ""),
    ("tuned down three half steps", THREE_DOWN, 0, None, None, ""),
    ("Tuning: 3 semitones lower|M.M. = 72", THREE_DOWN, 0, None, 72, ""),
    ("Tuning: Bb1 F2 Bb2 Eb3 G3 C4", Tuning((60, 55, 51, 46, 41, 34)), 0, None, None, ""),
    ("first string = D, second string = A", Tuning((62, 57, 55, 50, 45, 40)), 0, None, None, ""),
    ("Meter: 3/4 slowly|quarter notes = 80", STANDARD, 0, (3, 4), 80, ""),
    ("6/8 tempo 70", STANDARD, 0, (6, 8), 70, ""),
    ("third = F#, fifth = G", Tuning((64, 59, 54, 50, 43, 40)), 0, None, None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("head", "tuning", "capo", "meter", "tempo", "title"), TEXTS)
def test_what_a_text_states_reaches_its_tab(head, tuning, capo, meter, tempo, title):
    ((tab,), _) = parse_ascii_tabs(head.replace("|", "\n") + f"\n\n{ROWS}")
    assert (tab.tuning.open_pitches, tab.tuning.capo) == (tuning.open_pitches, capo)
    assert (tab.stated_time_signature, tab.stated_tempo_bpm) == (meter, tempo)
    assert not title or tab.title == title
