"""The risk by every scheme: against the definition, its own differences, and under what must not change it."""

import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from cases import (
    EACH_KIND,
    INF,
    Case,
    assert_close,
    draw_classes,
    draw_scores,
    each_kind,
    evaluate,
    settings,
    some_cases,
)
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from strategies import Sample, examples, samples

from mauc import SurrogateRisk
from mauc._kernels.blocked import blocked_risk
from mauc.partition import ClassPartition
from mauc.plan import plan, radius_for
from mauc.surrogates import CustomSurrogate, DistanceWeighted, GeneralizedHinge, Logistic, Piece, QHinge, Surrogate

LAYOUTS = {
    "columns": {"columns_first_below": 10_000},
    "rows": {"columns_first_below": 0},
    "many tiles of columns": {"columns_first_below": 10_000, "tile_elements": 35},
    "many tiles of rows": {"columns_first_below": 0, "tile_elements": 35},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


def problem_of(y, scores, weight, pairs, layout):
    """What the kernels take, cut up as it would be elsewhere."""
    partition = ClassPartition(y, scores.shape[1], weight)
    return replace(partition.problem(scores, partition.pair_weights(pairs)), **layout)


def check_all_schemes(case: Case, some_settings) -> None:
    risk, by_blocks, by_pairs = case.risk(), case.risk(scheme="blocked"), case.risk(scheme="pairwise")
    for what, y, scores, weight, pairs in some_settings:
        risk.pairs = by_blocks.pairs = by_pairs.pairs = pairs
        expected = by_pairs.value_and_gradient(y, scores, weight)
        assert_close(by_blocks.value_and_gradient(y, scores, weight), expected, 1e-10, f"blocked, {what}")
        got = evaluate(risk, y, scores, weight)
        assert risk.scheme_ == case.scheme or not case.exact
        tolerance = 1e-10 if risk.scheme_ == "blocked" else case.tolerance
        assert_close(got, expected, tolerance, f"{risk.scheme_}, {what}")
        assert risk.value(y, scores, weight) == pytest.approx(got[0], rel=1e-14, abs=1e-16), "value alone"


@pytest.mark.parametrize(("kind", "n_classes"), [("ties", 4), ("softmax", 2), ("logits", 4), ("float32", 2)])
@each_kind
def test_every_scheme_is_the_definition(case, kind, n_classes):
    check_all_schemes(case, settings(kind, n_classes))


@pytest.mark.parametrize(
    ("layout", "n_classes"),
    [("columns", 4), ("rows", 32), ("many tiles of columns", 32), ("many tiles of rows", 4)],
)
@each_kind
@pytest.mark.filterwarnings("ignore:.*taking all pairs in blocks:UserWarning")
def test_every_scheme_is_the_definition_in_every_layout(case, n_classes, layout):
    *_, (_, y, scores, weight, pairs) = settings("ties", n_classes, 70, seed=1)
    expected = case.risk(scheme="pairwise", pairs=pairs).value_and_gradient(y, scores, weight)
    here = problem_of(y, scores, weight, pairs, LAYOUTS[layout])
    assert_close(case.risk().compute(here, gradient=True), expected, case.tolerance)
    surrogate = case.build()
    found = blocked_risk(here, surrogate.loss, surrogate.derivative, gradient=True, block=7)
    assert_close(found, expected, 1e-10)


@pytest.mark.parametrize("n_classes", [3, 40])
@some_cases
def test_more_samples_than_one_tile_holds(case, n_classes):
    n_samples = 2 * (1 << 15) // n_classes + 17 if n_classes == 40 else 1500
    rng = np.random.default_rng(n_classes)
    y, scores = rng.integers(0, n_classes, n_samples), rng.random((n_samples, n_classes))
    expected = case.risk(scheme="pairwise").value_and_gradient(y, scores)
    for scheme in ("auto", "blocked"):
        assert_close(case.risk(scheme=scheme).value_and_gradient(y, scores), expected, case.tolerance, scheme)


@pytest.mark.parametrize("kind", ["softmax", "logits"])
@each_kind
def test_gradient_is_the_slope_of_the_value(case, kind):
    rng = np.random.default_rng(3)
    y, scores, weight = draw_classes(7, np.arange(3), rng), draw_scores(kind, 7, 3, rng), rng.random(7) + 0.1
    # Spread, so that the range stays below one power of two while a score moves: one polynomial serves all.
    scores = scores * 0.9
    for scheme in ("auto", "pairwise", "blocked"):
        risk = case.risk(scheme=scheme, pairs="ova")
        value, gradient = evaluate(risk, y, scores, weight)
        slope, h = np.zeros_like(gradient), 2e-6
        for index in np.ndindex(*scores.shape):
            step = np.zeros_like(scores)
            step[index] = h
            up, down = (evaluate(risk, y, scores + s, weight)[0] for s in (step, -step))
            slope[index] = (up - down) / (2.0 * h)
        # The rounding of an approximation, allowed to a tenth of its tolerance, shows in differences of its value.
        steep = 0.0 if case.exact else 1e-5 * abs(case.build().derivative(np.zeros(1))[0])
        allowed = 1e-6 * np.abs(slope).max() + 1e-9 * abs(value) + steep
        assert np.abs(gradient - slope).max() <= allowed, scheme


def largest(case: Case, scores: np.ndarray) -> tuple[float, float]:
    """Largest terms that a sum of ℓ and of ℓ′ may meet, for scores of this range."""
    span = float(np.ptp(scores, axis=0).max())
    surrogate, t = case.build(), np.array([-span, 0.0, span])
    terms = [Polynomial(np.abs(piece.coefficients)) for piece in surrogate.pieces if piece.coefficients is not None]
    return (
        max([np.abs(surrogate.loss(t)).max(), *(term(span) for term in terms)]),
        max([np.abs(surrogate.derivative(t)).max(), *(term.deriv()(span) for term in terms)]),
    )


@each_kind
@examples(12)
@given(sample=samples(scales=(1e-30, 1.0, 1e30)))
def test_any_sample_at_any_scale(case, sample):
    y, scores, weight, pairs = sample
    scores64 = scores.astype(np.float64)
    rate = case.options.get("alpha", 1.0)
    assume(case.surrogate != "exponential" or rate * np.abs(scores64).max() < 300.0)
    expected = case.risk(scheme="pairwise", pairs=pairs).value_and_gradient(y, scores, weight)
    surrogate = case.build()
    size, steep = (abs(f(np.zeros(1))[0]) for f in (surrogate.loss, surrogate.derivative))
    most = largest(case, scores64)
    for scheme in ("auto", "blocked"):
        risk = case.risk(scheme=scheme, pairs=pairs)
        value, gradient = evaluate(risk, y, scores, weight)
        # Sums round relative to their largest terms, approximations are relative to ℓ(0) and ℓ′(0): well ordered
        # scores cost far less than either.
        near = 1e-12 if case.exact or risk.scheme_ == "blocked" else 1e-6
        assert value == pytest.approx(expected[0], rel=case.tolerance, abs=near * size + 1e-12 * most[0])
        off = np.abs(gradient - expected[1]).max()
        assert off <= case.tolerance * np.abs(expected[1]).max() + near * steep + 1e-12 * most[1]


@pytest.mark.parametrize("size", [1.0, -1e30])
@each_kind
def test_constant_scores_cost_the_loss_at_zero(case, size):
    y, surrogate = np.array([0, 1, 2, 1, 1]), case.build()
    for scheme in ("auto", "blocked", "pairwise"):
        value, gradient = evaluate(case.risk(scheme=scheme), y, np.full((5, 3), size))
        assert value == pytest.approx(surrogate.loss(np.zeros(1))[0], rel=case.tolerance)
        own = gradient[np.arange(5), y].sum()
        assert own == pytest.approx(surrogate.derivative(np.zeros(1))[0], rel=case.tolerance)
        assert gradient.sum() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@each_kind
def test_equal_scores_whose_mean_is_rounded(case, weighted):
    """The mean of six scores of 1.25e29 is another number, which squared distances of 1 do not survive."""
    y, surrogate = np.array([0, 0, 0, 0, 0, 1, 0]), case.build()
    weight = np.array([3.0, 0.5, 1.0, 3.0, 3.0, 1.0, 0.5]) if weighted else None
    for size in (1.25e29, 5e29, 1.125e30, 1.75e30):
        value, gradient = evaluate(case.risk(), y, np.full((7, 2), size), weight)
        assert value == pytest.approx(surrogate.loss(np.zeros(1))[0], rel=case.tolerance)
        own = gradient[np.arange(7), y].sum()
        assert own == pytest.approx(surrogate.derivative(np.zeros(1))[0], rel=case.tolerance)


# What must not change the risk: each returns the changed sample and how its gradient goes back to the old one.


def shuffled(s, rng):
    k = rng.permutation(len(s.y))
    return Sample(s.y[k], s.scores[k], s.weight[k], s.pairs), lambda g: g[np.argsort(k)]


def renamed(s, rng):
    k = rng.permutation(s.scores.shape[1])
    back = np.argsort(k)
    pairs = s.pairs if isinstance(s.pairs, str) else s.pairs[np.ix_(back, back)]
    return Sample(k[s.y], s.scores[:, back], s.weight, pairs), lambda g: g[:, k]


def shifted(s, rng):
    return s._replace(scores=s.scores + (rng.integers(-64, 65, s.scores.shape[1]) / 8.0).astype(s.scores.dtype)), None


def reweighted(s, rng):
    return s._replace(weight=0.3 * s.weight), None


def with_pairs_rescaled(s, rng):
    return s._replace(
        pairs=s.pairs if isinstance(s.pairs, str) else 7.0 * s.pairs + np.diag(rng.random(len(s.pairs)))
    ), None


def with_a_sample_in_two_halves(s, rng):
    weight = s.weight.copy()
    weight[0] /= 2.0
    twice = Sample(np.append(s.y, s.y[0]), np.vstack([s.scores, s.scores[:1]]), np.append(weight, weight[0]), s.pairs)
    return twice, lambda g: np.vstack([g[:1] + g[-1:], g[1:-1]])


def without_weightless_samples(s, rng):
    def back(g):
        out = np.zeros(s.scores.shape)
        out[s.weight > 0] = g
        return out

    return Sample(*(a[s.weight > 0] for a in s[:3]), s.pairs), back


def with_a_class_that_is_absent(s, rng):
    column = rng.choice(s.scores.ravel(), (len(s.y), 1))
    pairs = s.pairs if isinstance(s.pairs, str) else np.pad(s.pairs, (0, 1), constant_values=2.0)
    return Sample(s.y, np.hstack([s.scores, column]), s.weight, pairs), lambda g: g[:, :-1]


CHANGES = (
    shuffled,
    renamed,
    shifted,
    reweighted,
    with_pairs_rescaled,
    with_a_sample_in_two_halves,
    without_weightless_samples,
    with_a_class_that_is_absent,
)


@each_kind
@examples(4)
@given(sample=samples(min_present=2), seed=st.integers(0, 99))
def test_risk_does_not_change_when(case, sample, seed):
    if sample.weight is None:
        sample = sample._replace(weight=np.ones(len(sample.y)))
    value, gradient = evaluate(case.risk(pairs=sample.pairs), *sample[:3])
    surrogate = case.build()
    size, steep = (abs(f(np.zeros(1))[0]) for f in (surrogate.loss, surrogate.derivative))
    tolerance = 1e-11 if case.exact else 2e-6
    for change in CHANGES:
        other, back = change(sample, np.random.default_rng(seed))
        new_value, new_gradient = evaluate(case.risk(pairs=other.pairs), *other[:3])
        assert new_value == pytest.approx(value, rel=tolerance, abs=tolerance * size), change.__name__
        off = np.abs((back(new_gradient) if back else new_gradient) - gradient).max()
        assert off <= tolerance * max(np.abs(gradient).max(), steep), change.__name__


@given(samples(min_present=2))
def test_ovo_does_not_see_the_size_of_a_class(sample):
    weight = np.ones(len(sample.y)) if sample.weight is None else sample.weight
    risk = SurrogateRisk("squared")
    got = risk.value_and_gradient(sample.y, sample.scores, weight * np.where(sample.y == 0, 8.0, 1.0))
    assert_close(got, risk.value_and_gradient(sample.y, sample.scores, weight), 1e-12)


# Degenerate input, and forms of input.


@pytest.mark.parametrize("pairs", ["ova", np.ones((3, 3))], ids=["ova", "matrix"])
@each_kind
def test_fewer_than_two_classes_cost_nothing(case, pairs):
    scores = np.array([[-5.0, 0.0, 1.0], [0.5, 2.0, -1.0]])
    for scheme in ("auto", "blocked", "pairwise"):
        for y, f in (([1, 1], scores), ([2], scores[:1])):
            value, gradient = evaluate(case.risk(scheme=scheme, pairs=pairs), y, f)
            assert value == 0.0
            np.testing.assert_array_equal(gradient, np.zeros(f.shape))


def test_one_column_costs_nothing():
    value, gradient = SurrogateRisk("hinge").value_and_gradient([0, 0], [[1.0], [2.0]])
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros((2, 1)))


