"""Check the arguments of public functions. Each check returns a clean value; private code does not check it again.

:func:`invalid` makes the message of every error, in four parts: the parameter, the requirement, the value that came,
and what to do. The last part is left out if the requirement already says it.
"""

import numbers
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mauc._labels import class_within, columns_of, names_of, positions
from mauc._typing import PairName

PAIRS = get_args(PairName)


def invalid(parameter: str, requirement: str, came: object, advice: str | None = None) -> ValueError:
    """Return the error for a bad argument, in four parts, or in three if the requirement says what to do."""
    return ValueError(f"{parameter} {requirement}, got {came}" + (f": {advice}" if advice else ""))


def listing(names: Any, most: int = 8) -> str:
    """Return the first names in one line of a message."""
    shown = [str(name) for name in list(names)[:most]]
    return ", ".join(shown) + (", …" if len(names) > most else "")


def is_sparse(X: Any) -> bool:
    """Return True for SciPy's sparse matrices and arrays; unlike ``issparse`` it does not narrow the type to them."""
    return bool(sparse.issparse(X))


def is_missing(value: Any) -> bool:
    """Return True for None, NaN, pandas.NaT and pandas.NA, whose comparisons are neither true nor false."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def check_choice(parameter: str, value: Any, choices: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise invalid(parameter, f"must be one of {', '.join(map(repr, choices))}", repr(value))
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_whole(parameter: str, value: Any, *, least: int, most: int | None = None, advice: str | None = None) -> int:
    if not _is_whole(value) or value < least or (most is not None and value > most):
        span = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise invalid(parameter, f"must be a whole number {span}", repr(value), advice)
    return int(value)


def check_real(
    parameter: str,
    value: Any,
    *,
    low: float,
    high: float = np.inf,
    closed: Literal["neither", "left", "right"] = "neither",
    advice: str | None = None,
) -> float:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    end = {"left": low, "right": high}.get(closed)
    if not (is_number and abs(value) < np.inf and (low < value < high or value == end)):
        above = f"of at least {low:g}" if closed == "left" else f"above {low:g}"
        span = above if high == np.inf else f"{above} and {'at most' if closed == 'right' else 'below'} {high:g}"
        if closed == "neither" and high < np.inf:
            span = f"strictly between {low:g} and {high:g}"
        raise invalid(parameter, f"must be a finite number {span}", repr(value), advice)
    return float(value)


def check_not_negative(parameter: str, value: Any, advice: str | None = None) -> float:
    return check_real(parameter, value, low=0, closed="left", advice=advice)


def check_n_jobs(value: Any) -> int | None:
    if value is not None and not (_is_whole(value) and (value == -1 or value >= 1)):
        raise invalid("n_jobs", "must be None, -1 or a whole number of at least 1", repr(value))
    return None if value is None else int(value)


def unwrap(values: Any, parameter: str) -> Any:
    """Detach a tensor and move it to the CPU; refuse masked values, which NumPy would unmask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        came = f"{int(np.sum(values.mask))} masked values"
        raise invalid(parameter, "must not be masked", came, "drop those samples, or fill the values in")
    return values.detach().cpu() if hasattr(values, "detach") and hasattr(values, "cpu") else values


def _real(x: Any) -> NDArray[np.floating]:
    """Return an array of float32 as it is, all else as float64; raise TypeError or ValueError for non-numbers."""
    array = np.asarray(x)
    if array.dtype in (np.float32, np.float64):
        return array
    is_object = array.dtype == object
    if array.dtype.kind not in "biuf" and not is_object:
        raise TypeError
    if is_object and x is not None and (array.ndim == 0 or any(isinstance(v, str | bytes) for v in array.flat)):
        raise TypeError
    return array.astype(np.float64)


def check_numbers(values: ArrayLike, parameter: str, requirement: str, advice: str) -> NDArray[np.float64]:
    """Return real numbers as float64; ``requirement`` and ``advice`` go into the error."""
    given = unwrap(values, parameter)
    try:
        return _real(given).astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise invalid(parameter, requirement, repr(values), advice) from None


def _as_array(values: ArrayLike, parameter: str) -> NDArray[Any]:
    """Return an array; for a ragged list, an empty array of two dimensions, which every caller refuses."""
    given = unwrap(values, parameter)
    try:
        return np.asarray(given)
    except ValueError:
        return np.empty((0, 0))


