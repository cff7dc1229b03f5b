"""The options of `tab` and `convert`."""

from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from slp_guitar.fingering.playable_chords import UnplayablePolicy
from slp_guitar.formats.registry import writable_suffixes
from slp_guitar.fretboard import MAX_CAPO
from slp_transformer._internal.config_checks import SIZE, within
from slp_transformer._internal.plugins import Options
from slp_transformer._internal.settings import setting, settings
from slp_transformer.tasks.data_settings import Positional, UseAppendAction, arg

T = TypeVar("T")
OUTPUT_HELP = f"a file to write to: {', '.join(writable_suffixes())}."
Output = Annotated[T, arg(aliases=["-o"], help=OUTPUT_HELP)]
MOST_FRETS = 36


@settings
@dataclass(frozen=True, kw_only=True)
class SongOptions(Options):
    """A file with notes, how to read it, and how to write another.

    Attributes:
        song: an ASCII tab, Guitar Pro 3 to 8, MusicXML, MIDI or alphaTex.
        tracks: tracks to read, from 1; all of them if empty, but `tab` then takes the first, or the
            guitar of a MIDI file.
        channels: channels of a MIDI file; all but 10, drums, if empty.
        quantize: steps to a quarter note to which the notes of a MIDI file are moved.
        one_channel: write MIDI with one channel for each guitar, in place of one for each string.
        steps_per_quarter: steps of an ASCII tab in a quarter note, where the output needs time; a
            step is the number of columns in which all its notes are spaced [found for each bar,
            from the meter that is stated or that most bars have].
        max_fret: highest fret of notes that are fingered [19, or 24 where a part needs them].
    """

    song: Positional[Path] = setting(MISSING, no_example="a file")
    tracks: tuple[int, ...] = setting((), example=(2,))
    channels: tuple[int, ...] = setting((), example=(2,))
    quantize: int | None = setting(None, SIZE, example=1)
    one_channel: bool = setting(False, no_example="of MIDI files alone")
    steps_per_quarter: int | None = setting(None, SIZE, no_example="of ASCII tabs alone")
    max_fret: int | None = setting(None, within(1, MOST_FRETS), example=9)


@settings
@dataclass(frozen=True, kw_only=True)
class TabOptions(SongOptions):
    """Turn notes without strings, or a tab for another guitar, into tab that can be played.

    Examples:
      slp-transformer tab song.mid                                on the terminal
      slp-transformer tab song.mid -o song.gp5 --tuning drop-D --capo 2
      slp-transformer tab song.mid -o song.txt --position 7       around the seventh fret
      slp-transformer tab song.mid -o song.txt --easy             first position, open strings
      slp-transformer tab song.mid -o song.txt --alternatives 3   also song-2.txt and song-3.txt
      slp-transformer tab song.txt --tuning DADGAD                the same notes on another guitar
      slp-transformer tab song.mid --review 5                     where another way is as good
      slp-transformer tab song.mid --pin 3:1=2/5                  bar 3, first moment: string 2,
      fret 5

    The fingering is the one with the lowest cost for the hand over the whole piece: no model is
    needed. A tab keeps the fingering that it has, unless --refinger or another flag asks for a new
    one.

    Attributes:
        tuning: a name, as drop-D, bass or ukulele, or the strings from the lowest, as in
            "D A D G B E" or "E A D G" [the file's, or the first guitar or bass that has all notes].
        capo: capo fret [the file's, or none].
        keep_shapes: with the capo, keep the shapes, so that all sounds higher, and not the pitches.
        transpose: half steps up, or down if negative.
        max_span: frets that a grip may reach over [4].
        position: preferred position, 1 to 15.
        open_strings: use open strings more often, or less often.
        pin: force notes onto a string and fret, as BAR:MOMENT=STRING/FRET, or several of a moment
            as BAR:MOMENT=4/5,2/6; the rest follows, and the same notes between the same neighbors
            are pinned likewise, unless they have a pin of their own. May be given several times.
        review: show so many moments about which an answer helps most, those that come often and
            have another grip that is almost as good, each with its two best alternatives and what
            pins them.
        alternatives: ways to play the piece.
        unplayable: what to do about notes that no hand can take, or no string has: refuse the piece
            and name them, move them by octaves, or drop them; or roll chords, which plays them in
            parts that a hand can take, from the bass up, and moves notes off the neck.
        easy: for beginners: the first position, open strings, and grips within four frets wherever
            there are some, unless --position, --open-strings or --max-span ask for others.
        costs: costs of the hand that `slp-transformer fit-costs` has fitted to tabs of yours.
        easiest_capo: name the three places of the capo with which the piece is easiest at its
            pitches, with the shapes that they give, and take the first.
        refinger: find a new fingering for a tab.
    """

    output: Output[Path | None] = setting(None, no_example="a file")
    tuning: str | None = setting(None, example="drop-D")
    capo: int | None = setting(None, within(0, MAX_CAPO), example=1)
    keep_shapes: bool = setting(False, example=True, given={"capo": 3})
    transpose: int = setting(0, within(-36, 36), example=2)
    max_span: int | None = setting(None, within(1, 12), example=2)
    position: int | None = setting(None, within(1, 15), example=9)
    open_strings: Literal["more", "less"] | None = setting(None, example="more")
    pin: UseAppendAction[tuple[str, ...]] = setting((), example=("1:1=3/9",))
    review: int = setting(0, within(0, 1000), example=1)
    alternatives: int = setting(1, within(1, 20), example=2)
    unplayable: UnplayablePolicy = setting("refuse", example="octave", given={"transpose": -36})
    easy: bool = setting(False, example=True)
    costs: Path | None = setting(None, no_example="a file")
    easiest_capo: bool = setting(False, example=True)
    refinger: bool = setting(False, no_example="of fingered tabs alone")


@settings
@dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    """Fit the costs of the hand, by which `tab` decides, to tabs that people have written.

    Examples:
      slp-transformer fit-costs my-tabs -o my-costs.json
      slp-transformer tab song.mid --costs my-costs.json

    Ten pieces take minutes. What has no strings, such as most MIDI files, is left out.

    Attributes:
        tabs: a folder of tabs of any kind that is read, or one file.
        pieces: to fit to at most; as few as possible of one composer, which is a folder below
            `tabs`, or what a file's name has before a "_".
    """

    tabs: Positional[Path] = setting(MISSING, no_example="a folder")
    output: Annotated[Path, arg(aliases=["-o"], help="the file to write, .json")] = setting(
        MISSING, no_example="a file"
    )
    pieces: int = setting(16, within(1, 10_000), no_example="fitting takes minutes")


@settings
@dataclass(frozen=True, kw_only=True)
class ConvertOptions(SongOptions):
    """Convert guitar music from one kind of file into another.

    Examples:
      slp-transformer convert song.gp5 -o song.musicxml
      slp-transformer convert band.gp5 -o bass.txt --tracks 3
      slp-transformer convert song.txt -o song.gp5

    Strings and frets, tuning, capo, playing techniques, repeats, tracks and voices are kept, and
    what the new file cannot hold is listed. MIDI and MusicXML need no strings. For other files,
    notes without strings are fingered as by `tab`; what no hand can take is left out and named.

    Attributes:
        no_capo: write open strings as the capo has them, for programs that ignore capos.
    """

    output: Output[Path] = setting(MISSING, no_example="a file")
    no_capo: bool = setting(False, no_example="of tabs with a capo alone")