@each_kind
def test_scheme_and_degree_are_told(case):
    y, scores = [0, 1, 2, 0], np.eye(4)[:, :3] / 2
    for scheme in ("blocked", "pairwise"):
        risk = case.risk(scheme=scheme)
        risk.value(y, scores)
        assert (risk.scheme_, risk.degree_) == (scheme, None)
    risk = case.risk()
    evaluate(risk, y, scores)
    assert risk.scheme_ in (case.scheme, "blocked")
    if risk.scheme_ == "blocked" or case.surrogate in ("squared", "exponential"):
        assert risk.degree_ is None
    else:
        known = [len(piece.coefficients) - 1 for piece in case.build().pieces if piece.coefficients is not None]
        assert risk.degree_ in known if case.exact else risk.degree_ >= 1


@pytest.mark.parametrize("n_classes", [3, 40])
@some_cases
def test_input_is_read_in_any_form_and_never_written(case, n_classes):
    rng = np.random.default_rng(0)
    y, scores = draw_classes(90, np.arange(n_classes), rng), draw_scores("ties", 90, n_classes, rng)
    weight = rng.random(90) + 0.1
    arrays = (y, scores, weight)
    kept = [a.copy() for a in arrays]
    for a in arrays:
        a.flags.writeable = False
    risk = case.risk()
    expected = risk.value_and_gradient(y, scores, weight)
    for a, b in zip(arrays, kept, strict=True):
        np.testing.assert_array_equal(a, b)
    for form in (
        np.asfortranarray,
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        np.ndarray.tolist,
        lambda a: a.astype(">f8"),
    ):
        assert_close(risk.value_and_gradient(y.tolist(), form(scores), weight.tolist()), expected, 1e-13)
    for codes in (y.astype(np.int8), y.astype(np.uint16), y.astype(float)):
        assert_close(risk.value_and_gradient(codes, scores, weight), expected, 1e-15)
    whole = np.rint(8 * scores).astype(int)
    assert_close(risk.value_and_gradient(y, whole), risk.value_and_gradient(y, whole.astype(float)), 1e-15)


