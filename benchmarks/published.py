"""Measure how fast published models write here and in their library, with the same weights.

Usage::

    python benchmarks/published.py --model gpt2 --batch 1
    python benchmarks/published.py --model llama --batch 16 --save result.json
    python benchmarks/published.py --model grouped --tiny

`gpt2` has the sizes of GPT-2, `llama` those of GPT-2 with the parts of Llama, `grouped` a Llama
whose 12 heads share 4 keys and values. Weights are random: `transformers` makes the model and saves
it, `slp_transformer.modern` loads its files, and litgpt's own converter gives them to litgpt, which
has no GPT-2. Before anything is timed, all must write the same words. As in `language_models.py`,
the contenders take turns, and the ratio is the median of theirs to ours.
"""

import argparse
import importlib.util
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import peers  # noqa: F401  before transformers: nothing is looked for online
import torch
from timing import compare, interleaved, keep
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from slp_transformer import generate
from slp_transformer.modern import from_pretrained

BLOCKS, WIDTH, HEADS, HIDDEN, VOCABULARY = 12, 768, 12, 2048, 50257
SHARED = {"gpt2": HEADS, "llama": HEADS, "grouped": 4}

Write = Callable[[], list[list[int]]]


def make(kind: str, context: int, tiny: bool) -> nn.Module:
    """A model of Hugging Face's with random weights, in evaluation mode."""
    blocks, words = (2, 1009) if tiny else (BLOCKS, VOCABULARY)
    torch.manual_seed(0)
    if kind == "gpt2":
        sizes = {"n_layer": blocks, "n_embd": WIDTH, "n_head": HEADS, "n_positions": context}
        config = GPT2Config(vocab_size=words, bos_token_id=0, eos_token_id=0, **sizes)
        return GPT2LMHeadModel(config).eval()
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=WIDTH,
        intermediate_size=HIDDEN,
        num_hidden_layers=blocks,
        num_attention_heads=HEADS,
        num_key_value_heads=SHARED[kind],
        max_position_embeddings=context,
        tie_word_embeddings=False,
        rms_norm_eps=1e-5,
    )
    return LlamaForCausalLM(config).eval()


def ours(model: nn.Module, prompts: torch.Tensor, new: int) -> Write:
    """`slp_transformer.generate`, on the files that the model is saved to."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        loaded = from_pretrained(folder)
    return lambda: [one.ids for one in generate(loaded, prompts, new, temperature=0)]


def hugging_face(model: nn.Module, prompts: torch.Tensor, new: int) -> Write:
    """A loop over the model with its default cache; its `generate` is slower."""

    @torch.inference_mode()
    def loop() -> list[list[int]]:
        written, ids, cache = [prompts], prompts, None
        for _ in range(new):
            out = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache, ids = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
            written.append(ids)
        return torch.cat(written, dim=1).tolist()

    return loop


def litgpt(model: nn.Module, prompts: torch.Tensor, new: int) -> Write:
    """A loop as litgpt's own generate has it, for a batch; the weights by its own converter."""
    from litgpt.config import Config
    from litgpt.model import GPT
    from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama

    of, N = model.config, prompts.shape[1]
    config = Config(
        block_size=of.max_position_embeddings,
        n_layer=of.num_hidden_layers,
        n_embd=of.hidden_size,
        n_head=of.num_attention_heads,
        n_query_groups=of.num_key_value_heads,
        intermediate_size=of.intermediate_size,
        vocab_size=of.vocab_size,
        padded_vocab_size=of.vocab_size,
        rotary_percentage=1.0,
        parallel_residual=False,
        bias=False,
        norm_class_name="RMSNorm",
        norm_eps=of.rms_norm_eps,
        mlp_class_name="LLaMAMLP",
    )
    state: dict[str, torch.Tensor] = {}
    copy_weights_hf_llama(config, defaultdict(lambda: defaultdict(dict)), state, model.state_dict())
    theirs = GPT(config).eval()
    theirs.load_state_dict(state)

    @torch.inference_mode()
    def loop() -> list[list[int]]:
        theirs.set_kv_cache(batch_size=len(prompts))
        written, ids, positions = [prompts], prompts, torch.arange(N)
        for place in range(N, N + new):
            U = theirs(ids, positions, input_pos_maxp1=place)
            ids, positions = U[:, -1].argmax(-1, keepdim=True), torch.tensor([place])
            written.append(ids)
        theirs.clear_kv_cache()
        return torch.cat(written, dim=1).tolist()

    return loop


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", choices=SHARED, default="gpt2")
    parser.add_argument("--batch", type=int, default=1, help="prompts")
    parser.add_argument("--prompt", type=int, default=16, help="tokens of each prompt")
    parser.add_argument("--new", type=int, default=128, help="tokens to write")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--tiny", action="store_true", help="2 blocks and 1,009 words")
    parser.add_argument("--save", type=Path, help="JSON file to write the table to")
    settings = parser.parse_args()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    model = make(settings.model, settings.prompt + settings.new, settings.tiny)
    generator = torch.Generator().manual_seed(1)
    shape = (settings.batch, settings.prompt)
    prompts = torch.randint(model.config.vocab_size, shape, generator=generator)
    contenders = {"slp_transformer": ours, "Hugging Face": hugging_face, "litgpt": litgpt}
    if settings.model == "gpt2":
        del contenders["litgpt"]
    elif importlib.util.find_spec("litgpt") is None:
        print("litgpt is not installed (pip install litgpt), and left out.")
        del contenders["litgpt"]
    work = {name: write(model, prompts, settings.new) for name, write in contenders.items()}
    words = {name: loop() for name, loop in work.items()}
    for name, written in words.items():
        if written != words["slp_transformer"]:
            raise SystemExit(f"{name} writes other words than slp_transformer.")
    print(f"{len(words)} contenders write the same {settings.batch} × {settings.new} words.")
    table = compare(interleaved(work, settings.rounds), 1000 / settings.new, "ms/token")
    keep(settings, table)


if __name__ == "__main__":
    main()
