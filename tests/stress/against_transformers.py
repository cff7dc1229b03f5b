"""Ask small models of transformers and peft, and ours with the same files, and compare.

    python tests/stress/against_transformers.py --out against_transformers.json

Padding on both sides, with positions and without, in every form of each family; adapters of every
kind that peft makes; texts that end before a string; in float32 and bfloat16. A check is kept if
both say the same, or ours refuses in a sentence; a difference without a word is lost, and told.
"""

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.append(str(Path(__file__).parents[1] / "helpers"))

import peft
import torch
import transformers
from foreign import MODELS, V
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn

from slp_transformer import padding_mask
from slp_transformer.modern import from_pretrained, load_adapter, load_tokenizer
from slp_transformer.tasks.generation_session import continue_prompts
from slp_transformer.tasks.text import PublishedSession

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
AUTO = {
    "words": transformers.AutoModelForCausalLM,
    "stack": transformers.AutoModel,
    "classes": transformers.AutoModelForSequenceClassification,
}
TEXT = "the quick brown fox jumps over the lazy dog, and so do I. " * 9
Check = tuple[str, Callable[[Path], str]]


def make(name: str, form: str, folder: Path, **sizes: Any) -> nn.Module:
    """A model of transformers with random weights, and its files in a folder."""
    _, config, own = MODELS[name]
    settings = config(**own | {"pad_token_id": 0, "num_labels": 5} | sizes)
    settings._attn_implementation = "eager"
    kind = AUTO[form]
    if name.startswith("bert") and form == "words":
        kind = transformers.AutoModelForMaskedLM
    torch.manual_seed(0)
    model = kind.from_config(settings).eval()
    with torch.no_grad():
        for W in model.parameters():
            W.normal_(0.0, 0.4)
    model.save_pretrained(folder)
    return model


def verdict(ours: Tensor, theirs: Tensor, exact: Tensor) -> str:
    """Whether ours is as near to theirs as theirs is to itself in float32."""
    error = (ours.float() - theirs.float()).abs().max().item()
    room = 3 * (theirs.float() - exact).abs().max().item() + 2e-4 * exact.abs().max().item()
    return "same" if error <= room else f"DIFFERENT by {error:.3g}, where {room:.3g} may be"


def padded(name: str, form: str, side: str, dtype: str, folder: Path) -> str:
    """A batch of texts of several lengths, with padding on one side."""
    theirs = make(name, form, folder)
    lengths = [9, 6, 3, 8]
    kept = torch.tensor([[t < n for t in range(9)] for n in lengths])
    ids = torch.randint(1, V, kept.shape, generator=torch.Generator().manual_seed(1))
    kept = kept if side == "right" else kept.flip(-1)
    ids = ids * kept
    how = {"attention_mask": kept.long()}
    ours_how: dict[str, Any] = {}
    if side == "left, with positions":
        positions = (kept.cumsum(-1) - 1).clamp(min=0)
        how["position_ids"] = ours_how["position_ids"] = positions

    def ask(model: nn.Module, **more: Any) -> Tensor:
        with torch.no_grad():
            said = model(ids, **more)
        said = getattr(said, "logits", getattr(said, "last_hidden_state", said))
        return said if said.dim() == 2 else said[kept]

    exact = ask(theirs, **how)
    expected = ask(theirs.to(DTYPES[dtype]), **how)
    ours = from_pretrained(folder, dtype=DTYPES[dtype])
    mask = padding_mask(ids, 0).to(DTYPES[dtype])
    return verdict(ask(ours, mask=mask, **ours_how), expected, exact)