@some_cases
def test_float32_is_summed_in_float64(case):
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 3, 500), rng.random((500, 3)).astype(np.float32)
    got, wide = (case.risk().value_and_gradient(y, f) for f in (scores, scores.astype(np.float64)))
    assert got[1].dtype == np.float64
    assert_close(got, wide, 1e-13)


def test_an_object_works_like_a_name():
    y, scores = [0, 1, 2, 2], np.eye(4)[:, :3]
    shaped = SimpleNamespace(loss=lambda t: np.logaddexp(0.0, -t), derivative=lambda t: -1.0 / (1.0 + np.exp(t)))
    assert_close(
        SurrogateRisk(shaped).value_and_gradient(y, scores),
        SurrogateRisk("logistic", alpha=1.0).value_and_gradient(y, scores),
        1e-12,
    )
    assert "hinge" in repr(SurrogateRisk("hinge", alpha=0.5)).lower()
    assert "0.5" in repr(SurrogateRisk("hinge", alpha=0.5))


# Numbers that overflow or cancel if summed carelessly.


def exponential_by_logs(alpha, y, scores, v):
    """Every sum of the definition as a logarithm: nothing overflows but the result."""
    n_samples, n_classes = scores.shape
    counts = np.bincount(y, minlength=n_classes)
    log_terms = [[[] for _ in range(n_classes)] for _ in range(n_samples)]
    everything = []
    for m in range(n_samples):
        for n in range(n_samples):
            i, j = y[m], y[n]
            if i != j and v[i, j] > 0:
                log = np.log(v[i, j] / counts[i] / counts[j]) - alpha * (scores[m, i] - scores[n, i])
                everything.append(log)
                log_terms[m][i].append(log)
                log_terms[n][i].append(log)
    with np.errstate(over="ignore"):
        value = np.exp(np.logaddexp.reduce(everything))
        gradient = np.array([[alpha * np.exp(np.logaddexp.reduce([-INF, *t])) for t in row] for row in log_terms])
    gradient[np.arange(n_samples), y] *= -1.0
    return value, gradient


