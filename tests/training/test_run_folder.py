"""What is read from a run's folder: complete, or refused in one sentence."""

import json
import shutil
import zlib
from pathlib import Path

import pytest
import safetensors.torch
import torch
from checkpoint_folders import checkpoint_folder
from commands import SMALL, fine, output, refused, result, weights
from whole import whole

from slp_transformer import TransformerConfig
from slp_transformer._internal import checksums
from slp_transformer._internal.checksums import file_crc32, verify_files
from slp_transformer.training import run_folder
from slp_transformer.training.checkpoints import load_model
from slp_transformer.training.devices import check_memory
from slp_transformer.training.run_folder import (
    load_trainer_state,
    step_of_checkpoint,
    with_retries_if_run_changes,
)


@pytest.fixture
def run(text_run):
    return checkpoint_folder("a")


def change(path: Path, **values) -> None:
    """Change a JSON file, as an older version might have written it, without checksums."""
    content = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(content | values), encoding="utf-8")
    fix_size(path)


def fix_size(path: Path) -> None:
    manifest = path.with_name("checkpoint.json")
    content = json.loads(manifest.read_text("utf-8"))
    content["files"][path.name] = path.stat().st_size
    content.pop("crc32", None)
    manifest.write_text(json.dumps(content), encoding="utf-8")


def test_a_run_of_a_version_that_lacked_a_setting_is_loaded_and_resumed(run, capsys):
    path = run / "config.json"
    spec = json.loads(path.read_text("utf-8"))
    assert spec["defaults"]["scaled_embeddings"] is False
    del spec["defaults"], spec["config"]["scaled_embeddings"]
    path.write_text(json.dumps(spec), encoding="utf-8")
    fix_size(path)
    assert load_model("a").config.scaled_embeddings is False
    steps = str(load_trainer_state(run).step + 1)
    fine("train", "--out-dir", "a", "--resume", "--steps", steps, "--quiet")
    assert "defaults" in json.loads((checkpoint_folder("a") / "config.json").read_text("utf-8"))
    change(checkpoint_folder("a") / "config.json", config=spec["config"] | {"eps": 0.5})
    said = refused(capsys, "train", "--out-dir", "a", "--resume", "--steps", "99", "--quiet")
    assert "model.config.eps was 0.5 and is now" in said


def test_a_model_larger_than_its_file_or_the_machine_is_refused_before_it_is_built(run, capsys):
    config = json.loads((run / "config.json").read_text("utf-8"))["config"]
    change(run / "config.json", config=config | {"num_blocks": 10**9})
    assert "1,000,000,000 blocks needs" in refused(capsys, "generate", "a")
    change(run / "config.json", config=config | {"num_blocks": 100})
    said = refused(capsys, "generate", "a")
    assert "parameters, but model.safetensors has only" in said
    change(run / "config.json", config=config | {"num_blocks": 2})
    assert "does not fit the model" in refused(capsys, "generate", "a")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--num-blocks", "in 1,000,000,000 blocks and a batch of"),
        ("--batch-size", "and a batch of 13,000,000,000 tokens needs"),
    ],
)
def test_what_no_machine_holds_is_not_tried(flag, said, at, capsys):
    words = ["train", "text", "fox.txt", "--out-dir", "a", *SMALL, flag, "1000000000"]
    assert said in refused(capsys, *words) and not Path("a").exists()
    check_memory(TransformerConfig(11), copies=4)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        RuntimeError("[enforce fail] data. DefaultCPUAllocator: not enough memory: you tried"),
    ],
)
def test_without_memory_it_says_what_takes_less(error, at, capsys, monkeypatch):
    def full(options):
        raise error

    monkeypatch.setattr("slp_transformer.cli.train.execute", full)
    said = refused(capsys, "train", "text", "fox.txt", "--out-dir", "a")
    assert "not enough memory" in said and "--batch-size" in said and "9 bytes" not in said


def test_a_progress_without_its_evaluations_is_refused(run, capsys):
    path = run / "training.json"
    path.write_text(path.read_text("utf-8").replace("eval_history", "eval_histori"), "utf-8")
    said = refused(capsys, "train", "--out-dir", "a", "--resume", "--steps", "6")
    assert "training.json" in said and "eval_history" in said


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(value, run, capsys):
    path = run / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    tensors[sorted(tensors)[0]].view(-1)[-1] = value
    safetensors.torch.save_file(tensors, path)
    for command in (["generate", "a"], ["evaluate", "a", "--json"]):
        assert "NaN or infinite numbers" in refused(capsys, *command)


