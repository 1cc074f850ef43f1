"""Each loss and the facts stated on it, checked against what it computes."""

from types import SimpleNamespace

import numpy as np
import pytest
from cases import CASES, INF, Case, assert_close, each_kind, evaluate, every_case

from mauc import SurrogateRisk
from mauc.surrogates import (
    SURROGATES,
    CustomSurrogate,
    GeneralizedHinge,
    Hinge,
    QHinge,
    Squared,
    get_surrogate,
    has_alpha,
)

# Dyadic, so that every kink of a dyadic parameter lies on it.
GRID = np.arange(-3 * 256, 3 * 256 + 1) / 256.0
UNIT = GRID[np.abs(GRID) <= 1.0]


def away_from_kinks(case: Case, distance: float) -> np.ndarray:
    t = GRID + 1e-4
    return t[(np.abs(t[:, None] - np.array([*case.kinks, INF])) > distance).all(axis=1)]


def test_every_named_surrogate_is_a_case():
    listed = {case.surrogate for case in CASES if isinstance(case.surrogate, str)}
    assert listed == set(SURROGATES)
    of_the_spec = {"squared", "exponential", "hinge", "q_hinge", "generalized_hinge", "logistic", "distance_weighted"}
    assert listed >= of_the_spec
    assert all(SURROGATES[name].name == name for name in SURROGATES)


@each_kind
def test_derivative_is_the_slope(case):
    surrogate, t, h = case.build(), away_from_kinks(case, 1e-5), 1e-6
    slope = (surrogate.loss(t + h) - surrogate.loss(t - h)) / (2.0 * h)
    np.testing.assert_allclose(surrogate.derivative(t), slope, rtol=1e-6, atol=1e-8 * np.abs(slope).max())


@each_kind
def test_at_a_kink_the_derivative_is_the_slope_on_its_right(case):
    surrogate = case.build()
    for kink in case.kinks:
        at, right = surrogate.derivative(np.array([kink, kink + 1e-12]))
        assert at == pytest.approx(right, rel=1e-6, abs=1e-5)


@each_kind
def test_loss_and_derivative_are_vectorised(case):
    surrogate, t = case.build(), GRID[:12].reshape(3, 4)
    for function in (surrogate.loss, surrogate.derivative):
        assert function(t).shape == (3, 4)
        assert function(t).dtype == np.float64
        np.testing.assert_array_equal(function(t).ravel(), function(t.ravel()))
        assert function(np.zeros(0)).shape == (0,)


@every_case
def test_facts_are_true(case):
    """A fact that is stated holds; of the named surrogates every fact that holds is stated too."""
    surrogate = case.build()
    loss, derivative = surrogate.loss(GRID), surrogate.derivative(GRID)
    rounding = 1e-12 * np.abs(loss).max()
    convex = bool(np.all(np.diff(loss, 2) >= -rounding) and np.all(np.diff(derivative) >= -rounding))
    falls = bool(np.all(np.diff(surrogate.loss(UNIT)) <= rounding) and np.all(surrogate.derivative(UNIT) <= 0.0))
    jumps = [abs(np.diff(surrogate.derivative(np.array([k - 1e-9, k + 1e-9])))[0]) for k in case.kinks]
    smooth = max(jumps, default=0.0) < 1e-3 * np.abs(derivative).max()
    for stated, holds in ((surrogate.convex, convex), (surrogate.non_increasing, falls), (surrogate.smooth, smooth)):
        assert stated is False or (stated is True and holds)
        assert stated == holds or not isinstance(case.surrogate, str)


@each_kind
def test_the_closed_form_is_the_loss(case):
    surrogate = case.build()
    form = surrogate.closed_form
    assert (form is not None) == (case.surrogate in ("squared", "exponential"))
    if form is not None:
        of_kind = {"squared": lambda a, t: (a - t) ** 2, "exponential": lambda a, t: np.exp(-a * t)}
        np.testing.assert_array_equal(of_kind[form.kind](form.alpha, GRID), surrogate.loss(GRID))


