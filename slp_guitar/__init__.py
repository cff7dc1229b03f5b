"""Guitar tablature: the fretboard, tabs, files, tokens and corpora that models are trained on."""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_guitar.ascii.reader import read_tab_file, read_tab_folder
    from slp_guitar.ascii.writer import format_tab
    from slp_guitar.corpus_statistics import compute_mean_hand_shift, compute_playable_share
    from slp_guitar.formats.registry import write_tab
    from slp_guitar.fretboard import STANDARD, TUNINGS, Note, Tuning, is_playable_grip
    from slp_guitar.practice import make_practice_corpus, make_practice_studies
    from slp_guitar.tab import Bar, Event, Tab, TabNote
    from slp_guitar.tab_dataset import prepare_tab_dataset
    from slp_guitar.tab_tokenizer import TabTokenizer, encode_all_tabs
    from slp_guitar.timing import columns_to_steps

__all__ = [
    "STANDARD",
    "TUNINGS",
    "Bar",
    "Event",
    "Note",
    "TabNote",
    "Tab",
    "TabTokenizer",
    "Tuning",
    "format_tab",
    "columns_to_steps",
    "is_playable_grip",
    "compute_mean_hand_shift",
    "compute_playable_share",
    "make_practice_corpus",
    "make_practice_studies",
    "prepare_tab_dataset",
    "read_tab_file",
    "read_tab_folder",
    "encode_all_tabs",
    "write_tab",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = attach(__name__)
