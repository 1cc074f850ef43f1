"""Runs a command and measures its whole process tree; keeps cores busy beside it."""

import contextlib
import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["Measured", "busy", "measured", "on_cores"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Measured:
    """Time, memory and output of a command."""

    seconds: float
    peak_mib: float
    """Largest sum over the process tree; memory shared by processes counts once."""
    returncode: int | None
    """None if it was stopped because it took too long."""
    stdout: str
    stderr: str


def measured(command: Sequence[str], folder: Path, most_seconds: float, interval: float = 0.2) -> Measured:
    """Run a command in a folder, with the code of this repository; end its process tree after ``most_seconds``."""
    with (folder / "stdout").open("w+") as out, (folder / "stderr").open("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=_environment(), stdout=out, stderr=err)
        tree, peak = psutil.Process(process.pid), 0.0
        while process.poll() is None and time.perf_counter() - began < most_seconds:
            peak = max(peak, _memory(tree))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(interval)
        seconds = time.perf_counter() - began
        ended = process.poll() is None
        if ended:
            _end(tree)
            process.wait()
        out.seek(0)
        err.seek(0)
        code = None if ended else process.returncode
        return Measured(seconds, peak / 2**20, code, out.read(), err.read())


@contextlib.contextmanager
def busy(n: int) -> Iterator[None]:
    """Run ``n`` busy processes on the cores of this process."""
    workers = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(n)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def on_cores(n: int) -> None:
    """Keep this process, and all that it starts, on ``n`` cores, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n])


def _spin() -> None:
    while True:
        pass


def _environment() -> dict[str, str]:
    """Return a user's environment: no thread limits of this shell, bytecode as after an installation, full paths."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    given = [str(Path(each).resolve()) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return kept | {"PYTHONPATH": os.pathsep.join([*given, str(ROOT)])}


def _memory(tree: psutil.Process) -> float:
    """Return the proportional memory of a process and its children in bytes."""
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (tree, *tree.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                held = process.memory_full_info()
                total += getattr(held, "pss", held.rss)
    return total


def _end(tree: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in (*tree.children(recursive=True), tree):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
