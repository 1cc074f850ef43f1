"""A judgement of scores read in parts: that of scores in memory, or of a sample with the exact scores of all rows."""

import numpy as np
import pytest
from array_rows import ArrayRows, make_rows

from mauc.report import judge
from mauc.report.judgement import judge_rows
from mauc.report.pairs import pair_data


def by_frequency(codes, *scores):
    """Rows with classes by falling frequency, and the order of the classes."""
    order = np.argsort(-np.bincount(codes), kind="stable")
    return order, [ArrayRows(np.argsort(order)[codes], each[:, order]) for each in scores]


def test_few_rows_are_judged_as_in_memory():
    codes, scores = make_rows(3, n_classes=6, ties=True)
    labels = [f"class {k}" for k in range(6)]
    expected = judge(np.array(labels)[codes], scores, labels=labels, listed=3)
    order, (rows,) = by_frequency(codes, scores)
    found = judge_rows({"model": rows}, [labels[k] for k in order], listed=3)
    assert pair_data(found) == pair_data(expected)
    assert found.notes == expected.notes
    assert found.headline.mauc == expected.headline.mauc


def test_a_sample_gives_exact_scores_and_nearly_the_same_intervals():
    codes, scores = make_rows(4, n=60_000, n_classes=4)
    others = scores + np.random.default_rng(0).normal(scale=0.5, size=scores.shape)
    order, (a, b) = by_frequency(codes, scores, others)
    names = [f"class {k}" for k in order]
    expected = judge_rows({"a": a, "b": b}, names)
    found = judge_rows({"a": a, "b": b}, names, most_rows=20_000)
    assert found.n_rows == 60_000
    assert len(found.codes) == pytest.approx(20_000, rel=0.01)
    assert "curves come from a sample of" in found.notes[-1]
    for ours, theirs in zip(found.models, expected.models, strict=True):
        np.testing.assert_array_equal(ours.matrix, theirs.matrix)
        assert ours.accuracy == theirs.accuracy
        assert ours.balanced_accuracy == theirs.balanced_accuracy
        for one, other in ((ours.mauc, theirs.mauc), (ours.ova, theirs.ova)):
            assert one.score == other.score
            assert one.stderr == pytest.approx(other.stderr, rel=0.02)
    pairs, same = ({(p.i, p.j): p.interval for p in each.rarest} for each in (found, expected))
    for pair, interval in pairs.items():
        assert interval.score == same[pair].score
        assert interval.stderr == pytest.approx(same[pair].stderr, rel=0.05)
    (ours,), (theirs,) = found.tests, expected.tests
    assert ours.difference == theirs.difference
    assert ours.stderr == pytest.approx(theirs.stderr, rel=0.02)


@pytest.mark.parametrize("most_rows", [1_000, 100])
def test_identical_scores_differ_by_exactly_nothing(most_rows):
    codes, scores = make_rows(3, n_classes=4, ties=True)
    order, (a, b) = by_frequency(codes, scores, scores.copy())
    (test,) = judge_rows({"a": a, "b": b}, [f"class {k}" for k in order], listed=2, most_rows=most_rows).tests
    assert (test.low, test.high, test.stderr, test.holm) == (0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("differing", [5, 40])
def test_models_that_differ_in_few_rows_are_seldom_told_apart(differing):
    """Most of these rows are not in the sample of 200; the difference of all rows is 0 in the mean."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], [2_000, 1_000])
    found = []
    for _ in range(40):
        scores = rng.normal(size=(3_000, 2)) + np.eye(2)[codes]
        other = scores.copy()
        other[rng.choice(3_000, differing, replace=False)] = rng.normal(size=(differing, 2))
        swap = rng.random(3_000) < 0.5
        scores[swap], other[swap] = other[swap], scores[swap]
        (test,) = judge_rows(
            {"a": ArrayRows(codes, scores, 3_000), "b": ArrayRows(codes, other, 3_000)}, ["a", "b"], most_rows=200
        ).tests
        found.append(test.pvalue)
    assert np.mean(np.array(found) < 0.05) <= 0.05


def test_the_interval_of_a_pair_counts_errors_that_the_sample_does_not_have():
    """One row of each class in 250 is mislabelled; the sample has 30 rows of each."""
    codes, scores = np.repeat([0, 1], 2_000), np.random.default_rng(0).normal(size=(4_000, 2))
    scores += 10.0 * np.eye(2)[codes]
    scores[::250] = scores[::250, ::-1]
    whole, sample = (
        judge_rows({"a": ArrayRows(codes, scores, 4_000)}, ["a", "b"], most_rows=n).worst[0].interval
        for n in (4_000, 60)
    )
    assert sample.score == whole.score
    assert whole.stderr < sample.stderr < 2.0 * whole.stderr


@pytest.mark.parametrize("most_rows", [10_000, 500])
def test_given_predictions_decide_the_accuracy_of_the_first_model(most_rows):
    codes, scores = make_rows(5, n=3_000, n_classes=4)
    order, (a, b) = by_frequency(codes, scores, -scores)
    predicted = np.where(np.arange(3_000) % 3 == 0, -1, a.codes.astype(np.int64))
    found = judge_rows({"a": a, "b": b}, [f"class {k}" for k in order], predicted=predicted, most_rows=most_rows)
    assert found.models[0].accuracy == (predicted == a.codes).mean()
    assert found.models[1].accuracy == (b.scores.argmax(axis=1) == b.codes).mean()


def test_groups_and_subgroups_take_all_rows():
    codes, scores = make_rows(6, n=3_000, n_classes=3)
    order, (rows,) = by_frequency(codes, scores)
    names = [f"class {k}" for k in order]
    keys = {"groups": np.arange(3_000) // 4, "subgroups": np.arange(3_000) % 2}
    found = judge_rows({"model": rows}, names, **keys, most_rows=100)
    expected = judge(np.array(names)[rows.codes], rows.scores, labels=names, **keys)
    assert found.headline.mauc == expected.headline.mauc
    assert found.subgroups == expected.subgroups