def test_weights_of_whole_numbers_are_refused(run, capsys):
    path = run / "model.safetensors"
    tensors = {k: v.long() for k, v in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file(tensors, path)
    fix_size(path)
    assert "is I64, not torch.float32" in refused(capsys, "generate", "a")


def test_a_loss_too_large_for_the_exponential_is_told(run, capsys):
    path = run / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for name in ("ffn.b_2", "b_2"):
        for key in tensors:
            if key.endswith(name):
                tensors[key] += torch.linspace(-1e7, 1e7, tensors[key].numel())
    norm = next(key for key in sorted(tensors, reverse=True) if key.endswith("gamma"))
    for key in tensors:
        if key.endswith(norm.rpartition(".")[2]):
            tensors[key] *= 1e4
    safetensors.torch.save_file(tensors, path)
    measured = result(capsys, "evaluate", "a")
    assert measured["loss"] > 709.8 and measured["perplexity"] is None
    assert "perplexity          above 1e308" in output(capsys, "evaluate", "a")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("random.cpu", None, "random.cpu is no such tensor"),
        ("random.cpu", torch.zeros(3, dtype=torch.uint8), "random.cpu is [3], not"),
        ("random.batches", torch.zeros(5056), "random.batches is F32, not torch.uint8"),
        ("optimizer.0.exp_avg", None, "optimizer.0.exp_avg is no such tensor"),
        ("optimizer.1.exp_avg_sq", torch.zeros(2, 3), "optimizer.1.exp_avg_sq is [2×3], not"),
        ("optimizer.99.step", torch.zeros(()), "not no such tensor"),
        ("optimizer.0.exp_avg", torch.nan, "optimizer.0.exp_avg has NaN or infinite numbers"),
    ],
)
def test_a_damaged_training_state_is_refused_and_the_run_stands(
    name, change, sentence, run, capsys
):
    path = run / "state.safetensors"
    state = safetensors.torch.load_file(path)
    kept = state.pop(name, None)
    if change is not None:
        state[name] = kept.fill_(change) if isinstance(change, float) else change
    safetensors.torch.save_file(state, path)
    fix_size(path)
    before = weights("a")
    said = refused(capsys, "train", "--out-dir", "a", "--resume", "--steps", "6", "--quiet")
    assert "state.safetensors" in said and sentence in said
    assert weights("a") == before


def test_a_recipe_that_is_nested_too_deeply_is_refused(run, capsys):
    Path("a/config.toml").write_text("a = " + "[" * 100_000, encoding="utf-8")
    assert "config.toml is" in refused(capsys, "info", "a")


def test_a_finished_run_says_so_and_is_taken_further(run, capsys):
    said = output(capsys, "train", "--out-dir", "a", "--resume")
    assert "is finished: it has made 4 steps" in said
    assert "slp-transformer train --out-dir a --resume --steps 8" in said
    fine("train", "--out-dir", "a", "--resume", "--steps", "7", "--quiet")
    memory = load_trainer_state(checkpoint_folder("a"))
    assert memory.step == 7 and memory.config.steps == 7
    assert [record.step for record in memory.eval_history] == [2, 4, 6, 7]
    assert "steps = 7" in Path("a/config.toml").read_text("utf-8")
    fine("train", "--out-dir", "a", "--resume", "--quiet")  # and is finished again
    said = refused(capsys, "train", "--out-dir", "a", "--resume", "--steps", "5", "--quiet")
    assert "is at step 7 already" in said


def test_a_run_that_lost_patience_is_given_more(at, capsys):
    impatient = ["--steps", "400", "--early-stopping-patience", "1", "--learning-rate", "1e-9"]
    fine("train", "text", "fox.txt", "--out-dir", "a", *SMALL, *impatient)
    step = load_trainer_state(checkpoint_folder("a")).step
    assert step < 400
    again = ["train", "--out-dir", "a", "--resume", "--quiet"]
    assert "--resume --early-stopping-patience" in output(capsys, *again)
    fine(*again, "--early-stopping-patience", "None", "--steps", str(step + 3))
    assert load_trainer_state(checkpoint_folder("a")).step == step + 3


def test_a_run_begins_with_anothers_weights_and_tokens(run, capsys):
    Path("wolf.txt").write_text(
        "The lazy dog jumps over the quick brown fox.\n" * 30, encoding="utf-8"
    )
    how = ["--steps", "1", "--learning-rate", "1e-12", *SMALL[-5:]]
    fine("train", "text", "wolf.txt", "--init-from", "a", "--out-dir", "b", *how)
    old, new = load_model("a"), load_model("b", "last")
    assert new.config == old.config
    for mine, other in zip(new.parameters(), old.parameters(), strict=True):
        assert torch.allclose(mine, other, atol=1e-9)
    tokenizers = [(checkpoint_folder(name) / "tokenizer.json").read_text() for name in "ab"]
    assert tokenizers[0] == tokenizers[1]


