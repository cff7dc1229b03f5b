"""The server of a site that is being built: what it answers, to whom, and what it tells pages."""

import http.client
import os
import re
import socket
import threading
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256

import live_server
import pytest
import serving

PAGE = "<!doctype html><html><head><title>T</title></head><body><article>{}</article></body></html>"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "site" / "a").mkdir(parents=True)
    (tmp_path / "site" / "index.html").write_text(PAGE.format("<p>home</p>"), encoding="utf-8")
    (tmp_path / "site" / "a" / "index.html").write_text(PAGE.format("<p>é</p>"), encoding="utf-8")
    (tmp_path / "site" / "404.html").write_text(PAGE.format("<p>missing</p>"), encoding="utf-8")
    (tmp_path / "site" / "a.js").write_text("1", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    return tmp_path / "site"


@contextmanager
def started(folder, mount="/", cells=None):
    server = serving.PageServer(("127.0.0.1", 0), folder, mount, cells)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


@pytest.fixture
def server(folder):
    with started(folder) as server:
        yield server


def ask(server, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_a_page_is_the_file_with_one_script_right_behind_its_article(server, folder):
    answer, body = ask(server, "/a/")
    own = (folder / "a" / "index.html").read_bytes()
    before, script, after = body.partition(b"<script")
    script, _, after = (script + after).partition(b"</script>")
    assert before + after == own and before.endswith(b"</article>")
    assert b'src="/_live/live.js"' in script
    digest = answer.headers["X-Page-Digest"]
    assert digest.encode() in script
    assert ask(server, f"/_live/page/{digest}")[1] == own
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"  # "Open your chapter" frames chapters
    assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "Set-Cookie" not in answer.headers  # all ports of a machine would get it
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/", 200, b"home"),
        ("/a", 302, b""),
        ("/a.js", 200, b"1"),
        ("/none/", 404, b"missing"),
        ("/../secret.txt", 404, b"missing"),
        ("/%2e%2e/secret.txt", 404, b"missing"),
        ("/a/..%2f..%2fsecret.txt", 404, b"missing"),
        ("/_live/live.js", 200, b"slp:replaced"),
        ("/_live/..%2fserving.py", 404, b"missing"),
        ("/_live/page/0", 404, b"missing"),
    ],
)
def test_what_is_in_the_folder_is_served_and_nothing_else(server, path, status, words):
    answer, body = ask(server, path)
    assert answer.status == status and words in body
    assert b"secret" not in body.replace(path.encode(), b"")


def test_a_site_may_stand_below_a_path(folder):
    with started(folder, "/book/") as server:
        assert ask(server, "/")[0].headers["Location"] == "/book/"
        assert ask(server, "/book")[0].headers["Location"] in ("/book/", "/book")
        assert b'data-mount="/book/"' in ask(server, "/book/a/")[1]
        assert ask(server, "/a/")[0].status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/" + "a" * 5000, "/_live/" + "a" * 5000, "/_live/" + "a" * 300 + ".js",
        "/%00", "/a/%00.js", "/_live/%00.js", "/%ff%fe", "/%0d%0aa", "//", "/" + "../" * 3000,
        "/_live/page/" + "a" * 5000, "/[", "/%5B::1", "/a?" + "b" * 5000,
    ],
)  # fmt: skip
def test_an_odd_address_is_answered_and_the_terminal_stays_silent(server, path, capfd):
    assert ask(server, path)[0].status in (200, 302, 404)
    assert not capfd.readouterr().err


def test_the_pages_that_were_opened_are_known_the_last_one_first(server):
    for path in ("/a/", "/b/", "/b/", "/a/", "/a.js", "/_live/live.js"):
        ask(server, path)
    ask(server, "/none/", Sec_Fetch_Dest="empty", **{"Sec-Fetch-Dest": "empty"})  # a script's
    assert server.opened == ["a/", "b/"]


