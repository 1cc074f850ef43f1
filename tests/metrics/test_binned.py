"""Counts in bins: the score within its bound, the standard error of all rows, and states that add up."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from mauc import BinnedMAUC, mauc_interval, mauc_score, pairwise_auc

SHARES = [0.5, 0.3, 0.15, 0.05]


def simulated(kind, n=4000, seed=0, n_classes=4):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.array(SHARES[:n_classes]) / sum(SHARES[:n_classes]))
    logits = rng.normal(size=(n, n_classes)) + 1.5 * np.eye(n_classes)[y]
    softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    crowded = 1.0 / (1.0 + np.exp(-12.0 * logits))
    scores = {"softmax": softmax, "tied": np.round(softmax, 1), "crowded": crowded, "logits": 8.0 * logits}[kind]
    return y, scores.astype(np.float32 if seed % 2 else np.float64), rng.exponential(size=n)


def empty(kind, y, scores, bins):
    return BinnedMAUC(4, bins) if kind == "softmax" else BinnedMAUC.for_scores(y[:1500], scores[:1500], bins)


def errors(state, pairs="ovo"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the bins are too wide
        return state.interval(pairs=pairs)


@given(
    st.sampled_from(["softmax", "tied", "crowded", "logits"]),
    st.integers(0, 1000),
    st.sampled_from([16, 300, 65_536]),
    st.booleans(),
    st.sampled_from(["ovo", "ova"]),
)
@examples(25)
def test_the_score_is_within_its_bound(kind, seed, bins, weighted, pairs):
    y, scores, weight = simulated(kind, 600, seed)
    weight = weight if weighted else None
    state = empty(kind, y, scores, bins).update(y, scores, weight)
    exact = mauc_score(y, scores, pairs=pairs, sample_weight=weight)
    assert abs(state.score(pairs) - exact) <= state.error_bound(pairs) + 1e-12


@pytest.mark.parametrize("kind", ["softmax", "tied", "crowded", "logits"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fine_bins_give_score_matrix_and_interval_of_memory(kind, weighted):
    y, scores, weight = simulated(kind)
    weight = weight if weighted else None
    state = empty(kind, y, scores, 65_536).update(y, scores, weight)
    np.testing.assert_allclose(state.pairwise_auc(), pairwise_auc(y, scores, sample_weight=weight), rtol=0, atol=2e-4)
    for pairs in ("ovo", "ova"):
        expected, found = mauc_interval(y, scores, pairs=pairs, sample_weight=weight), errors(state, pairs)
        assert found.score == pytest.approx(expected.score, abs=2e-5)
        assert found.stderr == pytest.approx(expected.stderr, rel=2e-3)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=3e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_standard_error_needs_few_rows(weighted):
    """The kept rows tell the correlation of the columns alone; without any, the standard error is an upper bound."""
    y, scores, weight = simulated("softmax", 30_000)
    weight = weight if weighted else None
    expected = mauc_interval(y, scores, sample_weight=weight).stderr
    few = BinnedMAUC(4, sample_rows=1000).update(y, scores, weight)
    assert few.interval().stderr == pytest.approx(expected, rel=0.05)
    assert BinnedMAUC(4, sample_rows=0).update(y, scores).interval().stderr > mauc_interval(y, scores).stderr


def test_tied_numbers_have_bins_of_their_own():
    """A pair that is tied in the exact score is no error of the bins."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 2000)
    scores = np.where(rng.random((2000, 3)) < 0.5, np.eye(3)[y], rng.choice([0.0, 1.0, 0.3], (2000, 3)))
    state = BinnedMAUC.for_scores(y, scores, 64).update(y, scores)
    assert state.error_bound() == 0.0
    assert state.score() == pytest.approx(mauc_score(y, scores), abs=1e-14)
    assert BinnedMAUC(3, 4).update(y, scores).error_bound() > 0.1


def test_the_bound_of_crowded_scores_falls_with_quantiles():
    y, scores, _ = simulated("crowded", 20_000)
    equal, quantiles = BinnedMAUC(4), BinnedMAUC.for_scores(y[:10_000], scores[:10_000])
    for state in (equal, quantiles):
        state.update(y, scores)
    assert quantiles.error_bound() < 0.2 * equal.error_bound()


