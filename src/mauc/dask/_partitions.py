"""From Dask collections to aligned partitions, and what is done with them: named tasks, sums over a tree."""

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

from mauc._validation import invalid

__all__ = ["Partition", "in_partition", "keep", "partitions", "run", "task", "tree"]

# Partitions whose results are put together by one task: enough that the tree is low, few enough for a worker's memory.
AT_ONCE = 8


class Partition(NamedTuple):
    """The same rows of several collections; None for one that was not given."""

    number: int
    parts: tuple[Delayed | None, ...]


def task(function: Callable[..., Any], *args: Any, what: str | None = None) -> Delayed:
    """``function(*args)`` under a name that the dashboard shows, ``mauc-<what>``.

    The key is made of the function and all that it is given: equal keys are equal work, and no result of an earlier
    call can be taken for that of another one.
    """
    name = (what or function.__name__).strip("_").replace("_", "-")
    key = f"mauc-{name}-{tokenize(function, args)}"
    return delayed(function, pure=True, traverse=False)(*args, dask_key_name=key)


def partitions(**collections: Any) -> list[Partition]:
    """The partitions of collections that hold the same rows; the first one's stay as they are.

    Arrays of known sizes are cut alike, and NumPy arrays, lists and pandas objects where the first has known sizes.
    Otherwise, as with data frames, the numbers of partitions must agree; that each has as many rows is found out when
    it is computed.
    """
    (first_name, first), *others = collections.items()
    if not dask.is_dask_collection(first):
        advice = f"in memory mauc's own functions are faster; da.from_array({first_name}, chunks=…) makes one"
        raise invalid(first_name, "must be a Dask array, data frame or series", type(first).__name__, advice)
    rows = _rows(first)
    columns = [_delayed(first)]
    for name, collection in others:
        if collection is None:
            columns.append([None] * len(columns[0]))
            continue
        columns.append(_delayed(_like(name, collection, first_name, rows, len(columns[0]))))
    return [Partition(k, parts) for k, parts in enumerate(zip(*columns, strict=True))]


def _rows(collection: Any) -> tuple[int, ...] | None:
    """Rows in each chunk of an array, where they are known."""
    if not isinstance(collection, da.Array) or any(np.isnan(collection.chunks[0])):
        return None
    return tuple(int(n) for n in collection.chunks[0])


def _like(name: str, collection: Any, first_name: str, rows: tuple[int, ...] | None, n_parts: int) -> Any:
    """The collection in partitions like those of the first one."""
    if not dask.is_dask_collection(collection):
        if rows is None:
            came = f"{type(collection).__name__} for a {first_name} whose partitions have unknown sizes"
            advice = f"take it from the same collection as {first_name}"
            raise invalid(name, "must be a Dask collection", came, advice)
        values = np.asarray(collection)
        collection = da.from_array(values, chunks=values.shape)
    known = _rows(collection)
    if rows is not None and known is not None:
        if sum(rows) != sum(known):
            came = f"{sum(known)} for {sum(rows)} of {first_name}"
            raise invalid(name, "must have one row per sample", came, "pass the same samples in both")
        return collection if rows == known else collection.rechunk({0: rows})
    found = collection.numblocks[0] if isinstance(collection, da.Array) else collection.npartitions
    if found != n_parts:
        came = f"{found} for {n_parts} of {first_name}"
        advice = "take both from one collection, or repartition them alike; compute_chunk_sizes() lets arrays be cut"
        raise invalid(name, f"must have the partitions of {first_name}", came, advice)
    return collection


def _delayed(collection: Any) -> list[Delayed]:
    if isinstance(collection, da.Array):
        if collection.ndim == 2 and collection.numblocks[1] > 1:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    return list(collection.to_delayed())


def tree(combine: Callable[[list[Any]], Any], parts: Sequence[Delayed], what: str) -> Delayed:
    """One result of many: ``combine`` of some at a time, and of what comes out."""
    parts = list(parts)
    while True:
        parts = [task(_combined, combine, *parts[k : k + AT_ONCE], what=what) for k in range(0, len(parts), AT_ONCE)]
        if len(parts) == 1:
            return parts[0]


def _combined(combine: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return combine(list(parts))


@contextmanager
def in_partition(number: int) -> Iterator[None]:
    """An error of what is inside says which partition it is of; rows are counted from its first."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"in partition {number}, {error}") from None


def run(*tasks: Delayed) -> tuple[Any, ...]:
    """The results, here."""
    with _connected():
        return dask.compute(*tasks)


def keep(*tasks: Delayed) -> list[Delayed]:
    """Tasks whose results are made, or being made, and stay where they are."""
    with _connected():
        return list(dask.persist(*tasks))


@contextmanager
def _connected() -> Iterator[None]:
    """Where no result can be had any more, an error that says why."""
    try:
        yield
    except Exception as error:
        # distributed is not imported here, for the schedulers of one machine do without.
        cancelled = isinstance(error, asyncio.CancelledError | concurrent.futures.CancelledError)
        if not cancelled and type(error).__name__ not in ("ClosedClientError", "CommClosedError"):
            raise
        raise RuntimeError(
            "the Dask client was closed, or its scheduler lost, before the result was there: "
            "connect a new Client and call again"
        ) from error
