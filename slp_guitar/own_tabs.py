"""A piece of guitar music by a Transformer of a reader's own functions.

Chapter 12's corpus, tokens and grammar, with the reader's model and the reader's `draw`.
"""

from collections.abc import Callable
from pathlib import Path

import torch

from slp_guitar.ascii.writer import format_tab
from slp_guitar.formats.midi import import_mido
from slp_guitar.formats.registry import check_writable_suffix, write_tab
from slp_guitar.fretboard import STANDARD
from slp_guitar.tab import Tab
from slp_guitar.tab_dataset import prepare_tab_dataset
from slp_guitar.tab_tokenizer import TabTokenizer
from slp_transformer.check.own.own_model import OwnModel, Parts, make_random_model
from slp_transformer.check.own.own_writing import Lesson, append_drawn_id, train_on_ids

WINDOW, MODEL_DIM, TAB_STEPS = 64, 64, 500
MIN_BARS, MAX_BARS, MAX_TOKENS = 4, 12, 400


def begin_lesson(path: Path) -> Lesson:
    """Return what lets a reader's model learn chapter 12's tabs, and write a piece to a file.

    Args:
        path: the file, of any kind that tabs are written to.

    Raises:
        ValueError: if its name says no such kind, its folder is not there, or a library that writes
            it is missing.
    """
    check_writable_suffix(path)
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} in.")
    if path.suffix in (".mid", ".midi"):
        try:
            import_mido()
        except ImportError as error:
            raise ValueError(f"{error} Or write --tabs my_tab.musicxml.") from None

    def learn(parts: Parts, say: Callable[[str], None], own_loss: bool) -> None:
        data = prepare_tab_dataset()
        say(f"Now it learns {len(data.train_tabs)} tabs, the practice pieces of chapter 12:")
        own = make_random_model(parts, len(data.tokenizer), WINDOW, MODEL_DIM)
        train_on_ids(own, data.train_data, TAB_STEPS, say, "token", own_loss)
        tab = write_piece(own, data.tokenizer)
        say("And writes, each token drawn from those that the grammar of tab allows:\n")
        say(format_tab(tab))
        write_tab(tab, path)
        say(f"Written to {path}. To hear it, open it in a music player or in MuseScore.")

    return learn


def write_piece(own: OwnModel, tokenizer: TabTokenizer, seed: int = 0) -> Tab:
    """Return a piece in 4/4 for a guitar in standard tuning, written under the grammar."""
    luck = torch.Generator().manual_seed(seed)
    header = ["<bos>", *tokenizer.tuning_tokens(STANDARD), "STEPS<4>", "METRE<4/4>"]
    ids = torch.tensor(tokenizer.to_ids(header))
    while len(ids) < MAX_TOKENS:
        bars = len(tokenizer.decode(ids.tolist()).tab.bars)
        allowed = tokenizer.allowed_next_ids(ids.tolist(), (4, 4))
        if bars <= MIN_BARS:
            allowed -= {tokenizer.eos_id}
        if bars > MAX_BARS or not allowed:
            break
        ids = append_drawn_id(own, ids, luck, allowed)
    written = tokenizer.decode(ids.tolist()).tab
    return Tab(
        "My Transformer plays",
        written.tuning,
        written.bars[:MAX_BARS],
        steps_per_quarter=written.steps_per_quarter,
    )