def test_wide_bins_are_told():
    y, scores, _ = simulated("softmax")
    with pytest.warns(UserWarning, match=r"more than a tenth of its standard error .*: use BinnedMAUC\.for_scores"):
        BinnedMAUC(4, 50).update(y, scores).interval()
    BinnedMAUC(4).update(y, scores).interval()


@pytest.mark.parametrize("weighted", [False, True])
def test_states_add_up(weighted):
    y, scores, weight = simulated("logits")
    weight = weight if weighted else np.ones(len(y))
    like = BinnedMAUC.for_scores(y[:500], scores[:500], 1024)
    whole = like.copy().update(y, scores, weight)
    days = [like.copy().update(y[k::7], scores[k::7], weight[k::7]) for k in range(7)]
    for together in (sum(days), days[0].copy().merge(sum(days[1:]))):
        assert together.n_rows == len(y)
        np.testing.assert_allclose(together.counts, whole.counts, rtol=1e-12)
        assert errors(together).stderr == pytest.approx(errors(whole).stderr, rel=1e-12)
    assert sum(days[-3:]).n_rows < whole.n_rows
    assert days[0].n_rows == len(y[0::7]), "adding changes no operand"
    assert like.n_rows == 0


def test_batches_of_any_size_give_the_same_counts():
    y, scores, _ = simulated("softmax")
    by_row = BinnedMAUC(4, 1024)
    for k in range(0, len(y), 3):
        by_row.update(y[k : k + 3], scores[k : k + 3])
    by_row.update([], np.zeros((0, 4)))
    np.testing.assert_array_equal(by_row.counts, BinnedMAUC(4, 1024).update(y, scores).counts)
    assert by_row.counts.dtype == np.int64


@pytest.mark.parametrize("kind", ["softmax", "logits"])
def test_bytes(kind):
    y, scores, weight = simulated(kind)
    names = np.array(["ash", "elm", "fir", "oak"])
    like = BinnedMAUC(4, 512, labels=names)
    if kind == "logits":
        like = BinnedMAUC.for_scores(names[y], scores, 512)
    state = like.update(names[y], scores, weight)
    again = BinnedMAUC.from_bytes(state.to_bytes())
    assert errors(again) == errors(state)
    assert errors(again + state).score == pytest.approx(state.score(), abs=1e-14)
    assert again.labels.tolist() == names.tolist()


def test_bytes_of_others_are_refused():
    state = BinnedMAUC(3, 16).update([0, 1, 2], np.eye(3))
    data = state.to_bytes()
    for bad in (b"", b"pickle", data[:-40], b"PK" + data[2:50]):
        with pytest.raises(
            ValueError, match=r"data must be a BinnedMAUC, got .*: pass the bytes of BinnedMAUC.to_bytes"
        ):
            BinnedMAUC.from_bytes(bad)
    state.counts = -state.counts
    with pytest.raises(ValueError, match="data must be a BinnedMAUC, got arrays that do not fit together"):
        BinnedMAUC.from_bytes(state.to_bytes())


