"""Kernels of an open page: what they have run, how many there are, what they put out."""

import asyncio
import os
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytest.importorskip("jupyter_client")
pytest.importorskip("mkdocs")

import page_kernels  # noqa: E402
import reader_kernel  # noqa: E402
from page_kernels import Collected, KernelError, Kernels  # noqa: E402

from slp_transformer._internal.plugins import PACKAGES  # noqa: E402


def message(kind, **content):
    return {"msg_type": kind, "header": {"msg_type": kind}, "content": content}


def stream(text):
    return message("stream", name="stdout", text=text)


class FakeKernel:
    """Keeps what it is given; "raise" raises, "die" ends it, "forever" waits for Stop.

    Of a cell "import" Stop leaves a module half imported, and a cell "deaf" does not notice it.
    """

    made: list = []

    def __init__(self, root):
        self.executed, self.ran, self.used, self.closed = [], [], 0.0, False
        self.exercises = {}
        self.has_old_package = self.has_half_import = False
        self.num_left = 0
        FakeKernel.made.append(self)

    def run(self, source, stop):
        self.ran.append(source)
        if source == "die":
            raise KernelError("The kernel has died; the next run starts another.")
        made = Collected()
        made.take(stream(f"{source}!"))
        yield made
        while source in ("forever", "import") and not (stop.times or stop.ends_kernel):
            yield None
        if stop.ends_kernel:
            raise KernelError("You ended the kernel.")
        if source == "raise" or (stop.times and source != "deaf"):
            made.take(message("error", ename="ValueError", evalue="no", traceback=[]))
        self.has_half_import = source == "import"
        made.num_left = source == "thread"
        yield made

    def begin(self, num_above, exercises=()):
        self.begun = (num_above, [*exercises])

    def keep(self, source, place, exercise):
        if exercise is None:
            self.executed.append(source)
        else:
            self.exercises[exercise] = source

    def close(self):
        self.closed = True


@pytest.fixture
def few(tmp_path):
    FakeKernel.made = []
    return Kernels(tmp_path, FakeKernel)


def run(few, above, source, key=("01", "chapter"), **more):
    *events, end = few.run(key, above, source, **more)
    assert end.pop("kind") == "end"
    end.pop("seconds", None)
    return end["state"], events, end


def test_what_is_above_runs_once_and_before(few):
    state, events, _ = run(few, ["a", "b"], "c")
    assert state == "ok"
    assert [event["done"] for event in events if event["kind"] == "progress"] == [0, 1]
    assert run(few, ["a", "b", "c"], "d")[0] == "ok"
    assert run(few, ["a", "b"], "c")[0] == "ok"  # once more, as in a notebook
    assert [kernel.ran for kernel in FakeKernel.made] == [["a", "b", "c", "d", "c"]]
    assert run(few, ["a", "b", "c"], "d")[0] == "ok"
    assert FakeKernel.made[0].ran[-1] == "d" and len(FakeKernel.made) == 1


def test_another_text_above_means_another_kernel(few):
    run(few, ["a", "b"], "c")
    run(few, ["a", "B"], "c")
    first, second = FakeKernel.made
    assert first.closed and second.ran == ["a", "B", "c"]
    run(few, ["A"], "b")
    assert second.closed and FakeKernel.made[2].ran == ["A", "b"]


def test_what_a_result_may_rest_on_beside_the_cells_above_is_said(few):
    run(few, ["a", "b"], "c")
    assert "text" not in run(few, ["a", "b"], "C")[2]  # the same cell once more
    assert run(few, ["a"], "b")[2]["text"] == page_kernels.BELOW_RAN
    assert "text" not in run(few, ["a", "b"], "c")[2]
    assert (
        run(few, [], "thread")[2]["text"] == f"{page_kernels.BELOW_RAN} {page_kernels.STILL_RUNS}"
    )


def test_a_package_that_has_changed_means_another_kernel(few):
    run(few, ["a"], "b")
    FakeKernel.made[0].has_old_package = True
    state, events, _ = run(few, ["a"], "b")
    assert state == "ok" and "package has changed" in events[0]["text"]
    assert FakeKernel.made[0].closed and FakeKernel.made[1].ran == ["a", "b"]


