"""What follows from a surrogate for scores of a kind: consistent or not, by proof or by a counterexample."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from mauc._validation import check_choice, invalid
from mauc.surrogates import SURROGATES, CustomSurrogate, Surrogate
from mauc.theory.alphas import PROVED, largest_alpha, smallest_alpha
from mauc.theory.minimiser import OF_LOGITS, SCORES, TIE, RiskMinimiser, likelihoods, risk_minimiser

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
"""With three classes or more, alone and beside the log-loss: proved in docs/theory.md for all α; for other losses the
counterexample decides."""
NEVER_WITH_SIGMOID = ("exponential",)
"""Beside the log-loss, with three classes or more: proved there too."""
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


def judge(
    ell: Surrogate,
    scores: str,
    *,
    met: bool,
    straight: bool,
    ratio: float | None,
    named: bool,
    log_loss: float = 0.0,
    n_classes: int | None = None,
) -> Verdict:
    """The verdict on ℓ.

    ``met`` and ``straight`` are what the report found on its interval: the theorem's condition, and a straight line.
    ``named`` says that ℓ is a surrogate of the library itself, not a polynomial in its place.
    """
    check_choice("scores", scores, SCORES)
    if log_loss > 0 and scores not in OF_LOGITS:
        advice = f"use scores of {', '.join(OF_LOGITS)}"
        raise invalid("log_loss", "needs scores that are made of logits", f"it with {scores!r}", advice)
    if scores == "log_odds":
        return _log_odds(ell, met=met, named=named, log_loss=log_loss, n_classes=n_classes)
    if log_loss > 0:
        return _both_terms(ell, scores, named=named, log_loss=log_loss, n_classes=n_classes)
    if scores == "unbounded":
        return _unbounded(ell, met=met, straight=straight, named=named)
    within = _within_unit(ell, scores, ratio, named)
    if scores != "softmax" or n_classes == 2:
        return within
    found = _of_three_classes(ell, "softmax")
    if found is not None or (named and ell.name in NEVER_WITH_SOFTMAX):
        reason = "with three classes or more: rows that sum to 1 tie the columns together; with two as on [0, 1]"
        return replace(within, consistent=False, reason=reason, counterexample=found)
    return replace(within, consistent=None, reason=UNDECIDED) if within.consistent else within


def _log_odds(ell: Surrogate, *, met: bool, named: bool, log_loss: float, n_classes: int | None) -> Verdict:
    """Two classes have one free score; more have one of which every column is right, for one α."""
    scores = "log_odds"
    if named and ell.log_odds_alpha is not None and ell.log_odds_alpha == vars(ell)["alpha"]:
        beside = " and the log-loss" if log_loss else ""
        reason = f"for any number of classes: the best scores minimise every column{beside} at once"
        return Verdict(scores, True, reason)
    if n_classes == 2 and met:
        return Verdict(scores, True, "with two classes: they have one score, and it is free")
    found = None if n_classes == 2 else _of_three_classes(ell, scores, log_loss)
    if found is not None:
        rates = {name: kind.log_odds_alpha for name, kind in SURROGATES.items()}
        right = " and ".join(f"{name} with alpha = {alpha:g}" for name, alpha in rates.items() if alpha is not None)
        return Verdict(scores, False, f"with three classes or more; {right} are", found)
    return Verdict(scores, None, UNDECIDED)


def _both_terms(ell: Surrogate, scores: str, *, named: bool, log_loss: float, n_classes: int | None) -> Verdict:
    """Softmax or sigmoid scores beside the log-loss."""
    if n_classes == 2:
        if scores == "softmax" and ell.smooth and ell.convex and ell.non_increasing:
            return Verdict(scores, True, "with two classes, for every alpha and every weight of the log-loss")
        return Verdict(scores, None, "proved for two classes with softmax scores and a smooth loss that never rises")
    found = _of_three_classes(ell, scores, log_loss)
    never = NEVER_WITH_SOFTMAX if scores == "softmax" else NEVER_WITH_SIGMOID
    if found is not None or (named and ell.name in never):
        reason = "with three classes or more: the two terms have different minimisers, and their sum has a third"
        return Verdict(scores, False, reason, found)
    return Verdict(scores, None, UNDECIDED)


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
    for near in NEAR:
        found = []
        for widest, rare in product(RATIOS if ratio is None else (ratio,), CENTRED):
            ratios = np.exp(0.5 * math.log(widest) * np.array([-1.0, near - 1.0, 0.0, 1.0 - near, 1.0]))
            one = risk_minimiser(ell, likelihoods(ratios, [rare, rare, 1.0, rare, rare]), "unit")
            if not one.optimal and (not ell.smooth or one.spread > 1.0 - TIE):
                found.append(one)
        if found:
            return max(found, key=lambda each: each.gap)
    return None


def _usable(ell: Any) -> bool:
    """Convex, so that a minimum found is the least: taken on word, or looked at on a grid."""
    slope = np.asarray(ell.derivative(np.linspace(-1.0, 1.0, 1025)))
    return bool(ell.convex or (np.diff(slope) >= -1e-9 * np.abs(slope).max()).all())


def _of_three_classes(ell: Surrogate, scores: str, log_loss: float = 0.0) -> RiskMinimiser | None:
    """The random problem whose minimiser loses most; one that is not solved does not count."""
    found = []
    for seed in SEEDS if ell.smooth and _usable(ell) else ():
        g = np.random.default_rng(seed).dirichlet(np.ones(POINTS), 3).T
        one = risk_minimiser(ell, g, scores, log_loss=log_loss)
        if not one.optimal and not one.excess > SOLVED:
            found.append(one)
    return max(found, key=lambda each: each.gap, default=None)
