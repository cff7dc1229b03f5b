"""The table of commands: ours, and those of plug-ins."""

from slp_transformer._internal.plugins import Command, merge_entries

HERE = "slp_transformer.cli"

COMMANDS: dict[str, Command] = merge_entries(
    "commands",
    {
        "train": Command(
            f"{HERE}.train_options:parse_train",
            f"{HERE}.train:execute",
            None,  # each task has a line of its own
        ),
        "generate": Command(
            f"{HERE}.generate:parse_generate",
            f"{HERE}.generate:execute",
            ('generate runs/mine --prompt "the "', "continue a prompt"),
        ),
        "translate": Command(
            f"{HERE}.translate:TranslateOptions",
            f"{HERE}.translate:execute",
            ('translate runs/pairs "A sentence."', "translate with a model trained on pairs"),
        ),
        "score": Command(
            f"{HERE}.score:ScoreOptions",
            f"{HERE}.score:execute",
            ('score runs/mine --continuation " fox"', "the probability of what might follow"),
        ),
        "evaluate": Command(
            f"{HERE}.evaluate:parse_evaluate",
            f"{HERE}.evaluate:execute",
            ("evaluate runs/mine", "on data that it was not trained on"),
        ),
        "info": Command(
            f"{HERE}.info:InfoOptions",
            f"{HERE}.info:execute",
            ("info runs/mine", "its model, tokenizer and progress"),
        ),
        "export": Command(
            f"{HERE}.export:ExportOptions",
            f"{HERE}.export:execute",
            ("export runs/mine exported", "as a model that transformers opens"),
        ),
        "merge": Command(
            f"{HERE}.merge:MergeOptions",
            f"{HERE}.merge:execute",
            ("merge runs/lora --out-dir runs/merged", "a LoRA run with its base"),
        ),
    },
)
"""Each command's name on the command line, and where its parts are."""
