"""Guitar tablature: the fretboard, tabs, files, tokens and corpora that models are trained on."""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.guitar.ascii_reader import ReadProblem, read_tab_file, read_tab_folder
    from slp_transformer.guitar.ascii_writer import format_tab
    from slp_transformer.guitar.corpus_statistics import (
        compute_mean_hand_shift,
        compute_playable_share,
        is_playable_event,
    )
    from slp_transformer.guitar.formats.registry import write_tab
    from slp_transformer.guitar.fretboard import (
        STANDARD,
        TUNINGS,
        Note,
        Tuning,
        get_string_names,
        get_tuning_name,
        is_playable_grip,
    )
    from slp_transformer.guitar.practice import make_practice_corpus, make_practice_studies
    from slp_transformer.guitar.tab import Bar, Event, Tab, TabNote, Technique
    from slp_transformer.guitar.tab_dataset import TabDataset, prepare_tab_dataset
    from slp_transformer.guitar.tab_tokenizer import DecodedTab, TabTokenizer, encode_all_tabs
    from slp_transformer.guitar.timing import (
        add_time_signatures,
        coarsest_grid,
        columns_to_steps,
        expand_repeats,
    )

__all__ = [
    "STANDARD",
    "TUNINGS",
    "Bar",
    "DecodedTab",
    "Event",
    "Note",
    "TabNote",
    "ReadProblem",
    "Tab",
    "TabDataset",
    "TabTokenizer",
    "Technique",
    "Tuning",
    "coarsest_grid",
    "format_tab",
    "columns_to_steps",
    "is_playable_grip",
    "is_playable_event",
    "compute_mean_hand_shift",
    "compute_playable_share",
    "make_practice_corpus",
    "make_practice_studies",
    "prepare_tab_dataset",
    "read_tab_file",
    "read_tab_folder",
    "get_string_names",
    "encode_all_tabs",
    "get_tuning_name",
    "expand_repeats",
    "add_time_signatures",
    "write_tab",
]

__getattr__, __dir__ = attach(__name__)
