r"""How the scores of several models become one, and how that is learnt from out-of-fold scores.

With the scores :math:`P_k` of K models, each of shape ``(N, C)``, their logarithms :math:`L_k` above a floor, and their
mean :math:`\bar P`,

.. math:: F = s \operatorname{softmax}\Bigl(\sum_k w_k L_k\Bigr) + (1 - s)\, \bar P, \quad w_k \ge 0,\ s \in \{1/2, 1\}.

The weights have K parameters, so that the pairwise risk can be trusted on few samples; a slight pull to 1/K,
:math:`\tfrac{\rho}{2} \lVert w - 1/K \rVert^2`, keeps them finite where the models separate the classes: without it
they grow into the thousands, the softmax rounds to 0 and 1, and samples that were ranked are tied. Where classes are
small the weights follow noise, and the mean does not: weights that were learnt on other folds must be ahead of the mean
by a standard error of the difference (:func:`mauc.compare_mauc`), else s is a half. Where a single model is ahead of
the combination by three standard errors, it is the combination; not where a class has fewer than ten samples.

Measured on the 32 sets of the tabular experiment that are not kept for judging (two splits of 60 %, 63 results; mean
test MAUC × 100, and its difference from the seven models before deep trees and perceptron, by weights alone, 92.70):

- this form, nine models: 92.88, +0.17 ± 0.17 (standard error), 33 won, 21 lost; by weights alone 92.82; the seven
  models by the same rule 92.69. Without the forest 92.91, the linear MAUC model 92.91, the kernel 92.89, the strongly
  penalised logistic regression 92.85, boosting 92.81, all linear models 92.81;
- a perceptron of :mod:`mauc.nn` in place of scikit-learn's: 92.90, and needs torch; LightGBM with random thresholds
  beside them: 92.91; trees of bootstrap samples for the deep ones: 92.77.

On 50 of these results, with the first eight models, against weights alone:

- the rule +0.34 ± 0.18; always half +0.29; the mean where the weights are not ahead by a standard error +0.22; the mean
  alone +0.06; the best model wherever it is above the combination −0.25; weights drawn to equal by t² / (1 + t²) −0.10.

On 19 of them: scores of samples out of the bag in place of folds, which save five fits of six, −0.41 ± 0.10: they come
from a third of the trees, and the weights pass to other models. Earlier, on the twelve sets that come with the library:
α of 2, 4 and 8 in place of 6, 0.05 to 0.14 lower; no pull to 1/K, 0.2 lower, with weights of 7 700; weights for every
model and class, and matrices between classes, at most 0.1 higher there and 0.01 on the 57 sets kept for judging. The
floor is 0.03 times the frequency of the class; a floor of 0.01 for all classes ties what a model ranks where scores are
small (``benchmarks/stack_floor.py``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from mauc._kernels.tiles import Classes
from mauc._typing import Floats, Ints
from mauc.activations import activate, pull_back
from mauc.metrics import compare_mauc, mauc_score
from mauc.model_selection import RareClassKFold, group_folds
from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk

__all__ = ["Combination", "Learnt", "OutOfFold", "fit_weights", "learn", "unlearnt"]

# Up to so many samples, and scores, weights are found to rounding: in some directions little but ρ holds them.
FEW, FEW_SCORES = 5000, 50_000
# Most iterations, largest entry of the gradient, smallest relative fall of the value.
EXACT = (1000, 1e-10, np.finfo(np.float64).eps)
QUICK = (200, 1e-7, 64 * np.finfo(np.float64).eps)
FOLDS = 5
NOTHING = 1e-3
RIDGE = 1e-3
HALF = 0.5


@dataclass(frozen=True)
class OutOfFold:
    """Scores of every model for samples it was not trained on."""

    scores: Floats
    """``(K, N, C)``, in [0, 1]."""
    codes: Ints
    """``(N,)`` class of each sample."""
    weight: Floats | None
    """``(N,)`` positive sample weights, or None."""
    floors: Floats
    """``(C,)`` smallest score of each class before the logarithm."""
    groups: Ints | None = None
    """``(N,)`` group of each sample, where groups are held out as a whole."""

    def rows(self, chosen: Ints) -> "OutOfFold":
        """Some of the samples."""
        weight = None if self.weight is None else self.weight[chosen]
        groups = None if self.groups is None else self.groups[chosen]
        return OutOfFold(self.scores[:, chosen], self.codes[chosen], weight, self.floors, groups)

    def folds(self, random_state: int) -> list[tuple[Ints, Ints]]:
        """To learn the combination from and to judge it by."""
        if self.groups is not None:
            return group_folds(self.codes, self.groups, FOLDS, random_state)
        return list(RareClassKFold(FOLDS, random_state=random_state).split(self.codes, self.codes))

    def classes(self, pairs: str | Floats) -> Classes:
        """What the risk takes; classes without samples drop out."""
        partition = ClassPartition(self.codes, self.scores.shape[2], self.weight)
        return partition.classes(partition.pair_weights(pairs))

    def mauc(self, scores: Floats, pairs: str | ArrayLike) -> float:
        """Multiclass AUC of ``(N, C)`` scores; NaN where fewer than two classes are there."""
        present = np.unique(self.codes)
        if len(present) < 2:
            return float("nan")
        labels = np.arange(scores.shape[1])
        if isinstance(pairs, str):
            # Classes that are not there drop out: there may be thousands of them.
            labels, scores = present, scores[:, present]
        return mauc_score(self.codes, scores, pairs=pairs, labels=labels, sample_weight=self.weight, absent="ignore")


@dataclass(frozen=True)
class Combination:
    """Fitted weights, and how far they are trusted."""

    weights: Floats
    """``(K,)`` weight of each model, >= 0."""
    floors: Floats
    """``(C,)`` smallest score of each class before the logarithm."""
    share: float = 1.0
    """Of the weighted scores; the rest is that of the plain mean."""

    @property
    def used(self) -> NDArray[np.bool_]:
        """``(K,)``: models without whose scores the combination would be another."""
        return np.asarray((self.weights > 0) | (self.share < 1.0))

    def scores(self, of_models: Floats) -> Floats:
        """``(N, C)`` of ``(K, N, C)`` scores of the models."""
        logs = np.log(np.maximum(of_models, self.floors))
        weighted = activate(np.tensordot(self.weights, logs, axes=1), "softmax")
        return weighted if self.share == 1.0 else self.share * weighted + (1.0 - self.share) * of_models.mean(axis=0)


@dataclass(frozen=True)
class Learnt:
    """A combination, and what it does with samples it was not learnt from."""

    combination: Combination
    held_out: Floats
    """``(N, C)`` scores; NaN where a sample was in no fold."""
    mauc: float
    """Of these; NaN where no two classes could be held out."""


def learn(data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats, *, random_state: int) -> Learnt:
    """Weights, and by five folds of the samples whether they are ahead of the plain mean of the models, and no single
    model clearly ahead of them.
    """
    weighted = _held_out(data, risk, pairs, random_state)
    seen = np.flatnonzero(~np.isnan(weighted[:, 0]))
    mean = data.scores.mean(axis=0)
    share = 1.0 if _ahead(data, weighted, mean, pairs, seen, 1.0) else HALF
    held_out = weighted if share == 1.0 else share * weighted + (1.0 - share) * mean
    score = data.rows(seen).mauc(held_out[seen], pairs) if len(seen) else float("nan")
    # Errors of a class of few samples are not to be trusted, and the best of several models is ahead by chance.
    counts = np.bincount(data.codes[seen])
    if len(data.scores) > 1 and len(seen) and counts[counts > 0].min() >= 10:
        best = _best(data, pairs, seen)
        if _ahead(data, data.scores[best], held_out, pairs, seen, 3.0):
            return alone(data, best, pairs)
    return Learnt(Combination(fit_weights(data, risk, pairs), data.floors, share), held_out, score)


def alone(data: OutOfFold, model: int, pairs: str | Floats) -> Learnt:
    """One of the models in place of a combination."""
    only = Combination(np.eye(len(data.scores))[model], data.floors)
    held_out = only.scores(data.scores)
    return Learnt(only, held_out, data.mauc(held_out, pairs))


def unlearnt(data: OutOfFold, pairs: str | Floats) -> Learnt:
    """The plain mean of the models, or the best of them if it is ahead: where weights cannot be learnt."""
    best = alone(data, _best(data, pairs, np.arange(len(data.codes))), pairs)
    n_models = len(data.scores)
    even = Combination(np.full(n_models, 1.0 / n_models), data.floors, HALF)
    held_out = even.scores(data.scores)
    score = data.mauc(held_out, pairs)
    return best if best.mauc >= score else Learnt(even, held_out, score)


def _best(data: OutOfFold, pairs: str | Floats, seen: Ints) -> int:
    """The model of the highest multiclass AUC; the first where there is none."""
    rows = data.rows(seen)
    return int(np.argmax(np.nan_to_num([rows.mauc(each, pairs) for each in rows.scores], nan=0.0)))


def _ahead(data: OutOfFold, scores: Floats, others: Floats, pairs: str | Floats, seen: Ints, n_errors: float) -> bool:
    """Whether scores gain more than so many standard errors of the gain; a single sample of a class has none."""
    counts = np.bincount(data.codes[seen], minlength=scores.shape[1])
    rows = seen[counts[data.codes[seen]] > 1]
    if len(np.unique(data.codes[rows])) < 2:
        return False
    found = compare_mauc(
        data.codes[rows],
        scores[rows],
        others[rows],
        pairs=pairs,
        labels=np.arange(scores.shape[1]),
        sample_weight=None if data.weight is None else data.weight[rows],
        absent="ignore",
    )
    return found.difference > n_errors * found.stderr


def _held_out(data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats, random_state: int) -> Floats:
    """``(N, C)`` scores by weights that were learnt without the sample; NaN where it is in no fold."""
    scores = np.full(data.scores.shape[1:], np.nan)
    for train, test in data.folds(random_state):
        if len(test) and len(np.unique(data.codes[train])) > 1:
            weights = fit_weights(data.rows(train), risk, pairs)
            scores[test] = Combination(weights, data.floors).scores(data.scores[:, test])
    return scores


def fit_weights(data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats) -> Floats:
    """``(K,)`` weights of least risk. One evaluation costs O(K·N·C).

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import SurrogateRisk
    >>> y = np.array([0, 0, 1, 1, 2, 2])
    >>> good, bad = np.eye(3)[y], np.eye(3)[[0, 1, 1, 2, 2, 0]]
    >>> data = OutOfFold(np.stack([good, bad]), y, None, np.full(3, 0.01))
    >>> weights = fit_weights(data, SurrogateRisk(alpha=4.0), "ovo")
    >>> bool(weights[0] > weights[1])
    True
    """
    classes = data.classes(pairs)
    logs = np.log(np.maximum(data.scores, data.floors))
    start = np.full(len(logs), 1.0 / len(logs))

    def objective(weights: Floats) -> tuple[float, Floats]:
        scores = activate(np.tensordot(weights, logs, axes=1), "softmax")
        value, gradient = risk.compute(classes.with_scores(scores), gradient=True, bounded=True)
        assert gradient is not None
        away = weights - start
        slope = np.einsum("nc,knc->k", pull_back(scores, gradient, "softmax"), logs)
        return value + 0.5 * RIDGE * float(away @ away), slope + RIDGE * away

    weights = _minimum(objective, start, logs.shape[1:], [(0.0, None)] * len(logs))
    # Where every model ranks what it was not trained on wrongly, none is best, but 0 for all would rank nothing.
    return weights if weights.sum() > NOTHING else start


def _minimum(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, shape: tuple[int, ...], bounds: Any
) -> Floats:
    n_samples, n_classes = shape
    exact = n_samples <= FEW and n_samples * n_classes <= FEW_SCORES
    max_iter, gtol, ftol = EXACT if exact else QUICK
    found = optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iter, "maxfun": 10_000, "gtol": gtol, "ftol": ftol},
    )
    return np.asarray(found.x, dtype=np.float64)