@pytest.mark.parametrize("rest", ["", "Content-Length: 9\r\n{}\r\n\r\n{{"])
def test_who_sends_half_a_request_is_let_go(running, monkeypatch, capfd, rest):
    assert 0 < serving.PageHandler.timeout < 300
    monkeypatch.setattr(serving.PageHandler, "timeout", 0.2)
    host = f"127.0.0.1:{running.server_port}"
    own = (
        f"X-Live-Token: {running.token}\r\nOrigin: http://{host}\r\nContent-Type: application/json"
    )
    with socket.create_connection(running.server_address) as client:
        client.settimeout(10)
        client.sendall(f"POST /_live/run HTTP/1.1\r\nHost: {host}\r\n{rest.format(own)}".encode())
        assert client.recv(9) == b""
    assert not capfd.readouterr().err


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("127.0.0.1", -1), ("ä..b", 80)])
def test_what_is_no_address_is_said(host, port):
    sentence = serving.check_address(host, port)
    assert sentence.startswith(f"No server can have the address {host}:{port}: ")


def test_many_pages_at_once_are_all_answered(server):
    """Which need a place to wait in while the server takes them one by one."""
    queued = []
    with ThreadPoolExecutor(200) as pool:
        queued += pool.map(lambda _: ask(server, "/a/")[0].status, range(400))
    assert set(queued) == {200} and serving.PageServer.request_queue_size >= 200


def test_an_address_that_is_taken_is_said_with_one_that_is_not(server):
    sentence = serving.check_address("127.0.0.1", server.server_port)
    free = re.fullmatch(
        rf"Port {server.server_port} is in use: mkdocs serve -a 127.0.0.1:(\d+)", sentence
    )
    assert serving.check_address("127.0.0.1", int(free[1])) == ""
    assert "203.0.113.7:8000" in serving.check_address("203.0.113.7", 8000)  # not this machine's


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1", "[", "]"]
)
def test_a_name_that_is_not_this_machine_s_gets_no_page(server, host):
    answer, body = ask(server, "/a/", Host=host)
    assert answer.status == 403 and b"localhost" in body


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:8000"])
def test_names_of_this_machine_get_pages(server, host):
    assert ask(server, "/a/", Host=host)[0].status == 200


def test_a_head_has_no_body(server):
    answer, body = ask(server, "/a/", method="HEAD")
    assert answer.status == 200 and not body and int(answer.headers["Content-Length"]) > 0


def test_pages_are_told_what_changes_and_get_it_from_another_folder(server, folder, tmp_path):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request("GET", "/_live/events")
    events = connection.getresponse()
    assert events.readline() == b"data: *\n"
    other = tmp_path / "other"
    (other / "a").mkdir(parents=True)
    (other / "a" / "index.html").write_text(PAGE.format("<p>new</p>"), encoding="utf-8")
    old = ask(server, "/a/")[0].headers["X-Page-Digest"]
    server.folder = other
    server.announce(["a/", "b c/"])
    server.announce(None)
    told = [line for line in (events.readline() for _ in range(5)) if line.startswith(b"data")]
    assert told == [b"data: a/ b%20c/\n", b"data: *\n"]
    assert b"new" in ask(server, "/a/")[1]
    assert "é".encode() in ask(server, f"/_live/page/{old}")[1]  # to compare with
    connection.close()


def test_only_the_last_pages_are_kept(server, monkeypatch):
    monkeypatch.setattr(serving, "PAGES_KEPT", 3)
    digests = [server.keep(f"page {number}".encode()) for number in range(5)]
    assert [server.kept(digest) is not None for digest in digests] == [False] * 2 + [True] * 3


def test_files_that_are_new_gone_or_written_are_noticed(tmp_path):
    watcher = live_server.Watcher()
    one, two = tmp_path / "one.py", tmp_path / "inner" / "two.py"
    one.write_text("1", encoding="utf-8")
    watcher.watch(tmp_path)
    assert watcher.changed() == set()
    two.parent.mkdir()
    two.write_text("2", encoding="utf-8")
    (two.parent / "__pycache__").mkdir()
    (two.parent / "__pycache__" / "two.pyc").write_text("", encoding="utf-8")
    assert watcher.changed() == {two}
    one.write_text("3", encoding="utf-8")
    os.utime(one, ns=(5, 5))
    assert watcher.changed() == {one}
    one.unlink()
    assert watcher.changed() == {one}
    assert watcher.changed() == set()


