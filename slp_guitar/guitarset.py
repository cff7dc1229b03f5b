"""GuitarSet: what six players played, with the string of every note, its time and the beats.

Xi et al. (2018), https://zenodo.org/records/3371780, CC BY 4.0; `annotation.zip` there has all that
is needed. Each of its 360 excerpts is a JAMS file with one `note_midi` annotation a string, where 0
is the low E: here it is string 6. mirdata has a loader too; it wants an index from the network and
libraries for sound, and reads each file once a string, where a JAMS file is JSON.

The publisher's known errors are corrected: a note that is twice in 02_Funk2-119-G_comp, and
the notes of 04_BN3-154-E_comp and 04_Jazz1-200-B_comp, which are 0.409 s and 0.309 s late.
"""

import contextlib
import json
import math
import re
import zipfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from slp_guitar.bounds import MAX_FILE_BYTES
from slp_guitar.formats.safe_read import translate_read_errors
from slp_guitar.fretboard import STANDARD, Note
from slp_guitar.tab import Bar, Event, ReadProblem, Tab, TabNote
from slp_guitar.timing import drop_repeated_changes
from slp_transformer.data.text_files import list_files

STEPS_PER_QUARTER = 12
"""Steps to a quarter note: they keep triplets and sixteenths, and onsets to half a step."""
MAX_STRUM_SECONDS = 0.030
"""Seconds in which notes begin that are strummed as one."""
LATE_SECONDS_BY_EXCERPT = {"04_BN3-154-E_comp": 0.409, "04_Jazz1-200-B_comp": 0.309}
MAX_FRET_READ = 24
MAX_EXCERPT_SECONDS, MAX_EXCERPTS = 3600.0, 10_000
_FILE_NAME_PATTERN = re.compile(
    r"\d\d_(?P<style>Jazz|BN|Rock|SS|Funk)\d-(?P<tempo>\d{2,3})-[A-G][#b]?_(?:comp|solo)"
)


def is_guitarset(path: str | Path) -> bool:
    """Return whether a path is a JAMS file, a zip archive, or a folder with a JAMS file in it."""
    path = Path(path)
    if path.is_file():
        return path.suffix.lower() in (".jams", ".zip")
    return path.is_dir() and any(file.suffix.lower() == ".jams" for file in list_files(path))


def read_guitarset_tabs(path: str | Path) -> tuple[list[Tab], list[ReadProblem]]:
    """Read GuitarSet, or a part of it.

    Args:
        path: a folder with JAMS files anywhere in it, the publisher's ``annotation.zip``, or one
            JAMS file.

    Returns:
        The excerpts in order of their files, which are named by player, style, tempo, key and
        "comp" for chords or "solo" for a melody: ``00_BN1-129-Eb_solo.jams``; and what of the files
        could not be read.

    Raises:
        ValueError: if there is no such path, or no excerpt in it could be read.
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"There is no folder or archive {path}.")
    excerpts: list[Tab] = []
    problems: list[ReadProblem] = []
    for jams in _iter_jams_files(path):
        try:
            with translate_read_errors(jams.name, "a JAMS file"), jams.open("rb") as file:
                content = file.read(MAX_FILE_BYTES["JAMS"] + 1)
            if len(content) > MAX_FILE_BYTES["JAMS"]:
                raise ValueError(f"it has more than {MAX_FILE_BYTES['JAMS'] >> 20} MiB")
            excerpt, omissions = read_jams_tab(content, jams.name)
        except ValueError as error:
            problems.append(ReadProblem(jams.name, 0, str(error)))
            continue
        excerpts.append(excerpt)
        problems += omissions
    if not excerpts:
        first = f" First problem: {problems[0]}" if problems else ""
        raise ValueError(f"{path} holds no JAMS file of GuitarSet that can be read.{first}")
    return sorted(excerpts, key=lambda tab: tab.source), problems


def _iter_jams_files(path: Path) -> Iterator[Path | zipfile.Path]:
    """Yield the JAMS files of a folder or archive."""
    with contextlib.ExitStack() as stack:
        files: Sequence[Path | zipfile.Path] = [path] if path.is_file() else list_files(path)
        if path.suffix.lower() == ".zip" and path.is_file():
            with translate_read_errors(path, "a zip archive"):
                archive = stack.enter_context(zipfile.ZipFile(path))
            files = [zipfile.Path(archive, name) for name in archive.namelist()]
        jams = (file for file in files if file.name.lower().endswith(".jams"))
        own = (file for file in jams if not file.name.startswith("._"))  # macOS adds those
        yield from islice(own, MAX_EXCERPTS)


def read_jams_tab(raw_bytes: bytes, file_name: str) -> tuple[Tab, list[ReadProblem]]:
    """Read one excerpt.

    Args:
        raw_bytes: what the JAMS file holds.
        file_name: its name, which says who plays what and how fast.

    Returns:
        The notes, twelve steps to a quarter, and the style: "Jazz", "BN" (bossa nova), "Rock", "SS"
        (singer-songwriter) or "Funk"; and notes that no guitar has, or that two of are one.

    Raises:
        ValueError: if the name is none of GuitarSet's, or the content not what it should be.
    """
    found = _FILE_NAME_PATTERN.search(file_name)
    if found is None:
        raise ValueError(
            f"{file_name} is not named as GuitarSet names excerpts, as in 00_BN1-129-Eb_solo.jams."
        )
    with translate_read_errors(file_name, "a JAMS file of GuitarSet"):
        annotations = json.loads(raw_bytes)["annotations"]
        late = LATE_SECONDS_BY_EXCERPT.get(found.group(), 0.0)
        notes, messages = _parse_notes(annotations, late)
        times, positions, time_signature = _parse_beats(annotations)
        bars, doubled = _build_bars(notes, times, positions, time_signature, int(found["tempo"]))
    messages += [f"{doubled} notes begin on a string that is struck already"] if doubled else []
    title = found.group().split("_", 1)[1].replace("_", " ")
    tab = Tab(title, STANDARD, tuple(bars), file_name, STEPS_PER_QUARTER, found["style"])
    return tab, [ReadProblem(file_name, 0, what) for what in messages]


def _parse_seconds(value: Any) -> float:
    """A moment or a length in seconds.

    Raises:
        ValueError: if it is none within an hour.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r:.40} should be a number of seconds")
    if not abs(value) <= MAX_EXCERPT_SECONDS:  # which is false of NaN, too
        raise ValueError(f"{value!r:.40} is no moment of an excerpt")
    return float(value)


