"""The metric of random partitions is the metric of the whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from strategies import examples

import mauc

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
md = pytest.importorskip("mauc.dask")


@pytest.fixture(autouse=True)
def one_thread():
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        yield


def simulated(seed, n=90, n_classes=4, decimals=1):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    scores = np.round(rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y], decimals)
    return y, scores, 0.5 + rng.random(n)


def as_arrays(x, edges):
    """Chunks of known sizes, an empty one included."""
    sizes = tuple(np.diff([0, *edges, len(x)]).tolist())
    return da.from_array(x, chunks=(sizes, *x.shape[1:]))


def as_unknown(x, edges):
    """Chunks whose sizes only the workers know."""
    unknown = ((np.nan,) * (len(edges) + 1), *((k,) for k in x.shape[1:]))
    return as_arrays(x, edges).map_blocks(lambda block: block, dtype=x.dtype, chunks=unknown)


def as_frames(x, edges, columns=None):
    make = (lambda part: pd.DataFrame(part, columns=columns)) if x.ndim == 2 else pd.Series
    parts = [make(part) for part in np.split(x, edges)]
    return dd.from_map(lambda part: part, parts, meta=parts[0].iloc[:0])


KINDS = {"arrays": as_arrays, "unknown": as_unknown, "frames": as_frames}


def results(result):
    return np.array(list(vars(result).values()))


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 90), max_size=4).map(sorted),
    st.sampled_from(sorted(KINDS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["ovo", "ova"]),
)
@examples(8)
def test_random_partitions(seed, edges, kind, weighted, by_class, pairs):
    """Ties across partitions, empty ones, and, sorted by class, partitions of a single class."""
    y, scores, w = simulated(seed)
    if by_class:
        order = np.argsort(y, kind="stable")
        y, scores, w = y[order], scores[order], w[order]
    other = scores + np.random.default_rng(seed).normal(size=scores.shape).astype(np.float32)
    w = w if weighted else None
    Y, S, T = (KINDS[kind](x, edges) for x in (y, scores, other))
    W = None if w is None else KINDS[kind](w, edges)
    expected = mauc.pairwise_auc(y, scores, sample_weight=w)
    np.testing.assert_allclose(md.pairwise_auc(Y, S, sample_weight=W), expected, rtol=0, atol=1e-12)
    options, lazy = {"pairs": pairs, "sample_weight": w}, {"pairs": pairs, "sample_weight": W}
    assert md.mauc_score(Y, S, **lazy) == pytest.approx(mauc.mauc_score(y, scores, **options), rel=0, abs=1e-12)
    interval, expected = md.mauc_interval(Y, S, **lazy), mauc.mauc_interval(y, scores, **options)
    np.testing.assert_allclose(results(interval), results(expected), rtol=0, atol=1e-12)
    found, expected = md.compare_mauc(Y, S, T, **lazy), mauc.compare_mauc(y, scores, other, **options)
    np.testing.assert_allclose(results(found), results(expected), rtol=0, atol=1e-12)


def test_groups():
    """The groups of rows may be spread over partitions; they may be numbers or names, lazy or in memory."""
    y, scores, w = simulated(5)
    patient = np.random.default_rng(0).integers(0, 20, 90)
    other = scores + np.random.default_rng(1).normal(size=scores.shape)
    Y, S, T, W, G = (as_arrays(x, [30, 61]) for x in (y, scores, other, w, patient))
    options, lazy = {"groups": patient, "sample_weight": w}, {"groups": G, "sample_weight": W}
    expected = results(mauc.mauc_interval(y, scores, **options))
    np.testing.assert_allclose(results(md.mauc_interval(Y, S, **lazy)), expected, rtol=0, atol=1e-12)
    names = lazy | {"groups": np.array([f"patient {k}" for k in patient])}
    np.testing.assert_allclose(results(md.mauc_interval(Y, S, **names)), expected, rtol=0, atol=1e-12)
    expected = results(mauc.compare_mauc(y, scores, other, **options))
    np.testing.assert_allclose(results(md.compare_mauc(Y, S, T, **lazy)), expected, rtol=0, atol=1e-12)
    assert expected[3] != mauc.compare_mauc(y, scores, other, sample_weight=w).stderr


def test_identical_scores_differ_by_exactly_nothing():
    y, scores, _ = simulated(0)
    Y, S = (as_arrays(x, [30, 61]) for x in (y, scores))
    assert md.compare_mauc(Y, S, S) == mauc.compare_mauc(y, scores, scores)
    assert md.compare_mauc(Y, S, S).stderr == 0.0
    assert md.compare_mauc(Y, S, 2 * S).stderr > 0.0
    again = as_arrays(scores.copy(), [10, 50])
    assert md.compare_mauc(Y, S, again + 0.0) == mauc.compare_mauc(y, scores, scores)
    frame = as_frames(scores, [30, 61]).rename(columns=str)
    assert md.compare_mauc(as_frames(y, [30, 61]), frame, frame.map_partitions(lambda part: part + 0.0)).stderr == 0.0


def test_names_labels_and_absent_classes():
    y, scores, _ = simulated(1)
    names = np.array(["fox", "cat", "dog", "owl"])
    Y = as_frames(names[y], [20, 20, 50])
    S = as_frames(scores, [20, 20, 50], columns=names)
    assert md.mauc_score(Y, S) == pytest.approx(mauc.mauc_score(y, scores), abs=1e-12)
    wide = as_frames(np.hstack([scores, scores[:, :1]]), [20, 20, 50], columns=[*names, "bee"])
    labels = [*names, "bee"]
    assert md.mauc_score(Y, wide, labels=labels, absent="ignore") == pytest.approx(mauc.mauc_score(y, scores))
    with pytest.raises(ValueError, match="y_true must hold every class of labels, got no sample of bee"):
        md.mauc_score(Y, wide, labels=labels)
    np.testing.assert_array_equal(np.isnan(md.pairwise_auc(Y, wide, labels=labels))[4], True)


def test_two_classes_with_one_column_and_one_class():
    y, scores, _ = simulated(2, n_classes=2)
    Y, one = as_arrays(y, [40]), as_arrays(scores[:, 1], [40])
    assert md.mauc_score(Y, one) == pytest.approx(mauc.mauc_score(y, scores[:, 1]), abs=1e-12)
    same = da.zeros(10, chunks=5, dtype=int)
    np.testing.assert_array_equal(md.pairwise_auc(same, da.zeros((10, 1), chunks=(5, 1))), [[np.nan]])
    with pytest.raises(ValueError, match="y_true must hold two classes or more, got only the class 0"):
        md.mauc_score(same, da.zeros((10, 1), chunks=(5, 1)))
    with pytest.warns(UndefinedMetricWarning, match="undefined and returned as NaN"):
        assert np.isnan(md.mauc_interval(same, da.zeros((10, 1), chunks=(5, 1)), absent="ignore").score)


def test_other_cuts_are_aligned():
    """Arrays of known sizes need not be cut alike; NumPy classes and weights are cut like the scores."""
    y, scores, w = simulated(3)
    S = da.from_array(scores, chunks=(25, 3))
    expected = mauc.mauc_score(y, scores, sample_weight=w)
    assert md.mauc_score(da.from_array(y, chunks=31), S, sample_weight=w) == pytest.approx(expected, abs=1e-12)
    assert md.mauc_score(list(y), S, sample_weight=pd.Series(w)) == pytest.approx(expected, abs=1e-12)


def test_many_rows_are_sampled_for_the_standard_error():
    """The score counts all rows; the sample has all rows of the small classes. Weights and groups need all rows."""
    rng = np.random.default_rng(0)
    y = rng.choice(4, 20_000, p=[0.6, 0.3, 0.08, 0.02])
    scores = rng.normal(size=(20_000, 4)) + np.eye(4)[y]
    other = scores + rng.normal(size=scores.shape)
    Y, S, T = (as_arrays(x, [3000, 3000, 11_000]) for x in (y, scores, other))
    found, expected = md.mauc_interval(Y, S, most_rows=6000), mauc.mauc_interval(y, scores)
    assert found.score == pytest.approx(expected.score, abs=1e-12)
    assert expected.stderr < found.stderr < 1.1 * expected.stderr
    assert md.mauc_interval(Y, S, most_rows=20_000) == md.mauc_interval(Y, S)
    found, expected = md.compare_mauc(Y, S, T, most_rows=6000), mauc.compare_mauc(y, scores, other)
    assert found.difference == pytest.approx(expected.difference, abs=1e-12)
    assert expected.stderr < found.stderr < 1.2 * expected.stderr
    assert md.compare_mauc(Y, S, S + 0.0, most_rows=6000) == mauc.compare_mauc(y, scores, scores)
    group = as_arrays(np.arange(20_000) // 2, [3000, 3000, 11_000])
    exact = mauc.mauc_interval(y, scores, groups=np.arange(20_000) // 2)
    np.testing.assert_allclose(
        results(md.mauc_interval(Y, S, groups=group, most_rows=6000)), results(exact), atol=1e-12
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_bins(kind):
    y, scores, w = simulated(4, n=300)
    like = mauc.BinnedMAUC.for_scores(y, scores, 256)
    Y, S, W = (KINDS[kind](x, [0, 100, 101]) for x in (y, scores, w))
    for weight, lazy in ((None, None), (w, W)):
        found, expected = md.binned_mauc(Y, S, like, sample_weight=lazy), like.copy().update(y, scores, weight)
        np.testing.assert_allclose(found.counts, expected.counts, rtol=1e-12)
        assert found.n_rows == 300
        np.testing.assert_allclose(results(found.interval()), results(expected.interval()), rtol=1e-9)
    assert like.n_rows == 0
    with pytest.raises(ValueError, match=r"in partition \d, y_score must be from 0 to 1 for equal bins"):
        md.binned_mauc(Y, S, mauc.BinnedMAUC(4))
    with pytest.raises(ValueError, match="like must be a BinnedMAUC, got int: pass"):
        md.binned_mauc(Y, S, 4)


def test_every_task_has_a_key_of_its_own():
    """Other work under the same key would never run: what an earlier call found would be taken for its result."""
    task = pytest.importorskip("mauc.dask._partitions").task
    keys = {task(function, x).key for function in (abs, bool) for x in (0, np.zeros(2), np.ones(2))}
    assert len(keys) == 6
    assert all(key.startswith(("mauc-abs-", "mauc-bool-")) for key in keys)
    assert task(abs, np.ones(2)).key in keys


class TestBadInput:
    y, scores, w = simulated(6)

    def lazy(self, **changes):
        given = {"y": self.y.copy(), "scores": self.scores.copy(), "w": self.w.copy()} | changes
        return tuple(as_unknown(given[name], [30, 60]) for name in ("y", "scores", "w"))

    def test_nan_is_named_by_partition_and_row(self):
        scores = self.scores.copy()
        scores[67, 2] = np.nan
        y, S, _ = self.lazy(scores=scores)
        message = r"in partition 2, y_score must be finite, got nan at \(7, 2\) and 1 such values"
        with pytest.raises(ValueError, match=message):
            md.mauc_score(y, S)

    def test_missing_class(self):
        names = np.array(list("abcd"), dtype=object)[self.y]
        names[33] = None
        y, S, _ = self.lazy(y=names)
        with pytest.raises(ValueError, match=r"in partition 1, y_true must name .*, got a missing value in row 3"):
            md.mauc_score(y, S)

    @pytest.mark.parametrize(
        ("value", "message"),
        [(-1.0, "in partition 1, sample_weight must not be negative, got -1"), (np.inf, "in partition 1.*inf at 2")],
    )
    def test_weights(self, value, message):
        w = self.w.copy()
        w[32] = value
        y, S, W = self.lazy(w=w)
        with pytest.raises(ValueError, match=message):
            md.mauc_score(y, S, sample_weight=W)

    def test_class_without_weight(self):
        y, S, W = self.lazy(w=np.where(self.y == 2, 0.0, self.w))
        with pytest.raises(ValueError, match=r"sample_weight must have a positive sum .* zero for class 2"):
            md.mauc_score(y, S, sample_weight=W)

    def test_class_that_labels_lack(self):
        y, S, _ = self.lazy()
        with pytest.raises(ValueError, match=r"in partition \d, labels must name every class .* without 3"):
            md.mauc_score(y, S, labels=[0, 1, 2, 4])

    def test_numbers_and_strings(self):
        y = da.from_array(np.array([1, 2, "a", "b"], dtype=object), chunks=2)
        with pytest.raises(ValueError, match="y_true must hold labels of one kind, got a mixture of int, str"):
            md.mauc_score(y, da.zeros((4, 4), chunks=(2, 4)))

    def test_rows_that_do_not_match(self):
        y, S = as_unknown(self.y[1:], [29, 59]), as_unknown(self.scores, [30, 60])
        with pytest.raises(ValueError, match=r"in partition 0, y_score must have .*, got 30 rows for 29"):
            md.mauc_score(y, S)
        y, S = as_unknown(self.y[30:], [0, 30]), as_unknown(self.scores, [30, 60])
        with pytest.raises(ValueError, match="in partition 0, y_score must have one row per sample, got 30 rows for 0"):
            md.mauc_score(y, S)

    def test_partitions_that_do_not_match(self):
        with pytest.raises(ValueError, match="y_true must have the partitions of y_score, got 2 for 3 of y_score"):
            md.mauc_score(as_unknown(self.y, [30]), as_unknown(self.scores, [30, 60]))
        with pytest.raises(ValueError, match="y_true must have one row per sample, got 89 for 90 of y_score"):
            md.mauc_score(as_arrays(self.y[1:], [30]), as_arrays(self.scores, [30]))
        with pytest.raises(ValueError, match="sample_weight must be a Dask collection, got ndarray for a y_score"):
            md.mauc_score(as_unknown(self.y, [30]), as_unknown(self.scores, [30]), sample_weight=self.w)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"pairs": "one"}, "pairs must be one of 'ovo', 'ova'"),
            ({"pairs": np.ones((2, 2))}, r"pairs must be .* or a \(4, 4\) matrix"),
            ({"absent": "drop"}, "absent must be one of"),
            ({"labels": [0, 1, 1, 2]}, "labels must be two or more different classes"),
        ],
    )
    def test_options_are_looked_at_before_the_scores(self, options, message):
        """Which may take hours."""
        y, _, _ = self.lazy()
        never = y.map_blocks(lambda block: 1 / 0, dtype=float, new_axis=1, chunks=(y.chunks[0], (4,)))
        with pytest.raises(ValueError, match=message):
            md.mauc_score(y, never, **options)

    def test_what_is_not_of_dask(self):
        with pytest.raises(ValueError, match="y_score must be a Dask array, data frame or series, got ndarray"):
            md.mauc_score(self.y, self.scores)

    def test_no_row(self):
        with pytest.raises(ValueError, match="y_true must not be empty"):
            md.mauc_score(da.zeros(0, chunks=1, dtype=int), da.zeros((0, 2), chunks=(1, 2)))