def test_it_stops_at_the_first_cell_above_that_fails(few):
    state, events, end = run(few, ["a", "raise", "b"], "c")
    assert (state, end["at"]) == ("failed above", 1)
    assert events[-1]["outputs"][-1].ename == "ValueError"
    assert FakeKernel.made[0].ran == ["a", "raise"]
    assert run(few, ["a", "b"], "c")[0] == "ok"  # mended: what ran before it stays
    assert FakeKernel.made[0].ran == ["a", "raise", "b", "c"]


def test_exercises_run_in_any_order_and_those_they_call_before_them(few):
    run(few, ["a"], "three", exercise=3)
    run(few, ["a"], "one", exercise=1)
    run(few, ["a"], "four", called={1: "one", 2: "two"}, exercise=4)
    run(few, ["a"], "four", called={1: "one", 2: "two"}, exercise=4)
    (kernel,) = FakeKernel.made
    assert kernel.ran == ["a", "three", "one", "two", "four", "four"]
    run(few, ["a"], "four", called={1: "ONE", 2: "two"}, exercise=4)
    assert kernel.ran[-2:] == ["ONE", "four"]
    run(few, ["a", "b"], "c")  # a cell between exercises
    run(few, ["a"], "raise", exercise=1)
    state, events, end = run(few, ["a"], "four", called={1: "raise"}, exercise=4)
    assert (state, end["at"]) == ("failed above", 1) and events[0]["of"] == 2
    assert kernel.ran[6:][2:] == ["b", "c", "raise", "raise"] and len(FakeKernel.made) == 1


def test_a_cell_begins_with_the_names_of_those_above_it_and_of_exercises_it_calls(few):
    run(few, ["a"], "one", exercise=1)
    (kernel,) = FakeKernel.made
    run(few, ["a"], "two", called={1: "one"}, exercise=2)
    assert kernel.begun == (1, [1])
    run(few, ["a"], "two", called={1: "ONE"}, exercise=2)
    assert kernel.begun == (1, [])  # it runs again
    run(few, ["a", "b", "c"], "d")
    run(few, ["a"], "b")
    assert kernel.begun == (1, [])


def test_names_are_those_that_cells_above_have_left():
    names = {"In": [], "open": open}
    kept = reader_kernel.KeptNames(names)
    x = names["x"] = [1]
    kept.keep(0, None)
    kept.begin(1)
    names |= {"softmax": "right", "x": 3, "_2": 3, "open": None}
    kept.keep(1, 5)  # an exercise
    kept.begin(1)
    assert names == {"In": [], "open": open, "x": x, "_2": 3}
    kept.begin(1, [5])
    assert names["softmax"] == "right" and names["x"] == 3
    names["sum"] = "uses softmax"
    kept.keep(1, 6)
    kept.begin(1, [6])
    assert "softmax" not in names and names["sum"] == "uses softmax"
    kept.begin(0)
    assert names == {"In": [], "open": open, "_2": 3}


def test_an_error_of_the_cell_itself_is_one(few):
    assert run(few, [], "raise")[0] == "error"


def test_a_dead_kernel_is_named_and_replaced(few):
    state, _, end = run(few, [], "die")
    assert state == "dead" and "has died" in end["text"]
    assert FakeKernel.made[0].closed
    assert run(few, [], "a")[0] == "ok" and len(FakeKernel.made) == 2


def test_there_are_at_most_three_and_the_longest_idle_ends_first(few):
    for number, name in enumerate("abc"):
        run(few, [], "x", (name, "chapter"))
        FakeKernel.made[number].used = (5, 3, 4)[number]
    run(few, [], "x", ("a", "exercises"))
    assert [kernel.closed for kernel in FakeKernel.made] == [False, True, False, False]


def test_where_all_are_busy_a_fourth_is_refused(few):
    runs = [few.run((name, "chapter"), [], "x") for name in "abc"]
    for one in runs:
        next(one)
    state, _, end = run(few, [], "x", ("d", "chapter"))
    assert state == "dead" and "running already" in end["text"]
    assert not any(kernel.closed for kernel in FakeKernel.made)


def stopped(few, above, source, during, act="interrupt"):
    """Stop a run when its cell `during` has begun; returns its end."""
    for event in few.run(("01", "chapter"), above, source):  # noqa: B007
        if FakeKernel.made and FakeKernel.made[-1].ran[-1:] == [during] and act:
            getattr(few, act)(("01", "chapter"))
            act = None
    return event["state"], event.get("text")


