"""Checkpoints: killed runs go on to the same weights, and nothing that goes wrong loses any."""

import errno
import json
import os
import shutil
import signal
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from checkpoint_folders import checkpoint_folder
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_training import STREAM, files, run, same, stop_at
from tiny_training import with_dropout as tiny
from whole import whole

from slp_transformer import EncoderDecoder, TransformerConfig
from slp_transformer._internal.atomic_write import NotSyncedError
from slp_transformer._internal.json_files import write_json
from slp_transformer._internal.tensor_files import open_tensors
from slp_transformer.modern import ModernConfig, ModernLM
from slp_transformer.tasks.saved_runs import open_run, read_current
from slp_transformer.training import checkpoints, run_folder
from slp_transformer.training.callbacks import METRICS_FILE
from slp_transformer.training.checkpoints import (
    STATE_FILE,
    load_model,
    load_weights,
    save_checkpoint,
)
from slp_transformer.training.lora_base import locate_lora_base, weights_sha256
from slp_transformer.training.run_folder import (
    WEIGHTS_FILE,
    EvalRecord,
    LoraBase,
    TrainerState,
    open_checkpoint,
)
from slp_transformer.training.run_lock import run_lock
from slp_transformer.training.strategy import Strategy
from slp_transformer.training.train_config import TrainConfig


def test_resume_begins_where_there_is_nothing_and_ends_where_all_is_done(tmp_path):
    first, records = run(tmp_path, resume=True)
    second, again = run(tmp_path, tiny(seed=5), resume=True)
    assert same(first, second) and again == records


def test_taken_further_it_goes_on_as_one_that_was_meant_to_be_so_long(tmp_path):
    """But for the learning rate of the steps that were made before."""
    flat = {"learning_rate": 1e-12, "weight_decay": 0.0, "warmup_steps": 0}
    long, expected = run(tmp_path / "long", steps=8, **flat)
    run(tmp_path / "short", **flat)
    short, records = run(tmp_path / "short", tiny(seed=5), steps=8, resume=True, **flat)
    for mine, other in zip(long.parameters(), short.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-9)
    assert [record.step for record in records] == [2, 4, 6, 8]
    assert records[-1].train_loss == pytest.approx(expected[-1].train_loss, rel=1e-6)


@pytest.mark.parametrize("step", [1, 3, 4])
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, monkeypatch, step):
    expected, _ = run(tmp_path / "whole")
    made, count = torch.optim.AdamW.step, iter(range(1, 9))

    def pressing(self, *args):
        if next(count) == step:
            signal.raise_signal(signal.SIGINT)
        return made(self, *args)

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as told:
        patch.setattr(torch.optim.AdamW, "step", pressing)
        run(tmp_path / "cut")
    assert f"after step {step} of 4" in str(told.value) and "resume=True" in str(told.value)
    assert signal.getsignal(signal.SIGINT) is before
    assert checkpoint_folder(tmp_path / "cut").name == f"step-{step:08d}"
    model, _ = run(tmp_path / "cut", tiny(seed=5), resume=True)
    assert same(model, expected)
    kept, whole = (
        checkpoint_folder(tmp_path / name) / "state.safetensors" for name in ("cut", "whole")
    )
    assert kept.read_bytes() == whole.read_bytes()


def test_weights_are_safetensors_with_e_once_and_the_rest_is_json(tmp_path):
    torch.manual_seed(0)
    config = TransformerConfig(7, context_length=5, model_dim=6, num_heads=2, num_blocks=1)
    model = EncoderDecoder(config)  # one E under two names
    folder = save_checkpoint(tmp_path, 3, model, tokenizer={"words": ["Töne"]})
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        stored = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118
    assert stored == sum(p.numel() for p in model.parameters())
    spec = json.loads((folder / "config.json").read_text("utf-8"))
    assert spec["config"] == config.to_dict()
    assert spec["defaults"].items() >= {"num_blocks": 4, "activation": "relu"}.items()
    assert "vocab_size" not in spec["defaults"], "it has none"
    random = torch.get_rng_state()
    loaded = load_model(tmp_path)
    assert torch.equal(torch.get_rng_state(), random)
    assert same(loaded, model) and loaded.config == config and not loaded.training
    assert loaded.source_embedding.tokens.E is loaded.target_embedding.tokens.E
    assert open_checkpoint(tmp_path, "best").tokenizer == {"words": ["Töne"]}


