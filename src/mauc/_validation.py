"""The boundary: every check of what users pass, and its message.

Messages have four parts: the parameter, what it must be, what came, what to do. Behind this boundary arrays are
clean and nothing is checked again.
"""

import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "PAIRS",
    "ScoredClasses",
    "check_choice",
    "check_codes",
    "check_pairs",
    "check_real",
    "check_sample_weight",
    "check_scored_classes",
    "check_scores",
    "invalid",
]

PAIRS = ("ovo", "ova")


def invalid(parameter: str, requirement: str, came: object, advice: str) -> ValueError:
    """The error for a bad argument, in four parts."""
    return ValueError(f"{parameter} {requirement}, got {came}: {advice}")


def check_choice(parameter: str, value: Any, choices: Sequence[str]) -> str:
    """One of a few names."""
    if not isinstance(value, str) or value not in choices:
        raise invalid(parameter, f"must be one of {', '.join(map(repr, choices))}", repr(value), "choose one of these")
    return value


def check_real(parameter: str, value: Any, *, low: float, high: float = np.inf) -> float:
    """A finite number strictly between ``low`` and ``high``."""
    span = f"above {low:g}" if high == np.inf else f"strictly between {low:g} and {high:g}"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not low < value < high or abs(value) == np.inf:
        raise invalid(parameter, f"must be a finite number {span}", repr(value), "pass such a number")
    return float(value)


def check_scores(scores: ArrayLike, parameter: str = "y_score") -> NDArray[np.floating]:
    """A non-empty ``(N, C)`` array of finite numbers; float32 and float64 are kept, all else becomes float64."""
    try:
        array = _real(scores)
    except (TypeError, ValueError):
        kind = scores.dtype if isinstance(scores, np.ndarray) else type(scores).__name__
        raise invalid(parameter, "must be an array of real numbers", f"{kind}", "pass numeric scores") from None
    if array.ndim != 2:
        advice = "pass one row a sample and one column a class"
        raise invalid(parameter, "must have the shape (n_samples, n_classes)", f"shape {array.shape}", advice)
    if array.size == 0:
        raise invalid(parameter, "must not be empty", f"shape {array.shape}", "pass at least one sample and one class")
    _check_finite(array, parameter)
    return array


def _check_finite(array: NDArray[np.floating], parameter: str) -> None:
    # The sum is finite for almost all clean arrays, and needs no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        place = where[0] if len(where) == 1 else where
        what = f"{array[where]} at {place} and {int(bad.sum())} such values in all"
        raise invalid(parameter, "must be finite", what, "drop or impute those samples; infinite scores can be clipped")


def check_sample_weight(
    sample_weight: ArrayLike | None, codes: NDArray[np.int64], n_classes: int, names: NDArray[Any] | None = None
) -> NDArray[np.float64] | None:
    """Finite weights >= 0, one a sample, whose sum is positive in every class that has a sample."""
    if sample_weight is None:
        return None
    parameter = "sample_weight"
    try:
        weight = _real(sample_weight).astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid(parameter, "must be real numbers", repr(sample_weight), "pass one number a sample") from None
    if weight.shape != codes.shape:
        advice = "pass one weight a sample"
        raise invalid(parameter, f"must have the shape {codes.shape}", f"shape {weight.shape}", advice)
    _check_finite(weight, parameter)
    if (weight < 0).any():
        raise invalid(parameter, "must not be negative", f"{weight.min():g}", "pass weights >= 0")
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            weight = np.ldexp(weight, -64)  # no result depends on a common factor
    summed = np.bincount(codes, weight, n_classes)
    empty = np.flatnonzero((summed == 0) & (np.bincount(codes, minlength=n_classes) > 0))
    if len(empty):
        advice = "drop the samples of that class, or give one of them a positive weight"
        first = empty[0] if names is None else names[empty[0]]
        raise invalid(parameter, "must have a positive sum in every class", f"zero for class {first}", advice)
    return weight