LINEAR = {"gpt2": ["c_attn", "c_fc"], "gpt_neox": ["query_key_value", "dense_h_to_4h"]}
LINEAR |= {"phi3": ["qkv_proj", "down_proj"]}
LORA: dict[str, dict[str, Any]] = {
    "plain": {},
    "all linear": {"target_modules": "all-linear"},
    "rank and alpha": {"r": 5, "lora_alpha": 2},
    "rslora": {"use_rslora": True},
    "dora": {"use_dora": True},
    "biases": {"bias": "all"},
    "biases of its own": {"bias": "lora_only"},
    "bias of B": {"lora_bias": True},
    "ranks by pattern": {"rank_pattern": {".*0.*": 2}},
    "alphas by pattern": {"alpha_pattern": {".*0.*": 7}},
    "one layer": {"layers_to_transform": [1]},
    "gaussian": {"init_lora_weights": "gaussian"},
    "pissa": {"init_lora_weights": "pissa"},
    "olora": {"init_lora_weights": "olora"},
    "orthogonal": {"init_lora_weights": "orthogonal"},
    "tokens": {"trainable_token_indices": [3, 4]},
    "invocation": {"alora_invocation_tokens": [48, 49]},
    "dropout": {"lora_dropout": 0.5},
    "the head as well": {"modules_to_save": ["lm_head"]},
    "a copied layer": {"layer_replication": [(0, 2), (0, 1)]},
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "IA3": ("IA3Config", {"feedforward_modules": []}),
    "AdaLoRA": ("AdaLoraConfig", {"total_step": 9}),
    "LoHa": ("LoHaConfig", {}),
    "LoKr": ("LoKrConfig", {}),
    "OFT": ("OFTConfig", {"oft_block_size": 3, "r": 0}),
    "BOFT": ("BOFTConfig", {"boft_block_size": 1}),
    "VeRA": ("VeraConfig", {}),
    "FourierFT": ("FourierFTConfig", {"n_frequency": 5}),
    "HRA": ("HRAConfig", {"r": 2}),
    "layer norms": ("LNTuningConfig", {"target_modules": None}),
    "prompt": ("PromptTuningConfig", {"num_virtual_tokens": 3}),
    "prefix": ("PrefixTuningConfig", {"num_virtual_tokens": 3}),
    "p-tuning": ("PromptEncoderConfig", {"num_virtual_tokens": 3}),
}


def adapted(name: str, kind: str, dtype: str, folder: Path) -> str:
    """An adapter with random numbers, on its base."""
    base, on = make(name, "words", folder / "base"), LINEAR.get(name, ["q_proj", "v_proj"])
    try:
        if kind in LORA:
            settings = {"r": 3, "lora_alpha": 6, "target_modules": on} | LORA[kind]
            made = peft.LoraConfig(task_type="CAUSAL_LM", **settings)
        else:
            config, settings = OTHERS[kind]
            settings = (
                settings if "num_virtual_tokens" in settings else {"target_modules": on} | settings
            )
            made = getattr(peft, config)(task_type="CAUSAL_LM", **settings)
        theirs = peft.get_peft_model(base, made).eval()
        ids = torch.randint(5, V, (3, 7), generator=torch.Generator().manual_seed(2))
        theirs(input_ids=ids)
    except Exception as error:
        return f"peft cannot use it: {type(error).__name__}"
    if kind not in ("pissa", "olora", "orthogonal"):  # which change the base as well
        with torch.no_grad():
            for W in theirs.parameters():
                if W.requires_grad:
                    W.normal_(0.0, 0.3)
    theirs.save_pretrained(folder / "adapter")
    with torch.no_grad():
        exact = theirs(input_ids=ids).logits
        expected = theirs.to(DTYPES[dtype])(input_ids=ids).logits
        ours = from_pretrained(folder / "base", dtype=DTYPES[dtype])
        load_adapter(ours, folder / "adapter")
        return verdict(ours.eval()(ids), expected, exact)


