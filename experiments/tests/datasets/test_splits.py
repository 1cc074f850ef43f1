import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiments import datasets


@st.composite
def labels(draw):
    counts = draw(st.lists(st.integers(1, 40), min_size=1, max_size=12))
    y = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(draw(st.integers(0, 99))).permutation(y), np.array(counts)


SIZES = st.sampled_from([(0.8, 0.1, 0.1), (0.2, 0.4, 0.4), (0.7, 0.2, 0.1), (1 / 3, 1 / 3, 1 / 3), (0.02, 0.01, 0.97)])


@given(labels(), SIZES, st.integers(0, 5))
def test_parts(case, sizes, seed):
    y, counts = case
    for parts in datasets.stratified_splits(y, 3, sizes, seed):
        together = np.concatenate(parts)
        assert np.array_equal(np.sort(together), np.arange(len(y)))  # no sample twice, none left out
        assert all(np.array_equal(part, np.sort(part)) for part in parts)
        in_part = np.array([np.bincount(y[part], minlength=len(counts)) for part in parts])
        assert (in_part[:, counts >= 3] >= 1).all()
        assert (in_part[:, counts == 2] == [[1], [0], [1]]).all()
        assert (in_part[:, counts == 1] == [[1], [0], [0]]).all()
        roomy = counts * min(sizes) >= 1
        exact = np.outer(sizes, counts)
        assert (np.abs(in_part - exact)[:, roomy] <= 1 + 1e-9).all()


@given(labels(), SIZES)
def test_sizes_are_the_same_in_every_split(case, sizes):
    y, _ = case
    assert len({tuple(map(len, parts)) for parts in datasets.stratified_splits(y, 4, sizes)}) == 1


def test_rounding_does_not_pile_up():
    """Of 15 samples a tenth is 1.5: validation and test must take turns at the half."""
    y = np.repeat(np.arange(200), 15)
    train, validation, test = datasets.stratified_splits(y, 1)[0]
    assert (len(train), len(validation), len(test)) == (2400, 300, 300)


def test_deterministic_and_different():
    y = np.repeat(["a", "b", "c"], [50, 20, 5])
    first, second = (datasets.stratified_splits(y, 5, seed=3) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
    assert len({tuple(parts[2]) for parts in first}) == 5
    assert not np.array_equal(first[0][0], datasets.stratified_splits(y, 5, seed=4)[0][0])
