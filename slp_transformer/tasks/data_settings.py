"""What a recipe says of its data; nothing here needs PyTorch."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from slp_transformer._internal.config_checks import check_size
from slp_transformer.data.token_types import Kind as TokenKind

Kind = Literal["text", "guitar", "translation"]
TooLong = Literal["drop", "truncate"]


@dataclass(frozen=True)
class DataSettings:
    """What a model learns from.

    Attributes:
        kind: "text", "guitar" for ASCII tabs, or "translation" for pairs of sentences.
        source: a file, a folder of .txt files, or the name of a corpus; for guitar a file or folder
            of ASCII tabs, the practice corpus if None; for translation a table (.csv, .tsv), a file
            with a sentence in each line, or "hf:NAME", numbers and dates if None.
        target: the file whose lines translate those of the source.
        source_language: what is translated from: a column of the table, or any name.
        target_language: what is translated into.
        held_out: the share of the source that is measured on and not learned from (the end of a
            text, pieces from all over a folder, always the same), or another source for that.
        held_out_target: the file whose lines translate that other source's.
        too_long: what to do with pairs that are longer than the model's window: "drop" or
            "truncate" them.
        shared_vocabulary: have both languages share one vocabulary, and one matrix E.
        tokenizer: what a token of text is: "characters", "words", or "bpe" for pieces of words.
        vocab_size: how many words or pieces there are at the most; None leaves it to the text.
        start: a run to begin with, whose best weights and tokenizer are taken over; None to begin
            anew.
        lora: fine-tune that run's model by LoRA: its weights stay, and matrices A and B of this
            rank beside those of attention learn; None to have all weights learn.
    """

    kind: Kind = "text"
    source: str | None = None
    target: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    held_out: float | str = 0.1
    held_out_target: str | None = None
    too_long: TooLong = "drop"
    shared_vocabulary: bool = True
    tokenizer: TokenKind = "characters"
    vocab_size: int | None = None
    start: str | None = None
    lora: int | None = None

    def __post_init__(self):
        """Refuse what no data can be made from.

        Raises:
            ValueError: naming the setting, what it was and what would do.
        """
        for name, choices in (("kind", get_args(Kind)), ("too_long", get_args(TooLong))):
            if getattr(self, name) not in choices:
                listed = " or ".join(f'"{choice}"' for choice in choices)
                raise ValueError(f"{name} must be {listed}, not {getattr(self, name)!r}.")
        if isinstance(self.held_out, float) and not 0 < self.held_out < 1:
            raise ValueError(
                f"held_out must be a share between 0 and 1, or another source, not {self.held_out}."
            )
        if self.vocab_size is not None:
            check_size(vocab_size=self.vocab_size)
        if self.lora is not None:
            check_size(lora=self.lora)
            if self.kind == "translation":
                raise ValueError("lora is for language models: a translator learns as a whole.")
            if self.start is None:
                raise ValueError(
                    "lora fine-tunes the model of another run: name that run, by start in a recipe "
                    "or by --from."
                )

    def seen_from(self, folder: Path) -> "DataSettings":
        """The same, with a source in that folder named as seen from it, so that both can move."""
        here = folder.resolve()
        places = {name: getattr(self, name) for name in ("source", "target")}
        inside = {n: Path(p).name for n, p in places.items() if p and Path(p).parent == here}
        return replace(self, **inside)


PAIRS_ALONE = (
    "target",
    "source_language",
    "target_language",
    "held_out_target",
    "too_long",
    "shared_vocabulary",
)
"""Settings that are for translation and nothing else."""
