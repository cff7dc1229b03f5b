"""Settings of a published model: read, checked by type, and refused where nothing here has them."""

from typing import Any

from slp_transformer._internal.docs_sections import see

MAX_SIZE = 2**24  # of any size: a window of millions, no more
TYPE_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
TYPE_NAMES |= {list: "a list", dict: "a table of settings"}

# Settings of config.json that change nothing here: of training, of generating, of windows that are
# off, of names, and of how other libraries work. What is neither among them nor read is named.
WITHOUT_EFFECT = frozenset(
    """
    _attn_implementation_autoset _commit_hash _name_or_path architectures attention_dropout
    attention_probs_dropout_prob attn_implementation attn_pdrop auto_map chunk_size_feed_forward
    classifier_dropout custom_pipelines directionality do_sample dtype embd_pdrop
    finetuning_task gradient_checkpointing hidden_dropout id2label initializer_range
    is_llama_config keys_to_ignore_at_inference label2id length_penalty max_length
    max_new_tokens max_window_layers min_length model_type n_ctx num_beams num_labels
    num_return_sequences original_max_position_embeddings output_attentions output_hidden_states
    prefix problem_type pruned_heads reorder_and_upcast_attn repetition_penalty return_dict
    sep_token_id sliding_window summary_activation summary_first_dropout summary_proj_to_labels
    summary_type summary_use_proj task_specific_params temperature tokenizer_class top_k top_p
    torch_dtype torchscript transformers.js_config transformers_version typical_p unsloth_fixed
    unsloth_version use_cache
    """.split()
)

SettingsTable = dict[str, tuple[str, Any]]
"""For settings of ours their name in config.json, and the value of those that it leaves out.

A type in the place of the value stands for None, and is that of the setting where it is there.
"""


class HFConfigReader:
    """The settings of a config.json; every question names the type that the answer has to have."""

    def __init__(self, content: dict[str, Any], source: str):
        """Keep the settings.

        Args:
            content: the settings.
            source: the file, for messages.
        """
        self.content: dict[str, Any] = content
        self.source: str = source
        self.asked: set[str] = set()

    def peek(self, name: str) -> Any:
        """Return a setting as it is; None where it is missing."""
        self.asked.add(name)
        return self.content.get(name)

    def unknown_settings(self) -> list[str]:
        """Return the settings that say something, and that nothing here has asked for or knows."""
        known = self.asked | WITHOUT_EFFECT
        return sorted(name for name, value in self.content.items() if value and name not in known)

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        """Return a setting, or the default where it is missing or null.

        Raises:
            ValueError: if it is of another type, or missing without a default, or a size beyond
                all measure.
        """
        value = self.peek(name)
        value = default if value is None else value
        if type(value) is int and kind is float:
            value = float(value)
        if type(value) is not kind:
            raise ValueError(f"{self.source}: {name} must be {TYPE_NAMES[kind]}, not {value!r}.")
        if type(value) is int and not 0 < value <= MAX_SIZE:
            raise ValueError(f"{self.source}: {name} must be from 1 to {MAX_SIZE:,}, not {value}.")
        return value

    def get_optional(self, name: str, kind: type) -> Any:
        """Return a setting, or None where it is missing or null.

        Raises:
            ValueError: if it is there and of another type.
        """
        return None if self.peek(name) is None else self.get(name, kind)

    def get_choice(self, name: str, known: dict[str, Any], default: str) -> Any:
        """Return the meaning that a word has here.

        Raises:
            ValueError: if it has none.
        """
        word = self.get(name, str, default)
        if word not in known:
            self.refuse(name, word, f"known are {', '.join(known)}")
        return known[word]

    def read(self, table: SettingsTable) -> dict[str, Any]:
        """Return the settings of a table by our names.

        Raises:
            ValueError: if one has another type than its default.
        """
        return {
            ours: self.get_optional(theirs, default)
            if isinstance(default, type)
            else self.get(theirs, type(default), default)
            for ours, (theirs, default) in table.items()
        }

    def read_token_ids(self) -> dict[str, Any]:
        """Return `begin_id`, `end_ids` and `pad_id`; an id below 0 stands for none.

        Raises:
            ValueError: if they are something else than ids.
        """
        found = []
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            value = self.peek(name)
            ids = value if isinstance(value, list) else [] if value is None else [value]
            if any(type(i) is not int for i in ids):
                raise ValueError(
                    f"{self.source}: {name} must be a token id or several, not {value!r}."
                )
            found.append(tuple(i for i in ids if i >= 0))
        begins, ends, pads = found
        return {
            "begin_id": next(iter(begins), None),
            "end_ids": ends,
            "pad_id": next(iter(pads), None),
        }

    def check_usual_values(self, **usual: Any) -> None:
        """Refuse settings that are there and not the usual ones, which nothing here could follow.

        Args:
            **usual: the values that can be loaded; False stands for anything empty.

        Raises:
            ValueError: naming the first other one.
        """
        for name, expected in usual.items():
            value = self.peek(name)
            if value is not None and value != expected and (value or expected):
                self.refuse(name, value, f"only {expected!r} can be loaded here")

    def refuse(self, name: str, value: Any, why: str) -> None:
        """Refuse a setting.

        Raises:
            ValueError: always.
        """
        shown = repr(value)
        shown = shown if len(shown) < 80 else shown[:77] + "..."
        raise ValueError(
            f"{self.source}: {name} is {shown}, which cannot be loaded: {why}.{see('families')}"
        )