# --- Checksums, and readers beside a process that trains -----------------------------------------


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_one_flipped_bit_is_told_when_a_run_is_verified_or_resumed(run, capsys):
    """In each file of a checkpoint and of the corpus, wherever it is."""
    resume = ["train", "--out-dir", "a", "--resume", "--steps", "6", "--quiet"]
    corpus = Path("a/tokens")
    paths = [*sorted(run.iterdir()), *sorted(corpus.iterdir())]
    assert result(capsys, "info", "a", "--verify")["files"]["unverified"] == []
    generator = torch.Generator().manual_seed(0)
    for path in paths:
        before = path.read_bytes()
        flip(path, int(torch.randint(8 * len(before), (), generator=generator)))
        said = refused(capsys, "info", "a", "--verify")
        listing = path.name in ("checkpoint.json", "checksums.json")  # of the others, by name
        assert (str(path.parent) if listing else path.name) in said, path
        path.write_bytes(before)
    weights_path = run / "model.safetensors"
    for path in (weights_path, run / "state.safetensors", corpus / "train.npy"):
        before = path.read_bytes()
        flip(path, 8 * len(before) - 3201)
        said = refused(capsys, *resume)
        assert f"{path.name} is not what was written" in said and said.endswith(".")
        assert "restore it from a copy" in said
        path.write_bytes(before)
    flip(weights_path, 8 * weights_path.stat().st_size - 3201)
    fine("generate", "a", "--max-new-tokens", "2")  # readers compare sizes alone
    weights_path.write_bytes(before)


def test_a_checksum_has_eight_digits_however_many_bytes_are_read_at_once(tmp_path, monkeypatch):
    (path := tmp_path / "b.txt").write_bytes(b"665")
    assert file_crc32(path) == f"{zlib.crc32(b'665'):08x}" == "00081566"
    monkeypatch.setattr(checksums, "CHUNK_BYTES", 2)
    assert file_crc32(path) == "00081566"
    verify_files(tmp_path, {"b.txt": "00081566"}, "The corpus", "restore it")
    told = f"The corpus {tmp_path} is damaged: b.txt is not what was written (its CRC-32 is "
    with pytest.raises(ValueError, match=whole(f"{told}00081566, not 1): restore it.")):
        verify_files(tmp_path, {"b.txt": "1"}, "The corpus", "restore it")


@pytest.mark.parametrize("name", ["../b.txt", "a/../../b.txt", "..\\b.txt", "a", "gone"])
def test_a_listing_may_name_files_of_its_own_folder_alone(name, tmp_path):
    (tmp_path / "own" / "a").mkdir(parents=True)
    (tmp_path / "b.txt").write_text("b", encoding="utf-8")
    listed = {name: file_crc32(tmp_path / "b.txt")}
    told = f"The corpus {tmp_path / 'own'} is damaged ({name}: there is no such file): restore it."
    with pytest.raises(ValueError, match=whole(told)):
        verify_files(tmp_path / "own", listed, "The corpus", "restore it")


def test_a_run_without_checksums_is_read_and_resumed(run, capsys):
    """As older versions wrote it."""
    fix_size(run / "config.json")
    Path("a/tokens/checksums.json").unlink()
    files = result(capsys, "info", "a", "--verify")["files"]
    assert run.name in files["unverified"] and "tokens" in files["unverified"]
    fine("train", "--out-dir", "a", "--resume", "--steps", "6", "--quiet")
    assert "--verify needs a run" in refused(capsys, "info", "--verify")


def test_a_reader_begins_anew_when_its_checkpoint_was_deleted_meanwhile(run, monkeypatch):
    """An error counts once the same checkpoints are there before and after it."""
    moves = []

    @with_retries_if_run_changes
    def read(folder: str) -> str:
        last = checkpoint_folder(folder)
        if len(moves) < 3:  # the one that trains saves the next step and deletes this one
            moves.append(last)
            manifest = json.loads((last / "checkpoint.json").read_text("utf-8"))
            manifest["step"] += 2
            (last / "checkpoint.json").write_text(json.dumps(manifest), encoding="utf-8")
            shutil.move(last, last.with_name(f"step-{manifest['step']:08d}"))
            raise ValueError(f"{last} is damaged")
        return last.name

    assert read("a") == f"step-{step_of_checkpoint(run) + 6:08d}" and len(moves) == 3
    moves.clear()
    name = "a checkpoint that stays"
    monkeypatch.setitem(run_folder.WAITS, name, run_folder.WAITS[name]._replace(seconds=0.0))
    with pytest.raises(
        ValueError,
        match=whole(
            "a could not be read in 0 seconds, because a process that trains in it saves "
            "and deletes checkpoints all the time: try again, or let it keep more of them"
            " (--keep-last)."
        ),
    ):
        read("a")


def test_the_base_of_an_adapter_has_a_rank():
    with pytest.raises(ValueError, match=whole("rank must be a whole number of 1 or more, not 0.")):
        run_folder.LoraBase("a", "0", 0)
