"""The server of a site that is being built: what it answers, to whom, and what it tells pages."""

import http.client
import os
import threading
import time
from contextlib import contextmanager

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
def started(folder, mount="/"):
    server = serving.PageServer(("127.0.0.1", 0), folder, mount)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
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
    assert answer.headers["X-Frame-Options"] == "DENY"
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


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
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
    watcher = serving.Watcher()
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
    ours = serving.LiveServer(
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


# --- In a browser --------------------------------------------------------------------------------

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
def test_blocks_are_replaced_in_an_open_page_and_all_else_stays(server, folder, browser):
    path = folder / "a" / "index.html"
    path.write_text(PAGE.format(BLOCKS.format(last="before")), encoding="utf-8")
    page = browser.new_page()
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
    path.write_text(PAGE.format(changed).replace("slp-chapter", "slp-chapter slp-stale"), "utf-8")
    server.announce(["a/"])
    page.wait_for_function('document.querySelector("#last").textContent === "after"')
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
    # An announcement of another page, or of nothing new, changes nothing.
    server.announce(["b/"])
    server.announce(None)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.dataset.updates") == "1"
    # Blocks that are gone go, and what a reader did outlives a reload.
    path.write_text(PAGE.format(BLOCKS.format(last="third")), encoding="utf-8")
    server.announce(None)
    page.wait_for_function('document.querySelector("#last").textContent === "third"')
    assert page.evaluate('document.querySelectorAll(".slp-output").length') == 0
    page.reload()
    page.wait_for_function('document.querySelector("input").value === "7"')
    assert page.evaluate('document.querySelector("details").open')
    assert page.evaluate("document.documentElement.dataset.updates") is None


@pytest.mark.slow
def test_a_page_that_missed_something_catches_up_when_it_is_looked_at(server, folder, browser):
    path = folder / "a" / "index.html"
    path.write_text(PAGE.format("<p>one</p>"), encoding="utf-8")
    page = browser.new_page()
    page.goto(f"{server.url}a/")
    path.write_text(PAGE.format("<p>two</p>"), encoding="utf-8")  # nobody says so
    page.evaluate(
        """() => {
        for (const state of ["hidden", "visible"]) {
            const now = { value: state, configurable: true };
            Object.defineProperty(document, "visibilityState", now);
            document.dispatchEvent(new Event("visibilitychange"));
        }
        }"""
    )
    page.wait_for_function('document.querySelector("p").textContent === "two"')
