"""Plan a study: how many rows of which class it needs, by simulation from pilot scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._typing import Floats, Ints, Pairs
from mauc._validation import check_pairs, check_real, check_scored_classes, check_whole, in_class_order, invalid
from mauc.metrics.inference import score_and_influence
from mauc.metrics.scores import scored_pairs
from mauc.metrics.uncertainty import Sample, comparison, interval
from mauc.partition import ClassPartition

__all__ = ["SampleSize", "mauc_sample_size"]


@dataclass(frozen=True)
class SampleSize:
    """Number of rows that a study needs."""

    rows: int
    class_counts: dict[Any, int]
    """Rows of each class; they add up to ``rows``."""
    power: float
    """Share of the simulated studies of this size that reached the goal."""
    uncertainty: dict[Any, float]
    """Share of each class in the variance of the result; more rows of the class with the largest share help most."""


def mauc_sample_size(
    y_true: ArrayLike,
    y_score: ArrayLike,
    score_b: ArrayLike | None = None,
    *,
    width: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    class_shares: ArrayLike | None = None,
    pairs: Pairs = "ovo",
    labels: ArrayLike | None = None,
    n_draws: int = 200,
    max_rows: int = 200_000,
    random_state: int = 0,
) -> SampleSize:
    """Estimate how many rows a study needs, by simulation from the scores of a pilot.

    Studies are drawn from the pilot: rows of each class with replacement. The result is the smallest size at which the
    share ``power`` of the studies reaches the goal:

    - ``width``: the interval of :func:`mauc_interval` is at most this wide;
    - ``difference``: the interval of :func:`compare_mauc` excludes 0 if the two models truly differ by this much. The
      pilot provides the variances of the two models and their correlation, but not the difference.

    Parameters
    ----------
    y_true : (N,) array of classes, integers or strings
        Classes of the pilot rows; each class needs two rows or more.
    y_score : (N, C) array of real scores
    score_b : (N, C) array of real scores, optional
        Scores of the second model; required with ``difference``.
    width : float, optional
        Width of the interval, between 0 and 1. Pass this or ``difference``.
    difference : float, optional
        Difference of the two multiclass AUCs, between 0 and 1.
    power : float, default=0.8
        Share of the studies that should reach the goal, between 0 and 1.
    level : float, default=0.95
        Confidence level of the interval; the test is two-sided at ``1 - level``.
    class_shares : (C,) array, optional
        Share of each class in the study; normalised to sum to 1. Default: the shares in the pilot.
    pairs, labels
        Weights of the class pairs, and classes of the columns; see :func:`mauc_score`.
    n_draws : int, default=200
        Number of simulated studies for each size.
    max_rows : int, default=200_000
        Raise an error if more rows would be needed.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    SampleSize
        With ``rows``, ``class_counts``, ``power`` and ``uncertainty``.

    Notes
    -----
    The result is only as good as the pilot. A class with few pilot rows may hide errors, and the size may then be too
    small. With 200 draws the power is known to about ±0.06, and the size to about 10 %.

    Rows are drawn independently. For rows in groups, such as several images of a patient, multiply the size by the
    design effect: the squared ratio of the widths of ``mauc_interval(…, groups=…)`` and ``mauc_interval(…)`` on the
    pilot.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import mauc_sample_size
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (y[:, None] == ["elm", "oak", "yew"])
    >>> found = mauc_sample_size(y, scores, width=0.08)
    >>> found.rows, found.class_counts
    (448, {'elm': 90, 'oak': 335, 'yew': 23})
    >>> {name: round(share, 2) for name, share in found.uncertainty.items()}
    {'elm': 0.15, 'oak': 0.05, 'yew': 0.8}

    A study with as many yews as oaks needs fewer rows:

    >>> mauc_sample_size(y, scores, width=0.08, class_shares=[1, 1, 1]).rows
    138
    """
    level, power = (check_real(name, x, low=0, high=1) for name, x in (("level", level), ("power", power)))
    n_draws = check_whole("n_draws", n_draws, least=10)
    seed = check_whole("random_state", random_state, least=0, advice="pass a seed")
    if (width is None) == (difference is None):
        came = "neither" if width is None else "both"
        raise invalid("width", "must be given, or difference, but not both", came, "pass width=0.05, for instance")
    if (difference is None) != (score_b is None):
        advice = "pass both, or width alone"
        raise invalid("difference", "must be given together with score_b", "only one of them", advice)
    goal = check_real(*(("difference", difference) if width is None else ("width", width)), low=0, high=1)
    scored = check_scored_classes(y_true, y_score, labels, None)
    models = [scored.scores]
    if score_b is not None:
        models.append(check_scored_classes(y_true, score_b, labels, None, "score_b").scores)
        if np.array_equal(models[0], models[1]):
            raise invalid("score_b", "must differ from y_score", "the same scores", "pass the scores of another model")
    pilot, _ = scored_pairs(scored, pairs, "raise")
    if pilot.counts.min() < 2:
        single = scored.labels[int(np.argmin(pilot.counts))]
        raise invalid("y_true", "must hold two rows or more of each class", f"one of {single}", "use a larger pilot")
    weights, shares = check_pairs(pairs, pilot.n_classes, scored.labels), pilot.priors
    if class_shares is not None:
        shares = _class_shares(class_shares, scored.labels)
    members = [np.flatnonzero(pilot.codes == k) for k in range(pilot.n_classes)]

    def evaluate(codes: Ints, rows: Any) -> tuple[Sample, list[tuple[float, Floats]]]:
        """Return the sample of these pilot rows, and the score and the influences of each model."""
        partition = ClassPartition(codes, pilot.n_classes)
        v = partition.pair_weights(weights)
        return Sample.of(partition, v), [score_and_influence(partition, scores[rows], v) for scores in models]

    sample, of_pilot = evaluate(pilot.codes, slice(None))
    shift = goal - (of_pilot[0][0] - of_pilot[-1][0])

    def reaches(sample: Sample, results: list[tuple[float, Floats]]) -> bool:
        if len(results) == 1:
            found = interval(sample, *results[0], level)
            return found.high - found.low <= goal
        tested = comparison(sample, results[0], results[1], level)
        return tested.low + shift > 0.0 or tested.high + shift < 0.0

    def simulate(n_rows: int) -> tuple[float, Ints, Floats]:
        """Return the share of studies that reach the goal, their class sizes, and the variance from each class."""
        counts = np.maximum(2, np.ceil(n_rows * shares).astype(np.int64))
        codes, rng = np.repeat(np.arange(len(counts)), counts), np.random.default_rng(seed)
        reached, variance = 0, np.zeros(len(counts))
        for _ in range(n_draws):
            rows = np.concatenate([rng.choice(some, n) for some, n in zip(members, counts, strict=True)])
            drawn, results = evaluate(codes, rows)
            reached += reaches(drawn, results)
            influence = results[0][1] if len(results) == 1 else results[0][1] - results[1][1]
            variance += drawn.moments(influence).squares
        return reached / n_draws, counts, variance

    # Widths and standard errors fall with the root of the size. A power of .8 needs 2.8 standard errors.
    if len(models) == 1:
        found = interval(sample, *of_pilot[0], level)
        ratio = (found.high - found.low) / goal
    else:
        ratio = 2.8 * comparison(sample, of_pilot[0], of_pilot[1], level).stderr / goal
    n_rows = _smallest(
        lambda n: simulate(n)[0] >= power, round(len(pilot.codes) * ratio**2), 2 * pilot.n_classes, max_rows
    )
    reached, counts, variance = simulate(n_rows)
    names = scored.labels.tolist()
    return SampleSize(
        rows=int(counts.sum()),
        class_counts=dict(zip(names, counts.tolist(), strict=True)),
        power=reached,
        uncertainty=dict(zip(names, (variance / variance.sum()).tolist(), strict=True)),
    )


def _class_shares(given: ArrayLike, labels: NDArray[Any]) -> Floats:
    shares = np.asarray(given, dtype=np.float64)
    if shares.shape != (len(labels),) or not np.isfinite(shares).all() or shares.min() <= 0:
        requirement = f"must hold {len(labels)} positive numbers, one per class"
        raise invalid("class_shares", requirement, repr(given), "pass how the rows of the study are spread")
    return in_class_order(given, np.asarray(shares / shares.sum()), labels, "class_shares")


def _smallest(reached: Callable[[int], bool], guess: int, least: int, most: int, step: float = 1.3) -> int:
    """Return the smallest size that reaches the goal, to 2 %, searching from a first guess."""
    high = min(max(guess, least), most)
    low = high
    while guess > 2 * most or not reached(high):
        if high >= most:
            came = f"{most}, where about {max(guess, most)} rows or more are needed"
            advice = "pass a larger max_rows, or a goal that fewer rows can reach"
            raise invalid("max_rows", "must be enough for the goal", came, advice)
        low, high = high, min(most, int(high * step) + 1)
    while low == high > least:  # the guess was enough: look below it
        low = max(least, int(high / step))
        if reached(low):
            high = low
    while high - low > max(1, 0.02 * high):
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