def test_last_and_best_are_kept_and_others_forgotten(tmp_path):
    config, history = TrainConfig(steps=9), []
    for step, loss in [(0, None), (2, 1.0), (4, 3.0), (6, 2.0)]:
        history += [EvalRecord(step, 4.0, loss)] if loss else []
        state = TrainerState(step, config, {}, history, [])
        save_checkpoint(tmp_path, step, tiny(seed=step), training=asdict(state))
    assert same(load_model(tmp_path, "best"), tiny(seed=2))
    assert same(load_model(tmp_path, "last"), tiny(seed=6))
    assert sorted(p.name for p in tmp_path.glob("step*")) == ["step-00000002", "step-00000006"]


def test_what_is_left_of_a_checkpoint_whose_deletion_was_cut_lies_in_its_run(tmp_path, monkeypatch):
    """Where the next process to own the run finds it."""
    monkeypatch.setattr(run_folder, "remove_path", lambda path: None)
    for step in (2, 4):
        save_checkpoint(tmp_path / "run", step, tiny(seed=step))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert len([*(tmp_path / "run").glob(".*.writing/step-00000002/model.safetensors")]) == 1
    with run_lock(tmp_path / "run"):
        assert not [*(tmp_path / "run").glob(".*.writing")]


def test_while_it_trains_one_checkpoint_more_is_there_for_readers(tmp_path):
    """So who loads the last one has until the next but one; at the end it goes."""
    losses: dict[int, float] = {}

    def checkpoints_there() -> set[int]:
        return {int(path.name.split("-")[1]) for path in tmp_path.glob("step-*")}

    def look(record):
        losses[record.step] = record.val_loss
        best = min(losses, key=losses.__getitem__)
        last = [step for step in (0, *losses)][-3:]
        assert checkpoints_there() == {best, *last}

    run(tmp_path, steps=12, keep_last=2, report=look)
    assert checkpoints_there() == {min(losses, key=losses.__getitem__), 10, 12}


@pytest.mark.parametrize(("steps", "averaged"), [((0, 2, 4, 6), (4, 6)), ((0, 2), (2,))])
def test_the_average_is_of_the_last_that_were_trained_and_no_others(tmp_path, steps, averaged):
    """The best, step 2, is kept beside the last two; step 0 was never trained."""
    config, history = TrainConfig(steps=9, keep_last=2), []
    for step in steps:
        history += [EvalRecord(step, 4.0, float(step))] if step else []
        state = TrainerState(step, config, {}, history, [])
        training = asdict(state)
        save_checkpoint(tmp_path, step, tiny(seed=step), training=training, keep_last=2)
    models = [tiny(seed=step).double() for step in averaged]
    for name, W in load_model(tmp_path, "average").named_parameters():
        mean = sum(model.get_parameter(name) for model in models) / len(models)
        torch.testing.assert_close(W, mean.float(), rtol=0, atol=1e-7)


def test_an_average_is_of_what_was_opened_or_of_what_is_there_anew(tmp_path):
    """And never of those that another process has not deleted yet."""
    for step in (4, 6, 8):
        training = asdict(TrainerState(step, TrainConfig(steps=9, keep_last=2), {}, [], []))
        save_checkpoint(tmp_path, step, tiny(seed=step), training=training, keep_last=9)
    opened = open_run(tmp_path, "average")
    assert [folder.name[-1] for folder in opened.checkpoint.averaged] == ["6", "8"]
    shutil.rmtree(opened.checkpoint.averaged[0])
    read = read_current(opened, lambda run: run.checkpoint.averaged)
    assert [folder.name[-1] for folder in read] == ["4", "8"]


