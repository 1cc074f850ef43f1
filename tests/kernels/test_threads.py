import numpy as np
import pytest
from cases import draw_classes

from mauc import MAUCClassifier, SurrogateRisk, mauc_interval, mauc_score, pairwise_auc
from mauc.kernels import threads as parallel
from mauc.kernels.threads import over_rows, thread_count


@pytest.fixture
def threads(monkeypatch):
    """Three threads, whatever the machine and the size of the problem."""

    def use(number):
        monkeypatch.setattr(parallel, "LARGE", 1)
        monkeypatch.setattr(parallel, "thread_count", lambda: number)

    return use


def test_parts_are_consecutive_and_cover_all_rows(threads):
    threads(3)
    parts = over_rows((10, 4), lambda begin, end: (begin, end))
    assert parts == [(0, 3), (3, 6), (6, 10)]
    assert over_rows((2, 4), lambda begin, end: (begin, end)) == [(0, 2)]
    assert over_rows((0, 4), lambda begin, end: (begin, end)) == [(0, 0)]


def test_small_work_stays_in_one_thread():
    assert over_rows((1000, 10), lambda begin, end: (begin, end)) == [(0, 1000)]


def test_an_error_in_a_thread_reaches_the_caller(threads):
    threads(2)

    def fail(begin, end):
        raise FloatingPointError(f"{begin}..{end}")

    with pytest.raises(FloatingPointError, match=r"0\.\.5"):
        over_rows((10, 1), fail)


@pytest.mark.parametrize(("setting", "most"), [("1", 1), ("0", 1), ("2", 2), ("", 8), ("none", 8)])
def test_the_number_of_threads_follows_the_environment(monkeypatch, setting, most):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert 1 <= thread_count() <= most


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge", "generalized_hinge", "logistic"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_threads_change_no_risk_and_no_gradient(threads, surrogate, scale):
    rng = np.random.default_rng(0)
    y = draw_classes(400, np.arange(5), rng)
    scores, weight = scale * rng.normal(size=(400, 5)), rng.random(400)
    risk = SurrogateRisk(surrogate, alpha=1.0 if scale == 1.0 else 0.01)
    alone = risk.value_and_gradient(y, scores, weight)
    threads(3)
    value, gradient = risk.value_and_gradient(y, scores, weight)
    assert value == pytest.approx(alone[0], rel=1e-13)
    np.testing.assert_allclose(gradient, alone[1], rtol=1e-10, atol=1e-14 * np.abs(alone[1]).max())


@pytest.mark.parametrize("decimals", [1, 12])
def test_threads_change_no_metric(threads, decimals):
    rng = np.random.default_rng(1)
    y = rng.choice(4, 500, p=[0.6, 0.3, 0.06, 0.04])
    scores = rng.normal(size=(500, 4)).round(decimals)
    alone = mauc_score(y, scores), pairwise_auc(y, scores), mauc_interval(y, scores)
    threads(3)
    assert mauc_score(y, scores) == alone[0]
    np.testing.assert_array_equal(pairwise_auc(y, scores), alone[1])
    assert mauc_interval(y, scores).stderr == pytest.approx(alone[2].stderr, rel=1e-12)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid", "identity"])
def test_threads_change_no_fit(threads, activation):
    rng = np.random.default_rng(2)
    y = draw_classes(300, np.arange(3), rng)
    X = rng.normal(size=(300, 4)) + np.eye(3, 4)[y]
    model = MAUCClassifier(activation=activation, l2=1e-2, max_iter=100)
    alone = model.fit(X, y).coef_
    threads(2)
    np.testing.assert_allclose(model.fit(X, y).coef_, alone, atol=1e-5)
