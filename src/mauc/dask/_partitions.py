"""Aligned partitions of Dask collections, named tasks, and tree reductions."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from dask import delayed
from dask.base import tokenize
from dask.delayed import Delayed
from numpy.typing import NDArray

from mauc._labels import positions
from mauc._typing import Floats, Ints
from mauc._validation import check_classes, check_weights, invalid, is_missing
from mauc.partition import ClassPartition


def task(function: Callable[..., Any], *args: Any) -> Delayed:
    """Return ``function(*args)`` as a task whose name on the dashboard begins with ``mauc-``.

    The key is a hash of the function and its arguments, so that the result of another call is never used for this one.
    """
    name = getattr(function, "__name__", type(function).__name__).strip("_").replace("_", "-")
    key = f"mauc-{name}-{tokenize(function, args)}"
    return delayed(function, pure=True, traverse=False)(*args, dask_key_name=key)


def shared(x: Any) -> Delayed:
    """Return an argument of many tasks as a task, so that it is sent to the scheduler once."""
    return delayed(x, name=f"mauc-shared-{tokenize(x)}", traverse=False)


def tree(combine: Callable[[list[Any]], Any], parts: Sequence[Delayed], at_once: int = 8) -> Delayed:
    """Reduce the parts to one by ``combine``, some at a time."""
    parts = list(parts)
    while len(parts) > 1:
        parts = [task(combine, parts[k : k + at_once]) for k in range(0, len(parts), at_once)]
    return parts[0]


def run(*tasks: Delayed) -> tuple[Any, ...]:
    """Compute the tasks and return their results."""
    with _connected():
        return dask.compute(*tasks)


def keep(*tasks: Delayed) -> list[Delayed]:
    """Persist the tasks: their results stay on the workers."""
    with _connected():
        return list(dask.persist(*tasks))


@contextmanager
def _connected() -> Iterator[None]:
    """Raise an error that names the cause if the client or its scheduler is lost."""
    try:
        yield
    except Exception as error:
        # distributed is not imported here: the schedulers of one machine do not need it.
        cancelled = isinstance(error, asyncio.CancelledError | concurrent.futures.CancelledError)
        if not cancelled and type(error).__name__ not in ("ClosedClientError", "CommClosedError"):
            raise
        raise RuntimeError(
            "the Dask client was closed, or its scheduler was lost, before the result was computed: "
            "connect a new Client and call again"
        ) from error


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """Add the number of the partition to an error from inside the context; rows are counted within the partition."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"in partition {number}, {error}") from None


def partitions(**collections: Any) -> list[tuple[Delayed | None, ...]]:
    """Return the partitions of all collections, aligned with those of the first one; None stays None.

    Arrays of known sizes are rechunked, and so are objects in memory if the first has known sizes. Otherwise, as with
    data frames, the numbers of partitions must agree; their rows are compared when they are computed.
    """
    (name, first), *others = collections.items()
    if not dask.is_dask_collection(first):
        advice = f"in memory mauc's own functions are faster; da.from_array({name}, chunks=…) makes one"
        raise invalid(name, "must be a Dask array, data frame or series", type(first).__name__, advice)
    columns: list[list[Delayed | None]] = [_delayed(first)]
    for other, collection in others:
        absent = collection is None
        columns.append([None] * len(columns[0]) if absent else _delayed(_like(first, name, collection, other)))
    return list(zip(*columns, strict=True))


def _like(first: Any, first_name: str, collection: Any, name: str) -> Any:
    """Return the collection in partitions like those of the first one."""
    rows = _rows(first)
    if not dask.is_dask_collection(collection):
        if rows is None:
            came = f"{type(collection).__name__} for a {first_name} whose partitions have unknown sizes"
            raise invalid(name, "must be a Dask collection", came, f"take it from the same collection as {first_name}")
        collection = da.from_array(np.asarray(collection), chunks=-1)
    known = _rows(collection)
    if rows is not None and known is not None:
        if sum(rows) != sum(known):
            came = f"{sum(known)} for {sum(rows)} of {first_name}"
            raise invalid(name, "must have one row per sample", came, "pass the same samples in both")
        return collection if rows == known else collection.rechunk({0: rows})
    found, wanted = len(_delayed(collection)), len(_delayed(first))
    if found != wanted:
        advice = "take both from one collection, repartition them equally, or call compute_chunk_sizes() on arrays"
        raise invalid(
            name, f"must have the partitions of {first_name}", f"{found} for {wanted} of {first_name}", advice
        )
    return collection


def _rows(collection: Any) -> tuple[int, ...] | None:
    """Return the rows in each chunk of an array, if they are known."""
    if not isinstance(collection, da.Array) or any(np.isnan(collection.chunks[0])):
        return None
    return tuple(int(n) for n in collection.chunks[0])