def test_a_cell_that_is_stopped_runs_again_in_the_same_kernel(few):
    assert stopped(few, ["a"], "forever", "forever") == ("stopped", "You stopped it.")
    assert stopped(few, ["a"], "deaf", "deaf")[0] == "ok"  # it ended before
    run(few, ["a"], "b", key=("02", "chapter"))  # another chapter's
    (kernel, _) = FakeKernel.made
    assert kernel.ran == ["a", "forever", "deaf"] and kernel.executed == ["a", "deaf"]


@pytest.mark.parametrize(
    ("above", "source", "during"),
    [(["a", "forever"], "b", "forever"), (["a"], "import", "import"), (["deaf"], "b", "deaf")],
)
def test_where_a_stop_may_have_broken_the_kernel_the_next_run_has_another(
    few, above, source, during
):
    state, text = stopped(few, above, source, during)
    assert state == "stopped" and "You stopped it" in text and "new kernel" in text
    assert FakeKernel.made[0].closed
    assert run(few, ["a"], "b")[0] == "ok" and FakeKernel.made[1].ran == ["a", "b"]


def test_a_stop_while_the_kernel_starts_is_not_forgotten(tmp_path):
    FakeKernel.made = []

    def slow(root):
        few.interrupt(("01", "chapter"))
        return FakeKernel(root)

    few = Kernels(tmp_path, slow)
    state, events, _ = run(few, ["a"], "b")
    assert state == "stopped" and FakeKernel.made[0].ran == []


def test_a_stop_is_of_what_runs_and_of_nothing_later(few):
    for name in ("01", "02"):  # the second has no kernel
        few.interrupt((name, "chapter"))
        few.restart((name, "chapter"))
    assert run(few, [], "a")[0] == "ok"
    few.interrupt(("01", "chapter"))
    assert run(few, [], "a")[0] == "ok" and len(FakeKernel.made) == 1


def test_a_kernel_that_is_ended_while_it_runs_says_so(few):
    state, text = stopped(few, ["a"], "forever", "forever", "restart")
    assert (state, text) == ("stopped", "You ended the kernel.")
    assert FakeKernel.made[0].closed and run(few, [], "a")[0] == "ok"
    few.restart(("01", "chapter"))
    assert FakeKernel.made[1].closed


def test_a_cell_waits_for_another_and_says_so(few, monkeypatch):
    monkeypatch.setattr(page_kernels, "TICK_S", 0.01)
    first = few.run(("01", "chapter"), [], "forever")
    assert next(first) == {"kind": "running"}
    second = few.run(("01", "chapter"), [], "b")
    assert [next(second)["kind"] for _ in range(3)] == ["waiting"] * 3
    few.interrupt(("01", "chapter"))
    assert list(first)[-1]["state"] == "stopped"
    kinds = [event["kind"] for event in second]
    assert kinds[0] == "running" and kinds[-1] == "end"


def test_who_closes_the_page_leaves_no_kernel_that_runs(few):
    left = few.run(("01", "chapter"), [], "forever")
    assert [next(left)["kind"] for _ in range(4)] == ["running", "outputs", "tick", "tick"]
    waiting = few.run(("01", "chapter"), [], "b")
    next(waiting)
    waiting.close()
    assert not FakeKernel.made[0].closed
    left.close()
    assert FakeKernel.made[0].closed and run(few, [], "a")[0] == "ok"


def test_all_end_with_the_server(few):
    run(few, [], "a")
    few.close()
    assert FakeKernel.made[0].closed


def test_outputs_are_collected_as_in_a_notebook():
    made = Collected()
    for text in ("one\n", "two\n"):
        assert made.take(stream(text))
    assert [output.text for output in made.outputs] == ["one\ntwo\n"]
    shown = {"data": {"text/plain": "1"}, "metadata": {}, "transient": {"display_id": "d"}}
    made.take(message("display_data", **shown))
    made.take(message("update_display_data", **(shown | {"data": {"text/plain": "2"}})))
    assert made.outputs[1].data == {"text/plain": "2"}
    made.take(message("clear_output", wait=True))
    assert len(made.outputs) == 2
    made.take(stream("three"))
    assert [output.text for output in made.outputs] == ["three"]
    made.take(message("clear_output", wait=False))
    assert made.outputs == [] and not made.take(message("status", execution_state="busy"))


def test_too_much_output_is_cut_and_said(monkeypatch):
    monkeypatch.setattr(page_kernels, "MAX_OUTPUT", 1000)
    made = Collected()
    for _ in range(100):
        made.take(stream("x" * 100))
    assert sum(len(output.text) for output in made.outputs) < 1100
    assert "cut here" in made.outputs[-1].text


