"""A short polynomial for the scores near 0, against the definition."""

import numpy as np
import pytest
from crowded import classes_of, trained

from mauc.kernels import crowd_moments
from mauc.kernels.crowd_moments import WIDTH, crowd_moments_risk, short_form
from mauc.kernels.pairwise import pairwise_risk
from mauc.plan import TOLERANCES, plan
from mauc.surrogates import get_surrogate


def planned(alpha, precision):
    loss, tolerances = get_surrogate("logistic", alpha=alpha), TOLERANCES[precision]
    found = plan(loss, 1.0, tolerances=tolerances, saturated=True)
    assert found is not None
    (piece,) = found.pieces
    return loss, piece, short_form(piece.matrix, 0.5, piece.half_width, tolerances[0])


@pytest.fixture
def any_size(monkeypatch):
    monkeypatch.setattr(crowd_moments, "MANY", 0)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.5, 8.0])
def test_short_form(alpha, precision):
    loss, piece, short = planned(alpha, precision)
    assert short.shape[1] < 0.6 * len(piece.matrix)
    p, q = np.linspace(0.0, 1.0, 200), np.linspace(0.0, WIDTH, 200)
    terms = np.polynomial.chebyshev.chebvander((p - 0.5) / piece.half_width, len(piece.matrix) - 1)
    found = terms @ short @ np.vander(q, short.shape[1], increasing=True).T
    tolerance = 2e-7 if precision == "float32" else 2e-12
    assert np.abs(found - loss.loss(p[:, None] - q)).max() < tolerance


def test_no_short_form_of_what_is_short():
    assert short_form(np.eye(2), 0.5, 0.5, 1e-7) is None


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "products"])
@pytest.mark.parametrize("n_classes", [8, 40], ids=["columns", "rows"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_risk_is_the_definition(factored, n_classes, dtype):
    """With scores beyond the crowd, weights, weights of 0 and a class that is absent."""
    loss, piece, short = planned(4.0, np.dtype(dtype).name)
    y, scores = trained(320, n_classes, dtype)
    y[y == 3] = 4
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y))
    weight[np.unique(y, return_index=True)[1]] = 1.0
    whole = classes_of(y, n_classes, weight).with_scores(scores.astype(np.float64))
    expected = pairwise_risk(whole, loss.loss, loss.derivative)
    problem = classes_of(y, n_classes, weight, factored).with_scores(scores)
    for gradient in (True, False):
        value, slope = crowd_moments_risk(
            problem, piece.matrix, short, 0.5, piece.half_width, gradient=gradient, dtype=dtype
        )
        assert value == pytest.approx(expected[0], rel=1e-7 if dtype == np.float32 else 1e-11)
        if gradient:
            assert slope.dtype == dtype
            largest = np.abs(expected[1]).max()
            np.testing.assert_allclose(
                slope, expected[1], rtol=0.0, atol=largest * (3e-7 if dtype == np.float32 else 1e-9)
            )
        else:
            assert slope is None


@pytest.mark.usefixtures("any_size")
def test_scores_that_are_not_near_zero_are_left_to_others():
    _, piece, short = planned(4.0, "float64")
    y, _ = trained(200, 8)
    arguments = (piece.matrix, short, 0.5, piece.half_width)
    apart = np.random.default_rng(1).random((200, 8))
    assert crowd_moments_risk(classes_of(y, 8).with_scores(apart), *arguments, gradient=True) is None
    unseen = np.where(np.arange(200)[:, None] % 13 == 0, 0.001, apart)  # the rows of the sample alone are near 0
    assert crowd_moments_risk(classes_of(y, 8).with_scores(unseen), *arguments, gradient=True) is None
