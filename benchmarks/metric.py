"""``mauc_score`` against scikit-learn, and ``mauc_interval`` against ``mauc_score``, in time and memory."""

import time

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.measure import Row, alternate, extra_bytes, faster, slower, within
from mauc import mauc_interval, mauc_score


def softmax_scores(n: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw random classes with softmax scores that favour them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    z = rng.standard_normal((n, c))
    z[np.arange(n), y] += 1.0
    p = np.exp(z)
    return y, p / p.sum(axis=1, keepdims=True)


def speed() -> list[Row]:
    """Time three shapes: processor time in one thread; the largest also in two threads, wall time."""
    rows = []
    for n, c, n_jobs, target in (
        (20_000, 100, 1, 200),
        (10_000, 10, 1, 45),
        (1_000_000, 3, 1, 8),
        (1_000_000, 3, 2, None),
    ):
        y, p = softmax_scores(n, c)
        theirs_score: list[float] = []
        ours, theirs = alternate(
            lambda y=y, p=p, n_jobs=n_jobs: mauc_score(y, p, n_jobs=n_jobs),
            lambda y=y, p=p, out=theirs_score: out.append(roc_auc_score(y, p, multi_class="ovo")),
            repeat=60 if c == 10 else 9,  # a call of 2 ms in nine repeats met other work on the machine: 29x to 57x
            repeat_theirs=1 if c == 100 else 3,
            clock=time.process_time if n_jobs == 1 else time.perf_counter,
        )
        error = abs(mauc_score(y, p, n_jobs=n_jobs) - theirs_score[-1])
        work = f"`mauc_score`, N={n:,}, C={c}" + (f", {n_jobs} threads" if n_jobs > 1 else "")
        rows.append(faster(work, "scikit-learn ovo", ours, theirs, target, error))
    return rows


def memory() -> list[Row]:
    """Measure the extra memory over that of the scores and labels."""
    rows = []
    for n, c in ((20_000, 100), (1_000_000, 3)):
        y, p = softmax_scores(n, c)
        extra = extra_bytes(lambda y=y, p=p: mauc_score(y, p, n_jobs=1))
        rows.append(within(f"`mauc_score` extra memory, N={n:,}, C={c}", extra, y.nbytes + p.nbytes, 0.7))
    return rows


def interval() -> list[Row]:
    """Compare the interval with the score, in time and memory."""
    rows, c = [], 5
    for n in (1_000_000, 10_000_000):
        y, p = softmax_scores(n, c)
        ours, theirs = alternate(
            lambda y=y, p=p: mauc_interval(y, p, n_jobs=1),
            lambda y=y, p=p: mauc_score(y, p, n_jobs=1),
            repeat=2,
            repeat_theirs=2,
            clock=time.process_time,
        )
        rows.append(slower(f"`mauc_interval`, N={n:,}, C={c}", "`mauc_score`", ours, theirs, 3))
        extra = extra_bytes(lambda y=y, p=p: mauc_interval(y, p, n_jobs=1))
        rows.append(within(f"`mauc_interval` extra memory, N={n:,}, C={c}", extra, y.nbytes + p.nbytes, 1))
    return rows
