"""Tabs as alphaTex, the text that alphaTab draws and plays in a browser."""

from pathlib import Path

from slp_transformer._internal.atomic_write import whole_file
from slp_transformer.guitar.formats.notation import Beat, Measure, Tied, measures_of
from slp_transformer.guitar.fretboard import Tuning
from slp_transformer.guitar.tab import Played, Tab, check_tab

NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
MARKS = {"hammer": "h", "pull": "h", "slide": "ss", "harmonic": "nh", "dead": "x"}
MARKS |= {"let ring": "lr", "vibrato": "v"}
STEEL, BASS = 25, 33
LOW = 35


def format_alphatex(tab: Tab) -> str:
    """A tab as alphaTex that ends in a line break.

    Strings are numbered as here, 1 for the highest. Open strings stand without the capo, where E2
    is the low E of a guitar.

    Raises:
        ValueError: if the tab cannot be written down, has no bar or no time, or notes shorter than
            any note value.
    """
    check_tab(tab)
    if not tab.bars:
        raise ValueError("alphaTex needs at least one bar.")
    measures = measures_of(tab)
    title = " ".join(tab.title.split()).replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'\\title "{title}"'] if title else []
    lines.append('\\track "Guitar"')
    lines.append("\\staff {score tabs}")
    low = min(tab.tuning.open_pitches)
    lines.append(f"\\instrument {BASS if low < LOW else STEEL}")
    lines.append(f"\\tuning ({' '.join(_names(tab.tuning))})")
    if tab.tuning.capo:
        lines.append(f"\\capo {tab.tuning.capo}")
    if any(measure.voices[1] for measure in measures):
        lines += ["\\voice", *_bars(measures, 0), "\\voice", *_bars(measures, 1)]
    else:
        lines += _bars(measures, 0)
    return "\n".join(lines) + "\n"


def write_alphatex(tab: Tab, path: str | Path) -> None:
    """Write `format_alphatex(tab)` to a file (UTF-8), which is either whole or not there.

    Raises:
        ValueError: as `format_alphatex`.
        OSError: if the file cannot be written.
    """
    text = format_alphatex(tab)
    with whole_file(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _names(tuning: Tuning) -> list[str]:
    """Open strings with octaves, the highest string first."""
    return [f"{NAMES[pitch % 12]}{pitch // 12 - 1}" for pitch in tuning.open_pitches]


def _bars(measures: list[Measure], voice: int) -> list[str]:
    """A line for each bar."""
    lines, metre = [], None
    for number, measure in enumerate(measures, start=1):
        said = []
        if voice == 0:
            said = _said(measure, measure.bar.metre != metre)
            metre = measure.bar.metre
        beats = [_beat(beat) for beat in measure.voices[voice]] or ["r.1"]
        end = [] if number == len(measures) else ["|"]
        lines.append(" ".join([*said, *beats, *end]))
    return lines


def _said(measure: Measure, new_metre: bool) -> list[str]:
    """What stands before the notes of a bar."""
    bar, said = measure.bar, []
    if new_metre:
        said.append(f"\\ts ({bar.metre[0]} {bar.metre[1]})")
    if bar.tempo is not None:
        said.append(f"\\tempo {bar.tempo}")
    if bar.repeat_from:
        said.append("\\ro")
    if bar.endings:
        said.append(f"\\ae ({' '.join(map(str, bar.endings))})")
    if bar.repeats > 1:
        said.append(f"\\rc {bar.repeats}")
    return said


def _beat(beat: Beat) -> str:
    """One beat: ``r.4``, ``3.1.8``, ``(0.6 2.4{h}).4{d}``."""
    value = beat.value
    effects = ["d"] if value.dotted else []
    if value.enters != value.times:
        effects.append(f"tu ({value.enters} {value.times})")
    ending = f".{value.kind}" + (f"{{{' '.join(effects)}}}" if effects else "")
    if not beat.notes:
        return "r" + ending
    notes = [_note(tied) for tied in sorted(beat.notes, key=lambda tied: tied.played.note.string)]
    return (f"({' '.join(notes)})" if len(notes) > 1 or "{" in notes[0] else notes[0]) + ending


def _note(tied: Tied) -> str:
    """One note; what leads to the next stands where it ends, the rest where it begins."""
    string, fret = tied.played.note
    effects = _effects(tied.played, tied.begins, not tied.goes_on)
    return f"{fret if tied.begins else '-'}.{string}" + (
        f"{{{' '.join(effects)}}}" if effects else ""
    )


def _effects(played: Played, begins: bool, ends: bool) -> list[str]:
    """The marks of a note where it begins or ends."""
    effects = []
    for technique in played.techniques:
        leads_on = technique.kind in ("hammer", "pull", "slide")
        if technique.kind == "bend":
            effects += [f"b (0 {max(1, technique.size)})"] if begins else []
        elif ends if leads_on else begins:
            effects.append(MARKS[technique.kind])
    return effects