def _delayed(collection: Any) -> list[Any]:
    if not isinstance(collection, da.Array):
        return list(collection.to_delayed())
    whole = collection.rechunk({1: -1}) if collection.ndim == 2 else collection
    return list(whole.to_delayed().ravel())


def applied(function: Callable[[Any], Any], X: Any, width: tuple[int, ...], dtype: Any) -> da.Array:
    """Return ``function`` of each partition of a collection, as a lazy array with rows of that width."""
    sizes = X.chunks[0] if isinstance(X, da.Array) else (np.nan,) * X.npartitions
    blocks = [
        da.from_delayed(task(_apply, function, number, part, width, dtype), (n, *width), dtype)
        for number, (part, n) in enumerate(zip(_delayed(X), sizes, strict=True))
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _apply(function: Callable[[Any], Any], number: int, part: Any, width: tuple[int, ...], dtype: Any) -> Any:
    if part.shape[0] == 0:
        return np.zeros((0, *width), dtype=dtype)
    with in_partition(number):
        return np.asarray(function(part))


class ClassTotals(NamedTuple):
    """Sizes and weights of the classes over all partitions."""

    classes: NDArray[Any]
    """``(C,)``"""
    counts: Ints
    weights: Floats | None
    """``(C,)`` sums of the sample weights; None without weights."""

    @property
    def units(self) -> Floats:
        """``(C,)`` sums of :meth:`unit` over the rows of each class."""
        return (self.counts if self.weights is None else self.counts > 0).astype(np.float64)

    def unit(self, codes: Ints, weight: Any) -> Floats | None:
        """Return the share of some rows in the weight of their class; None without weights."""
        return None if self.weights is None else np.asarray(weight, dtype=np.float64) / self.weights[codes]

    def of_labels(self, labels: NDArray[Any]) -> ClassTotals:
        """Return the totals of these classes, in this order; 0 for those without rows."""
        known = positions(labels, self.classes)
        counts = np.where(known >= 0, self.counts[known], 0)
        weights = None if self.weights is None else np.where(known >= 0, self.weights[known], 0.0)
        return ClassTotals(labels, counts, weights)

    def partition(self) -> ClassPartition:
        """Return a partition for pair weights."""
        return ClassPartition.of_sizes(self.counts if self.weights is None else self.weights)


def class_totals(parts: Sequence[tuple[Any, ...]], parameter: str) -> ClassTotals:
    """Return the sorted classes in all partitions of classes and weights, with their sizes and weights."""
    found = [task(_totals_of_part, number, y, weight, parameter) for number, (y, weight) in enumerate(parts)]
    (totals,) = run(tree(_add_totals, found))
    if len(totals.classes) == 0:
        raise invalid(parameter, "must not be empty", "no sample", "pass at least one sample of two classes")
    if totals.weights is None:
        return totals
    if not totals.weights.all():
        came = f"zero for class {totals.classes[np.flatnonzero(totals.weights == 0)[0]]}"
        advice = "drop the samples of that class, or give one of them a positive weight"
        raise invalid("sample_weight", "must have a positive sum in every class", came, advice)
    if not np.isfinite(totals.weights.sum()):
        raise invalid("sample_weight", "must have a finite sum", "an infinite one", "divide them by their largest")
    return totals


def _totals_of_part(number: int, y: Any, weight: Any, parameter: str) -> ClassTotals:
    if len(y) == 0:
        return ClassTotals(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), None)
    values = np.asarray(y)
    with in_partition(number):
        # Name the row of a missing class, because the user cannot look it up in a partition.
        for row, value in enumerate(values.ravel().tolist() if values.dtype.kind in "OfMm" else ()):
            if is_missing(value):
                came, advice = f"a missing value in row {row}", "drop the samples without a class"
                raise invalid(parameter, "must name the class of every sample", came, advice)
        classes, codes = check_classes(y, parameter)
        weights = None if weight is None else _sums(codes, check_weights(weight, codes.shape))
    return ClassTotals(classes, np.bincount(codes, minlength=len(classes)), weights)


def _add_totals(parts: list[ClassTotals]) -> ClassTotals:
    filled = [part for part in parts if len(part.classes)]
    if not filled:
        return parts[0]
    kinds = {"number" if part.classes.dtype.kind in "biuf" else "other" for part in filled}
    together = [part.classes if len(kinds) == 1 else part.classes.astype(object) for part in filled]
    # Mixed strings and numbers get the same error as in one array.
    classes, codes = check_classes(np.concatenate(together))
    sizes = np.bincount(codes, np.concatenate([part.counts for part in filled])).astype(np.int64)
    weights = [part.weights for part in filled if part.weights is not None]
    return ClassTotals(classes, sizes, _sums(codes, np.concatenate(weights)) if weights else None)


def _sums(codes: Ints, x: Floats) -> Floats:
    return np.bincount(codes, x).astype(np.float64)
