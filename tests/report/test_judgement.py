"""The numbers of a report are those of the metrics."""

import dataclasses
import warnings

import numpy as np
import pytest
from array_rows import ArrayRows
from scipy import stats

from mauc import Interval, compare_mauc, mauc_interval, pairwise_auc
from mauc.metrics.uncertainty import holm
from mauc.report import judge
from mauc.report.advice import advice
from mauc.report.judgement import Guess, judge_rows


def test_numbers_are_those_of_the_metrics(scored):
    y, models, names = scored([10, 60, 25], models=3)
    found = judge(y, models, y_train=np.repeat(["a", "b"], [9, 1]))
    assert found.labels == ("class 001", "class 002", "class 000"), "by falling frequency"
    assert found.counts.tolist() == [60, 25, 10]
    order = [1, 2, 0]
    for model, scores in zip(found.models, models.values(), strict=True):
        assert model.mauc.score == pytest.approx(mauc_interval(y, scores).score, abs=1e-12)
        assert model.ova.low == pytest.approx(mauc_interval(y, scores, pairs="ova").low)
        np.testing.assert_allclose(model.matrix, pairwise_auc(y, scores)[np.ix_(order, order)])
        assert model.accuracy == np.mean(names[scores.argmax(axis=1)] == y)
    for test, name in zip(found.tests, list(models)[1:], strict=True):
        expected = compare_mauc(y, models[name], models["model a"])
        assert test.pvalue == pytest.approx(expected.pvalue)
        assert test.holm >= test.pvalue
    assert found.training_counts == {"a": 9, "b": 1}


def test_identical_scores_differ_by_exactly_nothing(scored):
    y, models, _ = scored([10, 60, 25])
    (scores,) = models.values()
    same, alike = judge(y, {"a": scores, "b": scores.copy(), "c": 2.0 * scores}).tests
    assert (same.low, same.high, same.stderr, same.pvalue) == (0.0, 0.0, 0.0, 1.0)
    assert same.holm == 1.0
    assert alike.low < alike.difference == 0.0, "other scores may differ on other rows"


def test_constant_scores_have_no_interval(scored):
    y, models, _ = scored([10, 60, 25])
    (scores,) = models.values()
    constant = np.tile([0.5, 0.3, 0.2], (len(y), 1))
    found = judge(y, {"a": scores, "b": constant})
    codes = np.array([found.labels.index(name) for name in y])
    in_parts = judge_rows({"b": ArrayRows(codes, constant)}, found.labels, most_rows=20)
    assert [model.mauc for model in (found.models[1], in_parts.headline)] == [Interval(0.5, 0.5, 0.5, 0.0)] * 2
    for alone in (judge(y, constant), in_parts):
        assert {pair.interval for pair in (*alone.worst, *alone.rarest)} == {Interval(0.5, 0.5, 0.5, 0.0)}


def test_a_pair_of_constant_scores_has_no_interval(scored):
    """Two classes that a model never tells apart, while the third has scores of its own."""
    y, models, _ = scored([10, 60, 25])
    (scores,) = models.values()
    one, _, other = names = np.unique(y).tolist()
    scores = scores.copy()
    scores[:, [0, 2]] = 0.2
    in_memory = judge(y, scores, labels=names)
    codes = np.array([in_memory.labels.index(name) for name in y])
    order = [names.index(label) for label in in_memory.labels]
    in_parts = judge_rows({"model": ArrayRows(codes, scores[:, order])}, in_memory.labels, most_rows=60)
    for found in (in_memory, in_parts):
        constant = {frozenset(found.labels[k] for k in (p.i, p.j)): p.interval.stderr == 0.0 for p in found.worst}
        assert constant == {pair: pair == {one, other} for pair in constant}
        assert len(constant) == 3


