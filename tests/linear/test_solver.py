"""The minimiser: the optimum of problems whose optimum is known, and how they stop."""

import numpy as np
import pytest
from scipy import optimize

from mauc import SurrogateRisk
from mauc.linear._objective import LinearObjective
from mauc.linear._solver import minimize
from mauc.partition import ClassPartition


def quadratic(n=6, condition=100.0, seed=0):
    """``½ xᵀA x − bᵀx + 3`` and its minimiser."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = Q @ np.diag(np.geomspace(1.0, condition, n)) @ Q.T
    b = rng.normal(size=n)

    def objective(x):
        return float(0.5 * x @ A @ x - b @ x) + 3.0, A @ x - b

    return objective, np.linalg.solve(A, b)


def rosenbrock(x):
    return float(optimize.rosen(x)), optimize.rosen_der(x)


def mauc_problem(surrogate="squared", activation="identity", l2=0.05, n_samples=60):
    rng = np.random.default_rng(1)
    y = np.arange(n_samples) % 3
    X = rng.normal(size=(n_samples, 3)) + np.eye(3)[y]
    partition = ClassPartition(y, 3, None)
    problem = partition.classes(partition.pair_weights("ovo"))
    return LinearObjective(X, problem, SurrogateRisk(surrogate), activation=activation, l2=l2, fit_intercept=True)


def check_is_consistent(solution, objective, start):
    assert solution.curve.shape == (solution.n_iter + 1,)
    assert solution.curve[0] == objective(start)[0]
    assert solution.curve[-1] == solution.objective
    assert solution.objective == objective(solution.theta)[0]


def test_optimum_of_a_quadratic():
    objective, expected = quadratic()
    start = np.full(6, 5.0)
    solution = minimize(objective, start, max_iter=5000, tol=1e-8)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, expected, atol=1e-6)
    assert solution.objective == pytest.approx(objective(expected)[0], abs=1e-12)
    check_is_consistent(solution, objective, start)
    np.testing.assert_array_equal(start, 5.0)


def test_optimum_of_a_convex_mauc_problem():
    """Squared loss of linear scores: the gradient is affine, so the optimum solves a linear system."""
    objective = mauc_problem()
    start = np.zeros(12)
    at_zero = objective(start)[1]
    hessian = np.column_stack([objective(e)[1] - at_zero for e in np.eye(12)])
    # The intercept shifts a column, which changes no difference.
    expected = np.linalg.lstsq(hessian, -at_zero, rcond=1e-10)[0]
    solution = minimize(objective, start, max_iter=2000, tol=1e-9)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, expected, atol=1e-6)
    assert solution.objective == pytest.approx(objective(expected)[0], rel=1e-12)
    check_is_consistent(solution, objective, start)


@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_monotone_on_a_problem_that_is_not_convex(surrogate):
    objective = mauc_problem(surrogate, "softmax", l2=1e-4)
    start = np.zeros(12)
    solution = minimize(objective, start, max_iter=60, tol=1e-9)
    assert (np.diff(solution.curve) <= 0).all()
    assert solution.objective < 0.95 * solution.curve[0]
    check_is_consistent(solution, objective, start)


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_max_iter_is_honoured(max_iter):
    start = np.array([-1.2, 1.0])
    solution = minimize(rosenbrock, start, max_iter=max_iter, tol=1e-12)
    assert solution.n_iter == max_iter
    assert not solution.converged
    check_is_consistent(solution, rosenbrock, start)
    assert solution.message == "max_iter reached"


def test_it_says_why_it_stopped():
    objective, expected = quadratic(condition=10.0)
    near = minimize(objective, np.zeros(6), max_iter=1000, tol=1e-3)
    assert near.converged
    assert near.message == "gradient within tol"
    assert np.abs(objective(near.theta)[1]).max() <= 1e-3
    flat = minimize(objective, np.zeros(6), max_iter=5000, tol=1e-300)
    assert flat.converged
    assert flat.message == "objective no longer falls"
    np.testing.assert_allclose(flat.theta, expected, atol=1e-6)
    last = minimize(objective, np.zeros(6), max_iter=near.n_iter, tol=1e-3)
    assert last.converged, "the last iteration that max_iter allows reached tol"


def test_nothing_to_do_at_the_optimum():
    objective, expected = quadratic()
    solution = minimize(objective, expected, max_iter=10, tol=1e-6)
    assert solution.converged
    assert solution.n_iter == 0
    assert solution.curve.shape == (1,)
    np.testing.assert_array_equal(solution.theta, expected)


@pytest.mark.parametrize("scale", [1e-4, 1e8])
def test_any_scale(scale):
    objective, expected = quadratic(condition=10.0)

    def scaled(x):
        value, slope = objective(x)
        return scale * value, scale * slope

    solution = minimize(scaled, np.zeros(6), max_iter=2000, tol=scale * 1e-6)
    np.testing.assert_allclose(solution.theta, expected, atol=1e-5)


def test_lbfgs_turns_back_from_where_there_is_no_number():
    def barrier(x):
        if x[0] <= 0.0:
            return np.inf, np.full(1, np.nan)
        return float(x[0] - np.log(x[0])), 1.0 - 1.0 / x

    solution = minimize(barrier, np.array([9.0]), max_iter=100, tol=1e-9)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, 1.0, atol=1e-8)
    assert np.isfinite(solution.curve).all()


@pytest.mark.parametrize(("value", "slope"), [(1.0, np.nan), (np.inf, 1.0), (1.0, 1e21), (1.0, np.inf)])
def test_no_number_or_no_possible_step_at_the_start_is_an_error(value, slope):
    with pytest.raises(ValueError, match=r"^X must lead to a finite objective and a gradient of at most 1e\+20"):
        minimize(lambda x: (value, np.full(2, slope)), np.zeros(2), max_iter=100, tol=1e-9)
