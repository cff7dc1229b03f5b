"""A tokenizer as others publish it, and the text that it was learned from."""

from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from tokenizers import decoders as decoding_of

TEXT = "Le café est très chaud ce matin. " * 4 + "The quick brown fox jumps over the lazy dog. " * 4
V = 300


def make_tokenizer(begin: bool = False) -> Tokenizer:
    """Byte-level BPE as GPT-2 has it, with tokens that begin and end a text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoding_of.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=V - 3,  # the model's is rounder
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<pad>", "<begin>", "<end>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<begin> $A", special_tokens=[("<begin>", 1)]
        )
    return tokenizer
