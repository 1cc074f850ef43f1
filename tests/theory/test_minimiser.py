"""Theorem 3 where the distribution is known: counterexamples on [0, 1], what holds instead, the α that is needed."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import softmax

from mauc.log_loss import prior_ratios
from mauc.surrogates import CustomSurrogate, get_surrogate
from mauc.theory import (
    bayes_scores,
    bernstein,
    consistency_report,
    largest_alpha,
    likelihoods,
    ova_weights,
    risk_minimiser,
    smallest_alpha,
)

WIDE = (1e-3, 0.01, 1.0, 100.0, 1e3)
COROLLARY_1 = ("squared", "exponential", "logistic", "q_hinge", "generalized_hinge", "distance_weighted")


def weighted_auc(f, g, v):
    """Σ v_ij P(f_i(x) > f_i(x')) + ½ P(=), as it is written."""
    total = 0.0
    for i in range(g.shape[1]):
        t = f[:, i][:, None] - f[:, i]
        won = (t > 1e-9) + 0.5 * (np.abs(t) <= 1e-9)
        total += sum(v[i, j] * g[:, i] @ won @ g[:, j] for j in range(g.shape[1]) if j != i)
    return total


@pytest.mark.parametrize(
    ("name", "ratios", "reached", "best"),
    [
        ("logistic", (0.2, 0.5, 1.0, 2.0, 5.0), 0.7400, 0.7667),
        ("exponential", (0.05, 0.2, 1.0, 5.0, 20.0), 0.8771, 0.8962),
        *((name, WIDE, 0.97477, 0.97619) for name in COROLLARY_1),
    ],
)
def test_the_condition_is_met_and_the_minimiser_over_the_unit_interval_does_not_rank(name, ratios, reached, best):
    """Theorem 3 as printed fails: its proof sets derivatives to 0 at the ends of [0, 1]."""
    alpha = {} if name == "distance_weighted" else {"alpha": 1.0}
    report = consistency_report(name, **alpha)
    assert report.satisfied
    assert report.consistent
    found = risk_minimiser(name, likelihoods(ratios), "unit", **alpha)
    assert found.scores[:, 0] == pytest.approx([0, 0, 0.5, 1, 1], abs=1e-7)
    assert found.mauc == pytest.approx(reached, abs=6e-5)
    assert found.bayes_mauc == pytest.approx(best, abs=6e-5)
    assert 0 <= found.excess < 1e-9, "the programme is solved"
    assert risk_minimiser(name, likelihoods(ratios)).optimal, "free scores rank"


@pytest.mark.parametrize("scores", ["unit", "softmax"])
def test_the_programmes_find_the_least_risk(scores):
    """No step that stays in the set lowers it: a random point of the set, from the minimiser towards it."""
    rng = np.random.default_rng(0)
    g = rng.dirichlet(np.ones(6), 3).T
    ell = get_surrogate("exponential", alpha=2.0)
    found = risk_minimiser(ell, g, scores)

    def risk(f):
        t = f[:, None] - f
        others = (g.sum(axis=1, keepdims=True) - g) / 2
        return np.einsum("xi,yi,xyi->", g, others, ell.loss(t))

    least = risk(found.scores)
    for _ in range(200):
        other = rng.dirichlet(np.ones(3) * 0.3, 6) if scores == "softmax" else rng.random((6, 3)).round()
        assert risk(found.scores + 1e-4 * (other - found.scores)) >= least - 1e-13


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 3.0])
def test_squared_in_closed_form(alpha):
    """f = const + 2 α u / (1 + k), u = g / (g + h), k = E_g u − E_h u: increasing in the ratio for every α."""
    g, h = np.random.default_rng(1).dirichlet(np.ones(7), 2)
    u = g / (g + h)
    k = g @ u - h @ u
    found = risk_minimiser("squared", np.column_stack([g, h]), alpha=alpha).scores[:, 0]
    assert found - found[0] == pytest.approx(2 * alpha * (u - u[0]) / (1 + k), abs=1e-6)


@pytest.mark.parametrize(("name", "factor"), [("exponential", 0.5), ("logistic", 1.0)])
def test_exponential_and_logistic_in_closed_form(name, factor):
    g, h = np.random.default_rng(2).dirichlet(np.ones(6), 2)
    found = risk_minimiser(name, np.column_stack([g, h]), alpha=1.7).scores[:, 0]
    log_ratio = np.log(g / h)
    assert found - found[0] == pytest.approx(factor * (log_ratio - log_ratio[0]) / 1.7, abs=1e-6)