def test_a_text_that_is_too_long_is_cut_and_not_dropped(monkeypatch):
    monkeypatch.setattr(page_kernels, "MAX_OUTPUT", 1000)
    made = Collected()
    made.take(stream("a" * 400))
    made.take(stream("b" * 5000))
    assert made.outputs[0].text == "a" * 400 + "b" * 600 and "cut here" in made.outputs[1].text
    made.take(message("clear_output", wait=True))
    data = {"text/plain": "c" * 5000, "text/html": "<p>" * 5000}
    made.take(message("execute_result", data=data, metadata={}, execution_count=1))
    assert made.outputs[0].data == {"text/plain": "c" * 1000} and len(made.outputs) == 2
    made.take(message("clear_output", wait=False))
    picture = {"image/png": "p" * 5000, "text/plain": "<Figure>"}
    made.take(message("display_data", data=picture, metadata={}))
    assert made.outputs[0].data == picture and not made.is_cut
    monkeypatch.setattr(page_kernels, "MAX_PICTURE", 100)
    made.take(message("display_data", data=picture, metadata={}))
    assert made.outputs[1].data == {"text/plain": "<Figure>"}
    assert made.outputs[2].text == page_kernels.NO_PICTURE.format(0.005) + "\n"


def test_pictures_and_outputs_have_a_bound_and_what_is_left_out_is_said_once(monkeypatch):
    monkeypatch.setattr(page_kernels, "MAX_PICTURES", 1000)
    monkeypatch.setattr(page_kernels, "MAX_OUTPUTS", 30)

    def shown(size, kind="display_data", **more):
        data = {"image/png": "p" * size, "text/plain": "<Figure>"}
        return message(kind, data=data, metadata={}, **more)

    made = Collected()
    made.take(shown(900, transient={"display_id": "a"}))
    for _ in range(20):
        made.take(shown(300))
    pictures = [o.data["image/png"] for o in made.outputs if "image/png" in o.get("data", {})]
    assert [len(one) for one in pictures] == [900]
    assert str(made.outputs).count(page_kernels.NO_MORE_PICTURES) == 1
    made.take(shown(5000, "update_display_data", transient={"display_id": "a"}))
    assert made.outputs[0].data == {"text/plain": "<Figure>"}
    made.take(shown(700, "update_display_data", transient={"display_id": "a"}))
    made.take(shown(300))
    assert [len(o.data.get("image/png", "")) for o in (made.outputs[0], made.outputs[-1])] == [
        700,
        300,
    ]
    for _ in range(5000):
        made.take(shown(1))
    assert len(made.outputs) == 31 and "after 30 outputs" in made.outputs[-1].text
    long = message("display_data", data={"text/plain": "x"}, metadata={})
    update = {"transient": {"display_id": "b"}, "data": {"text/plain": "y" * 10**6}, "metadata": {}}
    made = Collected()
    long["content"]["transient"] = {"display_id": "b"}
    made.take(long)
    made.take(message("update_display_data", **update))
    assert len(made.outputs[0].data["text/plain"]) == page_kernels.MAX_OUTPUT


def test_the_more_a_cell_has_put_out_the_longer_the_page_waits_for_more():
    """Since each look sends all of it: less than 10 MB in all, where it was 418 MB."""
    made, sent, now, shown_at = Collected(), 0, 0.0, 0.0
    data = {"image/png": "A" * 100}
    for _ in range(20_000):
        now += 0.005
        is_new = made.take(message("display_data", data=data, metadata={}))
        if is_new and now - shown_at > made.wait_s:
            sent += sum(1000 + len(str(output)) for output in made.outputs)
            shown_at = now
    assert len(made.outputs) == page_kernels.MAX_OUTPUTS + 1 and sent < 10e6
    made = Collected()
    assert made.wait_s == page_kernels.UPDATE_S


def test_an_error_after_too_much_output_is_kept_with_its_last_lines(monkeypatch):
    monkeypatch.setattr(page_kernels, "MAX_OUTPUT", 1000)
    made = Collected()
    made.take(stream("x" * 5000))
    trace = [f"frame {k} " + "." * 90 for k in range(3000)] + ["RecursionError: too deep"]
    made.take(message("error", ename="RecursionError", evalue="too deep", traceback=trace))
    assert page_kernels.has_error(made)
    shown = made.outputs[-1].traceback
    assert shown[0] == trace[0] and shown[-1].endswith("RecursionError: too deep")
    assert len("\n".join(shown)) < page_kernels.MAX_TRACEBACK + 100 and "left out" in shown[-2]


