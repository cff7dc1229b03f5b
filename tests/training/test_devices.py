"""What a run tells of its device: speed, memory, time; and how the CPUs of processes speak."""

import itertools
import json

import pytest
import torch
import torch.distributed as dist
from tiny_training import STREAM, encoder_decoder, language_model, stop_at

from slp_transformer.lora import add_lora
from slp_transformer.scaling_laws import training_flops_per_token
from slp_transformer.training import devices, train
from slp_transformer.training.callbacks import METRICS_FILE
from slp_transformer.training.devices import DeviceMonitor, float32_matmul_precision, uses_bf16
from slp_transformer.training.distributed import DDPStrategy
from slp_transformer.training.metrics import STEP_NUMBERS
from slp_transformer.training.train_config import TrainConfig

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_the_share_of_the_speed_is_what_was_done_over_what_could_be():
    found = DeviceMonitor(language_model(), TrainConfig(steps=1), CPU)
    assert (found.mfu(10.0), found.memory_bytes()) == (None, None)
    found.peak_flops = 1e6
    assert found.mfu(100.0) == pytest.approx(100 * training_flops_of_a_token() / 1e6)
    texts = [STEP_NUMBERS["mfu"].format(0.414), STEP_NUMBERS["memory_bytes"].format(3 * 2**20)]
    assert texts == ["MFU 41%", "3 MiB"]
    assert DeviceMonitor(encoder_decoder(), TrainConfig(steps=1), CPU).flops_per_token is None
    model = language_model()
    add_lora(model, 1)  # frozen weights take fewer operations than are counted
    assert DeviceMonitor(model, TrainConfig(steps=1), CPU).flops_per_token is None


def training_flops_of_a_token() -> int:
    return training_flops_per_token(language_model().config, 5)


def test_the_speed_of_a_product_counts_its_operations(monkeypatch):
    clock = itertools.count(100, 3)
    monkeypatch.setattr(devices.time, "perf_counter", lambda: next(clock))
    assert devices.measure_matmul_flops(CPU, torch.float32, 7) == 2 * 7**3 / 3


@pytest.mark.parametrize(
    ("asked", "device", "able", "used"),
    [
        (None, CPU, True, False),
        (None, CUDA, True, True),
        (None, CUDA, False, False),
        (False, CUDA, True, False),
        (True, CPU, False, True),
    ],
)
def test_bfloat16_is_left_to_the_device(monkeypatch, asked, device, able, used):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: able)
    assert uses_bf16(TrainConfig(steps=1, bf16=asked), device) is used


def test_a_device_is_asked_for_by_its_number(monkeypatch):
    monkeypatch.setattr(devices, "available_devices", lambda: ["cuda", "cpu"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices.pick_device("cuda:1") == torch.device("cuda", 1)
    for wanted in ("cuda:2", "mps", "gpu"):
        with pytest.raises(ValueError, match=f'cuda or cpu on this machine, not "{wanted}"'):
            devices.pick_device(wanted)


def test_tf32_is_allowed_on_cuda_as_long_as_the_run_lasts():
    before = torch.get_float32_matmul_precision()
    for allowed, inside in ((True, "high"), (False, "highest")):
        with float32_matmul_precision(TrainConfig(steps=1, tf32=allowed), CUDA):
            assert torch.get_float32_matmul_precision() == inside
        with float32_matmul_precision(TrainConfig(steps=1, tf32=allowed), CPU):
            assert torch.get_float32_matmul_precision() == before
    assert torch.get_float32_matmul_precision() == before


def rows_of(folder):
    return json.loads((folder / METRICS_FILE).read_text("utf-8"))["evaluations"]


def test_metrics_go_on_with_a_resumed_run(tmp_path):
    how = {"steps": 6, "eval_interval": 2, "batch_size": 3, "out_dir": tmp_path, "progress": False}
    with pytest.raises(OSError, match="plug"):
        train(language_model(), STREAM, STREAM, report=stop_at(4), **how)
    assert [row["step"] for row in rows_of(tmp_path)] == [2, 4]
    records = train(language_model(), STREAM, STREAM, resume=True, **how)
    rows = rows_of(tmp_path)
    assert [row["val_loss"] for row in rows] == [record.val_loss for record in records]
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds) and all(row["tokens_per_second"] > 0 for row in rows)


@pytest.mark.parametrize("ruined", ["", "{", '{"evaluations": [{}]}', '{"evaluations": 3}'])
def test_metrics_that_cannot_be_read_begin_anew(tmp_path, ruined):
    (tmp_path / METRICS_FILE).write_text(ruined, encoding="utf-8")
    train(language_model(), STREAM, STREAM, steps=2, out_dir=tmp_path, progress=False)
    assert [row["step"] for row in rows_of(tmp_path)] == [2]


def test_what_lies_on_the_cpu_has_a_way_of_its_own_where_nccl_alone_was_met(monkeypatch):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        used = []
        for name in ("all_reduce", "broadcast_object_list", "all_gather_object"):
            real = getattr(dist, name)

            def spy(*args, group=None, real=real, **how):
                used.append(group)
                return real(*args, group=group, **how)

            monkeypatch.setattr(dist, name, spy)
        for config, beside in (("cuda:nccl", True), ("cpu:gloo,cuda:nccl", False)):
            monkeypatch.setattr(dist, "get_backend_config", lambda said=config: said)
            used.clear()
            with DDPStrategy(CPU, 0, 1, None) as team:
                assert team.all_reduce(torch.tensor(3.0)).item() == 3.0
                assert team.broadcast_object("word") == "word"
                team.check_equal_in_all_processes(a=1)
                team.should_stop(False)
            assert len(used) == 4
            assert all((group is not None) == beside for group in used)
    finally:
        dist.destroy_process_group()