@pytest.mark.parametrize(("name", "wide"), [("exponential", 400.0), ("logistic", 25.0), ("squared", 1e4)])
def test_the_alpha_is_sharp(name, wide):
    """At it the minimiser over [0, 1] ranks on every problem tried; just beyond, ties appear on some."""
    least, most = smallest_alpha(name, wide), largest_alpha(name, wide)
    right, wrong = (1.001 * least, 0.98 * least) if least > 0 else (0.999 * most, 1.02 * most)
    rng = np.random.default_rng(3)
    for _ in range(15):
        ratios = np.exp(np.log(wide) * np.concatenate([[-0.5, 0.5], rng.uniform(-0.5, 0.5, 4)]))
        weights = rng.dirichlet(np.ones(6) * 0.3) + 1e-3
        assert risk_minimiser(name, likelihoods(ratios, weights), "unit", alpha=right).optimal
    assert consistency_report(name, "unit", ratio=wide, alpha=right).consistent
    report = consistency_report(name, "unit", ratio=wide, alpha=wrong)
    assert report.consistent is False
    assert not report.counterexample.optimal
    assert report.verdict.smallest_alpha == least
    assert report.verdict.largest_alpha == most


def test_alpha_of_one_problem():
    both = likelihoods([0.3, 0.8, 1.0, 4.0])
    for name in ("exponential", "logistic"):
        least = smallest_alpha(name, 4.0 / 0.3)
        assert risk_minimiser(name, both, alpha=least).spread == pytest.approx(1.0, abs=1e-6)
        assert largest_alpha(name, 4.0 / 0.3) == math.inf
    assert risk_minimiser("squared", both, alpha=largest_alpha("squared", 4.0 / 0.3)).spread < 1.0
    assert largest_alpha("squared", 1.0) == math.inf


def test_a_small_margin_is_not_a_tie():
    """Scores that differ by a hundred thousandth of the interval are different where the whole column is as narrow."""
    both = likelihoods([0.5, 0.99, 1.0, 1.01, 2.0])
    for alpha in (1e-3, 1.0):
        assert risk_minimiser("q_hinge", both, "unit", alpha=alpha, q=3.0).optimal
    assert consistency_report("q_hinge", "unit", alpha=0.01, ratio=100.0).counterexample is None


def test_no_alpha_will_do():
    assert smallest_alpha("exponential", math.inf) == math.inf
    for scores in ("unbounded", "unit", "sigmoid", "softmax"):
        report = consistency_report("hinge", scores, alpha=0.3)
        assert report.consistent is False
        assert report.counterexample.bayes_mauc > report.counterexample.mauc + 1e-3


@pytest.mark.parametrize("gap", [1e-2, 1e-4])
def test_the_hinge_ties_for_certain(gap):
    """It is not one minimiser of several: scores in the right order, however close, have a larger risk."""
    found = consistency_report("hinge", alpha=1.0).counterexample
    g, n = found.likelihoods, len(found.likelihoods)
    f = found.scores[:, 0]
    least = g[:, 0] @ np.maximum(1.0 - (f[:, None] - f), 0.0) @ g[:, 1]
    # 1 − (f(x) − f(x')) <= value and f(x) + gap <= f of the next ratio
    differences = np.kron(np.ones((n, 1)), np.eye(n)) - np.kron(np.eye(n), np.ones((n, 1)))
    upper = np.vstack(
        [np.hstack([differences, -np.eye(n * n)]), np.eye(n - 1, n + n * n) - np.eye(n - 1, n + n * n, 1)]
    )
    limits = np.concatenate([-np.ones(n * n), np.full(n - 1, -gap)])
    cost = np.concatenate([np.zeros(n), np.outer(g[:, 0], g[:, 1]).ravel()])
    ordered = linprog(cost, upper, limits, bounds=[(0, 0)] + [(None, None)] * (n - 1) + [(0, None)] * (n * n))
    assert ordered.fun > least + 0.01 * gap


@pytest.mark.parametrize("scores", ["unit", "sigmoid"])
def test_reports_on_the_unit_interval(scores):
    assert consistency_report("squared", scores, alpha=0.5).consistent, "although it rises for t > ½"
    assert not consistency_report("squared", scores, alpha=0.5).satisfied
    for name in COROLLARY_1:
        report = consistency_report(name, scores)
        assert report.satisfied
        assert report.consistent is False
        assert not report.counterexample.optimal
        assert f"{scores} scores: not consistent" in str(report)
    assert consistency_report("exponential", scores, ratio=7.0).consistent
    own = CustomSurrogate(lambda t: np.exp(-t), lambda t: -np.exp(-t))
    assert consistency_report(own, scores, ratio=7.0).consistent is None
    assert consistency_report(bernstein("logistic", 1), scores).consistent is False


