"""Run the benchmarks of the core, or those named; print the table and write it to ``benchmarks/results/core.md``."""

import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import scipy
import sklearn

from benchmarks import metric, risk
from benchmarks.measure import Row, as_markdown

BENCHMARKS: dict[str, Callable[[], list[Row]]] = {
    "metric-speed": metric.speed,
    "metric-memory": metric.memory,
    "metric-interval": metric.interval,
    "risk-ranked": risk.ranked_against_moments,
    "risk-growth": risk.growth,
    "risk-memory": risk.memory,
}


def main() -> None:
    """Run the benchmark."""
    names = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}: choose among {', '.join(BENCHMARKS)}")
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", flush=True)
        rows += BENCHMARKS[name]()
    versions = f"NumPy {numpy.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}"
    table = f"{platform.machine()}, Python {platform.python_version()}, {versions}\n\n{as_markdown(rows)}\n"
    print("\n" + table)
    out = Path(__file__).parent / "results" / "core.md"
    out.parent.mkdir(exist_ok=True)
    out.write_text(table)


if __name__ == "__main__":
    main()