def test_the_loop_hands_on_changes_and_ends(folder, tmp_path):
    seen, wake = [], threading.Event()
    ours = live_server.LiveServer(
        serving.PageServer(("127.0.0.1", 0), folder), lambda changed: seen.append(changed), wake
    )
    ours.watch(str(folder))
    thread = threading.Thread(target=ours.serve)
    thread.start()
    (folder / "a.js").write_text("22", encoding="utf-8")
    end = time.monotonic() + 60
    while not any(seen) and time.monotonic() < end:
        time.sleep(0.02)
    ours.shutdown()
    thread.join(60)
    assert not thread.is_alive()
    assert [changed for changed in seen if changed] == [{(folder / "a.js").resolve()}]


# --- Running cells ------------------------------------------------------------------------------


@pytest.fixture
def asked():
    """What the server was asked to run."""
    return []


@pytest.fixture
def running(folder, asked):
    def cells(action, more):
        if action == "bases":  # all rest on cell 0
            yield {
                "bases": {place: more["texts"].get("0", "") if place else "" for place in range(3)}
            }
            return
        asked.append((action, more))
        if action not in ("run", "stop", "restart"):
            raise ValueError("There is no such action.")
        if action == "run":
            text = more.get("texts", {}).get(str(more["cell"]), "as shown")
            if more["cell"] == 2:
                yield {"kind": "progress", "done": 0, "of": 2}
                yield {"kind": "end", "state": "failed above", "at": 0}
            else:
                yield {"kind": "html", "html": f'<div class="slp-output"><p>{text}</p></div>'}
                yield {"kind": "end", "state": "ok", "seconds": 0.5}

    with started(folder, cells=cells) as server:
        yield server


def good_headers(server):
    return {
        "Origin": f"http://127.0.0.1:{server.server_port}",
        "Content-Type": "application/json",
        "X-Live-Token": server.token,
        "Sec-Fetch-Site": "same-origin",
    }


