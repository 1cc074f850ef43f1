"""``mauc evaluate`` of Parquet parts larger than memory: time per row against the score in memory, peak memory.

``python -m benchmarks.stream [ROWS …]`` writes parts of float32 scores of five classes into a temporary folder,
23 bytes per row, and evaluates them in a new process, report included. CPU time is compared: both use all cores.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.measure import Row, as_markdown
from mauc import mauc_score
from mauc.report import judge

CLASSES = np.array(["ash", "elm", "fir", "oak", "yew"])
SHARES = [0.4, 0.3, 0.15, 0.1, 0.05]
PART_ROWS = 2_000_000
IN_MEMORY_ROWS = 4_000_000


def make_part(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw class codes, and softmax scores that favour them."""
    rng = np.random.default_rng(seed)
    y = rng.choice(len(CLASSES), n, p=SHARES)
    z = rng.standard_normal((n, len(CLASSES)), dtype=np.float32)
    z[np.arange(n), y] += 1
    p = np.exp(z)
    return y, p / p.sum(axis=1, keepdims=True)


def write_parts(folder: Path, n_rows: int) -> None:
    """Write ``n_rows`` rows in parts."""
    for k, begin in enumerate(range(0, n_rows, PART_ROWS)):
        y, p = make_part(min(PART_ROWS, n_rows - begin), k)
        table = pd.DataFrame(p, columns=CLASSES).assign(truth=pd.Categorical.from_codes(y, CLASSES))
        table.to_parquet(folder / f"{k:04d}.parquet", index=False)


def cpu_seconds(work: object) -> tuple[float, object]:
    """Return the CPU seconds of one call in this process, and its result."""
    begin = time.process_time()
    result = work()  # type: ignore[operator]
    return time.process_time() - begin, result


def evaluate(folder: Path) -> tuple[float, float, float, dict[str, object]]:
    """Return CPU seconds, seconds, peak bytes and result of the command in a new process."""
    command = [sys.executable, "-c", "from mauc._cli import main; main()", "evaluate", str(folder), "--target", "truth"]
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        command += ["--json", "--report", str(Path(out) / "report.html")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0
    return used.ru_utime + used.ru_stime, time.perf_counter() - begin, used.ru_maxrss * 1024.0, json.loads(said)


class Measured(NamedTuple):
    """One call of the command."""

    n_rows: int
    size: int
    """Bytes of the parts."""
    cpu: float
    wall: float
    peak: float
    score: float


def measure(n_rows: int) -> Measured:
    """Write ``n_rows`` rows, and evaluate them."""
    with tempfile.TemporaryDirectory() as folder:
        write_parts(Path(folder), n_rows)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        cpu, wall, peak, found = evaluate(Path(folder))
    return Measured(n_rows, size, cpu, wall, peak, found["models"][0]["mauc"]["score"])  # type: ignore[index]


def rows_of(found: Measured, score_time: float, judge_time: float) -> list[Row]:
    """Return the time per row against both in-memory times, and the memory."""
    n_rows, error = found.n_rows, ""
    if n_rows <= 5 * PART_ROWS:
        parts = [make_part(min(PART_ROWS, n_rows - k * PART_ROWS), k) for k in range(-(-n_rows // PART_ROWS))]
        error = f"{abs(found.score - mauc_score(*(np.concatenate(each) for each in zip(*parts, strict=True)))):.1e}"
    work = f"`mauc evaluate`, {n_rows:,} rows × 5, {found.size / 1e9:.2g} GB of Parquet"
    ours = found.cpu / n_rows
    rows = []
    for what, theirs in (("mauc_score", score_time), ("judge", judge_time)):
        about = (f"{work}, CPU per row ({found.wall:.0f} s in all)", f"`{what}` in memory")
        ratio = ours / theirs
        rows.append(Row(*about, f"{ours * 1e6:.2f} µs", f"{theirs * 1e6:.2f} µs", ratio, "≤ 3x", ratio <= 3, error))
    limit = f"{found.peak / 2**30:.2f} GiB", "2 GiB", found.peak / 2**31, "≤ 1x", found.peak <= 2**31, ""
    return [*rows, Row(f"{work}, peak memory", "2 GiB", *limit)]


def main() -> None:
    """Print the table."""
    # The command first: a process counts the peak of the one that started it as its own.
    measured = [measure(int(float(n))) for n in sys.argv[1:] or [10_000_000]]
    y, p = make_part(IN_MEMORY_ROWS, 0)
    score_time = min(cpu_seconds(lambda: mauc_score(y, p))[0] for _ in range(2)) / IN_MEMORY_ROWS
    judge_time = cpu_seconds(lambda: judge(y, p))[0] / IN_MEMORY_ROWS
    print(as_markdown([row for found in measured for row in rows_of(found, score_time, judge_time)]))


if __name__ == "__main__":
    main()
