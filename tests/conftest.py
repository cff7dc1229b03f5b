"""Shapes in the package's signatures are checked while the tests run, on the device asked for.

`python -m pytest --device cuda` (or mps, or standin, see `standin`) runs the numerical tests there.
"""

import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import standin
import torch
import torch.nn.functional as F
from jaxtyping import config, install_import_hook

from slp_transformer._internal.plugins import PACKAGES

CHECKED = importlib.util.find_spec("beartype") is not None
if CHECKED:  # without it the numbers can still be compared
    import typechecking

    install_import_hook(typechecking.modules_with_tensors(PACKAGES), "typechecking.checker")
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]  # what told the packages' names was imported without the hook

# The tests' tensors are tiny: a second thread would only be waited for, here and in the processes
# that tests start.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"

pytest_plugins = ["skips"]


@pytest.hookimpl(optionalhook=True)  # a GPU's machine may have no xdist
def pytest_xdist_auto_num_workers(config):
    """The whole suite on two to four cores; a file or two in this process, at once."""
    some = [word for word in config.args if Path(word.split("::")[0]).suffix == ".py"]
    return 0 if some else min(os.cpu_count() or 1, 4)


NUMERICAL = {
    *("test_attention", "test_block", "test_embedding", "test_encoder_decoder", "test_feedforward"),
    *("test_language_model", "test_layer_norm", "test_loss", "test_multi_head", "test_stack"),
    *("test_cache", "test_sampling", "test_second_device"),
}
"""Tests of numbers that each kind of device computes in its own way; the rest is the CPU's work."""


def pytest_addoption(parser):
    """Let a device be asked for, and a model that was downloaded."""
    parser.addoption("--device", default="cpu", help="where the numerical tests compute")
    parser.addoption("--pretrained", help="folder of a downloaded model, for test_downloaded")


def pytest_configure(config):
    """Plug in the second device before the first gradient, when PyTorch looks which there are."""
    device = config.getoption("--device")
    if device == "cpu":  # what chooses a device chooses the same on every machine
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if device == standin.NAME:
        standin.plug_in()
    else:
        standin.second_device()


@functools.cache
def has_slow_tests(path):
    """Whether a file has the word by which tests are marked as slow."""
    return "slow" in path.read_text("utf-8")


def pytest_ignore_collect(collection_path, config):
    """Read the numerical tests alone on another device than the CPU, and files with slow tests."""
    if not collection_path.match("test_*.py"):
        return None
    ignored = config.getoption("--device") != "cpu" and collection_path.stem not in NUMERICAL
    ignored |= config.option.markexpr == "slow" and not has_slow_tests(collection_path)
    return ignored or None


@pytest.fixture(autouse=True)
def heed_ctrl_c():
    """Where Ctrl-C is ignored, as in a shell's background jobs, tests would ignore it too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def on_device(request, monkeypatch):
    """What a test makes without naming a device lies on the one asked for, constants too."""
    device, room = request.config.getoption("--device"), request.node.path.stem
    if device == "cpu" or room == "test_second_device":  # which names its devices
        yield
        return
    for name, value in vars(request.module).items():
        if isinstance(value, torch.Tensor):
            monkeypatch.setattr(request.module, name, value.to(device))
    with torch.device(device):
        yield


def pytest_make_parametrize_id(val, argname):
    """A whole file is no name of a test: each process would send megabytes of them."""
    is_long = isinstance(val, str | bytes) and len(val) > 500
    return f"{argname} of {len(val)} starting {val[:40]!r}" if is_long else None


@pytest.hookimpl(tryfirst=True)  # before any is left out
def pytest_collection_modifyitems(items):
    """What takes long begins first, so that no core waits for another at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    assert all(map(has_slow_tests, slow)), "a file with slow tests does not say so"
    long = ("test_chapters", "test_run_folder", "test_campaigns", "test_training_process")
    long += ("test_site", "test_reuse_page", "test_example_task", "test_browser", "test_processes")
    long += ("test_gpu_command", "test_typos", "test_reuse", "test_short_path", "test_own_model")
    places = {name: place for place, name in enumerate(long)}
    items.sort(key=lambda item: places.get(item.path.stem, len(long)))


@pytest.fixture(autouse=True)
def shapes_checked():
    """Each test begins with signatures that are checked."""
    if CHECKED:
        typechecking.begin()


# The first is Chromium without the windows that nobody sees: a page costs it a third of the work.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM += ("google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def browser():
    """A Chromium without a window, one for all tests of a process.

    Tests are skipped where none starts, but fail where SLP_CHROMIUM names it.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    found = os.environ.get("SLP_CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    options += ["--autoplay-policy=no-user-gesture-required", "--mute-audio"]
    with playwright.sync_playwright() as started:
        try:
            running = started.chromium.launch(executable_path=found, args=options)
        except playwright.Error as error:
            if os.environ.get("SLP_CHROMIUM"):
                raise
            pytest.skip(f"no Chromium starts: {error}".splitlines()[0])
        yield running
        running.close()


@pytest.fixture
def memory(request):
    """For tests that look at where tensors lie, or write them to a file as they are."""
    if request.config.getoption("--device") == standin.NAME:
        pytest.skip("The stand-in has no memory of its own.")


@pytest.fixture
def unchecked():
    """Turn the shape checks off, for tests of what the package itself says to bad input."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def kernel(monkeypatch):
    """Records what PyTorch's kernel is asked for, and lets it answer."""
    calls, real = [], F.scaled_dot_product_attention

    def spy(Q, K, V, attn_mask=None, dropout_p=0.0, is_causal=False, **rest):
        calls.append({"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal})
        return real(Q, K, V, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, **rest)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    return calls


@pytest.fixture
def at(tmp_path, monkeypatch):
    """A folder to work in, with a text in it."""
    from commands import SENTENCE  # not above: the package has to be imported after the hook

    monkeypatch.chdir(tmp_path)
    Path("fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def fox_run(tmp_path_factory):
    """A folder with a text, and the run a that was trained on it."""
    from commands import SENTENCE, SMALL, fine

    folder = tmp_path_factory.mktemp("fox")
    (folder / "fox.txt").write_text(SENTENCE * 20, encoding="utf-8")
    fine("train", "text", str(folder / "fox.txt"), "--out-dir", str(folder / "a"), *SMALL)
    return folder


@pytest.fixture
def text_run(fox_run, tmp_path, monkeypatch):
    """A folder to work in, with copies of that text and run; the run's own folder."""
    shutil.copytree(fox_run, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("a")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built strictly, or the one that SLP_SITE names."""
    if "SLP_SITE" in os.environ:
        return Path(os.environ["SLP_SITE"]).resolve()
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)],
        cwd=Path(__file__).parents[1], env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    return folder
