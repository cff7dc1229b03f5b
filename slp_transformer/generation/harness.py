"""What benchmarks ask of a language model, with the interface of EleutherAI's lm-eval.

lm-eval itself is not needed here; the page Reuse shows how its `LM` becomes a base as well.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slp_transformer.generation.decoding import generate
from slp_transformer.generation.scoring import score_continuations
from slp_transformer.generation.stop_text import StopText
from slp_transformer.language_model import TransformerLM

MAX_NEW_TOKENS = 256  # as lm-eval's own models, where a task says nothing


class HarnessModel:
    """Answers lm-eval's questions, `Instance`s, as its own wrapper of Hugging Face's models does.

    Attributes:
        model: the model.
        tokenizer: has `encode`, and a `stream_decoder` for generating.
        begin_id: the token that stands before a text that nothing precedes.
    """

    def __init__(self, model: TransformerLM, tokenizer: Any, begin_id: int):
        """Wrap a model."""
        super().__init__()  # that of lm-eval's `LM`, where it is a base, too
        self.model: TransformerLM = model
        self.tokenizer: Any = tokenizer
        self.begin_id: int = begin_id

    def loglikelihood(self, requests: Sequence[Any]) -> list[tuple[float, bool]]:
        """Return the log probability of each continuation, and whether it is the greedy one.

        Args:
            requests: with `args` (context, continuation).

        Raises:
            ValueError: if a continuation is empty, or longer than the window.
        """
        scores = score_continuations(self.model, [self.encode_pair(*r.args) for r in requests])
        return [(one.log_probability, one.is_greedy) for one in scores]

    def loglikelihood_rolling(self, requests: Sequence[Any]) -> list[float]:
        """Return the log probability of each text, read in windows that predict each token once.

        Args:
            requests: with `args` (text,).
        """
        found = []
        for request in requests:
            windows = list(self.rolling_windows(self.tokenizer.encode(request.args[0])))
            found.append(sum(s.log_probability for s in score_continuations(self.model, windows)))
        return found

    def generate_until(self, requests: Sequence[Any]) -> list[str]:
        """Return what the model writes after each context, up to a string that ends it.

        Args:
            requests: with `args` (context, settings), of which `until`, `max_gen_toks`,
                `do_sample` and the options of `generate` are taken.

        Raises:
            ValueError: if there is no room for the new tokens beside one of the context.
        """
        return [self._continue_context(*request.args) for request in requests]

    def _continue_context(self, context: str, settings: Mapping[str, Any]) -> str:
        given = dict(settings)
        until = given.pop("until", None) or ()
        until = [until] if isinstance(until, str) else list(until)
        length = given.pop("max_gen_toks", MAX_NEW_TOKENS)
        if not given.pop("do_sample", given.get("temperature", 0) > 0):
            given = {"temperature": 0}
        room = self.model.config.context_length - length
        if room < 1:
            raise ValueError(
                f"{length} new tokens leave no room for a context in the model's window of "
                f"{self.model.config.context_length}: ask for fewer."
            )
        prompt = (self.tokenizer.encode(context) or [self.begin_id])[-room:]
        stop, decoder = StopText(until), self.tokenizer.stream_decoder()
        decoder.decode_prompt(prompt)

        def on_token(_: int, i: int) -> bool:
            stop.feed(decoder.decode_next(i))
            return stop.found is not None

        ends = getattr(self.tokenizer, "end_ids", None) or [getattr(self.tokenizer, "end_id", None)]
        ends = [i for i in ends if i is not None]
        generate(self.model, [prompt], length, stop=ends, on_token=on_token, **given)
        stop.feed(decoder.flush())
        stop.finish()
        return stop.text

    def encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Return the ids that `split_pair` gives; what does not fit the window is cut at the front.

        Raises:
            ValueError: as `split_pair`.
        """
        prompt, rest = self.split_pair(context, continuation)
        return prompt[
            max(0, len(prompt) + len(rest) - self.model.config.context_length - 1) :
        ], rest

    def split_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        """Return the ids of a context and its continuation, encoded as one text.

        Spaces at the end of the context belong to the continuation, since tokens begin with them.
        Where a token of that text is a part of both, each is encoded alone: else what lies in that
        token would not be scored.

        Raises:
            ValueError: if the continuation has no tokens, whose probability would be 1.
        """
        kept = context.rstrip()
        continuation = context[len(kept) :] + continuation
        encode = self.tokenizer.encode
        if not kept:
            prompt, rest = [self.begin_id], encode(continuation)
        else:
            whole, prompt = encode(kept + continuation), encode(kept)
            rest = whole[len(prompt) :]
            if whole[: len(prompt)] != prompt or not rest:
                rest = encode(continuation)
        if not rest:
            raise ValueError(
                f"The continuation of {context[-40:]!r} is empty: there is no token to score."
            )
        return prompt, rest

    def rolling_windows(self, ids: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
        """Yield prompts and continuations that predict each id once, after all that fits."""
        window, before = self.model.config.context_length, [self.begin_id, *ids]
        for start in range(0, len(ids), window):
            end = min(start + window, len(ids))
            yield before[max(0, end - window) : start + 1], list(ids[start:end])
