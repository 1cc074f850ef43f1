"""What follows from a surrogate for scores of a kind: consistent or not, by proof or by a counterexample."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mauc._validation import check_choice
from mauc.surrogates import CustomSurrogate, Surrogate
from mauc.theory.alphas import PROVED, largest_alpha, smallest_alpha
from mauc.theory.minimiser import SCORES, TIE, RiskMinimiser, likelihoods, risk_minimiser

__all__ = ["Verdict", "judge"]

RATIOS = (4.0, 25.0, 400.0, 1e4, 1e6, 1e9, 1e12)
"""Largest by smallest likelihood ratio of the problems among which a counterexample is looked for."""
NEAR = (0.25, 0.1, 0.02, 0.004)
"""How near the second ratios are to the extreme ones, in the logarithm: those two are tied first."""
CENTRED = (1.0, 1e-3)
"""P(x) of the extreme points by that of the middle one: a spread is largest where nearly all is in the middle."""
KINKED = (0.2, 0.3, 1.0, 2.0, 5.0), (1.0, 2.0, 3.0, 2.0, 1.0)
"""Ratios and P(x) where every minimiser of the hinge has ties; symmetric problems have some in the right order too."""
NEVER_WITH_SOFTMAX = ("squared", "exponential")
"""Proved in docs/theory.md for all α; for other losses the counterexample decides."""
SEEDS, POINTS = range(8), 5
SOLVED = 1e-6
"""Largest duality gap, as a part of the risk, of a counterexample."""
UNDECIDED = "no counterexample found, and no proof"


@dataclass(frozen=True, eq=False)
class Verdict:
    """For the scores asked about: whether minimising the risk leads to the best ranking, and why."""

    scores: str
    consistent: bool | None
    """True and False are proved, or shown by the counterexample; None: neither is known."""
    reason: str
    counterexample: RiskMinimiser | None = None
    smallest_alpha: float | None = None
    """On [0, 1] and for the given ratio: :func:`mauc.theory.smallest_alpha`."""
    largest_alpha: float | None = None

    def __str__(self) -> str:
        answer = {True: "consistent", False: "not consistent", None: "not decided"}[self.consistent]
        return f"{self.scores} scores: {answer}, {self.reason}"


def judge(ell: Surrogate, scores: str, *, met: bool, straight: bool, ratio: float | None, named: bool) -> Verdict:
    """The verdict on ℓ.

    ``met`` and ``straight`` are what the report found on its interval: the theorem's condition, and a straight line.
    ``named`` says that ℓ is a surrogate of the library itself, not a polynomial in its place.
    """
    check_choice("scores", scores, SCORES)
    if scores == "unbounded":
        return _unbounded(ell, met=met, straight=straight, named=named)
    within = _within_unit(ell, scores, ratio, named)
    if scores != "softmax":
        return within
    found = _of_three_classes(ell)
    if found is not None or (named and ell.name in NEVER_WITH_SOFTMAX):
        reason = "with three classes or more: rows that sum to 1 tie the columns together; with two as on [0, 1]"
        return replace(within, consistent=False, reason=reason, counterexample=found)
    return replace(within, consistent=None, reason=UNDECIDED) if within.consistent else within


def _unbounded(ell: Surrogate, *, met: bool, straight: bool, named: bool) -> Verdict:
    scores = "unbounded"
    if named and ell.name == "squared":
        return Verdict(scores, True, "for every alpha: its minimiser is a multiple of the posterior, in closed form")
    if straight and isinstance(ell, CustomSurrogate):
        return Verdict(scores, False, "a straight line has no least risk")
    if met:
        limit = "" if named else ", as far as the minimiser's differences stay in the interval"
        return Verdict(scores, True, f"by the condition{limit}")
    if named and not ell.smooth:
        found = risk_minimiser(ell, likelihoods(*KINKED))
        if not found.optimal:
            return Verdict(scores, False, "its minimiser ties points whose ratios differ", found)
    return Verdict(scores, None, "the condition is sufficient, not necessary")


def _within_unit(ell: Surrogate, scores: str, ratio: float | None, named: bool) -> Verdict:
    """[0, 1], and what comes as close to it as one likes: the sigmoid, and softmax of two classes."""
    low, high = _alphas(ell, math.inf if ratio is None else ratio, named)
    for_which = "for every distribution" if ratio is None else f"for ratios within a factor of {ratio:g}"
    if named and ell.name in PROVED and low is not None and high is not None:
        alpha: float = vars(ell)["alpha"]
        if low <= alpha <= high and not math.isinf(low):
            return Verdict(scores, True, f"{for_which}: [0, 1] holds the unbounded minimiser", None, low, high)
    found = _counterexample(ell, ratio)
    if found is not None or (named and ell.name in PROVED):
        return Verdict(scores, False, "the minimiser ties points at the ends of [0, 1]", found, low, high)
    return Verdict(scores, None, UNDECIDED, None, low, high)


def _alphas(ell: Surrogate, ratio: float, named: bool) -> tuple[float | None, float | None]:
    if not named or not hasattr(ell, "alpha"):
        return None, None
    others = {key: value for key, value in vars(ell).items() if key != "alpha"}
    return tuple(ask(ell.name, ratio, **others) for ask in (smallest_alpha, largest_alpha))  # type: ignore[return-value]


def _counterexample(ell: Surrogate, ratio: float | None) -> RiskMinimiser | None:
    if not _usable(ell):
        return None
    for widest in RATIOS if ratio is None else (ratio,):
        half = 0.5 * math.log(widest)
        for near in NEAR:
            ratios = np.exp(half * np.array([-1.0, near - 1.0, 0.0, 1.0 - near, 1.0]))
            for rare in CENTRED:
                found = risk_minimiser(ell, likelihoods(ratios, [rare, rare, 1.0, rare, rare]), "unit")
                if not found.optimal and (not ell.smooth or found.spread > 1.0 - TIE):
                    return found
    return None


def _usable(ell: Any) -> bool:
    """Convex, so that a minimum found is the least: taken on word, or looked at on a grid."""
    slope = np.asarray(ell.derivative(np.linspace(-1.0, 1.0, 1025)))
    return bool(ell.convex or (np.diff(slope) >= -1e-9 * np.abs(slope).max()).all())


def _of_three_classes(ell: Surrogate) -> RiskMinimiser | None:
    for seed in SEEDS if ell.smooth and _usable(ell) else ():
        g = np.random.default_rng(seed).dirichlet(np.ones(POINTS), 3).T
        found = risk_minimiser(ell, g, "softmax")
        if not found.optimal and found.excess <= SOLVED:
            return found
    return None