TimedNote = tuple[float, float, Note]  # onset and end in seconds


def _parse_notes(annotations: list[Any], delay_seconds: float) -> tuple[list[TimedNote], list[str]]:
    """The notes of all strings in order, and what is wrong with some."""
    notes, messages = [], []
    for each in annotations:
        if each["namespace"] != "note_midi":
            continue
        string = 6 - int(each["annotation_metadata"]["data_source"])
        if not 1 <= string <= 6:
            raise ValueError("a string is numbered otherwise than 0 to 5")
        for one in each["data"]:
            onset, pitch = _parse_seconds(one["time"]) - delay_seconds, float(one["value"])
            fret = round(pitch) - STANDARD.open_pitches[string - 1]
            if not 0 <= fret <= MAX_FRET_READ:
                messages.append(
                    f"a note at {onset:.3f} s is left out: string {string}, fret {fret}"
                )
                continue
            notes.append((onset, onset + _parse_seconds(one["duration"]), Note(string, fret)))
    kept: list[TimedNote] = []
    for note in sorted(notes):
        if any(note[2] == o[2] and abs(note[0] - o[0]) < 0.002 for o in kept[-6:]):
            messages.append(f"a note at {note[0]:.3f} s is there twice; it is read once")
        else:
            kept.append(note)
    return kept, messages


def _parse_beats(annotations: list[Any]) -> tuple[list[float], list[int], tuple[int, int]]:
    """Return the beats' times, the number of each in its bar, and the time signature."""
    (found,) = [each for each in annotations if each["namespace"] == "beat_position"]
    beats = sorted((_parse_seconds(each["time"]), each["value"]) for each in found["data"])
    times = [time for time, _ in beats]
    if len(beats) < 2 or any(b <= a for a, b in pairwise(times)):
        raise ValueError("there should be beats, one after the other")
    first = beats[0][1]
    time_signature = int(first["num_beats"]), int(first["beat_units"])
    if not 1 <= time_signature[0] <= 32 or time_signature[1] not in (2, 4, 8, 16):
        raise ValueError(f"{time_signature[0]}/{time_signature[1]} is not a time signature")
    return times, [int(value["position"]) for _, value in beats], time_signature


def _build_bars(
    notes: list[TimedNote],
    beat_seconds: list[float],
    beat_positions: list[int],
    time_signature: tuple[int, int],
    tempo: int,
) -> tuple[list[Bar], int]:
    """Bars, and how many notes had no room on their string."""
    beat = STEPS_PER_QUARTER * 4 // time_signature[1]
    whole = beat * time_signature[0]

    def step(seconds: float) -> int:
        """The step nearest to a moment, counted from the first beat; beats go on evenly."""
        place = min(max(bisect_right(beat_seconds, seconds) - 1, 0), len(beat_seconds) - 2)
        share = (seconds - beat_seconds[place]) / (beat_seconds[place + 1] - beat_seconds[place])
        return round((place + share) * beat)

    events: dict[int, dict[int, TabNote]] = {}
    doubled, begun = 0, -math.inf
    strum: set[int] = set()  # strings of the notes that are strummed as one
    for onset, end, note in notes:
        if onset - begun > MAX_STRUM_SECONDS or note.string in strum:
            begun, strum = onset, set()
        strum.add(note.string)
        at = max(0, step(begun))
        moment = events.setdefault(at, {})
        if note.string in moment:
            doubled += 1
        else:
            moment[note.string] = TabNote(note, max(1, step(begun + end - onset) - at))
    # What comes before the first whole bar is a bar of its own.
    starts = [0, (1 - beat_positions[0]) % time_signature[0] * beat]
    last = max([*events, (len(beat_seconds) - 1) * beat])
    while starts[-1] <= last:
        starts.append(starts[-1] + whole)
    bars = []
    for start, end in pairwise(sorted(set(starts))):
        own = sorted(at for at in events if start <= at < end)
        inside = tuple(Event.from_notes(at - start, events[at].values()) for at in own)
        bars.append(Bar(end - start, inside, time_signature, tempo))
    return drop_repeated_changes(bars), doubled
