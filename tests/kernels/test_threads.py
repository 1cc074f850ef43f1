import re
import threading

import numpy as np
import pytest
from cases import draw_classes
from scipy.sparse import csr_array

from mauc import MAUCClassifier, SurrogateRisk, compare_mauc, mauc_interval, mauc_score
from mauc._kernels.threads import PARTS, ThreadPool, over_rows, thread_count, threads

MANY = 1 << 19
"""Scores from which on the rows are taken in parts."""


def test_parts_are_consecutive_and_cover_all_rows():
    for number in (1, 3):
        with threads(number):
            parts = over_rows((20, MANY), lambda begin, end: (begin, end))
            assert len(parts) == PARTS
            assert [k for begin, end in parts for k in range(begin, end)] == list(range(20))
            assert over_rows((2, MANY), lambda begin, end: (begin, end)) == [(0, 2)]
            assert over_rows((0, MANY), lambda begin, end: (begin, end)) == [(0, 0)]


def test_small_work_stays_in_one_thread():
    assert over_rows((1000, 10), lambda begin, end: (begin, end)) == [(0, 1000)]


def test_so_many_threads_as_were_asked_for_work_at_once():
    meeting = threading.Barrier(2, timeout=20)
    with threads(2):
        over_rows((PARTS, MANY), lambda begin, end: meeting.wait())
    with threads(1):
        assert set(over_rows((PARTS, MANY), lambda begin, end: threading.get_ident())) == {threading.get_ident()}


def test_results_that_nobody_takes_hold_up_the_tasks():
    begun = []
    with ThreadPool(2) as pool:
        results = pool.each(lambda k=k: begun.append(k) or k for k in range(9))
        assert next(results) == 0
        assert len(begun) <= 3
        assert list(results) == list(range(1, 9))


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(begin, end):
        raise FloatingPointError(f"{begin}..{end}")

    with threads(2), pytest.raises(FloatingPointError, match=r"0\.\.2"):
        over_rows((16, MANY), fail)


@pytest.mark.parametrize(("setting", "most"), [("1", 1), ("0", 1), ("2", 2), ("", 8), ("none", 8)])
def test_the_number_of_threads_follows_the_environment(monkeypatch, setting, most):
    monkeypatch.setenv("OMP_NUM_THREADS", setting)
    assert 1 <= thread_count() <= most
    with threads(5):
        assert thread_count() == 5
    with threads(-1):
        assert thread_count() >= 1


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, True, "2"])
def test_other_numbers_of_jobs_are_refused(n_jobs):
    y, scores = [0, 1], np.eye(2)
    message = f"n_jobs must be None, -1 or a whole number of at least 1, got {n_jobs!r}"
    for call in (
        lambda: mauc_score(y, scores, n_jobs=n_jobs),
        lambda: mauc_interval(y, scores, n_jobs=n_jobs),
        lambda: compare_mauc(y, scores, scores, n_jobs=n_jobs),
        lambda: SurrogateRisk(n_jobs=n_jobs),
        lambda: MAUCClassifier(n_jobs=n_jobs).fit(scores, y),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge", "logistic"])
def test_bits_of_risk_and_gradient_do_not_depend_on_threads(surrogate):
    rng = np.random.default_rng(0)
    y = draw_classes(MANY // 16, np.arange(20), rng)
    scores, weight = rng.normal(size=(len(y), 20)), rng.random(len(y))
    (value, gradient), found = (
        SurrogateRisk(surrogate, alpha=1.0, n_jobs=n_jobs).value_and_gradient(y, scores, weight) for n_jobs in (1, 3)
    )
    assert found[0] == value
    np.testing.assert_array_equal(found[1], gradient)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_of_metrics_do_not_depend_on_threads(dtype):
    rng = np.random.default_rng(1)
    y = rng.choice(20, MANY // 16, p=np.arange(1, 21) / 210)
    scores, weight = rng.normal(size=(len(y), 20)).round(2).astype(dtype), rng.random(len(y))
    for sample_weight in (None, weight):
        alone, together = (
            (
                mauc_interval(y, scores, sample_weight=sample_weight, n_jobs=n_jobs),
                mauc_score(y, scores, sample_weight=sample_weight, by="difference", n_jobs=n_jobs),
            )
            for n_jobs in (1, 3)
        )
        assert alone == together


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("sparse", "log_loss"), [(False, 0.0), (True, 1.0)])
def test_bits_of_a_fit_do_not_depend_on_threads(sparse, log_loss):
    rng = np.random.default_rng(2)
    y = draw_classes(MANY // 16, np.arange(20), rng)
    X = rng.normal(size=(len(y), 4)) + np.eye(20, 4)[y]
    X = csr_array(X * (np.abs(X) > 0.5)) if sparse else X
    model = MAUCClassifier(log_loss=log_loss, l2=1e-2, max_iter=3)
    alone = model.set_params(n_jobs=1).fit(X, y).coef_
    np.testing.assert_array_equal(model.set_params(n_jobs=2).fit(X, y).coef_, alone)