def assert_same_floats(got, expected, rel):
    """Equal to a relative tolerance entry by entry, infinities included, and no NaN."""
    for a, b in zip(got, expected, strict=True):
        assert not np.isnan(a).any()
        np.testing.assert_allclose(a, b, rtol=rel, atol=1e-300)


@pytest.mark.parametrize(("alpha", "pairs"), [(0.5, "ovo"), (4.0, "ova"), (4.0, "matrix")])
@layouts
def test_exponential_of_raw_scores_overflows_only_where_the_result_does(alpha, pairs, layout):
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 3, (4, 4)) * (1.0 - np.eye(4))
    for spread in (1.0, 300.0, 1000.0):
        y = draw_classes(30, np.arange(4), rng)
        scores = rng.uniform(-spread, spread, (30, 4))
        scores[np.arange(30), y] = rng.uniform(-spread, spread, 30) * (1e-3 if spread == 300.0 else 1.0)
        v = {"ovo": np.full((4, 4), 1 / 12), "ova": None, "matrix": matrix / matrix.sum()}[pairs]
        if v is None:
            p = np.bincount(y) / 30
            v = p / (4 * (1 - p[:, None]))
        here = problem_of(y, scores, None, matrix if pairs == "matrix" else pairs, layout)
        got = SurrogateRisk("exponential", alpha=alpha).compute(here, gradient=True)
        assert_same_floats(got, exponential_by_logs(alpha, y, scores, v), 1e-9)


