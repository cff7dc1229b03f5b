"""Damage folders of published models in many ways, and see what the command line makes of each.

    python tests/stress/published_folders.py --count 5000 --seed 1 --out published_folders.json

Each trial copies a small GPT-2, Llama (in shards), Qwen3 or BERT in Hugging Face's layout, damages
one file and gives `info`, `generate` or `evaluate` to it. It is kept if the command does its work
or refuses in one sentence with code 2, leaves the folder alone, and takes at most 5 seconds of a
core and 1 GiB.
"""

import json
import random
import shutil
import sys
from functools import partial
from pathlib import Path

import tokenizers
import torch
from mutations import ODD, Trial, campaign, contents, damage, give, main, unheard
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from slp_transformer.data import load_moby_dick

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))
from foreign import MODELS, V  # noqa: E402

KINDS = {"gpt2": "bpe", "llama": "bpe", "qwen3": "wordlevel", "bert": "wordpiece"}
COMMANDS = {
    "info": ["info", "FOLDER"],
    "generate": "generate FOLDER --prompt the --max-new-tokens 4 --device cpu".split(),
    "evaluate": "evaluate FOLDER TEXT --device cpu".split(),
}
SPECIAL = ["[UNK]", "<s>", "</s>", "[CLS]", "[SEP]"]


def make_tokenizer(kind: str) -> tokenizers.Tokenizer:
    """A tokenizer of one kind with many parts, and no more tokens than the model."""
    how = {"vocab_size": V, "special_tokens": SPECIAL, "show_progress": False}
    if kind == "bpe":
        model, trainer = models.BPE(unk_token="[UNK]"), trainers.BpeTrainer(**how)
    elif kind == "wordlevel":
        model, trainer = models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(**how)
    else:
        model, trainer = (
            models.WordPiece(unk_token="[UNK]"),
            trainers.WordPieceTrainer(**how, limit_alphabet=17),
        )
    tokenizer = tokenizers.Tokenizer(model)
    parts = [normalizers.NFC(), normalizers.Replace(tokenizers.Regex("[^a-z ]"), " ")]
    if kind == "wordpiece":
        parts = [normalizers.BertNormalizer(), *parts[1:]]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *parts])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece() if kind == "wordpiece" else decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 3), ("[SEP]", 4)]
    )
    tokenizer.train_from_iterator([load_moby_dick()[:20_000].lower()], trainer)
    tokenizer.enable_truncation(13, stride=2)
    tokenizer.enable_padding(length=7, pad_token="[UNK]")
    return tokenizer


def make_folders(folder: Path) -> None:
    """Make a sound folder of each kind, and see that the commands do their work."""
    (folder / "text.txt").write_text(load_moby_dick()[:900].lower(), encoding="utf-8")
    for name, tokenizer in KINDS.items():
        kind, config, sizes = MODELS[name]
        torch.manual_seed(0)
        shard = "8KB" if name == "llama" else "1GB"
        kind(config(**sizes)).save_pretrained(folder / name, max_shard_size=shard)
        make_tokenizer(tokenizer).save(str(folder / name / "tokenizer.json"))
        for command, words in COMMANDS.items():
            code = unheard(filled(words, folder, folder / name))
            if code != (2 if name == "bert" and command != "info" else 0):
                raise RuntimeError(f"{command} of the sound {name} ended with {code}.")


def filled(words: list[str], folder: Path, model: Path) -> list[str]:
    paths = {"FOLDER": str(model), "TEXT": str(folder / "text.txt")}
    return [paths.get(word, word) for word in words]


def misplace(path: Path, draw: random.Random) -> str:
    """Change where the index of the shards leads to."""
    index = json.loads(path.read_text(encoding="utf-8"))
    names = sorted(index["weight_map"])
    name, other = draw.choice(names), draw.choice(names)
    to = ["../" + index["weight_map"][other], str(path.parent / index["weight_map"][other])]
    to += [index["weight_map"][other], "model.safetensors", *map(str, ODD[:6])]
    index["weight_map"][name] = draw.choice(to)
    path.write_text(json.dumps(index), encoding="utf-8")
    return f"{name} leads to {index['weight_map'][name]}"


def one_trial(folder: Path, number: int, seed: int) -> Trial:
    """Damage a copy of a folder, and give it a command."""
    draw = random.Random(f"{seed} {number}")
    name, command = draw.choice(sorted(KINDS)), draw.choice(sorted(COMMANDS))
    model = folder / "trial"
    shutil.rmtree(model, ignore_errors=True)
    shutil.copytree(folder / name, model)
    files = sorted(model.iterdir())
    path = draw.choices(files, [6 if "tokenizer" in path.name else 2 for path in files])[0]
    by_index = path.name.endswith("index.json") and draw.random() < 0.5
    done = (misplace if by_index else damage)(path, draw)
    before, words = contents(model), filled(COMMANDS[command], folder, model)
    return give(words, folder, name, f"{path.name}, {done}, {command}", model, before)


if __name__ == "__main__":
    sys.exit(main(__doc__, partial(campaign, make=make_folders, one_trial=one_trial)))
