"""Run tasks in child processes that a deadline stops, even in compiled code. joblib's processes cannot be stopped.

Each child is a separate Python process that reads tasks from one pipe and writes answers to another. Nothing is written
to disk. A child ends with its parent. It uses one thread, so that results do not depend on the number of children.
"""

import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

from joblib import cpu_count
from threadpoolctl import threadpool_limits

LATE = "was not ready in time"
STOPPED = "was not ready when Ctrl-C came"
Task = Callable[..., Any]
"""A function of a module, or a partial one of it; its only argument is the object that the tasks share, if any."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a task: its index in the list of tasks, its value or error, and its time."""

    index: int
    value: Any = None
    error: Exception | None = None
    seconds: float = 0.0


class Workers:
    """Run tasks in child processes; a context manager, which starts and ends them.

    A child takes a second or more to import what it needs: enter the context before other work, such as reading.

    Parameters
    ----------
    n_workers : int, optional
        Default: the number of cores that this process may use, at most eight. 0: start none and run nothing.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        self.n_workers = min(8, cpu_count()) if n_workers is None else n_workers
        self.late = LATE if self.n_workers else "was not trained: the limit allows only a small forest"
        # As many threads as children: each gives a child one task after another.
        self._pool = ThreadPoolExecutor(max(1, self.n_workers))
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._lock = threading.RLock()  # a signal may come while the main thread has it
        self._stopped = threading.Event()
        """Set when the tasks of the last run must not begin any more."""

    def __enter__(self) -> Self:
        self._idle = [_Child() for _ in range(self.n_workers)]
        return self

    def __exit__(self, *error: object) -> None:
        self._stop_tasks()
        self._pool.shutdown(cancel_futures=True)
        for child in self._idle:
            child.end()

    def run(self, tasks: Sequence[Task], deadline: float, shared: Any = None) -> Iterator[Answer]:
        """Yield answers as they come, until the deadline in seconds of :func:`time.monotonic`.

        Tasks start in their order. Unfinished tasks are stopped at the deadline, or when the caller stops iterating.
        A child keeps the last ``shared`` object, so that it is sent to each child once.
        """
        self._stopped = threading.Event()
        tasks = () if self.stopped or self.n_workers == 0 else tasks
        answers = [
            self._pool.submit(self._answer, index, task, shared, self._stopped) for index, task in enumerate(tasks)
        ]
        try:
            seconds = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
            for future in as_completed(answers, timeout=seconds):
                answer = future.result()
                if not (self.stopped and answer.error):  # its child was ended
                    yield answer
        except TimeoutError:
            pass
        finally:
            self._stop_tasks()

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C came."""
        return self.late == STOPPED

    def stop(self) -> None:
        """End the tasks that run after Ctrl-C, and begin no other."""
        self.late = STOPPED
        self._stop_tasks()

    def _stop_tasks(self) -> None:
        """Kill the busy children; tasks that have not begun do not begin."""
        with self._lock:
            self._stopped.set()
            for child in self._busy:
                child.process.kill()

    def _answer(self, index: int, task: Task, shared: Any, stopped: threading.Event) -> Answer:
        """Give a task to an idle child; replace a child that has ended."""
        with self._lock:
            if stopped.is_set():
                return Answer(index, error=RuntimeError(STOPPED))
            child = self._idle.pop()
            if child.process.poll() is not None:
                child.end()
                child = _Child()
            self._busy.add(child)
        try:
            return Answer(index, *child.run(task, shared))
        except Exception as error:
            child.end()  # half a message may be left in the pipe
            if isinstance(error, EOFError | OSError | pickle.UnpicklingError):
                error = RuntimeError("its process ended, perhaps for lack of memory")
            return Answer(index, error=error)
        finally:
            with self._lock:
                self._busy.discard(child)
                self._idle.append(child)


class _Child:
    """A child process and the ends of its pipes."""

    def __init__(self) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from mauc.ensemble.workers import serve; serve()"
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **one_thread},
            start_new_session=True,  # only the parent gets Ctrl-C, and decides what to keep
        )
        self.shared: Any = None

    def run(self, task: Task, shared: Any) -> tuple[Any, Exception | None, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = (task, shared is not None, shared if shared is not self.shared else None)
        pickle.dump(message, self.process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        self.process.stdin.flush()
        self.shared = self.shared if shared is None else shared
        value, error, seconds = pickle.load(self.process.stdout)
        return value, error, seconds

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]


def serve() -> None:
    """Run as a child: receive shared objects and tasks until the parent closes the pipe."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Output of a library must not mix with the answers.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    messages: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(source, messages), daemon=True).start()
    import mauc.ensemble.fitting  # noqa: F401  # most tasks need it: import it before the first one comes

    shared = None
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while True:
            task, is_shared, new = messages.get()
            began = time.monotonic()
            shared = shared if new is None else new
            answer = _answer(task, *([shared] if is_shared else []))
            pickle.dump((*answer, time.monotonic() - began), answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _listen(source: BinaryIO, messages: "queue.Queue[Any]") -> None:
    """Read messages in a thread, so that a child ends with its parent even during a fit."""
    while True:
        try:
            messages.put(pickle.load(source))
        except Exception:
            # The parent has closed the pipe, or sent an object that only its own process knows. The rest of such a
            # message is still in the pipe: this child can read no more.
            os._exit(0)


def _answer(task: Task, *shared: Any) -> tuple[Any, Exception | None]:
    try:
        return task(*shared), None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return None, RuntimeError(f"{type(error).__name__}: {error}")
        return None, error
