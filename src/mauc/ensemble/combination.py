r"""How the scores of several models become one, and how that is learnt from out-of-fold scores.

With the log-scores :math:`L_k` of K models, each of shape ``(N, C)``, and their mean :math:`\bar L`,

.. math:: F = \operatorname{softmax}\Bigl(\sum_k w_k L_k + (\bar L - \mu) A^\top\Bigr), \qquad w_k \ge 0.

The weights have K parameters, so that the pairwise risk can be trusted on few samples; a slight pull to 1/K,
:math:`\tfrac{\rho}{2} \lVert w - 1/K \rVert^2`, keeps them finite where the models separate the classes: without it
they grow into the thousands, the softmax rounds to 0 and 1, and samples that were ranked are tied. The ``(C, C)``
matrix A lets a class profit from the scores of the others, as where one class lies between two; it is drawn to 0 by
:math:`\tfrac{\lambda}{2} \lVert A \rVert^2`, and λ is chosen by cross-validation within the out-of-fold scores. There
is no A, λ = ∞, unless it wins by a standard error of the difference.

Measured on twelve sets (those of ``mauc bench tabular`` that come with the library; 8 splits, the default models; mean
test MAUC × 100): this form 96.97, weights alone 96.89, the best model by cross-validation 96.26, the average 96.47, the
average of the log-scores 96.36. The floor of the scores is 0.03 times the frequency of the class; 0.01 times it has
96.86 with weights alone, 0.03 divided by the number of classes 96.88, and 0.01 for all classes 96.90. That last one was
the form at first: it ties what a model ranks where scores are small (``benchmarks/stack_floor.py``), for 100 classes
(74.7; the best model 78.6, this form 78.3) or a rare class under models that do not balance (74.4, 79.3, 79.2). What
did not earn its place, all with the floor of 0.01, where the form had 96.99 and weights alone 96.90:

- α of 2, 4 and 8 in place of 6, weights alone: 96.76, 96.85, 96.82; without the pull to 1/K, α = 4: 96.68, with weights
  of 7 700 on one split of pageblocks; pulls of 0.01 and more: up to 0.1 lower;
- A wherever its held-out AUC is higher at all: 96.98; a fixed λ: no higher than weights alone;
- the average of the weights of ten bootstrap samples: 0.1 lower.

And earlier, on five of these sets: weights for every model and class, a matrix for every model, probabilities beside
log-scores, A on the weighted sum: none better than this form.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from mauc._typing import Floats, Ints
from mauc.activations import activate, pull_back
from mauc.kernels.tiles import Classes
from mauc.metrics import compare_mauc, mauc_score
from mauc.model_selection import RareClassKFold
from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk

__all__ = ["PENALTIES", "Combination", "OutOfFold", "choose_penalty", "fit_combination"]

PENALTIES = (np.inf, 1.0, 1e-1, 1e-2, 1e-3, 1e-4)
# Up to so many samples the folds are drawn three times, for which fold a rare sample falls into decides as much as λ
# does, and parameters are found to rounding: in some directions there is little but ρ and λ to hold them.
FEW = 5000
# Most iterations, largest entry of the gradient, smallest relative fall of the value.
EXACT = (1000, 1e-10, np.finfo(np.float64).eps)
QUICK = (200, 1e-7, 64 * np.finfo(np.float64).eps)
FOLDS = 5
# Held-out samples of every class, else there is no matrix: five in each training part of the five folds. A model that
# has lost one of two samples ranks it below the rest, and a matrix, unlike weights >= 0, would turn that round.
FEWEST = 7
NOTHING = 1e-3
RIDGE = 1e-3


@dataclass(frozen=True)
class OutOfFold:
    """Scores of every model for samples it was not trained on."""

    logs: Floats
    """``(K, N, C)`` log-scores."""
    codes: Ints
    """``(N,)`` class of each sample."""
    weight: Floats | None
    """``(N,)`` positive sample weights, or None."""

    def rows(self, chosen: Ints) -> "OutOfFold":
        """Some of the samples."""
        return OutOfFold(self.logs[:, chosen], self.codes[chosen], None if self.weight is None else self.weight[chosen])

    def classes(self, pairs: str | Floats) -> Classes:
        """What the risk takes; classes without samples drop out."""
        partition = ClassPartition(self.codes, self.logs.shape[2], self.weight)
        return partition.classes(partition.pair_weights(pairs))

    @property
    def smallest_class(self) -> int:
        """Samples of the rarest class, 0 where one has none."""
        return int(np.bincount(self.codes, minlength=self.logs.shape[2]).min())

    def mauc(self, scores: Floats, pairs: str | ArrayLike) -> float:
        """Multiclass AUC of ``(N, C)`` scores; NaN where fewer than two classes are there."""
        if len(np.unique(self.codes)) < 2:
            return float("nan")
        labels = np.arange(scores.shape[1])
        return mauc_score(self.codes, scores, pairs=pairs, labels=labels, sample_weight=self.weight, absent="ignore")


@dataclass(frozen=True)
class Combination:
    """Fitted weights, and the matrix where there is one."""

    weights: Floats
    """``(K,)`` weight of each model, >= 0."""
    interactions: Floats | None = None
    """``(C, C)`` matrix A."""
    centre: Floats | None = None
    """``(C,)`` weighted mean μ of the mean log-scores."""

    def scores(self, logs: Floats) -> Floats:
        """``(N, C)`` softmax scores of ``(K, N, C)`` log-scores."""
        combined = np.tensordot(self.weights, logs, axes=1)
        if self.interactions is not None:
            combined = combined + (logs.mean(axis=0) - self.centre) @ self.interactions.T
        return activate(combined, "softmax")


def fit_combination(
    data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats, penalties: Sequence[float] = (np.inf,)
) -> list[Combination]:
    """The combination of least risk for each penalty λ, each starting from the last: strongest first.

    One evaluation costs O(K·N·C), and O(N·C²) with a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import SurrogateRisk
    >>> y = np.array([0, 0, 1, 1, 2, 2])
    >>> good, bad = np.eye(3)[y], np.eye(3)[[0, 1, 1, 2, 2, 0]]
    >>> logs = np.log(np.maximum([good, bad], 0.01))
    >>> (found,) = fit_combination(OutOfFold(logs, y, None), SurrogateRisk(alpha=4.0), "ovo")
    >>> bool(found.weights[0] > found.weights[1])
    True
    """
    classes = data.classes(pairs)
    weights = _fit_weights(data.logs, classes, risk)
    if min(penalties) == np.inf:
        return [Combination(weights) for _ in penalties]
    fixed = np.tensordot(weights, data.logs, axes=1)
    mean = data.logs.mean(axis=0)
    centre = np.average(mean, axis=0, weights=data.weight)
    centred = mean - centre
    matrix = np.zeros((mean.shape[1], mean.shape[1]))
    out = []
    for penalty in penalties:
        if penalty == np.inf:
            out.append(Combination(weights))
        else:
            matrix = _fit_matrix(fixed, centred, classes, risk, penalty, matrix)
            out.append(Combination(weights, matrix, centre))
    return out


def _fit_weights(logs: Floats, classes: Classes, risk: SurrogateRisk) -> Floats:
    start = np.full(len(logs), 1.0 / len(logs))

    def objective(weights: Floats) -> tuple[float, Floats]:
        value, slope = _risk_of_logits(np.tensordot(weights, logs, axes=1), classes, risk)
        away = weights - start
        return value + 0.5 * RIDGE * float(away @ away), np.einsum("nc,knc->k", slope, logs) + RIDGE * away

    bounds = [(0.0, None)] * len(logs)
    weights = _minimum(objective, start, logs.shape[1], bounds)
    # Where every model ranks what it was not trained on wrongly, none is best, but 0 for all would rank nothing.
    return weights if weights.sum() > NOTHING else start


def _fit_matrix(
    fixed: Floats, centred: Floats, classes: Classes, risk: SurrogateRisk, penalty: float, start: Floats
) -> Floats:
    def objective(flat: Floats) -> tuple[float, Floats]:
        matrix = flat.reshape(start.shape)
        value, slope = _risk_of_logits(fixed + centred @ matrix.T, classes, risk)
        return value + 0.5 * penalty * float(flat @ flat), (slope.T @ centred + penalty * matrix).ravel()

    return _minimum(objective, start.ravel(), len(fixed)).reshape(start.shape)


def _minimum(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, n_samples: int, bounds: Any = None
) -> Floats:
    max_iter, gtol, ftol = EXACT if n_samples <= FEW else QUICK
    found = optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter, "maxfun": 10_000, "gtol": gtol, "ftol": ftol},
    )
    return np.asarray(found.x, dtype=np.float64)


def _risk_of_logits(logits: Floats, classes: Classes, risk: SurrogateRisk) -> tuple[float, Floats]:
    scores = activate(logits, "softmax")
    value, gradient = risk.compute(classes.with_scores(scores), gradient=True, bounded=True)
    assert gradient is not None
    return value, pull_back(scores, gradient, "softmax")


def choose_penalty(
    data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats, penalties: Sequence[float], *, random_state: int
) -> tuple[float, float, Floats]:
    """The penalty for these samples, ``(N, C)`` scores that were held out from its combination, after their AUC.

    Five folds, drawn three times where samples are few. Of the penalties that beat the strongest by a standard error of
    the difference (:func:`mauc.compare_mauc`), the one of the largest gain; otherwise the strongest. Infinite, no
    matrix, wherever a class has fewer than seven samples. The AUC is NaN where no two classes could be held out, and so
    are the scores of samples that never were.
    """
    if data.smallest_class < FEWEST:
        penalties = (np.inf,)
    simplest = int(np.argmax(penalties))
    draws = 3 if len(data.codes) <= FEW and len(penalties) > 1 else 1
    held_out = [_held_out(data, risk, pairs, penalties, random_state + draw) for draw in range(draws)]
    best = simplest
    if len(penalties) > 1:
        by_draw = [[_gain(data, pairs, scores, draw[simplest]) for scores in draw] for draw in held_out]
        gain, error = np.mean(by_draw, axis=0).T
        best = int(np.argmax(np.where(gain > error, gain, 0.0))) if (gain > error).any() else simplest
    seen = np.flatnonzero(~np.isnan(held_out[0][best, :, 0]))
    score = data.rows(seen).mauc(held_out[0][best, seen], pairs) if len(seen) else float("nan")
    return penalties[best], score, held_out[0][best]


def _held_out(
    data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats, penalties: Sequence[float], random_state: int
) -> Floats:
    """``(penalties, N, C)`` scores of combinations that were learnt without the sample; NaN where it is in no fold."""
    scores = np.full((len(penalties), *data.logs.shape[1:]), np.nan)
    for train, test in RareClassKFold(FOLDS, random_state=random_state).split(data.codes, data.codes):
        if len(test) and len(np.unique(data.codes[train])) > 1:
            found = fit_combination(data.rows(train), risk, pairs, penalties)
            scores[:, test] = [combination.scores(data.logs[:, test]) for combination in found]
    return scores


def _gain(data: OutOfFold, pairs: str | Floats, scores: Floats, simplest: Floats) -> tuple[float, float]:
    """Difference in multiclass AUC and its standard error."""
    labels = np.arange(scores.shape[1])
    found = compare_mauc(data.codes, scores, simplest, pairs=pairs, labels=labels, sample_weight=data.weight)
    return found.difference, found.stderr
