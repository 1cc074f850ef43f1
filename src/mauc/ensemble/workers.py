"""Child processes that can be ended at a deadline, whatever a library does in them.

joblib's workers cannot: a fit that is in compiled code goes on until it is done. Here each child is a Python of its own
that reads tasks from a pipe and writes answers to another. Nothing is written to disk, and a child ends when its parent
does. A child uses one thread, so that results do not depend on how many children there are.
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
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

from joblib import cpu_count
from threadpoolctl import threadpool_limits

__all__ = ["Answer", "Task", "Workers", "serve"]

STOPPED = "was not ready when Ctrl-C came"
Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, called with what all tasks share and these arguments."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a task."""

    place: int
    """Of the task in its list."""
    value: Any = None
    error: Exception | None = None
    seconds: float = 0.0


class Workers:
    """Runs tasks in as many child processes as there are cores; a context manager, which starts and ends them.

    A child takes a second or more to import what it needs: begin the context before other work, such as reading.

    Parameters
    ----------
    n_workers : int, optional
        Default: the cores that this process may use, eight at most. 0 starts none, and nothing is run.
    on_stop : function, optional
        Called when Ctrl-C comes for the first time: what is done by then is kept. Without it Ctrl-C ends all.

    Attributes
    ----------
    shared : object
        First argument of every task; sent to each child once, before its next task.
    """

    def __init__(self, n_workers: int | None = None, on_stop: Callable[[], None] | None = None) -> None:
        self.shared: Any = None
        self.on_stop = on_stop
        self.late = "was not ready in time"
        self.n_workers = min(8, cpu_count()) if n_workers is None else n_workers
        self._round = 0
        self._tasks: queue.Queue[tuple[int, int, Task, Any] | None] = queue.Queue()
        self._answers: queue.Queue[tuple[int, Answer]] = queue.Queue()
        self._busy: set[subprocess.Popen[bytes]] = set()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        for _ in range(self.n_workers):
            thread = threading.Thread(target=self._drive, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        self._forget()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def run(self, tasks: Sequence[Task], deadline: float) -> Iterator[Answer]:
        """Answers as they come, up to the deadline in seconds of :func:`time.monotonic`; tasks begin in their order.

        What is not done then is ended and forgotten, as it is where the caller takes no more answers.
        """
        self._round += 1
        tasks = () if self.late == STOPPED or self.n_workers == 0 else tasks
        for place, task in enumerate(tasks):
            self._tasks.put((self._round, place, task, self.shared))
        left = len(tasks)
        try:
            while left:
                number, answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
                if number == self._round:
                    left -= 1
                    yield answer
        except queue.Empty:
            pass
        finally:
            if left:
                self._forget()

    def stop(self) -> bool:
        """Run nothing more because of Ctrl-C, if that is wanted and has not happened before."""
        if self.on_stop is None or self.late == STOPPED:
            return False
        self.late = STOPPED
        self.on_stop()
        return True

    def _forget(self) -> None:
        """Drop the tasks that wait, and end the children that are busy."""
        with suppress(queue.Empty):
            while True:
                self._tasks.get_nowait()
        with self._lock:
            for child in self._busy:
                child.kill()
            self._busy.clear()

    def _drive(self) -> None:
        """Give a child one task after another; a child that was ended is replaced."""
        child, known = self._start(), None
        while (waiting := self._tasks.get()) is not None:
            number, place, task, shared = waiting
            if child is None or child.poll() is not None:
                self._end(child)
                child, known = self._start(), None
            try:
                self._begins(child)
                if shared is not known:
                    _send(child, ("share", shared))
                    known = shared
                _send(child, ("do", task))
                value, error, seconds = pickle.load(_pipe(child, "stdout"))
                answer = Answer(place, value, error, seconds)
            except (EOFError, OSError, pickle.UnpicklingError):
                answer = Answer(place, error=RuntimeError("its process ended, as it does where memory is short"))
                self._end(child)
                child = None
            except Exception as unsendable:
                answer = Answer(place, error=unsendable)
            with self._lock:
                self._busy.discard(child)
            self._answers.put((number, answer))
        self._end(child)

    def _start(self) -> "subprocess.Popen[bytes] | None":
        code = f"import sys; sys.path[:] = {sys.path!r}; from mauc.ensemble.workers import serve; serve()"
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with self._lock:
            if self._stopping.is_set():
                return None
            child = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **one},
                # Ctrl-C is for the parent, which decides what is kept.
                start_new_session=True,
            )
        return child

    def _begins(self, child: "subprocess.Popen[bytes] | None") -> None:
        """A child is given a task, unless all are to end."""
        with self._lock:
            if child is None or self._stopping.is_set():
                raise EOFError
            self._busy.add(child)

    def _end(self, child: "subprocess.Popen[bytes] | None") -> None:
        if child is not None:
            child.kill()
            child.wait()
            for name in ("stdin", "stdout"):
                with suppress(OSError):
                    _pipe(child, name).close()


def _pipe(child: "subprocess.Popen[bytes] | None", name: str) -> BinaryIO:
    if child is None:
        raise EOFError
    stream: BinaryIO = getattr(child, name)
    return stream


def _send(child: "subprocess.Popen[bytes] | None", message: Any) -> None:
    stream = _pipe(child, "stdin")
    pickle.dump(message, stream, protocol=pickle.HIGHEST_PROTOCOL)
    stream.flush()


def serve() -> None:
    """The life of a child: what is shared, and tasks, until the parent closes the pipe."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the answers.
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    messages: queue.Queue[tuple[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(source, messages), daemon=True).start()
    import mauc.ensemble.fitting  # noqa: F401  # what most tasks need, before the first one comes

    shared = None
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while True:
            kind, content = messages.get()
            if kind == "share":
                shared = content
                continue
            began = time.monotonic()
            value, error = (None, content) if kind == "error" else _answer(content, shared)
            pickle.dump((value, error, time.monotonic() - began), answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _listen(source: BinaryIO, messages: "queue.Queue[tuple[str, Any]]") -> None:
    """In a thread, so that a child ends with its parent although a fit is running."""
    while True:
        try:
            messages.put(pickle.load(source))
        except EOFError:
            os._exit(0)
        except Exception as unreadable:
            messages.put(("error", unreadable))


def _answer(task: Task, shared: Any) -> tuple[Any, Exception | None]:
    function, arguments = task
    try:
        return function(shared, *arguments), None
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return None, RuntimeError(f"{type(error).__name__}: {error}")
        return None, error