@each_kind
def test_pieces_cover_the_line_and_are_the_loss(case):
    surrogate = case.build()
    pieces = surrogate.pieces
    assert [p.low for p in pieces] == [-INF, *(p.high for p in pieces[:-1])]
    assert pieces[-1].high == INF
    assert all(p.low < p.high for p in pieces)
    for piece in pieces:
        low, high, coefficients = piece[:3]
        # [low, high): its first point is in it, its end is not, and ℓ is continuous there.
        inside = np.append(GRID, [low] if np.isfinite(low) else [])
        inside = inside[(inside >= low) & (inside < high)]
        if coefficients is not None:
            polynomial = np.polynomial.Polynomial(coefficients)
            size = np.polynomial.Polynomial(np.abs(coefficients))(np.abs(inside))
            assert np.all(np.abs(polynomial(inside) - surrogate.loss(inside)) <= 4e-15 * size)
            if np.isfinite(low) or np.isfinite(high):
                distance = high - inside if np.isfinite(high) else inside - low
                from_end = np.polynomial.Polynomial(piece.from_end)(distance)
                assert np.all(np.abs(from_end - surrogate.loss(inside)) <= 4e-15 * size)
            slope = np.abs(polynomial.deriv()(inside) - surrogate.derivative(inside))
            assert np.all(slope <= 1e-12 * (1.0 + np.abs(surrogate.derivative(inside))))
        if np.isfinite(high):
            beside = np.array([np.nextafter(high, -INF), high])
            assert np.diff(surrogate.loss(beside))[0] == pytest.approx(0.0, abs=1e-12 * (1 + surrogate.loss(beside)[0]))


def test_custom_surrogate_claims_nothing_by_itself():
    custom = CustomSurrogate(np.exp, np.exp)
    assert (custom.convex, custom.smooth, custom.non_increasing) == (False, False, False)


def test_an_objects_own_facts_are_kept():
    facts = {"convex": True, "smooth": True, "decreasing": True}
    made = get_surrogate(SimpleNamespace(loss=lambda t: np.exp(-t), derivative=lambda t: -np.exp(-t), **facts))
    assert (made.convex, made.smooth, made.non_increasing) == (True, True, True)


def test_a_surrogate_object_is_taken_as_it_is():
    hinge = Hinge(0.5)
    assert get_surrogate(hinge) is hinge
    assert get_surrogate("q_hinge", alpha=0.5, q=3) == QHinge(0.5, 3)
    assert get_surrogate("distance_weighted", epsilon=0.2).epsilon == 0.2
    breakpoints = (1.0, -1.0)
    assert [p.low for p in CustomSurrogate(np.abs, np.sign, breakpoints).pieces] == [-INF, -1.0, 1.0]


def test_hinge_is_the_limit_of_the_generalized_hinge():
    gap = [np.abs(GeneralizedHinge(1.0, e).loss(GRID) - Hinge(1.0).loss(GRID)).max() for e in (0.4, 0.04, 0.004)]
    assert gap == pytest.approx([0.1, 0.01, 0.001])


def test_slip_generalized_hinge_first_branch_is_alpha_minus_t():
    # The paper prints m − t.
    for alpha in (0.5, 1.0, 2.0):
        t = np.array([-2.0, 0.0, alpha - 0.25])
        np.testing.assert_array_equal(GeneralizedHinge(alpha, 0.25).loss(t), alpha - t)


def test_slip_generalized_hinge_parabola_ends_at_alpha_plus_epsilon():
    # The paper ends it at 1, where it is ε/4 and not 0.
    surrogate = GeneralizedHinge(1.0, 0.25)
    np.testing.assert_array_equal(surrogate.loss(np.array([1.0, 1.125, 1.25, 2.0])), [0.0625, 0.015625, 0.0, 0.0])
    assert surrogate.pieces[1][:2] == (0.75, 1.25)


@pytest.mark.parametrize("alpha", [0.1, 0.9, 0.999])
def test_slip_squared_below_alpha_one_does_not_meet_the_condition(alpha):
    # The paper's experiments use such α; the loss rises again beyond t = α.
    surrogate = Squared(alpha)
    assert surrogate.loss(np.ones(1)) > surrogate.loss(np.full(1, alpha))
    assert not surrogate.non_increasing


