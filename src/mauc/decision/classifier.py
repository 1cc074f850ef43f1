"""Turn the scores of any classifier into decisions of least cost, or of the best balanced accuracy."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mauc._estimators import WrappingClassifier, encode_classes, scores_by_class
from mauc._typing import Floats, Ints
from mauc._validation import check_not_negative, check_numbers, check_sample_weight, in_class_order, invalid, scores_of
from mauc.decision.posterior import fit_posterior, log_scores, lowest_probability, posterior_of
from mauc.decision.sweep import DecisionProblem, cheapest, least_loss
from mauc.ensemble.bases import fit_base, weight_argument
from mauc.model_selection import folds_of


def _inner_has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(getattr(self, "estimator_", self._base()), method)


class MAUCDecision(WrappingClassifier, BaseEstimator):  # type: ignore[misc]
    r"""Turn the scores of any classifier into decisions of least cost, or of the best balanced accuracy.

    The columns of a model that is trained to rank need not be on one scale, so the highest score is not the best
    decision. From scores u of held-out samples (logs of probabilities, or decision values) this class learns a scale a
    and offsets b, and decides

    .. math:: d(x) = \arg\min_j \sum_i q_i(x) \, c_{ij}, \qquad q_i \propto e^{a u_i + b_i},

    where :math:`c_{ij}` is the cost of deciding for class j if class i is true. First, a and b are fitted by maximum
    likelihood, which makes q a posterior. Then shifts :math:`\delta` of b make the decisions on the same held-out
    samples cheapest,

    .. math:: \min_\delta \; \frac{1}{N} \sum_n c_{y_n d_n}
        + \lambda \sum_{i < j} \frac{r_i + r_j}{C - 1} (\delta_i - \delta_j)^2,

    one class after the other. Each step is exact: it tries all values at which a decision changes. :math:`r_i` is the
    mean cost of class i divided by its number of rows. So a boundary between two classes moves by δ only if that gains
    λ δ² rows of the rarer class, and a class of three rows cannot move it far.

    Parameters
    ----------
    estimator : classifier, default=LogisticRegression()
        With ``predict_proba`` or ``decision_function``.
    costs : (C, C) array, optional
        ``[i, j]`` is the cost of deciding for class j if class i is true, classes in sorted order; gains are negative
        costs. The rows and columns of a data frame are matched by class name. Default: maximise balanced accuracy, that
        is, a mistake costs one over the frequency of its class.
    scoring : function or str, optional
        Metric to maximise instead of costs: a function of ``(y_true, y_pred)`` as in ``sklearn.metrics``, or the name
        of a scikit-learn scorer of predicted classes, such as ``"f1_macro"``. It is evaluated at most 64 times per
        sweep.
    cv : int, splitter, list of folds or "prefit", default=5
        Folds that give the held-out scores; a number gives :class:`~mauc.model_selection.RareClassKFold`. ``"prefit"``:
        the estimator is fitted already, and ``fit`` is given samples that it was not trained on.
    shrinkage : float >= 0, default=3.0
        Weight λ of the penalty; larger values stay closer to the decisions of the posterior.

    Attributes
    ----------
    classes_ : (C,) array
    estimator_ : fitted classifier
        Fitted on all samples.
    scale_ : float
        The scale a.
    offsets_ : (C,) array
        Offsets b with the shifts; their mean is 0.
    costs_ : (C, C) array
        Costs; the smallest of each row is 0, the largest of all 1.
    best_score_ : float
        Balanced accuracy, negative mean cost, or the metric, on the held-out samples. It is optimistic, because
        the shifts were chosen on them.

    Notes
    -----
    ``predict_proba``, ``decision_function`` and ``score``, the multiclass AUC, are those of the estimator.

    A fit costs one fit of the estimator per fold and one on all samples, and a few rounds of ``O(N C² (C + log N))``.

    Mean balanced accuracy × 100 in nested cross-validation, five models on eight sets: 79.5 by the highest score, 82.9
    by shifts alone, 83.3 by the likelihood alone, 83.6 by both.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.metrics import balanced_accuracy_score
    >>> from mauc import MAUCDecision
    >>> X, y = make_classification(
    ...     4000, 6, n_informative=4, n_classes=3, weights=[0.8, 0.15, 0.05], class_sep=0.7, random_state=0
    ... )
    >>> model = LogisticRegression().fit(X[:2000], y[:2000])
    >>> decision = MAUCDecision(LogisticRegression()).fit(X[:2000], y[:2000])
    >>> for each in (model, decision):
    ...     print(round(balanced_accuracy_score(y[2000:], each.predict(X[2000:])), 2))
    0.58
    0.62
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        costs: ArrayLike | None = None,
        scoring: Callable[..., float] | str | None = None,
        cv: Any = 5,
        shrinkage: float = 3.0,
    ) -> None:
        self.estimator = estimator
        self.costs = costs
        self.scoring = scoring
        self.cv = cv
        self.shrinkage = shrinkage

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier on folds and on all samples, unless ``cv="prefit"``, and learn to decide by its scores.

        Parameters
        ----------
        X : (N, d) array, sparse matrix or data frame, as the classifier takes it
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
            Weights for the classifier, whose ``fit`` must take them, and for the decisions.
        """
        shrinkage = check_not_negative("shrinkage", self.shrinkage)
        if self.costs is not None and self.scoring is not None:
            raise invalid("scoring", "must be None if costs are given", repr(self.scoring), "pass one of the two")
        classes, codes = encode_classes(y)
        X, codes = indexable(X, codes)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        if isinstance(self.cv, str) and self.cv == "prefit":
            classes, codes = self._prefit(classes, codes)
            rows = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0)
            held_out = scores_by_class(self.estimator_, _safe_indexing(X, rows), classes)
        else:
            weight_argument(self._base(), weight)
            # On all samples first, so that an error refers to all of them.
            self.estimator_ = fit_base(clone(self._base()), X, classes[codes], weight)
            rows, held_out = self._held_out(X, classes, codes, weight)
        self.classes_ = classes
        self._keep_input_names()
        own = np.ones(len(rows)) if weight is None else weight[rows]
        priors = np.bincount(codes, weight, len(classes))
        self._learn(held_out, codes[rows], own / own.mean(), priors / priors.sum(), shrinkage)
        return self

    def _prefit(self, classes: NDArray[Any], codes: Ints) -> tuple[NDArray[Any], Ints]:
        """Return the classes of the fitted estimator, and the codes of the samples among them."""
        check_is_fitted(self._base())
        self.estimator_ = self._base()
        known = self.estimator_.classes_
        unknown = np.setdiff1d(classes, known)
        if len(unknown):
            advice = "leave its samples out, or fit the estimator on them too"
            raise invalid("y", "must hold classes of the fitted estimator", f"the class {unknown[0]}", advice)
        return known, np.searchsorted(known, classes)[codes]

    def _held_out(self, X: Any, classes: NDArray[Any], codes: Ints, weight: Floats | None) -> tuple[Ints, Floats]:
        """Return the held-out rows and their ``(N, C)`` scores; the mean if one was held out more than once."""
        counted = np.ones(len(codes), dtype=bool) if weight is None else weight > 0
        total, times = np.zeros((len(codes), len(classes))), np.zeros((len(codes), 1))
        for train, test in folds_of(self.cv, X, classes[codes], counted):
            if len(test):
                own = None if weight is None else weight[train]
                model = fit_base(clone(self._base()), _safe_indexing(X, train), classes[codes[train]], own)
                total[test] += scores_by_class(model, _safe_indexing(X, test), classes)
                times[test] += 1
        rows = np.flatnonzero(times)
        if len(rows) == 0:
            advice = "decisions are learnt from samples that the estimator was not trained on"
            raise invalid("y", "must have two samples of a class", "one of each", advice)
        return rows, total[rows] / times[rows]

    def _learn(self, scores: Floats, codes: Ints, weight: Floats, priors: Floats, shrinkage: float) -> None:
        if not np.isfinite(scores).all():
            advice = "give it what it needs, such as scaled or imputed features"
            raise invalid("estimator", "must give finite scores", "NaN or infinity", advice)
        n_classes = len(priors)
        # A mistake on a class without samples costs nothing.
        balancing = np.divide(1.0, priors, out=np.zeros(n_classes), where=priors > 0)
        wrong = 1.0 - np.eye(n_classes)
        if self.costs is not None:
            costs = _check_costs(self.costs, self.classes_)
            above = costs - costs.min(axis=1, keepdims=True)  # the decisions stay the same
            self.costs_ = worth = above / above.max()
        else:
            worth = wrong * balancing[:, None] / balancing.max()
            self.costs_ = worth if self.scoring is None else wrong
        has_proba = hasattr(self.estimator_, "predict_proba")
        self._lowest = lowest_probability(scores) if has_proba else None
        logs = log_scores(scores, self._lowest)
        # Scores may be the posterior, or that under equal class sizes.
        centres = [np.zeros(n_classes), np.log(priors, out=np.zeros(n_classes), where=priors > 0)]
        expected = 1.0 if has_proba else 1.0 / (float(logs.std()) or 1.0)
        self.scale_, offsets = fit_posterior(logs, codes, weight, expected, centres)
        problem = DecisionProblem(
            posterior_of(logs, self.scale_, offsets),
            codes,
            weight / weight.sum(),
            self.costs_,
            shrinkage * _penalty(codes, weight / weight.sum(), worth),
            self._metric(codes, weight),
        )
        starts = [np.zeros(n_classes)]
        if problem.metric is None:  # sweeps of a metric are slow
            starts += [centre - offsets for centre in centres]
        shifts, _ = min((least_loss(problem, start) for start in starts), key=lambda found: found[1])
        self.offsets_ = offsets + shifts - (offsets + shifts).mean()
        taken = problem.decisions(shifts)
        self.best_score_ = problem.metric(taken) if problem.metric else self._value(codes, taken, weight)

    def _metric(self, codes: Ints, weight: Floats) -> Callable[[Ints], float] | None:
        """Return the metric to maximise as a function of the decisions alone."""
        if self.scoring is None:
            return None
        score, true, options = _metric_of(self.scoring, self.classes_), self.classes_[codes], {}
        if (weight != 1.0).any():
            known = signature(score).parameters.values()
            if not any(p.name == "sample_weight" or p.kind == Parameter.VAR_KEYWORD for p in known):
                advice = "pass no weights, or a function that takes them"
                raise invalid("sample_weight", "needs a scoring that takes it", repr(score), advice)
            options["sample_weight"] = weight
        return lambda taken: float(score(true, self.classes_[taken], **options))

    def _value(self, codes: Ints, taken: Ints, weight: Floats) -> float:
        """Return the negative mean cost of these decisions, or their balanced accuracy."""
        if self.costs is not None:
            return -float(np.average(_check_costs(self.costs, self.classes_)[codes, taken], weights=weight))
        size = np.bincount(codes, weight)
        right = np.bincount(codes, weight * (codes == taken))
        return float(np.mean(right[size > 0] / size[size > 0]))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of least expected cost."""
        check_is_fitted(self)
        logs = log_scores(scores_by_class(self.estimator_, X, self.classes_), self._lowest)
        return self.classes_[cheapest(posterior_of(logs, self.scale_, self.offsets_), self.costs_)]

    @available_if(_inner_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the ``(N, C)`` scores of the estimator."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_inner_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the decision values of the estimator."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def _ranking_scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return np.asarray(scores_of(self.estimator_, X))


def _check_costs(costs: ArrayLike, classes: NDArray[Any]) -> Floats:
    """Return the costs in the order of the classes, by which a data frame may be named."""
    n_classes = len(classes)
    requirement = f"must be a ({n_classes}, {n_classes}) matrix of finite numbers"
    advice = "pass [i, j] = cost of deciding for class j if class i is true, classes in sorted order"
    matrix = check_numbers(costs, "costs", requirement, advice)
    if matrix.shape != (n_classes, n_classes):
        raise invalid("costs", requirement, f"shape {matrix.shape}", advice)
    if not np.isfinite(matrix).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(matrix))[0])
        raise invalid("costs", requirement, f"{matrix[where]} at {where}", advice)
    if (matrix == matrix[:, :1]).all():
        raise invalid("costs", "must differ between decisions", "rows of equal numbers", advice)
    return in_class_order(costs, matrix, classes, "costs")