@pytest.mark.parametrize("step", [0, 2])
@pytest.mark.parametrize("where", ["save_file", "fsync", "replace", "rename_path"])
def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path, monkeypatch, where, step):
    import safetensors.torch

    if step:
        save_checkpoint(tmp_path, 1, tiny())
    before = files(tmp_path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    home = {"save_file": safetensors.torch, "rename_path": checkpoints}.get(where, os)
    with monkeypatch.context() as patch:
        patch.setattr(home, where, full)
        kept = "step-00000001 was kept" if step else "there is no earlier one"
        told = "The checkpoint of step 2 could not be written to … (No space left on device): "
        told += f"{kept}. Make room or choose another folder, then resume."
        with pytest.raises(ValueError, match=whole(told)):
            save_checkpoint(tmp_path, 2, tiny(seed=5))
    left = files(tmp_path)
    assert before == {name: left[name] for name in before}
    if step:
        assert same(load_model(tmp_path), tiny())
    save_checkpoint(tmp_path, 2, tiny(seed=5))
    assert same(load_model(tmp_path), tiny(seed=5))


@pytest.mark.parametrize("name", [WEIGHTS_FILE, STATE_FILE, "config.json", "training.json"])
@pytest.mark.parametrize("harm", ["cut", "missing", "other"])
def test_a_damaged_checkpoint_is_one_sentence_and_changes_nothing(tmp_path, name, harm):
    run(tmp_path, steps=2)
    path = checkpoint_folder(tmp_path) / name
    content = path.read_bytes()
    path.unlink()
    if harm == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif harm == "other":  # of the right size
        path.write_bytes(b"#" * len(content))
    before, model = files(tmp_path), tiny(seed=5)
    told = {
        "cut": f"has {len(content) // 2} bytes, not {len(content)}",
        "missing": "is missing",
        "other": "is not what was written (its CRC-32 is …, not …): restore it from a copy",
    }
    told = f"The checkpoint {path.parent} is damaged: {name} {told[harm]}."
    with pytest.raises(ValueError, match=whole(told)):
        run(tmp_path, model, steps=2, resume=True)
    assert files(tmp_path) == before and same(model, tiny(seed=5))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{}", "…checkpoint.json: format: Field required (found {})."),
        (
            '{"format": 99, "step": 1, "files": {}}',
            "…checkpoint.json: format: Input should be 1 (found 99).",
        ),
        (
            '{"format": 1, "step": 4, "files": {"x": 3}}',
            "The checkpoint …step-00000004 is damaged: x is missing.",
        ),
        (
            '{"format": 1, "step": 5, "files": {}}',
            "The checkpoint …step-00000004 is damaged: checkpoint.json says step 5.",
        ),
        (
            "#",
            (
                "…checkpoint.json: this: Invalid JSON: expected value at line 1 column 1 "
                "(found b'#')."
            ),
        ),
        ("[]", "…checkpoint.json: this: Input should be an object (found [])."),
    ],
)
def test_a_foreign_checkpoint_is_refused(tmp_path, content, says):
    run(tmp_path)
    (checkpoint_folder(tmp_path) / "checkpoint.json").write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=whole(says)):
        load_model(tmp_path)


def test_weights_of_another_size_are_refused_and_the_model_untouched(tmp_path):
    folder = save_checkpoint(tmp_path, 1, tiny())
    model = tiny(context_length=4)
    with pytest.raises(
        ValueError,
        match=whole(
            "…model.safetensors does not fit the model: embedding.positions.P is [5×6], not [4×6]."
        ),
    ):
        load_weights(model, folder)
    assert same(model, tiny(context_length=4))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seed": 1}, "config.seed was 0 and is now 1"),
        ({"optimizer": "muon"}, "config.optimizer was 'adamw' and is now 'muon'"),
        ({"eval_interval": 5}, "config.eval_interval was 2 and is now 5"),
        ({"steps": 3}, ""),
        ({"model": {"dropout": 0.1}}, "model.config.dropout was 0.2 and is now 0.1"),
        (
            {"stream": torch.arange(7).repeat(6)},
            "data.train.tokens was 35 and is now 42; data.train.checksum was 3240276696 and is now "
            "894177652",
        ),
        (
            {"stream": STREAM.flip(0)},
            "data.train.checksum was 3240276696 and is now 656674813",
        ),
    ],
)
def test_a_changed_run_is_not_resumed(tmp_path, changes, says):
    run(tmp_path)
    before = files(tmp_path)
    model = tiny(seed=5, **changes.pop("model", {}))
    told = f"is another one: {says}.… Resume it as it was, or choose another folder."
    told = told if says else "is at step 4 already: steps must be 4 or more, not 3."
    with pytest.raises(ValueError, match=whole(f"The run in {tmp_path} {told}")) as caught:
        run(tmp_path, model, resume=True, **changes)
    assert ".." not in str(caught.value) and files(tmp_path) == before


