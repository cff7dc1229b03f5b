"""What is shown while it lasts: lines that fill up, and a run's curves for TensorBoard."""

import contextlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from slp_transformer.shapes import Tensor
from slp_transformer.storage import from_text_extra

LOG = logging.getLogger("slp_transformer")
SECONDS = 0.5  # between two looks at the loss, for which an accelerator has to wait
DELAY = 0.5  # seconds that work may take before a bar appears
BARS = ContextVar("BARS", default=True)  # whether work has bars


@contextlib.contextmanager
def work_bar(
    work: str, total: int, unit: str = "B", done: int = 0
) -> Iterator[Callable[[int], Any]]:
    """Show how far some work has come that goes before training, and take the bar away at its end.

    There is a bar if the work takes a while, stderr is a terminal, and tqdm is installed.

    Args:
        work: what is done, in a word or two.
        total: how much there is to do.
        unit: what `total` counts: bytes, unless another is named.
        done: how much of it was done before.

    Yields:
        What to call with each amount that was done; less than 0 if it has to be done again.
    """
    try:
        tqdm = from_text_extra("tqdm.auto", "Progress bars").tqdm
    except ImportError:
        yield lambda amount: None
        return
    how = {"unit_scale": True, "dynamic_ncols": True, "leave": False, "delay": DELAY}
    how["disable"] = None if BARS.get() else True  # None has tqdm ask whether there is a terminal
    with tqdm(desc=work, total=total, initial=done, unit=unit, file=sys.stderr, **how) as bar:
        yield bar.update


@contextlib.contextmanager
def no_work_bars() -> Iterator[None]:
    """Show no bars of work, whatever stderr is."""
    before = BARS.set(False)
    try:
        yield
    finally:
        BARS.reset(before)


class Progress:
    """Shows how far a run has come."""

    def __init__(
        self, step: int, steps: int, *, bar: bool, tensorboard: Path | None, silent: bool = False
    ):
        """Begin to show.

        Args:
            step: steps made in earlier sessions of the run.
            steps: steps to be made in all.
            bar: show a bar with loss, tokens per second and time left.
            tensorboard: folder for TensorBoard's curves; None for none.
            silent: show nothing at all, as one of several processes that show the same.

        Raises:
            ImportError: if the library that shows it is not installed.
        """
        self.bar = self.writer = None
        self.silent = silent
        if bar and not silent:
            tqdm = from_text_extra("tqdm.auto", "Progress bars").tqdm
            self.bar = tqdm(total=steps, initial=step, unit="step", dynamic_ncols=True)
        if tensorboard is not None and not silent:
            from_text_extra("tensorboard", "TensorBoard curves")
            from torch.utils.tensorboard import SummaryWriter

            # Curves that were drawn beyond the checkpoint, before a crash, are taken back.
            self.writer = SummaryWriter(str(tensorboard), purge_step=step + 1)
        self.since, self.tokens, self.speed = time.perf_counter(), 0, 0.0

    def say(self, line: str) -> None:
        """Show a line of text, or leave it to the log of `slp_transformer` if there is no bar."""
        if self.silent:
            return
        LOG.info(line)
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)

    def step(self, loss: Tensor, tokens: int) -> None:
        """Show that a step was made."""
        self.tokens += tokens
        seconds = time.perf_counter() - self.since
        if self.bar is not None:
            self.bar.update(1)
        if seconds > SECONDS:
            self.speed = self.tokens / seconds
            if self.bar is not None:
                self.bar.set_postfix_str(f"loss {loss.item():.3f}, {self.speed:,.0f} tokens/s")
            self.pause()

    def pause(self) -> None:
        """Count speed from now on, so that a validation does not slow it down."""
        self.since, self.tokens = time.perf_counter(), 0

    def measured(self, step: int, train_loss: float, valid_loss: float, rate: float) -> None:
        """Show a measurement."""
        self.say(f"step {step}: learned {train_loss:.4f}, held out {valid_loss:.4f} nats per token")
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
            self.bar.close()
        if self.writer is not None:
            self.writer.close()


class StopKey:
    """Turns Ctrl-C into a wish that the loop fulfils after its step; a second one stops at once.

    Only in the main thread, where Python lets signals be handled; elsewhere it changes nothing.
    """

    def __init__(self):
        """Begin with no wish."""
        self.pressed = False

    def __enter__(self):
        """Listen for Ctrl-C."""
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self.press)
        return self

    def press(self, *_) -> None:
        """Note that Ctrl-C was pressed.

        Raises:
            KeyboardInterrupt: the second time.
        """
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True

    def __exit__(self, *_):
        """Handle Ctrl-C as before."""
        if self.main:
            signal.signal(signal.SIGINT, self.before)
