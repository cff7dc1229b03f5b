"""What `mkdocs serve` runs in place of its own server: it notices changes, lets pages be built."""

import threading
import webbrowser
from collections.abc import Callable, Iterable
from pathlib import Path

from serving import PageServer


class Watcher:
    """Notices which files below some folders have changed."""

    def __init__(self) -> None:
        """Watch nothing yet."""
        self.paths: list[Path] = []
        self._stamps: dict[Path, tuple[int, int]] = {}

    def watch(self, path: Path) -> None:
        """Watch a file or a folder, as it is now."""
        if path not in self.paths:
            self.paths.append(path)
            self._stamps |= stamps([path])

    def changed(self) -> set[Path]:
        """Return the files that are new, gone or written since the last call."""
        now = stamps(self.paths)
        found = {path for path, _ in now.items() ^ self._stamps.items()}
        self._stamps = now
        return found

    def has_changes(self) -> bool:
        """Tell if the next call of `changed` returns any."""
        return stamps(self.paths) != self._stamps


def stamps(paths: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Return when each file below some folders was written, and its size."""
    found = {}
    for path in paths:
        for one in path.rglob("*") if path.is_dir() else [path]:
            if "__pycache__" in one.parts:
                continue
            try:
                status = one.stat()
            except OSError:  # it was there a moment ago
                continue
            if not one.is_dir():
                found[one] = (status.st_mtime_ns, status.st_size)
    return found


class LiveServer:
    """What `mkdocs serve` runs in place of its own server.

    Attributes:
        pages: the server of the built folder.
    """

    def __init__(
        self, pages: PageServer, step: Callable[[set[Path]], None], wake: threading.Event
    ) -> None:
        """Serve pages, and let somebody build.

        Args:
            pages: the server of the built folder.
            step: called over and over with the files that have changed; builds what is needed.
            wake: set by whoever wants `step` to be called at once.
        """
        self.pages = pages
        self.step = step
        self._wake = wake
        self._watcher = Watcher()
        self.has_changes = self._watcher.has_changes
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=pages.serve_forever, daemon=True)

    def watch(self, path: str, func: None = None, *, recursive: bool = True) -> None:
        """Watch a file or a folder; MkDocs calls it so."""
        self._watcher.watch(Path(path).resolve())

    def unwatch(self, path: str) -> None:
        """Watch a file or a folder no longer."""
        self._watcher.paths.remove(Path(path).resolve())

    def serve(self, *, open_in_browser: bool = False) -> None:
        """Serve until Ctrl-C."""
        self._thread.start()
        if open_in_browser:
            webbrowser.open(self.pages.url)
        while not self._stopped.is_set():
            self._wake.wait(0.2)
            self._wake.clear()
            self.step(self._watcher.changed())

    def shutdown(self, wait: bool = False) -> None:
        """Stop."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive():
            self.pages.close()
        else:
            self.pages.server_close()