def check_pairs(pairs: Any, n_classes: int) -> str | NDArray[np.float64]:
    """``"ovo"``, ``"ova"`` or a ``(C, C)`` matrix of finite weights >= 0, not all 0 off the diagonal."""
    if isinstance(pairs, str):
        return check_choice("pairs", pairs, PAIRS)
    requirement = f"must be 'ovo', 'ova' or a ({n_classes}, {n_classes}) matrix of weights"
    advice = "pass [i, j] = weight of the pair (column i, class j)"
    try:
        matrix = _real(pairs).astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid("pairs", requirement, repr(pairs), advice) from None
    if matrix.shape != (n_classes, n_classes):
        raise invalid("pairs", requirement, f"{pairs!r} of shape {matrix.shape}", advice)
    if not np.isfinite(matrix).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(matrix))[0])
        raise invalid("pairs", "must be finite", f"{matrix[where]} at {where}", advice)
    if (matrix < 0).any():
        raise invalid("pairs", requirement, f"the negative weight {matrix.min():g}", "pass weights >= 0")
    if not matrix[~np.eye(n_classes, dtype=bool)].any():
        raise invalid("pairs", requirement, "no positive weight off the diagonal", advice)
    return matrix


def check_codes(y: ArrayLike, n_samples: int, n_classes: int) -> NDArray[np.int64]:
    """Class codes ``0..n_classes-1``, one a row of the scores."""
    codes = np.asarray(y)
    if codes.ndim != 1 or len(codes) != n_samples:
        advice = "pass one class a row of the scores"
        raise invalid("y", f"must have the shape ({n_samples},)", f"shape {codes.shape}", advice)
    advice = "encode the classes, e.g. with sklearn.preprocessing.LabelEncoder"
    requirement = f"must hold whole numbers from 0 to {n_classes - 1}, the columns of the scores"
    whole = codes.dtype.kind in "iu" or (codes.dtype.kind == "f" and np.array_equal(codes, np.floor(codes)))
    if not whole:
        odd = codes[codes != np.floor(codes)][0] if codes.dtype.kind == "f" else codes[0]
        raise invalid("y", requirement, f"{codes.dtype} values such as {odd}", advice)
    if codes.min() < 0 or codes.max() >= n_classes:
        raise invalid("y", requirement, f"{codes.min()} to {codes.max()}", advice)
    return codes.astype(np.int64, copy=False)


def _real(x: Any) -> NDArray[np.floating]:
    """An array of real numbers, float32 kept; TypeError or ValueError for strings, complex numbers and ragged lists."""
    array = np.asarray(x)
    if array.dtype in (np.float32, np.float64):
        return array
    is_object = array.dtype == object
    if array.dtype.kind not in "biuf" and not is_object:
        raise TypeError
    if is_object and x is not None and (array.ndim == 0 or any(isinstance(v, str) for v in array.flat)):
        raise TypeError
    return array.astype(np.float64)


class ScoredClasses(NamedTuple):
    """Clean input of a metric."""

    codes: NDArray[np.int64]
    """``(N,)`` column of each sample's class."""
    labels: NDArray[Any]
    """``(C,)`` class of each column."""
    scores: NDArray[np.floating]
    """``(N, C)``"""
    sample_weight: NDArray[np.float64] | None


def check_scored_classes(
    y_true: ArrayLike,
    y_score: ArrayLike,
    labels: ArrayLike | None,
    sample_weight: ArrayLike | None,
    parameter: str = "y_score",
) -> ScoredClasses:
    """True classes with their scores: codes, labels of the columns, scores of shape ``(N, C)``, weights.

    One column of scores, for two classes, scores the second of them; the first gets its negative.
    """
    classes, inverse = _classes(y_true)
    names = _labels(labels) if labels is not None else classes
    try:
        shape = np.shape(y_score)
    except ValueError:
        shape = ()
    one_column = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    scores = check_scores(np.reshape(np.asarray(y_score), (-1, 1)) if one_column else y_score, parameter)
    if len(scores) != len(inverse):
        came = f"{len(scores)} rows for {len(inverse)} true classes"
        raise invalid(parameter, "must have one row a sample", came, "pass scores and classes of the same samples")
    if one_column and len(names) == 2:
        scores = np.hstack([-scores, scores])
    if scores.shape[1] != len(names):
        came = f"{scores.shape[1]} columns for {len(names)} classes ({_listing(names)})"
        advice = "pass labels=[…] with the class of each column, in order"
        raise invalid(parameter, "must have one column a class", came, advice)

    column = {name: k for k, name in enumerate(names.tolist())}
    unknown = [c for c in classes.tolist() if c not in column]
    if unknown:
        came = f"{_listing(names)} without {_listing(unknown)}"
        raise invalid(
            "labels", "must name every class of y_true", came, "add the missing classes, or drop their samples"
        )
    codes = inverse
    if labels is not None:
        codes = np.array([column[c] for c in classes.tolist()], dtype=np.int64)[inverse]
    return ScoredClasses(codes, names, scores, check_sample_weight(sample_weight, codes, len(names), names))


