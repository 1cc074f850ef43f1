"""Timing, memory, and the table of ratios."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured ratio with its target."""

    work: str
    against: str
    ours: str
    theirs: str
    ratio: float
    target: str
    met: bool | None
    """None where there is no target."""
    error: str


def alternate(
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    repeat: int,
    repeat_theirs: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[float, float]:
    """Return the shortest time of each in seconds, measured in turns, so that other load slows both.

    Pass ``time.process_time`` for what runs in one thread: it does not count other processes.
    """
    best = [float("inf"), float("inf")]
    ours()
    for turn in range(max(repeat, repeat_theirs)):
        for which, function, times in ((0, ours, repeat), (1, theirs, repeat_theirs)):
            if turn < times:
                begin = clock()
                function()
                best[which] = min(best[which], clock() - begin)
    return best[0], best[1]


def extra_bytes(function: Callable[[], Any]) -> int:
    """Return the peak memory of Python and NumPy during the call beyond what they held before it."""
    function()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return peak - before


def seconds(value: float) -> str:
    """Format a duration in a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def faster(work: str, against: str, ours: float, theirs: float, target: float | None, error: float) -> Row:
    """Return a row for "at least this many times faster", or without a target."""
    ratio = theirs / ours
    wanted, met = ("", None) if target is None else (f"≥ {target:g}x", ratio >= target)
    return Row(work, against, seconds(ours), seconds(theirs), ratio, wanted, met, f"{error:.1e}")


def slower(work: str, against: str, ours: float, theirs: float, target: float, error: str = "") -> Row:
    """Return a row for "at most this many times the time"."""
    ratio = ours / theirs
    return Row(work, against, seconds(ours), seconds(theirs), ratio, f"≤ {target:g}x", ratio <= target, error)


def within(work: str, extra: int, given: int, target: float) -> Row:
    """Return a row for "at most this many times the memory of the input"."""
    ours, theirs = f"{extra / 2**20:.1f} MiB", f"{given / 2**20:.1f} MiB"
    return Row(work, "its input", ours, theirs, extra / given, f"≤ {target:g}x", extra <= target * given, "")


def as_markdown(rows: list[Row]) -> str:
    """Return the table."""
    lines = [
        "| work | against | ours | theirs | ratio | target | met | error |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        met = {True: "yes", False: "no", None: ""}[row.met]
        lines.append(
            "| "
            + " | ".join([row.work, row.against, row.ours, row.theirs, f"{row.ratio:.3g}", row.target, met, row.error])
            + " |"
        )
    return "\n".join(lines)