def test_a_line_that_is_written_over_is_one_line():
    made = Collected()
    for text in ("start\n  0%", "\r 50%", "\r100%\r", "\ndone\r\n"):
        made.take(stream(text))
    assert made.outputs[0].text == "start\n100%\ndone\n"


def test_a_script_is_named_and_an_error_without_traceback_is_one():
    made = Collected()
    plain = {"text/plain": "<it>"}
    for kind in ("application/javascript", "application/vnd.jupyter.widget-view+json"):
        made.take(message("display_data", data=plain | {kind: "mpl()"}, metadata={}))
        assert made.outputs[-2].data == plain
        assert made.outputs[-1].text == page_kernels.NO_SCRIPT + "\n"
    for page, told in (("<script>play()</script>", 1), ("<b>script</b>", 0)):
        made.outputs.clear()
        made.take(message("display_data", data={"text/html": page}, metadata={}))
        assert made.outputs[0].data == {"text/html": page} and len(made.outputs) == 1 + told
    assert not page_kernels.has_error(made)
    made.has_failed = True
    assert page_kernels.has_error(made)


def test_a_traceback_names_cells_as_a_page_can():
    made = Collected()
    made.take(message("execute_input", execution_count=3, code=""))
    lines = [
        "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[3]\x1b[39m, line 2",
        "Cell In[2], line 1",
    ]
    made.take(message("error", ename="E", evalue="e", traceback=lines))
    shown = "\n".join(made.outputs[0].traceback)
    assert "In[" not in shown and "This cell" in shown
    assert "A cell that ran before, line 1" in shown


def test_a_long_traceback_keeps_its_ends():
    def fall(depth):
        return 1 / 0 if not depth else fall(depth - 1)

    for depth, left in ((5, 7), (97, 2 * reader_kernel.MAX_FRAMES)):
        with pytest.raises(ZeroDivisionError) as raised:
            fall(depth)
        tb = reader_kernel.shortened(raised.value.__traceback__)
        lines = traceback.extract_tb(tb)
        assert len(lines) == left
        assert lines[0].name == test_a_long_traceback_keeps_its_ends.__name__
        assert "1 / 0" in lines[-1].line


def test_a_question_is_answered_in_words():
    made = Collected()
    made.take(message("error", ename="StdinNotImplementedError", evalue="e", traceback=["long"]))
    assert made.outputs[0].traceback == [page_kernels.NO_INPUT]


class FakeClient:
    """Answers, each 3 s, with how many threads still run, one less each time; each prints."""

    def __init__(self, left):
        self.left, self.late, self.now = left, [], 0.0

    def monotonic(self):
        return self.now

    def execute(self, source, user_expressions, **how):
        assert user_expressions == {"value": page_kernels.NUM_LEFT} and not source
        self.left, self.now = self.left - 1, self.now + 3
        self.late += [stream("late "), message("error"), message("clear_output", wait=False)]
        return "asked"

    def get_shell_msg(self, timeout):
        told = {"value": {"data": {"text/plain": str(self.left)}}}
        return message("reply", user_expressions=told) | {"parent_header": {"msg_id": "asked"}}

    def get_iopub_msg(self, timeout):
        if self.late:
            return self.late.pop(0)
        raise page_kernels.queue.Empty


def test_what_a_cell_leaves_running_is_waited_for_while_it_puts_something_out(monkeypatch):
    kernel = object.__new__(page_kernels.Kernel)
    for wait, stops, late in ((5.0, 0, "late late late "), (0.0, 0, ""), (5.0, 1, "")):
        monkeypatch.setattr(page_kernels, "LATE_S", wait)
        kernel._client = FakeClient(3)
        monkeypatch.setattr(page_kernels, "time", kernel._client)
        made = Collected(num_left=3)
        list(kernel._late(made, page_kernels.Stop(times=stops)))
        assert "".join(output.text for output in made.outputs) == late
        assert made.num_left == (0 if late else 3)


