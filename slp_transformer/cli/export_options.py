"""The options of `export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slp_transformer._internal.plugins import Options
from slp_transformer.cli.run_options import check_run
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.training.run_folder import checkpoint_folder, load_lora_base


@dataclass(frozen=True)
class ExportOptions(Options):
    """Write a language model of text as others publish theirs: weights, configuration, tokenizer.

    `transformers` opens the folder with AutoModelForCausalLM and AutoTokenizer, which give the same
    ids, text and logits; so do `generate` and `evaluate` here. The matrices of a LoRA run are
    merged with its base, or written alone, as the library peft reads them.

    Attributes:
        run: the folder of a run.
        folder: a new folder, or an empty one.
        adapter: write the matrices of a LoRA run alone.
        dtype: the type of the weights: that of training, or one of half its size, to which they
            are rounded.
        checkpoint: the one with the lowest validation loss, or the last one.
    """

    run: Positional[Path]
    folder: Positional[Path]
    adapter: bool = False
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    checkpoint: Literal["best", "last"] = "best"

    def check(self) -> None:
        """Refuse a folder without a run, and one whose model is published already.

        Raises:
            ValueError: naming it.
        """
        if self.run.is_dir() and is_pretrained_folder(self.run):
            raise ValueError(f"{self.run} is a published model already: copy its folder.")
        check_run(self.run, self.checkpoint, trained=True)
        if self.adapter and load_lora_base(checkpoint_folder(self.run, self.checkpoint)) is None:
            raise ValueError(f"{self.run} is not a LoRA run: leave out --adapter.")