def test_exponential_of_scores_of_1000_is_finite_where_its_result_is():
    # Every column far from 0, its differences small: exp(±500) on the way, e^-½ in the end.
    y = np.array([0, 1, 2, 0, 1, 2])
    scores = np.array([1000.0, -1000.0, 1000.0]) + np.eye(3)[y]
    value, gradient = SurrogateRisk("exponential", alpha=0.5).value_and_gradient(y, scores)
    assert value == pytest.approx(np.exp(-0.5), rel=1e-12)
    np.testing.assert_allclose(np.abs(gradient).sum(), np.exp(-0.5), rtol=1e-12)
    # Well ordered by 2000: the risk underflows to 0 quietly.
    value, gradient = SurrogateRisk("exponential", alpha=0.5).value_and_gradient(y, 2000.0 * np.eye(3)[y] - 1000.0)
    assert value == pytest.approx(0.0, abs=1e-300)
    assert np.abs(gradient).max() < 1e-300
    # Badly ordered by 2000: e^1000 is no float64.
    value, gradient = SurrogateRisk("exponential", alpha=0.5).value_and_gradient(y, 1000.0 - 2000.0 * np.eye(3)[y])
    assert value == INF
    np.testing.assert_array_equal(gradient, np.where(np.eye(3)[y] == 1, -INF, INF))


def test_exponential_gradient_is_finite_in_an_infinite_column():
    # One pair overflows; what the others cost is known all the same.
    y, scores = np.array([0, 0, 1, 1]), np.array([[-1000.0, 0.0], [1000.0, 0.0], [1000.0, 0.0], [-1000.0, 0.0]])
    value, gradient = SurrogateRisk("exponential", alpha=0.5).value_and_gradient(y, scores)
    assert value == INF
    np.testing.assert_allclose(gradient[:, 0], [-INF, -1 / 16, INF, 1 / 16], rtol=1e-12)
    weightless = SurrogateRisk("exponential", alpha=0.5).value_and_gradient(y, scores, [1.0, 1.0, 1.0, 0.0])[1]
    np.testing.assert_allclose(weightless[:, 0], [-INF, -1 / 8, INF, 0.0], rtol=1e-12)


@given(samples(scales=(1e-30, 1.0, 1e3, 1e30), min_present=2))
def test_exponential_is_never_nan(sample):
    value, gradient = SurrogateRisk("exponential", pairs=sample.pairs).value_and_gradient(*sample[:3])
    assert value >= 0.0
    assert not np.isnan(gradient).any()
    own = gradient[np.arange(len(sample.y)), sample.y]
    assert np.all(own <= 0.0)


def test_pairs_that_do_not_count_do_not_overflow():
    # Within class 0 the scores lie 2000 apart, e^1000; no pair does.
    y, scores = [0, 0, 1], np.array([[-1000.0, 0.0], [1000.0, 0.0], [0.0, 0.0]])
    got = [
        SurrogateRisk("exponential", alpha=0.5, scheme=s).value_and_gradient(y, scores)
        for s in ("pairwise", "blocked", "moments")
    ]
    for other in got[1:]:
        assert_same_floats(other, got[0], 1e-12)


@pytest.mark.parametrize("case", [case for case in EACH_KIND if case.exact and not case.label], ids=str)
@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_scores_far_from_zero_keep_their_digits(case, offset):
    # Dyadic scores: the shift itself is exact, so the risk must not feel it.
    rng = np.random.default_rng(0)
    y, scores = draw_classes(60, np.arange(4), rng), draw_scores("ties", 60, 4, rng)
    assert_close(case.risk().value_and_gradient(y, scores + offset), case.risk().value_and_gradient(y, scores), 1e-10)


@pytest.mark.parametrize("case", [case for case in EACH_KIND if case.scheme == "ranked" and case.exact], ids=str)
def test_a_far_outlier_does_not_cost_the_others_their_digits(case):
    rng = np.random.default_rng(0)
    y, scores = draw_classes(60, np.arange(4), rng), draw_scores("ties", 60, 4, rng)
    n = int(np.flatnonzero(y == 0)[0])
    scores[n, 0] = 2.0**40
    got, expected = (case.risk(scheme=s).value_and_gradient(y, scores) for s in ("auto", "pairwise"))
    assert_close(got, expected, 1e-10)