def test_a_step_that_its_losses_do_not_fit_is_refused(tmp_path):
    run(tmp_path)
    folder = checkpoint_folder(tmp_path)
    damaged = json.loads((folder / "training.json").read_text("utf-8")) | {"step": 3}
    manifest = json.loads((folder / "checkpoint.json").read_text("utf-8"))
    write_json(folder / "training.json", damaged)
    manifest["files"]["training.json"] = (folder / "training.json").stat().st_size
    del manifest["crc32"]  # as in older checkpoints
    write_json(folder / "checkpoint.json", manifest)
    with pytest.raises(
        ValueError,
        match=whole(
            "…training.json is damaged: step 3 with 0 losses since the evaluation at step 4."
        ),
    ):
        run(tmp_path, resume=True)


def test_a_run_is_not_overwritten_unasked(tmp_path):
    run(tmp_path)
    before = files(tmp_path)
    with pytest.raises(
        ValueError,
        match=whole(
            "… holds a run already (step-00000004): pass "
            "resume=True to resume it, or choose another folder."
        ),
    ):
        run(tmp_path)
    assert files(tmp_path) == before


def test_what_a_killed_process_left_is_cleared(tmp_path):
    (tmp_path / ".writing").mkdir()
    (tmp_path / ".writing" / "model.safetensors").write_bytes(b"half")
    run(tmp_path)
    assert {p.name for p in tmp_path.glob("*")} <= {"step-00000002", "step-00000004", METRICS_FILE}


@pytest.mark.parametrize(
    ("library", "options"),
    [("safetensors", {}), ("tqdm", {"progress": True}), ("tensorboard", {"tensorboard": True})],
)
def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch, library, options):
    for name in {library, *(n for n in sys.modules if n.startswith(f"{library}."))}:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with pytest.raises(ImportError, match=rf'need {library}.*"slp-transformer\[text\]"'):
        run(tmp_path, **options)


def modern(seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return ModernLM(ModernConfig(7, 5, 8, 4, 1, num_kv_heads=2, dropout=0.1, end_ids=(3,)))


class Own(torch.nn.Module):
    """A model of a user's own, with one matrix that nothing uses."""

    def __init__(self, seed: int = 0):
        super().__init__()
        torch.manual_seed(seed)
        self.unused, self.E = torch.nn.Linear(2, 2), torch.nn.Embedding(7, 7)
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, ids):
        return self.E(ids)


class OwnWithConfig(Own):
    """Another, whose configuration is saved with it."""

    def __init__(self, seed: int = 0, **config):
        super().__init__(seed)
        self.config = TransformerConfig(**{"vocab_size": 7, "context_length": 5} | config)


