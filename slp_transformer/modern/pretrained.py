"""Models of others, in and out; `slp_transformer.modern.families` has a record for each kind."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import torch
from torch import nn

from slp_transformer._internal.argument_checks import check_finite_weights
from slp_transformer._internal.atomic_write import (
    fsync_path,
    make_locked_folder,
    remove_path,
    rename_path,
)
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.json_files import read_settings, write_json
from slp_transformer._internal.shape_types import Tensor
from slp_transformer.data.text_tokenizer import TextTokenizer
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import iter_lora
from slp_transformer.modern.bert import Bert, BertClassifier, BertConfig, BertEncoder
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.encoders import ModernClassifier, ModernEncoder
from slp_transformer.modern.export_tokenizer import to_pretrained_tokenizer
from slp_transformer.modern.families import HF_FAMILIES, MISSING_PARTS, choose_family
from slp_transformer.modern.families.family import HFFamily, HFTensor, as_tuple
from slp_transformer.modern.hf_config import HFConfigReader
from slp_transformer.modern.hf_tokenizer import PretrainedTokenizer
from slp_transformer.modern.language_model import ModernLM
from slp_transformer.modern.published_folders import ADAPTER_CONFIG_FILE, CONFIG_FILE
from slp_transformer.modern.weight_files import WeightFiles, column_widths, write_weights

TOKENS_PARAM = "embedding.tokens.E"
Publishable = TransformerLM | BertEncoder | ModernEncoder
GENERATION_CONFIG_FILE, EOS_KEY = "generation_config.json", "eos_token_id"


def read_config(folder: str | Path) -> ModernConfig:
    """Return our configuration of a published model; none of its weights are read.

    Args:
        folder: a folder with config.json.

    Raises:
        ValueError: if it is no such folder, or the model has a part that we don't have.
    """
    return read_published(folder).config


class Published(NamedTuple):
    """A published model: what its config.json says.

    Attributes:
        config: our configuration of it.
        family: its family, with the tensors of its form.
        model: our class of it, as "module:name".
        class_names: what the classes are called that it tells apart; None if it has no such head.
    """

    config: ModernConfig
    family: HFFamily
    model: str
    class_names: tuple[str, ...] | None

    def build_on_meta(self) -> nn.Module:
        """Make the model of shapes alone, on PyTorch's meta device: it takes no memory."""
        more = () if self.class_names is None else (len(self.class_names),)
        with torch.device("meta"):
            model: nn.Module = resolve_name(self.model)(self.config, *more)
        if isinstance(model, BertClassifier | ModernClassifier) and self.class_names is not None:
            model.class_names = self.class_names
        return model


def read_published(folder: str | Path) -> Published:
    """Return what the config.json of a published model says; none of its weights are read.

    Args:
        folder: a folder with config.json.

    Raises:
        ValueError: if it is no such folder, or the model has a part that we don't have.
    """
    folder = Path(folder)
    path = folder / CONFIG_FILE
    if not folder.is_dir():
        raise ValueError(
            f"There is no folder {folder}. A model of the Hugging Face Hub is downloaded first: "
            "hf download OWNER/NAME --local-dir FOLDER." + see("published models")
        )
    if (folder / ADAPTER_CONFIG_FILE).is_file() and not path.is_file():
        raise ValueError(
            f"{folder} holds a LoRA adapter and no model: load the model that it is for, and add "
            "it by load_adapter, or by --adapter on the command line." + see("published models")
        )
    content, generating = read_settings(path), folder / GENERATION_CONFIG_FILE
    if generating.exists():  # it has the last word about the tokens that end a text
        ends = read_settings(generating).get(EOS_KEY)
        content |= {} if ends is None else {EOS_KEY: ends}
    settings = HFConfigReader(content, str(path))
    name = settings.get("model_type", str, "")
    if name in MISSING_PARTS:
        settings.refuse("model_type", name, f"nothing here has {MISSING_PARTS[name]}")
    family: HFFamily = settings.get_choice("model_type", HF_FAMILIES, "")
    try:
        config, form = family.read_config(settings), family.find_form(settings)
        class_names = read_class_names(settings) if form.has_classes else None
    except ValueError as error:
        message = str(error)
        where = "" if message.startswith(str(path)) else f"{path}: "
        raise ValueError(where + message) from None
    if unknown := settings.unknown_settings():
        warnings.warn(
            f"{path}: there is no such setting here as {', '.join(unknown)}, so the model may be "
            "another one than where it was made.",
            stacklevel=1,
        )
    own = replace(family, params=family.params | form.params)
    return Published(config, own, form.model, class_names)