# Approximation within the risk.


def test_nearby_scores_share_one_polynomial():
    spans = (5.0, 5.001, 6.0, 7.9, 4.1, 8.5, 6.0)
    plans = [plan(Logistic(1.0), radius_for(span)) for span in spans]
    assert len({id(found) for found in plans}) == 2, "made once, for all risks"


def test_the_risk_of_bounded_scores_does_not_jump_with_their_range():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 3, 40), rng.random((40, 3))
    scores = (scores - scores.min(axis=0)) / np.ptp(scores, axis=0)
    risk = SurrogateRisk("logistic", alpha=4.0)
    for edge in (0.25, 0.5, 1.0):
        below, above = (risk.value(y, width * scores) for width in (edge * (1.0 - 1e-9), min(1.0, edge * (1.0 + 1e-9))))
        assert above == pytest.approx(below, abs=1e-7)


def test_a_radius_that_rounds_to_the_range_loses_no_pair():
    # 1 − (−1e-17) is 1 in floating point, yet −1e-17 lies below 1 − 1.
    case = Case(
        CustomSurrogate(lambda t: np.abs(t - 0.25), lambda t: np.where(t < 0.25, -1.0, 1.0), (0.25,)), label="bent"
    )
    y, scores = [0, 1], [[-1e-17, 0.0], [1.0, 0.0]]
    got, expected = (case.risk(scheme=s).value_and_gradient(y, scores) for s in ("ranked", "pairwise"))
    assert_close(got, expected, 1e-6)


def test_a_polynomial_piece_that_rises_to_infinity():
    @dataclass(frozen=True)
    class Distance(Surrogate):
        name: ClassVar[str] = "distance"
        smooth = False

        def loss(self, t):
            return np.abs(t - 0.25)

        def derivative(self, t):
            return np.where(t < 0.25, -1.0, 1.0)

        @property
        def pieces(self):
            return (Piece(-INF, 0.25, (0.25, -1.0)), Piece(0.25, INF, (-0.25, 1.0)))

    _, y, scores, weight, pairs = next(settings("ties", 4))
    for far in (1.0, 30.0):
        got, expected = (
            SurrogateRisk(Distance(), scheme=s, pairs=pairs).value_and_gradient(y, far * scores, weight)
            for s in ("ranked", "pairwise")
        )
        assert_close(got, expected, 1e-9)


def test_a_piece_that_begins_at_the_largest_difference_counts():
    bent = CustomSurrogate(lambda t: np.abs(t - 1.0) + 0.5, lambda t: np.where(t < 1.0, -1.0, 1.0), (1.0,))
    got, expected = (SurrogateRisk(bent, scheme=s).value_and_gradient(TWO, APART) for s in ("auto", "pairwise"))
    assert expected[0] == 0.5
    assert_close(got, expected, 1e-6)


@pytest.mark.parametrize("far", [1e2, 1e6, 1e8, 1e12, 1e30])
def test_one_far_score_does_not_hide_the_others_from_an_approximation(far):
    y, scores = np.array([0, 0, 1]), np.array([[far, 0.0], [1.0, 0.0], [0.0, 0.0]])
    expected = SurrogateRisk("distance_weighted", scheme="pairwise").value_and_gradient(y, scores)
    assert_close(evaluate(SurrogateRisk("distance_weighted"), y, scores), expected, 2e-6)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-9, 1e-3])
@pytest.mark.parametrize("case", [case for case in EACH_KIND if case.linear], ids=str)
def test_scores_that_hardly_differ_stay_linear(case, scale):
    """As at the start of training: no block, no warning."""
    _, y, scores, weight, _ = next(settings("ties", 4))
    scores = scale * scores
    risk = case.risk()
    got = risk.value_and_gradient(y, scores, weight)
    assert risk.scheme_ == case.scheme
    assert_close(got, case.risk(scheme="pairwise").value_and_gradient(y, scores, weight), case.tolerance)


def test_fallback_to_blocks_warns_once_and_is_exact():
    y, scores = np.array([0, 1, 2, 0, 1]), 1e4 * np.random.default_rng(0).normal(size=(5, 3))
    risk = SurrogateRisk("logistic")
    with pytest.warns(UserWarning, match="taking all pairs in blocks") as caught:
        got, _, again = [risk.value_and_gradient(y, f) for f in (scores, 1.0001 * scores, scores)]
    assert len(caught) == 1
    message = str(caught[0].message)
    assert re.search(r"no polynomial of the logistic surrogate on differences up to \d+ has at most the error", message)
    assert "taking all pairs in blocks, O(N²) time" in message
    assert (risk.scheme_, risk.degree_) == ("blocked", None)
    assert again[0] == got[0]
    assert_close(got, SurrogateRisk("logistic", scheme="pairwise").value_and_gradient(y, scores), 1e-12)


