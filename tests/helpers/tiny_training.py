"""Small models, data and runs for the tests of training."""

from pathlib import Path

import torch

from slp_transformer import EncoderDecoder, TransformerConfig, TransformerLM
from slp_transformer.data.pair_batches import PaddedPairSource
from slp_transformer.training import train

STREAM = torch.arange(7).repeat(5)
SIZES = {"model_dim": 6, "num_heads": 2, "num_blocks": 1}
PAD, BEGIN, END = 0, 1, 2


def language_model(seed: int = 0, **changes) -> TransformerLM:
    torch.manual_seed(seed)
    return TransformerLM(TransformerConfig(7, **{"context_length": 5} | SIZES | changes))


def with_dropout(seed: int = 0, **changes) -> TransformerLM:
    return language_model(seed, **{"dropout": 0.2} | changes)


def encoder_decoder(**changes) -> EncoderDecoder:
    torch.manual_seed(0)
    return EncoderDecoder(TransformerConfig(11, 13, **SIZES | changes))


def pairs(*lengths: tuple[int, int]) -> PaddedPairSource:
    generator = torch.Generator().manual_seed(0)
    rows = [[torch.randint(3, 11, (n,), generator=generator) for n in both] for both in lengths]
    return PaddedPairSource([tuple(row) for row in rows], pad_id=PAD, begin_id=BEGIN, end_id=END)


def run(folder, model=None, stream=STREAM, **changes):
    """Train a model in a folder; the model and its evaluations."""
    model = model or with_dropout()
    settings = {"steps": 4, "eval_interval": 2, "batch_size": 2, "progress": False} | changes
    return model, train(model, stream, STREAM, out_dir=folder, **settings)


def stop_at(step: int):
    """What ends a run after an evaluation, as a power cut would."""

    def stop(record):
        if record.step == step:
            raise OSError("the plug is pulled")

    return stop


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    """Whether two models have the same weights, bit for bit."""
    pairs = zip(a.state_dict().items(), b.state_dict().items(), strict=True)
    return all(m == n and torch.equal(x, y) for (m, x), (n, y) in pairs)


def files(folder: Path, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    """What each file below a folder holds, but for files of some names."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in but)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
