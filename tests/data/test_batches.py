"""Batches: how several processes share one."""

import pytest
import torch

from slp_transformer.data.batches import Batch
from slp_transformer.loss import IGNORE_INDEX


@pytest.mark.parametrize(("count", "processes"), [(5, 2), (7, 3), (6, 3), (2, 3)])
def test_every_sequence_is_in_one_shard_and_its_targets_count_once(count, processes):
    rows = torch.arange(count * 4).view(count, 4)
    shards = [Batch((rows,), rows + 100).shard(rank, processes) for rank in range(processes)]
    assert len({shard.targets.shape for shard in shards}) == 1
    inputs = torch.cat([shard.inputs[0] for shard in shards])
    targets = torch.cat([shard.targets for shard in shards])
    counted = (targets != IGNORE_INDEX).all(dim=1)
    assert torch.equal(inputs[counted], rows) and torch.equal(targets[counted], rows + 100)
    assert (targets[~counted] == IGNORE_INDEX).all()