@pytest.mark.parametrize("name", COROLLARY_1)
def test_softmax_ties_the_columns(name):
    """Three classes; α is right for [0, 1], so it is not the ends of the interval."""
    options = {"exponential": {"alpha": 10.0}, "logistic": {"alpha": 20.0}, "distance_weighted": {}}
    report = consistency_report(name, "softmax", **options.get(name, {"alpha": 0.2}))
    assert report.consistent is False
    found = report.counterexample
    assert not found.optimal
    if found.scores.shape[1] == 3:
        assert found.scores.sum(axis=1) == pytest.approx(np.ones(len(found.scores)), abs=1e-9)
        assert found.scores.min() > 1e-6, "an interior minimiser"
        assert risk_minimiser(name, found.likelihoods, **options.get(name, {"alpha": 0.2})).optimal


def test_softmax_fails_often_and_sigmoid_does_not():
    """The exponential with α = 10 on eight points, as random as they come: most problems, by tenths of a point."""
    lost = []
    for seed in range(6):
        g = np.random.default_rng(seed).dirichlet(np.ones(8) * 3, 3).T
        found = risk_minimiser("exponential", g, "softmax", alpha=10.0)
        lost.append(found.bayes_mauc - found.mauc)
        assert risk_minimiser("exponential", g, "sigmoid", alpha=10.0).optimal
    assert sum(loss > 1e-6 for loss in lost) >= 4


def test_softmax_of_two_classes_is_the_unit_interval():
    g = np.random.default_rng(5).dirichlet(np.ones(5), 2).T
    for alpha in (1.0, 3.0):
        tied, free = (risk_minimiser("exponential", g, s, alpha=alpha).scores for s in ("softmax", "unit"))
        # On [0, 1] a minimiser inside may be shifted; differences are what counts.
        assert np.diff(tied[:, 0]) == pytest.approx(np.diff(free[:, 0]), abs=1e-5)


@pytest.mark.parametrize("pairs", ["ovo", "ova", "product"])
def test_adjusted_cross_entropy_is_consistent(pairs):
    """Its minimiser, found by descent, ranks every column best, for priors far from equal."""
    rng = np.random.default_rng(6)
    g, p = rng.dirichlet(np.ones(6), 4).T, np.array([0.6, 0.3, 0.08, 0.02])
    v = {"ovo": np.full((4, 4), 1 / 12), "ova": ova_weights(p)}.get(pairs, np.outer([1, 2, 3, 4], [5, 1, 2, 0.5]) / 70)
    np.fill_diagonal(v, 0.0)
    shift = np.log(prior_ratios(pairs if pairs != "product" else v, p))

    def risk(z):
        z = z.reshape(6, 4)
        q = softmax(z + shift, axis=1)
        joint = g * p
        return -np.sum(joint * np.log(q)), (joint.sum(axis=1, keepdims=True) * q - joint).ravel()

    found = minimize(risk, np.zeros(24), jac=True, options={"gtol": 1e-10}).x.reshape(6, 4)
    f = softmax(found, axis=1)
    best = np.column_stack([g[:, i] / (g @ v[i]) for i in range(4)])
    assert weighted_auc(f, g, v) == pytest.approx(weighted_auc(best, g, v), abs=1e-12)
    if pairs == "ovo":
        eta = g * p / (g * p).sum(axis=1, keepdims=True)
        assert f == pytest.approx(bayes_scores(eta, p), abs=1e-5)
        plain = softmax(np.log(eta), axis=1)
        assert weighted_auc(plain, g, v) < weighted_auc(f, g, v) - 1e-4, "without the adjustment it is another ranking"


@pytest.mark.parametrize(("name", "alpha"), [("exponential", 0.5), ("logistic", 1.0)])
@pytest.mark.parametrize("log_loss", [0.0, 0.7])
def test_log_odds_are_consistent(name, alpha, log_loss):
    """The minimiser is the log-odds of the balanced posterior, in every column, with the log-loss and without."""
    for seed, n_classes in ((0, 3), (1, 4)):
        g = np.random.default_rng(seed).dirichlet(np.ones(6), n_classes).T
        found = risk_minimiser(name, g, "log_odds", alpha=alpha, log_loss=log_loss)
        b = g / g.sum(axis=1, keepdims=True)
        assert found.optimal
        best = np.log(b / (1.0 - b))
        np.testing.assert_allclose(found.scores - found.scores[0], best - best[0], atol=1e-3)
    assert consistency_report(name, "log_odds", alpha=alpha, log_loss=log_loss).consistent


