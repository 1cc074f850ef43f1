"""The stacking classifier: out-of-fold scores of its models, and their combination."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

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
from mauc._validation import check_groups, check_pairs, check_real, check_sample_weight, check_whole, invalid, is_sparse
from mauc.ensemble.bases import ODDS, class_scores, ordinal_estimators, weight_argument
from mauc.ensemble.calibration import Calibration, fit_calibration
from mauc.ensemble.columns import (
    EncodedColumn,
    TableColumns,
    are_texts,
    encode_column,
    for_sparse,
    has_long_texts,
    split_columns,
    transformer_for,
)
from mauc.ensemble.combination import LearntCombination, OutOfFold, learn_combination, mean_or_best
from mauc.ensemble.fitting import Fits, InProcess, Runner, TrainingData, Watch, fit_all_rows, fit_folds
from mauc.ensemble.odds import class_order
from mauc.ensemble.planner import TREES, Effort, Member, Size, StackPlan, is_refitted, plan_members, starter
from mauc.ensemble.workers import STOPPED, Workers
from mauc.model_selection import folds_of, of_some_classes, some_of_each

COMBINATION = "combination"


class MAUCStackingClassifier(RankingClassifier, _BaseComposition):  # type: ignore[misc]
    r"""Combine classifiers by weights that minimise a surrogate of 1 − MAUC on rows that they were not trained on.

    .. math:: F = s \operatorname{softmax}\Bigl(\sum_k w_k \log p_k\Bigr) + (1 - s)\, \bar p, \qquad w_k \ge 0

    Each model is fitted on folds and scores the rows that were held out. The weights minimise the surrogate risk of
    these out-of-fold scores. If the weights beat the plain mean of the models by a standard error on rows that they
    were not learnt from, they are used alone: s = 1. Otherwise s = ½ (:mod:`mauc.ensemble.combination`).

    Parameters
    ----------
    estimators : list of (name, classifier), optional
        Default: :func:`mauc.ensemble.default_estimators`, nine models that balance the classes: linear models, forests,
        boosting and a perceptron. On larger tables some get fewer trees or rows, or are left out
        (:mod:`mauc.ensemble.planner`). They take tables with texts, dates, categories and missing values, and sparse
        matrices. As in scikit-learn's stacking, models are fitted on class codes 0 to C-1, so a
        ``class_weight`` dict must use these codes; and ``"drop"`` in place of a model leaves it out.
    cv : int, splitter or list of (train, test), optional
        Folds. Default: five; for the default models three from 3,500 samples on, and from 20,000 on a fifth is held out
        once. A number gives :class:`mauc.model_selection.RareClassKFold`, which keeps every class in every training
        part. With other folds, a class that is missing from a training part gets the smallest score. For rows that
        belong together, such as those of one patient, pass ``groups`` to ``fit``.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs.
    time_limit : float, optional
        Seconds that :meth:`fit` may take. The default models are then fitted in child processes, one per core. Models
        that are not ready in time are stopped and named in ``cut_``; a faster machine may then give another stack. Your
        own models run in this process: a running fit is not stopped, and no fit starts after the limit.
    effort : {"quick", "normal", "best"}, default="normal"
        Amount of work for the default models; normal takes up to 50 seconds on two cores for up to 100,000 samples.
    n_jobs : int, optional
        Processes, as in joblib; each fits one model on one fold with one thread. Default: one, and with a time limit
        one per core.
    random_state : int, default=0
        Seed of the folds and of the default models.
    columns : "auto", transformer or None, default="auto"
        Transformer before all models, fitted once on all rows without their classes. ``"auto"``: for the default models
        :class:`mauc.ensemble.TableColumns` for data frames and texts; the median of each column of an array of numbers
        is subtracted. Your own models get X unchanged. None: X unchanged.
    calibrate : {False, True, "normalized"}, default=False
        Return calibrated probabilities instead of ranking scores (:mod:`mauc.ensemble.calibration`). True: each column
        is the probability of its class against all others, and every AUC is unchanged; with more than two classes, the
        sum of a row can be far from 1. ``"normalized"``: rows are divided by their sum, as scikit-learn's ``log_loss``
        and ``roc_auc_score`` require. This lowers the AUCs of rare classes where classes overlap. With more than 500
        classes the scores are not calibrated.
    ordinal : list of classes or False, optional
        All classes from the lowest to the highest, such as low, medium and high. Two models of proportional odds,
        ``"odds"`` and ``"odds_kernel"``, then join the others, unless they are far behind out of fold. Default: for the
        default models, the order of an ordered categorical ``y``, or of up to 30 numbers. False: no order.

    Attributes
    ----------
    classes_ : (C,) array
    estimators_ : list of fitted classifiers
    named_estimators_ : dict of name to fitted classifier
        Forests are fitted on all rows. Each other model is the average of its fits on the folds, or
        is fitted on all rows too, if the folds are few.
    weights_ : dict of name to float
        Weight :math:`w_k` of each model.
    weighted_share_ : float
        The share s: 1 or 0.5.
    cut_ : dict of str to str
        Models that ``time_limit`` cut or that failed in a child process, with the reason.
    seconds_ : dict of name to float
        Total time of the fits of each model.
    oof_scores_ : dict of name to float
        Out-of-fold multiclass AUC of each model. ``"combination"`` is that of the stack; each row is scored with
        weights learnt on other rows. NaN if fewer than two classes were held out.
    oof_rows_ : (n,) array
        Rows that were held out, or a sample of many.
    oof_model_scores_ : (K, n, C) array
        Scores of the models for these rows.
    oof_combination_ : (n, C) array
        Scores of the combination for these rows, learnt without them and not calibrated; NaN for the only row of a
        class.
    columns_ : fitted transformer or None
    calibration_ : Calibration or None
        ``slopes`` and ``intercepts`` of the maps.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Unless a ``time_limit`` cuts something, the same data and ``random_state`` give the same model on every machine, up
    to the rounding of its processor.

    ``predict`` returns the class of the highest ``predict_proba``: classes are balanced without calibration, and common
    ones are predicted more often with it. ``score`` is the multiclass AUC of the ranking scores, calibrated or not.
    Sample weights reach every model; a model whose ``fit`` does not take them is refused.

    Boosting and the perceptron need dense columns. From a sparse X they get up to 200 columns unchanged; if there are
    more, they get their 100 leading components.

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
        pairs: str | ArrayLike = "ovo",
        time_limit: float | None = None,
        effort: Effort = "normal",
        n_jobs: int | None = None,
        random_state: int = 0,
        columns: Any = "auto",
        calibrate: bool | Literal["normalized"] = False,
        ordinal: ArrayLike | Literal[False] | None = None,
    ) -> None:
        self.estimators = estimators
        self.cv = cv
        self.pairs = pairs
        self.time_limit = time_limit
        self.effort = effort
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.columns = columns
        self.calibrate = calibrate
        self.ordinal = ordinal

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator and, as ``name__parameter``, of its models."""
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; set a whole model by its name."""
        self._set_params("estimators", **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = self.estimators if isinstance(self.estimators, list | tuple) else []
        models = [each[1] for each in given if isinstance(each, list | tuple) and len(each) == 2]
        inner = [get_tags(model) for model in models if hasattr(model, "fit") and not isinstance(model, type)]
        tags.input_tags.sparse = all(t.input_tags.sparse for t in inner)
        # The default models impute, or take NaN.
        tags.input_tags.allow_nan = all(t.input_tags.allow_nan for t in inner)
        return tags

    def _own_models(self) -> list[tuple[str, Any]]:
        """Return the names and models of ``estimators`` that are not dropped."""
        given = self.estimators if isinstance(self.estimators, list | tuple) else []
        listed = [tuple(each) for each in given if isinstance(each, list | tuple) and len(each) == 2]
        kept = [(name, model) for name, model in listed if not (isinstance(model, str) and model == "drop")]
        names = [name for name, _ in listed]
        if not kept or len(listed) < len(given) or not all(isinstance(name, str) for name in names):
            came, advice = repr(self.estimators), "pass e.g. [('lr', LogisticRegression()), ('nb', GaussianNB())]"
            raise invalid("estimators", "must be a list of (name, classifier)", came, advice)
        taken = (COMBINATION, *self._get_param_names())
        bad = [name for name in names if names.count(name) > 1 or "__" in name or name in taken]
        if bad:
            requirement = "must have different names without '__' that are not parameters of the stack"
            raise invalid("estimators", requirement, repr(bad[0]), "rename it")
        for name, model in kept:
            if not hasattr(model, "fit") or isinstance(model, type) or is_regressor(model):
                raise invalid("estimators", f"must have a classifier under {name!r}", repr(model), "pass an estimator")
        return kept

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit every model on every fold, some also on all rows, and learn the combination.

        Parameters
        ----------
        X : (N, d) array, sparse matrix, data frame or N texts, as the models take it
            The default models take any of these, with missing values.
        y : (N,) classes
        sample_weight : (N,) weights >= 0, optional
        groups : (N,) array, optional
            Group of each row, such as the patient: groups are held out as a whole. A number as ``cv`` then gives folds
            over which the classes are spread evenly; a splitter receives the groups.
        """
        limit = None if self.time_limit is None else check_real("time_limit", self.time_limit, low=0)
        deadline = None if limit is None else time.monotonic() + limit
        # The user's models stay in this process, because a child may not be able to import them.
        in_children = limit is not None and self.estimators is None
        n_workers = None if self.n_jobs is None else int(effective_n_jobs(self.n_jobs))
        with Workers(n_workers) if in_children else nullcontext() as workers:
            self._train(X, y, sample_weight, groups, deadline=deadline, workers=workers)
        return self

    def _train(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        extra: Any = None,
        deadline: float | None = None,
        workers: Workers | None = None,
        watch: Watch | None = None,
    ) -> Fits:
        """Fit until a deadline in seconds of :func:`time.monotonic`; every model also scores the ``extra`` rows.

        Without ``workers`` the models are fitted in this process.
        """
        self._check_parameters()
        X = self._checked(X, reset=True)
        classes, codes = encode_classes(y)
        check_consistent_length(X, codes)
        weight = check_sample_weight(sample_weight, codes, len(classes), classes)
        pairs = check_pairs(self.pairs, len(classes), classes)
        # An ordered y does not change a list of the user's own models.
        order = None if self.estimators is not None and self.ordinal is None else class_order(self.ordinal, y, classes)
        used_rows = np.arange(len(codes)) if weight is None else np.flatnonzero(weight > 0)
        group = check_groups(groups, len(codes), least=2)
        self.cut_: dict[str, str] = {}
        numbers, extra = self._fit_columns(X, used_rows, extra, deadline, workers)
        plan = self._plan(numbers, len(classes), order)
        for member in plan.members:
            weight_argument(member.model, weight)
        folds = self._folds(X, classes[codes], codes, used_rows, group, plan.n_folds)
        data = TrainingData(
            X=numbers,
            codes=codes,
            n_classes=len(classes),
            weight=weight,
            groups=group,
            used_rows=used_rows,
            folds=folds,
            extra=extra,
            seed=self.random_state,
            fold_rows=plan.fold_rows,
        )
        self.classes_ = classes
        watch = watch or Watch()
        # Folds that the planner chose for a large table have rows enough.
        min_folds = 2 if self.cv is None else 4
        refitted = {m.name for m in plan.members if is_refitted(m.model, len(classes), len(folds), min_folds)}

        def score(held_out: Floats) -> float:
            _, oof = self._out_of_fold(held_out[None], data)
            return oof.mauc(oof.scores[0], pairs)

        now = time.monotonic()
        left = math.inf if deadline is None else deadline - now
        runner = workers or InProcess(self.n_jobs)
        fits = fit_folds(plan.members, data, runner, now + 0.75 * left, refitted, score, watch, plan.early)
        no_trees = fits.cut and not self.estimators and not TREES.intersection(fits.folds)
        if no_trees or not fits.folds:
            # In this process, because a child may not have started yet. 60 trees take up to half a second.
            late = now + left - time.monotonic() < 0.5
            trees = starter(self.random_state, len(classes), 20 if late else 60)
            first = plan.members[0] if self.estimators else trees
            if late and first is trees:
                self.cut_["starter"] = "has 20 trees instead of 60: there is no time for more"
            fits.add(fit_folds([first], data, InProcess(), math.inf, {*refitted, "starter"}, score, watch))
        _drop_weak_odds(fits, score)
        names = list(fits.folds)
        learnt = self._combine(fits, data, pairs, runner, now + 0.87 * left)
        used = [name for name, used in zip(names, learnt.combination.used, strict=True) if used]
        needed = refitted.intersection(used) - set(fits.full)
        again = [member for member in plan.members if member.name in needed]
        fit_all_rows(again, data, fits, runner, now + left, watch)
        self.cut_ |= fits.cut
        self.named_estimators_ = {name: fits.model(name, len(classes)) for name in names}
        self.seconds_ = {name: fits.seconds[name] for name in names}
        self.calibration_ = self._fit_calibration(data) if self.calibrate else None
        return fits

    @property
    def estimators_(self) -> list[Any]:
        """Fitted classifiers; stored once, by name, so that a model file holds each once."""
        return list(self.named_estimators_.values())

    def _check_parameters(self) -> None:
        advice = "pass a seed: the models of each fold must agree on it"
        check_whole("random_state", self.random_state, least=0, advice=advice)
        if self.estimators is not None:
            self._own_models()
        if not (isinstance(self.calibrate, bool | np.bool_) or self.calibrate == "normalized"):
            raise invalid("calibrate", "must be True, False or 'normalized'", repr(self.calibrate))

    def _fit_columns(
        self,
        X: Any,
        used_rows: Ints,
        extra: Any,
        deadline: float | None,
        workers: Workers | None,
    ) -> tuple[Any, Any]:
        """Fit the transformer on the rows that count; return the transformed X and extra rows."""
        self.columns_ = transformer_for(
            self.columns, X, own_models=self.estimators is not None, random_state=self.random_state
        )
        if self.columns_ is None:
            return X, extra
        columns = self.columns_ = clone(self.columns_)
        used = X if len(used_rows) == _num_samples(X) else _safe_indexing(X, used_rows)
        further = [*([] if used is X else [X]), *([] if extra is None else [extra])]
        is_table, encoded = isinstance(columns, TableColumns), dict[str, EncodedColumn]()
        if workers is not None and deadline is not None and is_table and has_long_texts(X, workers.n_workers > 0):
            encoded = self._encode_texts(used, further, deadline, workers)
        # With one thread, as in a child: the components of texts depend on the number of threads.
        with threadpool_limits(1):
            numbers = columns._fit_encoded(used, encoded) if is_table else columns.fit_transform(used)
            others = [
                columns._transform_encoded(each, encoded, k) if is_table else columns.transform(each)
                for k, each in enumerate(further)
            ]
        return numbers if used is X else others[0], None if extra is None else others[-1]

    def _encode_texts(
        self, table: Any, others: list[Any], deadline: float, workers: Workers, min_seconds: float = 2.5
    ) -> dict[str, EncodedColumn]:
        """Let children encode the columns of texts and dates, of other tables too; return them by name.

        Texts may take minutes. Columns that are not ready after a third of the time will be encoded the quick way. So
        will all if there is no child, or if a third of the time is less than ``min_seconds``, which a child takes to
        start.
        """
        seconds = (deadline - time.monotonic()) / 3
        table = self.columns_._table(table, reset=True)
        others = [self.columns_._table(each, reset=False) for each in others]
        names, seed = split_columns(table)[-1], self.columns_.random_state
        tasks = [partial(encode_column, table[name], seed, [each[name] for each in others]) for name in names]
        answers = list(workers.run(tasks if seconds > min_seconds else [], time.monotonic() + seconds))
        ready = {str(names[each.index]): each.value for each in answers if each.error is None}
        if len(ready) < len(names):
            # The quick way also after an error: the child may have had too little memory.
            self.columns_.set_params(quick=True)
            errors = [each.error for each in answers if each.error is not None]
            no_time = "Ctrl-C came before they were encoded" if workers.stopped else "there is no time to encode them"
            reason = f"encoding them failed: {errors[0]}" if errors else no_time
            late = f"{len(names) - len(ready)} of {len(names)} columns of " if ready else ""
            self.cut_[f"{late}texts and dates"] = f"are replaced by their places in the alphabet: {reason}"
        return ready

    def _plan(self, X: Any, n_classes: int, order: Ints | None) -> StackPlan:
        """Return the default models as planned for this X, or the user's models in five folds."""
        order_list = None if order is None else order.tolist()
        if self.estimators is not None:
            models = self._own_models()
            if order_list is not None:
                odds = ordinal_estimators(order_list, self.random_state)
                taken = {name for name, _ in models} & {name for name, _ in odds}
                if taken:
                    requirement = "must not use the names of the ordinal models"
                    raise invalid("estimators", requirement, repr(min(taken)), "rename it")
                # Early, because they are quick; the first model is fitted in any case.
                models = [models[0], *odds, *models[1:]]
            return StackPlan(tuple(Member(name, model, _num_samples(X)) for name, model in models), 5)
        is_table = isinstance(self.columns_, TableColumns) and not is_sparse(X)
        tree_columns = self.columns_.tree_columns() if is_table else None
        size = Size(_num_samples(X), X.shape[1], n_classes)
        plan = plan_members(size, self.effort, self.random_state, order_list, tree_columns)
        if not is_sparse(X):
            return plan
        members = (Member(m.name, for_sparse(m.model, X.shape[1], self.random_state), m.rows) for m in plan.members)
        return replace(plan, members=tuple(members))

    def _out_of_fold(self, scores: Floats, data: TrainingData) -> tuple[Ints, OutOfFold]:
        """Return the held-out rows, or a sample of many, and the ``(K, n, C)`` scores of these rows."""
        held_out = data.held_out
        places = np.flatnonzero(np.isin(held_out, data.used_rows))
        places = places[of_some_classes(data.codes[held_out[places]], data.seed)]
        codes = data.codes[held_out[places]]
        places = places[some_of_each(codes, max(2_000, 150_000 // data.n_classes), data.seed)]
        rows = held_out[places]
        weight = None if data.weight is None else data.weight[rows]
        groups = None if data.groups is None else data.groups[rows]
        return rows, OutOfFold(scores[:, places], data.codes[rows], weight, 0.03 * data.shares, groups)

    def _combine(
        self, fits: Fits, data: TrainingData, pairs: str | Floats, runner: Runner, deadline: float
    ) -> LearntCombination:
        names = list(fits.held_out)
        self.oof_rows_, oof = self._out_of_fold(np.array(list(fits.held_out.values())), data)
        self.oof_model_scores_ = oof.scores
        self.oof_scores_ = {name: oof.mauc(each, pairs) for name, each in zip(names, oof.scores, strict=True)}
        learnt, n_scores = None, len(self.oof_rows_) * data.n_classes
        if len(names) > 1 and n_scores <= 1_000_000:
            # Quick work stays in this process: a child that the deadline stopped takes long to start again.
            runner = InProcess() if n_scores <= 5_000 else runner
            task = partial(learn_combination, oof, pairs, random_state=self.random_state)
            answers = list(runner.run([task], deadline))
            learnt = answers[0].value if answers else None
            if learnt is None:
                late = STOPPED if runner.stopped else "was not learnt in time"
                self.cut_[COMBINATION] = f"{late}: it is the plain mean of the models, or the best one"
        learnt = learnt or mean_or_best(oof, pairs)
        self._combination, self.oof_scores_[COMBINATION] = learnt.combination, learnt.mauc
        self.weights_ = dict(zip(names, learnt.combination.weights.tolist(), strict=True))
        self.weighted_share_ = learnt.combination.share
        self.oof_combination_ = learnt.held_out
        return learnt

    def _oof_combination(self) -> tuple[Ints, Floats]:
        """Return the rows that the combination scored without having learnt from them, and their scores."""
        seen = ~np.isnan(self.oof_combination_[:, 0])
        return self.oof_rows_[seen], self.oof_combination_[seen]

    def _fit_calibration(self, data: TrainingData) -> Calibration:
        """Fit the maps on rows that were held out from the combination too."""
        n_classes = data.n_classes
        if n_classes > 500:
            # A map for each class would take minutes and be learnt from a row or two: scores stay unchanged.
            return Calibration(np.ones(n_classes), np.zeros(n_classes), 1.0)
        rows, scores = self._oof_combination()
        some = some_of_each(data.codes[rows], max(2_000, 600_000 // n_classes), self.random_state)
        weight = None if data.weight is None else data.weight[rows[some]]
        return fit_calibration(scores[some], data.codes[rows[some]], weight, data.shares)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return texts and data frames unchanged, and anything else as an array; the models check the values."""
        if are_texts(X):
            return X
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        accepted = ("csr", "csc") if self.__sklearn_tags__().input_tags.sparse else False
        return validate_data(self, X, reset=reset, accept_sparse=accepted, dtype=None, ensure_all_finite=False)

    def _folds(
        self, X: Any, labels: NDArray[Any], codes: Ints, used_rows: Ints, groups: Ints | None, n_folds: int
    ) -> list[tuple[Ints, Ints]]:
        """Return training and test rows; a training part needs two classes.

        If the planner wants one held-out part, it is that of the five folds with the most classes, or a sample of it.
        """
        cv = self.cv if self.cv is not None else 5 if n_folds == 1 else n_folds
        folds = folds_of(cv, X, labels, np.isin(np.arange(len(codes)), used_rows), self.random_state, groups)
        folds = [(train, test) for train, test in folds if len(test) and len(np.unique(codes[train])) > 1]
        if self.cv is not None or n_folds > 1 or not folds:
            return folds
        train, test = max(folds, key=lambda fold: len(np.unique(codes[fold[1]])))
        test = test[of_some_classes(codes[test], self.random_state)]
        return [(train, test[some_of_each(codes[test], 20_000, self.random_state)])]

    def predict_proba(self, X: Any) -> Floats:
        """Return ``(N, C)`` scores of the combination, calibrated if ``calibrate`` says so."""
        return self._probabilities(self._ranking_scores(X))

    def _probabilities(self, scores: Floats) -> Floats:
        if self.calibration_ is None:
            return scores
        found = self.calibration_.probabilities(scores)
        return found / found.sum(axis=1, keepdims=True) if self.calibrate == "normalized" else found

    def _ranking_scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        X = X if self.columns_ is None else self.columns_.transform(X)
        # 1 for models that are not used.
        scores = np.ones((len(self.estimators_), _num_samples(X), len(self.classes_)))
        # The work is so little that threads would mostly wait for each other.
        with threadpool_limits(1):
            for k in np.flatnonzero(self._combination.used):
                scores[k] = class_scores(self.estimators_[k], X, len(self.classes_))
        return self._combination.scores(scores)


def _drop_weak_odds(fits: Fits, score: Callable[[Floats], float], most_behind: float = 0.05) -> None:
    """Drop models of ordered classes whose out-of-fold MAUC is far below the median of the others.

    Classes that are numbers may be mere codes. On 20 tables whose numbers have an order the models gain 0.7 points of
    test MAUC x 100. With this rule they lose nothing on 15 tables of codes (``docs/results/tabular-details.md``).
    """
    if not fits.held_out.keys() & ODDS:
        return
    found = {name: score(held_out) for name, held_out in fits.held_out.items()}
    others = [each for name, each in found.items() if name not in ODDS]
    for name in found.keys() & ODDS if others else ():
        if found[name] < np.median(others) - most_behind:
            fits.drop(name)
