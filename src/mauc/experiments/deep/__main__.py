"""Compute the results of one set, with numpy, scipy, scikit-learn and torch alone: ``python -m mauc.experiments.deep``.

``mauc bench deep`` then finds them in the same folder and writes the pages.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from mauc.experiments.deep import experiment
from mauc.experiments.deep.data import DATASETS
from mauc.experiments.plain import print_cells
from mauc.experiments.store import Store


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments, and compute what their folder lacks."""
    parser = argparse.ArgumentParser(prog="python -m mauc.experiments.deep", description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", choices=DATASETS, required=True)
    parser.add_argument("--data-home", help="folder with the data files")
    parser.add_argument("--features", help="your features: an .npz file with X and y")
    parser.add_argument("--method", action="append", help="only this one; may be repeated")
    parser.add_argument("--tuned", action="store_true", help="each method with the best of its settings on validation")
    parser.add_argument("--settings", type=int, default=12, help="tried of each method")
    parser.add_argument("--tuning-seeds", type=int, default=2, help="whose validation parts choose")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--jobs", type=int, default=1, help="processes, which share the device")
    parser.add_argument("--minutes", type=float, help="begin no fit after so many")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("mauc-results/deep"))
    options = vars(parser.parse_args(arguments))
    out, jobs, minutes = options.pop("out"), options.pop("jobs"), options["minutes"]
    stop_at = None if minutes is None else time.time() + 60.0 * minutes
    planned, store = experiment(**options), Store(out / "cells")
    if jobs == 1 and planned.check is not None:
        planned.check(store)
    print_cells(planned.cells, store, jobs, stop_at)
    if planned.then is not None:
        print_cells(planned.then(store), store, jobs, stop_at)


if __name__ == "__main__":
    main()
