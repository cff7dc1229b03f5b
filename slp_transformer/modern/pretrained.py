"""Models of others, in and out: GPT-2, Llama and its relatives, and BERT."""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType

import torch

from slp_transformer._internal.atomic_write import fsync_path, read_json, write_json
from slp_transformer._internal.shape_types import Tensor
from slp_transformer.language_model import TransformerLM
from slp_transformer.lora import iter_lora
from slp_transformer.modern.bert import Bert, BertConfig
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.hf_mapping import bert, gpt2, llama
from slp_transformer.modern.hf_mapping.config_reader import HFConfigReader
from slp_transformer.modern.hf_mapping.param_map import HFTensor, ParamMap
from slp_transformer.modern.language_model import ModernLM
from slp_transformer.modern.published_folders import CONFIG_FILE
from slp_transformer.modern.weight_files import (
    MAX_SHARD_BYTES,
    WeightFiles,
    has_weights,
    write_weights,
)

HF_FAMILIES = {"gpt2": gpt2, **dict.fromkeys(llama.DEFAULTS, llama), "bert": bert}
GENERATION_CONFIG_FILE, EOS_KEY = "generation_config.json", "eos_token_id"
LM_HEAD_KEY = "lm_head.weight"


def read_config(folder: str | Path) -> ModernConfig:
    """Our configuration of a model of others; of its weights at most the names are looked at.

    Args:
        folder: a folder with config.json.

    Raises:
        ValueError: if it is no such folder, or the model has a part that we don't have.
    """
    return _read_config_and_family(Path(folder))[0]


def _read_config_and_family(folder: Path) -> tuple[ModernConfig, ModuleType]:
    path = folder / CONFIG_FILE
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}.")
    content = read_json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} must be a JSON object.")
    if (
        generating := folder / GENERATION_CONFIG_FILE
    ).is_file():  # where it stands, it has the last word
        said = read_json(generating)
        ends = said.get(EOS_KEY) if isinstance(said, dict) else None
        content |= {} if ends is None else {EOS_KEY: ends}
    settings = HFConfigReader(content, str(path))
    layout = settings.get_choice("model_type", HF_FAMILIES, "")
    settings.refuse_keys(("quantization_config",))
    try:
        config = layout.from_hf_config(settings)
    except ValueError as error:
        said = str(error)
        raise ValueError(said if said.startswith(str(path)) else f"{path}: {said}") from None
    if layout is bert and has_weights(folder):  # config.json does not always say which heads
        config = bert.detect_heads(config, WeightFiles(folder, bert.PREFIX).files)
    return config, layout


def from_pretrained(
    folder: str | Path,
    *,
    dtype: torch.dtype | None = torch.float32,
    device: torch.device | str = "cpu",
) -> ModernLM | Bert:
    """Load a GPT-2, Llama, Mistral, Qwen2, Qwen3 or BERT from a folder in Hugging Face's layout.

    The folder has config.json and the weights in safetensors, in one file or in several with an
    index. Everything in it is loaded or the model is refused: never a part of it. Tensors are
    copied one by one out of the mapped files, so that no second set of weights is ever held.

    Args:
        folder: the folder.
        dtype: floating type of the model; None for that of each tensor in the files.
        device: where the model is to live.

    Returns:
        The model, in evaluation mode: a `ModernLM`, or a `Bert`.

    Raises:
        ValueError: naming what is missing, damaged, or of a kind that we don't have.
        ImportError: if safetensors is not installed.
    """
    folder = Path(folder)
    config, layout = _read_config_and_family(folder)
    files = WeightFiles(folder, layout.PREFIX)
    places = resolve_param_map(files, layout, config)
    model = build_on_meta(config)
    shapes = {name: W.shape for name, W in model.state_dict().items()}
    for name, theirs in places.items():
        files.check_shapes(name, theirs, shapes[name])
    _check_tied(files, layout, config)
    state = {
        name: files.load(theirs, shapes[name], dtype, device) for name, theirs in places.items()
    }
    model.load_state_dict(state, assign=True)
    return model.requires_grad_(True).eval()


def build_on_meta(config: ModernConfig) -> ModernLM | Bert:
    """A model of shapes alone, on PyTorch's meta device: it takes no memory."""
    kind = Bert if isinstance(config, BertConfig) else ModernLM
    with torch.device("meta"):
        return kind(config)


