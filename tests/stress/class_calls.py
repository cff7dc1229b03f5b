"""See which system calls of harmless files a class report refuses: none should be missing.

    python tests/stress/class_calls.py

A class of right and wrong files is reported on, one of each for every check, beside files that use
what a student may use: Python's own library, NumPy and Matplotlib where they are, and PyTorch's
threads, optimizers, linear algebra and fused kernels. It prints Python, PyTorch, and each call that
was refused with the files that made it. Run it under every Python and PyTorch that are supported.
"""

import platform
import sys
import tempfile
from pathlib import Path

import torch

from slp_transformer.check import CHECKS
from slp_transformer.check.grading.class_report import report_on_class

EACH = """
from slp_transformer.check import CHECKS
def my_{name}(*inputs):
    answer = CHECKS[{name!r}]._with_mistakes(*inputs, mistakes=frozenset())
    return {returned}
"""
# The body of a class is run with the definitions.
OTHERS = {
    "library": """
import asyncio, bisect, collections, concurrent.futures, copy, csv, ctypes, dataclasses, datetime
import decimal, fractions, functools, gc, gzip, hashlib, heapq, inspect, io, itertools, json
import logging, math, multiprocessing, operator, os, pathlib, pickle, platform, pprint, queue
import random, re, secrets, shutil, socket, sqlite3, statistics, string, subprocess, sys, tempfile
import textwrap, threading, time, timeit, traceback, typing, unittest, urllib.request, uuid
import warnings, weakref, xml.etree.ElementTree, zipfile, zoneinfo
class A:
    print("said"); logging.warning("said"); warnings.warn("said")
    kept = [os.getcwd(), os.listdir("."), os.cpu_count(), os.path.exists("x"), platform.platform()]
    kept += [time.time(), time.perf_counter(), time.process_time(), datetime.datetime.now()]
    kept += [secrets.token_hex(4), random.random(), list(pathlib.Path(".").glob("*")), sys.path]
    kept += [open(os.devnull).read(), list(open("/proc/cpuinfo"))[:1], uuid.uuid4(), gc.collect()]
    kept += [inspect.getsource(textwrap), sqlite3.connect(":memory:").execute("select 1")]
    time.sleep(0.01)
    thread = threading.Thread(target=time.sleep, args=(0.01,)); thread.start(); thread.join()
    with concurrent.futures.ThreadPoolExecutor(4) as pool: list(pool.map(abs, range(9)))
    timeit.timeit("1", number=9); sys.setrecursionlimit(5000); zoneinfo.ZoneInfo("UTC")
    input_ = sys.stdin.read(); sys.stdout.flush(); breakpoints = traceback.format_stack()
""",
    "pytorch": """
import copy, io, torch
import torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
class A:
    torch.manual_seed(0); torch.set_num_threads(4); torch.set_grad_enabled(True)
    X = torch.randn(8, 32, 96, requires_grad=True)
    heads = X.view(8, 32, 4, 24).transpose(1, 2)
    kept = [F.scaled_dot_product_attention(heads, heads, heads, is_causal=True).sum()]
    kept += [torch.linalg.svd(X[0]), torch.linalg.inv(torch.eye(99)), torch.fft.fft(X[0]), X.sort()]
    kept += [torch.einsum("bnd,bmd->bnm", X, X), torch.multinomial(torch.ones(9), 3), X.cumsum(1)]
    block = nn.TransformerEncoderLayer(96, 4, batch_first=True)
    optimizer = torch.optim.AdamW(block.parameters())
    block(X).sum().backward(); optimizer.step(); copy.deepcopy(block)
    file = io.BytesIO(); torch.save(block.state_dict(), file); file.seek(0); torch.load(file)
    kept += [len(list(DataLoader(TensorDataset(X.detach()), 8))), X.bfloat16() @ X.bfloat16().mT]
    kept += [nn.LSTM(96, 8)(X), nn.Conv1d(32, 8, 3)(X), torch.func.vmap(torch.sum)(X), X.half()]
    with torch.autocast("cpu"): X @ X.mT
    with torch.profiler.profile(): X @ X.mT
    torch.cuda.is_available(); torch.get_num_threads(); print(torch.__config__.show())
""",
    "arrays": """
import numpy as np
class A:
    X = np.random.default_rng(0).standard_normal((300, 300))
    kept = [X @ X, np.linalg.svd(X), np.linalg.eigh(X @ X.T), np.fft.fft(X), np.sort(X), X.dot(X)]
""",
    "figures": """
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
class A:
    figure, axes = plt.subplots(); axes.plot([1, 2]); axes.set_title("x"); figure.canvas.draw()
""",
    "compiled": """
import torch
def softmax(x): return torch.compile(lambda x: x.softmax(-1))(x)
""",
}


def main() -> int:
    """Print what was refused, and return how many files were."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        for name in CHECKS:
            for kind, returned in {"right": "answer", "wrong": "None", "raises": "1 / 0"}.items():
                text = EACH.format(name=name, returned=returned)
                (folder / f"{kind}_{name}.py").write_text(text, encoding="utf-8")
        for name, text in OTHERS.items():
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
        files = report_on_class(folder)["files"]
    version = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    print(f"{version}, {platform.machine()}, Linux {platform.release()}: {len(files)} files")
    calls: dict[str, list[str]] = {}
    for one in files:
        name = one["file"].removesuffix(".py")
        for call in one.get("refused calls", ()):
            calls.setdefault(call, []).append(name)
        if "error" in one or "not limited" in one or (name[:5] == "right" and one["wrong"]):
            print(f"  {name}: {one}")
    for call, names in sorted(calls.items()):
        print(f"  refused: {call}, of {len(names)} files: {', '.join(names[:5])}")
    return len(calls)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