def _check_finite(array: NDArray[np.floating], parameter: str, advice: str) -> None:
    # The sum is finite for almost all clean arrays, and needs no array of flags.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(k) for k in np.argwhere(bad)[0])
        place = where[0] if len(where) == 1 else where
        came = f"{array[where]} at {place} and {int(bad.sum())} such values in all"
        raise invalid(parameter, "must be finite", came, advice)


DROP = "drop or impute those samples; infinite scores can be clipped"


def check_scores(scores: ArrayLike, parameter: str = "y_score") -> NDArray[np.floating]:
    """Return a non-empty ``(N, C)`` array; float32 and float64 stay, all else becomes float64."""
    given = unwrap(scores, parameter)
    try:
        array = _real(given)
    except (TypeError, ValueError, OverflowError):
        came = f"{type(scores).__name__} of {scores.dtype}" if hasattr(scores, "dtype") else type(scores).__name__
        raise invalid(parameter, "must be an array of real numbers", came, "pass numeric scores") from None
    if array.ndim != 2:
        advice = "pass one row per sample and one column per class"
        raise invalid(parameter, "must have the shape (n_samples, n_classes)", f"shape {array.shape}", advice)
    if array.size == 0:
        raise invalid(parameter, "must not be empty", f"shape {array.shape}", "pass at least one sample and one class")
    if array is not given:
        _check_exact(given, array, parameter)
    _check_finite(array, parameter, DROP)
    return array


def _check_exact(given: Any, scores: NDArray[np.floating], parameter: str) -> None:
    """Refuse numbers that float64 cannot hold: it rounds different ones to the same number, which would tie them."""
    array = np.asarray(given)
    if array.dtype == np.float64 and not isinstance(given, np.ndarray) and np.abs(scores).max() >= 2**53:
        # NumPy turned whole numbers beside fractions into float64, those of a list and of the columns of a table.
        of_polars = given.rows() if hasattr(given, "rows") else given
        array = np.asarray(given.astype(object) if hasattr(given, "astype") else of_polars, dtype=object)
    changed = None
    if array.dtype == object:
        changed = next((value for value in array.flat if not _fits_float64(value)), None)
    elif array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        largest = max(int(array.max()), -int(array.min()))
        changed = largest if largest > 2**53 else None
    elif array.dtype.itemsize > 8:
        rounded = array[np.isfinite(array) & (array != scores.reshape(array.shape))]
        changed = rounded.flat[0] if rounded.size else None
    if changed is not None:
        advice = "subtract a common number, or pass ranks, as scipy.stats.rankdata(y_score, axis=0) gives them"
        requirement = "must hold numbers that float64 tells apart: whole ones of at most 2**53, decimals of 15 digits"
        raise invalid(parameter, requirement, changed, advice)


def _fits_float64(value: Any) -> bool:
    """Return whether float64 holds a number so that no other number becomes the same; True for missing values."""
    if value is None or isinstance(value, float):
        return True
    if isinstance(value, numbers.Integral):
        return abs(int(value)) <= 2**53
    if isinstance(value, Decimal):
        return not value.is_finite() or Decimal(repr(float(value))) == value
    return bool(value == float(value) or value != value)