def _penalty(codes: Ints, share: Floats, worth: Floats) -> Floats:
    """Return ``(C, C)`` with ``(r_i + r_j) / (C − 1)`` off the diagonal: the cost of one row of each class."""
    n_classes = len(worth)
    total, squares = (np.bincount(codes, share**power, n_classes) for power in (1, 2))
    row = np.divide(squares, total, out=np.zeros(n_classes), where=total > 0) * worth.sum(axis=1) / (n_classes - 1)
    return (row[:, None] + row) / (n_classes - 1) * (1.0 - np.eye(n_classes))


class _Predictions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that predicts its input, because a scorer needs a model."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes

    def predict(self, predicted: NDArray[Any]) -> NDArray[Any]:
        return predicted


def _metric_of(scoring: Callable[..., float] | str, classes: NDArray[Any]) -> Callable[..., float]:
    """Return the function of true and predicted classes to maximise."""
    if callable(scoring):
        return scoring
    advice = "pass e.g. 'f1_macro' or sklearn.metrics.cohen_kappa_score"
    if not isinstance(scoring, str):
        requirement = "must be a function of (y_true, y_pred) or the name of a scorer"
        raise invalid("scoring", requirement, repr(scoring), advice)
    try:
        scorer = get_scorer(scoring)
    except ValueError:
        advice = "sklearn.metrics.get_scorer_names() has all names"
        raise invalid("scoring", "must be the name of a scorer", repr(scoring), advice) from None

    def score(true: NDArray[Any], predicted: NDArray[Any], **options: Any) -> float:
        try:
            return float(scorer(_Predictions(classes), predicted, true, **options))
        except AttributeError:
            came = f"{scoring!r}, which needs scores"
            raise invalid("scoring", "must be a metric of predicted classes", came, advice) from None

    return score
