"""A server for people who read while the site is built: no page waits, none is reloaded.

It serves the folder of the last finished build and knows nothing of what builds it. When a page has
changed it tells the open ones, whose `live/live.js` fetches the page again and replaces the blocks
that differ. Nothing of this is in the site that is published.

On request it runs the code of an open page on this machine. Any page of the web and any user of
the machine reaches an address of loopback. So such a request needs a token, which only the link has
that the terminal prints, and has to come from a page of this very address: see `find_objection`.
"""

import errno
import hashlib
import itertools
import json
import mimetypes
import posixpath
import re
import secrets
import socket
import sys
import threading
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

LIVE = "/_live/"
"""The beginning of addresses that are the server's own."""
SCRIPTS = Path(__file__).with_name("live")
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
PAGES_KEPT = 64  # in the form in which browsers have them, to compare with their new one
MAX_BODY = 1_000_000  # bytes of a request
INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script>", re.DOTALL)
TICK_S = 5.0  # between signs of life to a page: writing is how a server learns that it was closed


class PageServer(ThreadingHTTPServer):
    """Serves a folder that may be exchanged for another while pages are read.

    Attributes:
        folder: the finished build.
        mount_path: what addresses begin with, "/" or "/name/".
        cells: runs cells; None where nothing may be run.
        token: what a page has to know to run any.
        opened: the places of pages that were opened, below `mount_path`, the last one first.
    """

    daemon_threads = True
    request_queue_size = 512  # pages that a browser opens at once, with all their files

    def __init__(
        self,
        address: tuple[str, int],
        folder: Path,
        mount_path: str = "/",
        cells: Callable[[str, dict[str, Any]], Iterator[dict[str, Any]]] | None = None,
    ) -> None:
        """Bind an address.

        Args:
            address: host and port; port 0 takes a free one.
            folder: the finished build.
            mount_path: what addresses begin with, "/" or "/name/".
            cells: does what a page asks for, and yields what it is answered; None, or an address
                that is not loopback's, for a server that runs nothing.
        """
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, PageHandler)
        self.folder = folder
        self.mount_path = mount_path
        self.cells = cells if self.server_address[0] in LOOPBACK else None
        self.token = secrets.token_urlsafe(24)
        self.opened: list[str] = []
        self._changes: list[Collection[str] | None] = []
        self._changed = threading.Condition()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._coming: set[str] = set()
        self._asked: list[str] = []
        self._wake: Callable[[], None] = lambda: None
        self._closing = False

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        host = str(self.server_address[0])
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.server_port}{self.mount_path}"

    @property
    def live_url(self) -> str:
        """The address to open in a browser that may run cells."""
        return f"{self.url}#live={self.token}"

    def announce(self, urls: Collection[str] | None) -> None:
        """Tell open pages what has changed.

        Args:
            urls: addresses of pages below `mount_path`, as "chapters/01/"; None for any of them.
        """
        with self._changed:
            self._changes.append(urls)
            self._changed.notify_all()

    def next_changes(self, seen: int) -> tuple[int, list[Collection[str] | None]]:
        """Wait for changes, or a tick.

        Args:
            seen: how many changes are known already.

        Returns:
            How many there are now, and those that are new.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._changes) > seen or self._closing, TICK_S)
            if self._closing:
                raise ConnectionAbortedError
            return len(self._changes), self._changes[seen:]

    @property
    def num_changes(self) -> int:
        """How many changes were announced."""
        return len(self._changes)

    def expect(self, names: Iterable[str], wake: Callable[[], None]) -> None:
        """Take note of files of the folder that are still to come: who asks for one waits.

        Args:
            names: the files, below the folder.
            wake: called when somebody asks for one, which `next_asked` then returns.
        """
        with self._changed:
            self._coming, self._wake = set(names), wake

    def next_asked(self) -> str | None:
        """Return a file that somebody waits for; None if nobody does."""
        with self._changed:
            return self._asked.pop(0) if self._asked else None

    def open(self, place: str) -> None:
        """Take note of a page that is opened."""
        with self._changed:
            rest = [one for one in self.opened if one != place]
            self.opened = [place, *rest[: PAGES_KEPT - 1]]

    def release(self, name: str) -> None:
        """Let those go on who wait for a file, whether it has come or could not be made."""
        with self._changed:
            self._coming.discard(name)
            self._changed.notify_all()

    def wait_for(self, place: str) -> None:
        """Wait for the file at a place below the folder, if it is one that is still to come."""
        with self._changed:
            names = self._coming.intersection((place, posixpath.join(place, "index.html")))
            if names:
                self._asked += names
                self._wake()
                self._changed.wait_for(lambda: self._closing or not names & self._coming)

    def keep(self, page: bytes) -> str:
        """Keep a page as a browser gets it, and return its digest."""
        digest = hashlib.sha256(page).hexdigest()[:24]
        with self._changed:
            self._kept[digest] = page
            self._kept.move_to_end(digest)
            while len(self._kept) > PAGES_KEPT:
                self._kept.popitem(last=False)
        return digest

    def kept(self, digest: str) -> bytes | None:
        """Return a page that a browser got earlier; None if it is too long ago."""
        with self._changed:
            return self._kept.get(digest)

    def close(self) -> None:
        """Stop serving, and let go of the address."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has left; anything else is a bug of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def is_there(path: Path) -> bool:
    """Tell if there is a file at a path, which may be too long for one or have no name at all."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def check_address(host: str, port: int) -> str:
    """Return a sentence on why no server can have an address; nothing if one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET

    def error_at(port: int) -> Exception | None:
        try:
            socket.create_server((host, port), family=family).close()
        except (OSError, OverflowError, TypeError, UnicodeError) as error:  # some are no addresses
            return error
        return None

    error = error_at(port)
    if error is None:
        return ""
    if getattr(error, "errno", None) != errno.EADDRINUSE:
        why = getattr(error, "strerror", None) or error
        return f"No server can have the address {host}:{port}: {why}."
    free = (one for one in range(port + 1, min(port + 100, 65536)) if error_at(one) is None)
    at = f"[{host}]" if ":" in host else host
    return f"Port {port} is in use: mkdocs serve -a {at}:{next(free, 0)}"


class PageHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = 60.0  # s, for a browser that has begun a request to go on, or to take what it gets

    def do_HEAD(self) -> None:
        """Answer with the head alone."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer with a file of the build, or with what is the server's own."""
        if not self.is_addressed_to_us():
            # A name that somebody else's server gave this address would make our pages its own.
            return self.answer(403, b"This server answers to localhost only.", "text/plain")
        path = unquote(urlsplit(self.path).path)
        if path == f"{LIVE}events":
            return self.send_events()
        if path.startswith(f"{LIVE}page/"):
            page = self.server.kept(path.rpartition("/")[2])
            return self.answer(200, page, "text/html") if page is not None else self.not_found()
        if path.startswith(LIVE):
            script = SCRIPTS / path.rpartition("/")[2]
            known = script.suffix == ".js" and is_there(script)
            return self.answer_file(script) if known else self.not_found()
        mount = self.server.mount_path
        if not f"{path}/".startswith(mount):
            return self.redirect(mount) if path == "/" else self.not_found()
        inside = posixpath.normpath(f"/{path[len(mount) :]}").lstrip("/")
        is_opened = self.headers.get("Sec-Fetch-Dest", "document") == "document"
        if is_opened and not posixpath.splitext(inside)[1]:
            self.server.open(f"{inside}/")
        self.server.wait_for(inside)
        found = self.server.folder / inside
        if is_there(found / "index.html"):
            if not path.endswith("/"):
                return self.redirect(f"{path}/")
            found /= "index.html"
        return self.answer_file(found) if is_there(found) else self.not_found()

    def do_POST(self) -> None:
        """Run a cell, for a page of ours whose reader has the token."""
        self.close_connection = True
        size = self.headers.get("Content-Length", "")
        refused = self.find_objection()
        if refused:
            return self.answer(403, refused.encode(), "text/plain")
        if self.server.cells is None:
            return self.answer(404, b"This server runs nothing.", "text/plain")
        if not re.fullmatch("[0-9]{1,9}", size) or int(size) > MAX_BODY:
            return self.answer(413, b"That is too much.", "text/plain")
        try:
            asked = json.loads(self.rfile.read(int(size)))
            events = self.server.cells(self.path.removeprefix(LIVE), asked)
            first = next(events, {})
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            return self.answer(400, str(error).encode(errors="replace"), "text/plain")
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in itertools.chain([first], events):
            self.wfile.write(json.dumps(event).encode() + b"\n")
            self.wfile.flush()

    def find_objection(self) -> str:
        """Return why a request to run something is refused; nothing if it is not.

        A form or a script of another page can send neither the token nor, unasked, JSON with a
        header of its own, and would tell its Origin, with its port. Cookies are not used: they
        are sent to all ports of a machine.
        """
        if not self.is_addressed_to_us():
            return "This server answers to localhost only."
        host = self.headers.get("Host", "")
        if self.headers.get("Origin") != f"http://{host}":
            return "This request does not come from a page of this server."
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return "This request comes from another site."
        if self.headers.get("Content-Type") != "application/json":
            return "A request is JSON."
        token = self.headers.get("X-Live-Token", "")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            return "Open the link that the terminal shows: this page does not know its token."
        return ""

    def is_addressed_to_us(self) -> bool:
        """Tell if the Host names loopback, where the server is bound to that."""
        bound = str(self.server.server_address[0])
        try:
            host = urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:  # as of "[::1"
            return False
        return bound not in LOOPBACK or host in LOOPBACK

    def answer_file(self, path: Path, status: int = 200) -> None:
        """Answer with a file; a page also gets the script that keeps it up to date."""
        try:
            content = path.read_bytes()
        except OSError:
            return self.not_found()
        if path.suffix != ".html":
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            kind = "text/javascript" if path.suffix in (".js", ".mjs") else kind
            return self.answer(status, content, kind)
        digest = self.server.keep(content)
        given = f'data-digest="{digest}" data-mount="{self.server.mount_path}"'
        script = f'<script src="{LIVE}live.js" {given}></script>'.encode()
        # Right behind the article, so that it sees the blocks before any other script changes them.
        before, end, after = content.rpartition(b"</article>")
        if not end:  # nothing to keep up to date
            return self.answer(status, content, "text/html", digest)
        self.answer(status, before + end + script + after, "text/html", digest)

    def answer(self, status: int, content: bytes, kind: str, digest: str = "") -> None:
        """Answer with some bytes."""
        self.send_response(status)
        utf8 = kind.startswith("text/") or kind.endswith(("json", "javascript", "svg+xml"))
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if utf8 else kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "SAMEORIGIN")  # "Open your chapter" shows chapters
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        if kind == "text/html":
            # Of scripts that stand in a page those run that stood there when it was built.
            known = {hashlib.sha256(script).digest() for script in INLINE_SCRIPT.findall(content)}
            hashes = " ".join(f"'sha256-{b64encode(one).decode()}'" for one in sorted(known))
            policy = f"script-src 'self' {hashes}; object-src 'none'; base-uri 'self'"
            policy += "; frame-ancestors 'self'"
            policy += "; worker-src 'self' blob:"  # alphaTab's begin with a line that it writes
            self.send_header("Content-Security-Policy", policy)
        if digest:
            self.send_header("X-Page-Digest", digest)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def redirect(self, path: str) -> None:
        """Answer that something is elsewhere."""
        self.send_response(302)
        self.send_header("Location", quote(path))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def not_found(self) -> None:
        """Answer that there is no such page."""
        missing = self.server.folder / "404.html"
        if missing.is_file():
            return self.answer_file(missing, 404)
        return self.answer(404, b"There is no such page.", "text/plain")

    def send_events(self) -> None:
        """Tell a page what changes, until it is closed."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        seen = self.server.num_changes
        self.wfile.write(b"data: *\n\n")  # it may have missed some while it was hidden
        while True:
            self.wfile.flush()
            seen, changes = self.server.next_changes(seen)
            for urls in changes:
                words = "*" if urls is None else " ".join(quote(url) for url in urls)
                self.wfile.write(f"data: {words}\n\n".encode())
            if not changes:
                self.wfile.write(b":\n\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""