def test_pairs_are_listed_by_rarity_and_by_what_their_intervals_show(scored):
    y, models, _ = scored([40, 5, 9, 3, 1, 22])
    found = judge(y, models)
    products = [found.counts[p.i] * found.counts[p.j] for p in found.rarest]
    assert products == sorted(products)
    assert all(found.counts[p.i] <= found.counts[p.j] for p in found.rarest)
    ends = [p.interval.high for p in found.worst]
    assert len(ends) == 15
    assert ends == sorted(ends)
    first = found.worst[0]
    assert first.interval.score == pytest.approx((first.auc_ij + first.auc_ji) / 2)
    assert judge(y, models, listed=4).worst == found.worst[:4]
    assert judge(y, models, listed=0).worst == ()
    assert len(judge(y, models, listed=2).rarest) == 2


def test_pairs_that_the_scores_choose_have_simultaneous_intervals(scored):
    y, models, _ = scored([40, 30, 20, 10])
    found = judge(y, models)
    alone = {(p.i, p.j): p.interval for p in judge(y, models, level=0.95 ** (1 / 6)).rarest}
    assert {(p.i, p.j): p.interval for p in found.worst} == alone
    two = judge(*scored([40, 30])[:2])
    assert two.worst == two.rarest, "a single pair is not chosen"


def test_folds_have_a_larger_variance(scored):
    """By the factor of Nadeau and Bengio, 1 + K / (K - 1), in every interval and test of an AUC."""
    y, models, _ = scored([60, 30, 20], models=2)
    alone, crossed = judge(y, models), judge(y, models, folds=5)
    for one, other in (
        (alone.headline.mauc, crossed.headline.mauc),
        (alone.headline.ova, crossed.headline.ova),
        (alone.rarest[0].interval, crossed.rarest[0].interval),
        (alone.further.classes[0].auc, crossed.further.classes[0].auc),
        (alone.tests[0], crossed.tests[0]),
    ):
        assert other.stderr == pytest.approx(1.5 * one.stderr, rel=0.05)
        assert other.high - other.low > 1.2 * (one.high - one.low)
    assert crossed.tests[0].pvalue > alone.tests[0].pvalue
    assert any("5 models that share training rows" in note for note in crossed.notes)
    with pytest.raises(ValueError, match="folds must be a whole number of at least 2, got 1"):
        judge(y, models, folds=1)


def test_the_weakest_pair_is_covered():
    """All pairs are equal; the interval of the one that looks worst should hold the truth."""
    y, lead, covered = np.repeat(np.arange(8), 20), 1.2, 0
    truth = stats.norm.cdf(lead / np.sqrt(2))
    for seed in range(60):
        scores = np.random.default_rng(seed).normal(size=(160, 8)) + lead * np.eye(8)[y]
        worst = judge(y, scores, listed=1).worst[0].interval
        covered += worst.low <= truth <= worst.high
    assert covered >= 53


def test_a_class_of_one_row_is_not_the_worst_for_that():
    y = np.repeat(["a", "b", "c"], [60, 60, 1])
    scores = np.random.default_rng(0).normal(size=(121, 3))
    scores[-1] = [9.0, 9.0, -9.0]  # its only row is ranked last against every other
    found = judge(y, scores, labels=["a", "b", "c"])
    assert found.worst[0].interval.score > 0.3
    assert {found.labels[found.worst[0].i], found.labels[found.worst[0].j]} == {"a", "b"}
    assert min(pair.interval.score for pair in found.worst[1:]) == 0.0


def test_holm():
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(holm(np.array([0.6, np.nan, 0.01])), [0.6, np.nan, 0.02])
    assert len(holm(np.array([]))) == 0


def test_notes(scored):
    y, models, names = scored([30, 9, 1])
    found = judge(y, models)
    assert 0 < found.headline.mauc.low < found.headline.mauc.high < 1
    assert found.notes[0].startswith("Class class 002 has a single test row: its AUCs and their intervals are rough.")
    perfect = judge(y[:39], (y[:39, None] == names[:2]).astype(float))
    assert "Class class 001 has 9 test rows, none ranked low" in perfect.notes[0]
    assert "Every pair is ranked perfectly" in perfect.notes[1]
    assert perfect.headline.mauc.low < perfect.headline.mauc.high == 1
    wrong = judge(y[:39], (y[:39, None] != names[:2]).astype(float))
    assert "Accuracy 0.000 is below 0.769, that of always guessing class 000" in wrong.notes[-1]
    random = judge(y, np.random.default_rng(0).normal(size=(len(y), len(names))))
    assert "The interval of the MAUC contains 0.5: these scores may rank no better than chance." in random.notes
    assert advice(random) == []
    few = judge(*scored([30, 4, 3])[:2])
    assert few.notes[0].startswith("2 classes have fewer than 5 test rows (class 001, class 002)")
    assert judge(*scored([30, 20])[:2]).notes == ()