@pytest.mark.parametrize(
    ("make", "optimizer", "factory"),
    [
        (tiny, "muon", None),
        (modern, "adamw", None),
        (modern, "muon", None),
        (Own, "adamw", lambda config: Own(seed=5) if config is None else None),
        (OwnWithConfig, "adamw", lambda config: OwnWithConfig(seed=5, **config)),
    ],
)
def test_a_run_of_any_model_is_resumed_to_the_same_weights_and_loaded(
    make, optimizer, factory, tmp_path
):
    settings = {"sequence_length": 5, "batch_size": 3, "optimizer": optimizer}
    whole, records = run(tmp_path / "whole", make(), **settings)

    with pytest.raises(OSError, match="plug"):
        run(tmp_path / "cut", make(), **settings, report=stop_at(2))
    again, resumed = run(tmp_path / "cut", make(seed=5), **settings, resume=True)
    assert resumed == records and [record.step for record in records] == [2, 4]
    assert same(again, whole)
    loaded = load_model(tmp_path / "cut", "last", model=factory)
    assert type(loaded) is type(whole) and same(loaded, whole)
    assert getattr(loaded, "config", None) == getattr(whole, "config", None)
    if factory is not None:
        with pytest.raises(ValueError, match="no model of this package, but a Own.*as model"):
            load_model(tmp_path / "cut")


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder in which a file is open")
@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced"])
def test_a_folder_that_goes_while_it_is_trained_in_is_not_made_anew(tmp_path, how):
    folder = tmp_path / "run"

    def go(record):
        if how == "deleted":
            shutil.rmtree(folder)
        else:
            folder.rename(tmp_path / "elsewhere")
        if how == "replaced":
            folder.mkdir()

    with pytest.raises(
        ValueError,
        match=whole(
            "…run was deleted or renamed during training, so nothing more is saved. If it"
            " has another name now, resume it there."
        ),
    ):
        run(folder, report=go)
    assert not list(folder.glob("step-*"))
    if how == "renamed":
        assert checkpoint_folder(tmp_path / "elsewhere").name == "step-00000002"
        run(tmp_path / "elsewhere", resume=True)


def test_a_lora_adapter_s_base_is_found_where_it_was_or_beside_the_run(tmp_path, monkeypatch):
    """Also by a name that is relative to the run's folder, and past another's weights."""
    beside, adapter = (
        tmp_path / "moved" / name for name in ("base/step-00000002", "b/step-00000004")
    )
    known = tmp_path / "there" / "base" / "step-00000002"
    for folder in (beside, adapter):
        folder.mkdir(parents=True)
    (beside / WEIGHTS_FILE).write_bytes(b"weights")
    base = LoraBase(str(known), weights_sha256(beside), 2)
    assert locate_lora_base(adapter, base).samefile(beside)
    monkeypatch.chdir(adapter.parent)
    assert locate_lora_base(Path(adapter.name), base).samefile(beside)
    known.mkdir(parents=True)
    (known / WEIGHTS_FILE).write_bytes(b"others")
    assert locate_lora_base(adapter, base).samefile(beside)
    (beside / WEIGHTS_FILE).write_bytes(b"changed")
    told = (
        f"{known / WEIGHTS_FILE} has changed since the LoRA adapter {adapter} was trained on it: "
    )
    with pytest.raises(
        ValueError, match=whole(f"{told}restore the weights that were there before.…")
    ):
        locate_lora_base(adapter, base)
    for folder in (beside, known):
        shutil.rmtree(folder)
    told = f"{adapter} is a LoRA adapter, and its base checkpoint {known} is missing: put it back, "
    with pytest.raises(ValueError, match=whole(f"{told}or put its run next to this one.…")):
        locate_lora_base(adapter, base)


def test_a_checkpoint_that_is_a_link_is_read_and_stays(tmp_path):
    """It was moved to another disk; its run goes on, and nothing there is deleted."""
    run(tmp_path / "run", steps=2)
    (tmp_path / "run" / "step-00000002").rename(tmp_path / "moved")
    (tmp_path / "run" / "step-00000002").symlink_to(tmp_path / "moved")
    before = files(tmp_path / "moved")
    for steps in (4, 6):
        model, _ = run(tmp_path / "run", steps=steps, resume=True)
        assert same(load_model(tmp_path / "run", "last"), model)
    assert files(tmp_path / "moved") == before and (tmp_path / "run" / "step-00000002").is_symlink()


