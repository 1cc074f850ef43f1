"""The stacking classifier: out-of-fold scores of its models, and their combination."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_is_fitted, validate_data

from mauc._estimators import RankingClassifier, encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import check_pairs, check_real, check_sample_weight, check_whole, invalid, is_sparse
from mauc.ensemble.bases import (
    default_estimators,
    is_default_kernel,
    ordinal_estimators,
    weight_argument,
)
from mauc.ensemble.calibration import Calibration, fit_calibration
from mauc.ensemble.columns import are_texts, for_sparse, prepare, rows_of, transformer_for
from mauc.ensemble.combination import OutOfFold, learn
from mauc.ensemble.fitting import Samples, fit_models
from mauc.ensemble.ordinal import are_numbers, order_wanted
from mauc.ensemble.quick import StackScores
from mauc.model_selection import check_groups, folds_of
from mauc.risk import SurrogateRisk
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["MAUCStackingClassifier"]

DEFAULT_ALPHA = 6.0
WHOLE = "combination"
NORMALIZED = "normalized"
AUTO = "auto"
_WHO = "MAUCStackingClassifier"
# Of the time limit; the rest is for the combination.
MODELS_SHARE = 0.9


class MAUCStackingClassifier(RankingClassifier, _BaseComposition):  # type: ignore[misc]
    r"""Combines classifiers so that the combination has the highest multiclass AUC.

    .. math:: F = s \operatorname{softmax}\Bigl(\sum_k w_k \log p_k\Bigr) + (1 - s)\, \bar p, \qquad w_k \ge 0

    Each model is fitted on folds and scores what was held out; the weights minimise the exact surrogate risk of these
    out-of-fold scores. They have the whole say, s = 1, where they are ahead of the plain mean of the models by a
    standard error, judged by samples that they were not learnt from; else half of it: :mod:`mauc.ensemble.combination`.

    Parameters
    ----------
    estimators : list of (name, classifier), optional
        Default, :func:`mauc.ensemble.default_estimators`: two balanced logistic regressions,
        :class:`mauc.MAUCClassifier` and the same on a Gaussian kernel, all on imputed and standardised columns;
        balanced extra trees, pruned and grown out, a random forest, histogram boosting and a perceptron. They take
        tables with texts, dates, categories and gaps (``columns``), and sparse matrices. As in scikit-learn's stacking,
        models are fitted on codes 0 to C-1 of the classes, which a ``class_weight`` by class must use, and ``"drop"``
        in place of a model leaves it out.
    cv : int, splitter or list of (train, test), default=5
        Folds. A number gives :class:`mauc.model_selection.RareClassKFold`, in which every class stays in every training
        part; the only sample of a class is then never held out, and the weights are learnt without it. From other
        folds a class may be missing: there it has the floor score. Rows that belong together, such as those of one
        patient, must be held out together: pass them as ``groups`` to ``fit``.
    surrogate : str or object, default="exponential"
        Pair loss that the weights minimise: ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``,
        ``"generalized_hinge"``, ``"logistic"``, ``"distance_weighted"``, or an object with ``loss(t)`` and
        ``derivative(t)``.
    alpha : float, optional
        Margin or rate of the surrogate; 6 unless told, where it has one.
    floor : float, default=0.03
        Smallest score before the logarithm, as a share of the frequency of the class: a forest's 0 is no certainty.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
    surrogate_options : dict, optional
        Further parameters of the surrogate.
    refit : "auto", True or False, default="auto"
        True: after the folds each model is fitted on all data. False: it is the average of its models of the folds,
        which saves that fit and takes as many times as long to predict. ``"auto"``: forests, which are averages
        already, are fitted on all data, all others averaged; with fewer than four folds all are fitted on all data.
    time_limit : float, optional
        Seconds that :meth:`fit` may take. Models are then fitted in the order of the list, and one that would not be
        ready in time is left out. The first is fitted in any case.
    n_jobs : int, optional
        Processes, as in joblib: one fit of one model on one fold at a time. From 50,000 samples on, each uses as many
        threads as there are cores for it; below, one.
    random_state : int, default=0
        Of the folds and of the default models.
    columns : "auto", transformer or None, default="auto"
        What all models have before them. It is fitted once on each training part, not once for each model, and so sees
        no sample that is held out. ``"auto"``: for the default models :class:`mauc.ensemble.TableColumns` where X has
        columns that hold no numbers, or is one text per sample; models of your own get X as it is. For a list of your
        own name the transformer: ``columns=TableColumns()``. None: X as it is.
    calibrate : bool or "normalized", default=False
        Calibrated probabilities in place of ranking scores. True: each column is the probability of its class against
        all others, by a strictly increasing map of the scores, so that the ranking inside the column, and every AUC, is
        the same; rows sum to 1 only nearly, unless there are two classes. ``"normalized"``: the same divided by the sum
        of the row, as scikit-learn's ``log_loss`` and ``roc_auc_score`` want it, which changes the ranking somewhat.
        :mod:`mauc.ensemble.calibration` has the maps, and what they gain.
    ordinal : "auto", bool or list of classes, default="auto"
        Whether the classes have an order, such as low, medium and high: then two models of proportional odds,
        ``"odds"`` and ``"odds_kernel"``, join the others. ``"auto"``: beside the default models, or those of them that
        include ``"kernel"``, where the names of the classes tell an order, as graded words and ranges do
        (:mod:`mauc.ensemble.ordinal`); numbers, which may be mere codes, must show it: ``"odds_kernel"``, with one
        direction for all classes, must rank held-out samples as well as ``"kernel"``, with one for each. True: beside
        any models, and sorted where names tell nothing. A list: in this order, the lowest first. Of two classes either
        order is the same, and there are no such models.
    verbose : int or function, default=0
        Print a line for each model as it is done, and one for the combination. A function is called instead, before
        each fit, with the name of the model and the number of the fold, None for the fit on all data; what it raises
        ends the training.

    Attributes
    ----------
    classes_ : (C,) array
    estimators_ : list of fitted classifiers
    named_estimators_ : dict of name to fitted classifier
        A model that is not fitted on all data has those of the folds as its ``estimators``.
    weights_ : dict of name to float
        Weight :math:`w_k` of each model.
    weighted_share_ : float
        The share s: 1, or a half.
    left_out_ : list of str
        Names of the models that there was no time for.
    oof_scores_ : dict of name to float
        Out-of-fold multiclass AUC of each model, without the floor, and of the whole under ``"combination"``: there
        the combination, too, was learnt without the samples that it is judged on. NaN where no two classes could be
        held out.
    oof_model_scores_ : (K, N, C) array
        Scores of the models for held-out samples; NaN where a sample was never held out.
    oof_combination_ : (N, C) array
        Scores of the combination for the held-out samples, learnt without them; NaN where a sample never was. Not
        calibrated.
    columns_ : fitted transformer or None
        That of all data.
    calibration_ : Calibration or None
        ``slopes`` and ``intercepts`` of the maps.
    ordinal_classes_ : (C,) array or None
        The classes from the lowest to the highest, where they are taken to have an order.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Costs one fit of each model on each fold, and of forests one on all data; the combination costs little beside them.
    ``predict_proba`` ranks; it is not calibrated unless ``calibrate`` says so. ``predict`` names the class that it has
    highest: uncalibrated the classes are balanced, calibrated the common ones are named more often. ``score`` is the
    multiclass AUC of the ranking scores, calibrated or not. Weights of samples reach every model and the calibration,
    and a model whose ``fit`` does not take them is refused.

    The default models, and models of your own that are like them, are asked for scores without the checks around them,
    several times faster and the same to rounding (:mod:`mauc.ensemble.quick`); a model whose weight is 0, unless the
    mean counts, is not asked at all.

    A sparse X is the same numbers in another layout. Of the default models the linear ones and the kernel come out as
    on dense columns; the forests take it with gaps filled by means; boosting and the perceptron need dense columns, and
    get up to 200 as they are, of more their 100 leading directions.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.preprocessing import scale
    >>> from mauc.ensemble import MAUCStackingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = scale(X)[:, 2:7]
    >>> model = MAUCStackingClassifier([("lr", LogisticRegression()), ("nb", GaussianNB())]).fit(X, y)
    >>> {name: round(score, 3) for name, score in model.oof_scores_.items()}
    {'lr': 0.969, 'nb': 0.972, 'combination': 0.977}
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]] | None = None,
        *,
        cv: Any = 5,
        surrogate: str | Any = "exponential",
        alpha: float | None = None,
        floor: float = 0.03,
        pairs: str | ArrayLike = "ovo",
        surrogate_options: dict[str, Any] | None = None,
        refit: bool | str = "auto",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
        columns: Any = "auto",
        calibrate: bool | str = False,
        ordinal: bool | str | ArrayLike = "auto",
        verbose: int | Callable[[str, int | None], None] = 0,
    ) -> None:
        self.estimators = estimators
        self.cv = cv
        self.surrogate = surrogate
        self.alpha = alpha
        self.floor = floor
        self.pairs = pairs
        self.surrogate_options = surrogate_options
        self.refit = refit
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.columns = columns
        self.calibrate = calibrate
        self.ordinal = ordinal
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator and, as ``name__parameter``, of its models."""
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set them; a model as a whole by its name."""
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(model) for _, model in self._named(checked=False)] if self.estimators else []
        tags.input_tags.sparse = all(t.input_tags.sparse for t in inner)
        # The models of the default list impute, or take NaN as they are.
        tags.input_tags.allow_nan = all(t.input_tags.allow_nan for t in inner)
        return tags

    def _named(self, *, checked: bool = True) -> list[tuple[str, Any]]:
        """Names and models that are not dropped; unchecked, whatever there is that can be fitted."""
        if self.estimators is None:
            return default_estimators(self.random_state)
        given = self.estimators if isinstance(self.estimators, list | tuple) else []
        listed = [tuple(each) for each in given if isinstance(each, list | tuple) and len(each) == 2]
        kept = [(name, model) for name, model in listed if not (isinstance(model, str) and model == "drop")]
        if not checked:
            return [(name, model) for name, model in kept if hasattr(model, "fit") and not isinstance(model, type)]
        names = [name for name, _ in listed]
        if not kept or len(listed) < len(given) or not all(isinstance(name, str) for name in names):
            came, advice = repr(self.estimators), "pass e.g. [('lr', LogisticRegression()), ('nb', GaussianNB())]"
            raise invalid("estimators", "must be a list of (name, classifier)", came, advice)
        taken = (WHOLE, *self._get_param_names())
        bad = [name for name in names if names.count(name) > 1 or "__" in name or name in taken]
        if bad:
            requirement = "must have different names without '__' that are no parameters"
            raise invalid("estimators", requirement, repr(bad[0]), "rename it")
        for name, model in kept:
            if not hasattr(model, "fit") or isinstance(model, type) or is_regressor(model):
                raise invalid("estimators", f"must have a classifier under {name!r}", repr(model), "pass an estimator")
        return kept

    def _surrogate(self) -> Surrogate:
        options = self.surrogate_options or {}
        return get_surrogate(self.surrogate, alpha=self.alpha, default_alpha=DEFAULT_ALPHA, **options)

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit every model on every fold and on all data, and learn the combination.

        Parameters
        ----------
        X : (N, d) array, sparse matrix, data frame or N texts, as the models take it
            The default models take any of these, with missing values.
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
        groups : (N,) array, optional
            Group of each sample, such as the patient: a group is held out as a whole. A number as ``cv`` then gives
            folds by :func:`mauc.model_selection.group_folds`; a splitter is given the groups.
        """
        advice = "pass a seed: the models of each fold must agree on it"
        check_whole("random_state", self.random_state, least=0, advice=advice)
        named = self._named()
        floor = check_real("floor", self.floor, low=0, high=1)
        deadline = self._deadline()
        if not (isinstance(self.refit, bool | np.bool_) or self.refit == AUTO):
            raise invalid("refit", f"must be True, False or {AUTO!r}", repr(self.refit))
        if not (isinstance(self.calibrate, bool | np.bool_) or self.calibrate == NORMALIZED):
            raise invalid("calibrate", f"must be True, False or {NORMALIZED!r}", repr(self.calibrate))
        risk = SurrogateRisk(self._surrogate())
        X = self._checked(X, reset=True)
        classes, codes = encode_classes(y)
        check_consistent_length(X, codes)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        pairs = check_pairs(self.pairs, len(classes))
        order = order_wanted(self.ordinal, classes, by_itself=any(is_default_kernel(*each) for each in named))
        named = named if order is None else self._with_order(named, order)
        for _, model in named:
            weight_argument(model, weight)
        # A weight of 0 is no sample.
        counted = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0)
        group = check_groups(groups, len(codes))
        folds = self._folds(X, classes[codes], codes, counted, group)
        parts = self._prepare(X, [*folds, (counted, None)])
        if self.estimators is None and is_sparse(rows_of(parts[-1], None, train=True)):
            named = for_sparse(named)
        samples = Samples(parts, codes, len(classes), weight, counted, folds)
        self.classes_ = classes
        self.oof_model_scores_ = self._fit_models(named, samples, pairs, deadline)
        self.ordinal_classes_ = None if order is None else self._settle_order(classes[order], samples, pairs)
        shares = np.bincount(codes, weight, len(classes)) / (len(codes) if weight is None else weight.sum())
        seen = counted[~np.isnan(self.oof_model_scores_[0, counted, 0])]
        held_out = self.oof_model_scores_[:, seen]
        own = None if weight is None else weight[seen]
        of_group = None if group is None else group[seen]
        data = OutOfFold(held_out, codes[seen], own, floor * shares, of_group)
        scores = [data.mauc(each, pairs) for each in held_out]
        self.oof_scores_ = dict(zip(self.named_estimators_, scores, strict=True))
        self.oof_combination_ = np.full(self.oof_model_scores_.shape[1:], np.nan)
        self.oof_combination_[seen] = self._combine(data, risk, pairs)
        self.calibration_ = self._calibration(codes, weight, shares) if self.calibrate else None
        self._read_models()
        return self

    def _with_order(self, named: list[tuple[str, Any]], order: Ints) -> list[tuple[str, Any]]:
        """Their models come early, for they are quick; the first is fitted in any case."""
        members = ordinal_estimators(order.tolist(), self.random_state)
        taken = {name for name, _ in named} & {name for name, _ in members}
        if taken:
            raise invalid("estimators", "must leave the names of ordinal models free", repr(min(taken)), "rename it")
        return [named[0], *members, *named[1:]]

    def _deadline(self) -> float | None:
        """When the last model must be fitted; what follows takes little."""
        if self.time_limit is None:
            return None
        return time.perf_counter() + MODELS_SHARE * check_real("time_limit", self.time_limit, low=0)

    def _calibration(self, codes: Ints, weight: Floats | None, shares: Floats) -> Calibration:
        """By the samples that were held out from the combination too."""
        seen = np.flatnonzero(~np.isnan(self.oof_combination_[:, 0]))
        own = None if weight is None else weight[seen]
        return fit_calibration(self.oof_combination_[seen], codes[seen], own, shares)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Data frames as they are, for models that know columns by name, and so texts; all else as an array. Values
        are checked by the models.
        """
        if are_texts(X):
            return X
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        sparse = self.__sklearn_tags__().input_tags.sparse
        accepted = ("csr", "csc") if sparse else False
        return validate_data(self, X, reset=reset, accept_sparse=accepted, dtype=None, ensure_all_finite=False)

    def _prepare(self, X: Any, folds: list[tuple[Ints, Ints | None]]) -> list[Any]:
        """X as the models of each fold take it, after what ``columns`` asks for; the last fold is all data."""
        transformer = transformer_for(
            self.columns, X, own_models=self.estimators is not None, random_state=self.random_state
        )
        self.columns_, self._fold_columns = None, []
        if transformer is None:
            return [X] * len(folds)
        fitted, parts = zip(*prepare(transformer, X, folds, self.n_jobs), strict=True)
        *self._fold_columns, self.columns_ = fitted
        return list(parts)

    def _folds(
        self, X: Any, labels: NDArray[Any], codes: Ints, counted: Ints, groups: Ints | None
    ) -> list[tuple[Ints, Ints]]:
        """Pairs of training and test rows; a weight of 0 is no sample, and a training part needs two classes."""
        folds = folds_of(self.cv, X, labels, np.isin(np.arange(len(codes)), counted), self.random_state, groups)
        return [(a, b) for a, b in folds if len(b) and len(np.unique(codes[a])) > 1]

    @property
    def _prints(self) -> bool:
        return bool(self.verbose) and not callable(self.verbose)

    def _fit_models(
        self, named: list[tuple[str, Any]], samples: Samples, pairs: str | Floats, deadline: float | None
    ) -> Floats:
        """Fit them and return ``(K, N, C)`` scores of the held-out samples, NaN where one never was."""
        began = time.perf_counter()

        def after(name: str, held_out: Floats) -> None:
            score = _mauc_of_seen(held_out, samples, pairs)
            print(f"{_WHO}: {name} fitted, out-of-fold MAUC {score:.4f}, {time.perf_counter() - began:.1f} s so far")

        fits = fit_models(
            named,
            samples,
            refit=self.refit,
            n_jobs=self.n_jobs,
            deadline=deadline,
            before=self.verbose if callable(self.verbose) else None,
            after=after if self._prints else None,
        )
        self.named_estimators_ = fits.models
        self.estimators_ = list(fits.models.values())
        self.left_out_ = fits.left_out
        if fits.left_out:
            self._tell(f"no time for {', '.join(fits.left_out)}")
        return np.array(fits.held_out)

    def _settle_order(self, classes: NDArray[Any], samples: Samples, pairs: str | Floats) -> NDArray[Any] | None:
        """The classes in order; None where numbers turn out to be mere codes, and the models of the order go."""
        if not isinstance(self.ordinal, str) or not are_numbers(classes) or self._order_shows(samples, pairs):
            self._tell(f"classes in order: {' < '.join(map(str, classes.tolist()))}")
            return classes
        self._tell("the classes are numbers that show no order: without odds, odds_kernel")
        names = list(self.named_estimators_)
        kept = [k for k, name in enumerate(names) if name not in ("odds", "odds_kernel")]
        self.estimators_ = [self.estimators_[k] for k in kept]
        self.named_estimators_ = dict(zip([names[k] for k in kept], self.estimators_, strict=True))
        self.oof_model_scores_ = self.oof_model_scores_[kept]
        return None

    def _order_shows(self, samples: Samples, pairs: str | Floats) -> bool:
        """Not where there was no time for one of the two models to compare."""
        held_out = dict(zip(self.named_estimators_, self.oof_model_scores_, strict=True))
        one, each = (
            _mauc_of_seen(held_out[name], samples, pairs) if name in held_out else np.nan
            for name in ("odds_kernel", "kernel")
        )
        return bool(one >= each)

    def _tell(self, line: str) -> None:
        if self._prints:
            print(f"{_WHO}: {line}")

    def _combine(self, data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats) -> Floats:
        """Learn the combination; returns the scores of combinations that were learnt without the sample."""
        learnt = learn(data, risk, pairs, random_state=self.random_state)
        self._combination, self.oof_scores_[WHOLE] = learnt.combination, learnt.mauc
        self.weights_ = dict(zip(self.named_estimators_, learnt.combination.weights.tolist(), strict=True))
        self.weighted_share_ = learnt.combination.share
        if self._prints:
            parts = ", ".join(f"{name} {self.oof_scores_[name]:.4f} × {w:.2f}" for name, w in self.weights_.items())
            half = "" if self.weighted_share_ == 1.0 else ", half of it the plain mean"
            self._tell(f"out-of-fold MAUC {self.oof_scores_[WHOLE]:.4f} from {parts}{half}")
        return learnt.held_out

    def predict_proba(self, X: Any) -> Floats:
        """``(N, C)`` scores of the combination, calibrated where that was asked for."""
        scores = self._ranking_scores(X)
        if self.calibration_ is None:
            return scores
        found = self.calibration_.probabilities(scores)
        return found / found.sum(axis=1, keepdims=True) if self.calibrate == NORMALIZED else found

    def _ranking_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._combination.scores(self._model_scores(X, self._combination.used))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the highest ``predict_proba``."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _model_scores(self, X: Any, needed: NDArray[np.bool_] | None = None) -> Floats:
        """``(K, N, C)``; of models that are not needed 1 throughout."""
        X = self._checked(X, reset=False)
        return self._read_models()(X, np.ones(len(self.estimators_), dtype=bool) if needed is None else needed)

    def _read_models(self) -> StackScores:
        """Once for the models as they are: at the end of a fit, or with the first prediction after loading."""
        known = getattr(self, "_stack_scores", None)
        if known is None or known.models != self.estimators_:
            known = StackScores(list(self.estimators_), self.columns_, self._fold_columns, len(self.classes_))
            self._stack_scores = known
        return known

    def __getstate__(self) -> dict[str, Any]:
        """Without what is read from the models again."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_stack_scores"}


def _mauc_of_seen(held_out: Floats, samples: Samples, pairs: str | Floats) -> float:
    seen = samples.counted[~np.isnan(held_out[samples.counted, 0])]
    weight = None if samples.weight is None else samples.weight[seen]
    data = OutOfFold(held_out[None, seen], samples.codes[seen], weight, np.zeros(samples.n_classes))
    return data.mauc(held_out[seen], pairs)