@pytest.mark.parametrize("method", ["value", "value_and_gradient"])
def test_fallback_warning_points_at_the_caller(method):
    with pytest.warns(UserWarning, match="taking all pairs in blocks") as caught:
        getattr(SurrogateRisk("logistic"), method)([0, 1], [[1e5, 0.0], [0.0, 1.0]])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("surrogate", "scheme"), [("logistic", "moments"), (DistanceWeighted(0.001), "ranked")])
def test_a_scheme_that_is_not_accurate_enough_is_an_error(surrogate, scheme):
    risk = SurrogateRisk(surrogate, scheme=scheme)
    name = getattr(surrogate, "name", surrogate)
    for _ in range(2):
        with pytest.raises(
            ValueError,
            match=rf"^scheme must be accurate enough, got '{scheme}', but no polynomial of the {name} surrogate on "
            "differences up to 1024 has at most the error 1e-06: use scheme='auto' or 'blocked', or scores of a "
            "smaller range$",
        ):
            risk.value([0, 1], [[1000.0, 0.0], [0.0, 1.0]])


# Slips of the paper: each of these fails on the formula as printed.

TWO = np.array([0, 1])
APART = np.eye(2)  # P − Q = 1 in both columns


@pytest.mark.parametrize(("n_classes", "pairs"), [(2, "ovo"), (3, "ova"), (40, "ovo")])
def test_slip_risk_is_normalised_over_pairs(n_classes, pairs):
    # Prop. 1 forgets 1/(C(C−1)): constant scores would cost C(C−1) ℓ(0).
    y = np.arange(n_classes).repeat(np.arange(n_classes) % 3 + 1)
    assert SurrogateRisk("exponential", pairs=pairs).value(y, np.zeros((len(y), n_classes))) == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.5, 2.0])
def test_slip_exponential_falls_with_the_positive_score(alpha):
    # With the paper's signs good scores would cost exp(+α).
    value, gradient = SurrogateRisk("exponential", alpha=alpha).value_and_gradient(TWO, APART)
    assert value == pytest.approx(np.exp(-alpha), rel=1e-14)
    np.testing.assert_allclose(gradient, alpha * np.exp(-alpha) * np.array([[-0.5, 0.5], [0.5, -0.5]]), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.5, 2.0, 3.0])
def test_slip_squared_has_no_half_and_keeps_alpha(alpha):
    # ½Δᵀ(κ⊙Δ) − Δ₁Δ₂ is half the definition, and Algorithm 3 has α = 1 throughout.
    value, gradient = SurrogateRisk("squared", alpha=alpha).value_and_gradient(TWO, APART)
    assert value == pytest.approx((alpha - 1.0) ** 2, rel=1e-14)
    np.testing.assert_allclose(gradient, (alpha - 1.0) * np.array([[-1.0, 1.0], [1.0, -1.0]]), rtol=1e-13)


def test_slip_generalized_hinge_is_not_cut_off_at_one():
    value, gradient = SurrogateRisk(GeneralizedHinge(alpha=1.0, epsilon=0.25)).value_and_gradient(TWO, APART)
    assert value == 0.0625
    np.testing.assert_array_equal(gradient, [[-0.25, 0.25], [0.25, -0.25]])


@pytest.mark.parametrize("surrogate", ["hinge", "q_hinge", "generalized_hinge"])
def test_slip_an_empty_active_set_is_empty(surrogate):
    # CalIndex's max(q − 1, 0) counts one element: α − 3, below 0.
    for scores in (3.0 * APART, 3.0 * APART + 1e6):
        value, gradient = SurrogateRisk(surrogate).value_and_gradient(TWO, scores)
        assert value == 0.0
        np.testing.assert_array_equal(gradient, np.zeros((2, 2)))


def test_slip_a_pair_at_the_margin_is_not_active():
    value, gradient = SurrogateRisk("hinge", alpha=1.0).value_and_gradient(TWO, APART)
    assert value == 0.0
    np.testing.assert_array_equal(gradient, np.zeros((2, 2)))
    value, gradient = SurrogateRisk("hinge", alpha=1.0).value_and_gradient(TWO, np.diag([1.0, 0.75]))
    assert value == 0.125
    np.testing.assert_array_equal(gradient, [[0.0, 0.5], [0.0, -0.5]])


