"""The stacking classifier: out-of-fold scores of its models, and their combination."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_regressor
from sklearn.utils import _safe_indexing, check_consistent_length, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from mauc._estimators import RankingClassifier, encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import check_pairs, check_real, check_sample_weight, check_whole, invalid, is_sparse
from mauc.ensemble.bases import class_scores, default_estimators, ordinal_estimators, weight_argument
from mauc.ensemble.calibration import Calibration, fit_calibration
from mauc.ensemble.columns import TableColumns, are_texts, for_sparse, transformer_for
from mauc.ensemble.combination import Learnt, OutOfFold, learn, unlearnt
from mauc.ensemble.fitting import Fits, Here, Runner, Samples, Watch, fit_folds, fit_whole, is_refitted
from mauc.ensemble.odds import class_order
from mauc.ensemble.planner import Member, Plan, Size, plan_members, starter
from mauc.ensemble.tree_columns import Layout
from mauc.ensemble.workers import Workers
from mauc.model_selection import check_groups, folds_of, of_some_classes, some_of_each
from mauc.risk import SurrogateRisk
from mauc.surrogates import Surrogate, get_surrogate

__all__ = ["MAUCStackingClassifier"]

DEFAULT_ALPHA = 6.0
WHOLE = "combination"
NORMALIZED = "normalized"
AUTO = "auto"
_WHO = "MAUCStackingClassifier"


class MAUCStackingClassifier(RankingClassifier, _BaseComposition):  # type: ignore[misc]
    r"""Combines classifiers so that the combination has the highest multiclass AUC.

    .. math:: F = s \operatorname{softmax}\Bigl(\sum_k w_k \log p_k\Bigr) + (1 - s)\, \bar p, \qquad w_k \ge 0

    Each model is fitted on folds and scores what was held out; the weights minimise the exact surrogate risk of these
    out-of-fold scores. The weights are used alone, s = 1, where they are ahead of the plain mean of the models by a
    standard error, judged by samples that they were not learnt from; else half of it: :mod:`mauc.ensemble.combination`.

    Parameters
    ----------
    estimators : list of (name, classifier), optional
        Default, :func:`mauc.ensemble.default_estimators`: two balanced logistic regressions,
        :class:`mauc.MAUCClassifier` and the same on a Gaussian kernel, all on imputed and standardised columns;
        balanced extra trees, pruned and grown out, a random forest, histogram boosting and a perceptron. On larger
        tables some get fewer trees or rows, or are left out: :mod:`mauc.ensemble.planner`. They take tables with texts,
        dates, categories and gaps (``columns``), and sparse matrices. As in scikit-learn's stacking, models are fitted
        on codes 0 to C-1 of the classes, which a ``class_weight`` by class must use, and ``"drop"`` in place of a model
        leaves it out.
    cv : int, splitter or list of (train, test), optional
        Folds. Default: five; for the default models three from 3,500 samples on, and from 20,000 on a fifth is held out
        once. A number gives :class:`mauc.model_selection.RareClassKFold`, in which every class stays in every training
        part; the only sample of a class is then never held out, and the weights are learnt without it. From other
        folds a class may be missing: there it has the floor score. Rows that belong together, such as those of one
        patient, must be held out together: pass them as ``groups`` to ``fit``.
    surrogate : str or object, default="exponential"
        Pair loss that the weights minimise: ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``,
        ``"generalized_hinge"``, ``"logistic"``, ``"distance_weighted"``, or an object with ``loss(t)`` and
        ``derivative(t)``.
    alpha : float, optional
        Margin or rate of the surrogate, where it has one; default: 6.
    floor : float, default=0.03
        Smallest score before the logarithm, as a share of the frequency of the class: a forest's 0 is no certainty.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
    refit : "auto", True or False, default="auto"
        True: after the folds each model is fitted on all data. False: it is the average of its models of the folds,
        which saves that fit and takes as many times as long to predict. ``"auto"``: forests, which are averages
        already, are fitted on all data, all others averaged; with a single fold all are fitted on all data. A model
        without a weight is not fitted again.
    time_limit : float, optional
        Seconds that :meth:`fit` may take. The default models are then fitted in child processes, as many as there are
        cores, and what is not ready in time is ended and left out (``cut_``); a faster machine may then give another
        stack. Of models of your own, none begins after the limit.
    effort : {"quick", "normal", "best"}, default="normal"
        How much work the default models may be; normal is about a minute on two cores up to 100,000 samples.
    n_jobs : int, optional
        Processes, as in joblib: one fit of one model on one fold at a time, each on one thread. Default: one, and with
        a time limit as many as there are cores.
    random_state : int, default=0
        Of the folds and of the default models.
    columns : "auto", transformer or None, default="auto"
        What all models have before them, fitted once on all samples without their classes. ``"auto"``: for the default
        models :class:`mauc.ensemble.TableColumns` where X has columns that hold no numbers, or is one text per sample,
        else numbers less the median of their column; models of your own get X as it is. For a list of your own name the
        transformer: ``columns=TableColumns()``. None: X as it is.
    calibrate : bool or "normalized", default=False
        Calibrated probabilities in place of ranking scores. True: each column is the probability of its class against
        all others, by a strictly increasing map of the scores, so that the ranking inside the column, and every AUC, is
        the same; rows sum to 1 only nearly, unless there are two classes. ``"normalized"``: the same divided by the sum
        of the row, as scikit-learn's ``log_loss`` and ``roc_auc_score`` want it, which changes the ranking somewhat.
        :mod:`mauc.ensemble.calibration` has the maps, and what they gain.
    ordinal : list of classes, optional
        All classes from the lowest to the highest, where they have an order, such as low, medium and high: two models
        of proportional odds, ``"odds"`` and ``"odds_kernel"``, then join the others. Default: where ``y`` has an
        ordered categorical data type, in its order, beside the default models. Two classes need none.
    verbose : int, default=0
        Print a line for each model as it is done, and one for the combination.

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
    cut_ : dict of str to str
        What ``time_limit`` cut, or what failed in a child process: the name of the model, and why.
    seconds_ : dict of name to float
        What the fits of each model took, added up.
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
        The classes from the lowest to the highest, where they have an order.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Costs one fit of each model on each fold, and of forests one on all data; the combination costs little beside them.
    Unless a ``time_limit`` cuts something, the same data and ``random_state`` give the same model on every machine.
    ``predict_proba`` ranks; it is not calibrated unless ``calibrate`` says so. ``predict`` names the class that it has
    highest: uncalibrated the classes are balanced, calibrated the common ones are named more often. ``score`` is the
    multiclass AUC of the ranking scores, calibrated or not. Weights of samples reach every model and the calibration,
    and a model whose ``fit`` does not take them is refused.

    A model whose weight is 0, unless the mean counts, is not asked for scores.

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
        cv: Any = None,
        surrogate: str | Any = "exponential",
        alpha: float | None = None,
        floor: float = 0.03,
        pairs: str | ArrayLike = "ovo",
        refit: bool | str = "auto",
        time_limit: float | None = None,
        effort: Literal["quick", "normal", "best"] = "normal",
        n_jobs: int | None = None,
        random_state: int = 0,
        columns: Any = "auto",
        calibrate: bool | str = False,
        ordinal: ArrayLike | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.cv = cv
        self.surrogate = surrogate
        self.alpha = alpha
        self.floor = floor
        self.pairs = pairs
        self.refit = refit
        self.time_limit = time_limit
        self.effort = effort
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
        return get_surrogate(self.surrogate, alpha=self.alpha, default_alpha=DEFAULT_ALPHA)

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
        limit = None if self.time_limit is None else check_real("time_limit", self.time_limit, low=0)
        self._train(X, y, sample_weight, groups, deadline=None if limit is None else time.monotonic() + limit)
        return self

    def _train(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        extra: Any = None,
        layout: Layout | None = None,
        deadline: float | None = None,
        workers: Workers | None = None,
        watch: Watch | None = None,
    ) -> Fits:
        """:meth:`fit` up to a deadline in the seconds of :func:`time.monotonic`; every model scores the ``extra`` rows.

        ``layout`` is that of X where the caller made it of a table.
        ``workers`` are those of the caller, who ends them.
        """
        self._check_parameters()
        risk = SurrogateRisk(self._surrogate())
        X = self._checked(X, reset=True)
        classes, codes = encode_classes(y)
        check_consistent_length(X, codes)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        pairs = check_pairs(self.pairs, len(classes))
        own_models = self.estimators is not None and self.ordinal is None
        order = None if own_models else class_order(self.ordinal, y, classes)
        # A weight of 0 is no sample.
        counted = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0)
        group = check_groups(groups, len(codes))
        made = self._made(X, counted)
        plan = self._plan(made, len(classes), order, layout)
        members = plan.members
        for member in members:
            weight_argument(member.model, weight)
        folds = self._folds(X, classes[codes], codes, counted, group, plan.n_folds)
        extra = extra if extra is None or self.columns_ is None else self.columns_.transform(extra)
        samples = Samples(made, codes, len(classes), weight, counted, folds, extra, self.random_state, plan.fold_rows)
        self.classes_ = classes
        self.ordinal_classes_ = None if order is None else classes[order]
        self.cut_: dict[str, str] = {}
        score = _Score(samples, pairs)
        watch = watch or _Printed(_WHO, silent=not self.verbose)
        with self._runner(samples, deadline, workers) as runner:
            ends = _Deadlines.until(deadline)
            again = partial(self._is_refitted, n_folds=len(folds))
            fits = fit_folds(
                members, samples, runner, ends.folds, again, score, watch, first=0 if self.estimators else 2
            )
            if not fits.folds:
                # Here, for a child that is not there yet cannot do it: some tenths of a second.
                first = members[:1] if self.estimators else [starter(self.random_state, len(classes))]
                fits.start_over(fit_folds(first, samples, Here(samples), math.inf, again, score, watch))
            names = list(fits.folds)
            learnt = self._combine(fits, names, samples, group, risk, pairs, runner, ends.weights)
            used = {name for name, needed in zip(names, learnt.combination.used, strict=True) if needed}
            needed = [
                m
                for m in members
                if m.name in (used if self.refit == AUTO else names) and again(m) and m.name not in fits.whole
            ]
            fit_whole(needed, fits, samples, runner, ends.whole, watch)
        self.cut_ |= fits.cut
        self.named_estimators_ = {name: fits.model(name, len(classes)) for name in names}
        self.seconds_ = {name: fits.seconds[name] for name in names}
        self.calibration_ = self._calibration(samples) if self.calibrate else None
        return fits

    @property
    def estimators_(self) -> list[Any]:
        """The fitted classifiers; kept once, by name, so that a model file holds each once."""
        return list(self.named_estimators_.values())

    def _is_refitted(self, member: Member, n_folds: int) -> bool:
        """Where the planner chose few folds, there are so many rows that a part of them will do."""
        return is_refitted(member.model, self.refit, n_folds, 2 if self.cv is None else 4, len(self.classes_))

    def _check_parameters(self) -> None:
        advice = "pass a seed: the models of each fold must agree on it"
        check_whole("random_state", self.random_state, least=0, advice=advice)
        self._named()
        check_real("floor", self.floor, low=0, high=1)
        if not (isinstance(self.refit, bool | np.bool_) or self.refit == AUTO):
            raise invalid("refit", f"must be True, False or {AUTO!r}", repr(self.refit))
        if not (isinstance(self.calibrate, bool | np.bool_) or self.calibrate == NORMALIZED):
            raise invalid("calibrate", f"must be True, False or {NORMALIZED!r}", repr(self.calibrate))

    def _made(self, X: Any, counted: Ints) -> Any:
        """X after what ``columns`` asks for, which is fitted here."""
        transformer = transformer_for(
            self.columns, X, own_models=self.estimators is not None, random_state=self.random_state
        )
        self.columns_ = None if transformer is None else clone(transformer)
        if self.columns_ is None:
            return X
        if len(counted) == _num_samples(X):
            return self.columns_.fit_transform(X)
        return self.columns_.fit(_safe_indexing(X, counted)).transform(X)

    def _plan(self, X: Any, n_classes: int, order: Ints | None, layout: Layout | None) -> Plan:
        """The models as the planner wants them, or those of the user in five folds."""
        n_samples = _num_samples(X)
        if self.estimators is not None:
            named = self._named() if order is None else self._with_order(self._named(), order)
            return Plan(tuple(Member(name, model, n_samples) for name, model in named), 5)
        size = Size(n_samples, X.shape[1], n_classes)
        if isinstance(self.columns_, TableColumns) and not is_sparse(X):
            layout = self.columns_.layout()
        ordered = None if order is None else order.tolist()
        plan = plan_members(size, self.effort, self.random_state, ordered, layout)
        if not is_sparse(X):
            return plan
        return Plan(tuple(Member(m.name, for_sparse(m.model), m.rows) for m in plan.members), plan.n_folds)

    @contextmanager
    def _runner(self, samples: Samples, deadline: float | None, workers: Workers | None) -> Iterator[Runner]:
        """Child processes where there is a deadline; models of the user stay here, for a child may not know them."""
        if deadline is None or self.estimators is not None:
            yield Here(samples, self.n_jobs)
            return
        with nullcontext(workers) if workers else Workers(self._n_workers()) as own:
            own.shared = samples
            yield own

    def _n_workers(self) -> int | None:
        return None if self.n_jobs is None else int(effective_n_jobs(self.n_jobs))

    def _combine(
        self,
        fits: Fits,
        names: list[str],
        samples: Samples,
        group: Ints | None,
        risk: SurrogateRisk,
        pairs: str | Floats,
        runner: Runner,
        deadline: float,
    ) -> Learnt:
        """Learn the combination, by some of the samples where there are many."""
        self.oof_model_scores_ = np.array([fits.held_out[name] for name in names])
        codes, weight, n_classes = samples.codes, samples.weight, samples.n_classes
        seen = samples.counted[~np.isnan(self.oof_model_scores_[0, samples.counted, 0])]
        seen = _some(samples, seen)
        shares = np.bincount(codes, weight, n_classes) / (len(codes) if weight is None else weight.sum())
        own = None if weight is None else weight[seen]
        of_group = None if group is None else group[seen]
        data = OutOfFold(self.oof_model_scores_[:, seen], codes[seen], own, self.floor * shares, of_group)
        self.oof_scores_ = {name: data.mauc(each, pairs) for name, each in zip(names, data.scores, strict=True)}
        learnt = None
        if len(names) > 1 and len(seen) * n_classes <= 1_000_000:
            # What is quick is done here: a child that was ended at the deadline takes long to start again.
            runner = Here(samples) if len(seen) * n_classes <= 5_000 else runner
            answers = list(runner.run([(_learn, (data, risk, pairs, self.random_state))], deadline))
            learnt = answers[0].value if answers else None
            if learnt is None:
                self.cut_[WHOLE] = "was not learnt in time: the models count the same, or the best stands alone"
        learnt = learnt or unlearnt(data, pairs)
        self._combination, self.oof_scores_[WHOLE] = learnt.combination, learnt.mauc
        self.weights_ = dict(zip(names, learnt.combination.weights.tolist(), strict=True))
        self.weighted_share_ = learnt.combination.share
        self.oof_combination_ = np.full(self.oof_model_scores_.shape[1:], np.nan)
        self.oof_combination_[seen] = learnt.held_out
        parts = ", ".join(f"{name} {self.oof_scores_[name]:.4f} × {w:.2f}" for name, w in self.weights_.items())
        half = "" if self.weighted_share_ == 1.0 else ", half of it the plain mean"
        self._tell(f"out-of-fold MAUC {self.oof_scores_[WHOLE]:.4f} from {parts}{half}")
        return learnt

    def _with_order(self, named: list[tuple[str, Any]], order: Ints) -> list[tuple[str, Any]]:
        """Their models come early, for they are quick; the first is fitted in any case."""
        members = ordinal_estimators(order.tolist(), self.random_state)
        taken = {name for name, _ in named} & {name for name, _ in members}
        if taken:
            raise invalid("estimators", "must leave the names of ordinal models free", repr(min(taken)), "rename it")
        return [named[0], *members, *named[1:]]

    def _calibration(self, samples: Samples) -> Calibration:
        """By the samples that were held out from the combination too."""
        codes, weight, n_classes = samples.codes, samples.weight, samples.n_classes
        shares = np.bincount(codes, weight, n_classes) / (len(codes) if weight is None else weight.sum())
        if n_classes > 500:
            # A map for each would take minutes, and be learnt from a row or two: the scores stay as they are.
            return Calibration(np.ones(n_classes), np.zeros(n_classes), 1.0)
        seen = np.flatnonzero(~np.isnan(self.oof_combination_[:, 0]))
        seen = seen[some_of_each(codes[seen], max(2_000, 600_000 // n_classes), self.random_state)]
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

    def _folds(
        self, X: Any, labels: NDArray[Any], codes: Ints, counted: Ints, groups: Ints | None, n_folds: int
    ) -> list[tuple[Ints, Ints]]:
        """Pairs of training and test rows; a weight of 0 is no sample, and a training part needs two classes.

        Where the planner wants one part, it is the one of five that has most classes, and of it what the weights need.
        """
        cv = max(n_folds, 5 if n_folds == 1 else 2) if self.cv is None else self.cv
        folds = folds_of(cv, X, labels, np.isin(np.arange(len(codes)), counted), self.random_state, groups)
        folds = [(a, b) for a, b in folds if len(b) and len(np.unique(codes[a])) > 1]
        if self.cv is not None or n_folds > 1 or not folds:
            return folds
        train, test = max(folds, key=lambda fold: len(np.unique(codes[fold[1]])))
        test = test[of_some_classes(codes[test], self.random_state)]
        return [(train, test[some_of_each(codes[test], 20_000, self.random_state)])]

    def _tell(self, line: str) -> None:
        if self.verbose:
            print(f"{_WHO}: {line}")

    def predict_proba(self, X: Any) -> Floats:
        """``(N, C)`` scores of the combination, calibrated where that was asked for."""
        return self._probabilities(self._ranking_scores(X))

    def _probabilities(self, scores: Floats) -> Floats:
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
        X = X if self.columns_ is None else self.columns_.transform(X)
        needed = np.ones(len(self.estimators_), dtype=bool) if needed is None else needed
        found = np.ones((len(self.estimators_), _num_samples(X), len(self.classes_)))
        # Threads wait for each other more than they work on so little.
        with threadpool_limits(1):
            for k in np.flatnonzero(needed):
                found[k] = class_scores(self.estimators_[k], X, len(self.classes_))
        return found


def _some(samples: Samples, seen: Ints) -> Ints:
    """Of the rows that were held out those that scores are compared and weights learnt by, where there are many."""
    seen = seen[of_some_classes(samples.codes[seen], samples.seed)]
    return seen[some_of_each(samples.codes[seen], max(2_000, 150_000 // samples.n_classes), samples.seed)]


class _Score:
    """Multiclass AUC of held-out scores."""

    def __init__(self, samples: Samples, pairs: str | Floats) -> None:
        self.samples, self.pairs = samples, pairs

    def __call__(self, held_out: Floats) -> float:
        s = self.samples
        seen = s.counted[~np.isnan(held_out[s.counted, 0])]
        seen = _some(s, seen)
        weight = None if s.weight is None else s.weight[seen]
        data = OutOfFold(held_out[None, seen], s.codes[seen], weight, np.zeros(s.n_classes))
        return data.mauc(held_out[seen], self.pairs)


class _Printed:
    """A line for each model that is complete."""

    def __init__(self, who: str, *, silent: bool) -> None:
        self.who, self.silent, self.began = who, silent, time.monotonic()

    def begins(self, name: str, step: str) -> None:
        """Nothing is said."""

    def ends(self, name: str, score: float, seconds: float) -> None:
        """The model, its score, and the time since the beginning."""
        if not self.silent:
            took = time.monotonic() - self.began
            print(f"{self.who}: {name} fitted, out-of-fold MAUC {score:.4f}, {took:.1f} s so far")


class _Deadlines(NamedTuple):
    """When the folds, the weights and the fits on all data must be done."""

    folds: float
    weights: float
    whole: float

    @classmethod
    def until(cls, deadline: float | None) -> _Deadlines:
        """Most of the time is for the folds; what they leave is for the rest."""
        if deadline is None:
            return cls(math.inf, math.inf, math.inf)
        now = time.monotonic()
        return cls(now + 0.75 * (deadline - now), now + 0.87 * (deadline - now), deadline)


def _learn(_: Samples, data: OutOfFold, risk: SurrogateRisk, pairs: str | Floats, random_state: int) -> Learnt:
    return learn(data, risk, pairs, random_state=random_state)
