"""Generating guitar tablature: its tokens have a grammar, which is kept to."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from slp_transformer.guitar import TabTokenizer, Tuning, format_tab
from slp_transformer.guitar.ascii_reader import parse_ascii_tabs
from slp_transformer.guitar.formats.registry import (
    UNTIMED_SUFFIXES,
    add_time_if_needed,
    check_writable_suffix,
    write_tab,
)
from slp_transformer.guitar.timing import fit_bars_to_time_signature


class TabSession:
    """Tabs that the grammar of their tokens allows."""

    def __init__(
        self, tokenizer: TabTokenizer, tuning: Tuning, constrained: bool = True, **header: str
    ):
        """Generate for a guitar that is tuned like this.

        Args:
            tokenizer: what the tokens mean.
            tuning: the guitar.
            constrained: keep to the grammar; if not, only in the header.
            **header: what else the header is to say: KEY="Em", METRE="3/4", STYLE="Jazz".

        Raises:
            ValueError: if the model does not know such a style.
        """
        self.tokenizer, self.tuning, self.constrained = tokenizer, tuning, constrained
        self.stop = tokenizer.eos_id
        self.kinds = [kind for kind, _ in tokenizer.parsed_vocabulary]
        self.prompts: set[tuple[int, ...]] = set()
        if "STYLE" in header:
            check_style(header["STYLE"], tokenizer.styles)
        for kind in header:
            if kind not in self.kinds:
                flag = {"METRE": "time-signature"}.get(kind, kind.lower())
                raise ValueError(f"--{flag} has no effect here: this model has no tokens for it.")
        tokens = tokenizer.to_ids([f"{kind}<{value}>" for kind, value in header.items()])
        self.header = dict(zip(header, tokens, strict=True))

    def allowed(self, ids: Sequence[int]) -> set[int] | None:
        """Return the tokens that may come next; a piece gets at least one bar after its prompt."""
        has_bar = any(self.kinds[i] == "BAR" for i in ids)
        if not self.constrained and has_bar:
            return None
        allowed = self.tokenizer.allowed_next_ids(ids)
        for token in self.header.values():
            if token in allowed and len({self.kinds[i] for i in allowed}) == 1:
                return {token}
        if tuple(ids) in self.prompts:  # the last bar of a prompt stays as it is
            return {i for i in allowed if self.kinds[i] in ("BAR", "SAME")}
        return allowed if has_bar else allowed - {self.stop}

    def begin(self, prompt: str | None) -> list[int]:
        """Return the tokens of a prompt's tab, or the header of a new piece.

        Raises:
            ValueError: if the prompt is not tablature.
        """
        if prompt is None:
            return self.tokenizer.to_ids(["<bos>", *self.tokenizer.tuning_tokens(self.tuning)])
        tabs, problems = parse_ascii_tabs(prompt, "the prompt")
        if not tabs:
            raise ValueError(f"The prompt is not tablature: {problems[0]}.")
        ids = [self.header.get(self.kinds[i], i) for i in self.tokenizer.encode(tabs[0])[:-1]]
        self.prompts.add(tuple(ids))
        return ids

    def render(self, ids: list[int]) -> str:
        """Return tokens as an ASCII tab."""
        return format_tab(self.tokenizer.decode(ids).tab)

    def stream(self) -> None:
        """Return None: a tab is shown when it is complete."""

    def writes(self, path: Path) -> bool:
        """Return whether a path's suffix is that of a music file.

        Raises:
            ValueError: if there is a suffix, and no format has it.
        """
        suffix = path.suffix.lower()
        if not suffix or suffix in (*UNTIMED_SUFFIXES, ".md"):
            return False
        check_writable_suffix(path)
        return True

    def write(self, path: Path, ids: list[int]) -> list[str]:
        """Write a tab to a music file, and return remarks on it.

        Raises:
            ValueError: if a file of that kind cannot hold it.
        """
        tab, remarks = self.tokenizer.decode(ids).tab, []
        timed = add_time_if_needed(replace(tab, title=path.stem), path)
        if timed.steps_per_quarter is not None:
            timed, changed = fit_bars_to_time_signature(timed)
            if changed:
                more = f" and {len(changed) - 10} more" if len(changed) > 10 else ""
                bars = ", ".join(map(str, changed[:10])) + more
                remarks.append(
                    f"Bars that did not fit their time signature were padded or truncated: {bars}."
                )
        if tab.steps_per_quarter is None:
            remarks.append("The model's steps have no unit of time; they are taken for sixteenths.")
        write_tab(timed, path)
        return remarks


def check_style(style: str, styles: Sequence[str]) -> None:
    """Refuse a style that a model has no token for.

    Raises:
        ValueError: naming those that it has.
    """
    if not styles:
        raise ValueError(
            "--style has no effect here: this model knows no styles. Leave it out, or train on "
            "tabs of several styles."
        )
    if style not in styles:
        raise ValueError(f"--style must be one that this model knows, {', '.join(styles)}.")
