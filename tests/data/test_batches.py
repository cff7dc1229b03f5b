"""Sources of batches: windows of a stream, and pairs; parts of them, and shares of processes."""

import pytest
import torch
from tiny_training import BEGIN, END, PAD, pairs
from whole import whole

from slp_transformer import padding_mask
from slp_transformer.data.batches import (
    Batch,
    DocumentWindowSource,
    TokenWindowSource,
    draw_random_windows,
    eval_subset,
)
from slp_transformer.data.pair_batches import LengthBucketedPairSource, PaddedPairSource
from slp_transformer.loss import IGNORE_INDEX


def test_windows_are_shifted_by_one_and_cover_every_start():
    stream = torch.arange(13)
    x, y = draw_random_windows(stream, 5, 400, torch.Generator().manual_seed(0))
    assert torch.equal(x + 1, y)
    assert torch.equal(x, x[:, :1] + torch.arange(5))
    assert set(x[:, 0].tolist()) == set(range(8))


@pytest.mark.parametrize("length", [0, 5])
def test_too_short_a_corpus_says_how_much_is_needed(length):
    with pytest.raises(ValueError, match=f"{length} tokens.*need 6"):
        draw_random_windows(torch.arange(length), 5, 2, torch.Generator())


class Own:
    """A source of somebody's own, which cannot give a part."""

    def draw(self, batch_size, generator): ...

    def iter_eval(self, batch_size): ...

    def fingerprint(self): ...


def test_a_part_is_windows_from_all_over_by_hand():
    windows = TokenWindowSource(torch.arange(23), 5)  # four windows, two of which are the part
    part = eval_subset(windows, 2)
    batch = next(part.iter_eval(9))
    assert batch.inputs[0].tolist() == [[0, 1, 2, 3, 4], [10, 11, 12, 13, 14]]
    assert batch.targets.tolist() == [[1, 2, 3, 4, 5], [11, 12, 13, 14, 15]]
    assert len(windows) == 4 and len(part) == 2
    for size in (4, 5, None):
        assert eval_subset(windows, size) is windows
    rows = [(torch.tensor([n]), torch.tensor([n])) for n in range(7)]
    pairs = PaddedPairSource(rows, pad_id=0, begin_id=1, end_id=2)
    batch = next(eval_subset(pairs, 3).iter_eval(9))
    assert batch.inputs[0].flatten().tolist() == [0, 2, 4]
    own = Own()
    assert eval_subset(own, 2) is own


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


def test_pairs_are_padded_and_shifted_by_hand():
    rows = [(torch.tensor([5, 6, 7]), torch.tensor([8])), (torch.tensor([9]), torch.tensor([3, 4]))]
    source = PaddedPairSource(rows, pad_id=PAD, begin_id=BEGIN, end_id=END)
    batch = next(source.iter_eval(2))
    sources, reads, mask = batch.inputs
    assert sources.tolist() == [[5, 6, 7], [9, PAD, PAD]]
    assert reads.tolist() == [[BEGIN, 8, PAD], [BEGIN, 3, 4]]
    assert batch.targets.tolist() == [[8, END, IGNORE_INDEX], [3, 4, END]]
    assert torch.equal(mask, padding_mask(sources, PAD)) and batch.num_targets == 5


def test_bad_pairs_are_refused():
    with pytest.raises(
        ValueError, match=whole("There are no pairs to train on: give one or more.")
    ):
        pairs()
    with pytest.raises(
        ValueError, match=whole("Pair 1 has an empty source: every source needs a token.")
    ):
        pairs((2, 3), (0, 1))


def rows(count: int, seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 14, (count, 2), generator=draw).tolist()
    return [
        (torch.full((m,), 5 + i), torch.full((n - 1,), 5 + i)) for i, (m, n) in enumerate(lengths)
    ]


