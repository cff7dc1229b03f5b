"""What is known of a family of published models: one record says it all."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from slp_transformer._internal.config_checks import resolve_head_sizes
from slp_transformer._internal.docs_sections import see
from slp_transformer._internal.parts import ROTARY_SETTINGS
from slp_transformer._internal.shape_types import Tensor
from slp_transformer.feedforward import LAYERS
from slp_transformer.modern.config import ModernConfig
from slp_transformer.modern.hf_config import HFConfigReader, SettingsTable

WITHOUT_EFFECT = (
    *("dropout", "initialization", "zero_init", "begin_id", "end_ids", "pad_id"),
    *("source_vocab_size", "num_encoder_blocks"),
)
"""Settings that change nothing in what a trained language model computes."""

HEADS_OF_CLASSES = ("pool", "classes")  # their matrices are those of `torch.nn.Linear` everywhere


@dataclass(frozen=True)
class HFTensor:
    """A tensor of a published model, which is ours or some of its columns.

    Attributes:
        name: its name there.
        transposed: whether it has rows for outputs, as in `torch.nn.Linear`.
        columns: how many columns of ours it is; None for all.
        heads: of how many heads the queries, keys and values lie side by side in it, head by head;
            None if all queries come first, then all keys.
        part: which of several equal parts of it, side by side, it is for ours, and how many these
            are.
    """

    name: str
    transposed: bool = False
    columns: int | None = None
    part: tuple[int, int] = (0, 1)
    heads: int | None = None

    def to_ours(self, W: Tensor) -> Tensor:
        """Return the columns of theirs in our order: all queries, all keys, all values."""
        if self.heads is None:
            return W
        return W.unflatten(-1, (self.heads, 3, -1)).transpose(-3, -2).flatten(-3)

    def to_theirs(self, W: Tensor) -> Tensor:
        """Return our columns in their order."""
        if self.heads is None:
            return W
        return W.unflatten(-1, (3, self.heads, -1)).transpose(-3, -2).flatten(-3)


@dataclass(frozen=True)
class HFForm:
    """A form in which models of a family are published, other than as a model of words.

    Attributes:
        suffix: the end of its class's name in `transformers`, after the family's own.
        model: our class, made from a configuration and, where it has some, a number of classes.
        params: modules that the family does not have, as in `HFFamily.params`.
        has_classes: whether it tells classes apart.
    """

    suffix: str
    model: str
    params: dict[str, str | tuple[str, str, str]] = field(default_factory=dict)
    has_classes: bool = False


CAUSAL_FORMS = (
    HFForm("Model", "slp_transformer.modern.encoders:ModernEncoder"),
    HFForm(
        "ForSequenceClassification",
        "slp_transformer.modern.encoders:ModernClassifier",
        {"classes": "score"},
        has_classes=True,
    ),
)


@dataclass(frozen=True)
class HFFamily:
    """A family of published models.

    A setting of ours that has no place in it must be at its default: a new one is refused here by
    name, never lost on the way.

    Attributes:
        model_type: its name in config.json, by which it is recognized.
        title: its name for people.
        architecture: the class of `transformers` that opens its models.
        settings: what is read and written as it is.
        activations: its setting for the activation, and ours for each of its words; the first is
            the default.
        fixed: settings of ours that it has in one way only.
        required: settings of its own that can be loaded in one way only.
        params: for modules of ours its modules, "#" standing for the number of a block; three of
            them where its queries, keys and values are matrices of their own, and "[0/2]" after a
            name where ours is the first of two parts of it.
        prefix: how names of tensors begin, but the head's; files of the bare model go without.
        tied: tensors that a file may hold a second time, if the head is E.
        ignored: endings of names that are not loaded.
        read: our settings that take more than a name.
        write: its settings that take more than a name.
        written: the settings of ours that `write` writes.
        stored: by a fixed setting, other values of it that can be written as the one that is read.
        transposed: whether its matrices have rows for outputs, as in `torch.nn.Linear`.
        by_head: whether its matrix of queries, keys and values has them head by head.
        config_class: our class of its configuration.
        model: our class of its models of words.
        forms: other forms in which its models are published.
    """

    model_type: str
    title: str
    architecture: str
    settings: SettingsTable
    activations: tuple[str, dict[str, str]]
    fixed: dict[str, Any]
    required: dict[str, Any]
    params: dict[str, str | tuple[str, str, str]]
    prefix: str
    tied: dict[str, str]
    ignored: tuple[str, ...]
    read: Callable[[HFConfigReader], dict[str, Any]] = lambda _: {}
    write: Callable[[Any], dict[str, Any]] = lambda _: {}
    written: tuple[str, ...] = ()
    stored: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    transposed: bool = True
    by_head: bool = False
    config_class: type[ModernConfig] = ModernConfig
    model: str = "slp_transformer.modern.language_model:ModernLM"
    forms: tuple[HFForm, ...] = CAUSAL_FORMS

    def find_form(self, settings: HFConfigReader) -> HFForm:
        """Return the form of a model by the name of its class; that of words if none is named.

        Raises:
            ValueError: if its class is named in another way than by a list of words.
        """
        names = settings.get("architectures", list, [])
        for form in self.forms:
            if names[:1] == [self.class_name(form)]:
                return form
        return self.form_of_words

    @property
    def form_of_words(self) -> HFForm:
        """Return the form with a head for words."""
        end = re.search("LMHeadModel|For.+", self.architecture)
        return HFForm(end[0] if end else "", self.model)

    def class_name(self, form: HFForm) -> str:
        """Return the class of `transformers` that opens models of a form."""
        return self.architecture.removesuffix(self.form_of_words.suffix) + form.suffix

    def find_form_of(self, kind: type) -> HFForm:
        """Return the form that models of a class of ours are published in; that of words if none.

        Args:
            kind: the class, or one derived from it.
        """
        forms = {form.model: form for form in (self.form_of_words, *self.forms)}
        names = [f"{base.__module__}:{base.__qualname__}" for base in kind.__mro__]
        return next((forms[name] for name in names if name in forms), self.form_of_words)

    def read_config(self, settings: HFConfigReader) -> ModernConfig:
        """Return our configuration of such a model.

        Raises:
            ValueError: if it has a part that we don't have.
        """
        settings.check_usual_values(**self.required, quantization_config=False)
        found = settings.read(self.settings) | self.fixed | settings.read_token_ids()
        name, known = self.activations
        found["activation"] = settings.get_choice(name, known, next(iter(known)))
        return self.config_class(**found | self.read(settings))

    def iter_missing_parts(self, config: ModernConfig) -> Iterator[str]:
        """Yield the parts of a model of ours that this family has not, in words."""
        if type(config) is not self.config_class:
            yield f"parts of a {type(config).__name__.removesuffix('Config')}"
            return
        known = dict.fromkeys(self.activations[1].values())
        if config.activation not in known:
            yield f"{config.activation}, only {', '.join(known)}"
        defaults = {f.name: f.default for f in fields(config)} | default_head_sizes(config)
        unused = () if config.positions == "rotary" else ROTARY_SETTINGS
        config, written = with_default_sizes(config), dict[str, Any]()
        for name in defaults.keys() - {"activation", *WITHOUT_EFFECT, *unused, *self.written}:
            value = getattr(config, name)
            if name in self.settings:
                theirs, default = self.settings[name]
                kind = default if isinstance(default, type) else type(default)
                if type(value) not in (kind, int if kind is float else kind):
                    yield f"{name} = {value!r}"
                elif written.setdefault(theirs, value) != value:
                    yield f"{name} of its own"
            elif name in self.fixed:
                only = self.fixed[name]
                if value not in (only, *self.stored.get(name, ())):
                    yield f"{name} = {value!r}, only {only!r}"
            elif value != defaults[name]:
                yield f"{name} of its own" if "dim" in name else f"{name} = {value!r}"

    def to_hf_config(self, config: ModernConfig, form: HFForm | None = None) -> dict[str, Any]:
        """Return the settings of config.json for a model of ours.

        Args:
            config: its configuration.
            form: the form in which it is published; with a head for words if None.

        Raises:
            ValueError: if the family has no such part.
        """
        for part in sorted(self.iter_missing_parts(config)):
            raise ValueError(f"{self.model_type} has no {part}.{see('families')}")
        activation, known = self.activations
        sizes, ends = with_default_sizes(config), config.end_ids
        return {
            "model_type": self.model_type,
            "architectures": [self.class_name(form or self.form_of_words)],
            activation: next(word for word, ours in known.items() if ours == config.activation),
            **{theirs: getattr(sizes, ours) for ours, (theirs, _) in self.settings.items()},
            "bos_token_id": config.begin_id,
            "eos_token_id": [*ends] if len(ends) > 1 else next(iter(ends), None),
            "pad_token_id": config.pad_id,
            **self.write(config),
        }

    def find_published_tensors(self, ours: str, config: ModernConfig) -> tuple[HFTensor, ...]:
        """Return the tensors that one of ours is made of, side by side."""
        owner, _, leaf = ours.rpartition(".")
        if leaf in ("gamma", "beta"):
            module = owner
        else:
            module = f"{owner}.{leaf[2:]}".lstrip(".") if leaf[:2] in ("W_", "b_") else ours
        block = re.search(r"blocks\.(\d+)", module)
        number = block[1] if block else ""
        place = self.params[re.sub(r"blocks\.\d+", "blocks.#", module)]
        suffix = "bias" if leaf == "beta" or leaf.startswith("b_") else "weight"
        names = as_tuple(place)
        widths = [None] if isinstance(place, str) else config.qkv_widths()
        transposed = leaf.startswith("W_") and (self.transposed or module in HEADS_OF_CLASSES)
        found = []
        for name, width in zip(names, widths, strict=True):
            name, _, part = name.removesuffix("]").partition("[")
            which, _, count = (part or "0/1").partition("/")
            full = f"{name.replace('#', number)}.{suffix}"
            heads = config.num_heads if module.endswith(".QKV") and self.by_head else None
            found.append(HFTensor(full, transposed, width, (int(which), int(count)), heads))
        return tuple(found)


def as_tuple(place: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one name or several as several."""
    return (place,) if isinstance(place, str) else place


def default_head_sizes(config: ModernConfig) -> dict[str, int | None]:
    """Return the sizes of heads that a family has without settings of their own."""
    share, rest = divmod(config.model_dim, config.num_heads)
    own = None if rest else share
    return {"key_dim": own, "value_dim": own, "num_kv_heads": config.num_heads}


def with_default_sizes(config: ModernConfig) -> ModernConfig:
    """Return the same configuration with numbers for the sizes that follow from others."""
    A, d = config.num_heads, config.model_dim
    key_dim, value_dim = resolve_head_sizes(d, A, config.key_dim, config.value_dim)
    return replace(
        config,
        key_dim=key_dim,
        value_dim=value_dim,
        num_kv_heads=config.num_kv_heads or A,
        hidden_dim=config.hidden_dim or LAYERS[config.activation].default_hidden_dim(d),
    )
