"""``mauc_score`` against scikit-learn, in time and memory."""

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.measure import Row, alternate, extra_bytes, faster
from mauc import mauc_score


def softmax_scores(n: int, c: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random classes with softmax scores that favour them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    z = rng.standard_normal((n, c))
    z[np.arange(n), y] += 1.0
    p = np.exp(z)
    return y, p / p.sum(axis=1, keepdims=True)


def speed() -> list[Row]:
    """Three shapes."""
    rows = []
    for n, c, target in ((20_000, 100, 200), (10_000, 10, 45), (1_000_000, 3, 10)):
        y, p = softmax_scores(n, c)
        theirs_score: list[float] = []
        ours, theirs = alternate(
            lambda y=y, p=p: mauc_score(y, p),
            lambda y=y, p=p, out=theirs_score: out.append(roc_auc_score(y, p, multi_class="ovo")),
            repeat=9,
            repeat_theirs=1 if c == 100 else 3,
        )
        error = abs(mauc_score(y, p) - theirs_score[-1])
        rows.append(faster(f"`mauc_score`, N={n:,}, C={c}", "scikit-learn ovo", ours, theirs, target, error))
    return rows


def memory() -> list[Row]:
    """Extra memory over that of the scores and labels."""
    rows = []
    for n, c in ((20_000, 100), (1_000_000, 3)):
        y, p = softmax_scores(n, c)
        extra, given = extra_bytes(lambda y=y, p=p: mauc_score(y, p)), y.nbytes + p.nbytes
        ratio = extra / given
        rows.append(
            Row(
                f"`mauc_score` extra memory, N={n:,}, C={c}",
                "its input",
                f"{extra / 2**20:.1f} MiB",
                f"{given / 2**20:.1f} MiB",
                ratio,
                "≤ 0.7x",
                ratio <= 0.7,
                "",
            )
        )
    return rows
