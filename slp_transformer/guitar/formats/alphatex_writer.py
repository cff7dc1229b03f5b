"""Tabs as alphaTex, the text that alphaTab draws and plays in a browser."""

from pathlib import Path

from slp_transformer._internal.atomic_write import atomic_write
from slp_transformer.guitar.formats.notation import Beat, Measure, TiedNote, measures_from_tab
from slp_transformer.guitar.fretboard import Tuning
from slp_transformer.guitar.tab import Tab, TabNote, check_tab

PITCH_CLASS_NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
EFFECT_OF_TECHNIQUE = {"hammer": "h", "pull": "h", "slide": "ss", "harmonic": "nh", "dead": "x"}
EFFECT_OF_TECHNIQUE |= {"let ring": "lr", "vibrato": "v"}
GUITAR_PROGRAM, BASS_PROGRAM = 25, 33
MAX_BASS_LOW_PITCH = 35


def format_alphatex(tab: Tab) -> str:
    """A tab as alphaTex that ends in a line break.

    Strings are numbered as here, 1 for the highest. Open strings are without the capo, where E2
    is the low E of a guitar.

    Raises:
        ValueError: if the tab cannot be written down, has no bar or no time, or notes shorter than
            any note value.
    """
    check_tab(tab)
    if not tab.bars:
        raise ValueError("alphaTex needs at least one bar.")
    measures = measures_from_tab(tab)
    title = " ".join(tab.title.split()).replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'\\title "{title}"'] if title else []
    lines.append('\\track "Guitar"')
    lines.append("\\staff {score tabs}")
    low = min(tab.tuning.open_pitches)
    lines.append(f"\\instrument {BASS_PROGRAM if low < MAX_BASS_LOW_PITCH else GUITAR_PROGRAM}")
    lines.append(f"\\tuning ({' '.join(_format_tuning(tab.tuning))})")
    if tab.tuning.capo:
        lines.append(f"\\capo {tab.tuning.capo}")
    if any(measure.voices[1] for measure in measures):
        lines += ["\\voice", *_format_bars(measures, 0), "\\voice", *_format_bars(measures, 1)]
    else:
        lines += _format_bars(measures, 0)
    return "\n".join(lines) + "\n"


def write_alphatex(tab: Tab, path: str | Path) -> None:
    """Write `format_alphatex(tab)` to a file (UTF-8), which is either whole or not there.

    Raises:
        ValueError: as `format_alphatex`.
        OSError: if the file cannot be written.
    """
    text = format_alphatex(tab)
    with atomic_write(Path(path)) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def _format_tuning(tuning: Tuning) -> list[str]:
    """Open strings with octaves, the highest string first."""
    return [f"{PITCH_CLASS_NAMES[pitch % 12]}{pitch // 12 - 1}" for pitch in tuning.open_pitches]


def _format_bars(measures: list[Measure], voice_index: int) -> list[str]:
    """A line for each bar."""
    lines, time_signature = [], None
    for number, measure in enumerate(measures, start=1):
        tags = []
        if voice_index == 0:
            tags = _format_bar_header(measure, measure.bar.time_signature != time_signature)
            time_signature = measure.bar.time_signature
        beats = [_format_beat(beat) for beat in measure.voices[voice_index]] or ["r.1"]
        end = [] if number == len(measures) else ["|"]
        lines.append(" ".join([*tags, *beats, *end]))
    return lines


def _format_bar_header(measure: Measure, has_new_time_signature: bool) -> list[str]:
    """Return the tags before the notes of a bar."""
    bar, tags = measure.bar, []
    if has_new_time_signature:
        tags.append(f"\\ts ({bar.time_signature[0]} {bar.time_signature[1]})")
    if bar.tempo_bpm is not None:
        tags.append(f"\\tempo {bar.tempo_bpm}")
    if bar.starts_repeat:
        tags.append("\\ro")
    if bar.endings:
        tags.append(f"\\ae ({' '.join(map(str, bar.endings))})")
    if bar.num_plays > 1:
        tags.append(f"\\rc {bar.num_plays}")
    return tags


def _format_beat(beat: Beat) -> str:
    """One beat: ``r.4``, ``3.1.8``, ``(0.6 2.4{h}).4{d}``."""
    value = beat.note_value
    effects = ["d"] if value.is_dotted else []
    if value.tuplet_notes != value.tuplet_time:
        effects.append(f"tu ({value.tuplet_notes} {value.tuplet_time})")
    ending = f".{value.denominator}" + (f"{{{' '.join(effects)}}}" if effects else "")
    if not beat.notes:
        return "r" + ending
    in_order = sorted(beat.notes, key=lambda tied: tied.tab_note.note.string)
    notes = [_format_note(tied) for tied in in_order]
    return (f"({' '.join(notes)})" if len(notes) > 1 or "{" in notes[0] else notes[0]) + ending


def _format_note(tied: TiedNote) -> str:
    """One note; techniques that lead to the next are marked at its end, others at its beginning."""
    string, fret = tied.tab_note.note
    effects = _format_effects(tied.tab_note, tied.is_struck, not tied.is_tied_to_next)
    return f"{fret if tied.is_struck else '-'}.{string}" + (
        f"{{{' '.join(effects)}}}" if effects else ""
    )


def _format_effects(tab_note: TabNote, is_struck: bool, is_last: bool) -> list[str]:
    """The marks of a note where it begins or ends."""
    effects = []
    for technique in tab_note.techniques:
        leads_on = technique.kind in ("hammer", "pull", "slide")
        if technique.kind == "bend":
            effects += [f"b (0 {max(1, technique.bend_quarter_tones)})"] if is_struck else []
        elif is_last if leads_on else is_struck:
            effects.append(EFFECT_OF_TECHNIQUE[technique.kind])
    return effects