def check_weights(sample_weight: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    parameter = "sample_weight"
    weight = check_numbers(sample_weight, parameter, "must be real numbers", "pass one number per sample")
    if weight.shape != shape:
        advice = "pass one weight per sample"
        raise invalid(parameter, f"must have the shape {shape}", f"shape {weight.shape}", advice)
    _check_finite(weight, parameter, DROP)
    if (weight < 0).any():
        raise invalid(parameter, "must not be negative", f"{weight.min():g}", "pass weights >= 0")
    return weight


def check_sample_weight(
    sample_weight: ArrayLike | None, codes: NDArray[np.int64], n_classes: int, names: NDArray[Any] | None = None
) -> NDArray[np.float64] | None:
    """Return weights whose sum is positive in every class that has a sample; None if none were given."""
    if sample_weight is None:
        return None
    weight = check_weights(sample_weight, codes.shape)
    with np.errstate(over="ignore"):
        if not np.isfinite(weight.sum()):
            weight = np.ldexp(weight, -64)  # no result depends on a common factor
    summed = np.bincount(codes, weight, n_classes)
    empty = np.flatnonzero((summed == 0) & (np.bincount(codes, minlength=n_classes) > 0))
    if len(empty):
        advice = "drop the samples of that class, or give one of them a positive weight"
        first = empty[0] if names is None else names[empty[0]]
        raise invalid("sample_weight", "must have a positive sum in every class", f"zero for class {first}", advice)
    return weight


def _label_array(values: ArrayLike, parameter: str) -> NDArray[Any]:
    """Return an array of labels as they are: of a list with a string in it, NumPy makes strings, NaN included."""
    array = _as_array(values, parameter)
    if array.dtype.kind in "SU" and array.ndim == 1 and not isinstance(values, np.ndarray):
        original = np.asarray(values, dtype=object)
        kind = str if array.dtype.kind == "U" else bytes
        return array if all(isinstance(value, kind) for value in original) else original
    return array


def check_row_values(
    values: ArrayLike, n_rows: int, parameter: str, advice: str
) -> tuple[list[str], NDArray[np.int64]]:
    """Return the texts of the sorted distinct values, and the ``(N,)`` position of each; refuse missing values."""
    array = _label_array(values, parameter)
    if array.shape != (n_rows,):
        raise invalid(parameter, f"must have the shape ({n_rows},)", f"{array.shape}", advice)
    if array.dtype.kind in "fOMm":
        missing = next(((k, value) for k, value in enumerate(array.tolist()) if is_missing(value)), None)
        if missing is not None:
            came = f"{missing[1]!r} in row {missing[0]}"
            raise invalid(parameter, "must hold a value for every row", came, advice)
    values, codes = _distinct(array, parameter, "must hold values of one kind")
    return names_of(values), codes


def check_groups(groups: ArrayLike | None, n_rows: int, *, least: int = 1) -> NDArray[np.int64] | None:
    """Return the ``(N,)`` number 0, 1, … of the group of each row, of ``least`` groups or more; None for None."""
    if groups is None:
        return None
    names, codes = check_row_values(groups, n_rows, "groups", "pass the group of each row, such as the patient")
    if len(names) < least:
        raise invalid("groups", f"must be {least} or more", f"only {names[0]}", "pass no groups, or other ones")
    return codes


def _distinct(array: NDArray[Any], parameter: str, requirement: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted distinct values, and the position of each value among them."""
    try:
        values, inverse = np.unique(array, return_inverse=True)
    except TypeError:
        kinds = listing(sorted({type(value).__name__ for value in array.tolist()}))
        advice = "convert all to str or all to int"
        raise invalid(parameter, requirement, f"a mixture of {kinds}", advice) from None
    return values, inverse.astype(np.int64, copy=False)


def check_predicted(y_pred: ArrayLike | None, labels: Any, n_rows: int) -> NDArray[np.int64] | None:
    """Return the ``(N,)`` positions of the predicted classes in ``labels``, -1 for others; None for None."""
    if y_pred is None:
        return None
    array = _label_array(y_pred, "y_pred")
    if array.shape != (n_rows,):
        advice = "pass one predicted class for each row"
        raise invalid("y_pred", f"must have the shape ({n_rows},)", f"{array.shape}", advice)
    found = positions(array, labels)
    if (found < 0).all():
        came = f"{names_of(array[:1])[0]} and no class of {listing(names_of(labels))}"
        raise invalid("y_pred", "must hold classes of the scores", came, "pass the names of the classes, as in y_true")
    return found


def class_position(parameter: str, name: Any, labels: NDArray[Any]) -> int:
    """Return the position of a class that an argument names."""
    (found,) = positions([name], labels).tolist()
    if found < 0:
        known = listing(names_of(labels))
        raise invalid(parameter, "must name one of the classes", repr(name), f"choose from {known}")
    return int(found)


def check_model_names(models: Iterable[Any], parameter: str) -> list[str]:
    """Return the names of models as text; refuse two that have the same text."""
    names = list(map(str, models))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise invalid(parameter, "must hold models with different names", f"{twice!r} twice", "rename one of them")
    return names


def check_pair_name(pairs: str) -> str:
    """Return ``"ovo"`` or ``"ova"``, which is also called ``"ovr"``."""
    name = check_choice("pairs", pairs, PAIRS)
    return "ova" if name == "ovr" else name


def check_pairs(pairs: Any, n_classes: int, labels: Any = None) -> str | NDArray[np.float64]:
    """Return the name, or a matrix of finite weights of at least 0, not all 0 off the diagonal.

    The rows and columns of a data frame are matched by the names of the classes, as those of scores are.
    """
    if isinstance(pairs, str):
        return check_pair_name(pairs)
    requirement = f"must be 'ovo', 'ova', 'ovr' or a ({n_classes}, {n_classes}) matrix of weights"
    advice = "pass [i, j] = weight of the pair (column i, class j)"
    matrix = check_numbers(pairs, "pairs", requirement, advice)
    if matrix.shape != (n_classes, n_classes):
        raise invalid("pairs", requirement, f"{pairs!r} of shape {matrix.shape}", advice)
    _check_finite(matrix, "pairs", advice)
    if (matrix < 0).any():
        raise invalid("pairs", requirement, f"the negative weight {matrix.min():g}", "pass weights >= 0")
    if not matrix[~np.eye(n_classes, dtype=bool)].any():
        raise invalid("pairs", requirement, "no positive weight off the diagonal", advice)
    return in_class_order(pairs, matrix, np.arange(n_classes) if labels is None else labels, "pairs")


def in_class_order(given: Any, values: NDArray[Any], labels: Any, parameter: str) -> NDArray[Any]:
    """Return the values of a series, or of a data frame, with their axes in the order of the classes that it names."""
    rows = _places(list(given.index), labels, parameter) if hasattr(given, "iloc") else None
    names = _column_names(given) if values.ndim == 2 else None
    columns = None if names is None else _places(names, labels, parameter)
    named = [order for order in (rows, columns) if order is not None]
    if values.ndim == 2 and len(named) == 1 and named[0] != sorted(named[0]):
        advice = "name both, or pass both in the order of the classes"
        raise invalid(parameter, "must have rows and columns of the same names", "names of one of them", advice)
    values = values if rows is None else values[rows]
    return values if columns is None else values[:, columns]


def check_codes(y: ArrayLike, n_samples: int, n_classes: int) -> NDArray[np.int64]:
    codes = _as_array(y, "y")
    if codes.ndim != 1 or len(codes) != n_samples:
        advice = "pass one class per row of the scores"
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


def check_classes(y: ArrayLike, parameter: str = "y_true") -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted distinct classes, and the code of each sample: the position of its class among them."""
    array = _label_array(y, parameter)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        advice = f"multilabel and one-hot targets are not classes; for one-hot rows pass {parameter}.argmax(axis=1)"
        raise invalid(parameter, "must be one class per sample, of shape (n_samples,)", f"shape {array.shape}", advice)
    if len(array) == 0:
        raise invalid(parameter, "must not be empty", "no sample", "pass at least one sample of two classes")
    if array.dtype.kind in "iu":
        low, high = int(array.min()), int(array.max())
        if high - low <= max(len(array), 1 << 16):
            return _integer_classes(array, low)
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (array == np.floor(array))
        if not whole.all():
            came, advice = f"the continuous value {array[~whole][0]}", "pass class labels, not a regression target"
            raise invalid(parameter, "must hold classes", came, advice)
    check_hashable(array, parameter)
    if array.dtype.kind in "OMm" and any(map(is_missing, array)):
        advice = "drop the samples without a class"
        raise invalid(parameter, "must name the class of every sample", "a missing value", advice)
    return _distinct(array, parameter, "must hold labels of one kind")


def _integer_classes(y: NDArray[np.integer], low: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return ``np.unique(y, return_inverse=True)`` of a short range by counting: no sort, no index array."""
    wide = y if y.dtype == np.uint64 else y.astype(np.int64, copy=False)
    shifted = (wide - wide.dtype.type(low) if low else wide).astype(np.int64, copy=False)
    seen = np.bincount(shifted) > 0
    classes = np.array([int(k) + low for k in np.flatnonzero(seen)], dtype=y.dtype)
    return classes, shifted if seen.all() else (np.cumsum(seen) - 1)[shifted]


def check_hashable(labels: NDArray[Any], parameter: str) -> None:
    """Refuse lists, sets, dictionaries and arrays as class labels."""
    for label in labels.flat if labels.dtype == object else ():
        try:
            hash(label)
        except TypeError:
            came = f"a {type(label).__name__}"
            raise invalid(parameter, "must hold single values such as strings or whole numbers", came) from None


def check_labels(labels: ArrayLike) -> NDArray[Any]:
    """Return the classes of the columns: two or more, all different."""
    names = _label_array(labels, "labels")
    check_hashable(names, "labels")
    if names.ndim != 1 or len(set(names_of(names))) != len(names) or len(names) < 2:
        came = f"{labels!r}"
        raise invalid("labels", "must be two or more different classes", came, "name the columns of y_score, in order")
    return names


class ScoredClasses(NamedTuple):
    """The checked input of a metric."""

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
    """Return codes, labels of the columns, scores of shape ``(N, C)`` and weights.

    The columns of a data frame are matched by name if they have the names of the classes. For two classes, one column
    of scores is enough: it scores the class that it is named after, else the second. The other gets its negative.
    """
    classes, inverse = check_classes(y_true)
    names = check_labels(labels) if labels is not None else classes
    try:
        shape = np.shape(y_score)
    except ValueError:
        shape = ()
    one_column = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    given = unwrap(y_score, parameter)
    scores = check_scores(np.reshape(np.asarray(given), (-1, 1)) if one_column else given, parameter)
    if len(scores) != len(inverse):
        came = f"{len(scores)} rows for {len(inverse)} true classes"
        raise invalid(parameter, "must have one row per sample", came, "pass scores and classes of the same samples")
    columns = _columns_by_name(y_score, names, parameter)
    if one_column and len(names) == 2:
        scores = np.hstack([scores, -scores] if columns == [0] else [-scores, scores])
    elif columns is not None and columns != list(range(len(names))):
        scores = scores[:, columns]
    if scores.shape[1] != len(names):
        came = f"{scores.shape[1]} columns for {len(names)} classes ({listing(names)})"
        advice = "pass labels=[…] with the class of each column, in order"
        raise invalid(parameter, "must have one column per class", came, advice)
    codes = inverse
    if labels is not None:
        column = positions(classes, names)
        if (column < 0).any():
            came, advice = f"{listing(names)} without {listing(classes[column < 0])}", "add them, or drop their samples"
            raise invalid("labels", "must name every class of y_true", came, advice)
        codes = column[inverse]
    return ScoredClasses(codes, names, scores, check_sample_weight(sample_weight, codes, len(names), names))


def _columns_by_name(scores: Any, classes: NDArray[Any], parameter: str) -> list[int] | None:
    """Return the column of each class in a data frame, or the class of a single named column.

    None, columns are matched by position: no name matches, or the names are the default ones of pandas and polars.
    """
    names = _column_names(scores)
    if names is None:
        return None
    if len(names) == 1 and len(classes) == 2:
        return _class_of_column(scores, names[0], classes, parameter)
    return _places(names, classes, parameter)


def _places(names: list[Any], classes: Any, parameter: str) -> list[int] | None:
    """Return the column of each class by the names of columns, None if they are matched by position.

    If only some names match, the function raises an error.
    """
    of_pandas = all(name == k and _is_whole(name) for k, name in enumerate(names))
    if of_pandas or names == [f"column_{k}" for k in range(len(names))]:
        return None
    columns, partly = columns_of(names, classes)
    if partly:
        came = f"the columns {listing(names)} for the classes {listing(names_of(classes))}"
        advice = "keep one column per class, named after it; pass labels=[…] if y_true lacks a class, or an array to "
        raise invalid(
            parameter,
            "must have all columns named after the classes, or none",
            came,
            f"{advice}match columns by position",
        )
    return columns


def _class_of_column(scores: Any, name: Any, classes: NDArray[Any], parameter: str) -> list[int] | None:
    """Return the class of the only column of scores of two classes; None, the second, if it is not named after one."""
    (found,) = positions([name], classes).tolist()
    meant = found if found >= 0 else class_within(name, classes)
    is_default = hasattr(scores, "columns") and _is_whole(name)
    if meant == 0 and (found < 0 or is_default):
        came = f"the one column {name!r} for the classes {listing(names_of(classes))}"
        advice = "pass an array with the scores of the second class, or a column named after its class"
        raise invalid(parameter, "must say which class a single column scores", came, advice)
    return [found] if found >= 0 else None


def _column_names(scores: Any) -> list[Any] | None:
    """Return the column names of a data frame of pandas or polars, of an Arrow table, or the name of a series."""
    for attribute in ("column_names", "columns"):
        if hasattr(scores, attribute):
            return list(getattr(scores, attribute))
    name = getattr(scores, "name", None)
    return None if name is None else [name]


def scores_of(estimator: Any, X: Any) -> Any:
    """Return ``predict_proba`` if the estimator has it, else ``decision_function``; a data frame stays one."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    advice = "pass a classifier that scores its classes; CalibratedClassifierCV makes one"
    raise invalid("estimator", "must have predict_proba or decision_function", type(estimator).__name__, advice)