def _classes(y_true: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct classes, sorted, and the place of each sample's class among them."""
    y = _as_array(y_true)
    if y.dtype.kind == "U" and not isinstance(y_true, np.ndarray) and y.ndim == 1:
        # NumPy has turned a list with a string in it into strings, NaN and numbers included.
        original = np.asarray(y_true, dtype=object)
        y = y if all(isinstance(v, str) for v in original) else original
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        advice = "multilabel and one-hot targets are not classes; for one-hot rows pass y_true.argmax(axis=1)"
        raise invalid("y_true", "must be one class a sample, of shape (n_samples,)", f"shape {y.shape}", advice)
    if len(y) == 0:
        raise invalid("y_true", "must not be empty", "no sample", "pass at least one sample of two classes")
    if y.dtype.kind in "iu":
        return _integer_classes(y)
    if y.dtype.kind == "f":
        whole = np.isfinite(y) & (y == np.floor(y))
        if not whole.all():
            came, advice = f"the continuous value {y[~whole][0]}", "pass class labels, not a regression target"
            raise invalid("y_true", "must hold classes", came, advice)
    try:
        if y.dtype.kind in "OMm" and any(v is None or type(v).__name__ == "NAType" or v != v for v in y):
            raise invalid(
                "y_true", "must name the class of every sample", "a missing value", "drop the samples without a class"
            )
        classes, inverse = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = _listing(sorted({type(v).__name__ for v in y.tolist()}))
        raise invalid(
            "y_true", "must hold labels of one kind", f"a mixture of {kinds}", "convert all to str or all to int"
        ) from None
    return classes, inverse.astype(np.int64, copy=False)


def _integer_classes(y: NDArray[np.integer]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """As ``np.unique(y, return_inverse=True)``, by counting where the range allows: no sort, no index array."""
    low, high = int(y.min()), int(y.max())
    if high - low > max(len(y), 1 << 16):
        classes, inverse = np.unique(y, return_inverse=True)
        return classes, inverse.astype(np.int64, copy=False)
    wide = y if y.dtype == np.uint64 else y.astype(np.int64, copy=False)
    shifted = (wide - wide.dtype.type(low) if low else wide).astype(np.int64, copy=False)
    seen = np.bincount(shifted) > 0
    classes = np.array([int(k) + low for k in np.flatnonzero(seen)], dtype=y.dtype)
    if seen.all():
        return classes, shifted
    return classes, (np.cumsum(seen) - 1)[shifted]


def _as_array(values: ArrayLike) -> NDArray[Any]:
    """As NumPy has it; a ragged list as an empty array of two dimensions, which every caller refuses."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty((0, 0))


def _labels(labels: ArrayLike) -> NDArray[Any]:
    names = _as_array(labels)
    if names.ndim != 1 or len(set(names.tolist())) != len(names) or len(names) < 2:
        came = f"{labels!r}"
        raise invalid("labels", "must be two or more different classes", came, "name the columns of y_score, in order")
    return names


def _listing(names: Any, most: int = 8) -> str:
    shown = [str(name) for name in list(names)[:most]]
    return ", ".join(shown) + (", …" if len(names) > most else "")


def check_numbers(X: Any, whom: str) -> None:
    """Refuse a data frame with texts, categories or dates by the names of these columns."""
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        others = [
            str(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if not _holds_numbers(X[name], kind)
        ]
        if others:
            advice = "put skrub's TableVectorizer() before it in a pipeline"
            raise invalid("X", f"must have columns of numbers for {whom}", ", ".join(others[:5]), advice)


def _holds_numbers(column: Any, kind: Any) -> bool:
    code = getattr(kind, "kind", None)
    if code is None:  # polars
        return bool(kind.is_numeric() or str(kind) == "Boolean")
    return not any(isinstance(value, str) for value in column) if code == "O" else code in "iufb"
