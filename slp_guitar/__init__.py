"""Guitar tablature: the fretboard, tabs, files, tokens and corpora that models are trained on."""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_guitar.ascii.reader import read_tab_file as read_tab_file
    from slp_guitar.ascii.writer import format_tab as format_tab
    from slp_guitar.corpus_statistics import compute_playable_share as compute_playable_share
    from slp_guitar.formats.registry import write_tab as write_tab
    from slp_guitar.fretboard import STANDARD as STANDARD
    from slp_guitar.fretboard import TUNINGS as TUNINGS
    from slp_guitar.fretboard import Note as Note
    from slp_guitar.fretboard import Tuning as Tuning
    from slp_guitar.fretboard import is_playable_grip as is_playable_grip
    from slp_guitar.practice import make_practice_corpus as make_practice_corpus
    from slp_guitar.practice import make_practice_studies as make_practice_studies
    from slp_guitar.tab import Bar as Bar
    from slp_guitar.tab import Event as Event
    from slp_guitar.tab import Tab as Tab
    from slp_guitar.tab import TabNote as TabNote
    from slp_guitar.tab_dataset import prepare_tab_dataset as prepare_tab_dataset
    from slp_guitar.tab_dataset import read_tab_folder as read_tab_folder
    from slp_guitar.tab_tokenizer import TabTokenizer as TabTokenizer
    from slp_guitar.tab_tokenizer import encode_all_tabs as encode_all_tabs
    from slp_guitar.timing import columns_to_steps as columns_to_steps

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__)
