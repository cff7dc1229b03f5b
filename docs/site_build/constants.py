"""What Python and the pages' scripts share, as a module of JavaScript that each build writes.

A choice, a limit or a table has one home, in the package. Here it is only named: `constants` lists
what the scripts import from `assets/model/constants.js`, which is in no folder of the project.

`python docs/site_build/constants.py FOLDER` writes it for those who check types.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from slp_guitar import text_time, uneven_bars
from slp_guitar.ascii.guitars import OTHER_INSTRUMENT_TUNINGS
from slp_guitar.bar_lengths import METER_OF_COLUMNS, NOTATED_STEPS_PER_QUARTER
from slp_guitar.bounds import MAX_FILE_BYTES, MAX_MIDI_NOTES
from slp_guitar.fingering.costs import (
    CUT,
    PER_FRET_FROM_POSITION,
    RELEASED,
    load_weights,
)
from slp_guitar.fingering.features import (
    COMPING_NOTES,
    COMPING_OPEN,
    HAND_FRETS,
    MEMORY_LAGS,
    MIN_STYLE_CHORDS,
    MIN_STYLE_SHARE,
    MOVABLE_CHORDS,
    MOVABLE_FRETS,
    MOVABLE_OPEN,
    NUM_STRING_FEATURES,
    OTHER_GRIP,
    TIME_CLASSES,
)
from slp_guitar.fingering.fingering_pieces import OPEN_STRING_COST
from slp_guitar.fingering.lattice import MAX_STATES
from slp_guitar.fingering.playable_chords import EASY, MAX_SEARCHED_NOTES
from slp_guitar.fingering.questions import MOMENTS_APART, SURE_MARGIN
from slp_guitar.fingering.ringing import HEARD_SHARE
from slp_guitar.formats import midi, notation
from slp_guitar.formats.registry import FORMATS
from slp_guitar.fretboard import MAX_FRET, MAX_SPAN, TUNINGS, format_pitch
from slp_guitar.hand import FINGER_REACH_MM, NUM_FINGERS
from slp_guitar.tab import MAX_STEPS_PER_QUARTER
from slp_guitar.tab_tokenizer import (
    MAX_BARS_BACK,
    MAX_CAPO,
    MAX_LIMIT,
    MAX_OPEN_PITCH,
    MIN_OPEN_PITCH,
    SPECIAL_TOKENS,
)
from slp_guitar.theory import KEY_NAMES, TIME_SIGNATURES
from slp_transformer._internal.choices import allowed_values_of, union_members
from slp_transformer._internal.parts import ROPE_SCALING_NAMES
from slp_transformer.config import TransformerConfig
from slp_transformer.data.text_tokenizer import (
    END_TOKEN,
    SILENT_TOKENS,
    UNK,
    UNKNOWN_TOKEN,
    TokenType,
)
from slp_transformer.modern.config import ModernConfig, RopeScaling
from slp_transformer.tasks.run_config import ModelSettings

FILE = "assets/model/constants.js"
"""Its place in the site."""


class Shared(NamedTuple):
    """A constant that scripts import.

    Attributes:
        value: what it is, as JSON has it.
        type: its type in TypeScript, for those who check the scripts.
        says: what it is, in a few words.
    """

    value: Any
    type: str
    says: str


def constants() -> dict[str, Shared]:
    """Return everything that scripts share with the package, by its name there."""
    settings = {"TransformerLM": TransformerConfig, "ModernLM": ModernConfig}
    book = {setting.name: setting.default for setting in fields(ModelSettings)}
    names, numbers = "string[]", "number[]"
    return {
        # Models
        "SETTINGS": Shared(
            {model: dict(_settings(kind)) for model, kind in settings.items()},
            "Record<string, Record<string, Setting>>",
            "The settings of each model: what each may be, and what it is by default.",
        ),
        "BOOK": Shared(
            book | {"attention_bias": False},
            "Record<string, Value>",
            "The book's own choice in each setting.",
        ),
        "ROPE_TYPES": Shared(list(ROPE_SCALING_NAMES), names, "What stretches rotary angles."),
        # Tokens
        "TOKEN_TYPES": Shared(list(allowed_values_of(TokenType)), names, "What tokens can be."),
        "END_TOKEN": Shared(END_TOKEN, "string", "The token after each document."),
        "UNKNOWN_TOKENS": Shared(
            [UNK, UNKNOWN_TOKEN], names, "What stands for others: of any kind, and of words."
        ),
        "SILENT_TOKENS": Shared(sorted(SILENT_TOKENS), names, "Tokens that no text shows."),
        "TAB_TOKENS": Shared(
            {
                "special": SPECIAL_TOKENS,
                "openPitches": [MIN_OPEN_PITCH, MAX_OPEN_PITCH],
                "maxCapo": MAX_CAPO,
                "maxBarsBack": MAX_BARS_BACK,
                "maxLimit": MAX_LIMIT,
            },
            "{ special: string[], openPitches: [number, number], maxCapo: number, "
            "maxBarsBack: number, maxLimit: number }",
            "The first tokens of tabs, and how far the others go.",
        ),
        # Music
        "TUNINGS": Shared(
            {name: tuning.open_pitches for name, tuning in TUNINGS.items()},
            "Record<string, number[]>",
            "The open strings of each tuning that has a name, string 1 first.",
        ),
        "SHARPS": Shared(
            [format_pitch(pitch)[:-1] for pitch in range(60, 72)], names, "Twelve notes from C."
        ),
        "KEY_NAMES": Shared(KEY_NAMES, names, "The keys that have a token."),
        "TIME_SIGNATURES": Shared(
            TIME_SIGNATURES, "[number, number][]", "The time signatures that have a token."
        ),
        "NOTATED_STEPS": Shared(
            NOTATED_STEPS_PER_QUARTER, numbers, "Steps that a quarter note has in notation."
        ),
        "METER_OF_COLUMNS": Shared(
            METER_OF_COLUMNS,
            "Record<number, [[number, number], number]>",
            "What bars of so many columns are taken for: time signature, columns to a quarter.",
        ),
        "NOTE_VALUES": Shared(
            notation.NOTE_VALUE_DENOMINATORS, numbers, "Whole notes, halves, quarters …"
        ),
        "TUPLETS": Shared(
            [[1, 1], *notation.TUPLET_TIMES.items()],
            "[number, number][]",
            "How many notes come in the time of how many.",
        ),
        # Fingering
        "FINGERING": Shared(
            {
                "weights": load_weights(),
                "handFrets": list(HAND_FRETS),
                "timeClasses": list(TIME_CLASSES),
                "memoryLags": list(MEMORY_LAGS),
                "numStringFeatures": NUM_STRING_FEATURES,
                "costNames": {
                    "cut": CUT,
                    "released": RELEASED,
                    "otherGrip": OTHER_GRIP,
                    "movableOpen": MOVABLE_OPEN,
                    "movableFrets": MOVABLE_FRETS,
                    "compingOpen": COMPING_OPEN,
                },
                "styles": {
                    "shapes": MOVABLE_CHORDS,
                    "compingNotes": COMPING_NOTES,
                    "minChords": MIN_STYLE_CHORDS,
                    "minShare": MIN_STYLE_SHARE,
                },
                "perFretFromPosition": PER_FRET_FROM_POSITION,
                "openStringCost": OPEN_STRING_COST,
                "maxFret": MAX_FRET,
                "maxSpan": MAX_SPAN,
                "maxSearched": MAX_SEARCHED_NOTES,
                "numFingers": NUM_FINGERS,
                "fingerReach": {f"{a}-{b}": reach for (a, b), reach in FINGER_REACH_MM.items()},
                "heardShare": HEARD_SHARE,
                "maxStates": MAX_STATES,
                "momentsApart": MOMENTS_APART,
                "sureMargin": SURE_MARGIN,
                "easy": {
                    "position": EASY["preferred_position"],
                    "openStringPreference": EASY["open_string_preference"],
                    "maxSpan": EASY["max_span"],
                },
            },
            "{ weights: Record<string, number>, handFrets: number[], timeClasses: string[], "
            "memoryLags: number[], numStringFeatures: number, "
            "costNames: { cut: string, released: string, otherGrip: string, movableOpen: string, "
            "movableFrets: string, compingOpen: string }, styles: { shapes: number[][], "
            "compingNotes: number, minChords: number, minShare: number }, "
            "perFretFromPosition: number, "
            "openStringCost: number, maxFret: number, maxSpan: number, maxSearched: number, "
            "numFingers: number, "
            "fingerReach: Record<string, number>, heardShare: number, maxStates: number, "
            "momentsApart: number, sureMargin: number, "
            "easy: { position: number, openStringPreference: number, maxSpan: number } }",
            "What a hand pays, and how far it reaches.",
        ),
        "FILE_KINDS": Shared(
            file_kinds(),
            "Record<string, 'midi' | 'gp' | 'xml' | 'text'>",
            "The files that can be fingered, by their suffix.",
        ),
        "MAX_FILE_BYTES": Shared(
            {
                "midi": MAX_FILE_BYTES["MIDI"],
                "gp": MAX_FILE_BYTES["Guitar Pro 6 to 8"],
                "xml": MAX_FILE_BYTES["MusicXML"],
                "text": MAX_FILE_BYTES["ASCII tab"],
            },
            "Record<string, number>",
            "How large a file of each kind may be.",
        ),
        "OTHER_INSTRUMENTS": Shared(
            [
                list(pitches)
                for name, pitches in OTHER_INSTRUMENT_TUNINGS.items()
                if name != "mandolin"  # the strings of a bass, from the other side
            ],
            "number[][]",
            "Open strings of what has not six, known by the names in front of rows of text.",
        ),
        "TEXT_TIME": Shared(
            {
                "grids": list(text_time.GRIDS),
                "gridCost": text_time.GRID_COST,
                "columnScales": list(text_time.COLUMN_SCALES),
                "maxMisfit": text_time.MAX_MISFIT,
                "minStepColumns": text_time.MIN_STEP_COLUMNS,
                "maxFreeColumns": text_time.MAX_FREE_COLUMNS,
                "freeColumnCost": text_time.FREE_COLUMN_COST,
                "noteColumns": list(text_time.NOTE_COLUMNS),
                "noteColumnCost": text_time.NOTE_COLUMN_COST,
                "pickupShare": text_time.PICKUP_SHARE,
                "usualMeters": [list(meter) for meter in text_time.USUAL_METERS],
                "maxBarsToTry": text_time.MAX_BARS_TO_TRY,
            },
            "{ grids: number[], gridCost: number, columnScales: number[], maxMisfit: number, "
            "minStepColumns: number, pickupShare: number, maxFreeColumns: number, "
            "freeColumnCost: number, noteColumns: number[], noteColumnCost: number, "
            "usualMeters: [number, number][], maxBarsToTry: number }",
            "How the columns of a text become time.",
        ),
        "UNEVEN_BARS": Shared(
            {
                "evenGrids": list(uneven_bars.EVEN_GRIDS),
                "triplets": uneven_bars.TRIPLETS,
                "maxEvenRatio": uneven_bars.MAX_EVEN_RATIO,
                "gridCosts": [list(pair) for pair in uneven_bars.GRID_COSTS.items()],
                "widthCost": uneven_bars.WIDTH_COST,
                "maxWidthLog": uneven_bars.MAX_WIDTH_LOG,
                "joinedBeatCost": uneven_bars.JOINED_BEAT_COST,
                "maxJoinedBeats": uneven_bars.MAX_JOINED_BEATS,
                "maxSteps": uneven_bars.MAX_STEPS,
                "maxNotes": uneven_bars.MAX_NOTES,
                "maxBeats": uneven_bars.MAX_BEATS,
                "maxEstimated": uneven_bars.MAX_ESTIMATED,
            },
            "{ evenGrids: number[], triplets: number, maxEvenRatio: number, "
            "gridCosts: [number, number][], widthCost: number, maxWidthLog: number, "
            "joinedBeatCost: number, maxJoinedBeats: number, maxSteps: number, "
            "maxNotes: number, maxBeats: number, maxEstimated: number }",
            "How the rhythm of bars that are not drawn in time is estimated.",
        ),
        "MIDI": Shared(
            {
                "maxNotes": MAX_MIDI_NOTES,
                "maxExactUnit": midi.MAX_EXACT_STEPS_PER_QUARTER,
                "maxMixedUnit": MAX_STEPS_PER_QUARTER,
                "performanceUnit": midi.PERFORMANCE_STEPS_PER_QUARTER,
                "drumChannel": midi.DRUM_CHANNEL,
                "sustainPedal": midi.SUSTAIN_PEDAL,
                "strumSeconds": midi.STRUM_SECONDS,
            },
            "{ maxNotes: number, maxExactUnit: number, maxMixedUnit: number, "
            "performanceUnit: number, drumChannel: number, sustainPedal: number, "
            "strumSeconds: number }",
            "Limits of MIDI files, and how they are read.",
        ),
    }


def _settings(config: type) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each setting of a configuration: its kind of value, its choices, its default."""
    hints = get_type_hints(config, include_extras=True)
    for one in fields(config):
        found = {"default": None if one.default is MISSING else one.default}
        parts = union_members(hints[one.name])
        some = [value for part in parts for value in _values(part)]
        kinds = [part for part in parts if part is not type(None)]
        found["kind"] = "choice" if some else {int: "size", float: "number"}.get(kinds[0], "other")
        if some:
            found["choices"] = some
        if type(None) in parts:
            found["kind"] += "?"
        yield one.name, found