NUMBER = r"must be a finite number {}, got {}$"
OVERFLOW = "beyond that its powers overflow: scale the scores"
BESIDE = "needs a surrogate given by name, got it together with the object Hinge"
BAD = {
    "unknown": ("hingy", {}, f"^surrogate must be one of {', '.join(map(repr, SURROGATES))}, got 'hingy'$"),
    "no methods": (
        np.exp,
        {},
        r"^surrogate must be a name or an object with the methods loss\(t\) and derivative\(t\), got <ufunc 'exp'>: "
        r"use one of distance_weighted, exponential, .*, or mauc\.surrogates\.CustomSurrogate\(loss, derivative\)$",
    ),
    "none": (None, {}, r"^surrogate must be a name or an object .*, got None: use one of "),
    "half an object": (
        SimpleNamespace(loss=np.exp),
        {},
        r"^surrogate must be .* derivative\(t\), got namespace\(.*\): ",
    ),
    "alpha beside an object": (Hinge(), {"alpha": 2.0}, rf"^alpha {BESIDE}\(alpha=0\.5\): set the parameters on the"),
    "option beside an object": (Hinge(), {"q": 2.0}, rf"^q {BESIDE}.*: set the parameters on the object itself$"),
    "unknown option": ("hinge", {"q": 2.0}, r"^q is not an option of the hinge surrogate, got 2\.0: it takes alpha$"),
    "alpha where there is none": (
        "distance_weighted",
        {"alpha": 1.0},
        r"^alpha does not exist for the distance_weighted surrogate, got 1\.0: it takes epsilon$",
    ),
    **{
        f"alpha of {name}": (name, {"alpha": value}, "^alpha " + NUMBER.format("above 0", pattern))
        for name, value, pattern in (
            ("squared", 0, "0"),
            ("exponential", -1.0, r"-1\.0"),
            ("hinge", INF, "inf"),
            ("q_hinge", float("nan"), "nan"),
            ("generalized_hinge", "1", "'1'"),
            ("logistic", True, "True"),
        )
    },
    "large alpha": (
        "squared",
        {"alpha": 1e308},
        rf"^alpha must lie between 1e-100 and 1e\+100, got .*: {OVERFLOW}",
    ),
    "small epsilon": ("distance_weighted", {"epsilon": 1e-200}, f"^epsilon must lie .* 1, got 1e-200: {OVERFLOW}"),
    "large q": (
        "q_hinge",
        {"q": 1000},
        r"^q must leave \(alpha \+ 1\)\^q, the loss at t = −1, below 1e\+300, got 1000 with alpha=1\.0: "
        r"pass a smaller q or alpha$",
    ),
    "q": ("q_hinge", {"q": 1}, "^q " + NUMBER.format("above 1", "1")),
    **{
        f"epsilon of {name}": (
            name,
            {"epsilon": most},
            "^epsilon " + NUMBER.format(f"strictly between 0 and {most}", most),
        )
        for name, most in (("generalized_hinge", 0.5), ("distance_weighted", 1))
    },
}


@pytest.mark.parametrize("what", BAD)
def test_bad_parameters_are_refused(what):
    surrogate, options, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        get_surrogate(surrogate, **options)


def test_no_alpha_is_the_surrogates_own():
    for name, kind in SURROGATES.items():
        assert get_surrogate(name) == get_surrogate(name, alpha=None) == kind()
    assert [name for name in SURROGATES if not has_alpha(name)] == ["distance_weighted"]


def test_the_defaults_of_alpha():
    """One for each surrogate, for all of the package: the table of the module and of the guide."""
    defaults = {name: get_surrogate(name).alpha for name in SURROGATES if has_alpha(name)}
    assert defaults == {
        **{"squared": 1.0, "exponential": 4.0, "hinge": 0.5},
        **{"q_hinge": 1.0, "generalized_hinge": 0.5, "logistic": 4.0},
    }
    assert {name: kind.log_odds_alpha for name, kind in SURROGATES.items() if kind.log_odds_alpha is not None} == {
        "exponential": 0.5,
        "logistic": 1.0,
    }


@pytest.mark.parametrize(("name", "options"), [("q_hinge", {"q": 100.0}), ("squared", {"alpha": 1e100})])
def test_the_largest_parameters_work(name, options):
    surrogate = get_surrogate(name, **options)
    y, scores = np.array([0, 0, 1]), np.array([[0.3, 0.7], [0.1, 0.9], [0.2, 0.8]])
    oracle = SurrogateRisk(surrogate, scheme="pairwise").value_and_gradient(y, scores)
    assert_close(evaluate(SurrogateRisk(surrogate), y, scores), oracle, 1e-10)


def test_numbers_of_numpy_become_those_of_python():
    for number in (np.float32(0.5), np.float64(0.5)):
        assert type(get_surrogate("hinge", alpha=number).alpha) is float
    assert type(get_surrogate("q_hinge", alpha=0.5, q=np.int64(3)).q) is int