def read_class_names(settings: HFConfigReader) -> tuple[str, ...]:
    """Return what the classes are called that a model tells apart.

    Raises:
        ValueError: if they are not a table from numbers, counted from 0, to names.
    """
    table = settings.get("id2label", dict, {})
    numbers = [str(k) for k in range(len(table) or settings.get("num_labels", int, 2))]
    names = [table.get(number) for number in numbers] if table else [f"LABEL_{k}" for k in numbers]
    if not all(isinstance(name, str) for name in names):
        settings.refuse("id2label", table, f"it must have names for 0 to {len(numbers) - 1}")
    return tuple(map(str, names))


def from_pretrained(
    folder: str | Path,
    *,
    dtype: torch.dtype | None = torch.float32,
    device: torch.device | str = "cpu",
) -> Any:
    """Load a model of one of the families in `HF_FAMILIES`, from a folder in Hugging Face's layout.

    The folder has config.json and the weights in safetensors, in one file or in several with an
    index. Everything in it is loaded or the model is refused: never a part of it. (Only BERT's head
    for the next sentence is left out.) Tensors are copied one by one out of the mapped files, so
    that no second set of weights is ever held.

    Args:
        folder: the folder.
        dtype: floating type of the model; None for that of each tensor in the files.
        device: where the model is to live.

    Returns:
        The model, in evaluation mode, as what its config.json names: a `ModernLM` or a `Bert`; a
        bare stack is a `ModernEncoder` or a `BertEncoder`, and one with a head for classes of texts
        a `ModernClassifier` or a `BertClassifier`.

    Raises:
        ValueError: naming what is missing, damaged, or of a kind that we don't have.
        ImportError: if safetensors is not installed.
    """
    folder = Path(folder)
    published = read_published(folder)
    state = dict(_iter_weights(folder, published, dtype, device))
    model = published.build_on_meta()
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(True).eval()


@torch.no_grad()
def load_pretrained_weights(model: nn.Module, folder: str | Path) -> None:
    """Load the weights of a published model into one of ours, in place, a tensor at a time.

    Args:
        model: a model of its class and configuration.
        folder: its folder.

    Raises:
        ValueError: as `from_pretrained`, or if the model has other tensors.
    """
    published = read_published(folder)
    state, meta = model.state_dict(), published.build_on_meta().state_dict()
    if {n: W.shape for n, W in meta.items()} != {n: W.shape for n, W in state.items()}:
        raise ValueError(f"{folder} holds another model than the one that is to have its weights.")
    for name, W in _iter_weights(Path(folder), published, None, "cpu"):
        state[name].copy_(W)


def _iter_weights(
    folder: Path,
    published: Published,
    dtype: torch.dtype | None,
    device: torch.device | str,
) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of ours, once it is known that all of theirs are used."""
    config, family = published.config, published.family
    names = [name for place in family.params.values() for name in as_tuple(place)]
    heads = {f"{name.split('.')[0]}." for name in names if not name.startswith(family.prefix)}
    files = WeightFiles(folder, family.prefix, tuple(heads))
    tied = family.tied if config.tied else {}

    def find(ours: str) -> tuple[HFTensor, ...]:
        found = family.find_published_tensors(ours, config)
        for place in found:
            if place.name not in files.tensors:
                raise ValueError(f"{folder} has no tensor {place.name} (our {ours}).")
        return found

    for i in range(config.num_blocks):  # before a model is made of blocks that no file has
        find(f"stack.blocks.{i}.norm_1.gamma")
    shapes = {name: W.shape for name, W in published.build_on_meta().state_dict().items()}
    places = {name: find(name) for name in shapes}
    used = {place.name for theirs in places.values() for place in theirs} | tied.keys()
    for name, stored in sorted(files.tensors.items()):
        if name not in used and not name.endswith(family.ignored):
            raise ValueError(
                f"{stored.path}: there is no such part here as {stored.name}, so the model cannot "
                "be loaded as it was made."
            )
    for name, theirs in places.items():
        files.check_shapes(name, theirs, shapes[name])
    for again, first in tied.items():
        if again in files.tensors and not torch.equal(
            files.read_tensor(HFTensor(again)), files.read_tensor(HFTensor(first))
        ):
            raise ValueError(
                f"{files.tensors[again].path}: {again} is not {first}, though config.json says "
                "that the head is tied to it."
            )
    for name, theirs in places.items():
        yield name, files.load_parameter(theirs, shapes[name], dtype, device)


def build_on_meta(config: ModernConfig) -> ModernLM | Bert:
    """Make a model of shapes alone, on PyTorch's meta device: it takes no memory."""
    with torch.device("meta"):
        return Bert(config) if isinstance(config, BertConfig) else ModernLM(config)


# --- Out ---------------------------------------------------------------------------------------


