"""Permutation importance: the definition, its standard error, pairs of classes, tables of every kind."""

import numpy as np
import pytest
from scipy.special import softmax

from mauc import compare_mauc, mauc_score
from mauc.linear import MAUCClassifier
from mauc.metrics import mauc_importance

WEIGHTS = np.array([[1.0, 0.0, -1.0], [0.3, -0.6, 0.3], [0.0, 0.0, 0.0]])


def scoring(X):
    return softmax(X @ WEIGHTS, axis=1)


def sample(counts, seed):
    y = np.repeat([0, 1, 2], counts)
    return np.random.default_rng(seed).normal(size=(len(y), 3)) + 1.2 * WEIGHTS.T[y], y


def test_drop_and_error_are_those_of_the_shuffled_rows():
    X, y = sample([40, 20, 6], 0)
    seen = []
    found = mauc_importance(lambda X: seen.append(X.copy()) or scoring(X), X, y, between=[(2, 0)], n_repeats=1)
    assert len(seen) == 4, "one prediction per shuffle, however many pairs"
    assert [(f.pair, f.column) for f in found[:3]] == [(None, "0"), (None, "1"), (None, "2")]
    rows, columns = y != 1, [0, 2]
    for f in found:
        k = int(f.column)
        shuffled = seen[1 + k]
        np.testing.assert_array_equal(np.sort(shuffled[:, k]), np.sort(X[:, k]))
        np.testing.assert_array_equal(np.delete(shuffled, k, axis=1), np.delete(X, k, axis=1))
        before, after = scoring(X), scoring(shuffled)
        expected = (
            compare_mauc(y, before, after)
            if f.pair is None
            else compare_mauc(y[rows], before[rows][:, columns], after[rows][:, columns])
        )
        for name in ("low", "high", "stderr"):
            assert getattr(f, name) == pytest.approx(getattr(expected, name), abs=1e-12)
        assert f.drop == pytest.approx(expected.difference, abs=1e-12)
    assert found[0].pair is None
    assert found[-1].pair == ("2", "0")


def test_repeats_are_averaged():
    X, y = sample([40, 20, 6], 1)
    seen = []
    found = mauc_importance(lambda X: seen.append(X.copy()) or scoring(X), X, y, n_repeats=3)
    drop = next(f.drop for f in found if f.column == "0")
    assert drop == pytest.approx(mauc_score(y, scoring(X)) - np.mean([mauc_score(y, scoring(Z)) for Z in seen[1:4]]))


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_the_standard_error_is_the_spread_over_samples(n_repeats):
    found = []
    for seed in range(60):
        X, y = sample([40, 20, 8], seed)
        importances = mauc_importance(scoring, X, y, n_repeats=n_repeats, random_state=seed)
        found.append(next(f for f in importances if f.column == "0"))
    spread, told = np.std([f.drop for f in found]), np.mean([f.stderr for f in found])
    assert 0.75 < told / spread < 1.35


def test_data_frames_of_mixed_types_keep_them():
    pd = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    X, y = sample([40, 20, 6], 2)
    table = pd.DataFrame({"x": X[:, 0], "n": np.arange(len(y)), "soil": pd.Categorical(np.where(y, "sand", "loam"))})
    table.index = table.index + 7
    before = table.copy()
    kinds = []

    def model(table):
        kinds.append(list(table.dtypes))
        return np.column_stack([table["x"] + (table["soil"] == "loam"), table["n"] * 0.0, -table["x"]])

    found = mauc_importance(model, table, y, n_repeats=2)
    assert sorted(f.column for f in found) == ["n", "soil", "x"]
    assert (found[-1].drop, found[-1].low, found[-1].high, found[-1].stderr) == (0.0, 0.0, 0.0, 0.0), "it is not used"
    assert all(kind == kinds[0] for kind in kinds)
    pd.testing.assert_frame_equal(table, before)


def test_some_columns():
    X, y = sample([40, 20, 6], 2)
    assert [f.column for f in mauc_importance(scoring, X, y, columns=["1"])] == ["1"]
    with pytest.raises(ValueError, match="columns must name columns of X, got 'soil': choose from 0, 1, 2"):
        mauc_importance(scoring, X, y, columns=["soil"])


def test_classes_without_rows_and_wrong_pairs():
    X, y = sample([40, 20, 6], 3)
    model = MAUCClassifier(max_iter=5, tol=1.0).fit(X, y)
    few = mauc_importance(model, X[y < 2], y[y < 2], n_repeats=1)
    assert len(few) == 3
    assert all(np.isfinite(f.stderr) for f in few)
    for pair in ((0, 2), (0, 0), (0, 5)):
        with pytest.raises(ValueError, match="between must hold pairs of two different classes that have rows, got"):
            mauc_importance(model, X[y < 2], y[y < 2], between=[pair])
    with pytest.raises(ValueError, match="n_repeats must be a whole number of at least 1, got 0"):
        mauc_importance(model, X, y, n_repeats=0)
    with pytest.raises(ValueError, match="y must hold two classes or more, got only the class"):
        mauc_importance(model, X[y == 0], y[y == 0])


def test_rows_that_give_values_count():
    """A tenth of the rows have the other sign: how many these are decides the score after a shuffle."""
    drops, told, y = [], [], np.repeat([0, 1], 40)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        sign = np.where(rng.random(80) < 0.1, -1.0, 1.0)
        X = np.column_stack([sign, sign * (rng.normal(size=80) + 1.5 * y)])
        (found,) = mauc_importance(lambda X: X[:, [0]] * X[:, [1]], X, y, columns=["0"], n_repeats=20)
        drops.append(found.drop)
        told.append(found.stderr)
    assert 0.85 < np.mean(told) / np.std(drops) < 1.25
