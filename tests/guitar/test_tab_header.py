"""Whole texts in six languages: what stands above the strings reaches the tab, and comes back."""

from dataclasses import replace

import pytest

from slp_guitar.ascii.reader import parse_ascii_tabs
from slp_guitar.ascii.writer import format_tab
from slp_guitar.fretboard import (
    DADGAD,
    DOUBLE_DROP_D,
    DROP_D,
    HALF_STEP_DOWN,
    OPEN_D,
    OPEN_G,
    STANDARD,
    Tuning,
)
from slp_guitar.tab_header import format_tuning_line, parse_tuning

ROWS = "|-0---2-|\n" + "|-------|\n" * 5
WHOLE_STEP_DOWN = Tuning((62, 57, 53, 48, 43, 38))
THREE_DOWN = Tuning((61, 56, 52, 47, 42, 37))
FOUR_DOWN = Tuning((60, 55, 51, 46, 41, 36))
FIVE_DOWN = Tuning((59, 54, 50, 45, 40, 35))
NO_CAPO = "a capo that is not taken; 'Capo: 2' on a line above the strings sets one"
NO_JUMP = "a jump (D.C., D.S.) that is not kept; write out what is played"
NO_TUNING = "a tuning that is not understood; 'Tuning: D A D G B E' states one, lowest first"


def stated(
    tuning=STANDARD, capo=0, meter=None, tempo=None, alone=(None, None), key=None,
    title="", style="", track="", says=(),
):  # fmt: skip
    """All that a text may state; what it states alone on a line above the strings is its bar's."""
    pitches = tuple(getattr(tuning, "open_pitches", tuning))
    return pitches, capo, meter, tempo, alone, key, title, style, track, list(says)