def test_slip_squared_is_not_expanded():
    # ΣP² − 2ΣPQ + ΣQ² at 1e8 ± 1 has no digit left.
    rng = np.random.default_rng(0)
    y, scores = draw_classes(200, np.arange(3), rng), 1e8 + rng.integers(-8, 9, (200, 3)) / 8.0
    got, expected = (SurrogateRisk("squared", scheme=s).value_and_gradient(y, scores) for s in ("moments", "pairwise"))
    assert_close(got, expected, 1e-10)


# Bad input: nothing is computed.

Y, F = [0, 1, 2, 0], np.arange(12.0).reshape(4, 3) / 12
NAN = float("nan")


def with_entry(value):
    scores = F.copy()
    scores[2, 1] = value
    return scores


def value(*arguments, **options):
    return lambda: SurrogateRisk("squared", **options).value(*arguments)


CODES = r"^y must hold whole numbers from 0 to 2, the columns of the scores, got {}: encode the classes, e\.g\. with "
SHAPE = r"^y must have the shape \(4,\), got shape {}: pass one class per row of the scores$"
FIT = r"^scheme must fit the {} surrogate, got '{}': use 'auto' or one of {}, blocked, pairwise$"
# tests/test_validation.py has the other checks of scores, weights and pairs, which the metrics share.
BAD = {
    "unknown surrogate": (
        lambda: SurrogateRisk("squarred"),
        "^surrogate must be one of 'squared', 'exponential', .*, got 'squarred'$",
    ),
    "unknown scheme": (
        lambda: SurrogateRisk(scheme="fast"),
        "^scheme must be one of 'auto', 'moments', 'ranked', 'blocked', 'pairwise', got 'fast'$",
    ),
    "alpha 0": (lambda: SurrogateRisk(alpha=0.0), "^alpha must be a finite number above 0, got 0.0$"),
    "q 1": (lambda: SurrogateRisk(QHinge(q=1)), "^q must be a finite number above 1, got 1$"),
    "epsilon ½": (
        lambda: SurrogateRisk(GeneralizedHinge(epsilon=0.5)),
        "^epsilon must be a finite number strictly between 0 and 0.5, got 0.5$",
    ),
    "logistic by ranked": (
        lambda: SurrogateRisk("logistic", scheme="ranked"),
        FIT.format("logistic", "ranked", "moments"),
    ),
    "hinge by moments": (lambda: SurrogateRisk("hinge", scheme="moments"), FIT.format("hinge", "moments", "ranked")),
    "scores NaN": (
        value(Y, with_entry(NAN)),
        r"^scores must be finite, got nan at \(2, 1\) and 1 such values in all: drop or impute those samples; ",
    ),
    "scores of one dimension": (
        value(Y, F[:, 0]),
        r"^scores must have the shape \(n_samples, n_classes\), got shape \(4,\): ",
    ),
    "weightless class": (
        value(Y, F, [1.0, 1.0, 0.0, 1.0]),
        "^sample_weight must have a positive sum in every class, got zero for class 2: drop the samples of that ",
    ),
    "pairs of the wrong shape": (
        value(Y, F, pairs=np.ones((2, 2))),
        r"^pairs must be 'ovo', 'ova', 'ovr' or a \(3, 3\) matrix of weights, got array\(.*\) of shape \(2, 2\): pass ",
    ),
    "too few classes": (value(Y[:3], F), SHAPE.format(r"\(3,\)")),
    "classes of two dimensions": (value([[0, 1, 2, 0]], F), SHAPE.format(r"\(1, 4\)")),
    "class too large": (value([0, 1, 3, 0], F), CODES.format("0 to 3") + r"sklearn\.preprocessing\.LabelEncoder$"),
    "class too small": (value([0, 1, -1, 0], F), CODES.format("-1 to 1")),
    "class between": (value([0, 1, 0.5, 0], F), CODES.format(r"float64 values such as .*")),
    "class NaN": (value([0, 1, NAN, 0], F), CODES.format(r"float64 values such as .*")),
    "class infinite": (value([0, 1, INF, 0], F), CODES.format(r"0\.0 to inf")),
    "string classes": (value(["a", "b", "c", "a"], F), CODES.format(r"<U1 values such as .*a.*")),
    "boolean classes": (value([True, False, True, False], F), CODES.format("bool values such as .*True.*")),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused(what):
    call, message = BAD[what]
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        call()


def test_weights_of_any_size_count_the_same():
    expected = SurrogateRisk("hinge").value_and_gradient(Y, F)
    for size in (1e-300, 1e-30, 1e30, 1e300, 1e308):
        assert_close(SurrogateRisk("hinge").value_and_gradient(Y, F, np.full(4, size)), expected, 1e-13, f"{size}")
