"""Scores of the models of a fitted stack without what surrounds them: what several need is made once for all, and
nothing is checked again.

A model that is known here, by its exact type, is read once into arrays; its scores are those of its own
``predict_proba`` to rounding. Any other is asked itself, and so is each where X holds more than finite numbers, for the
error to be its own.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from mauc._typing import Floats
from mauc.activations import activate
from mauc.ensemble.bases import BoostedTrees, KernelColumns, class_scores
from mauc.ensemble.columns import NUMBERS, transform_all
from mauc.ensemble.fitting import FoldAverage
from mauc.ensemble.odds import ProportionalOdds
from mauc.ensemble.perceptron import BalancedPerceptron
from mauc.ensemble.quick_trees import BoostingScores, ForestScores
from mauc.linear import MAUCClassifier

__all__ = ["QuickScores", "Rows", "StackScores"]

LARGEST = float(np.finfo(np.float32).max)
"""What forests take."""

MOST_KEPT = 2**24
"""Bytes of numbers of which what was made is kept for the next model: there is one of it for each fold."""

OfNumbers = Callable[[NDArray[Any]], Floats]


@dataclass(frozen=True, eq=False)
class Quick:
    """A model in two parts."""

    key: Hashable
    """The same for models that make the same of the numbers."""
    make: OfNumbers
    """From numbers to what the scores are of."""
    scores: OfNumbers
    """``(N, classes of the model)``"""


class Rows:
    """Samples as the models of a fold take them, and what several of these make of them."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._made: dict[Hashable, NDArray[Any]] = {}

    @cached_property
    def numbers(self) -> NDArray[Any] | None:
        """As float64, or float32 where they are; None unless they are numbers that every model takes, or missing."""
        if getattr(self.X, "ndim", 0) != 2 or self.X.shape[0] == 0:
            return None
        kinds = [self.X.dtype] if isinstance(self.X, np.ndarray) else list(getattr(self.X, "dtypes", [None]))
        if not all(isinstance(kind, np.dtype) and kind.kind in NUMBERS for kind in kinds):
            return None
        single = all(kind == np.float32 for kind in kinds)
        numbers = np.asarray(self.X, dtype=np.float32 if single else np.float64)
        return numbers if np.fmax.reduce(np.abs(numbers), axis=None, initial=0.0) <= LARGEST else None

    def scores(self, model: Quick) -> Floats:
        """``(N, classes of the model)``"""
        assert self.numbers is not None
        if self.numbers.nbytes > MOST_KEPT:
            return model.scores(model.make(self.numbers))
        if model.key not in self._made:
            self._made[model.key] = model.make(self.numbers)
        return model.scores(self._made[model.key])


class QuickScores:
    """``(N, C)`` scores of a model that was fitted on codes, as :func:`mauc.ensemble.bases.class_scores` gives them.

    Parameters
    ----------
    model : fitted classifier
    n_classes : int
    """

    def __init__(self, model: Any, n_classes: int) -> None:
        self.model, self.n_classes = model, n_classes
        self.quick = _read(model)

    def __call__(self, rows: Rows) -> Floats:
        """``(N, C)``"""
        if self.quick is not None and rows.numbers is not None:
            found = rows.scores(self.quick)
            if np.isfinite(found).all():
                return self._of_all(found)
        return class_scores(self.model, rows.X, self.n_classes)

    def _of_all(self, found: Floats) -> Floats:
        """0 for a class that the model does not know."""
        if found.shape[1] == self.n_classes:
            return found.astype(np.float64, copy=False)
        scores = np.zeros((len(found), self.n_classes))
        scores[:, np.asarray(self.model.classes_, dtype=np.int64)] = found
        return scores


class StackScores:
    """``(K, N, C)`` scores of the models of a fitted stack; those of folds get the columns as they were made for it.

    Parameters
    ----------
    models : list of fitted classifiers, some of them averages over folds
    columns : fitted transformer, or None for X as it is
    fold_columns : list of fitted transformers, one per fold, or nothing
    n_classes : int
    """

    def __init__(self, models: Sequence[Any], columns: Any, fold_columns: Sequence[Any], n_classes: int) -> None:
        self.models, self.columns, self.fold_columns, self.n_classes = models, columns, fold_columns, n_classes
        self._averaged = [isinstance(model, FoldAverage) for model in models]
        self._scores = [
            [QuickScores(part, n_classes) for part in (model.estimators if averaged else [model])]
            for model, averaged in zip(models, self._averaged, strict=True)
        ]

    def __call__(self, X: Any, needed: NDArray[np.bool_]) -> Floats:
        """``(K, N, C)``; 1 throughout for a model that is not needed."""
        whole, by_fold = self._rows(X, needed)
        found = [
            _mean(parts, by_fold if averaged else whole) if wanted else None
            for parts, averaged, wanted in zip(self._scores, self._averaged, needed, strict=True)
        ]
        nothing = np.ones(next(each.shape for each in found if each is not None))
        return np.array([nothing if each is None else each for each in found])

    def _rows(self, X: Any, needed: NDArray[np.bool_]) -> tuple[list[Rows], list[Rows]]:
        """For models of all data, and for those of each fold."""
        if self.columns is None:
            rows = [Rows(X)]
            return rows, rows * max(map(len, self._scores))
        averaged = np.array(self._averaged)
        of_all = [self.columns] if needed[~averaged].any() else []
        of_folds = self.fold_columns if needed[averaged].any() else []
        rows = [Rows(made) for made in transform_all([*of_all, *of_folds], X)]
        return rows[: len(of_all)], rows[len(of_all) :]