@pytest.mark.parametrize("which", ["first", "second"])
def test_weights_that_cannot_be_opened_once_are_a_sentence(tmp_path, monkeypatch, which):
    """safetensors says of whatever keeps it from opening a file that it is not there."""
    import safetensors

    run(tmp_path)
    opened, calls = safetensors.safe_open, []

    def failing(*args, **kwargs):
        calls.append(args)
        if len(calls) == (1 if which == "first" else 2):
            raise FileNotFoundError("No such file or directory: x")
        return opened(*args, **kwargs)

    monkeypatch.setattr(safetensors, "safe_open", failing)
    with pytest.raises(
        ValueError,
        match=whole(
            "…model.safetensors cannot be read: the system could not open it this time; try again."
        ),
    ):
        load_model(tmp_path)


def test_weights_deleted_before_pytorch_maps_them_are_a_sentence(tmp_path, monkeypatch):
    """PyTorch opens them once more than safetensors, and has an error of its own for it."""
    run(tmp_path)
    weights, opened = checkpoint_folder(tmp_path) / WEIGHTS_FILE, torch.UntypedStorage.from_file

    def late(*args, **kwargs):
        weights.unlink(missing_ok=True)
        return opened(*args, **kwargs)

    monkeypatch.setattr(torch.UntypedStorage, "from_file", late)
    with pytest.raises(
        ValueError,
        match=whole("…model.safetensors cannot be read: …No such file or directory…"),
    ):
        load_model(tmp_path)


def test_an_error_of_mapping_is_a_sentence_also_after_opening_and_no_other_error_is(tmp_path):
    """Some versions of safetensors have PyTorch map the file for the first tensor."""
    path = tmp_path / "a.safetensors"
    save_file({"a": torch.zeros(3)}, path)
    with pytest.raises(
        ValueError,
        match=whole("…a.safetensors cannot be read: unable to open file …"),
    ):
        with open_tensors(path):
            raise RuntimeError(f"unable to open file <{path}> in read-only mode")
    with pytest.raises(RuntimeError, match=whole("sizes differ")):
        with open_tensors(path):
            raise RuntimeError("sizes differ")


def test_a_folder_that_is_not_flushed_is_told_as_written(tmp_path, monkeypatch):
    """The checkpoint is there; that a power cut may lose it is another sentence."""
    own, error = checkpoints.fsync_path, OSError(errno.EIO, os.strerror(errno.EIO))

    def failing(path):
        own(path)
        if path == tmp_path:
            raise NotSyncedError(*error.args, str(path))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "fsync_path", failing)
        with pytest.raises(
            ValueError,
            match=whole(
                "The checkpoint of step 2 is in …, but the "
                "disk did not confirm it (Input/output error): a power cut may lose it; "
                "earlier ones were kept. Look at the disk, then resume."
            ),
        ):
            save_checkpoint(tmp_path, 2, tiny())
    assert same(load_model(tmp_path), tiny())


def test_a_resumed_run_tells_where_other_bits_are_computed(tmp_path, recwarn, monkeypatch):
    """By what each checkpoint names; where all agree, nothing."""
    run(tmp_path, steps=2)
    path = checkpoint_folder(tmp_path) / "training.json"
    stored = json.loads(path.read_text("utf-8"))["environment"]
    assert [*stored] == ["threads", "PyTorch", "processor", "devices"]
    assert stored["PyTorch"] == torch.__version__ and stored["processor"]
    run(tmp_path, steps=4, resume=True)
    assert not [w for w in recwarn if "bit for bit" in str(w.message)]
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.warns(UserWarning, match=f"threads: {threads}, now {threads + 1}.*bit for bit"):
            run(tmp_path, steps=6, resume=True)
    finally:
        torch.set_num_threads(threads)
    there = [path.name for path in tmp_path.glob("step-*")]
    monkeypatch.setattr(Strategy, "__str__", lambda _: "2 × CUDA")
    now = "; devices: CPU, now 2 × CUDA"
    with pytest.warns(UserWarning, match=f"threads: {threads + 1}, now {threads}{now}"):
        run(tmp_path, steps=6, resume=True)
    assert [path.name for path in tmp_path.glob("step-*")] == there
