"""Both minimisers: the optimum of problems whose optimum is known, and how they stop."""

import numpy as np
import pytest
from scipy import optimize

from mauc import SurrogateRisk
from mauc.linear.objective import LinearObjective
from mauc.linear.solvers import SOLVERS, minimize
from mauc.partition import ClassPartition

solvers = pytest.mark.parametrize("solver", SOLVERS)


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


@solvers
def test_optimum_of_a_quadratic(solver):
    objective, expected = quadratic()
    start = np.full(6, 5.0)
    solution = minimize(objective, start, solver=solver, max_iter=5000, tol=1e-8)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, expected, atol=1e-6)
    assert solution.objective == pytest.approx(objective(expected)[0], abs=1e-12)
    check_is_consistent(solution, objective, start)
    np.testing.assert_array_equal(start, 5.0)


@solvers
def test_optimum_of_a_convex_mauc_problem(solver):
    """Squared loss of linear scores: the gradient is affine, so the optimum solves a linear system."""
    objective = mauc_problem()
    start = np.zeros(12)
    at_zero = objective(start)[1]
    hessian = np.column_stack([objective(e)[1] - at_zero for e in np.eye(12)])
    # The intercept shifts a column, which changes no difference.
    expected = np.linalg.lstsq(hessian, -at_zero, rcond=1e-10)[0]
    solution = minimize(objective, start, solver=solver, max_iter=2000, tol=1e-9)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, expected, atol=1e-6)
    assert solution.objective == pytest.approx(objective(expected)[0], rel=1e-12)
    check_is_consistent(solution, objective, start)


@solvers
@pytest.mark.parametrize("surrogate", ["squared", "exponential", "hinge"])
def test_monotone_on_a_problem_that_is_not_convex(surrogate, solver):
    objective = mauc_problem(surrogate, "softmax", l2=1e-4)
    start = np.zeros(12)
    solution = minimize(objective, start, solver=solver, max_iter=60, tol=1e-9)
    assert (np.diff(solution.curve) <= 0).all()
    assert solution.objective < 0.95 * solution.curve[0]
    check_is_consistent(solution, objective, start)


def test_both_solvers_agree_on_a_smooth_mauc_problem():
    objective = mauc_problem("exponential", "softmax", l2=1e-2)
    a, b = (minimize(objective, np.zeros(12), solver=s, max_iter=5000, tol=1e-8) for s in SOLVERS)
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    np.testing.assert_allclose(a.theta.reshape(3, 4)[:, :3], b.theta.reshape(3, 4)[:, :3], atol=1e-4)


def test_nesterov_is_monotone_down_a_bent_valley():
    start = np.array([-1.2, 1.0])
    solution = minimize(rosenbrock, start, solver="nesterov", max_iter=5000, tol=1e-6)
    assert (np.diff(solution.curve) <= 0).all()
    np.testing.assert_allclose(solution.theta, 1.0, atol=1e-4)
    assert solution.converged


@solvers
@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_max_iter_is_honoured(max_iter, solver):
    start = np.array([-1.2, 1.0])
    solution = minimize(rosenbrock, start, solver=solver, max_iter=max_iter, tol=1e-12)
    assert solution.n_iter == max_iter
    assert not solution.converged
    check_is_consistent(solution, rosenbrock, start)
    assert solution.message == "max_iter reached"


@solvers
def test_they_say_why_they_stopped(solver):
    objective, expected = quadratic(condition=10.0)
    near = minimize(objective, np.zeros(6), solver=solver, max_iter=1000, tol=1e-3)
    assert near.converged
    assert near.message == "gradient within tol"
    assert np.abs(objective(near.theta)[1]).max() <= 1e-3
    flat = minimize(objective, np.zeros(6), solver=solver, max_iter=5000, tol=1e-300)
    assert flat.converged
    assert flat.message == "objective no longer falls"
    np.testing.assert_allclose(flat.theta, expected, atol=1e-6)
    last = minimize(objective, np.zeros(6), solver=solver, max_iter=near.n_iter, tol=1e-3)
    assert last.converged, "the last iteration that max_iter allows reached tol"


@solvers
def test_nothing_to_do_at_the_optimum(solver):
    objective, expected = quadratic()
    solution = minimize(objective, expected, solver=solver, max_iter=10, tol=1e-6)
    assert solution.converged
    assert solution.n_iter == 0
    assert solution.curve.shape == (1,)
    np.testing.assert_array_equal(solution.theta, expected)


@solvers
@pytest.mark.parametrize("scale", [1e-4, 1e8])
def test_any_scale(scale, solver):
    objective, expected = quadratic(condition=10.0)

    def scaled(x):
        value, slope = objective(x)
        return scale * value, scale * slope

    solution = minimize(scaled, np.zeros(6), solver=solver, max_iter=2000, tol=scale * 1e-6)
    np.testing.assert_allclose(solution.theta, expected, atol=1e-5)


def counted(objective):
    """The objective and the list of its values so far."""
    seen = []

    def count(x):
        value, slope = objective(x)
        seen.append(value)
        return value, slope

    return count, seen


def test_lbfgs_is_sparing_where_the_function_bends_down():
    """Far from its minimum ``−1 / (1 + ‖x − c‖²)`` is nearly flat and bends downwards: no long ways out and back."""
    centre = np.array([30.0, -20.0, 10.0])

    def well(x):
        d = x - centre
        q = 1.0 + d @ d
        return -1.0 / q, 2.0 * d / q**2

    objective, seen = counted(well)
    solution = minimize(objective, np.zeros(3), solver="lbfgs", max_iter=200, tol=1e-9)
    np.testing.assert_allclose(solution.theta, centre, atol=1e-6)
    assert len(seen) <= 3 * solution.n_iter
    objective, seen = counted(rosenbrock)
    solution = minimize(objective, np.array([-1.2, 1.0]), solver="lbfgs", max_iter=200, tol=1e-8)
    np.testing.assert_allclose(solution.theta, 1.0, atol=1e-6)
    assert len(seen) <= 1.5 * solution.n_iter + 2


def test_lbfgs_turns_back_from_where_there_is_no_number():
    def barrier(x):
        if x[0] <= 0.0:
            return np.inf, np.full(1, np.nan)
        return float(x[0] - np.log(x[0])), 1.0 - 1.0 / x

    solution = minimize(barrier, np.array([9.0]), solver="lbfgs", max_iter=100, tol=1e-9)
    assert solution.converged
    np.testing.assert_allclose(solution.theta, 1.0, atol=1e-8)
    assert np.isfinite(solution.curve).all()


def test_lbfgs_needs_a_gradient_of_numbers():
    """A value alone is no place to go to, and none to have converged at."""

    def beyond(x):
        return float(x @ x - x.sum()), np.where(x > 0.75, np.nan, 2.0 * x - 1.0)

    solution = minimize(beyond, np.zeros(2), solver="lbfgs", max_iter=100, tol=1e-9)
    np.testing.assert_allclose(solution.theta, 0.5, atol=1e-8)
    solution = minimize(lambda x: (1.0, np.full(2, np.nan)), np.zeros(2), solver="lbfgs", max_iter=100, tol=1e-9)
    assert not solution.converged
    assert "not finite at the start" in solution.message


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_lbfgs_starts_with_a_step_of_length_one(scale):
    seen = []

    def steep(x):
        seen.append(x)
        return scale * float(np.sum((x - 3.0) ** 2)), 2.0 * scale * (x - 3.0)

    minimize(steep, np.zeros(2), solver="lbfgs", max_iter=1, tol=0.0)
    np.testing.assert_allclose(np.linalg.norm(seen[1]), 1.0)