def post(server, body='{"cell": 1}', path="/_live/run", **changed):
    headers = good_headers(server) | {name.replace("_", "-"): to for name, to in changed.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    headers = {name: value for name, value in headers.items() if value is not None}
    connection.request("POST", path, body=body, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def test_a_page_with_the_token_runs_a_cell(running, asked):
    status, body, headers = post(running)
    assert status == 200 and b"as shown" in body and body.count(b"\n") == 2
    assert asked == [("run", {"cell": 1})]
    assert "Access-Control-Allow-Origin" not in headers
    assert post(running, path="/_live/none")[0] == 400


@pytest.mark.parametrize(
    "changed",
    [
        {"X_Live_Token": None},
        {"X_Live_Token": "guess"},
        {"X_Live_Token": ""},
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9"},  # another program of this machine
        {"Origin": "http://127.0.0.1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Content_Type": "text/plain"},  # what a form can send
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Content_Type": None},
        {"Host": "evil.example", "Origin": "http://evil.example"},  # a name bound anew
    ],
)
def test_whoever_else_asks_is_refused(running, asked, changed):
    status, body, headers = post(running, **changed)
    assert status == 403 and body and asked == []
    assert not [name for name in headers if name.lower().startswith("access-control")]


def test_no_other_method_runs_anything_and_no_other_page_is_let_in(running, asked):
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        answer, _ = ask(running, "/_live/run", method=method, **good_headers(running))
        assert answer.status >= 400
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert asked == []


def test_a_large_body_is_refused_unread(running, asked):
    status, _, _ = post(running, body="", Content_Length=str(serving.MAX_BODY + 1))
    assert status == 413 and asked == []


@pytest.mark.parametrize("size", ["²", "-1", "1e3", "9" * 5000, ""])
def test_a_size_that_is_none_is_refused(running, asked, capfd, size):
    status, _, _ = post(running, body="", Content_Length=size.encode("latin-1"))
    assert status == 413 and asked == [] and not capfd.readouterr().err


@pytest.mark.parametrize("body", ["", "[", "3", "[]", "[" * 100_000, '{"a":' * 100_000])
def test_what_is_no_request_gets_a_sentence(running, body):
    assert post(running, body=body)[0] == 400


def test_an_address_that_others_reach_runs_nothing(folder):
    server = serving.PageServer(("0.0.0.0", 0), folder, cells=lambda *_: iter(()))
    assert server.cells is None
    server.server_close()


def test_the_token_is_in_the_link_alone_and_new_each_time(running, folder):
    assert running.token in running.live_url
    for path in ("/", "/a/", "/_live/live.js", "/_live/cells.js", "/none"):
        answer, body = ask(running, path)
        assert running.token.encode() not in body
        assert running.token not in str(answer.headers)
    with started(folder) as other:
        assert other.token != running.token and len(other.token) >= 32


def test_a_page_runs_only_scripts_that_it_was_built_with(server, folder):
    inline = '<script>document.title = "built"</script>'
    (folder / "a" / "index.html").write_text(inline + PAGE.format(""), encoding="utf-8")
    policy = ask(server, "/a/")[0].headers["Content-Security-Policy"]
    digest = b64encode(sha256(b'document.title = "built"').digest()).decode()
    assert policy.startswith(f"script-src 'self' 'sha256-{digest}';")
    assert "unsafe" not in policy


def until(page, expression):
    """Waits until an expression is true in a page, whose policy forbids the browser's own way."""
    end = time.monotonic() + 30
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.02)


# --- In a browser --------------------------------------------------------------------------------


@pytest.fixture
def page(browser):
    with browser.new_context() as context:
        yield context.new_page()


def write(path, text):
    """Writes a page as a build does: whoever asks meanwhile gets the old one or the new one."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


TALL = 'document.querySelector("details").style.height = "500px"'
BLOCKS = """
<h1 id="t">Title</h1>
<p style="height: 1500px">long</p>
<div class="slp-chapter">
<h2 id="one">One</h2>
<details><summary>answer</summary><p>1</p></details>
<div class="highlight"><pre>code()</pre></div>
<input type="number" value="1">
<h2 id="two">Two</h2>
<p id="last">{last}</p>
<p style="height: 1500px">end</p>
</div>
"""


@pytest.mark.slow
def test_blocks_are_replaced_in_an_open_page_and_all_else_stays(server, folder, page):
    path = folder / "a" / "index.html"
    path.write_text(PAGE.format(BLOCKS.format(last="before")), encoding="utf-8")
    page.goto(f"{server.url}a/")
    page.evaluate(
        """() => {
        document.querySelector("details").open = true;
        document.querySelector("input").value = 7;
        document.querySelector("#two").scrollIntoView();
        window.kept = document.querySelector(".highlight");
        window.loads = (window.loads ?? 0) + 1;
        document.querySelector("h1").textContent = "changed by a script";
        document.addEventListener("slp:replaced", (event) => { window.added = event.detail; });
        }"""
    )
    before = page.evaluate('document.querySelector("#two").getBoundingClientRect().top')
    changed = BLOCKS.format(last="after").replace(
        '<input type="number" value="1">',
        '<div class="slp-output"><p style="height: 300px">an output</p></div>'
        '<input type="number" value="1"><input type="text" value="new">',
    )
    write(path, PAGE.format(changed).replace("slp-chapter", "slp-chapter slp-stale"))
    server.announce(["a/"])
    until(page, 'document.querySelector("#last").textContent === "after"')
    state = page.evaluate(
        """() => ({
        open: document.querySelector("details").open,
        values: [...document.querySelectorAll("input")].map((field) => field.value),
        same: window.kept === document.querySelector(".highlight"),
        output: document.querySelector(".slp-output p").textContent,
        title: document.querySelector("h1").textContent,
        stale: document.querySelector(".slp-chapter").className,
        top: document.querySelector("#two").getBoundingClientRect().top,
        loads: window.loads,
        added: window.added.map((one) => one.textContent.trim()),
        })"""
    )
    assert state.pop("top") == pytest.approx(before, abs=2)
    assert state == {
        "open": True,
        "values": ["7", "new"],
        "same": True,
        "output": "an output",
        "title": "changed by a script",
        "stale": "slp-chapter slp-stale",
        "loads": 1,
        "added": ["an output", "", "after"],
    }
    # What a script does that only the new page asks for moves no place either.
    (folder / "tall.js").write_text(TALL, encoding="utf-8")
    write(
        path, path.read_text("utf-8").replace("<title>", '<script src="/tall.js"></script><title>')
    )
    page.evaluate("document.documentElement.style.overflowAnchor = 'none'")
    server.announce(["a/"])
    until(page, 'document.querySelector("details").offsetHeight > 400')
    page.wait_for_timeout(100)
    top = page.evaluate('document.querySelector("#two").getBoundingClientRect().top')
    assert top == pytest.approx(before, abs=2)
    # An announcement of another page, or of nothing new, changes nothing.
    server.announce(["b/"])
    server.announce(None)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.dataset.updates") == "2"
    # Blocks that are gone go, and what a reader did outlives a reload.
    write(path, PAGE.format(BLOCKS.format(last="third")))
    server.announce(None)
    until(page, 'document.querySelector("#last").textContent === "third"')
    assert page.evaluate('document.querySelectorAll(".slp-output").length') == 0
    page.reload()
    until(page, 'document.querySelector("input").value === "7"')
    assert page.evaluate('document.querySelector("details").open')
    assert page.evaluate("document.documentElement.dataset.updates") is None


def long_page(kind, k):
    """A section whose heading is far above what is read, after so many patches of a kind."""
    blocks = [f'<p id="p{n}" style="margin:0;height:90px">Paragraph {n}</p>' for n in range(40)]
    new = '<div class="slp-output"><p style="height:130.4px">output {}</p></div>'
    if kind == "inserted below the heading":
        blocks[0:0] = [new.format(n) for n in range(k)]
    if kind == "inserted just above":
        blocks[19:19] = [new.format(n) for n in range(k)]
    if kind == "taken away":
        blocks[0:0] = [new.format(n) for n in range(40 - k)]
    if kind == "another height":
        blocks[0] = f'<div class="slp-output"><p style="height:{50 + 37.4 * k}px">{k}</p></div>'
    if kind == "inserted below":
        blocks[30:30] = [new.format(n) for n in range(k)]
    if kind == "the block itself":
        blocks[20] = blocks[20].replace("Paragraph", f"Text {k}")
    inside = "".join(blocks)
    return PAGE.format(f'<div class="slp-chapter"><h1 id="one">One</h1>{inside}</div>')


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        *("inserted below the heading", "inserted just above", "taken away", "another height"),
        *("inserted below", "the block itself"),
    ],
)
def test_what_is_read_stays_where_it_is_however_the_page_changes(kind, server, folder, browser):
    path = folder / "a" / "index.html"
    write(path, long_page(kind, 0))
    page = browser.new_page(viewport={"width": 800, "height": 700})
    page.goto(f"{server.url}a/")
    page.evaluate("document.querySelector('#p20').scrollIntoView(); scrollBy(0, -40)")
    top = "Math.round(document.querySelector('#p20').getBoundingClientRect().top)"
    page.wait_for_timeout(300)
    before = page.evaluate(top)
    for k in range(1, 31):
        write(path, long_page(kind, k))
        server.announce(["a/"])
        until(page, f"document.documentElement.dataset.updates === '{k}'")
        assert abs(page.evaluate(top) - before) <= 2, k
    page.wait_for_timeout(200)
    assert abs(page.evaluate(top) - before) <= 2
    page.reload()
    until(page, f"Math.abs({top} - {before}) <= 2")
    page.close()


@pytest.mark.slow
def test_a_page_that_missed_something_catches_up_when_it_is_looked_at(server, folder, page):
    path = folder / "a" / "index.html"
    path.write_text(PAGE.format("<p>one</p>"), encoding="utf-8")
    page.goto(f"{server.url}a/")
    write(path, PAGE.format("<p>two</p>"))  # nobody says so
    page.evaluate(
        """() => {
        for (const state of ["hidden", "visible"]) {
            const now = { value: state, configurable: true };
            Object.defineProperty(document, "visibilityState", now);
            document.dispatchEvent(new Event("visibilitychange"));
        }
        }"""
    )
    until(page, 'document.querySelector("p").textContent === "two"')


CELLS = """
<p class="slp-links"></p>
<div class="slp-cell" data-cell="0"></div>
<div class="highlight"><pre><code>x = 1\n</code></pre></div>
<div class="slp-output"><p>built</p></div>
<div class="slp-cell" data-cell="1"></div>
<div class="highlight"><pre><code>x + 1\n</code></pre></div>
<div class="slp-output"><p>two</p></div>
<div class="slp-cell" data-cell="2"></div>
<div class="highlight"><pre><code>x + 2\n</code></pre></div>
"""


@pytest.fixture
def chapter(running, folder, browser):
    """The page of a chapter with three cells, opened by the link of the terminal."""
    path = folder / "chapters" / "01_one" / "index.html"
    path.parent.mkdir(parents=True)
    path.write_text(PAGE.format(CELLS), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(running.live_url)
    page.goto(f"{running.url}chapters/01_one/")
    page.wait_for_selector(".slp-cell-bar")
    yield page
    context.close()


@pytest.mark.slow
def test_the_token_leaves_the_address_and_nothing_runs_by_itself(chapter, running, asked):
    assert running.token not in chapter.url
    chapter.goto(f"{running.url}chapters/01_one/#cell-2")
    chapter.goto(f"{running.url}chapters/01_one/#live={running.token}")
    chapter.wait_for_selector(".slp-cell-bar")
    chapter.wait_for_timeout(300)
    assert asked == []


@pytest.mark.slow
def test_a_cell_is_changed_run_kept_and_put_back(chapter, asked):
    cell = chapter.locator(".slp-cell").nth(0)
    built = chapter.locator(".slp-output", has_text="built")
    cell.get_by_role("button", name="Edit").click()
    assert built.is_visible()  # until there is another
    cell.get_by_role("button", name="Run").click()
    cell.get_by_text("Ran in 0.5 s.").wait_for()
    plain = {"chapter": "01_one", "cell": 0, "texts": {}, "follows": False}
    assert asked.pop() == ("run", plain)
    assert built.is_hidden() and cell.get_by_text("as shown").is_visible()
    editor = cell.get_by_role("textbox", name="Code of cell 1")
    assert editor.inner_text() == "x = 1"
    editor.fill("x = 5")
    editor.press("Control+Enter")
    cell.locator(".slp-output p", has_text="x = 5").wait_for()
    assert asked.pop()[1]["texts"] == {"0": "x = 5"}
    before_change = chapter.locator(".slp-before-change")
    before_change.filter(has_text="two").wait_for()
    editor.press("Shift+Enter")
    until(chapter, 'document.activeElement.closest("[data-cell]")?.dataset.cell === "1"')
    editor.press("Escape")
    assert chapter.evaluate("document.activeElement.textContent") == "Run"
    asked.clear()
    chapter.reload()
    editor.wait_for()
    assert editor.inner_text() == "x = 5" and asked == []  # it is shown, and does not run
    other = chapter.locator(".slp-cell").nth(1)
    other.get_by_role("button", name="Run").click()
    other.get_by_text("Ran in").wait_for()
    assert asked.pop()[1]["texts"] == {"0": "x = 5"}
    until(chapter, "!document.querySelector('.slp-before-change:not([hidden])')")
    cell.get_by_role("button", name="Put back").click()
    before_change.filter(has_text="as shown").wait_for()  # and now of what was put back
    assert built.is_visible() and editor.inner_text() == "x = 1"
    editor.press("Control+z")
    assert editor.inner_text() == "x = 5" and built.evaluate("e => e.matches('.slp-outdated')")
    cell.get_by_role("button", name="Put back").click()
    assert not cell.get_by_role("button", name="Put back").is_visible()
    chapter.reload()
    chapter.wait_for_selector(".slp-cell-bar")
    assert chapter.locator(".is-open").count() == 0


@pytest.mark.slow
def test_what_a_cell_put_out_is_old_as_soon_as_its_text_is_another(chapter):
    cell = chapter.locator(".slp-cell").nth(0)
    editor = cell.get_by_role("textbox", name="Code of cell 1")
    old = cell.locator(".slp-cell-output.slp-outdated")
    cell.get_by_role("button", name="Run").click()
    cell.get_by_text("Ran in 0.5 s.").wait_for()
    assert old.count() == 0
    editor.fill("x = 5")
    assert old.is_visible() and cell.get_by_text("Changed since it ran").is_visible()
    editor.fill("x = 1")  # what ran
    assert old.count() == 0 and cell.get_by_text("Changed since it ran").count() == 0
    editor.fill("x = 5")
    cell.get_by_role("button", name="Run").click()
    cell.locator(".slp-output p", has_text="x = 5").wait_for()
    assert old.count() == 0


@pytest.mark.slow
def test_a_cell_s_text_is_on_paper_with_lines_that_no_screen_has_shown(chapter):
    cell = chapter.locator(".slp-cell").nth(0)
    cell.get_by_role("button", name="Edit").click()
    editor = cell.get_by_role("textbox", name="Code of cell 1")
    text = "\n".join(f"x_{k} = {k}" for k in range(400))
    editor.fill(text)
    chapter.emulate_media(media="print")
    chapter.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert cell.locator(".slp-cell-paper").text_content() == text
    assert chapter.locator(".slp-cell-paper", has_text="x").count() == 1


@pytest.mark.slow
def test_a_button_stays_where_it_is_and_keeps_the_focus(chapter, asked):
    cell = chapter.locator(".slp-cell").nth(0)
    run = cell.get_by_role("button", name="Run")
    assert cell.get_by_role("button").all_inner_texts() == ["Edit", "Run"]
    place = run.bounding_box()
    for number in (1, 2):  # a second click in the same place
        chapter.mouse.click(place["x"] + 5, place["y"] + 5)
        until(chapter, "document.querySelector('.slp-cell-status').textContent.startsWith('Ran')")
        assert run.bounding_box() == place and len(asked) == number
    editor = cell.get_by_role("textbox", name="Code of cell 1")
    editor.fill("x = 5")
    run.press("Enter")
    cell.locator(".slp-output p", has_text="x = 5").wait_for()
    assert run.bounding_box() == place and editor.inner_text() == "x = 5"
    assert chapter.evaluate("document.activeElement.textContent") == "Run"
    other = chapter.context.new_page()
    other.goto(chapter.url)
    editor_there = other.get_by_role("textbox", name="Code of cell 1")
    editor_there.wait_for()
    editor_there.fill("x = 7")
    cell.get_by_text("changed in another tab").wait_for()
    assert editor.inner_text() == "x = 7"


@pytest.mark.slow
def test_a_failure_above_is_linked_and_a_server_that_is_gone_is_said(chapter, running):
    cell = chapter.locator(".slp-cell").nth(2)
    cell.get_by_role("button", name="Run").click()
    cell.get_by_role("link", name="Cell 1").wait_for()
    assert chapter.locator(".slp-cell").nth(0).get_by_text("It raised an error").is_visible()
    cell.get_by_role("link", name="Cell 1").click()
    assert chapter.url.endswith("#cell-1")
    running.token = "another server's"
    cell.get_by_role("button", name="Run").click()
    cell.get_by_text("Open the link that the terminal shows").wait_for()


@pytest.mark.slow
def test_a_page_without_the_token_has_no_buttons(running, folder, page):
    path = folder / "chapters" / "01_one" / "index.html"
    path.parent.mkdir(parents=True)
    path.write_text(PAGE.format(CELLS), encoding="utf-8")
    page.goto(f"{running.url}chapters/01_one/")
    page.locator(".slp-cell").first.get_by_text("the link that the terminal shows").wait_for()
    assert page.locator(".slp-cell button").count() == 0


@pytest.mark.slow
def test_a_script_that_gets_into_a_page_does_not_run(running, folder, page):
    """From an address, a file's name or a search: whatever writes it into the page."""
    page.goto(f"{running.url}a/")
    page.evaluate(
        """() => {
        document.body.insertAdjacentHTML("beforeend", '<img src="x" onerror="window.hit = 1">');
        document.body.insertAdjacentHTML("beforeend", '<a href="javascript:window.hit = 2">x</a>');
        document.querySelector("a").click();
        const script = document.createElement("script");
        script.textContent = "window.hit = 3";
        document.body.append(script);
        const other = document.createElement("script");
        other.src = "data:text/javascript,window.hit = 4";
        document.body.append(other);
        }"""
    )
    page.wait_for_timeout(500)
    assert page.evaluate("window.hit") is None


@pytest.mark.slow
def test_a_hostile_page_reaches_nothing(running, asked, page, tmp_path):
    """Another origin with a form, a fetch and a frame, and even the token."""
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "index.html").write_text(
        f"""<!doctype html><body>
        <form id="f" method="post" enctype="text/plain" target="t" action="{running.url}_live/run">
        <input name='{{"cell": 0, "x": "' value='"}}'></form><iframe name="t"></iframe>
        <iframe id="frame" src="{running.url}a/"></iframe></body>""",
        encoding="utf-8",
    )
    with started(evil) as other:
        page.goto(f"http://localhost:{other.server_port}/")
        results = page.evaluate(
            """async ([url, token]) => {
            document.querySelector("#f").submit();
            const tries = [
                {}, { mode: "no-cors" },
                { headers: { "Content-Type": "application/json", "X-Live-Token": token } },
            ].map((how) => fetch(`${url}_live/run`, { method: "POST", body: "{}", ...how })
                .then((answer) => answer.type, () => "refused"));
            const read = fetch(`${url}a/`).then((answer) => answer.text(), () => "refused");
            return [...await Promise.all(tries), await read];
            }""",
            [running.url, running.token],
        )
        page.wait_for_timeout(500)
        frame = page.frames[-1]
    assert results[0] == results[2] == results[3] == "refused"
    assert asked == []
    assert "é" not in frame.content()


