"""``BinnedMAUC`` against the exact score: processor time per row, error, standard error, peak memory.

``python -m benchmarks.binned 1e7 1e8`` draws rows in blocks. Up to 1e7 rows the exact score and interval are computed
too, and the rows are held for that; otherwise the peak memory is printed.
"""

import resource
import sys
import time
import warnings

import numpy as np

from benchmarks.dask_scale import N_CLASSES, drawn
from mauc import BinnedMAUC, mauc_interval

BLOCK = 2_000_000
MOST_EXACT = 10_000_000


def main() -> None:
    """Print a table."""
    print("| rows × 5 | bins | processor time per row | score | bound | error | standard error | exact | peak |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n_rows in map(int, map(float, sys.argv[1:] or ["1e7"])):
        for kind in ("equal", "quantiles"):
            measure(n_rows, kind)


def measure(n_rows: int, kind: str) -> None:
    """Print one line."""
    state = BinnedMAUC(N_CLASSES) if kind == "equal" else BinnedMAUC.for_scores(*drawn(1 << 20, 0))
    spent, blocks = 0.0, []
    for seed, first in enumerate(range(0, n_rows, BLOCK)):
        y, scores = drawn(min(BLOCK, n_rows - first), seed)
        begin = time.process_time()
        state.update(y, scores)
        spent += time.process_time() - begin
        if n_rows <= MOST_EXACT:
            blocks.append((y, scores))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = state.interval()
    peak = "" if blocks else f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    error = exact = ""
    if blocks:
        expected = mauc_interval(*(np.concatenate(each) for each in zip(*blocks, strict=True)))
        error, exact = f"{abs(found.score - expected.score):.1e}", f"{expected.stderr:.3e}"
    print(
        f"| {n_rows:,} | {kind} | {spent / n_rows * 1e6:.3f} µs | {found.score:.6f} | {state.error_bound():.1e} "
        f"| {error} | {found.stderr:.3e} | {exact} | {peak} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
