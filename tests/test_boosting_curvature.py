"""The curvature that boosting divides by: above the Hessian, in the units of the log-loss."""

import numpy as np
import pytest
from cases import EACH_KIND

from mauc import SurrogateRisk
from mauc.activations import activate
from mauc.boosting import _gradient_and_bound, lightgbm_objective
from mauc.partition import ClassPartition
from mauc.surrogates import QHinge

# One loss of each kind whose curvature is bounded.
CURVED = [c for c in EACH_KIND if min(c.build().curvature_per_slope, c.build().curvature(1.0)) < np.inf and c.linear]
every_loss = pytest.mark.parametrize("case", CURVED, ids=str)
every_activation = pytest.mark.parametrize("activation", ["identity", "softmax"])


def classes_of(y, n_classes, weight=None, pairs="ovo"):
    partition = ClassPartition(y, n_classes, weight)
    return partition.classes(partition.pair_weights(pairs))


def draw(seed, scale=1.0, sizes=(5, 3, 2, 1)):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return y, scale * rng.normal(size=(len(y), len(sizes))), rng.uniform(0.5, 3.0, len(y))


def dense_hessian(risk, classes, raw, activation, step=1e-5):
    def slope(flat):
        return _gradient_and_bound(risk, classes, flat.reshape(raw.shape), activation)[1].ravel()

    moves = step * np.eye(raw.size)
    rows = [(slope(raw.ravel() + move) - slope(raw.ravel() - move)) / (2 * step) for move in moves]
    return 0.5 * (np.array(rows) + np.array(rows).T)


@every_loss
@every_activation
def test_above_the_hessian_and_its_diagonal(case, activation):
    risk = case.risk(scheme="auto" if case.exact else "blocked")  # pieces of an approximation meet to its tolerance
    for scale, weighted in ((0.1, False), (2.0, True)):
        y, raw, weight = draw(0, scale)
        classes = classes_of(y, 4, weight if weighted else None)
        _, _, bound = _gradient_and_bound(risk, classes, raw, activation)
        exact = dense_hessian(risk, classes, raw, activation)
        slack = 1e-6 * max(1.0, np.abs(exact).max())
        assert (bound.ravel() >= np.diag(exact) - slack).all()
        assert np.linalg.eigvalsh(np.diag(bound.ravel()) - exact).min() >= -slack


@every_loss
@every_activation
def test_a_newton_step_goes_down(case, activation):
    y, raw, weight = draw(0)
    risk = case.risk()
    classes = classes_of(y, 4, weight)
    for share in (1.0, 0.1):
        scores = raw
        values = []
        for _ in range(6):
            value, gradient, bound = _gradient_and_bound(risk, classes, scores, activation)
            values.append(value)
            scores = scores - share * gradient / np.maximum(bound, 1e-16)
        assert values == sorted(values, reverse=True)
        assert values[-1] < values[0]


@every_activation
@every_loss
def test_at_zero_the_gradient_is_that_of_the_balanced_log_loss(case, activation):
    y, _, weight = draw(3, sizes=(6, 4, 2))
    for u in (None, weight):
        ones = np.ones(len(y)) if u is None else u
        gradient, curvature = lightgbm_objective(case.build(), activation=activation)(y, np.zeros((12, 3)), u)
        balanced = ones * ones.sum() / (3 * np.bincount(y, ones)[y])
        expected = balanced[:, None] * (1 / 3 - np.eye(3)[y])
        np.testing.assert_allclose(gradient, expected, atol=1e-5)
        assert (curvature > 0).all()


@every_activation
def test_absent_classes(activation):
    y, raw, _ = draw(4, sizes=(6, 4, 2))
    wide = np.column_stack([raw[:, :2], np.zeros(12), raw[:, 2]])
    gradient, curvature = lightgbm_objective(activation=activation)(np.array([0, 1, 3])[y], wide)
    assert np.isfinite(gradient).all()
    assert (curvature > 0).all()
    if activation == "identity":
        narrow = lightgbm_objective(activation=activation)(y, raw)
        np.testing.assert_allclose(gradient[:, [0, 1, 3]], narrow[0])
        np.testing.assert_array_equal(gradient[:, 2], 0.0)
    alone, _ = lightgbm_objective(activation=activation)(np.zeros(5, dtype=int), np.zeros((5, 2)))
    np.testing.assert_array_equal(alone, 0.0)


@every_activation
def test_two_classes_with_one_score(activation):
    y, raw, weight = draw(5, sizes=(6, 4))
    z = raw[:, 0]
    objective = lightgbm_objective("exponential", 2.0, activation=activation)
    gradient, curvature = objective(y, z, weight)
    risk = SurrogateRisk("exponential", alpha=2.0)

    def value(t):
        return risk.value(y, activate(np.column_stack([-t / 2, t / 2]), activation), weight)

    scale = objective._scale(ClassPartition(y, 2, weight))
    for n in range(len(y)):
        step = 1e-4 * np.eye(len(y))[n]
        slope = scale * (value(z + step) - value(z - step)) / 2e-4
        curve = scale * (value(z + step) - 2 * value(z) + value(z - step)) / 1e-8
        assert gradient[n] == pytest.approx(slope, abs=1e-5)
        assert curvature[n] >= curve - 1e-5