def test_a_kernel_that_does_not_answer_has_not_run_the_cell(monkeypatch):
    class DeafClient:
        def execute(self, *_, **__):
            return "asked"

        def get_iopub_msg(self, timeout):
            idle = message("status", execution_state="idle")
            return idle | {"parent_header": {"msg_id": "asked"}}

        def get_shell_msg(self, timeout):
            raise page_kernels.queue.Empty

    kernel = object.__new__(page_kernels.Kernel)
    kernel._client = DeafClient()
    with pytest.raises(KernelError, match="no longer answers"):
        list(kernel.run("print(1)", page_kernels.Stop()))


def test_a_line_of_a_million_characters_is_taken_at_once():
    made = Collected()
    made.take(stream("x" * 1_000_000 + "\ra\r"))
    assert made.outputs[0].text == "a\r" and not made.is_cut


def test_what_a_cell_leaves_running_are_its_threads_and_tasks():
    goes_on = threading.Event()

    def thread(**how):
        made = threading.Thread(target=goes_on.wait, **how)
        made.start()
        return made

    async def main():
        background = reader_kernel.Background()
        threads = [thread()]
        background.begin(None)
        threads += [thread(), thread(daemon=True)]  # the last one as libraries have them
        task = asyncio.create_task(asyncio.sleep(60))
        background.end(None)
        counts = [background.count()]
        goes_on.set()
        for one in threads:
            one.join()
        counts.append(background.count())
        task.cancel()
        await asyncio.wait([task])
        return [*counts, background.count()]

    with ThreadPoolExecutor(1) as pool:  # a browser of other tests keeps a loop in this thread
        assert pool.submit(asyncio.run, main()).result() == [2, 1, 0]


def test_nobody_can_be_asked_and_a_hidden_figure_is_named(monkeypatch, capsys):
    with pytest.raises(reader_kernel.StdinNotImplementedError):
        next(reader_kernel.NoInput())
    closed = []
    pyplot = SimpleNamespace(
        get_backend=lambda: "agg", get_fignums=lambda: [1], close=closed.append
    )
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    reader_kernel.close_hidden_figures()
    assert closed == ["all"] and capsys.readouterr().err == reader_kernel.HIDDEN + "\n"
    pyplot.get_backend = lambda: "module://matplotlib_inline.backend_inline"
    reader_kernel.close_hidden_figures()
    assert len(closed) == 1


def test_what_no_encoding_has_is_refused_on_one_stream_and_escaped_on_the_other():
    for errors in ("strict", "backslashreplace"):
        written = []
        stream = SimpleNamespace(write=written.append)
        reader_kernel.check_encoding(stream, errors)
        stream.write("an é")
        assert written == ["an é"]
        if errors == "strict":
            with pytest.raises(UnicodeEncodeError):
                stream.write("\ud800")
        else:
            stream.write("\ud800")
            assert written[1:] == ["\\ud800"]


def test_a_process_that_a_cell_has_forked_ends_with_it(monkeypatch):
    codes = []
    monkeypatch.setattr(os, "_exit", codes.append)
    for kernel in (os.getpid(), -1):
        for success in (True, False):
            reader_kernel.end_fork(kernel, SimpleNamespace(success=success))
    assert codes == [0, 1]