def stopped(name: str, seed: int, dtype: str, folder: Path) -> str:
    """Greedy text up to the first of some strings, drawn from that text and beside it."""
    library = Tokenizer(models.BPE())
    library.decoder = decoders.ByteLevel()
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=V, special_tokens=["<pad>", "<begin>", "<end>", "<e>"])
    library.train_from_iterator([TEXT], trainer)  # of ASCII alone: any tokens make a text
    theirs = make(name, "words", folder).to(DTYPES[dtype])
    library.save(str(folder / "tokenizer.json"))
    ours = from_pretrained(folder, dtype=DTYPES[dtype])
    tokenizer = load_tokenizer(folder, ours.config)
    draw = random.Random(seed)
    prompt = [draw.randrange(4, V) for _ in range(4)]
    with torch.no_grad():
        how = {"max_new_tokens": 24, "do_sample": False, "pad_token_id": 0}
        ids = theirs.generate(torch.tensor([prompt]), **how)[0, 4:].tolist()
    ids = [*ids, None][: next((n for n, i in enumerate(ids) if i in ours.config.end_ids), len(ids))]
    text = tokenizer.decode(ids)
    session = PublishedSession(tokenizer, ours.config.end_ids)
    how = {"answers": True, "temperature": 0}
    (whole,) = continue_prompts(ours, session, [prompt], 24, **how)
    if dtype == "bfloat16" and whole.render(session) != text:
        return "other words by rounding"
    if len(text) < 4:
        return "too short for a stop" if whole.render(session) == text else "DIFFERENT words"
    at = sorted(draw.sample(range(len(text)), 3))
    stops = [text[at[0] : at[0] + 2], text[at[1] : at[1] + draw.randrange(1, 6)], "never there"]
    # The string that is complete first; of two that end together the longer one.
    _, end = min((text.index(s) + len(s), text.index(s)) for s in stops if s in text)
    (one,) = continue_prompts(ours, session, [prompt], 24, stop_texts=stops, **how)
    said = one.render(session)
    return "same" if said == text[:end] else f"DIFFERENT: {said!r}, not {text[:end]!r}"


def checks() -> Iterator[Check]:
    """Yield all checks, with their names."""
    for dtype in DTYPES:
        for name in MODELS:
            for form in AUTO:
                sides = ("right", "left", "left, with positions")
                for side in sides[
                    : 2 if name.startswith("bert") else 3
                ]:  # which takes no positions
                    what = f"padding {side}: {name}, {form}, {dtype}"
                    yield what, lambda f, a=(name, form, side, dtype): padded(*a, f)
        for name in ("llama", "gpt2", "qwen3", "phi3"):
            for kind in (*LORA, *OTHERS):
                if dtype == "float32" or kind in LORA:
                    what = f"adapter {kind}: {name}, {dtype}"
                    yield what, lambda f, a=(name, kind, dtype): adapted(*a, f)
        for name in ("llama", "gpt2", "qwen2"):
            for seed in range(8):
                what = f"stop strings {seed}: {name}, {dtype}"
                yield what, lambda f, a=(name, seed, dtype): stopped(*a, f)


def main() -> int:
    """Make the checks, and tell what is lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="checks whose name has this in it")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    count, lost, refused = Counter[str](), [], Counter[str]()
    for what, check in checks():
        if options.only not in what:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = check(Path(folder))
            except ValueError as error:
                found = "refused"
                refused[f"{what.split(':')[0]}: {str(error).replace(folder, '')[:160]}"] += 1
            except Exception:
                found = f"DIFFERENT: {traceback.format_exc()[-400:]}"
        group = what.split()[0]
        if found.startswith("DIFFERENT"):
            lost.append([what, found])
            print(what, found, flush=True)
        count[f"{group}, {'lost' if found.startswith('DIFF') else found.split(':')[0]}"] += 1
    versions = {m.__name__: m.__version__ for m in (torch, transformers, peft)}
    found = {
        "command": f"python tests/stress/against_transformers.py {' '.join(sys.argv[1:])}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions | {"python": platform.python_version()},
        "results": {"checks": count.total(), **count, "refusals": dict(refused), "lost": lost},
    }
    print(json.dumps(count, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