def to_modern_config(model: Publishable) -> ModernConfig:
    """Return the configuration of the same model as one of today's blocks.

    The book's attention has no biases: as a published model it has some that are 0. Where its
    embedding is scaled by √d, the published model has that embedding, and a head of its own.

    Raises:
        ValueError: if it is none of those that are published.
    """
    if not isinstance(model, Publishable):
        raise ValueError(f"A {type(model).__name__} has no published form that is written here.")
    config = model.config
    if isinstance(config, ModernConfig):
        return config
    settings = config.to_dict() | {"normalization": "layer", "initialization": "gpt2"}
    settings |= {"attention_bias": True, "ffn_bias": True, "tied": not config.scaled_embeddings}
    return ModernConfig(**settings | {"scaled_embeddings": False})


def to_modern_state(model: Publishable, config: ModernConfig) -> dict[str, Tensor]:
    """Return the weights that a model has as one of `to_modern_config`, by our names."""
    state = model.state_dict() | dict(model.named_buffers())  # sinusoids are kept, too
    if isinstance(model.config, ModernConfig):
        return state
    E = state[TOKENS_PARAM]
    if model.config.scaled_embeddings:
        state |= {TOKENS_PARAM: math.sqrt(E.shape[1]) * E, "E_out": E}
    for ours in build_on_meta(config).state_dict():
        if ours not in state:  # a bias that the book's attention lacks
            product = state[ours.replace(".b_", ".W_")]
            state[ours] = product.new_zeros(product.shape[-1])
    return state


def save_pretrained(
    model: Publishable,
    folder: str | Path,
    tokenizer: TextTokenizer | PretrainedTokenizer | None = None,
) -> Path:
    """Write a model in Hugging Face's layout: `transformers` loads it, and computes the same.

    It becomes a model of the first family that has its parts; the book's own `TransformerLM` a
    GPT-2 whose attention biases are 0. Encoders and classifiers become what `AutoModel` and
    `AutoModelForSequenceClassification` open. (A `BertModel` there has a pooler as well, which an
    encoder here has not: `transformers` makes one at random and says so.)

    Args:
        model: the model.
        folder: a new folder, or an empty one; written whole or not at all.
        tokenizer: what its tokens mean, for `AutoTokenizer`, which gives the same ids and text.

    Returns:
        The folder.

    Raises:
        ValueError: if the folder is there and not empty, or the model has a part that none of
            these has, numbers that are none, or LoRA matrices that are not merged.
        ImportError: if safetensors is not installed.
    """
    folder = Path(folder)
    if any(iter_lora(model)):
        raise ValueError(
            "The model has LoRA matrices: merge them into its weights by merge_lora, or write them "
            "alone by save_adapter."
        )
    check_finite_weights(model)
    config = to_modern_config(model)
    published = None if tokenizer is None else to_pretrained_tokenizer(tokenizer)
    if published is not None and published.end_ids:
        config = replace(config, begin_id=published.begin_id, end_ids=published.end_ids)
    family = choose_family(config)
    form = family.find_form_of(type(model))
    family = replace(family, params=family.params | form.params)
    settings = family.to_hf_config(config, form)
    if isinstance(model, BertClassifier | ModernClassifier):
        settings["id2label"] = {str(k): name for k, name in enumerate(model.class_names)}
        settings["label2id"] = {name: k for k, name in enumerate(model.class_names)}
    bare = family.prefix if form.suffix == "Model" else ""  # whose tensors' names go without
    theirs: dict[str, Tensor] = {}
    parts: dict[HFTensor, list[Tensor]] = {}
    state = to_modern_state(model, config)
    for ours, W in state.items():
        places = family.find_published_tensors(ours, config)
        for place, part in zip(places, W.split(column_widths(places, W.shape), -1), strict=True):
            parts.setdefault(replace(place, columns=None, part=(0, 1)), []).append(part)
    for place, found in parts.items():  # those of one tensor of theirs come in order
        whole = place.to_theirs(torch.cat(found, dim=-1) if len(found) > 1 else found[0])
        theirs[place.name.removeprefix(bare)] = whole.T if place.transposed else whole
    settings["dtype"] = str(next(iter(state.values())).dtype).removeprefix("torch.")
    with write_folder_atomically(folder) as unfinished:
        write_weights(unfinished, theirs)
        write_json(unfinished / CONFIG_FILE, settings)
        if published is not None:
            published.save(unfinished)
    return folder


@contextmanager
def write_folder_atomically(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write to, which becomes `folder` once it is complete.

    Raises:
        ValueError: if there is something in the folder already.
        OSError: of the folder, under its own name, if it cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already: name a new folder, or an empty one.")
    unfinished: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with make_locked_folder(folder.parent) as unfinished:
            yield unfinished
            if folder.exists():
                folder.rmdir()
            rename_path(unfinished, folder)
    except BaseException as error:
        if unfinished is not None:
            remove_path(unfinished)
        if isinstance(error, OSError) and error.filename:
            # Its temporary name is one that nobody has seen; a file that is read keeps its own.
            if unfinished is None or str(error.filename).startswith(str(unfinished)):
                raise OSError(error.errno, error.strerror, str(folder)) from error
        raise
    fsync_path(folder.parent)
