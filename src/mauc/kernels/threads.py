"""Several threads over the rows of a large problem: NumPy lets go of the interpreter inside its loops."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["over_rows", "thread_count"]

R = TypeVar("R")

# Smaller problems are done before the threads have started.
LARGE = 1 << 19
MOST_THREADS = 8


def thread_count() -> int:
    """Cores this process may use, at most ``OMP_NUM_THREADS`` where that is set: joblib sets it in its workers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, MOST_THREADS, int(limit) if limit.isdigit() else cores))


def over_rows(shape: tuple[int, ...], visit: Callable[[int, int], R]) -> list[R]:
    """``visit(begin, end)`` of consecutive parts of the rows, in order; one part where the array is small."""
    n_rows, n_columns = shape
    parts = thread_count() if n_rows * n_columns >= LARGE else 1
    if parts == 1 or n_rows < parts:
        return [visit(0, n_rows)]
    edges = [n_rows * k // parts for k in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(visit, edges[:-1], edges[1:]))
