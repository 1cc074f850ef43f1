"""Scores, matrices, intervals and comparisons against the definition, scikit-learn and themselves."""

import warnings

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from fuzz import definitions
from fuzz.draw import SCORES, problem
from mauc import compare_mauc, mauc_interval, mauc_score, pairwise_auc

KINDS = tuple(SCORES)


def run(rng: np.random.Generator) -> None:
    drawn = problem(rng, KINDS)
    y, scores, weight, pairs, _ = drawn
    n_classes = scores.shape[1]
    names = np.array([f"class {k}" for k in range(n_classes)])
    given = {"labels": names, "sample_weight": weight}
    matrix = pairwise_auc(names[y], scores, **given)
    expected = definitions.auc_matrix(y, scores, weight)
    np.testing.assert_allclose(matrix, expected.astype(float), rtol=0, atol=1e-13, err_msg="pairwise_auc")
    value = mauc_score(names[y], scores, pairs=pairs, absent="ignore", **given)
    true = float(definitions.mauc(y, scores, weight, pairs))
    assert abs(value - true) <= 1e-13, f"mauc_score {value!r}, by definition {true!r}"
    # One further check for each case, the expensive ones rarely.
    check = rng.choice(["none", "absent", "order", "interval", "comparison", "peer"], p=[0.4, 0.1, 0.1, 0.2, 0.1, 0.1])
    if check == "absent" and len(np.unique(y)) == n_classes:
        assert mauc_score(names[y], scores, pairs=pairs, **given) == value, "absent='raise' changed the score"
    elif check == "order":
        _same_in_any_order(rng, y, scores, weight, pairs, value)
    elif check == "interval":
        _interval(rng, y, scores, weight, pairs, value)
    elif check == "comparison":
        _comparison(rng, y, scores, weight, pairs)
    elif check == "peer" and weight is None and drawn.kind == "softmax" and len(np.unique(y)) == n_classes:
        _scikit_learn(y, scores)


def _same_in_any_order(rng, y, scores, weight, pairs, value):
    rows, columns = rng.permutation(len(y)), rng.permutation(scores.shape[1])
    moved = np.argsort(columns)[y][rows]
    again = mauc_score(
        moved,
        scores[rows][:, columns],
        labels=np.arange(scores.shape[1]),
        sample_weight=None if weight is None else weight[rows],
        pairs=pairs if isinstance(pairs, str) else pairs[columns][:, columns],
        absent="ignore",
    )
    assert abs(again - value) <= 1e-13, f"rows and columns in another order: {again!r}, before {value!r}"


def _groups(rng, y):
    """None, one for each row, a few, or a single one."""
    return [None, np.arange(len(y)), rng.integers(0, 4, len(y)), np.zeros(len(y))][int(rng.integers(4))]


def _interval(rng, y, scores, weight, pairs, value):
    given = {"pairs": pairs, "labels": np.arange(scores.shape[1]), "sample_weight": weight, "groups": _groups(rng, y)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        found = mauc_interval(y, scores, absent="ignore", **given)
    assert abs(found.score - value) <= 1e-13, f"the interval's score is {found.score!r}, the score {value!r}"
    if np.isnan(found.stderr):
        assert (np.bincount(y) == 1).any() or weight is not None, f"no interval: {found}"
        return
    assert 0.0 <= found.low <= found.score <= found.high <= 1.0, f"{found}"
    assert found.low < found.high, f"an interval without width: {found}"


def _comparison(rng, y, scores, weight, pairs):
    other = np.where(rng.random(scores.shape) < 0.3, rng.permutation(scores), scores)
    given = {"pairs": pairs, "labels": np.arange(scores.shape[1]), "sample_weight": weight, "absent": "ignore"}
    given["groups"] = _groups(rng, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        found, back = compare_mauc(y, scores, other, **given), compare_mauc(y, other, scores, **given)
        same = compare_mauc(y, scores, scores, **given)
    assert same.difference == 0.0, f"a model differs from itself: {same}"
    assert np.isnan(same.pvalue) or same.pvalue == 1.0, f"a model differs from itself: {same}"
    assert np.isclose(found.difference, -back.difference, atol=1e-13), f"{found} and the other way round {back}"
    if not np.isnan(found.pvalue):
        assert np.isclose(found.pvalue, back.pvalue), f"{found} and the other way round {back}"
        assert 0.0 < found.pvalue <= 1.0, f"{found}"
        assert found.low <= found.difference <= found.high, f"{found}"
        same = np.array_equal(other, scores)  # ties may be drawn for ties
        assert same or found.low < found.high, f"an interval without width: {found}"


def _scikit_learn(y, scores):
    if scores.shape[1] == 2:
        expected = roc_auc_score(y, scores[:, 1])
        assert abs(mauc_score(y, scores[:, 1]) - expected) <= 1e-12, f"scikit-learn has {expected!r}"
    else:
        expected = roc_auc_score(y, scores, multi_class="ovo")
        found = mauc_score(y, scores)
        assert abs(found - expected) <= 1e-12, f"mauc_score {found!r}, scikit-learn {expected!r}"
