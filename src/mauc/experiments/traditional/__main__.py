"""Compute the results with numpy, scipy, scikit-learn and imbalanced-learn alone:
``python -m mauc.experiments.traditional``.

``mauc bench traditional`` with the same ``--out`` then finds them and writes the pages.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from mauc.experiments.plain import print_cells
from mauc.experiments.store import Store
from mauc.experiments.traditional import experiment
from mauc.experiments.traditional.run import PROTOCOLS
from mauc.experiments.tuning import PREPROCESSINGS


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments, and compute what their folder lacks."""
    parser = argparse.ArgumentParser(prog="python -m mauc.experiments.traditional", description=__doc__)
    parser.add_argument("--splits", choices=PROTOCOLS, default="authors")
    parser.add_argument("--preprocessing", choices=("both", *PREPROCESSINGS), default="both")
    parser.add_argument("--data-home", help="folder with the data files")
    parser.add_argument("--table", action="append", help="only this one; may be repeated")
    parser.add_argument("--method", action="append", help="only this one; may be repeated")
    parser.add_argument("--n-splits", type=int, default=15, help="how many of the fifteen")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, help="begin no fit after so many")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("mauc-results/traditional"))
    options = vars(parser.parse_args(arguments))
    out, jobs, minutes = (options.pop(name) for name in ("out", "jobs", "minutes"))
    stop_at = None if minutes is None else time.time() + 60.0 * minutes
    planned, store = experiment(**options), Store(out / "cells")
    if planned.check is not None:
        planned.check(store)
    print_cells(planned.cells, store, jobs, stop_at)


if __name__ == "__main__":
    main()
