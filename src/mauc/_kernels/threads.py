"""Threads over the rows of a large problem: NumPy releases the interpreter lock inside its loops.

The parts depend on the size of the problem alone, and their results are combined in order: every number of threads
gives the same bits.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import TypeVar

__all__ = ["ThreadPool", "one_by_one", "over_rows", "row_parts", "thread_count", "threads"]

R = TypeVar("R")

# Smaller problems finish before the threads have started.
LARGE = 1 << 19
PARTS = 8
MOST_THREADS = 8

_asked: ContextVar[int | None] = ContextVar("mauc_threads", default=None)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """Set the number of threads inside the context; -1 is one per core, None the default of :func:`thread_count`."""
    token = _asked.set(_cores() if n_jobs is not None and n_jobs < 0 else n_jobs)
    try:
        yield
    finally:
        _asked.reset(token)


def thread_count() -> int:
    """Return the number set by :func:`threads`. Otherwise return the number of cores, at most eight.

    ``OMP_NUM_THREADS``, which joblib sets in its workers, is a limit too.
    """
    asked = _asked.get()
    if asked is not None:
        return asked
    cores = _cores()
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, MOST_THREADS, int(limit) if limit.isdigit() else cores))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def row_parts(n_rows: int, n_columns: int) -> list[tuple[int, int]]:
    """Return consecutive parts of the rows; one if the array is small."""
    parts = PARTS if n_rows * n_columns >= LARGE and n_rows >= PARTS else 1
    return list(pairwise(n_rows * k // parts for k in range(parts + 1)))


def over_rows(shape: tuple[int, ...], visit: Callable[[int, int], R]) -> list[R]:
    """Return the results of ``visit(begin, end)`` for consecutive parts of the rows, in order."""
    return list(one_by_one(shape, visit))


def one_by_one(shape: tuple[int, ...], visit: Callable[[int, int], R]) -> Iterator[R]:
    """Yield the results of :func:`over_rows` one by one, for large results."""
    parts = row_parts(*shape)
    with ThreadPool(thread_count() if len(parts) > 1 else 1) as pool:
        yield from pool.each(partial(visit, *part) for part in parts)


class ThreadPool(AbstractContextManager["ThreadPool"]):
    """Threads that return results in order; a pool of size 1 runs in the calling thread."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size) if size > 1 else None

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(self, tasks: Iterable[Callable[[], R]]) -> Iterator[R]:
        """Yield the results of the tasks in order; a task begins when at most ``size`` results are waiting."""
        if self._pool is None:
            for task in tasks:
                yield task()
            return
        waiting: deque[Future[R]] = deque()
        for task in tasks:
            waiting.append(self._pool.submit(task))
            if len(waiting) > self.size:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
