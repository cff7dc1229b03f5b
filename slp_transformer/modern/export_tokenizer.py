"""Our tokenizers of text as published ones, which give the same ids and the same text."""

import json
from typing import Any

from slp_transformer._internal.extras import import_extra
from slp_transformer.data.text_tokenizer import SILENT_TOKENS, TextTokenizer, build_pre_tokenizer
from slp_transformer.modern.hf_tokenizer import TOKENIZER_CONFIG_FILE, PretrainedTokenizer

ANY_CHARACTER = r"[\s\S]"


def to_pretrained_tokenizer(tokenizer: TextTokenizer | PretrainedTokenizer) -> PretrainedTokenizer:
    """Return a tokenizer as `AutoTokenizer` opens it once it is saved.

    It gives the same ids, and for ids the same text. A character that was never seen is refused
    there too, by an error of the library. The token that ends a text is a special one, which no
    text gives: `split_special_tokens` says so.

    Raises:
        ValueError: if its tokens are no text.
        ImportError: if `tokenizers` is not installed.
    """
    if isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer
    if not isinstance(tokenizer, TextTokenizer):
        raise ValueError(
            f"A {type(tokenizer).__name__} has tokens that are no text, and published tokenizers "
            "have no form for it: save_pretrained writes the model without it."
        )
    library = import_extra("tokenizers", "Published tokenizers")
    models, decoders = library.models, library.decoders
    if tokenizer.token_type == "bpe":
        model, decoder = models.BPE(tokenizer.ids, tokenizer.merges), decoders.ByteLevel()
    else:
        known = tokenizer.unknown_id
        unknown = {} if known is None else {"unk_token": tokenizer.vocabulary[known]}
        model, decoder = models.WordLevel(tokenizer.ids, **unknown), decoders.Fuse()
    published = library.Tokenizer(model)
    published.decoder = decoder
    if tokenizer.token_type == "characters":
        every = library.Regex(ANY_CHARACTER)
        published.pre_tokenizer = library.pre_tokenizers.Split(every, "isolated")
    else:
        published.pre_tokenizer = build_pre_tokenizer(tokenizer.token_type)
    silent = [token for token in tokenizer.vocabulary if token in SILENT_TOKENS]
    published.add_special_tokens(silent)
    published.encode_special_tokens = True
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }
    ends = () if tokenizer.end_id is None else (tokenizer.end_id,)
    if ends:
        settings["eos_token"] = tokenizer.vocabulary[ends[0]]
    files = {TOKENIZER_CONFIG_FILE: json.dumps(settings, indent=2, ensure_ascii=False)}
    return PretrainedTokenizer(published, None, ends, files)
