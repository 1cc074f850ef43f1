"""The objective of the linear model: its value from the definition, its gradient from differences of the value."""

import numpy as np
import pytest
from cases import SIGMOID, Case
from scipy import sparse
from scipy.special import softmax

from mauc.activations import ACTIVATIONS, activate
from mauc.linear._objective import LinearObjective
from mauc.log_loss import LogTerm, log_term, prior_ratios
from mauc.partition import ClassPartition

FAMILIES = [
    Case("squared", {"alpha": 0.8}),
    Case("exponential", {"alpha": 2.0}),
    Case("hinge", {"alpha": 0.3}),
    Case("q_hinge", {"alpha": 0.7, "q": 3.0}),
    Case("generalized_hinge", {"alpha": 0.4, "epsilon": 0.2}),
    Case("logistic", {"alpha": 2.0}, exact=False),
    Case("distance_weighted", {"epsilon": 0.3}, exact=False),
    Case(SIGMOID, exact=False, label="custom"),
]
EXPONENTIAL, HINGE = FAMILIES[1], FAMILIES[2]
activations = pytest.mark.parametrize("activation", ACTIVATIONS)
# Every surrogate once, every activation with a closed form and with a search, and no intercept.
settings = pytest.mark.parametrize(
    ("case", "activation", "fit_intercept"),
    [
        *((case, "softmax", True) for case in FAMILIES),
        *((case, each, True) for case in (EXPONENTIAL, HINGE) for each in ACTIVATIONS if each != "softmax"),
        (EXPONENTIAL, "softmax", False),
    ],
    ids=str,
)


def draw(n_samples=14, n_features=3, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.7)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    return X, y, rng.random(n_samples) + 0.2, 0.5 * rng.normal(size=n_classes * (n_features + 1))


def build(
    case, X, y, weight=None, *, activation="softmax", l2=0.3, fit_intercept=True, pairs="ova", log_loss=0, **sizes
):
    partition = ClassPartition(y, y.max() + 1, weight)
    problem = partition.classes(partition.pair_weights(pairs))
    term = log_term(log_loss, pairs, y, partition.weights, partition.shares)
    options = {"activation": activation, "l2": l2, "fit_intercept": fit_intercept, "log_term": term}
    return LinearObjective(X, problem, case.risk(), **options, **sizes)


def flat(theta, objective):
    """As many of the numbers as the objective takes."""
    return theta[: objective.shape[0] * objective.shape[1]]


@settings
def test_gradient_is_the_slope_of_the_value(case, activation, fit_intercept):
    X, y, weight, theta = draw()
    objective = build(case, X, y, weight, activation=activation, fit_intercept=fit_intercept)
    theta = flat(theta, objective)
    _, gradient = objective(theta)
    assert gradient.shape == theta.shape
    h, slope = 1e-5, np.empty_like(theta)
    for k in range(len(theta)):
        step = np.zeros_like(theta)
        step[k] = h
        slope[k] = (objective(theta + step)[0] - objective(theta - step)[0]) / (2 * h)
    np.testing.assert_allclose(gradient, slope, atol=1e-6 * np.abs(slope).max(), rtol=0)


@settings
def test_value_is_the_risk_of_the_activated_scores_and_the_penalty_of_the_weights(case, activation, fit_intercept):
    X, y, weight, theta = draw(seed=1)
    objective = build(case, X, y, weight, activation=activation, fit_intercept=fit_intercept)
    theta = flat(theta, objective)
    block = theta.reshape(3, -1)
    W, b = (block[:, :-1], block[:, -1]) if fit_intercept else (block, 0.0)
    Z = X @ W.T + b
    scores = {
        "softmax": np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True),
        "sigmoid": 1.0 / (1.0 + np.exp(-Z)),
        "identity": Z,
        "log_odds": np.log(softmax(Z, axis=1) / (1.0 - softmax(Z, axis=1))),
    }[activation]
    expected = case.risk(pairs="ova", scheme="pairwise").value(y, scores, weight) + 0.15 * (W**2).sum()
    assert objective(theta)[0] == pytest.approx(expected, rel=case.tolerance)
    np.testing.assert_allclose(activate(Z.copy(), activation), scores, rtol=1e-13)


