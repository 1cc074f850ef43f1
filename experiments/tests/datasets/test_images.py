"""Features of images, from files that the test makes."""

import numpy as np
import pytest

from experiments import datasets
from experiments.datasets.counts import CIFAR100_IMB

HAM = (239, 367, 783, 76, 707, 4744, 101)


def write(folder, name, **changed):
    """A file as the real one, but for its features, which are 0 to 3."""
    rng = np.random.default_rng(0)
    (folder / "features").mkdir(exist_ok=True)
    if name == "ham10000-part":
        y = np.repeat(np.arange(7), HAM)
        more = {"group": (np.arange(len(y)) // 2 * 2 + np.repeat(np.arange(7), HAM)).astype(np.int32)}
    else:
        # The largest classes have no images beyond the paper's.
        more_of_each = np.where(np.array(CIFAR100_IMB) < 600, 100, 0)
        y = np.concatenate([np.repeat(np.arange(100), CIFAR100_IMB), np.repeat(np.arange(100), more_of_each)])
        more = {"extra": np.arange(len(y)) >= sum(CIFAR100_IMB)}
    arrays = {
        "q": rng.integers(0, 4, (len(y), 2048), dtype=np.uint8),
        "scale": np.full(2048, 2.0, dtype=np.float32),
        "y": y.astype(np.int16),
        "class_names": np.array([f"c{k}" for k in range(int(y.max()) + 1)]),
        **more,
    }
    np.savez(folder / "features" / f"{name}.npz", **{k: v for k, v in (arrays | changed).items() if v is not None})
    return arrays


def test_features_are_squares_on_a_scale(tmp_path):
    arrays = write(tmp_path, "ham10000-part")
    bunch = datasets.load("ham10000-part", tmp_path, dtype=np.float32)
    assert bunch.X.dtype == np.float32
    np.testing.assert_allclose(bunch.X, (arrays["q"] / 255.0) ** 2 * 2.0, rtol=1e-6)
    np.testing.assert_array_equal(np.bincount(bunch.y), HAM)
    assert bunch.target_names == [f"c{k}" for k in range(7)]
    np.testing.assert_array_equal(bunch.group, arrays["group"])


def test_rows_beyond_the_papers_are_marked(tmp_path):
    write(tmp_path, "cifar100-imb")
    bunch = datasets.load("cifar100-imb", tmp_path, dtype=np.float32)
    np.testing.assert_array_equal(np.bincount(bunch.y[~bunch.extra]), CIFAR100_IMB)


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"y": np.zeros(7017, dtype=np.int16)}, "7017 rows in 1 classes of 7017 to 7017"),
        ({"q": np.zeros((7017, 5), dtype=np.uint8)}, r"q of shape \(7017, 5\)"),
        ({"scale": np.zeros(2048, dtype=np.float32)}, "a scale that is not positive"),
        ({"q": None}, "none of q"),
    ],
)
def test_another_file_is_refused(tmp_path, changed, complaint):
    write(tmp_path, "ham10000-part", **changed)
    with pytest.raises(ValueError, match=rf"ham10000-part.npz must hold .*, got .*{complaint}.*: fetch the file again"):
        datasets.load("ham10000-part", tmp_path)


def test_groups_stay_together():
    y = np.repeat([0, 1, 2], [40, 20, 8])
    groups = np.arange(len(y)) // 2
    for train, validation, test in datasets.stratified_splits(y, 5, groups=groups):
        assert sorted(np.concatenate([train, validation, test])) == list(range(len(y)))
        for a, b in ((train, validation), (train, test), (validation, test)):
            assert not set(groups[a]) & set(groups[b])
        assert all(set(y[part]) == {0, 1, 2} for part in (train, validation, test))


@pytest.mark.parametrize("name", ["cifar100-imb", "cifar100-imb-32px", "caltech101", "flowers102", "ham10000-part"])
def test_the_real_files(real_data, name):
    bunch = datasets.load(name, real_data, dtype=np.float32)
    assert bunch.X.shape == (len(bunch.y), 2048)
    assert np.isfinite(bunch.X).all()
    assert bunch.X.min() >= 0.0
