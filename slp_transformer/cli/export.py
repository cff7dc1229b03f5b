"""Write a run's model as others publish theirs."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from slp_transformer._internal.plugins import Options
from slp_transformer.cli.console import format_command, print_result
from slp_transformer.cli.run_options import check_trained
from slp_transformer.tasks.base import SavedRun
from slp_transformer.tasks.data_settings import Positional
from slp_transformer.tasks.saved_runs import open_run, read_current
from slp_transformer.training.run_folder import Checkpoint


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
    opened: SavedRun = field(init=False, repr=False)  # no flag: by `check`

    def check(self) -> None:
        """Open the run; refuse a folder without one, and one whose model is published already.

        Raises:
            ValueError: naming it.
        """
        run = open_run(self.run, self.checkpoint)
        object.__setattr__(self, "opened", run)
        if run.checkpoint is None:
            raise ValueError(f"{self.run} is a published model already: copy its folder.")
        check_trained(run)
        if self.adapter and run.checkpoint.lora_base is None:
            raise ValueError(f"{self.run} is not a LoRA run: leave out --adapter.")


def execute(options: ExportOptions) -> None:
    """Export, and print how to use the folder.

    Raises:
        ValueError: if there is no published form of the model or its tokenizer, or the folder has
            something in it.
    """
    import torch

    from slp_transformer.language_model import TransformerLM
    from slp_transformer.lora import merge_lora
    from slp_transformer.modern.adapters import save_adapter
    from slp_transformer.modern.pretrained import save_pretrained
    from slp_transformer.training.checkpoints import load_checkpoint_model
    from slp_transformer.training.lora_base import locate_lora_base

    def load(opened: SavedRun) -> tuple[SavedRun, Checkpoint, Any]:
        assert opened.checkpoint is not None, "check has refused it"
        return opened, opened.checkpoint, load_checkpoint_model(opened.checkpoint)

    run, folder = options.run, options.folder
    opened, checkpoint, model = read_current(options.opened, load)
    if not isinstance(model, TransformerLM):
        raise ValueError(
            f"{run} holds a model of class {type(model).__name__}: only language models are "
            "exported."
        )
    if not options.adapter:
        merge_lora(model)  # before anything is rounded
    model.to(getattr(torch, options.dtype))
    if options.adapter:
        base = checkpoint.lora_base
        name, call = None, "PeftModel.from_pretrained(base, "
        if base is not None and base.published:  # the adapter says where it is: peft loads both
            name = str(locate_lora_base(checkpoint.folder, base))
            call = "AutoPeftModelForCausalLM.from_pretrained("
        save_adapter(model, folder, name)
        print_result(
            f"The adapter is in {folder}. To use it in Python:\n  peft.{call}{str(folder)!r})"
        )
        return
    save_pretrained(model, folder, opened.task.tokenizer_of(opened))
    print_result(
        f"The model is in {folder}, its weights in {options.dtype}. To use it:\n"
        f"  {format_command('generate', folder)}"
    )
