"""The table of commands."""

from slp_transformer._internal.plugins import TEXT_EXTRA, Command

HERE = "slp_transformer.cli"
GUITAR_EXTRA = {"slp-transformer[guitar]": ("tyro", "mido", "guitarpro")}

COMMANDS = {
    "train": Command(
        f"{HERE}.train_options:parse_train",
        f"{HERE}.train:execute",
        ("train text my-texts --out-dir runs/mine", "a file or a folder of .txt files"),
        TEXT_EXTRA,
    ),
    "generate": Command(
        f"{HERE}.generate:Generate",
        f"{HERE}.generate:execute",
        ('generate runs/mine --prompt "the "', "continue a prompt"),
        TEXT_EXTRA,
    ),
    "translate": Command(
        f"{HERE}.translate_options:Translate",
        f"{HERE}.translate:execute",
        ('translate runs/pairs "A sentence."', "translate with a model trained on pairs"),
        TEXT_EXTRA,
    ),
    "evaluate": Command(
        f"{HERE}.evaluate:Evaluate",
        f"{HERE}.evaluate:execute",
        ("evaluate runs/mine", "on data that it was not trained on"),
        TEXT_EXTRA,
    ),
    "info": Command(
        f"{HERE}.info_options:Info",
        f"{HERE}.info:execute",
        ("info runs/mine", "its model, tokenizer and progress"),
        TEXT_EXTRA,
    ),
    "merge": Command(
        f"{HERE}.merge_options:Merge",
        f"{HERE}.merge:execute",
        ("merge runs/lora --out-dir runs/merged", "a LoRA run with its base"),
        TEXT_EXTRA,
    ),
    "tab": Command(
        f"{HERE}.song_options:Tab",
        f"{HERE}.tab:execute",
        ("tab song.mid", "guitar tab that can be played"),
        GUITAR_EXTRA,
        any_bytes=True,
        loads_torch=False,
    ),
    "convert": Command(
        f"{HERE}.song_options:Convert",
        f"{HERE}.convert:execute",
        ("convert song.gp5 -o song.musicxml", "guitar music as another kind of file"),
        GUITAR_EXTRA,
        any_bytes=True,
        loads_torch=False,
    ),
}
"""Each command's name on the command line, and where its parts are."""