def test_a_page_that_is_still_to_come_is_waited_for_and_others_are_not(server, folder):
    asked = threading.Event()
    server.expect(["later/index.html", "lost/index.html"], asked.set)
    assert ask(server, "/a/")[0].status == 200 and server.next_asked() is None
    answers = {}
    waiting = [
        threading.Thread(target=lambda path=path: answers.update({path: ask(server, path)}))
        for path in ("/later/", "/later", "/lost/")
    ]
    for one in waiting:
        one.start()
    wanted = []
    while len(wanted) < 3:
        assert asked.wait(10)
        if name := server.next_asked():
            wanted.append(name)
    assert sorted(wanted) == ["later/index.html", "later/index.html", "lost/index.html"]
    assert not answers
    (folder / "later").mkdir()
    (folder / "later" / "index.html").write_text(PAGE.format("<p>came</p>"), encoding="utf-8")
    for name in ("later/index.html", "lost/index.html"):  # the second could not be made
        server.release(name)
    for one in waiting:
        one.join(10)
    assert b"came" in answers["/later/"][1]
    assert answers["/later"][0].status == 302 and answers["/lost/"][0].status == 404


def test_who_waits_for_a_page_is_let_go_when_the_server_ends(server):
    server.expect(["later/index.html"], lambda: None)
    waiting = threading.Thread(target=server.wait_for, args=("later",))
    waiting.start()
    with server._changed:
        server._closing = True
        server._changed.notify_all()
    waiting.join(10)
    assert not waiting.is_alive()
