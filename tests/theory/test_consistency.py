"""Theorem 3's condition, point by point."""

import numpy as np
import pytest
from cases import Bent, Ramp, every_case
from scipy.special import expit

from mauc import SurrogateRisk, mauc_score, theory
from mauc.surrogates import SURROGATES, CustomSurrogate
from mauc.theory import bernstein, consistency_report

ALPHAS = (0.05, 0.3, 0.5, 0.99, 1.0, 1.01, 2.0, 8.0)


@every_case
def test_verdicts_agree_with_the_facts_of_the_surrogates(case):
    report = consistency_report(case.surrogate, **case.options)
    assert report.satisfied == case.condition
    assert report.satisfied == all(point.satisfied for point in report.points)
    assert [point.where is None for point in report.points] == [point.satisfied for point in report.points]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_squared(alpha):
    report = consistency_report("squared", alpha=alpha)
    assert report.satisfied == (alpha >= 1)
    assert all((report.differentiable, report.convex, report.slope_at_zero))
    if alpha < 1:
        assert report.non_increasing.where == pytest.approx(alpha, abs=1e-8)
        assert report.non_increasing.detail == f"rises from t = {alpha:.4g} on"


@pytest.mark.parametrize("alpha", ALPHAS)
def test_hinge(alpha):
    report = consistency_report("hinge", alpha=alpha)
    assert not report.satisfied
    assert report.differentiable.where == alpha
    assert ("outside of [-1, 1]" in report.differentiable.detail) == (alpha > 1)
    assert all(report.points[1:])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", ["exponential", "logistic", "q_hinge", "generalized_hinge"])
def test_those_that_meet_it_for_every_alpha(name, alpha):
    assert consistency_report(name, alpha=alpha).satisfied


@pytest.mark.parametrize("q", [1.001, 1.5, 2.0, 7.3])
def test_q_hinge(q):
    assert consistency_report("q_hinge", alpha=0.5, q=q).satisfied


@pytest.mark.parametrize("epsilon", [0.001, 0.1, 0.49])
def test_those_with_epsilon(epsilon):
    assert consistency_report("distance_weighted", epsilon=epsilon).satisfied
    assert consistency_report("generalized_hinge", alpha=0.5, epsilon=epsilon).satisfied


def own(loss, derivative):
    return consistency_report(CustomSurrogate(loss, derivative))


def test_own_functions():
    assert own(lambda t: np.exp(-3 * t), lambda t: -3 * np.exp(-3 * t)).satisfied
    report = own(lambda t: np.maximum(0.3 - t, 0), lambda t: -(t < 0.3).astype(float))
    assert report.differentiable.where == pytest.approx(0.3, abs=1e-3)
    assert not report.satisfied
    assert all((report.convex, report.non_increasing))
    sigmoid = own(lambda t: expit(-4 * t), lambda t: -4 * expit(-4 * t) * expit(4 * t))
    assert bool(sigmoid.differentiable)
    assert not sigmoid.convex
    assert -1 <= sigmoid.convex.where < 0
    rising = own(lambda t: (t - 0.25) ** 2, lambda t: 2 * (t - 0.25))
    assert rising.non_increasing.where == pytest.approx(0.25, abs=1e-3)
    flat = own(lambda t: np.maximum(-t, 0) ** 2, lambda t: -2 * np.maximum(-t, 0))
    assert flat.slope_at_zero.where == 0.0
    assert not flat.satisfied
    for a in (1.0, 30.0, 300.0):
        steep = own(lambda t, a=a: np.logaddexp(0, -a * t), lambda t, a=a: -a * expit(-a * t))
        assert steep.satisfied, "steep is not a kink"
    slight = own(
        lambda t: np.exp(-4 * t) + 0.01 * np.maximum(0.1 - t, 0), lambda t: -4 * np.exp(-4 * t) - 0.01 * (t < 0.1)
    )
    assert slight.differentiable.where == pytest.approx(0.1, abs=1e-4)
    two = own(lambda t: np.maximum(-0.5 - t, 0) + np.maximum(0.5 - t, 0), lambda t: -1.0 * (t < -0.5) - 1.0 * (t < 0.5))
    assert two.differentiable.where == pytest.approx(-0.5, abs=1e-3), "the leftmost"


def test_own_objects():
    bent = consistency_report(Bent())
    assert bent.surrogate == "Bent"
    assert bent.differentiable.where == 0.25
    ramp = consistency_report(Ramp())
    assert not ramp.convex
    assert ramp.differentiable.where == -0.5
    smooth = CustomSurrogate(lambda t: np.exp(-t), lambda t: -np.exp(-t))
    assert consistency_report(smooth).satisfied, "looked at, not taken on word"
    wrong = CustomSurrogate(np.abs, np.sign, convex=True, smooth=True, decreasing=True)
    assert not consistency_report(wrong).satisfied


def test_a_straight_line_is_noted():
    report = consistency_report("generalized_hinge", alpha=2.0, epsilon=0.1)
    assert report.satisfied
    assert "two levels" in report.note
    assert "note: a straight line" in str(report)
    assert consistency_report("squared").note == ""


def test_why_a_straight_line_is_noted():
    """On scores in [0, 1] its risk is least for a step, which ranks worse than the likelihood ratio."""
    rng = np.random.default_rng(0)
    x, y = np.concatenate([rng.normal(0, 1, 4000), rng.normal(1, 1, 4000)]), np.repeat([0, 1], 4000)
    line = SurrogateRisk(CustomSurrogate(lambda t: 1 - t, lambda t: -np.ones_like(t)), scheme="blocked")

    def columns(f):
        return np.column_stack([1 - f, f])

    step = columns((x > 0.5).astype(float))
    for slope in (0.3, 1.0, 3.0):
        ramp = columns(1 / (1 + np.exp(-slope * (x - 0.5))))
        assert line.value(y, step) < line.value(y, ramp)
        assert mauc_score(y, step) < mauc_score(y, ramp) - 0.05


@pytest.mark.parametrize("degree", [1, 12, 64])
@pytest.mark.parametrize("name", sorted(SURROGATES))
def test_bernstein_keeps_the_condition(name, degree):
    """Corollary 2, and more: its polynomial of the hinge has no kink."""
    options = {"epsilon": 0.2} if name == "distance_weighted" else {"alpha": 1.0}
    assert consistency_report(bernstein(name, degree, **options)).satisfied


def test_bernstein_inherits_the_failures_too():
    below = consistency_report(bernstein("squared", 64, alpha=0.5))
    assert not below.satisfied


def test_report_is_frozen_and_names_its_points():
    report = consistency_report("exponential")
    with pytest.raises(AttributeError):
        report.note = "x"
    assert [p.name for p in report.points] == ["differentiable", "convex", "non-increasing", "negative slope at 0"]
    assert isinstance(report, theory.ConsistencyReport)


def test_bad_arguments():
    with pytest.raises(ValueError, match="surrogate must be one of 'squared'"):
        consistency_report("cubic")
    with pytest.raises(ValueError, match="degree must be a whole number from 1 to 1000, got 0"):
        bernstein("hinge", 0)
    with pytest.raises(ValueError, match="degree must be a whole number from 1 to 1000, got 1001"):
        bernstein("hinge", 1001)
    with pytest.raises(ValueError, match="surrogate must have finite slopes"):
        consistency_report(CustomSurrogate(lambda t: -t, lambda t: np.full_like(t, -np.inf)))
