"""Measure how fast encoder-decoders of one size train and translate, in several libraries.

Usage::

    python benchmarks/translation.py train
    python benchmarks/translation.py train --busy --save result.json
    python benchmarks/translation.py decode --batch 16
    python benchmarks/translation.py decode --batch 1 --beams 4

`train` times a training step at 3+3 blocks of width 256 with 8 heads, on 32 pairs of 64 source and
64 target tokens of 8,000 words; sources are padded, from half of their length on; the loss is the
package's for ours and PyTorch's, which all of them use, for the peers. `decode` times
writing 64 words for each source with each library's key-value cache: greedily, for which the peers
get a bare loop where that is faster than their own `generate`, or by beam search, in which they
have their `generate`. Weights are random. As in `language_models.py`, the contenders take turns,
and the ratio is the median of theirs to ours.
"""

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from timing import compare, interleaved, keep, one_core_busy
from torch import nn
from translators import MODELS, OF_HUGGING_FACE, Size

from slp_transformer import generate
from slp_transformer.loss import next_token_loss

Work = Callable[[], None]


def sentences(size: Size, batch: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sources [batch × length] and where they are padded; the first is as long as can be."""
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(3, size.words, (batch, length), generator=generator)
    lengths = torch.randint(length // 2, length + 1, (batch,), generator=generator)
    lengths[0] = length
    padded = torch.arange(length) >= lengths.unsqueeze(1)
    return source.masked_fill(padded, 0), padded


# --- One step of training ----------------------------------------------------------------------


def make_step(name: str, size: Size, batch: int, length: int, dtype: torch.dtype) -> Work:
    """A training step of a contender, as a function without arguments."""
    torch.manual_seed(0)
    model = MODELS[name](size).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    source, padded = sentences(size, batch, length)
    generator = torch.Generator().manual_seed(2)
    target = torch.randint(3, size.words, (batch, length + 1), generator=generator)
    loss_of = next_token_loss if name == "slp_transformer" else F.cross_entropy
    context = contextlib.nullcontext()
    if dtype == torch.bfloat16:
        context = torch.autocast("cpu", torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad()
        with context:
            U = model(source, target[:, :-1], padded)
        loss_of(U.flatten(0, 1).float(), target[:, 1:].flatten()).backward()
        optimizer.step()

    return step


def train(settings: argparse.Namespace) -> dict:
    """Time training steps."""
    size = Size(dropout=settings.dropout)
    names = settings.only or list(MODELS)
    how = (settings.batch or 32, settings.length, getattr(torch, settings.type))
    steps = {name: make_step(name, size, *how) for name in names}
    return compare(interleaved(steps, settings.rounds), 1000, "ms")


# --- Writing -----------------------------------------------------------------------------------


def decode(settings: argparse.Namespace) -> dict:
    """Time writing from a start token, each source read once."""
    size, new = Size(), settings.new
    source, padded = sentences(size, settings.batch or 1, settings.length)
    work = {}
    for name in settings.only or ("slp_transformer", *OF_HUGGING_FACE):
        torch.manual_seed(0)
        model = MODELS[name](size).eval().model
        if name == "slp_transformer":
            work[name] = write_ours(model, source, padded, new, settings.beams)
            continue
        work[f"{name}, generate"] = write_theirs(model, source, padded, new, settings.beams)
        if settings.beams is None:
            work[f"{name}, a loop"] = bare_loop(model, source, padded, new)
    return compare(interleaved(work, settings.rounds), 1000 / new, "ms/word")


def write_ours(model: nn.Module, source, padded, new: int, beams: int | None) -> Work:
    """`slp_transformer.generate`."""
    sources = [row[~hidden].tolist() for row, hidden in zip(source, padded, strict=True)]
    how = {"temperature": 0} if beams is None else {"num_beams": beams}
    return lambda: generate(model, [[1]] * len(sources), new, sources=sources, **how)


def write_theirs(model: nn.Module, source, padded, new: int, beams: int | None) -> Work:
    """Hugging Face's `generate`, told to write on to the end."""
    how = {"min_new_tokens": new, "max_new_tokens": new, "num_beams": beams or 1}
    here = {"input_ids": source, "attention_mask": (~padded).long()}
    return lambda: model.generate(**here, **how, do_sample=False, use_cache=True)


def bare_loop(model: nn.Module, source, padded, new: int) -> Work:
    """The encoder once, then one word after the other with the default cache."""
    mask = (~padded).long()

    @torch.inference_mode()
    def loop() -> None:
        read = model.get_encoder()(input_ids=source, attention_mask=mask)
        ids, cache = torch.ones(len(source), 1, dtype=torch.long), None
        for _ in range(new):
            out = model(
                encoder_outputs=read,
                attention_mask=mask,
                decoder_input_ids=ids,
                past_key_values=cache,
                use_cache=True,
            )
            cache, ids = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)

    return loop


# --- The command -------------------------------------------------------------------------------


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("train", "text", "decode"))
    parser.add_argument("--type", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--busy", action="store_true", help="keep one core busy with other work")
    parser.add_argument("--batch", type=int, help="pairs in a step [32], or sources to decode [1]")
    parser.add_argument("--length", type=int, default=64, help="tokens of the longest sentence")
    parser.add_argument("--new", type=int, default=64, help="words to write for each source")
    parser.add_argument("--beams", type=int, help="search with so many beams")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, help="CPU threads")
    parser.add_argument("--only", nargs="+", help="contenders to run; ours must be among them")
    parser.add_argument("--save", type=Path, help="JSON file to write the table to")
    settings = parser.parse_args()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    kinds = {"train": train, "decode": decode}
    with one_core_busy() if settings.busy else contextlib.nullcontext():
        table = kinds[settings.what](settings)
    keep(settings, table)


if __name__ == "__main__":
    main()