# Lines above the strings, and what they state.
TEXTS = {
    "several lines": {
        "Titel: Lied|Stimmung: E A D G H E|Takt: 3/4 und ruhig|Viertel = 96": stated(
            meter=(3, 4), tempo=96, alone=(None, 96), title="Lied"
        ),
        "Gestimmt: D A D G H E|Kapo 3. Bund|Achtel = 90": stated(
            tuning=DROP_D, capo=3, tempo=45, alone=(None, 45), title="Kapo 3. Bund"
        ),
        "Stimmung: einen Halbton tiefer|Kapodaster im 2. Bund": stated(
            tuning=HALF_STEP_DOWN, capo=2, title="Kapodaster im 2. Bund"
        ),
        "Gitarre: einen halben Ton tiefer gestimmt|Halbe = 60": stated(
            tuning=HALF_STEP_DOWN,
            tempo=120,
            alone=(None, 120),
            title="Gitarre: einen halben Ton tiefer gestimmt",
        ),
        "Stimmung: einen Ganzton tiefer|mit Kapo am V. Bund": stated(
            tuning=WHOLE_STEP_DOWN, capo=5, title="mit Kapo am V. Bund"
        ),
        "Stimmung: ganzen Ton tiefer": stated(tuning=WHOLE_STEP_DOWN),
        "6. Saite auf D|punktiert: dotted quarter = 40": stated(
            tuning=DROP_D, tempo=60, title="6. Saite auf D"
        ),
        "Drop D|Stimmung: normal": stated(title="Drop D"),
        "Kapo: Bund 4": stated(capo=4),
        "Kapo auf 3": stated(capo=3, title="Kapo auf 3"),
        "Accordée un ton plus bas|Capo: case 4": stated(
            tuning=WHOLE_STEP_DOWN, capo=4, title="Accordée un ton plus bas"
        ),
        "corde: 6e corde en ré|Capo: frette 5": stated(capo=5, title="corde: 6e corde en ré"),
        "6e corde en ré": stated(tuning=DROP_D, title="6e corde en ré"),
        "Titre : Chanson|Accordage : Ré La Ré Sol Si Mi|Mesure : 6/8 assez vif|noire = 72": stated(
            tuning=DROP_D, meter=(6, 8), tempo=72, alone=(None, 72), title="Chanson"
        ),
        "Accordée un demi-ton plus bas|Capo à la 2e case|croche = 120": stated(
            tuning=HALF_STEP_DOWN,
            capo=2,
            tempo=60,
            alone=(None, 60),
            title="Accordée un demi-ton plus bas",
        ),
        "Accordage : un ton en dessous|blanche = 60|capodastre 4ème frette": stated(
            tuning=WHOLE_STEP_DOWN, capo=4, tempo=120, alone=(None, 120), title="blanche = 60"
        ),
        "6ème corde en ré|avec capo au 1er": stated(
            tuning=DROP_D, capo=1, title="6ème corde en ré"
        ),
        "demi ton au-dessous, accordé": stated(
            tuning=HALF_STEP_DOWN, title="demi ton au-dessous, accordé"
        ),
        "Drop D|Accordage standard": stated(title="Drop D"),
        "Título: Copla|Afinación: Re La Re Sol Si Mi|Compás: 3/4 lento|negra = 80": stated(
            tuning=DROP_D, meter=(3, 4), tempo=80, alone=(None, 80), title="Copla"
        ),
        "Afinada medio tono más abajo|Cejilla en el 2º traste": stated(
            tuning=HALF_STEP_DOWN, capo=2, title="Afinada medio tono más abajo"
        ),
        "afinado un tono abajo|corchea = 90|con cejilla en III": stated(
            tuning=WHOLE_STEP_DOWN,
            capo=3,
            tempo=45,
            alone=(None, 45),
            title="afinado un tono abajo",
        ),
        "6ª cuerda en Re|blanca = 50": stated(
            tuning=DROP_D, tempo=100, alone=(None, 100), title="6ª cuerda en Re"
        ),
        "Drop D|Afinación estándar": stated(title="Drop D"),
        "3ª cuerda en Fa": stated(tuning=(64, 59, 53, 50, 45, 40), title="3ª cuerda en Fa"),
        "Capo: traste 3": stated(capo=3),
        "accordata un tono sotto|Capo: tasto 2": stated(
            tuning=WHOLE_STEP_DOWN, capo=2, title="accordata un tono sotto"
        ),
        "Titolo: Aria|Accordatura: Re La Re Sol Si Mi|Misura: 6/8 lenta|semiminima = 66": stated(
            tuning=DROP_D, meter=(6, 8), tempo=66, alone=(None, 66), title="Aria"
        ),
        "accordata mezzo tono sotto|Capotasto al II tasto": stated(
            tuning=HALF_STEP_DOWN, capo=2, title="accordata mezzo tono sotto"
        ),
        "Accordatura: un tono più basso|minima = 50": stated(
            tuning=WHOLE_STEP_DOWN, tempo=100, alone=(None, 100), title="minima = 50"
        ),
        "6a corda in Re|con capotasto sul 5": stated(tuning=DROP_D, capo=5, title="6a corda in Re"),
        "Drop D|Accordatura normale": stated(title="Drop D"),
        "um semitom abaixo, afinada|Capo: casa 3": stated(
            tuning=HALF_STEP_DOWN, capo=3, title="um semitom abaixo, afinada"
        ),
        "Capotraste na 6ª casa": stated(capo=6, title="Capotraste na 6ª casa"),
        "Capo em 2": stated(capo=2, title="Capo em 2"),
        "Afinação: Ré Lá Ré Sol Si Mi|Compasso: 2/4 lento|mínima = 44|Título: Fado": stated(
            tuning=DROP_D, meter=(2, 4), tempo=88, alone=(None, 88), title="Fado"
        ),
        "Afinação: meio tom abaixo|Braçadeira na 3ª casa": stated(
            tuning=HALF_STEP_DOWN, capo=3, title="Braçadeira na 3ª casa"
        ),
        "afinada um tom abaixo|com pestana no 4|semínima = 70": stated(
            tuning=WHOLE_STEP_DOWN,
            capo=4,
            tempo=70,
            alone=(None, 70),
            title="afinada um tom abaixo",
        ),
        "6ª corda em Ré": stated(tuning=DROP_D, title="6ª corda em Ré"),
        "Drop D|Afinação padrão": stated(title="Drop D"),
        "Title: Air|Tuning: Drop D|Time: 4/4|Tempo: 90": stated(
            tuning=DROP_D, meter=(4, 4), tempo=90, alone=((4, 4), 90), title="Air"
        ),
        "Double drop D|Capo on 2nd fret|120 bpm": stated(
            tuning=DOUBLE_DROP_D, capo=2, tempo=120, alone=(None, 120), title="Double drop D"
        ),
        "Open G tuning|Meter 12/8|crotchet = 50|place capo at the seventh fret": stated(
            tuning=OPEN_G,
            capo=7,
            meter=(12, 8),
            tempo=50,
            alone=((12, 8), 50),
            title="Open G tuning",
        ),
        "Open D (DADF#AD)|quavers = 90": stated(
            tuning=OPEN_D, tempo=45, alone=(None, 45), title="Open D (DADF#AD)"
        ),
        "Tune down 1/2 step|minim = 40": stated(
            tuning=HALF_STEP_DOWN, tempo=80, alone=(None, 80), title="Tune down 1/2 step"
        ),
        "Drop D, half a step down": stated(
            tuning=(63, 58, 54, 49, 44, 37), title="Drop D, half a step down"
        ),
        "tuned down a whole step|J = 100": stated(
            tuning=WHOLE_STEP_DOWN, tempo=100, alone=(None, 100), title="tuned down a whole step"
        ),
        "Tuning: one and a half steps down": stated(tuning=THREE_DOWN),
        "Tuning: two steps lower": stated(tuning=FOUR_DOWN),
        "3rd string tuned to F#|w/ capo IX": stated(
            tuning=(64, 59, 54, 50, 45, 40), capo=9, title="3rd string tuned to F#"
        ),
        "Tuning: Nashville": stated(tuning=(64, 59, 67, 62, 57, 52)),
        "Tuning: open Em|9/8, tempo 80": stated(
            tuning=(64, 59, 55, 52, 47, 40), meter=(9, 8), tempo=80, title="9/8, tempo 80"
        ),
        "Tuning: open G minor": stated(tuning=(62, 58, 55, 50, 43, 38)),
        "Tuning: open A|3/4 time": stated(
            tuning=(64, 61, 57, 52, 45, 40), meter=(3, 4), title="3/4 time"
        ),
        "Tuning: Eb": stated(says=[NO_TUNING]),
        "Double drop D, 3 = F#": stated(
            tuning=(62, 59, 54, 50, 45, 38), title="Double drop D, 3 = F#"
        ),
        "Tune the low E string to D": stated(tuning=DROP_D, title="Tune the low E string to D"),
        "6th string tuned to C": stated(
            tuning=(64, 59, 55, 50, 45, 36), title="6th string tuned to C"
        ),
        "A standard tuning": stated(tuning=(57, 52, 48, 43, 38, 33), title="A standard tuning"),
        "E flat tuning": stated(tuning=HALF_STEP_DOWN, title="E flat tuning"),
        "E♭ tuning|Capo on the 4th fret": stated(tuning=HALF_STEP_DOWN, capo=4, title="E♭ tuning"),
        "Tuning: Eb Ab Db Gb Bb Eb (half a step down)": stated(tuning=HALF_STEP_DOWN),
        "tuned down three half steps": stated(
            tuning=THREE_DOWN, title="tuned down three half steps"
        ),
        "Tuning: 3 semitones lower|M.M. = 72": stated(
            tuning=THREE_DOWN, tempo=72, alone=(None, 72)
        ),
        "Tuning: Bb1 F2 Bb2 Eb3 G3 C4": stated(tuning=(60, 55, 51, 46, 41, 34)),
        "first string = D, second string = A": stated(
            tuning=(62, 57, 55, 50, 45, 40), title="first string = D, second string = A"
        ),
        "Meter: 3/4 slowly|quarter notes = 80": stated(
            meter=(3, 4), tempo=80, alone=(None, 80), title="Meter: 3/4 slowly"
        ),
        "6/8 tempo 70": stated(meter=(6, 8), tempo=70, title="6/8 tempo 70"),
        "third = F#, fifth = G": stated(
            tuning=(64, 59, 54, 50, 43, 40), title="third = F#, fifth = G"
        ),
    },
    "tunings": {
        "tuning: DADGBE": stated(tuning=DROP_D),
        "D A D G B E": stated(tuning=DROP_D),
        "Drop D": stated(tuning=DROP_D, title="Drop D"),
        "in dropped-D tuning": stated(tuning=DROP_D, title="in dropped-D tuning"),
        "6th = D": stated(tuning=DROP_D),
        "6th string: tuned to D": stated(tuning=DROP_D, title="6th string: tuned to D"),
        "The sixth string is tuned down to D.": stated(
            tuning=DROP_D, title="The sixth string is tuned down to D."
        ),
        "Low E tuned to D": stated(tuning=DROP_D, title="Low E tuned to D"),
        "Tune low E down to D": stated(tuning=DROP_D, title="Tune low E down to D"),
        "Tuning: E4 B3 G3 D3 A2 D2": stated(tuning=DROP_D),
        "Tuning - D A D F# B E   time - 4/4": stated(
            tuning=(64, 59, 54, 50, 45, 38), meter=(4, 4), title="Tuning - D A D F# B E time - 4/4"
        ),
        "(6) = D, (3) = F#": stated(tuning=(64, 59, 54, 50, 45, 38)),
        "Tuning: D-G-D-G-c-d#": stated(tuning=(63, 60, 55, 50, 43, 38)),
        "TUNING: Eb Ab Db Gb Bb Eb": stated(tuning=HALF_STEP_DOWN),
        "tuned down half a step: 1/2 step down": stated(
            tuning=HALF_STEP_DOWN, title="tuned down half a step: 1/2 step down"
        ),
        "Tune all strings down 1/2 step": stated(
            tuning=HALF_STEP_DOWN, title="Tune all strings down 1/2 step"
        ),
        "Tune down half a step": stated(tuning=HALF_STEP_DOWN, title="Tune down half a step"),
        "Tuning: Eb standard": stated(tuning=HALF_STEP_DOWN),
        "tuned to Eb": stated(tuning=HALF_STEP_DOWN, title="tuned to Eb"),
        "All guitars tuned to Eb.": stated(tuning=HALF_STEP_DOWN, title="All guitars tuned to Eb."),
        "Tuning: E A D G B e": stated(),
        "tunning : EBGDAE": stated(),
        "Standard tuning": stated(title="Standard tuning"),
        "tuning: standard": stated(),
        "DADGAD": stated(tuning=DADGAD, title="DADGAD"),
        "Double drop D tuning": stated(tuning=DOUBLE_DROP_D, title="Double drop D tuning"),
        "Drop C": stated(tuning=(62, 57, 53, 48, 43, 36), title="Drop C"),
        "Drop C tuning": stated(tuning=(62, 57, 53, 48, 43, 36), title="Drop C tuning"),
        "Tuning: Drop C# (C# G# C# F# A# D#)": stated(tuning=(63, 58, 54, 49, 44, 37)),
        "Drop Db": stated(tuning=(63, 58, 54, 49, 44, 37), title="Drop Db"),
        "Tuning: Drop B": stated(tuning=(61, 56, 52, 47, 42, 35)),
        "tuning: B F# B E G# C#": stated(tuning=(61, 56, 52, 47, 42, 35)),
        "dropped A": stated(tuning=(59, 54, 50, 45, 40, 33), title="dropped A"),
        "tuning: A E A D F# B": stated(tuning=(59, 54, 50, 45, 40, 33)),
        "double drop C": stated(tuning=(60, 57, 53, 48, 43, 36), title="double drop C"),
        "tune down 1 whole step": stated(tuning=WHOLE_STEP_DOWN, title="tune down 1 whole step"),
        "Tune down a whole step": stated(tuning=WHOLE_STEP_DOWN, title="Tune down a whole step"),
        "tuned down one step": stated(tuning=WHOLE_STEP_DOWN, title="tuned down one step"),
        "Tuning: 1 step down": stated(tuning=WHOLE_STEP_DOWN),
        "Whole step down": stated(tuning=WHOLE_STEP_DOWN, title="Whole step down"),
        "Tuning: full step down": stated(tuning=WHOLE_STEP_DOWN),
        "tuned down two half steps": stated(
            tuning=WHOLE_STEP_DOWN, title="tuned down two half steps"
        ),
        "D standard": stated(tuning=WHOLE_STEP_DOWN, title="D standard"),
        "Tune down 1 1/2 steps": stated(tuning=THREE_DOWN, title="Tune down 1 1/2 steps"),
        "tuned one and a half steps down": stated(
            tuning=THREE_DOWN, title="tuned one and a half steps down"
        ),
        "Tuned down to D flat": stated(tuning=THREE_DOWN, title="Tuned down to D flat"),
        "Tune down 2 whole steps": stated(tuning=FOUR_DOWN, title="Tune down 2 whole steps"),
        "C standard tuning": stated(tuning=FOUR_DOWN, title="C standard tuning"),
        "Tuning: Open G": stated(tuning=OPEN_G),
        "Open D": stated(tuning=OPEN_D, title="Open D"),
        "open-E tuning": stated(tuning=(64, 59, 56, 52, 47, 40), title="open-E tuning"),
        "Tuned to open C": stated(tuning=(64, 60, 55, 48, 43, 36), title="Tuned to open C"),
        "Tuning: open Dm": stated(tuning=(62, 57, 53, 50, 45, 38)),
        "B Standard": stated(tuning=FIVE_DOWN, title="B Standard"),
        "tuning: B E A D F# B": stated(tuning=FIVE_DOWN),
        "tuning: B F# D A E B": stated(tuning=FIVE_DOWN),
        "Tune the low E string to C": stated(
            tuning=(64, 59, 55, 50, 45, 36), title="Tune the low E string to C"
        ),
        "tuning: F C F Bb D G": stated(tuning=(55, 50, 46, 41, 36, 29)),
        "tuning: C G D A E G": stated(tuning=(67, 64, 57, 50, 43, 36)),
        "tuning: D A D D A D": stated(tuning=(62, 57, 50, 50, 45, 38)),
        "tuning: F# B E A C# F#": stated(tuning=(66, 61, 57, 52, 47, 42)),
        "tuning: Bb1 F2 Bb2 Eb3 G3 C4": stated(tuning=(60, 55, 51, 46, 41, 34)),
        "tuning: E3 A3 D4 G4 B3 E4": stated(tuning=(64, 59, 67, 62, 57, 52)),
    },
    "tunings in other languages": {
        "Open D (DADF#AD)": stated(tuning=OPEN_D, title="Open D (DADF#AD)"),
        "Low E down to D": stated(tuning=DROP_D, title="Low E down to D"),
        "6th string to D": stated(tuning=DROP_D, title="6th string to D"),
        "6. Saite auf D": stated(tuning=DROP_D, title="6. Saite auf D"),
        "6ª en Re": stated(tuning=DROP_D),
        "Stimmung: D A D G H E": stated(tuning=DROP_D),
        "Afinación: Re La Re Sol Si Mi": stated(tuning=DROP_D),
        "Accordage : Ré La Ré Sol La Ré": stated(tuning=DADGAD),
        "Accordatura: D A D G A D": stated(tuning=DADGAD),
        "Afinação: DADGAD": stated(tuning=DADGAD),
        "Stimmung: Standard": stated(),
        "Afinación: Mi La Re Sol Si Mi (medio tono abajo)": stated(tuning=HALF_STEP_DOWN),
        "Stimmung: einen Halbton tiefer": stated(tuning=HALF_STEP_DOWN),
        "Accordage : un demi-ton plus bas": stated(tuning=HALF_STEP_DOWN),
        "Accordatura: mezzo tono sotto": stated(tuning=HALF_STEP_DOWN),
        "Afinação: um tom abaixo": stated(tuning=WHOLE_STEP_DOWN),
        "Tuning: EADGBE, half step down": stated(tuning=HALF_STEP_DOWN),
        "Tuning: Eb Ab Db Gb Bb Eb (half step down)": stated(tuning=HALF_STEP_DOWN),
        "I tuned the guitar to a drone": stated(title="I tuned the guitar to a drone"),
    },
    "what states no tuning": {
        "E   A   D   G   B   E": stated(),
        "a decade ago": stated(title="a decade ago"),
        "measure 11 - 6th note changed to B": stated(title="measure 11 - 6th note changed to B"),
        "play the F (6th string, 1st fret)": stated(title="play the F (6th string, 1st fret)"),
        "move the bass from the 6th to D on the 5th, as in the tune": stated(
            title="move the bass from the 6th to D on the 5th, as in the tune"
        ),
        "time: 6/8": stated(meter=(6, 8), alone=((6, 8), None)),
        "tuning: B E A D G B E": stated(says=[NO_TUNING]),
        "then drop a note": stated(title="then drop a note"),
        "let the open D string ring": stated(title="let the open D string ring"),
        "slide down a whole step": stated(title="slide down a whole step"),
        "play open G, then C": stated(title="play open G, then C"),
        "Bb1 F2 Bb2 Eb3 G3 C4": stated(),
        "tuned to perfection": stated(title="tuned to perfection", says=[NO_TUNING]),
        "keep the thumb low E to D": stated(title="keep the thumb low E to D"),
    },
    "capos": {
        "Capo: 2": stated(capo=2),
        "With capo on 2": stated(capo=2, title="With capo on 2"),
        "Use a capo on 2nd fret": stated(capo=2, title="Use a capo on 2nd fret"),
        "2nd fret capo": stated(capo=2, title="2nd fret capo"),
        "Tuning: Standard, Capo 2nd": stated(capo=2),
        "Capo - 3rd fret": stated(capo=3, title="Capo - 3rd fret"),
        "tuning: EADGBE   capo III": stated(capo=3),
        "Put capo on 3rd fret": stated(capo=3, title="Put capo on 3rd fret"),
        "Key: G, 3rd fret capo": stated(capo=3),
        "capo on the third fret": stated(capo=3, title="capo on the third fret"),
        "(capo 4th fret)": stated(capo=4, title="(capo 4th fret)"),
        "Capo: fifth fret": stated(capo=5),
        "capo on 7": stated(capo=7, title="capo on 7"),
        "Capo on fret 7": stated(capo=7, title="Capo on fret 7"),
        "no capo": stated(title="no capo"),
        "Capo: none": stated(),
        "3 verses, then the capo comes off": stated(title="3 verses, then the capo comes off"),
        "second verse without the capo": stated(title="second verse without the capo"),
        "It can also be played with a capo on the 2nd fret.": stated(
            title="It can also be played with a capo on the 2nd fret.", says=[NO_CAPO]
        ),
        "[the video is in E - use capo on the 4th fret]": stated(
            title="[the video is in E - use capo on the 4th fret]", says=[NO_CAPO]
        ),
    },
    "time signatures": {
        "tuning: EADGBE   key: G   time: 2/4   tempo: 76 bpm": stated(meter=(2, 4), tempo=76),
        "time = 4/4     speed = 63 bpm": stated(
            meter=(4, 4), tempo=63, title="time = 4/4 speed = 63 bpm"
        ),
        "3/4 time": stated(meter=(3, 4), title="3/4 time"),
        "Takt: 6/8": stated(meter=(6, 8), alone=((6, 8), None), title="Takt: 6/8"),
        "Time: 4/4, Standard Tuning, 70 bpm": stated(meter=(4, 4), tempo=70),
        "Tempo: 2/4, moderato": stated(meter=(2, 4)),
        "4/4, 120": stated(meter=(4, 4), tempo=120, alone=(None, 120)),
        "3/4 (slow)": stated(meter=(3, 4), title="3/4 (slow)"),
        "Suite I, BWV 1007, 3/4": stated(meter=(3, 4), title="Suite I, BWV 1007, 3/4"),
        "time: 3/8,2/4,3/8": stated(),
        "written 3/4/1998": stated(title="written 3/4/1998"),
        "played in 5 of 4 bars": stated(title="played in 5 of 4 bars"),
    },
    "tempos": {
        "key: C   tempo: 100 bpm (quarter notes)": stated(tempo=100),
        "J=120": stated(tempo=120, alone=(None, 120)),
        "4/4, 96": stated(meter=(4, 4), tempo=96, alone=(None, 96)),
        "Tempo: Viertel = 80": stated(tempo=80, alone=(None, 80)),
        "Noire = 60": stated(tempo=60, alone=(None, 60), title="Noire = 60"),
        "♩ = 72": stated(tempo=72, alone=(None, 72)),
        "dotted quarter = 60": stated(tempo=90, alone=(None, 90), title="dotted quarter = 60"),
        "half=50": stated(tempo=100, alone=(None, 100), title="half=50"),
        "Tempo: moderately slow (72)": stated(tempo=72, alone=(None, 72)),
        "Tempo: 12/8": stated(meter=(12, 8), alone=((12, 8), None)),
        "tempo and key change at bar 31": stated(title="tempo and key change at bar 31"),
        "suggested tempo: 40-50 bpm (half notes)": stated(
            title="suggested tempo: 40-50 bpm (half notes)"
        ),
        "composed in 1820": stated(title="composed in 1820"),
    },
    "styles": {
        "style: Blues|Some tune": stated(title="Some tune", style="Blues"),
        "Genre: Bossa  nova |Some tune": stated(title="Some tune", style="Bossa nova"),
        "  STYLE = rock|Some tune": stated(title="Some tune", style="rock"),
        "style:|Some tune": stated(title="Some tune"),
        "style: none|Some tune": stated(title="Some tune"),
        "style: <b>|Some tune": stated(title="Some tune"),
        "genre: a sentence that goes on for longer than a name|Some tune": stated(
            title="Some tune"
        ),
        "Style council": stated(title="Style council"),
        "In the style of: me": stated(title="In the style of: me"),
        "title: style: Blues": stated(title="style: Blues"),
    },
    "more": {
        "time: 3/16": stated(meter=(3, 16), alone=((3, 16), None)),
        "time: 3/32": stated(meter=(3, 32), alone=((3, 32), None)),
        "time: 2/1": stated(meter=(2, 1), alone=((2, 1), None)),
        "fourth string = C": stated(tuning=(64, 59, 55, 48, 45, 40), title="fourth string = C"),
        "tuned to Eb tuning": stated(tuning=HALF_STEP_DOWN, title="tuned to Eb tuning"),
        "Gtrs: two steps down": stated(tuning=FOUR_DOWN, title="Gtrs: two steps down"),
        "all guitars two steps down": stated(tuning=FOUR_DOWN, title="all guitars two steps down"),
        "they are two steps down": stated(title="they are two steps down"),
        "Tuning: E2 A2 A2 E2 A2 E2": stated(tuning=(40, 45, 40, 45, 45, 40)),
        "tuned up somewhat": stated(title="tuned up somewhat", says=[NO_TUNING]),
        "tuned down somehow": stated(title="tuned down somehow", says=[NO_TUNING]),
        "special tuning: mine": stated(title="special tuning: mine", says=[NO_TUNING]),
        "alternate tuning: mine": stated(title="alternate tuning: mine", says=[NO_TUNING]),
        "my tuning: his": stated(title="my tuning: his", says=[NO_TUNING]),
        "raise the B string": stated(title="raise the B string", says=[NO_TUNING]),
        "style: nonesuch": stated(style="nonesuch"),
        "style: a name of exactly forty characters, this": stated(
            style="a name of exactly forty characters, this"
        ),
        "style: a name of exactly forty-one characters ok": stated(),
        "genre= Latin": stated(style="Latin"),
        "Styles: two": stated(title="Styles: two"),
        "style: Drop D|tuning: open G": stated(tuning=OPEN_G, style="Drop D"),
        "track: Lead|key: G": stated(key="G", track="Lead"),
        "track: Rhythm  |track: other": stated(track="Rhythm"),
        "key: Bm|Air": stated(key="Bm", title="Air"),
        "key: H|Air": stated(title="Air"),
        "tempo: 90|metre: 3/4": stated(meter=(3, 4), tempo=90, alone=((3, 4), 90)),
        "tempo: 2000": stated(tempo=1000, alone=(None, 1000)),
        "tempo: 0": stated(tempo=1, alone=(None, 1)),
        "D.C. al Fine": stated(title="D.C. al Fine", says=[NO_JUMP]),
        "D.S. al Coda, slowly and with feeling, as at the beginning": stated(
            title="D.S. al Coda, slowly and with feeling, as at the beginning"
        ),
        "da capo": stated(title="da capo", says=[NO_JUMP]),
        "dal segno  al fine": stated(title="dal segno al fine", says=[NO_JUMP]),
        "D.C. what follows": stated(title="D.C. what follows"),
        "Capo on the moon, fret unknown": stated(
            title="Capo on the moon, fret unknown", says=[NO_CAPO]
        ),
        "Capo 2, capo 4": stated(capo=2, title="Capo 2, capo 4", says=[NO_CAPO]),
        "capo XIII": stated(title="capo XIII", says=[NO_CAPO]),
        "Capo 13": stated(title="Capo 13", says=[NO_CAPO]),
        "capo 12": stated(capo=12, title="capo 12"),
        "Capo twelfth fret": stated(capo=12, title="Capo twelfth fret"),
        "capo on the eleventh fret": stated(capo=11, title="capo on the eleventh fret"),
        "da capo 2 fret": stated(title="da capo 2 fret"),
        "Tuning: unknown": stated(says=[NO_TUNING]),
        "Tune the A string somewhere": stated(
            title="Tune the A string somewhere", says=[NO_TUNING]
        ),
        "Lower B to something": stated(title="Lower B to something", says=[NO_TUNING]),
        "low E goes to wherever": stated(title="low E goes to wherever", says=[NO_TUNING]),
        "guitar tuning: custom": stated(title="guitar tuning: custom", says=[NO_TUNING]),
        "alternate tunings: none": stated(title="alternate tunings: none"),
        "Tuning: EADGB": stated(says=[NO_TUNING]),
        "Tuning: E A D G B E A": stated(says=[NO_TUNING]),
        "Tuning: E A D G B": stated(says=[NO_TUNING]),
        "Tuning: E2 A2 D3 G3 B3": stated(),
        "Tuning: B1 E2 A2 D3 G3 B3 E4": stated(),
        "Tuning: E4 A4": stated(says=[NO_TUNING]),
        "Tuning: C2 D2 E2 F2 (low to high)": stated(),
        "Tuning: E4 B3 G3 D3 A2 E2 (lowest to highest)": stated(tuning=(40, 45, 50, 55, 59, 64)),
        "Tuning: G4 C4 E4 A4": stated(),
        "Tuning: DGCFAD": stated(tuning=WHOLE_STEP_DOWN),
        "tuning: C C C C C C": stated(says=[NO_TUNING]),
        "Tuning: A A A A A A": stated(says=[NO_TUNING]),
        "Nashville tuning": stated(tuning=(64, 59, 67, 62, 57, 52), title="Nashville tuning"),
        "nashville skyline": stated(title="nashville skyline"),
        "open g": stated(tuning=OPEN_G, title="open g"),
        "Open F tuning": stated(title="Open F tuning"),
        "open C minor tuning": stated(title="open C minor tuning"),
        "open B": stated(title="open B"),
        "drop e": stated(title="drop e", says=[NO_TUNING]),
        "Drop E": stated(title="Drop E", says=[NO_TUNING]),
        "Drop Ab": stated(tuning=(58, 53, 49, 44, 39, 32), title="Drop Ab"),
        "drop-D": stated(tuning=DROP_D, title="drop-D"),
        "dropped-D tuning, one step down": stated(
            tuning=(62, 57, 53, 48, 43, 36), title="dropped-D tuning, one step down"
        ),
        "dropped d": stated(tuning=DROP_D, title="dropped d"),
        "double-drop D, one step down": stated(
            tuning=(60, 57, 53, 48, 43, 36), title="double-drop D, one step down"
        ),
        "one step down": stated(tuning=WHOLE_STEP_DOWN, title="one step down"),
        "two steps down": stated(tuning=FOUR_DOWN, title="two steps down"),
        "the capo one half step down from there": stated(
            tuning=HALF_STEP_DOWN, title="the capo one half step down from there"
        ),
        "tuned 2 whole steps lower": stated(tuning=FOUR_DOWN, title="tuned 2 whole steps lower"),
        "1.5 steps down": stated(tuning=THREE_DOWN, title="1.5 steps down"),
        "tuned 1-1/2 steps lower": stated(tuning=THREE_DOWN, title="tuned 1-1/2 steps lower"),
        "half step lower": stated(tuning=HALF_STEP_DOWN, title="half step lower"),
        "down a full tone": stated(tuning=WHOLE_STEP_DOWN, title="down a full tone"),
        "3 half steps down": stated(tuning=THREE_DOWN, title="3 half steps down"),
        "tuned down three steps": stated(
            tuning=(58, 53, 49, 44, 39, 34), title="tuned down three steps"
        ),
        "down one and a half steps": stated(tuning=THREE_DOWN, title="down one and a half steps"),
        "Bb standard": stated(tuning=(58, 53, 49, 44, 39, 34), title="Bb standard"),
        "F standard": stated(tuning=(65, 60, 56, 51, 46, 41), title="F standard"),
        "G# standard tuning": stated(tuning=(68, 63, 59, 54, 49, 44), title="G# standard tuning"),
        "standard tuning, Eb": stated(title="standard tuning, Eb"),
        "tuned to G": stated(tuning=(67, 62, 58, 53, 48, 43), title="tuned to G"),
        "tuned to F flat": stated(title="tuned to F flat"),
        "guitars tuned down to D, thanks": stated(
            tuning=WHOLE_STEP_DOWN, title="guitars tuned down to D, thanks"
        ),
        "strings tuned to D.": stated(tuning=WHOLE_STEP_DOWN, title="strings tuned to D."),
        "tuned to D minor": stated(title="tuned to D minor", says=[NO_TUNING]),
        "6 = D": stated(tuning=DROP_D),
        "(6) -> D": stated(tuning=DROP_D),
        "2nd string down to A": stated(
            tuning=(64, 57, 55, 50, 45, 40), title="2nd string down to A"
        ),
        "low E string = C": stated(tuning=(64, 59, 55, 50, 45, 36), title="low E string = C"),
        "4th string up to E": stated(tuning=(64, 59, 55, 52, 45, 40), title="4th string up to E"),
        "1st string is tuned to an E": stated(title="1st string is tuned to an E"),
        "2nd string = Bb": stated(tuning=(64, 58, 55, 50, 45, 40), title="2nd string = Bb"),
        "6th = Eb": stated(tuning=(64, 59, 55, 50, 45, 39)),
        "6th=D 5th=G": stated(tuning=(64, 59, 55, 50, 43, 38)),
        "string 6 = D": stated(tuning=DROP_D, title="string 6 = D"),
        "7 = D": stated(),
        "the 6th string to D and back": stated(title="the 6th string to D and back"),
        "tuning: 6th string to D": stated(tuning=DROP_D),
        "Saite: 6. Saite auf D": stated(title="Saite: 6. Saite auf D"),
        "6. Saite im C": stated(title="6. Saite im C"),
        "5ª corda em Sol": stated(tuning=(64, 59, 55, 50, 43, 40), title="5ª corda em Sol"),
        "Guitar: capo 3": stated(capo=3, title="Guitar: capo 3"),
        "w/ capo 4": stated(capo=4, title="w/ capo 4"),
        "con capo 5": stated(capo=5, title="con capo 5"),
        "the capo 5": stated(capo=5, title="the capo 5"),
        "put a capo on fret 3": stated(capo=3, title="put a capo on fret 3"),
        "- capo 3": stated(capo=3, title="capo 3"),
        "(capo: 4)": stated(capo=4, title="(capo: 4)"),
        "[capo 4]": stated(capo=4, title="[capo 4]"),
        "Some tune, capo 3rd fret": stated(capo=3, title="Some tune, capo 3rd fret"),
        "Some tune - capo VII": stated(capo=7, title="Some tune - capo VII"),
        "a song  capo 5": stated(capo=5, title="a song capo 5"),
        "kapo im 3. bund": stated(capo=3, title="kapo im 3. bund"),
        "kapodaster am IV. Bund": stated(capo=4, title="kapodaster am IV. Bund"),
        "cejilla 2": stated(capo=2, title="cejilla 2"),
        "pestana na 3": stated(capo=3, title="pestana na 3"),
        "capodastre à la 2": stated(capo=2, title="capodastre à la 2"),
        "capo #3": stated(capo=3, title="capo #3"),
        "capo = 5": stated(capo=5, title="capo = 5"),
        "capo 2 1/2": stated(capo=2, title="capo 2 1/2"),
        "capo 22": stated(title="capo 22", says=[NO_CAPO]),
        "capo third": stated(capo=3, title="capo third"),
        "3. fret capo": stated(title="3. fret capo"),
        "3/4 tempo 80": stated(meter=(3, 4), tempo=80, title="3/4 tempo 80"),
        "4/4 @ 100": stated(meter=(4, 4), tempo=100, alone=(None, 100)),
        "6/8, 90": stated(meter=(6, 8), tempo=90, alone=(None, 90)),
        "2/4; lively": stated(meter=(2, 4), title="2/4; lively"),
        "12/8 - slow": stated(meter=(12, 8), title="12/8 - slow"),
        "7/8 at 100": stated(meter=(7, 8)),
        "10/4": stated(),
        "3/4": stated(meter=(3, 4), alone=((3, 4), None)),
        "time signature: 5/4": stated(meter=(5, 4), alone=((5, 4), None)),
        "signature 7/8": stated(meter=(7, 8), alone=((7, 8), None), title="signature 7/8"),
        "timing 6/8": stated(meter=(6, 8), alone=((6, 8), None), title="timing 6/8"),
        "time: 0/4": stated(),
        "time: 100/4": stated(meter=(100, 4), alone=((100, 4), None)),
        "time: 4/5": stated(),
        "time: 4/4/4": stated(),
        "Mesure: 2/2": stated(meter=(2, 2), alone=((2, 2), None), title="Mesure: 2/2"),
        "compasso 3/4": stated(meter=(3, 4), alone=((3, 4), None), title="compasso 3/4"),
        "misura 6/8": stated(meter=(6, 8), alone=((6, 8), None), title="misura 6/8"),
        "120bpm": stated(tempo=120, alone=(None, 120), title="120bpm"),
        "MM = 66": stated(tempo=66, alone=(None, 66)),
        "M.M. = 66": stated(tempo=66, alone=(None, 66)),
        "tempo = 66": stated(tempo=66, alone=(None, 66), title="tempo = 66"),
        "tempo: allegro 132": stated(tempo=132, alone=(None, 132)),
        "tempo 66/8": stated(meter=(66, 8), alone=((66, 8), None), title="tempo 66/8"),
        "bpm: 99": stated(tempo=99, alone=(None, 99), title="bpm: 99"),
        "tempo: 120-140": stated(tempo=120),
        "100-120 bpm": stated(tempo=100, alone=(None, 100), title="100-120 bpm"),
        "eighth = 120": stated(tempo=60, alone=(None, 60), title="eighth = 120"),
        "dotted half = 40": stated(tempo=120, alone=(None, 120), title="dotted half = 40"),
        "eighth . = 40": stated(tempo=30, alone=(None, 30), title="eighth . = 40"),
        "quaver = 80": stated(tempo=40, alone=(None, 40), title="quaver = 80"),
        "\\u266a = 160": stated(),
        "minims = 60": stated(tempo=120, alone=(None, 120), title="minims = 60"),
        "half notes = 50": stated(tempo=100, alone=(None, 100), title="half notes = 50"),
        "q = 80": stated(tempo=80, alone=(None, 80)),
        "1/4 = 80": stated(tempo=80, alone=(None, 80)),
        "achtel = 99": stated(tempo=50, alone=(None, 50), title="achtel = 99"),
        "semiminim = 44": stated(title="semiminim = 44"),
        "negra = 1000": stated(title="negra = 1000"),
        "measure = 60": stated(title="measure = 60"),
        "title: Drop D": stated(tuning=DROP_D, title="Drop D"),
        "Title = Song": stated(title="Song"),
        "Song: Lark": stated(title="Lark"),
        "piece: Étude": stated(title="Étude"),
        "Titel: Lied": stated(title="Lied"),
        "música: Fado": stated(title="Fado"),
        "canción: Copla": stated(title="Copla"),
        "*** Air ***": stated(title="Air"),
        "ab|Some tune": stated(title="Some tune"),
        "12 34|56": stated(),
        "tuning: E A D G B E|Air": stated(title="Air"),
        "tempo: 60|sign: Segno": stated(tempo=60, alone=(None, 60)),
        "endings: 1 2|Air": stated(title="Air"),
        "repeat: begins here|Air": stated(title="Air"),
    },
}