@pytest.mark.slow
def test_a_kernel_runs_answers_is_stopped_and_ends(tmp_path):
    (tmp_path / "slp_transformer").mkdir()
    few = Kernels(tmp_path)
    try:
        *_, end = few.run(("01", "chapter"), ["x = 7"], "print(x)\nx + 1")
        assert end["state"] == "ok"
        for question in ("input()", "breakpoint()"):
            events = list(few.run(("01", "chapter"), ["x = 7"], question))
            assert events[-1]["state"] == "error"
            assert events[-2]["outputs"][-1].traceback == [page_kernels.NO_INPUT]
        *_, shown, end = few.run(("01", "chapter"), ["x = 7"], "print('\\ud800')")
        assert end["state"] == "error" and "surrogates not allowed" in str(shown)
        late = "import threading\nthreading.Timer(0.3, print, ['late']).start()"
        *_, shown, end = few.run(("01", "chapter"), ["x = 7"], late)
        assert shown["outputs"][-1].text == "late\n" and "text" not in end
        timer = threading.Timer(0.5, few.interrupt, [("01", "chapter")])
        timer.start()
        events = list(few.run(("01", "chapter"), ["x = 7"], "import time\ntime.sleep(600)"))
        assert events[-1]["state"] == "stopped" and "KeyboardInterrupt" in str(events[-2])
        *_, end = few.run(("01", "chapter"), ["x = 7"], "x")  # in the same kernel
        assert end["state"] == "ok" and len(few._get(("01", "chapter")).executed) == 2
        deep = "f = lambda: f()\nf()"
        *_, shown, end = few.run(("01", "chapter"), ["x = 7"], deep)
        assert end["state"] == "error"
        assert str(shown).count("line 1") == 2 * reader_kernel.MAX_FRAMES - 2
        *_, end = few.run(("01", "chapter"), ["x = 7"], "raise ExceptionGroup('g', [ValueError()])")
        assert end["state"] == "error"
        *_, shown, end = few.run(("01", "chapter"), ["x = 7"], "print?")
        assert "print" in shown["outputs"][-1].data["text/plain"]
        (tmp_path / "slow.py").write_text("import time\ntime.sleep(600)", encoding="utf-8")
        timer = threading.Timer(0.5, few.interrupt, [("01", "chapter")])
        timer.start()
        *_, end = few.run(("01", "chapter"), ["x = 7"], "import slow")
        assert end["state"] == "stopped" and "new kernel" in end["text"]
        *_, end = few.run(("01", "chapter"), ["x = 7"], "import os\nos._exit(3)")
        assert end["state"] == "dead"
        kernel = few._get(("01", "chapter"))
        *_, end = few.run(("01", "chapter"), [], "exit()")
        assert end["state"] == "dead" and "ended the kernel" in end["text"]
        assert not kernel._manager.has_kernel
        kernel = few._get(("01", "chapter"))
        assert not kernel.has_old_package
        for package in PACKAGES:  # either of which may be edited
            (tmp_path / package).mkdir(exist_ok=True)
            (tmp_path / package / "new.py").touch()
            assert kernel.has_old_package
            (tmp_path / package / "new.py").unlink()
            assert not kernel.has_old_package
        folder = kernel._place.name
        *_, made = kernel.run("x", page_kernels.Stop())
        assert made.outputs[0].ename == "NameError"  # a new one
    finally:
        few.close()
    assert not kernel._manager.has_kernel
    assert not os.path.exists(folder)


@pytest.mark.slow
def test_a_cell_that_runs_when_the_server_ends_ends_in_silence(tmp_path):
    """Its thread alone may use the kernel's sockets."""
    (tmp_path / "slp_transformer").mkdir()
    few, events = Kernels(tmp_path), []
    key = ("01", "chapter")
    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(lambda: events.extend(few.run(key, [], "import time\ntime.sleep(600)")))
        while {"kind": "running"} not in events and not ran.done():
            pass
        folder = few._get(key)._place.name
        few.close()
        ran.result(30)  # no error of a socket
    assert events[-1]["state"] == "stopped" and not os.path.exists(folder)
    *_, end = few.run(key, [], "1")
    assert end == {
        "kind": "end",
        "state": "dead",
        "text": "The server has stopped: start it again.",
    }


@pytest.mark.slow
def test_no_verdict_is_on_a_name_that_a_text_no_longer_has(tmp_path):
    """A slip in the name that an exercise defines, or an exercise that it calls."""
    (tmp_path / "slp_transformer").mkdir()
    few = Kernels(tmp_path)
    right, slip = "def f(x):\n    return x\nprint(f(7))", "def ff(x):\n    return 0\nprint(f(7))"

    def ask(source, exercise=None, called=None, above=("a = 1",)):
        key = ("01", "exercises")
        *events, end = few.run(key, list(above), source, called, exercise)
        return end["state"], str(events[-1].get("outputs"))

    try:
        state, shown = ask(right, 2)
        assert state == "ok" and "7" in shown
        state, shown = ask(slip, 2)
        assert state == "error" and "NameError" in shown
        uses = "def g(x):\n    return f(x)\nprint(g(3))"
        assert ask(uses, 3, {2: right})[0] == "ok"
        assert ask(uses, 3, {2: slip.replace("f(7)", "1")})[0] == "error"
        assert ask(uses, 3, {2: right})[0] == "ok"
        # The same of a cell of the chapter, which is run again.
        assert ask("b = 3\nb")[0] == "ok"
        assert ask("a += 1\nc = 3\nb")[0] == "error"
        assert "2" in ask("a += 1\na")[1] and "2" in ask("a += 1\na")[1]
        assert ask("get_ipython().kept_names = None")[0] == "dead"
        assert ask(right, 2)[0] == "ok"
    finally:
        few.close()
