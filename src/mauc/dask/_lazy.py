"""A function of rows, applied to the partitions of a collection when its result is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from mauc.dask._partitions import in_partition, task

__all__ = ["applied"]


def applied(function: Callable[[Any], Any], X: Any, what: str, width: tuple[int, ...], dtype: Any) -> da.Array:
    """``function`` of each partition of an array or a data frame, as a Dask array of rows of that width."""
    what = what.strip("_").replace("_", "-")
    if isinstance(X, da.Array):
        return X.rechunk({1: -1}).map_blocks(
            _apply_to_block,
            function,
            width,
            dtype,
            name=f"mauc-{what}-{tokenize(X, function)}",
            chunks=(X.chunks[0], *((k,) for k in width)),
            drop_axis=None if width else 1,
            dtype=dtype,
            meta=np.zeros((0,) * (1 + len(width)), dtype=dtype),
        )
    arrays = []
    for k, part in enumerate(X.to_delayed()):
        rows = task(_apply, part, function, width, dtype, k, what=what)
        arrays.append(da.from_delayed(rows, (np.nan, *width), dtype))
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _apply_to_block(
    part: Any, function: Callable[[Any], Any], width: tuple[int, ...], dtype: Any, block_id: tuple[int, ...]
) -> Any:
    return _apply(part, function, width, dtype, block_id[0])


def _apply(part: Any, function: Callable[[Any], Any], width: tuple[int, ...], dtype: Any, number: int) -> Any:
    if part.shape[0] == 0:
        return np.zeros((0, *width), dtype=dtype)
    with in_partition(number):
        return np.asarray(function(part))
