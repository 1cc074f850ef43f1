"""The linear classifier trained on Dask collections."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mauc._typing import Floats
from mauc._validation import check_pairs, check_weights, invalid
from mauc.dask._counting import class_sizes, codes_of
from mauc.dask._lazy import applied
from mauc.dask._objective import PartitionedObjective
from mauc.dask._partitions import Partition, in_partition, keep, partitions, run, task, tree
from mauc.dask.metrics import mauc_score
from mauc.kernels.tiles import Classes
from mauc.linear import MAUCClassifier as LocalClassifier
from mauc.linear.by_parts import Part, RowParts
from mauc.log_loss import log_term
from mauc.metrics.partial_counts import ClassTotals, add_totals, check_class_weights

__all__ = ["MAUCClassifier"]

FITTED = ("classes_", "coef_", "intercept_", "n_iter_", "objective_", "objective_curve_", "n_features_in_")


class MAUCClassifier(LocalClassifier):
    """:class:`mauc.MAUCClassifier` on Dask arrays and data frames; parameters and fitted attributes as there.

    The solver runs on the client. An evaluation of the objective is one graph of two rounds: every partition sends the
    few sums that the risk is made of, then its ``(C, d + 1)`` gradient. The rows are read once and stay on the workers,
    in memory or spilled. Works with every scheduler of Dask, the threaded one included.

    Notes
    -----
    The result is that of :class:`mauc.MAUCClassifier` on the same rows, but for rounding: coefficients agree to about
    1e-6 where the solver converges.

    Per evaluation and partition 16 C bytes travel for ``"exponential"``, 48 C for ``"squared"``, 16 (K + 1) C for
    polynomials of degree K (``"logistic"``), and 8 C (d + 1) for the gradient. Surrogates in pieces (the hinges) send
    the own-class scores of all rows and sums of them to every worker, some 100 N bytes.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mauc.dask import MAUCClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = da.from_array(StandardScaler().fit_transform(X), chunks=(60, 13))
    >>> model = MAUCClassifier(l2=1e-3).fit(X, da.from_array(y, chunks=60))
    >>> model.predict_proba(X)
    dask.array<mauc-predict-proba, shape=(178, 3), dtype=float64, chunksize=(60, 3), chunktype=numpy.ndarray>
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
        if y is None:
            raise invalid("y", "is required", None, "pass the classes of the samples")
        names, n_features = _features(X)
        parts = partitions(X=X, y=y, sample_weight=sample_weight)
        classes, _ = class_sizes([(part.number, part.parts[1]) for part in parts], "y")
        if len(classes) < 2:
            came = f"1 class, {classes.tolist()[0]!r}"
            advice = "multiclass AUC compares classes; check the split"
            raise invalid("y", "must hold two classes or more", came, advice)
        objective = self._objective(parts, classes, n_features)
        start = self._start(objective, classes)
        solution = self._minimize(objective, start)
        self._keep(objective, classes, solution)
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._warn_of(solution)
        return self

    def _objective(self, parts: list[Partition], classes: NDArray[Any], n_features: int) -> PartitionedObjective:
        """The rows, read and kept on the workers, with their objective."""
        rows = [task(_read, classes, n_features, part.number, *part.parts) for part in parts]
        rows = keep(*rows)
        totals = [task(_totals, each, len(classes)) for each in rows]
        (whole,) = run(tree(add_totals, totals, "sum-classes"))
        check_class_weights(whole, classes)
        partition = whole.partition()
        pairs = check_pairs(self.pairs, len(classes))
        term = partial(log_term, self.log_loss, pairs, class_weights=partition.weights, balanced=bool(self.balanced))
        # A matrix of pairs that has no log-loss is refused here, and not on a worker.
        term(y=np.arange(len(classes)), unit=np.ones(len(classes)))
        known = task(_itself, (whole, partition.pair_weights(pairs), term), what="classes")
        prepared = [task(_prepare, each, known) for each in rows]
        return PartitionedObjective(
            keep(*prepared),
            RowParts(self._activation(), bool(self.fit_intercept)),
            self._risk(),
            self._penalty(float(np.ldexp(whole.units, whole.exponent).sum())),
            (len(classes), n_features + bool(self.fit_intercept)),
        )

    def to_local(self) -> LocalClassifier:
        """The fitted model as a plain :class:`mauc.MAUCClassifier`, for one machine and for model files."""
        check_is_fitted(self)
        local = LocalClassifier(**self.get_params())
        for attribute in (*FITTED, "feature_names_in_"):
            if hasattr(self, attribute):
                setattr(local, attribute, getattr(self, attribute))
        return local

    def _lazy(self, method: str, X: Any, *, dtype: Any, one_column: bool = False) -> Any:
        local = self.to_local()
        width = () if one_column else (len(self.classes_),)
        return applied(getattr(local, method), X, method.strip("_"), width, dtype)

    def predict(self, X: Any) -> Any:
        """The class with the highest logit: lazily, for a Dask collection."""
        if not dask.is_dask_collection(X):
            return super().predict(X)
        check_is_fitted(self)
        return self._lazy("predict", X, dtype=self.classes_.dtype, one_column=True)

    def decision_function(self, X: Any) -> Any:
        """As in :class:`mauc.MAUCClassifier`: lazily, for a Dask collection."""
        if not dask.is_dask_collection(X):
            return super().decision_function(X)
        check_is_fitted(self)
        return self._lazy("decision_function", X, dtype=np.float64, one_column=len(self.classes_) == 2)

    @available_if(LocalClassifier._has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Softmax scores of shape ``(N, C)``: a Dask array, computed when asked for, of a Dask collection."""
        if not dask.is_dask_collection(X):
            return super().predict_proba(X)
        check_is_fitted(self)
        return self._lazy("predict_proba", X, dtype=np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Multiclass AUC of the scores that the model was trained to rank by, over the classes present in ``y``.

        Of Dask collections, a class that was not in the training data is an error.
        """
        if not dask.is_dask_collection(X):
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        scores = self._lazy("_ranking_scores", X, dtype=np.float64)
        options: dict[str, Any] = {"labels": self.classes_, "sample_weight": sample_weight, "absent": "ignore"}
        return mauc_score(y, scores, pairs=self.pairs, **options)


def _features(X: Any) -> tuple[NDArray[Any] | None, int]:
    """Names of the columns, where all are strings, and their number."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        texts = all(isinstance(name, str) for name in names)
        return np.asarray(names, dtype=object) if texts else None, len(names)
    if not dask.is_dask_collection(X):
        advice = "in memory mauc.MAUCClassifier is faster; da.from_array(X, chunks=…) makes one"
        raise invalid("X", "must be a Dask array or data frame", type(X).__name__, advice)
    if getattr(X, "ndim", None) != 2:
        raise invalid("X", "must have two dimensions", f"{getattr(X, 'ndim', 'none')}", "pass one row per sample")
    return None, int(X.shape[1])


# What the tasks do; the dashboard shows their names.


def _itself(x: Any) -> Any:
    return x


def _read(
    classes: NDArray[Any], n_features: int, number: int, X: Any, y: Any, weight: Any
) -> tuple[Any, NDArray[np.int64], Floats | None]:
    """Clean rows: the checks of scikit-learn and ours, with the partition's number in the message."""
    with in_partition(number):
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_min_samples": 0}
        _check_finite(X)
        X = check_array(X, **options)
        if X.shape[1] != n_features:
            raise invalid("X", f"must have {n_features} columns as the collection says", f"{X.shape[1]}")
        if X.shape[0] != len(y):
            advice = "pass rows and classes of the same samples"
            raise invalid("y", "must have one class per row of X", f"{len(y)} for {X.shape[0]} rows", advice)
        codes = codes_of(y, classes)
        if weight is not None:
            weight = check_weights(weight, codes.shape) if len(codes) else np.zeros(0)
    return X, codes, weight


def _check_finite(X: Any) -> None:
    """A missing or infinite value, by its row in the partition: scikit-learn's message does not say where."""
    values = X.data if hasattr(X, "indptr") else np.asarray(X)
    if values.dtype.kind != "f" or np.isfinite(values.sum()) or np.isfinite(values).all():
        return
    if hasattr(X, "indptr"):
        row = int(np.searchsorted(X.indptr, np.flatnonzero(~np.isfinite(values))[0], side="right")) - 1
    else:
        row = int(np.argwhere(~np.isfinite(values))[0][0])
    raise invalid("X", "must be finite", f"NaN or an infinity in row {row}", "impute or drop these rows")


def _totals(rows: tuple[Any, NDArray[np.int64], Floats | None], n_classes: int) -> ClassTotals:
    return ClassTotals.of(rows[1], n_classes, rows[2])


def _prepare(rows: tuple[Any, NDArray[np.int64], Floats | None], known: tuple[Any, ...]) -> Part:
    X, codes, weight = rows
    totals, v, term = known
    share = totals.shares(codes, weight)
    return Part(X, Classes(codes, share, len(v), v), term(y=codes, unit=share))