def test_absent_classes():
    y, scores, _ = simulated("softmax")
    kept = y != 2
    state = BinnedMAUC(4).update(y[kept], scores[kept])
    with pytest.raises(ValueError, match="y_true must hold every class of labels, got no sample of 2"):
        state.score()
    exact = mauc_score(y[kept], scores[kept], labels=np.arange(4), absent="ignore")
    assert state.score(absent="ignore") == pytest.approx(exact, abs=2e-5)
    assert np.isnan(state.pairwise_auc()[2]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"y_score": np.full((3, 3), 2.0)},
            "y_score must be from 0 to 1 for equal bins, got 2 to 2: pass probabilities",
        ),
        ({"y_score": np.full((3, 3), np.nan)}, "y_score must be finite"),
        ({"y_true": [0, 1, 7]}, "labels must name every class of y_true"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must not be negative"),
        ({"sample_weight": [1.0, 1e200, 1.0]}, "sample_weight must be 0 or from 1e-100 to 1e100"),
    ],
)
def test_bad_batches(change, message):
    state = BinnedMAUC(3, 16)
    with pytest.raises(ValueError, match=re.escape(message)):
        state.update(**{"y_true": [0, 1, 2], "y_score": np.eye(3), **change})
    assert state.n_rows == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 1}, "n_classes must be a whole number of at least 2, got 1"),
        ({"bins": 1}, "bins must be a whole number of at least 2, got 1"),
        ({"labels": ["a", "b"]}, "labels must name every class, got 2 for n_classes=3: pass one label per column"),
        ({"edges": [0.5, 0.1]}, "edges must be increasing numbers, got shape (3, 2): pass the lower ends"),
        ({"edges": [0.5, np.nan]}, "edges must be increasing numbers, got shape (3, 2): pass the lower ends"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        BinnedMAUC(**{"n_classes": 3, **arguments})


def test_bad_sums():
    state = BinnedMAUC(3, 16)
    with pytest.raises(ValueError, match="other must be a BinnedMAUC with the same classes and bins, got BinnedMAUC"):
        state.merge(BinnedMAUC(3, 32))
    with pytest.raises(ValueError, match="counts must count every row in every column, got 1 and 0 of class 0 in two"):
        state.add_counts([0], [1], [2], [1])
    with pytest.raises(ValueError, match="bins must be whole numbers from 0 to 15, got 16 to 16"):
        state.add_counts([0], [1], [16], [1])
    with pytest.raises(ValueError, match="column must hold classes of labels, got 5: choose from 0, 1, 2"):
        state.add_counts([0], [5], [1], [1])
    with pytest.raises(ValueError, match="counts must be whole numbers of rows"):
        state.add_counts([0], [0], [1], [-1])
    with pytest.raises(TypeError):
        state + 1


def check_engine(found, y, scores):
    """Counts of another engine against those of the same rows here."""
    expected = BinnedMAUC(4, 1024).update(y, scores)
    np.testing.assert_array_equal(found.counts, expected.counts)
    assert found.score() == expected.score()
    assert errors(found).stderr >= errors(expected).stderr - 1e-15


def test_duckdb():
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    y, scores, _ = simulated("softmax")
    rows = pd.DataFrame(scores, columns=list("0123")).assign(y=y)  # noqa: F841
    sql = """
        SELECT y, "column", least(floor(score * 1024), 1023)::INT AS bin, count(*) AS n
        FROM (UNPIVOT rows ON "0", "1", "2", "3" INTO NAME "column" VALUE score)
        GROUP BY ALL
    """
    counts = duckdb.sql(sql).fetchnumpy()
    state = BinnedMAUC(4, 1024).add_counts(counts["y"], counts["column"].astype(int), counts["bin"], counts["n"])
    check_engine(state, y, scores)


def test_polars():
    pl = pytest.importorskip("polars")
    y, scores, _ = simulated("softmax")
    rows = pl.DataFrame(scores, schema=list("0123")).with_columns(y=pl.Series(y)).lazy()
    counts = (
        rows.unpivot(index="y", variable_name="column", value_name="score")
        .with_columns(bin=(pl.col("score") * 1024).floor().clip(0, 1023).cast(pl.Int64))
        .group_by("y", "column", "bin")
        .agg(n=pl.len())
        .collect()
    )
    state = BinnedMAUC(4, 1024).add_counts(counts["y"], counts["column"].cast(int), counts["bin"], counts["n"])
    check_engine(state, y, scores)


def test_an_engine_that_maps_partitions_sends_bytes():
    """The recipe for mapInPandas of Spark, whose function turns frames into frames of bytes."""
    pd = pytest.importorskip("pandas")
    y, scores, _ = simulated("softmax")
    frame = pd.DataFrame(scores, columns=list("0123")).assign(y=y)

    def count(frames):
        state = BinnedMAUC(4, 1024)
        for rows in frames:
            state.update(rows["y"], rows[["0", "1", "2", "3"]])
        yield pd.DataFrame({"state": [state.to_bytes()]})

    parts = [count(iter([frame[k : k + 500], frame[k + 500 : k + 1000]])) for k in range(0, 4000, 1000)]
    states = pd.concat([rows for part in parts for rows in part])["state"]
    check_engine(sum(BinnedMAUC.from_bytes(data) for data in states), y, scores)