def test_the_penalty_spares_the_intercept():
    X, y, _, theta = draw(seed=2)
    with_penalty, without = build(EXPONENTIAL, X, y, l2=2.0), build(EXPONENTIAL, X, y, l2=0.0)
    (value, gradient), (bare_value, bare_gradient) = with_penalty(theta), without(theta)
    W = theta.reshape(3, -1)[:, :-1]
    assert value - bare_value == pytest.approx((W**2).sum(), rel=1e-12)
    difference = (gradient - bare_gradient).reshape(3, -1)
    np.testing.assert_allclose(difference[:, :-1], 2.0 * W, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(difference[:, -1], 0.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_equals_dense(layout, dtype, fit_intercept):
    X, y, weight, theta = draw(n_samples=40, n_classes=4, seed=3)
    X, theta = X.astype(dtype), np.resize(theta, 16)
    dense, csr = (build(EXPONENTIAL, each, y, weight, fit_intercept=fit_intercept) for each in (X, layout(X)))
    theta = flat(theta, dense)
    value, gradient = dense(theta)
    sparse_value, sparse_gradient = csr(theta)
    assert sparse_value == pytest.approx(value, rel=1e-12)
    assert isinstance(sparse_gradient, np.ndarray)
    assert sparse_gradient.dtype == gradient.dtype == np.float64
    np.testing.assert_allclose(sparse_gradient, gradient, rtol=1e-10, atol=1e-13)


def test_nothing_is_changed():
    X, y, weight, theta = draw()
    copies = [a.copy() for a in (X, y, weight, theta)]
    objective = build(EXPONENTIAL, X, y, weight)
    first, second = objective(theta), objective(theta)
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1], second[1])
    for kept, now in zip(copies, (X, y, weight, theta), strict=True):
        np.testing.assert_array_equal(kept, now)


@activations
def test_huge_logits_stay_finite(activation):
    X, y, _, theta = draw()
    objective = build(Case("hinge", {"alpha": 1.0}), X, y, activation=activation)
    with np.errstate(under="ignore"):
        value, gradient = objective(1e5 * theta)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


PAIRS = {"ovo": "ovo", "ova": "ova", "matrix": np.outer([1.0, 3.0, 2.0], [2.0, 1.0, 5.0])}


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
@activations
def test_the_log_loss_is_that_of_the_oracle(activation, pairs):
    """In blocks of three rows, the last one shorter."""
    log_loss = 0.7
    X, y, weight, theta = draw()
    case = EXPONENTIAL
    options = {"activation": activation, "pairs": pairs, "log_loss": log_loss, "block_elements": 9}
    both = build(case, X, y, weight, **options)
    bare = build(case, X, y, weight, activation=activation, pairs=pairs)
    W, b = bare.split(theta)
    Z = X @ W.T + b
    priors = np.bincount(y, weight) / weight.sum()
    logs, slope = LogTerm(y, prior_ratios(pairs, priors), weight / weight.sum()).of_logits(Z, slice(None))
    of_theta = np.column_stack([slope.T @ X, slope.sum(axis=0)])
    value, gradient = bare(theta)
    expected = value + log_loss * logs, gradient.reshape(3, -1) + log_loss * of_theta
    value, gradient = both(theta)
    assert value == pytest.approx(expected[0], rel=1e-13)
    np.testing.assert_allclose(gradient, expected[1].ravel(), atol=1e-14)
    csr = build(case, sparse.csr_array(X), y, weight, **options)
    np.testing.assert_allclose(csr(theta)[1], gradient, atol=1e-14)
    differences = [(both(theta + h)[0] - both(theta - h)[0]) / 2e-5 for h in 1e-5 * np.eye(len(theta))]
    np.testing.assert_allclose(gradient, differences, atol=1e-8)


@pytest.mark.parametrize("log_loss", [0, 0.5])
@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS)
def test_the_terms_by_odds_are_the_general_ones(pairs, log_loss):
    X, y, weight, theta = draw(40)
    weight[0] = 0.0
    for alpha, scale in ((0.5, 1.0), (0.5, 30.0), (2.0, 5.0)):
        case = Case("exponential", {"alpha": alpha})
        options = {"activation": "log_odds", "pairs": pairs, "log_loss": log_loss, "block_elements": 33}
        objective = build(case, X, y, weight, **options)
        W, b = objective.split(scale * theta)
        value, gradient = objective._terms(X @ W.T, b)
        fast = objective._terms_by_odds(X @ W.T, b, objective.power)
        assert fast[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(fast[1], gradient, rtol=1e-9, atol=1e-13 * np.abs(gradient).max())


def test_odds_beyond_floats_take_the_general_terms():
    X, y, weight, theta = draw()
    objective = build(Case("exponential", {"alpha": 0.5}), X, y, weight, activation="log_odds", pairs="ovo", l2=0.0)
    for scale in (300.0, 3000.0):
        W, b = objective.split(scale * theta)
        assert objective._terms_by_odds(X @ W.T, b, 0.5) is None
        with np.errstate(over="ignore", invalid="ignore"):
            assert objective(scale * theta)[0] == objective._terms(X @ W.T, b)[0]


@activations
def test_the_log_loss_of_huge_logits(activation):
    """Softmax underflows where the logarithm does not."""
    X, y, _, theta = draw()
    small, large = (
        build(Case("hinge", {"alpha": 1.0}), X, y, activation=activation, pairs="ovo", l2=0.0, log_loss=k)
        for k in (0, 1.0)
    )
    with np.errstate(under="ignore"):
        lost = large(1e5 * theta)[0] - small(1e5 * theta)[0]
        assert np.isfinite(large(1e5 * theta)[1]).all()
    W, b = small.split(1e5 * theta)
    Z = X @ W.T + b
    expected = (Z.max(axis=1) - Z[np.arange(len(y)), y]).mean()
    assert lost == pytest.approx(expected, rel=1e-4)
