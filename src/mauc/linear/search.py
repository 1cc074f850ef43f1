"""The linear classifier with its surrogate, α, log-loss and penalty chosen by cross-validated multiclass AUC."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from mauc._typing import Floats, Pairs
from mauc._validation import invalid
from mauc.activations import Activation
from mauc.linear.classifier import MAUCClassifier
from mauc.log_loss import check_log_loss, has_log_loss
from mauc.model_selection import folds_of
from mauc.risk import SurrogateRisk
from mauc.surrogates import has_alpha

DEFAULT_ALPHAS = (1.0, 4.0, 10.0)
DEFAULT_LOG_LOSSES = (0.1, 1.0, 10.0)
DEFAULT_L2 = tuple(10.0 ** np.arange(-1, -7, -1.0))


class MAUCClassifierCV(MAUCClassifier):
    """Choose surrogate, α, log-loss and penalty of :class:`MAUCClassifier` by cross-validated multiclass AUC.

    For every surrogate, α, log-loss and fold, the penalties are fitted from the weakest to the strongest. Each fit
    starts from the previous solution.

    Parameters
    ----------
    surrogates : sequence of str or objects, default=("exponential",)
    alphas : sequence of float, optional
        Default: (1, 4, 10) for a surrogate that has an α. An entry None is the surrogate's default.
    log_losses : sequence of float, optional
        Weights of the log-loss. Default: (0.1, 1, 10), or 0 if ``pairs`` has no log-loss.
    balanced : bool, default=True
        Weigh every class the same in the log-loss.
    l2s : sequence of float, default=(1e-1, 1e-2, ..., 1e-6)
    cv : int or splitter, default=5
        Folds. A number gives :class:`mauc.model_selection.RareClassKFold`, which keeps every class in every training
        part.
    n_jobs : int, optional
        Processes, as in joblib.
    activation : {"softmax", "sigmoid", "identity", "log_odds"}, default="softmax"
        Map from logits to scores.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs, in the risk and in the score that chooses.
    fit_intercept : bool, default=True
    max_iter : int, default=200
    tol : float, default=1e-6
        The solver stops when no entry of the gradient is larger.

    Attributes
    ----------
    surrogate_, alpha_, log_loss_, l2_
        The choice.
    best_score_ : float
        Its mean multiclass AUC over the folds.
    cv_results_ : dict of arrays
        ``params``, ``split<k>_test_score``, ``mean_test_score``, ``std_test_score``, ``rank_test_score``, as in
        scikit-learn.
    classes_, coef_, intercept_, n_iter_, objective_, objective_curve_
        Results of the final fit on all data.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from mauc import MAUCClassifierCV
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MAUCClassifierCV(alphas=(1.0, 4.0), log_losses=(0.0, 1.0), l2s=(1e-2, 1e-4), cv=3).fit(scale(X), y)
    >>> model.alpha_ in (1.0, 4.0), len(model.cv_results_["params"])
    (True, 8)
    """

    def __init__(
        self,
        surrogates: Sequence[Any] = ("exponential",),
        *,
        alphas: Sequence[float | None] | None = None,
        log_losses: Sequence[float] | None = None,
        balanced: bool = True,
        l2s: Sequence[float] = DEFAULT_L2,
        cv: Any = 5,
        n_jobs: int | None = None,
        activation: Activation = "softmax",
        pairs: Pairs = "ovo",
        fit_intercept: bool = True,
        max_iter: int = 200,
        tol: float = 1e-6,
    ) -> None:
        self.surrogates = surrogates
        self.alphas = alphas
        self.log_losses = log_losses
        self.balanced = balanced
        self.l2s = l2s
        self.cv = cv
        self.n_jobs = n_jobs
        self.activation = activation
        self.pairs = pairs
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose by cross-validation, then train on all rows.

        Parameters
        ----------
        X : (N, d) array or sparse matrix
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
            In the ranking term they weigh samples within their class, in the log-loss samples and classes.
        """
        for name in ("surrogates", "alphas", "log_losses", "l2s"):
            grid = getattr(self, name)
            optional = grid is None and name in ("alphas", "log_losses")
            if not optional and (isinstance(grid, str) or not hasattr(grid, "__len__") or len(grid) == 0):
                advice = "pass a list of candidates"
                raise invalid(name, "must be a sequence with at least one entry", repr(grid), advice)
        X, classes, partition = self._check_data(X, y, sample_weight)
        y, weight = classes[partition.codes], partition.sample_weight
        folds = self._folds(X, y, weight)
        # Not from the strongest down: if the penalty leaves W at 0, the risk does not depend on the intercept, which
        # drifts off, and softmax saturates in all later fits (an intercept of 71 on a split of ecoli).
        l2s = sorted(self.l2s)
        losses = self._losses()
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_path)(self._candidate(**loss), l2s, X, y, weight, *folds[k])
            for loss, k in product(losses, range(len(folds)))
        )
        scores = np.array(parts).reshape(-1, len(folds), len(l2s)).transpose(0, 2, 1).reshape(-1, len(folds))
        self._keep_results(scores, losses, l2s)
        best = self.cv_results_["params"][int(np.argmin(self.cv_results_["rank_test_score"]))]
        for name, value in best.items():
            setattr(self, f"{name}_", value)
        final = self._candidate(**best).fit(X, y, sample_weight)
        for name in ("classes_", "coef_", "intercept_", "n_iter_", "objective_", "objective_curve_"):
            setattr(self, name, getattr(final, name))
        return self

    def _folds(self, X: Any, y: Any, weight: Floats | None) -> list[tuple[Any, Any]]:
        """Return the folds that hold out two classes or more; rows of weight 0 are left out."""
        counted = np.ones(len(y), dtype=bool) if weight is None else weight > 0
        folds = [fold for fold in folds_of(self.cv, X, y, counted) if len(np.unique(y[fold[1]])) > 1]
        if not folds:
            advice = "use fewer folds or other ones, or join the classes of one sample"
            raise invalid("cv", "must give a fold that holds out two classes or more", repr(self.cv), advice)
        return folds

    def _losses(self) -> list[dict[str, Any]]:
        """Return every combination of surrogate, α and weight of the log-loss."""
        weights = self.log_losses
        if weights is None:
            weights = DEFAULT_LOG_LOSSES if has_log_loss(self.pairs) else (0.0,)
        checked = [check_log_loss(each) for each in weights]
        losses = []
        for surrogate in self.surrogates:
            own = DEFAULT_ALPHAS if has_alpha(surrogate) else (None,)
            for alpha in own if self.alphas is None else self.alphas:
                losses += [{"surrogate": surrogate, "alpha": alpha, "log_loss": each} for each in checked]
        return losses

    def _risk(self) -> SurrogateRisk:
        return SurrogateRisk(self.surrogate_, alpha=self.alpha_)

    def _candidate(self, **chosen: Any) -> MAUCClassifier:
        same = ("balanced", "activation", "pairs", "fit_intercept", "max_iter", "tol")
        return MAUCClassifier(**chosen, **{name: getattr(self, name) for name in same}, warm_start=True)

    def _keep_results(self, scores: Floats, losses: list[dict[str, Any]], l2s: Sequence[float]) -> None:
        params = [{**loss, "l2": l2} for loss, l2 in product(losses, l2s)]
        mean = np.nanmean(scores, axis=1)
        self.cv_results_: dict[str, Any] = {"params": params}
        for k in range(scores.shape[1]):
            self.cv_results_[f"split{k}_test_score"] = scores[:, k]
        self.cv_results_["mean_test_score"] = mean
        self.cv_results_["std_test_score"] = np.nanstd(scores, axis=1)
        # Of equal scores the one with the stronger penalty is best.
        order = np.lexsort(([-p["l2"] for p in params], -mean))
        self.cv_results_["rank_test_score"] = np.argsort(order) + 1
        self.best_score_ = float(mean.max())


def _score_path(
    model: MAUCClassifier,
    l2s: Sequence[float],
    X: Any,
    y: NDArray[Any],
    sample_weight: NDArray[Any] | None,
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> list[float]:
    """Return the multiclass AUC on the test rows for each penalty."""
    own, held_out = (None if sample_weight is None else sample_weight[rows] for rows in (train, test))
    scores = []
    with warnings.catch_warnings():
        # A candidate that has not converged is scored; only the final fit warns.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for l2 in l2s:
            model.set_params(l2=l2).fit(X[train], y[train], own)
            scores.append(model.score(X[test], y[test], held_out))
    return scores
