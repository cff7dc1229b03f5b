"""Progress bars, and the curves of a run for TensorBoard."""

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sized
from contextvars import ContextVar
from pathlib import Path
from typing import Any, SupportsFloat

from slp_transformer._internal.atomic_write import from_text_extra

LOG = logging.getLogger("slp_transformer")
LOSS_REFRESH_S = 0.5  # between two looks at the loss, for which an accelerator has to wait
BAR_DELAY_S = 0.5  # seconds that work may take before a bar appears
BARS_ENABLED = ContextVar("BARS_ENABLED", default=True)  # whether work has bars


@contextlib.contextmanager
def work_bar(work: str, total: int | None, unit: str = "B") -> Iterator[Callable[[int], Any]]:
    """Show a progress bar for some work, and remove it at the end.

    It is shown if the work takes a while, stderr is a terminal, and tqdm is installed.

    Args:
        work: description, in a word or two.
        total: amount of work; None if it is unknown.
        unit: unit of `total`.

    Yields:
        A function to call with each amount that was done.
    """
    try:
        tqdm = from_text_extra("tqdm.auto", "Progress bars").tqdm
    except ImportError:
        yield lambda amount: None
        return
    how = {"unit_scale": True, "dynamic_ncols": True, "leave": False, "delay": BAR_DELAY_S}
    how["disable"] = None if BARS_ENABLED.get() else True  # None: unless stderr is a terminal
    bar = tqdm(desc=work, total=total, unit=unit, file=sys.stderr, **how)

    def tell(amount: int) -> None:
        with seen_or_not():
            bar.update(amount)

    try:
        yield tell
    finally:
        with seen_or_not():
            bar.close()


def can_be_redrawn() -> bool:
    """Return whether stderr can redraw a line: on a terminal, or in a notebook."""
    ipython = sys.modules.get("IPython")
    in_notebook = ipython is not None and ipython.get_ipython() is not None
    return sys.stderr.isatty() or in_notebook


def seen_or_not() -> contextlib.AbstractContextManager:
    """Ignore errors while a bar is drawn, as on a terminal that was closed."""
    return contextlib.suppress(OSError)


@contextlib.contextmanager
def no_work_bars() -> Iterator[None]:
    """Disable progress bars."""
    before = BARS_ENABLED.set(False)
    try:
        yield
    finally:
        BARS_ENABLED.reset(before)


def beside_bars(text: str) -> None:
    """Write lines to stderr, above any progress bar."""
    with seen_or_not():
        try:
            from_text_extra("tqdm.auto", "Progress bars").tqdm.write(text, file=sys.stderr)
        except ImportError:
            print(text, file=sys.stderr, flush=True)


class Progress:
    """Shows the progress of a training run."""

    def __init__(
        self,
        step: int,
        steps: int,
        *,
        bar: bool,
        tensorboard: Path | None,
        silent: bool = False,
        gauge: Callable[[float], str] | None = None,
        compiles: bool = False,
    ):
        """Begin to show.

        Args:
            step: steps made in earlier sessions of the run.
            steps: steps to be made in all.
            bar: show a bar with loss, tokens per second and time left; where stderr is no terminal
                and no notebook, as in a log, a line for each measurement instead.
            tensorboard: folder for TensorBoard's curves; None for none.
            silent: show nothing at all, as one of several processes that show the same.
            gauge: returns what to show of the device, given the number of tokens per second.
            compiles: whether the first step compiles the model, which the bar then shows.

        Raises:
            ImportError: if the library that shows it is not installed.
        """
        self.bar = self.writer = None
        self.silent, self.gauge = silent, gauge or (lambda speed: "")
        self.lines = bar and not silent
        if self.lines and can_be_redrawn():
            tqdm = from_text_extra("tqdm.auto", "Progress bars").tqdm
            self.bar = tqdm(total=steps, initial=step, unit="step", dynamic_ncols=True)
        if tensorboard is not None and not silent:
            from_text_extra("tensorboard", "TensorBoard curves")
            from torch.utils.tensorboard import SummaryWriter

            # Curves that were drawn beyond the checkpoint, before a crash, are taken back.
            self.writer = SummaryWriter(str(tensorboard), purge_step=step + 1)
        self.compiles = compiles
        if compiles and self.bar is not None:
            self.bar.set_postfix_str("compiling, which may take minutes")
        elif compiles and self.lines:
            self.say("Compiling, which may take minutes.")
        self.since, self.tokens, self.speed = time.perf_counter(), 0, 0.0

    def say(self, line: str) -> None:
        """Show a line of text, and leave it to the log of `slp_transformer`."""
        if self.silent:
            return
        LOG.info(line)
        if self.bar is not None:
            with seen_or_not():
                self.bar.write(line, file=sys.stderr)
        elif self.lines:
            with seen_or_not():
                print(line, file=sys.stderr, flush=True)

    def step(self, loss: SupportsFloat, tokens: int) -> None:
        """Show that a step was made."""
        self.tokens += tokens
        if self.bar is not None:
            with seen_or_not():
                self.bar.update(1)
        shown = self.lines or self.writer is not None
        if not shown or time.perf_counter() - self.since <= LOSS_REFRESH_S:
            return
        known = float(loss)  # here an accelerator has to be waited for, and the clock read after
        seconds = time.perf_counter() - self.since
        if self.compiles:
            self.compiles = False
            self.say(f"Compiled, with the first step, in {seconds:.0f} s.")
        else:
            self.speed = self.tokens / seconds
        if self.bar is not None:
            with seen_or_not():
                self.bar.set_postfix_str(f"loss {known:.3f}{self.told_speed()}")
        self.pause()

    def told_speed(self) -> str:
        """Return tokens per second and the state of the device; "" before they are known."""
        return f", {self.speed:,.0f} tokens/s{self.gauge(self.speed)}" if self.speed else ""

    def pause(self) -> None:
        """Restart the measurement of speed, to leave out the time of evaluations."""
        self.since, self.tokens = time.perf_counter(), 0

    def measuring(self, what: Any) -> contextlib.AbstractContextManager:
        """Return a bar for an evaluation; it yields what to call with numbers of sequences."""
        if self.bar is None:
            return contextlib.nullcontext(lambda count: None)
        total = len(what) if isinstance(what, Sized) else None
        return work_bar("Measure", total, " sequences")

    def measured(
        self,
        step: int,
        train_loss: float,
        valid_loss: float,
        whole_loss: float | None,
        rate: float,
    ) -> None:
        """Show the result of an evaluation."""
        told = f"step {step}: learned {train_loss:.4f}, held out {valid_loss:.4f} nats per token"
        told += "" if whole_loss is None else f"; {whole_loss:.4f} on all of it"
        self.say(told if self.bar is not None else told + self.told_speed())
        if self.writer is not None:
            self.writer.add_scalars("loss", {"train": train_loss, "valid": valid_loss}, step)
            self.writer.add_scalar("learning rate", rate, step)
            if self.speed:
                self.writer.add_scalar("tokens per second", self.speed, step)
            self.writer.flush()
        self.pause()

    def close(self) -> None:
        """Leave the bar as it stands, and close TensorBoard's file."""
        if self.bar is not None:
            with seen_or_not():
                self.bar.close()
        if self.writer is not None:
            self.writer.close()
