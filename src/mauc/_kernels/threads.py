"""Several threads over the rows of a large problem: NumPy lets go of the interpreter inside its loops.

How the work is cut depends on its size alone, and results are put together in order: the bits are the same for any
number of threads.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from types import TracebackType
from typing import Self, TypeVar

__all__ = ["Crew", "one_by_one", "over_rows", "row_parts", "thread_count", "threads"]

R = TypeVar("R")

# Smaller problems are done before the threads have started.
LARGE = 1 << 19
PARTS = 8
MOST_THREADS = 8

_asked: ContextVar[int | None] = ContextVar("mauc_threads", default=None)


@contextmanager
def threads(n_jobs: int | None) -> Iterator[None]:
    """So many threads in what is called inside; -1 is one per core, None as :func:`thread_count` finds it."""
    token = _asked.set(_cores() if n_jobs is not None and n_jobs < 0 else n_jobs)
    try:
        yield
    finally:
        _asked.reset(token)


def thread_count() -> int:
    """What was asked for; else the cores, at most ``OMP_NUM_THREADS`` where that is set.

    joblib sets that in its workers.
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
    """Consecutive parts of the rows; one where the array is small."""
    parts = PARTS if n_rows * n_columns >= LARGE and n_rows >= PARTS else 1
    return list(pairwise(n_rows * k // parts for k in range(parts + 1)))


def over_rows(shape: tuple[int, ...], visit: Callable[[int, int], R]) -> list[R]:
    """``visit(begin, end)`` of consecutive parts of the rows, in order; one part where the array is small."""
    return list(one_by_one(shape, visit))


def one_by_one(shape: tuple[int, ...], visit: Callable[[int, int], R]) -> Iterator[R]:
    """:func:`over_rows` for results that are large, to be taken as they come."""
    parts = row_parts(*shape)
    with Crew(thread_count() if len(parts) > 1 else 1) as crew:
        yield from crew.each(partial(visit, *part) for part in parts)


class Crew:
    """Threads that take tasks in turn; a crew of one is the caller itself."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pool = ThreadPoolExecutor(size) if size > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def each(self, tasks: Iterable[Callable[[], R]]) -> Iterator[R]:
        """The results of the tasks in order. A task begins when at most ``size`` results wait to be taken."""
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