def resolve_param_map(files: WeightFiles, family: ModuleType, config: ModernConfig) -> ParamMap:
    """Return the place of each of our tensors.

    Raises:
        ValueError: if one is missing, or the files have more than we have a place for.
    """
    places: ParamMap = {}
    for some in family.param_maps(config):
        for ours, theirs in some.items():
            for place in theirs:
                if place.name not in files.files:
                    raise ValueError(f"{files.folder} has no tensor {place.name} (our {ours}).")
        places |= some
    used = {place.name for theirs in places.values() for place in theirs}
    used |= _tied_keys(family, config).keys()
    for name in sorted(files.files.keys() - used):
        if not name.endswith(family.IGNORED_BUFFERS):
            raise ValueError(
                f"{files.files[name]}: there is no such part here as {files.original_names[name]}, "
                f"so the "
                "model cannot be loaded as it was made."
            )
    return places


def _tied_keys(family: ModuleType, config: ModernConfig) -> dict[str, str]:
    """Tensors that a file may hold a second time, under the name of the head."""
    if family is bert:
        return bert.TIED_KEYS
    E = next(iter(family.param_maps(config)))["embedding.tokens.E"][0].name
    return {LM_HEAD_KEY: E} if config.tied else {}


def _check_tied(files: WeightFiles, family: ModuleType, config: ModernConfig) -> None:
    for again, first in _tied_keys(family, config).items():
        if again in files.files and not torch.equal(
            files.read(HFTensor(again)), files.read(HFTensor(first))
        ):
            raise ValueError(
                f"{files.files[again]}: {again} is not {first}, though config.json says that the "
                "head is tied to it."
            )


# --- Out ---------------------------------------------------------------------------------------


def save_pretrained(
    model: TransformerLM | Bert, folder: str | Path, *, max_file_bytes: int = MAX_SHARD_BYTES
) -> Path:
    """Write a model in Hugging Face's layout: `transformers` loads it, and says the same.

    A `ModernLM` becomes a Llama, a Qwen2, a Qwen3 or a GPT-2, whichever has its parts; the book's
    own `TransformerLM` a GPT-2 whose attention biases are 0; a `Bert` a BERT.

    Args:
        model: the model.
        folder: a new folder, or an empty one; written whole or not at all.
        max_file_bytes: where there are more, there are several files and an index.

    Returns:
        The folder.

    Raises:
        ValueError: if the folder is there and not empty, or the model has a part that none of
            these has, or LoRA matrices that are not merged.
        ImportError: if safetensors is not installed.
    """
    folder = Path(folder)
    if any(iter_lora(model)):
        raise ValueError("The model has LoRA matrices: merge them into its weights by merge_lora.")
    config, layout = _config_and_family(model)
    settings = layout.to_hf_config(config)
    state = model.state_dict()
    if config.positions != "rotary":  # those that are not learned are kept, too
        state["embedding.positions.P"] = model.embedding.positions.P
    theirs = dict(_to_hf_state_dict(state, layout, config))
    settings["dtype"] = str(next(iter(state.values())).dtype).removeprefix("torch.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already: name a new folder, or an empty one.")
    unfinished = folder.with_name(f".{folder.name}.writing")
    shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
    unfinished.mkdir(parents=True)
    try:
        write_weights(unfinished, theirs, max_file_bytes)
        write_json(unfinished / CONFIG_FILE, settings)
        if folder.exists():
            folder.rmdir()
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    fsync_path(folder.parent)
    return folder


def _config_and_family(model: TransformerLM | Bert) -> tuple[ModernConfig, ModuleType]:
    config = model.config
    if isinstance(model, Bert):
        return config, bert
    if not isinstance(config, ModernConfig):
        choices = {"normalization": "layer", "attention_bias": True, "ffn_bias": True}
        config = ModernConfig(**config.to_dict(), **choices)
    return config, llama if config.positions == "rotary" else gpt2


def _to_hf_state_dict(
    state: dict[str, Tensor], family: ModuleType, config: ModernConfig
) -> Iterator[tuple[str, Tensor]]:
    """Their tensors by their names, views of ours; the biases that the book's lacks are 0."""
    for ours, places in chain.from_iterable(some.items() for some in family.param_maps(config)):
        W, begin = state.get(ours), 0
        if W is None:
            beside = state[ours.replace(".b_", ".W_")]
            W = beside.new_zeros(beside.shape[-1])
        for place in places:
            columns = place.columns or W.shape[-1]
            part = W.narrow(-1, begin, columns)
            yield place.name, part.T if place.transposed else part
            begin += columns
