"""A linear classifier trained by multiclass AUC."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from mauc._estimators import LogitClassifier, encode_classes
from mauc._kernels.threads import threads
from mauc._typing import Floats, Pairs
from mauc._validation import (
    check_choice,
    check_n_jobs,
    check_not_negative,
    check_pairs,
    check_real,
    check_sample_weight,
    check_whole,
)
from mauc.activations import ACTIVATIONS, Activation
from mauc.linear._objective import LinearObjective, Objective
from mauc.linear._solver import Solution, minimize
from mauc.log_loss import check_log_loss, log_term
from mauc.partition import ClassPartition
from mauc.risk import SurrogateRisk
from mauc.surrogates import SURROGATES, has_alpha


class MAUCClassifier(LogitClassifier, BaseEstimator):  # type: ignore[misc]
    r"""Train a linear model by a surrogate of the multiclass AUC.

    .. math:: \min_{W, b} \; R\bigl(\operatorname{activation}(X W^\top + b)\bigr) + \tfrac{\lambda}{2} \lVert W \rVert^2

    with the risk R of :class:`mauc.SurrogateRisk`: every pair of classes counts the same, however rare. The sum over
    all pairs of samples is exact and costs no more than the product with X. ``log_loss`` = μ adds

    .. math:: \mu \, \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + \log p)_{y_n}\right],
        \qquad z_n = W x_n + b,

    with the class frequencies p and the sample weights u.

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``, ``"logistic"``,
        ``"distance_weighted"``, or an object: one of :mod:`mauc.surrogates` such as ``QHinge(q=3.0)``, or one of your
        own with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate of a surrogate given by name. None: the surrogate's default (:mod:`mauc.surrogates`): 4 for the
        exponential of bounded scores, ½ of log-odds.
    log_loss : float >= 0, default=0.5
        Weight μ of the log-loss; 0 is the ranking term alone. With ``pairs="ova"`` nothing is shifted; with a matrix of
        the form :math:`a_i b_j` the shift is :math:`\log(p_j / b_j)`. With any other matrix ``log_loss`` must be 0.
    balanced : bool, default=True
        Weigh every class the same in the log-loss, as ``class_weight="balanced"`` does in scikit-learn, instead of
        shifting by p. Both have the same minimiser if the model can reach it; balancing lets rare classes count from
        the first iteration.
    l2 : float, optional
        Weight λ of the penalty; the intercept is not penalised. None: 1 / N, which is ``C=1`` of
        :class:`~sklearn.linear_model.LogisticRegression`; N is the sum of the sample weights.
    activation : {"log_odds", "softmax", "sigmoid", "identity"}, optional
        Map from logits to scores. ``"log_odds"`` is log(p / (1 − p)) of the softmax p: with it both terms are
        consistent for α = ½ of the exponential and 1 of the logistic loss. None: the log-odds with that α. If
        ``alpha`` is given, ``log_loss`` is 0, or the surrogate is another one: softmax, as in the paper.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs.
    fit_intercept : bool, default=True
    max_iter : int, default=200
    tol : float, default=1e-6
        The solver stops when no entry of the gradient is larger.
    warm_start : bool, default=False
        Start from the last solution if the classes and columns are the same.
    n_jobs : int, optional
        Threads over the rows, if rows times classes are half a million or more; -1: one per core. None: one per core,
        at most eight, and at most ``OMP_NUM_THREADS``. The model does not depend on it.

    Attributes
    ----------
    classes_ : (C,) array
    coef_ : (C, d) array
    intercept_ : (C,) array
        Zeros without intercept.
    n_iter_ : int
    objective_ : float
        Objective at the solution.
    objective_curve_ : (``n_iter_`` + 1,) array
        Objective at the start and after each iteration.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The problem is not convex. L-BFGS starts from 0, so the result is deterministic.

    The paper's form is ``MAUCClassifier("exponential", alpha=1.0, log_loss=0.0)``. ``docs/results/linear-defaults.md``
    compares the defaults with it; :class:`mauc.MAUCClassifierCV` searches α, μ and λ.

    References
    ----------
    Yang, Xu, Bao, Cao, Huang: Learning with Multiclass AUC: Theory and Algorithms. TPAMI 2021.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mauc import MAUCClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), MAUCClassifier(l2=1e-3)).fit(X, y)
    >>> round(model.score(X, y), 3)
    1.0
    """

    def __init__(
        self,
        surrogate: str | Any = "exponential",
        *,
        alpha: float | None = None,
        log_loss: float = 0.5,
        balanced: bool = True,
        l2: float | None = None,
        activation: Activation | None = None,
        pairs: Pairs = "ovo",
        fit_intercept: bool = True,
        max_iter: int = 200,
        tol: float = 1e-6,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.surrogate = surrogate
        self.alpha = alpha
        self.log_loss = log_loss
        self.balanced = balanced
        self.l2 = l2
        self.activation = activation
        self.pairs = pairs
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on ``(N, d)`` samples, dense or sparse, and their classes.

        Parameters
        ----------
        X : (N, d) array or sparse matrix
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
            In the ranking term they weigh samples within their class; ``pairs`` weighs the classes. In the log-loss
            they weigh samples and, by their sums, classes.
        """
        self._check_parameters()
        X, classes, partition = self._check_data(X, y, sample_weight)
        pairs = check_pairs(self.pairs, len(classes), classes)
        total = float(len(partition.codes) if partition.sample_weight is None else partition.sample_weight.sum())
        objective = LinearObjective(
            X,
            partition.classes(partition.pair_weights(pairs)),
            self._risk(),
            activation=self._activation(),
            l2=self._penalty(total),
            fit_intercept=bool(self.fit_intercept),
            log_term=log_term(
                self.log_loss, pairs, partition.codes, partition.weights, partition.shares, balanced=bool(self.balanced)
            ),
        )
        start = self._start(objective, classes)
        # With threads over the rows, BLAS uses one: its own threads would wait for each other.
        one_thread = threadpool_limits(1, user_api="blas") if len(objective.parts) > 1 else nullcontext()
        with threads(self.n_jobs), one_thread:
            solution = self._minimize(objective, start)
        self._keep(objective, classes, solution)
        self._warn_of(solution)
        return self

    def _check_data(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray[Any], ClassPartition]:
        """Return clean training rows, their sorted classes, and the class and weight of each row."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        classes, codes = encode_classes(y)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        return X, classes, ClassPartition(codes, len(classes), weight)

    def _minimize(self, objective: Objective, start: Floats) -> Solution:
        return minimize(objective, start, max_iter=self.max_iter, tol=self.tol)

    def _risk(self) -> SurrogateRisk:
        alpha = self.alpha
        if alpha is None and has_alpha(self.surrogate) and self._activation() == "log_odds":
            alpha = SURROGATES[self.surrogate].log_odds_alpha
        return SurrogateRisk(self.surrogate, alpha=alpha)

    def _penalty(self, total_weight: float) -> float:
        """Return ``l2``, or else that of ``C=1`` of LogisticRegression, whose loss is a sum."""
        return 1.0 / total_weight if self.l2 is None else self.l2

    def _activation(self) -> Activation:
        if self.activation is not None:
            return self.activation
        rate = SURROGATES[self.surrogate].log_odds_alpha if has_alpha(self.surrogate) else None
        return "log_odds" if self.alpha is None and self.log_loss > 0 and rate is not None else "softmax"

    def _check_parameters(self) -> None:
        if self.activation is not None:
            check_choice("activation", self.activation, ACTIVATIONS)
        check_real("tol", self.tol, low=0)
        if self.l2 is not None:
            check_not_negative("l2", self.l2)
        check_log_loss(self.log_loss)
        check_whole("max_iter", self.max_iter, least=1)
        check_n_jobs(self.n_jobs)

    def _start(self, objective: Objective, classes: NDArray[Any]) -> Floats:
        if self.warm_start and hasattr(self, "coef_"):
            theta = np.column_stack([self.coef_, self.intercept_]) if self.fit_intercept else self.coef_
            if theta.shape == objective.shape and np.array_equal(classes, self.classes_):
                return np.array(theta, dtype=np.float64).ravel()
        return np.zeros(objective.shape[0] * objective.shape[1])

    def _keep(self, objective: Objective, classes: NDArray[Any], solution: Any) -> None:
        weights, intercept = objective.split(solution.theta)
        self.classes_ = classes
        self.coef_ = weights.copy()
        self.intercept_ = np.zeros(len(classes)) if intercept is None else intercept.copy()
        self.n_iter_ = solution.n_iter
        self.objective_ = solution.objective
        self.objective_curve_ = solution.curve

    def _warn_of(self, solution: Solution) -> None:
        if not solution.converged:
            warnings.warn(
                f"L-BFGS stopped before the gradient fell below tol={self.tol:g} ({solution.message}): "
                f"raise max_iter (now {self.max_iter}) or tol, or scale the features",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        return np.asarray(X @ self.coef_.T + self.intercept_)
