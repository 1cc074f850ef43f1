"""The linear classifier trained on Dask collections."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import dask
import numpy as np
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mauc._validation import check_classes, check_pairs, invalid
from mauc.dask._objective import Part, PartitionedObjective
from mauc.dask._partitions import ClassTotals, applied, class_totals, gathered, in_partition, partitions, shared, task
from mauc.dask.metrics import mauc_score
from mauc.linear import MAUCClassifier as LocalClassifier
from mauc.log_loss import log_term

__all__ = ["MAUCClassifier"]


class MAUCClassifier(LocalClassifier):
    """:class:`mauc.MAUCClassifier` for Dask arrays and data frames, with the same parameters and fitted attributes.

    The solver, SciPy's L-BFGS, runs on the client. In each evaluation of the objective every thread of a worker sends
    a few sums over its rows, then its ``(C, d + 1)`` gradient. The rows are read once and stay on the workers, in
    memory or spilled. Every scheduler of Dask works. The surrogate is ``"exponential"``, whose risk is a function of
    such sums.

    Notes
    -----
    The result equals that of :class:`mauc.MAUCClassifier` on the same rows up to rounding: coefficients agree to about
    1e-6 if the solver converges. Per evaluation and thread 16 C bytes travel for the sums, and 8 C (d + 1) for the
    gradient: the number of partitions does not matter.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mauc.dask import MAUCClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = da.from_array(StandardScaler().fit_transform(X), chunks=(60, 13))
    >>> model = MAUCClassifier(l2=1e-3).fit(X, da.from_array(y, chunks=60))
    >>> round(model.score(X, y), 3)
    1.0
    >>> model.to_local()
    MAUCClassifier(l2=0.001)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on Dask collections.

        Parameters
        ----------
        X : (N, d) Dask array of dense or sparse blocks, or data frame of numbers
        y : (N,) Dask array or series of classes
        sample_weight : (N,) Dask array or series of weights >= 0, optional
        """
        self._check_parameters()
        surrogate = self._risk().surrogate
        form = surrogate.closed_form
        if form is None or form.kind != "exponential":
            advice = "train the others in memory, on a sample of the rows, by mauc.MAUCClassifier"
            raise invalid("surrogate", "must be 'exponential' on Dask", surrogate.name, advice)
        if y is None:
            raise invalid("y", "is required", None, "pass the classes of the samples")
        parts = partitions(X=X, y=y, sample_weight=sample_weight)
        if getattr(X, "ndim", None) != 2:
            raise invalid("X", "must have two dimensions", f"{getattr(X, 'ndim', 'none')}", "pass one row per sample")
        n_features = len(X.columns) if hasattr(X, "columns") else int(X.shape[1])
        totals = class_totals([part[1:3] for part in parts], "y")
        classes = totals.classes
        if len(classes) < 2:
            came, advice = f"1 class, {classes.tolist()[0]!r}", "multiclass AUC compares classes; check the split"
            raise invalid("y", "must hold two classes or more", came, advice)
        known = self._known(totals)
        objective = PartitionedObjective(
            gathered([task(_read, known, n_features, number, *part) for number, part in enumerate(parts)], _size),
            form.alpha,
            self._activation(),
            bool(self.fit_intercept),
            self._penalty(float(totals.partition().weights.sum())),
            (len(classes), n_features + bool(self.fit_intercept)),
        )
        start = self._start(objective, classes)
        solution = self._minimize(objective, start)
        self._keep(objective, classes, solution)
        self.n_features_in_ = n_features
        self._name_features(X)
        self._warn_of(solution)
        return self

    def _known(self, totals: ClassTotals) -> Any:
        """Return the facts about the classes that every partition needs."""
        partition, pairs = totals.partition(), check_pairs(self.pairs, len(totals.counts), totals.classes)
        term = partial(log_term, self.log_loss, pairs, class_weights=partition.weights, balanced=bool(self.balanced))
        # Refuse a matrix of pairs that has no log-loss here, not on a worker.
        term(y=np.arange(len(totals.counts)), unit=np.ones(len(totals.counts)))
        return shared((totals, partition.pair_weights(pairs), term))

    def _name_features(self, X: Any) -> None:
        names = list(getattr(X, "columns", ()))
        if names and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def to_local(self) -> LocalClassifier:
        """Return the fitted model as a plain :class:`mauc.MAUCClassifier`, for one machine and for model files."""
        check_is_fitted(self)
        local = LocalClassifier(**self.get_params())
        fitted = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        for name in fitted:
            setattr(local, name, getattr(self, name))
        return local

    def _lazy(self, method: str, X: Any, dtype: Any = np.float64, *, one_column: bool = False) -> Any:
        """Call a method of the local model: at once for rows in memory, lazily for a Dask collection."""
        function = getattr(self.to_local(), method)
        if not dask.is_dask_collection(X):
            return function(X)
        return applied(function, X, () if one_column else (len(self.classes_),), dtype)

    def predict(self, X: Any) -> Any:
        """Return the class with the highest logit; lazily for a Dask collection."""
        check_is_fitted(self)
        return self._lazy("predict", X, self.classes_.dtype, one_column=True)

    def decision_function(self, X: Any) -> Any:
        """Return the scores of :class:`mauc.MAUCClassifier`; lazily for a Dask collection."""
        check_is_fitted(self)
        return self._lazy("decision_function", X, one_column=len(self.classes_) == 2)

    @available_if(LocalClassifier._has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the softmax scores, ``(N, C)``; lazily for a Dask collection."""
        return self._lazy("predict_proba", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the multiclass AUC of the scores that the model ranks by, over the classes in ``y``.

        For Dask collections, a class that was not in the training data is an error.
        """
        if not dask.is_dask_collection(X):
            return super().score(X, y, sample_weight)
        options: dict[str, Any] = {"labels": self.classes_, "sample_weight": sample_weight, "absent": "ignore"}
        return mauc_score(y, self._lazy("_ranking_scores", X), pairs=self.pairs, **options)


# The tasks; the dashboard shows their names.


def _read(known: tuple[Any, ...], n_features: int, number: int, X: Any, y: Any, weight: Any) -> Part:
    """Check the rows of a partition; errors name the number of the partition."""
    totals, v, term = known
    with in_partition(number):
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_min_samples": 0}
        X = check_array(X, ensure_all_finite=False, **options)
        _check_finite(X)
        if X.shape[1] != n_features:
            raise invalid("X", f"must have {n_features} columns as the collection says", f"{X.shape[1]}")
        if X.shape[0] != len(y):
            advice = "pass rows and classes of the same samples"
            raise invalid("y", "must have one class per row of X", f"{len(y)} for {X.shape[0]} rows", advice)
        codes = np.zeros(0, dtype=np.int64)
        if len(y):
            present, places = check_classes(y)
            codes = np.searchsorted(totals.classes, present)[places]
    unit = totals.unit(codes, weight)
    share = 1.0 / totals.counts[codes] if unit is None else unit
    return Part(X, codes, share, v, term(y=codes, unit=share))


def _size(part: Part) -> int:
    """Return the bytes of the rows."""
    return int((part.X.data if hasattr(part.X, "indptr") else part.X).nbytes)


def _check_finite(X: Any) -> None:
    """Refuse missing and infinite values, and name the row: scikit-learn's message does not."""
    bad = ~np.isfinite(X.data if hasattr(X, "indptr") else X)
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        row = np.searchsorted(X.indptr, place, side="right") - 1 if hasattr(X, "indptr") else place // X.shape[1]
        raise invalid("X", "must be finite", f"NaN or an infinity in row {row}", "impute or drop these rows")
