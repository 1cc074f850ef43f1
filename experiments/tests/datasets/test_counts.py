import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.datasets.counts import CIFAR100_IMB, INATURALIST, USER_IMB, imbalanced_counts, shrunk


def test_lists_of_the_paper():
    assert len(CIFAR100_IMB) == 100
    assert np.unique(CIFAR100_IMB, return_counts=True)[0].tolist() == [20, 50, 100, 150, 200, 300, 360, 420, 480, 600]
    assert np.unique(CIFAR100_IMB, return_counts=True)[1].tolist() == [20, 20, 30, 3, 3, 6, 3, 3, 2, 10]
    assert sum(CIFAR100_IMB) == 16_550  # the paper's table says 23 350
    assert USER_IMB == (800, 400, 400, 800, 1600, 400, 1600, 8000, 800, 1600, 8000, 8000)
    assert sum(USER_IMB) == 32_400  # the paper's table says 24 400


def test_long_tail_of_inaturalist():
    assert len(INATURALIST) == 5089
    assert sum(INATURALIST) == 675_170
    assert (max(INATURALIST), min(INATURALIST)) == (3870, 14)
    assert round(max(INATURALIST) / min(INATURALIST), 1) == 276.4  # the paper's table
    assert list(INATURALIST) == sorted(INATURALIST, reverse=True)


@given(st.integers(2, 40), st.integers(0, 3000), st.sampled_from([1.0, 1.5, 10.0, 1e3, 1e6]))
def test_geometric_sizes(n_classes, more, ratio):
    counts = imbalanced_counts(n_classes + more, n_classes, ratio)
    assert counts.sum() == n_classes + more
    assert counts.min() >= 1
    assert (np.diff(counts) <= 0).all()


def test_ratio_of_geometric_sizes():
    counts = imbalanced_counts(100_000, 5, 100.0)
    assert counts[0] / counts[-1] == pytest.approx(100, rel=0.01)
    assert imbalanced_counts(90, 3, 1.0).tolist() == [30, 30, 30]


@given(st.lists(st.integers(1, 5000), min_size=2, max_size=30), st.floats(0, 1))
def test_smaller_copy(sizes, place):
    counts = np.array(sizes)
    least = np.minimum(counts, 3)
    wanted = int(least.sum() + place * (counts.sum() - least.sum()))
    small = shrunk(counts, wanted)
    assert small.sum() == wanted
    assert (small >= least).all()
    assert (small <= counts).all()
    assert (np.diff(small[np.argsort(counts, kind="stable")]) >= -1).all()
    assert np.array_equal(shrunk(counts, int(counts.sum()) + 1), counts)


def test_too_small_a_copy():
    with pytest.raises(
        ValueError, match="max_samples must leave every class 3 samples, so at least 5, got 4: pass more"
    ):
        shrunk(np.array([2, 50]), 4)