def test_cross_validation_is_suggested_where_it_would_help(scored):
    y, models, names = scored([30, 20, 3])
    split, cv = (judge(y, models, y_train=np.repeat(names, counts)) for counts in ([90, 60, 9], [30, 20, 3]))
    assert split.notes[0].startswith("Class class 002 has 3 test rows")
    assert split.notes[0].endswith("their intervals are rough. Cross-validation (mauc fit --cv 5) tests on all rows.")
    assert "--cv" not in cv.notes[0]


def test_always_guessing_the_largest_class(scored):
    y, models, names = scored([30, 50, 20])
    found = judge(y, models, y_train=np.repeat(names, [60, 20, 20]))
    assert found.guess == Guess("class 000", 0.3, pytest.approx(1 / 3))
    assert judge(y, models).guess.label == "class 001", "of the test rows, where no training rows are given"
    absent = judge(y, models, y_train=np.repeat([*names, "class 003"], [6, 2, 2, 90]))
    assert absent.guess == found.guess, "a class without test rows says nothing about these rows"


def test_predicted_classes(scored):
    y, models, names = scored([30, 50, 20], models=2)
    predicted = np.random.default_rng(0).choice([*names, "class 003"], 100)
    found = judge(y, models, y_pred=predicted)
    assert found.headline.accuracy == pytest.approx(np.mean(predicted == y))
    assert found.headline.balanced_accuracy == pytest.approx(np.mean([np.mean(predicted[y == c] == c) for c in names]))
    first, second = found.further.decisions
    assert first.accuracy.score == pytest.approx(found.headline.accuracy)
    assert first.confusion.sum() == np.sum(predicted != "class 003")
    assert found.further.classes[0].recall.score == pytest.approx(np.mean(predicted[y == names[1]] == names[1]))
    plain = judge(y, models)
    assert second.accuracy.score == plain.headline.accuracy
    assert found.models[1].accuracy == plain.models[1].accuracy
    with pytest.raises(ValueError, match=r"y_pred must have the shape \(100,\), got \(3,\)"):
        judge(y, models, y_pred=names)


def test_pairs_have_the_interval_of_their_rows(scored):
    y, models, _ = scored([40, 5, 9, 1])
    (scores,) = models.values()
    found = judge(y, scores)
    for pair in found.rarest:
        names = sorted([found.labels[pair.i], found.labels[pair.j]])
        rows, columns = np.isin(y, names), [int(name[-3:]) for name in names]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "class class 003 has a single sample")
            expected = mauc_interval(y[rows], scores[rows][:, columns])
        np.testing.assert_allclose(dataclasses.astuple(pair.interval), dataclasses.astuple(expected), rtol=1e-12)


def test_classes_without_rows_are_left_out(scored):
    y, models, names = scored([30, 0, 20])
    found = judge(y, models, labels=names)
    assert found.labels == ("class 000", "class 002")
    assert found.absent == ("class 001",)
    scores = (y[:, None] == names).astype(float)
    scores[:, 1] = 2.0
    assert judge(y, scores, labels=names).headline.accuracy == 1.0, "a class without rows takes none"


def test_what_cannot_be_judged(scored):
    y, models, names = scored([30, 0, 0])
    with pytest.raises(ValueError, match="y_true must hold two classes or more, got only the class class 000"):
        judge(y, models, labels=names)
    with pytest.raises(ValueError, match="y_score must hold at least one model"):
        judge(y, {})
    y, models, _ = scored([30, 20])
    with pytest.raises(ValueError, match="model 'bad': y_score must have one row per sample"):
        judge(y, {**models, "bad": np.zeros((3, 2))})
