"""What a batch holds and what an epoch visits, for any class sizes, batch sizes and numbers of ranks."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from mauc.nn.samplers import ClassCoverageBatchSampler


@st.composite
def settings_of_a_sampler(draw):
    counts = np.array(draw(st.lists(st.integers(1, 40), min_size=2, max_size=12)))
    k = draw(st.integers(1, int(min(counts.min(), 3))))
    batch_size = draw(st.integers(2 * k, 60))
    ranks = draw(st.integers(1, 3))
    share = draw(st.sampled_from([1.0, 0.5])) if batch_size >= 4 * k else 1.0
    y = np.random.default_rng(draw(st.integers(0, 5))).permutation(np.repeat(np.arange(len(counts)), counts))
    options = {"min_per_class": k, "cover_share": share, "shuffle": draw(st.booleans()), "num_replicas": ranks}
    return y, batch_size, options


def epoch_of_all_ranks(y, batch_size, options, epoch=0, **more):
    samplers = [
        ClassCoverageBatchSampler(y, batch_size, rank=r, **options, **more) for r in range(options["num_replicas"])
    ]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    return samplers, [list(sampler) for sampler in samplers]


@given(settings_of_a_sampler())
def test_batches_cover_the_classes_and_an_epoch_visits_every_sample(case):
    y, batch_size, options = case
    k, n_classes = options["min_per_class"], y.max() + 1
    samplers, batches = epoch_of_all_ranks(y, batch_size, options)
    assert {len(sampler) for sampler in samplers} == {len(rank) for rank in batches} == {len(samplers[0])}
    flat = [batch for rank in batches for batch in rank]
    fit = min(n_classes, int(options["cover_share"] * batch_size) // k)
    for batch in flat:
        assert len(set(batch)) == len(batch) <= batch_size
        assert np.count_nonzero(np.bincount(y[batch]) >= k) >= fit
    sizes = [len(batch) for batch in flat]
    assert max(sizes) - min(sizes) <= 1
    assert set(np.concatenate(flat)) == set(range(len(y)))


@given(settings_of_a_sampler())
def test_samples_of_a_class_are_visited_equally_often_or_once(case):
    y, batch_size, options = case
    samplers, batches = epoch_of_all_ranks(y, batch_size, options)
    visits = np.bincount(np.concatenate([np.concatenate(rank) for rank in batches]), minlength=len(y))
    np.testing.assert_allclose(samplers[0].class_visits, np.bincount(y, visits))
    for c in range(y.max() + 1):
        of_class = visits[y == c]
        assert of_class.max() - of_class.min() <= 1
        assert of_class.min() >= 1


@given(settings_of_a_sampler(), st.integers(0, 3))
def test_seed_and_epoch_fix_the_order(case, epoch):
    y, batch_size, options = case
    _, first = epoch_of_all_ranks(y, batch_size, options, epoch, seed=7)
    samplers, again = epoch_of_all_ranks(y, batch_size, options, epoch, seed=7)
    assert first == again
    # By themselves the ranks go on to the next epoch together, and back when told.
    _, following = epoch_of_all_ranks(y, batch_size, options, epoch + 1, seed=7)
    assert following == [list(sampler) for sampler in samplers]
    for sampler in samplers:
        sampler.set_epoch(epoch)
    assert first == [list(sampler) for sampler in samplers]


@given(settings_of_a_sampler())
def test_no_shorter_epoch_would_do_where_all_classes_fit(case):
    y, batch_size, options = case
    counts, k = np.bincount(y), options["min_per_class"]
    room = batch_size - k * len(counts)
    if int(options["cover_share"] * batch_size) < k * len(counts):
        return
    n_ranks = options["num_replicas"]
    n = n_ranks
    while np.maximum(counts - k * n, 0).sum() > n * room:
        n += n_ranks
    assert len(ClassCoverageBatchSampler(y, batch_size, rank=0, **options)) * n_ranks == n


@given(settings_of_a_sampler())
def test_drop_last_gives_whole_batches(case):
    y, batch_size, options = case
    _, all_batches = epoch_of_all_ranks(y, batch_size, options)
    samplers, batches = epoch_of_all_ranks(y, batch_size, options, drop_last=True)
    flat = [batch for rank in batches for batch in rank]
    assert len(flat) == len(samplers) * len(samplers[0])
    assert len(samplers[0]) in (len(all_batches[0]), len(all_batches[0]) - 1)
    missing = len(y) - len(set(np.concatenate(flat)))
    assert missing <= batch_size * len(samplers)
    k = options["min_per_class"]
    if int(options["cover_share"] * batch_size) // k >= y.max() + 1 and len(samplers[0]) > 1:
        assert {len(batch) for batch in flat} == {batch_size}


def test_epochs_and_seeds_differ():
    y = np.repeat(np.arange(4), [40, 20, 5, 1])
    sampler = ClassCoverageBatchSampler(y, 12)
    assert sampler.epoch == 0
    epochs = [list(sampler), list(sampler), list(ClassCoverageBatchSampler(y, 12, seed=1))]
    assert sampler.epoch == 2
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    # An epoch and a seed are two numbers, not their sum.
    other = ClassCoverageBatchSampler(y, 12, seed=1)
    assert list(other) != epochs[1]


def test_without_shuffling_samples_keep_their_order_and_epochs_agree():
    y = np.array([0, 1] * 10)
    sampler = ClassCoverageBatchSampler(y, 4, min_per_class=2, shuffle=False)
    batches = list(sampler)
    sampler.set_epoch(3)
    assert list(sampler) == batches
    assert batches[0] == [0, 2, 1, 3]


def test_rare_classes_are_in_every_batch_and_the_rest_is_spread_evenly():
    y = np.repeat(np.arange(3), [900, 90, 1])
    counts = np.array([np.bincount(y[batch], minlength=3) for batch in ClassCoverageBatchSampler(y, 100)])
    assert (counts >= 1).all()
    assert (np.ptp(counts, axis=0) <= 1).all()


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_classes_that_do_not_fit_take_turns(share):
    rng = np.random.default_rng(0)
    counts = np.maximum(1, (300 / np.arange(1, 201)).astype(int))
    y = rng.permutation(np.repeat(np.arange(200), counts))
    sampler = ClassCoverageBatchSampler(y, 32, cover_share=share)
    batches = list(sampler)
    n_covered = int(32 * share)
    seen = np.array([np.bincount(y[batch], minlength=200) > 0 for batch in batches])
    assert (seen.sum(axis=1) >= n_covered).all()
    floor = len(batches) * n_covered // 400
    assert seen.sum(axis=0).min() >= floor > 0
    rare = np.flatnonzero(counts <= floor)
    assert len(rare) > 50
    for c in rare:
        at = np.flatnonzero(seen[:, c])
        gaps = np.diff(np.append(at, at[0] + len(batches)))
        assert gaps.max() <= 3 * len(batches) / len(at) + 1


def test_a_share_of_the_batch_keeps_the_epoch_short():
    y = np.repeat(np.arange(101), [5000] + [5] * 100)
    assert len(ClassCoverageBatchSampler(y, 101)) == 5000
    assert len(ClassCoverageBatchSampler(y, 101, cover_share=0.5)) <= 2 * len(y) / 101 + 1


@pytest.mark.parametrize("n_classes", [23, 5089])
def test_half_a_million_samples(n_classes):
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1, n_classes + 1)
    y = rng.choice(n_classes, 500_000, p=share / share.sum())
    y[:n_classes] = np.arange(n_classes)
    sampler = ClassCoverageBatchSampler(y, 8196)
    visits = np.zeros(len(y), dtype=int)
    n_batches = 0
    for batch in sampler:
        n_batches += 1
        visits[batch] += 1
        assert len(np.unique(y[batch])) == n_classes
    assert n_batches == len(sampler)
    assert visits.min() == 1


@pytest.mark.parametrize("convert", [list, torch.tensor, lambda y: np.array(["ant", "bee", "cat"])[y]])
def test_labels_of_any_kind(convert):
    y = np.repeat([0, 1, 2], [7, 4, 1])
    assert list(ClassCoverageBatchSampler(convert(y), 5)) == list(ClassCoverageBatchSampler(y, 5))


@pytest.mark.parametrize("workers", [0, 1])
def test_data_loader(workers):
    y = torch.tensor([0] * 30 + [1] * 8 + [2] * 2)
    sampler = ClassCoverageBatchSampler(y, 8)
    loader = DataLoader(TensorDataset(torch.arange(40), y), batch_sampler=sampler, num_workers=workers)
    assert len(loader) == len(sampler)
    epochs = [[(index.tolist(), set(target.tolist())) for index, target in loader] for _ in range(2)]
    sampler.set_epoch(0)
    for batches in epochs:
        assert [index for index, _ in batches] == list(sampler)
        assert all(classes == {0, 1, 2} for _, classes in batches)
    assert epochs[0] != epochs[1]


def test_rank_comes_from_the_process_group(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    try:
        sampler = ClassCoverageBatchSampler([0, 1, 0, 1], 2)
        assert (sampler.rank, sampler.num_replicas) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"labels": [0, 0, 0, 1], "min_per_class": 2},
            "labels must hold at least min_per_class=2 of every class, got 1 of class 1: lower min_per_class, or drop "
            "or merge that class",
        ),
        (
            {"batch_size": 3, "min_per_class": 2},
            "batch_size (times cover_share=1) must have room for two classes of min_per_class=2 samples, got 3: raise "
            "it or lower min_per_class: classes must meet in a batch",
        ),
        ({"batch_size": 3, "cover_share": 0.5}, "batch_size (times cover_share=0.5) must have room for two classes"),
        ({"labels": [1, 1]}, "labels must hold two classes or more, got only the class 1: multiclass AUC compares"),
        (
            {"labels": [[0, 1]]},
            "labels must be one class per sample, of shape (n_samples,), got shape (1, 2): pass the",
        ),
        ({"labels": [0.0, np.nan]}, "labels must be finite, got NaN or infinity: drop those"),
        ({"min_per_class": 0}, "min_per_class must be a whole number of at least 1, got 0"),
        ({"cover_share": 0}, "cover_share must be a finite number above 0 and at most 1, got 0"),
        ({"rank": 2, "num_replicas": 2}, "rank must be below num_replicas=2, got 2: pass rank and num_replicas"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ClassCoverageBatchSampler(**{"labels": [0, 0, 1, 1], "batch_size": 4, **arguments})


def test_bad_epoch():
    with pytest.raises(ValueError, match="epoch must be a whole number of at least 0, got -1"):
        ClassCoverageBatchSampler([0, 1], 2).set_epoch(-1)
