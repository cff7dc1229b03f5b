"""Guitar tablature: the fretboard, tabs, files, tokens and corpora that models are trained on."""

from typing import TYPE_CHECKING

from slp_transformer._internal.lazy import attach

if TYPE_CHECKING:
    from slp_transformer.guitar.ascii_reader import Problem, read_file, read_tabs
    from slp_transformer.guitar.ascii_writer import format_tab, write_tab
    from slp_transformer.guitar.fretboard import (
        STANDARD,
        TUNINGS,
        Note,
        Tuning,
        is_playable,
        string_names,
        tuning_name,
    )
    from slp_transformer.guitar.practice import practice_corpus, practice_studies
    from slp_transformer.guitar.score import Score, Sounding, score_of, tab_of
    from slp_transformer.guitar.tab import Bar, Event, Played, Tab, Technique
    from slp_transformer.guitar.tab_dataset import TabCorpus, prepare_tabs
    from slp_transformer.guitar.tab_metrics import (
        is_playable_event,
        mean_hand_shift,
        playable_share,
        well_formed_share,
    )
    from slp_transformer.guitar.tab_tokenizer import Decoded, TabTokenizer, token_stream
    from slp_transformer.guitar.timing import (
        coarsest,
        in_time,
        unfolded,
        with_metres,
        with_steps_per_quarter,
    )

__all__ = [
    "STANDARD",
    "TUNINGS",
    "Bar",
    "Decoded",
    "Event",
    "Note",
    "Played",
    "Problem",
    "Score",
    "Sounding",
    "Tab",
    "TabCorpus",
    "TabTokenizer",
    "Technique",
    "Tuning",
    "coarsest",
    "format_tab",
    "in_time",
    "is_playable",
    "is_playable_event",
    "mean_hand_shift",
    "playable_share",
    "practice_corpus",
    "practice_studies",
    "prepare_tabs",
    "read_file",
    "read_tabs",
    "score_of",
    "string_names",
    "tab_of",
    "token_stream",
    "tuning_name",
    "unfolded",
    "well_formed_share",
    "with_metres",
    "with_steps_per_quarter",
    "write_tab",
]

__getattr__, __dir__ = attach(__name__)
