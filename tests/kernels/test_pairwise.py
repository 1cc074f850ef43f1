"""The oracle itself, against loops written from spec §2 and §3."""

import numpy as np
import pytest
from cases import every_case, settings
from oracles import pairwise_auc

from mauc.partition import ClassPartition


def class_pair_weights(y, u, pairs, n_classes):
    """``v_ij`` of spec §1, over the classes present."""
    total = [sum(u[n] for n in range(len(y)) if y[n] == i) for i in range(n_classes)]
    here = [i for i in range(n_classes) if i in y]
    v = {}
    for i in here:
        for j in here:
            if i != j:
                p_i, p_j = total[i] / sum(total), total[j] / sum(total)
                v[i, j] = {"ovo": 1.0, "ova": p_j / (1.0 - p_i)}[pairs] if isinstance(pairs, str) else pairs[i][j]
    return {pair: weight / sum(v.values()) for pair, weight in v.items()}, total


def risk_by_loops(surrogate, y, scores, u, pairs):
    def at(function, t):
        return float(function(np.array([t]))[0])

    n_samples, n_classes = len(scores), len(scores[0])
    u = [1.0] * n_samples if u is None else list(u)
    v, total = class_pair_weights(y, u, pairs, n_classes)
    value, gradient = 0.0, [[0.0] * n_classes for _ in range(n_samples)]
    for i in range(n_classes):
        for j in range(n_classes):
            for m in range(n_samples):
                for n in range(n_samples):
                    if i != j and y[m] == i and y[n] == j:
                        t = float(scores[m][i]) - float(scores[n][i])
                        weight = v[i, j] * u[m] / total[i] * u[n] / total[j]
                        value += weight * at(surrogate.loss, t)
                        gradient[m][i] += weight * at(surrogate.derivative, t)
                        gradient[n][i] -= weight * at(surrogate.derivative, t)
    return value, np.array(gradient)


@every_case
def test_pairwise_risk_is_the_definition(case):
    for what, y, scores, weight, pairs in settings("ties", 4, n_samples=9):
        got = case.risk(scheme="pairwise", pairs=pairs).value_and_gradient(y, scores, weight)
        expected = risk_by_loops(case.build(), y, scores, weight, pairs)
        assert got[0] == pytest.approx(expected[0], rel=1e-13), what
        np.testing.assert_allclose(got[1], expected[1], atol=1e-13 * np.abs(expected[1]).max(), err_msg=what)


def auc_by_loops(y, scores, u, i, j):
    """Mean of ``[F_mi > F_ni] + ½ [F_mi = F_ni]``; NaN where a class is absent."""
    won = total = 0.0
    for m in range(len(y)):
        for n in range(len(y)):
            if y[m] == i and y[n] == j:
                a, b = scores[m][i], scores[n][i]
                won += u[m] * u[n] * (1.0 if a > b else 0.5 if a == b else 0.0)
                total += u[m] * u[n]
    return won / total if i != j and total else np.nan


@pytest.mark.parametrize("kind", ["ties", "float32"])
def test_pairwise_auc_is_the_definition(kind):
    for what, y, scores, weight, _ in settings(kind, 4, n_samples=9):
        partition = ClassPartition(y, 4, weight)
        got = pairwise_auc(partition.problem(scores))
        u = np.ones(9) if weight is None else weight
        expected = [[auc_by_loops(y, scores, u, i, j) for j in range(4)] for i in range(4)]
        np.testing.assert_allclose(got, expected, rtol=1e-14, err_msg=what)
