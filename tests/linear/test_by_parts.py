"""The risk and its gradient from sums over parts are those of the whole."""

import numpy as np
import pytest
from cases import EACH_KIND

from mauc.linear.by_parts import RankedParts, additive_risk
from mauc.partition import ClassPartition

CASES = [case for case in EACH_KIND if case.linear]


def whole_and_parts(spread, seed=0, n=60):
    """A problem, and the same cut into parts: one of a single class, one without rows."""
    rng = np.random.default_rng(seed)
    y = np.sort(np.concatenate([np.arange(4), rng.integers(0, 4, n - 4)]))
    scores = spread * np.round(rng.random((n, 4)), 2)
    partition = ClassPartition(y, 4, 0.5 + rng.random(n))
    classes = partition.classes(partition.pair_weights("ova"))
    parts = []
    for rows in (slice(0, 10), slice(10, 10), slice(10, 45), slice(45, n)):
        part = type(classes)(classes.y[rows], classes.unit[rows], 4, classes.v)
        parts.append(part.with_scores(scores[rows]))
    return classes.with_scores(scores), parts


def by_parts(risk, parts):
    if not isinstance(risk, RankedParts):
        sums = risk.add([risk.add([risk.sums(part) for part in parts[:2]]), *(risk.sums(part) for part in parts[2:])])
        return risk.value(sums), np.vstack([risk.slope(part, sums) for part in parts])
    table = risk.table([risk.own(part) for part in parts])
    visited = [risk.visit(part, table) for part in parts]
    value, landed = risk.add([found[:2] for found in visited])
    of_values = table.collect(landed)
    slopes = [risk.slope(part, table, found, of_values) for part, found in zip(parts, visited, strict=True)]
    return value, np.vstack(slopes)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_value_and_gradient(case, bounded):
    whole, parts = whole_and_parts(1.0)
    risk = case.risk()
    expected, gradient = risk.compute(whole, gradient=True)
    value, slope = by_parts(additive_risk(risk, np.zeros(4), np.ones(4), bounded=bounded), parts)
    # The middle of the range is another one than in memory: approximations round elsewhere.
    close = 1e-12 if case.exact else 1e-8
    assert value == pytest.approx(expected, rel=close)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=close * np.abs(gradient).max())


@pytest.mark.parametrize("surrogate", ["squared", "exponential"])
def test_far_scores(surrogate):
    """Sums of squares would cancel, and exponentials overflow: means and logarithms travel."""
    from mauc import SurrogateRisk

    whole, parts = whole_and_parts(1.0)
    moved = [part.classes.with_scores(part.scores + 1e6) for part in parts]
    risk = SurrogateRisk(surrogate, alpha=2.0)
    expected, gradient = risk.compute(whole, gradient=True)
    value, slope = by_parts(additive_risk(risk, np.zeros(4), np.ones(4)), moved)
    assert value == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-8)