def by_length(count: int = 211, tokens: int = 61) -> LengthBucketedPairSource:
    return LengthBucketedPairSource(rows(count), max_tokens=tokens, pad_id=0, begin_id=2, end_id=3)


def seen(batch) -> list[int]:
    return batch.inputs[0][:, 0].tolist()


def test_an_epoch_has_each_pair_once_in_batches_filled_to_the_tokens():
    source, generator = by_length(), torch.Generator().manual_seed(7)
    orders = []
    for _ in range(2):
        drawn = [source.draw(10**6, generator)]
        while source.step < source.epoch_start_step + len(source.batches):
            drawn.append(source.draw(10**6, generator))
        assert sorted(i for batch in drawn for i in seen(batch)) == list(range(5, 216))
        for batch in drawn:
            assert all(ids.numel() <= 61 for ids in (*batch.inputs[:2], batch.targets))
        sizes = [batch.inputs[0].numel() + batch.targets.numel() for batch in drawn]
        kept = sum(len(a) + len(b) + 1 for a, b in rows(211))
        assert kept / sum(sizes) > 0.8  # drawn at random, half of it would be padding
        orders.append([seen(batch) for batch in drawn])
    assert orders[0] != orders[1]
    assert [seen(b) for b in source.iter_eval(3)] != orders[0]
    assert sorted(i for b in source.iter_eval(3) for i in seen(b)) == list(range(5, 216))
    assert all(len(seen(batch)) <= 3 for batch in source.iter_eval(3))


def test_a_source_goes_to_any_step():
    generator = torch.Generator().manual_seed(7)
    source, again = by_length(), by_length()
    drawn = [seen(source.draw(9, generator)) for _ in range(200)]
    again.seek(153)  # in the third epoch
    assert [seen(again.draw(9, generator)) for _ in range(47)] == drawn[153:]


def test_a_pair_longer_than_a_batch_is_refused():
    place = next(i for i, (a, b) in enumerate(rows(211)) if 13 in (len(a), len(b) + 1))
    told = f"Pair {place} has 13 tokens, but a batch just 12: give it more, or leave the pair out."
    with pytest.raises(ValueError, match=whole(told)):
        by_length(tokens=12)
    assert len(by_length(tokens=13)) == 211


def test_fingerprints_are_the_same_in_every_version():
    """A run that is resumed is compared with them."""
    stream = torch.arange(1000) * 7 % 11
    windows, of_documents = TokenWindowSource(stream, 5), DocumentWindowSource(stream, 5, 0)
    expected = {"tokens": 1000, "window": 5, "checksum": 3307247920}
    assert windows.fingerprint() == of_documents.fingerprint() == expected
    special = {"pad_id": 0, "begin_id": 2, "end_id": 3}
    expected = {"pairs": 211, "special": [0, 2, 3], "checksum": 2070649847}
    fixed = [(torch.arange(n % 5 + 1), torch.arange(n % 3)) for n in range(211)]
    assert PaddedPairSource(fixed, **special).fingerprint() == expected
    bucketed = LengthBucketedPairSource(fixed, max_tokens=61, **special)
    assert bucketed.fingerprint() == expected | {"batch_tokens": 61}


def test_half_of_a_batch_rounded_up_begins_where_documents_do():
    stream = torch.arange(1, 101)
    stream[[7, 50, 90, 96]] = 0  # in the window of the last one fits no more
    source = DocumentWindowSource(stream, 4, begin_id=0)
    assert source.document_starts.tolist() == [7, 50, 90]
    begun = [source.draw(5, torch.Generator().manual_seed(n)).inputs[0][:, 0] for n in range(40)]
    assert all((first[:3] == 0).all() for first in begun)
    assert len({*torch.stack(begun)[:, 3:].flatten().tolist()}) > 30
    nothing = DocumentWindowSource(torch.arange(1, 9), 4, begin_id=0)
    assert nothing.draw(3, torch.Generator().manual_seed(0)).inputs[0].shape == (3, 4)