def _values(hint: Any) -> list[Any]:
    """Return the values of a type that has few."""
    return [True, False] if hint is bool else list(allowed_values_of(hint) or ())


def file_kinds() -> dict[str, str]:
    """Return what reads the files that can be fingered, by their suffix."""
    return {
        suffix: entry.page_reader
        for entry in FORMATS.values()
        for suffix in entry.suffixes
        if entry.page_reader
    }


SCRIPT_TYPES = {int: "number", float: "number", bool: "boolean", str: "string", type(None): "null"}


def _as_type(hint: Any) -> str:
    """Return a type of a field as TypeScript has it."""
    parts = union_members(hint)
    values = [type(value) for part in parts for value in allowed_values_of(part) or ()]
    known = [part for part in parts if part in SCRIPT_TYPES or is_dataclass(part)]
    names = [SCRIPT_TYPES.get(kind, getattr(kind, "__name__", "")) for kind in [*known, *values]]
    return " | ".join(dict.fromkeys(names)) or "Value"


def _typedef(name: str, config: type, *more: str) -> str:
    """Return the fields of a dataclass as a type that scripts use."""
    hints = get_type_hints(config, include_extras=True)
    fields_ = [f"{field.name}: {_as_type(hints[field.name])}" for field in fields(config)]
    return f"@typedef {{{{ {', '.join([*fields_, *more])} }}}} {name}"


def as_module() -> str:
    """Return the module that scripts import."""
    lines = [
        "/* Made by docs/site_build/constants.py from the package. */",
        "/** @typedef {string | number | boolean | null | number[] | RopeScaling} Value */",
        "/** @typedef {{ kind: string, default: Value, choices?: Value[] }} Setting */",
        f"/** {_typedef('RopeScaling', RopeScaling)} */",
        f"/** {_typedef('Config', ModernConfig)} */",
    ]
    for name, shared in constants().items():
        value = json.dumps(shared.value, ensure_ascii=False)
        lines.append(f"/** {shared.says} @type {{{shared.type}}} */")
        lines.append(f"export const {name} = {value};")
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the module into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / Path(FILE).name).write_text(as_module(), encoding="utf-8")


if __name__ == "__main__":
    main()
