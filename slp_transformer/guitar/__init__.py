"""Guitar tablature: the fretboard, tabs, files, tokens and corpora that models are trained on."""

from slp_transformer.guitar.ascii_writer import format_tab, write_tab
from slp_transformer.guitar.corpus import TabCorpus, prepare_tabs
from slp_transformer.guitar.files import Problem, read_file, read_tabs
from slp_transformer.guitar.fretboard import (
    STANDARD,
    TUNINGS,
    Note,
    Tuning,
    is_playable,
    string_names,
    tuning_name,
)
from slp_transformer.guitar.metrics import (
    is_playable_event,
    mean_hand_shift,
    notes_per_event,
    playable_share,
    well_formed_share,
)
from slp_transformer.guitar.practice import practice_corpus, practice_studies
from slp_transformer.guitar.tab import Bar, Event, Tab
from slp_transformer.guitar.tokens import Decoded, TabTokenizer, token_stream

__all__ = [
    "STANDARD",
    "TUNINGS",
    "Bar",
    "Decoded",
    "Event",
    "Note",
    "Problem",
    "Tab",
    "TabCorpus",
    "TabTokenizer",
    "Tuning",
    "format_tab",
    "is_playable",
    "is_playable_event",
    "mean_hand_shift",
    "notes_per_event",
    "playable_share",
    "practice_corpus",
    "practice_studies",
    "prepare_tabs",
    "read_file",
    "read_tabs",
    "string_names",
    "token_stream",
    "tuning_name",
    "well_formed_share",
    "write_tab",
]