def test_log_odds_with_another_alpha():
    report = consistency_report("exponential", "log_odds", alpha=4.0)
    assert report.consistent is False
    assert report.counterexample.gap > 1e-4
    assert consistency_report("exponential", "log_odds", alpha=4.0, n_classes=2).consistent


@pytest.mark.parametrize("alpha", [1.0, 8.0])
@pytest.mark.parametrize("name", ["squared", "exponential", "logistic"])
def test_both_terms_of_softmax(name, alpha):
    """Two classes: consistent, though the risk alone is not. Three: not, and the programme is solved."""
    assert consistency_report(name, "softmax", alpha=alpha, log_loss=1.0, n_classes=2).consistent
    for seed in range(4):
        g = np.random.default_rng(seed).dirichlet(np.ones(6), 2).T
        assert risk_minimiser(name, g, "softmax", alpha=alpha, log_loss=1.0).optimal
    report = consistency_report(name, "softmax", alpha=alpha, log_loss=1.0, n_classes=3)
    assert report.consistent is False
    assert report.counterexample.gap > 1e-5
    assert report.counterexample.excess < 1e-6


def test_both_terms_of_sigmoids():
    report = consistency_report("exponential", "sigmoid", alpha=8.0, log_loss=1.0)
    assert report.consistent is False
    assert report.counterexample.gap > 1e-4
    assert consistency_report("exponential", "sigmoid", alpha=8.0, log_loss=1.0, n_classes=2).consistent is None


def test_the_counterexample_is_the_one_that_loses_most():
    shown = consistency_report("exponential", "softmax", alpha=8.0).counterexample
    others = [np.random.default_rng(seed).dirichlet(np.ones(5), 3).T for seed in range(8)]
    assert shown.gap == max(risk_minimiser("exponential", g, "softmax", alpha=8.0).gap for g in others)


def test_the_sum_is_that_of_the_linear_objective():
    """The minimiser of both terms has no gradient in the logits, by differences of the two terms themselves."""
    g = np.random.default_rng(3).dirichlet(np.ones(4), 3).T
    z = np.log(risk_minimiser("exponential", g, "softmax", alpha=4.0, log_loss=0.5).scores)

    def both(z):
        f = softmax(z, axis=1)
        pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
        ranked = sum(g[:, i] @ np.exp(-4.0 * (f[:, i][:, None] - f[:, i])) @ g[:, j] for i, j in pairs) / 6
        return ranked - 0.5 * np.sum(g * np.log(f)) / 3

    for place in np.ndindex(*z.shape):
        step = np.zeros_like(z)
        step[place] = 1e-5
        assert (both(z + step) - both(z - step)) / 2e-5 == pytest.approx(0.0, abs=1e-5)


def test_bad_arguments():
    with pytest.raises(ValueError, match="log_loss needs scores that are made of logits, got it with 'unit'"):
        risk_minimiser("squared", likelihoods([0.5, 2.0]), "unit", log_loss=1.0)
    with pytest.raises(ValueError, match="log_loss needs scores that are made of logits, got it with 'unbounded'"):
        consistency_report("squared", log_loss=1.0)
    with pytest.raises(
        ValueError, match="scores must be one of 'unbounded', 'unit', 'softmax', 'sigmoid', 'log_odds', got"
    ):
        consistency_report("squared", "free")
    with pytest.raises(ValueError, match=r"ratio must be at least 1, got 0\.5: pass the largest likelihood ratio"):
        consistency_report("squared", "unit", ratio=0.5)
    with pytest.raises(ValueError, match="ratio must be at least 1, got nan"):
        smallest_alpha("squared", math.nan)
    with pytest.raises(ValueError, match="ratios must be two or more positive numbers"):
        likelihoods([1.0, -2.0])
    with pytest.raises(ValueError, match="weights must be positive, one for each ratio"):
        likelihoods([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="surrogate must be one of 'exponential', 'logistic', 'squared', got 'hinge'"):
        smallest_alpha("hinge", 3.0)
    with pytest.raises(ValueError, match="likelihoods must be positive, one row per point"):
        risk_minimiser("squared", [[0.5, 0.0], [0.5, 1.0]])
