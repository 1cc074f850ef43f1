"""Gradient boosting trained and stopped by multiclass AUC."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from mauc._estimators import LogitClassifier, encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import (
    check_choice,
    check_not_negative,
    check_numbers,
    check_real,
    check_sample_weight,
    check_whole,
    invalid,
    is_sparse,
)
from mauc.boosting.lightgbm import lightgbm_objective
from mauc.boosting.objective import ACTIVATIONS
from mauc.log_loss import read_log_loss
from mauc.model_selection import folds_of
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["MAUCBoostingClassifier"]

DEFAULT_ALPHA = 2.0
DATASET = {"verbosity": -1, "feature_pre_filter": False}
# LightGBM takes the main name of a parameter over its other names, which would be passed in vain.
_NAMES = {
    "learning_rate": ("shrinkage_rate", "eta"),
    "num_leaves": ("num_leaf", "max_leaves", "max_leaf", "max_leaf_nodes"),
    "min_child_samples": ("min_data_in_leaf", "min_data_per_leaf", "min_data", "min_samples_leaf"),
    "subsample": ("bagging_fraction", "sub_row", "bagging"),
    "colsample_bynode": ("feature_fraction_bynode", "sub_feature_bynode"),
    "reg_lambda": ("lambda_l2", "lambda", "l2_regularization"),
    "n_jobs": ("num_threads", "num_thread", "nthread", "nthreads"),
    "random_state": ("seed", "random_seed"),
    "n_estimators": (
        *("num_iterations", "num_iteration", "n_iter", "num_tree", "num_trees"),
        *("num_round", "num_rounds", "nrounds", "num_boost_round", "max_iter"),
    ),
    "early_stopping_rounds": ("early_stopping_round", "early_stopping", "n_iter_no_change"),
    "surrogate": ("objective", "objective_type", "app", "application", "loss"),
}
WHOLE = {"n_estimators": 1, "early_stopping_rounds": 1, "num_leaves": 2, "min_child_samples": 0, "n_jobs": -1}
OWN = {name: f"pass {own}=" for own, others in _NAMES.items() for name in (own, *others)} | dict.fromkeys(
    ("num_class", "num_classes", "metric", "metrics", "metric_types"), "leave it out"
)
"""Names that ``lightgbm_params`` must not have, and what to do instead."""


class MAUCBoostingClassifier(LogitClassifier, BaseEstimator):  # type: ignore[misc]
    r"""LightGBM trees that minimise a surrogate of the multiclass AUC, their number chosen by cross-validated MAUC.

    Needs LightGBM 4.6 or later (``pip install 'mauc[boosting]'``).

    Parameters
    ----------
    surrogate : str or object, default="exponential"
        ``"squared"``, ``"exponential"``, ``"logistic"`` or another whose second derivative is bounded, by name or as an
        object with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate of the surrogate; 2 unless told, where it has one.
    log_loss : float >= 0 or "only", default=0.0
        Weight of the log-loss of scores shifted by the class frequencies, which is added; ``"only"``: that alone.
    activation : {"softmax", "identity"}, default="softmax"
        Whether the risk is that of softmax scores or of raw columns. Raw columns have no common scale: their
        ``predict`` is of little use and there is no ``predict_proba``.
    n_estimators : int, default=500
        Boosting rounds, each of one tree per class; the most, with ``cv``.
    learning_rate : float, default=0.3
        Three times what is usual for the log-loss: the curvature is a bound of the whole Hessian, not its diagonal, and
        steps are shorter for it.
    num_leaves : int, default=7
    min_child_samples : int, default=10
    subsample : float, default=0.7
        Share of the samples of each round.
    colsample_bynode : float, default=0.5
        Share of the features of each node.
    reg_lambda : float, default=1.0
    cv : int, splitter or None, default=5
        Folds on whose held-out parts the number of rounds is chosen; None: ``n_estimators`` rounds. A number gives
        :class:`mauc.model_selection.RareClassKFold`.
    early_stopping_rounds : int, default=50
        Rounds without a better mean over the folds after which the search stops.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
    n_jobs : int, default=1
        Threads of LightGBM.
    random_state : int, default=0
        Of LightGBM, and of the folds of a number ``cv``.
    lightgbm_params : dict, optional
        Further parameters of LightGBM, as for ``lightgbm.train``; ``categorical_feature`` with column numbers.
    surrogate_options : dict, optional
        Further parameters of the surrogate: ``q``, ``epsilon``.
    verbose : int, default=0
        Print the number of rounds chosen.

    Attributes
    ----------
    classes_ : (C,) array
    booster_ : lightgbm.Booster
    n_iter_ : int
        Rounds of the final fit.
    cv_scores_ : (rounds,) array or None
        Mean multiclass AUC over the folds after each round, up to the choice.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    On four sets set aside for choosing the defaults (balance, ecoli, segment-imb, svmguide2; 2 splits) the mean test
    MAUC × 100 was 91.1, and 83.6 over the rarest quarter of the class pairs. Class-balanced log-loss stopped in the
    same way had 90.3 and 81.1 with the same trees, and 90.8 and 82.1 with the best trees tried for it; with 100 rounds
    of LightGBM's own settings 89.6 and 81.0. What lost: α = 4 (89.9), the squared surrogate (90.9), learning rate 0.1
    (90.0). With trees of 15 leaves on all samples and features, softmax had 89.2 and raw columns 88.3 at most.
    The difference is small and the choice was made on these sets. On 57 others (``docs/results/tabular.md``) it has
    +0.4 in mean and +0.9 over the rarest pairs against class-balanced LightGBM with tuned trees; it is worse than that
    on tables of some dozens of rows; and the log-loss stopped by ``lightgbm_metric`` is as good.
    :class:`mauc.ensemble.MAUCStackingClassifier` gains more than either. A log-loss beside the risk gains nothing: on
    the validation parts of five tables (2 splits) ``log_loss`` of 0, 0.3, 1, 3 and "only" has 91.0, 90.7, 91.0, 90.0
    and 90.8, LightGBM's own log-loss 90.6 and 90.8 with balanced classes, ``benchmarks/log_loss_boosting.py``.

    One round costs what a round of LightGBM's multiclass objective costs, and O(N·C) for the risk; ``cv`` multiplies
    the fit by the number of folds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mauc.boosting import MAUCBoostingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MAUCBoostingClassifier(n_estimators=40, cv=3).fit(X[::2], y[::2])  # doctest: +SKIP
    >>> round(model.score(X[1::2], y[1::2]), 2)  # doctest: +SKIP
    1.0
    """

    def __init__(
        self,
        surrogate: str | Any = "exponential",
        *,
        alpha: float | None = None,
        log_loss: float | str = 0.0,
        activation: str = "softmax",
        n_estimators: int = 500,
        learning_rate: float = 0.3,
        num_leaves: int = 7,
        min_child_samples: int = 10,
        subsample: float = 0.7,
        colsample_bynode: float = 0.5,
        reg_lambda: float = 1.0,
        cv: Any = 5,
        early_stopping_rounds: int = 50,
        pairs: str | ArrayLike = "ovo",
        n_jobs: int = 1,
        random_state: int = 0,
        lightgbm_params: dict[str, Any] | None = None,
        surrogate_options: dict[str, Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.surrogate = surrogate
        self.alpha = alpha
        self.log_loss = log_loss
        self.activation = activation
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.subsample = subsample
        self.colsample_bynode = colsample_bynode
        self.reg_lambda = reg_lambda
        self.cv = cv
        self.early_stopping_rounds = early_stopping_rounds
        self.pairs = pairs
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.lightgbm_params = lightgbm_params
        self.surrogate_options = surrogate_options
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose the number of rounds by cross-validation, then train on all data.

        Parameters
        ----------
        X : (N, d) array or sparse matrix; missing values may be NaN
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
        """
        lightgbm = _import_lightgbm()
        self._check_parameters()
        check_numbers(X, "LightGBM")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
        )
        classes, codes = encode_classes(y)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        counted = np.ones(len(codes), dtype=bool) if weight is None else weight > 0
        folds = [] if self.cv is None else self._folds(X, classes[codes], codes, counted)
        if weight is not None:
            # LightGBM counts samples of weight 0 in its bins and leaves.
            X, codes, weight = X[counted], codes[counted], weight[counted]
        X = _for_lightgbm(X)
        params = self._params(len(classes))
        categories = params.pop("categorical_feature", "auto")
        data = lightgbm.Dataset(
            X, codes, weight=weight, params=DATASET, free_raw_data=False, categorical_feature=categories
        )
        rounds = int(self.n_estimators)
        self.cv_scores_ = None
        try:
            if self.cv is not None:
                self.cv_scores_ = self._search(lightgbm, params, data, folds)
                rounds = len(self.cv_scores_)
            self.booster_ = lightgbm.train(params, data, num_boost_round=rounds)
        except lightgbm.basic.LightGBMError as error:
            # Its own parameters are checked above; what is left comes from these, or from the data.
            reason = str(error).strip().splitlines()[0]
            requirement = "and the data must be ones that LightGBM can train with"
            came = f"{self.lightgbm_params!r}, of which LightGBM says: {reason}"
            raise invalid("lightgbm_params", requirement, came, "correct or drop what it names") from error
        self.classes_, self.n_iter_ = classes, rounds
        if self.verbose:
            best = "" if self.cv_scores_ is None else f", cross-validated MAUC {self.cv_scores_[-1]:.4f}"
            print(f"MAUCBoostingClassifier: {rounds} rounds{best}")
        return self

    def _surrogate(self) -> Surrogate:
        options = self.surrogate_options or {}
        return get_surrogate(self.surrogate, alpha=self.alpha, default_alpha=DEFAULT_ALPHA, **options)

    def _check_parameters(self) -> None:
        check_choice("activation", self.activation, ACTIVATIONS)
        read_log_loss(self.log_loss)
        for name, least in WHOLE.items():
            check_whole(name, getattr(self, name), least=least)
        check_whole("random_state", self.random_state, least=0, most=2**31 - 1, advice="pass a seed")
        check_real("learning_rate", self.learning_rate, low=0)
        check_not_negative("reg_lambda", self.reg_lambda)
        for name in ("subsample", "colsample_bynode"):
            check_real(name, getattr(self, name), low=0, high=1, closed="right", advice="pass a share, 1 for all")
        if not isinstance(self.lightgbm_params, dict | None):
            came, advice = repr(self.lightgbm_params), "pass e.g. {'max_depth': 3}"
            raise invalid("lightgbm_params", "must be a dictionary", came, advice)

    def _params(self, n_classes: int) -> dict[str, Any]:
        further = dict(self.lightgbm_params or {})
        for name in further:
            if name in OWN:
                requirement = "must have no parameter that this classifier has or sets itself"
                raise invalid("lightgbm_params", requirement, repr(name), OWN[name])
        objective = lightgbm_objective(
            self._surrogate(),
            log_loss=self.log_loss,
            activation=self.activation,
            pairs=self.pairs,
        )
        return {
            "objective": objective,
            "num_class": n_classes,
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            "bagging_fraction": self.subsample,
            "bagging_freq": int(self.subsample < 1),
            "feature_fraction_bynode": self.colsample_bynode,
            "lambda_l2": self.reg_lambda,
            "metric": "none",
            # LightGBM drops features that no leaf of that size can split, and fails where a small fold has none left.
            "feature_pre_filter": False,
            "num_threads": self.n_jobs,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
            **further,
        }

    def _folds(self, X: Any, labels: NDArray[Any], codes: Ints, counted: NDArray[np.bool_]) -> list[tuple[Ints, Ints]]:
        """Rows to train on and to hold out, numbered among those that count."""
        place = np.cumsum(counted) - 1
        folds = folds_of(self.cv, X, labels, counted, self.random_state)
        folds = [(place[a], place[b]) for a, b in folds if len(np.unique(codes[b])) > 1]
        if not folds:
            advice = "use fewer folds or other ones, or cv=None"
            raise invalid("cv", "must give a fold that holds out two classes or more", repr(self.cv), advice)
        return folds

    def _search(self, lightgbm: Any, params: dict[str, Any], data: Any, folds: list[tuple[Ints, Ints]]) -> Floats:
        """Mean multiclass AUC over the folds after each round, up to the best one."""
        results = lightgbm.cv(
            params,
            data,
            num_boost_round=int(self.n_estimators),
            folds=folds,
            feval=params["objective"].metric,
            callbacks=[lightgbm.early_stopping(int(self.early_stopping_rounds), verbose=False)],
        )
        scores = np.array(results["valid mauc-mean"])
        return scores[: int(scores.argmax()) + 1]

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
        return np.asarray(self.booster_.predict(_for_lightgbm(X), num_threads=self.n_jobs), dtype=np.float64)


def _import_lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError:
        raise ImportError(
            "MAUCBoostingClassifier needs LightGBM, which is not installed: pip install 'mauc[boosting]'"
        ) from None
    return lightgbm


def _for_lightgbm(X: Any) -> Any:
    """LightGBM knows sparse matrices, not sparse arrays."""
    return sparse.csr_matrix(X) if is_sparse(X) else X