def _mean(parts: Sequence[QuickScores], rows: Sequence[Rows]) -> Floats:
    return np.asarray(np.mean([scores(own) for scores, own in zip(parts, rows, strict=True)], axis=0))


def _read(model: Any) -> Quick | None:
    """A model that is known here; None for any other."""
    if type(model) in (ExtraTreesClassifier, RandomForestClassifier):
        takes_nan = model.monotonic_cst is None and get_tags(model).input_tags.allow_nan
        if not takes_nan or model.n_jobs not in (None, 1):
            return None
        return Quick("float32", _as(np.float32), ForestScores([each.tree_ for each in model.estimators_]))
    if type(model) in (BoostedTrees, HistGradientBoostingClassifier) and model.is_categorical_ is None:
        # A column without a number in training, which BoostedTrees fills, is in no tree.
        sums = BoostingScores(model._predictors, model._baseline_prediction)
        return Quick("float64", _as(np.float64), lambda X: _probabilities(sums(X))) if sums.fits else None
    return _pipeline([step for _, step in model.steps]) if type(model) is Pipeline else None


def _as(kind: type) -> OfNumbers:
    return lambda X: X.astype(kind, copy=False)


def _pipeline(steps: list[Any]) -> Quick | None:
    """Of imputed and standardised columns, which all models that learnt the same means share."""
    if list(map(type, steps[:2])) != [SimpleImputer, StandardScaler]:
        return None
    imputer, scaler = steps[:2]
    fill, mean, scale = imputer.statistics_, scaler.mean_, scaler.scale_
    fills_nan = isinstance(imputer.missing_values, float) and np.isnan(imputer.missing_values)
    if not fills_nan or imputer.add_indicator or fill.dtype.kind != "f" or not np.isfinite(fill).all():
        return None
    # A scaler of sparse columns leaves the means in.
    scores = _on_columns(*steps[2:]) if scaler.with_mean and scaler.with_std else None
    if scores is None:
        return None

    def standardised(X: NDArray[Any]) -> NDArray[Any]:
        columns = np.where(np.isnan(X), fill.astype(X.dtype), X)
        columns -= mean.astype(X.dtype)
        columns /= scale.astype(X.dtype)
        return columns

    return Quick((fill.tobytes(), mean.tobytes(), scale.tobytes()), standardised, scores)


def _on_columns(*steps: Any) -> OfNumbers | None:
    """Of the last steps of a pipeline."""
    *before, model = steps
    kinds = tuple(map(type, steps))
    if kinds == (BalancedPerceptron,):
        return model.predict_proba
    if kinds == (LogisticRegression,) and model.solver != "liblinear":
        return lambda Z: _probabilities(Z @ model.coef_.T + model.intercept_)
    if kinds[:-1] not in ((), (KernelColumns,)):
        return None
    columns = _kernel(before[0].map_) if before else lambda Z: Z
    if kinds[-1] is ProportionalOdds:
        return lambda Z: model.predict_proba(columns(Z))
    if kinds[-1] is not MAUCClassifier or not hasattr(model, "predict_proba"):
        return None
    return lambda Z: activate(columns(Z) @ model.coef_.T + model.intercept_, "softmax")


def _kernel(fitted: Any) -> OfNumbers:
    """Nyström's columns of a Gaussian kernel."""
    centres = fitted.components_.astype(np.float64)
    squares = np.einsum("ij,ij->i", centres, centres)

    def columns(Z: NDArray[Any]) -> NDArray[Any]:
        exact = Z.astype(np.float64, copy=False)
        distances = exact @ (-2.0 * centres.T)
        distances += np.einsum("ij,ij->i", exact, exact)[:, None]
        distances += squares
        np.maximum(distances, 0.0, out=distances)
        kernel = distances.astype(Z.dtype, copy=False)
        kernel *= -fitted.gamma
        return np.exp(kernel, out=kernel) @ fitted.normalization_.T

    return columns


def _probabilities(logits: Floats) -> Floats:
    """Softmax; a single column is the logit of the second of two classes."""
    if logits.shape[1] > 1:
        return activate(logits, "softmax")
    second = expit(logits)
    return np.hstack([1.0 - second, second])