def read(text):
    ((tab,), problems) = parse_ascii_tabs(text)
    bar, said = tab.bars[0], [problem.message for problem in problems]
    timed = tab.stated_time_signature, tab.stated_tempo_bpm
    alone, title = (bar.time_signature, bar.tempo_bpm), " ".join(tab.title.split())
    own = *timed, alone, bar.key, title, tab.style, tab.track, said
    return tab, (tab.tuning.open_pitches, tab.tuning.capo, *own)


@pytest.mark.parametrize("kind", TEXTS)
def test_what_a_text_states_reaches_its_tab_and_comes_back(kind):
    wanted = TEXTS[kind]
    found = {text: read(text.replace("|", "\n") + f"\n\n{ROWS}") for text in wanted}
    assert {text: own for text, (_, own) in found.items() if own != wanted[text]} == {}
    for tab, before in found.values():
        _, back = read(format_tab(tab, with_time_lines=True))
        assert (*back[:2], *back[4:9]) == (*before[:2], *before[4:9])


# Open strings, and the line that states them: octaves where letters would say another guitar.
WRITTEN = {
    (64, 59, 55, 50, 45, 40): "tuning: E A D G B E",
    (63, 58, 54, 49, 44, 39): "tuning: Eb Ab Db Gb Bb Eb",
    (64, 59, 54, 50, 45, 40): "tuning: E A D F# B E",
    (66, 61, 57, 52, 47, 42): "tuning: Gb B E A Db Gb",
    (59, 54, 50, 45, 40, 35): "tuning: B E A D F# B",
    (52, 47, 43, 38, 33, 28): "tuning: E1 A1 D2 G2 B2 E3",
    (64, 59, 67, 62, 57, 52): "tuning: E3 A3 D4 G4 B3 E4",
    (40, 45, 50, 55, 59, 64): "tuning (low to high): E4 B3 G3 D3 A2 E2",
    (43, 38, 33, 28): "tuning: E1 A1 D2 G2",
    (43, 38, 33, 28, 23): "tuning: B0 E1 A1 D2 G2",
    (69, 64, 60, 67): "tuning: G4 C4 E4 A4",
    (64, 59, 55, 50, 45, 40, 35): "tuning: B1 E2 A2 D3 G3 B3 E4",
    (11, 6, 2, -3, -8, -13): "tuning: B-3 E-2 A-2 D-1 F#-1 B-1",
}


