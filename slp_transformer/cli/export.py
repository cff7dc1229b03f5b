"""Write a run's model as others publish theirs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slp_transformer._internal.plugins import Options
from slp_transformer.cli.console import format_command, print_result
from slp_transformer.cli.run_options import check_run
from slp_transformer.modern.published_folders import is_pretrained_folder
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.saved_runs import load_tokenizer_of
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


def execute(options: ExportOptions) -> None:
    """Export, and print how to use the folder.

    Raises:
        ValueError: if there is no published form of the model or its tokenizer, or the folder has
            something in it.
    """
    import torch

    from slp_transformer._internal.argument_checks import is_all_finite
    from slp_transformer.language_model import TransformerLM
    from slp_transformer.lora import merge_lora
    from slp_transformer.modern.adapters import save_adapter
    from slp_transformer.modern.pretrained import save_pretrained
    from slp_transformer.training.checkpoints import load_model
    from slp_transformer.training.lora_base import locate_lora_base

    run, folder, which = options.run, options.folder, options.checkpoint
    model = load_model(run, which)
    if not isinstance(model, TransformerLM):
        raise ValueError(
            f"{run} holds a model of class {type(model).__name__}: only language models are "
            "exported."
        )
    if not options.adapter:
        merge_lora(model)  # before anything is rounded
    model.to(getattr(torch, options.dtype))
    for key, W in model.state_dict().items():
        if not is_all_finite(W):
            raise ValueError(f"{key} of {run} has numbers beyond {options.dtype}: choose bfloat16.")
    if options.adapter:
        checkpoint = checkpoint_folder(run, which)
        base = load_lora_base(checkpoint)
        name, call = None, "PeftModel.from_pretrained(base, "
        if base is not None and base.published:  # the adapter says where it is: peft loads both
            name = str(locate_lora_base(checkpoint, base))
            call = "AutoPeftModelForCausalLM.from_pretrained("
        save_adapter(model, folder, name)
        print_result(
            f"The adapter is in {folder}. To use it in Python:\n  peft.{call}{str(folder)!r})"
        )
        return
    save_pretrained(model, folder, load_tokenizer_of(run, which))
    print_result(
        f"The model is in {folder}, its weights in {options.dtype}. To use it:\n"
        f"  {format_command('generate', folder)}"
    )