def test_own_weights_of_pairs():
    y, raw, _ = draw(6, sizes=(6, 4, 2))
    only = np.zeros((3, 3))
    only[2, 0] = 1.0
    gradient, _ = lightgbm_objective(activation="identity", pairs=only)(y, raw)
    assert (gradient[:, :2] == 0).all()
    assert (gradient[y == 2, 2] < 0).all()
    assert (gradient[y == 1, 2] == 0).all()


@pytest.mark.parametrize(
    ("surrogate", "alpha", "options", "message"),
    [
        ("hinge", 1.0, {}, "surrogate must have a bounded second derivative for boosting, got Hinge.*: use exp"),
        (QHinge(q=1.5), None, {}, "must have a bounded second derivative"),
        ("exponential", -1.0, {}, "alpha must be a finite number above 0"),
        ("exponential", 1.0, {"activation": "sigmoid"}, "activation must be one of 'softmax', 'identity'"),
    ],
)
def test_bad_parameters(surrogate, alpha, options, message):
    with pytest.raises(ValueError, match=message):
        lightgbm_objective(surrogate, alpha, **options)


def test_bad_scores():
    with pytest.raises(ValueError, match="raw must be finite"):
        lightgbm_objective()(np.array([0, 1]), np.array([[np.nan, 0], [0, 0]]))
    with pytest.raises(ValueError, match="y must hold whole numbers from 0 to 1"):
        lightgbm_objective()(np.array([0, 2]), np.zeros((2, 2)))


def balanced_value(objective, y, raw, weight):
    """What the gradient of the objective is the slope of: risk and log-loss from their definitions, scaled."""
    weight = np.ones(len(y)) if weight is None else weight
    n_classes = raw.shape[1]
    priors = np.bincount(y, weight, n_classes) / weight.sum()
    shifted = raw + np.log(priors)
    logs = weight @ (np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(y)), y])
    scores = activate(raw.copy(), objective.activation)
    slope = abs(float(objective.risk.surrogate.derivative(np.zeros(1))[0]))
    shrunk = n_classes if objective.activation == "softmax" else 1
    unit = weight.sum() * shrunk * (n_classes - 1) / (n_classes * slope)
    both = objective.risk.value(y, scores, weight) + objective.log_loss * logs / weight.sum()
    return unit * both / (1 + objective.log_loss)


@every_activation
def test_with_the_log_loss_the_gradient_is_the_slope_and_the_bound_is_above_the_hessian(activation):
    y, raw, weight = draw(0)
    objective = lightgbm_objective("exponential", 2.0, log_loss=0.7, activation=activation)
    for u in (None, weight):
        gradient, bound = objective(y, raw, u)
        moves = 1e-5 * np.eye(raw.size).reshape(-1, *raw.shape)
        ends = [[balanced_value(objective, y, raw + s * m, u) for s in (1, -1)] for m in moves]
        slope = np.array([(up - down) / 2e-5 for up, down in ends]).reshape(raw.shape)
        np.testing.assert_allclose(gradient, slope, atol=1e-6 * np.abs(slope).max())
        ends = [[objective(y, raw + s * m, u)[0].ravel() for s in (1, -1)] for m in moves]
        hessian = np.array([(up - down) / 2e-5 for up, down in ends])
        assert np.linalg.eigvalsh(np.diag(bound.ravel()) - hessian).min() >= -1e-6 * np.abs(hessian).max()


def test_the_log_loss_of_two_classes_in_one_column():
    y, raw, weight = draw(1, sizes=(6, 3))
    objective = lightgbm_objective(log_loss=0.7)
    gradient, bound = objective(y, raw[:, 1], weight)

    def value(z):
        return balanced_value(objective, y, np.column_stack([-z / 2, z / 2]), weight)

    slope = [(value(raw[:, 1] + h) - value(raw[:, 1] - h)) / 2e-5 for h in 1e-5 * np.eye(len(y))]
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    assert (bound > 0).all()


def test_log_loss_of_zero_is_the_risk_alone():
    y, raw, weight = draw(2)
    for a, b in zip(lightgbm_objective()(y, raw, weight), lightgbm_objective(log_loss=0)(y, raw, weight), strict=True):
        np.testing.assert_array_equal(a, b)


def test_bad_log_loss():
    with pytest.raises(ValueError, match="log_loss must be a finite number of at least 0, got -1: 0 is the ranking"):
        lightgbm_objective(log_loss=-1)