@pytest.mark.parametrize("pitches", WRITTEN)
def test_a_guitar_is_written_as_a_line_that_says_it(pitches):
    line = format_tuning_line(Tuning(pitches))
    assert (line, parse_tuning(line)) == (WRITTEN[pitches], pitches)


# Titles and names of guitars that other lines look like, and the head of their text.
HEADS = {
    ("Air", "", ""): ["Air"],
    ("Prelude in F#", "", ""): ["Prelude in F#"],
    ("# Air #", "Jazz", "Lead"): ["title: # Air #", "style: Jazz", "track: Lead"],
    ("tuning: D A D G B E", "", ""): ["title: tuning: D A D G B E"],
    ("style: Jazz", "", ""): ["title: style: Jazz"],
    ("A", "", ""): ["title: A"],
    ("", "Drop D", ""): ["style: Drop D"],
    ("Song:  Lark ", "", " Lead  guitar"): ["title: Song: Lark", "track: Lead guitar"],
}


@pytest.mark.parametrize("named", HEADS)
def test_titles_and_names_are_written_as_they_are_read(named):
    title, style, track = named
    (tab,), _ = parse_ascii_tabs(ROWS)
    written = format_tab(replace(tab, title=title, style=style, track=track))
    assert written.splitlines()[: len(HEADS[named])] == HEADS[named]
    back, _ = read(written)
    assert (back.title, back.style, back.track) == tuple(" ".join(own.split()) for own in named)
