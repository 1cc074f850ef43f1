"""Run one experiment: ``python -m experiments NAME``.

Each fit writes its result to ``--out`` when it ends, so a killed run resumes where it stopped. The pages and figures
are written beside the results. ``--no-report`` only computes, without matplotlib, so another machine can do it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.registry import EXPERIMENTS, load
from experiments.store import Store, run_cells

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments, compute what the folder lacks, write the report."""
    options = vars(_parser().parse_args(arguments))
    name, out, jobs, with_report = (options.pop(key) for key in ("name", "out", "jobs", "report"))
    folder = out or Path("mauc-results") / name
    try:
        experiment = load(name, with_report=with_report, **options)
        store = Store(folder / "cells")
        if experiment.check is not None:
            experiment.check(store)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"experiments: {error}")
    run_cells(experiment.cells, store, jobs=jobs, keep_going=not with_report)
    if experiment.then is not None:
        run_cells(experiment.then(store), store, jobs=jobs, keep_going=not with_report)
    if with_report:
        for file in experiment.report(store, folder):
            print(f"wrote {file}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Run an experiment.")
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    each = {name: names.add_parser(name, help=shows, description=shows) for name, (shows, _) in EXPERIMENTS.items()}
    for experiment in each.values():
        experiment.add_argument("--out", type=Path, help="folder for the results (default: mauc-results/NAME)")
        experiment.add_argument("--jobs", type=int, default=1, help="processes")
        experiment.add_argument("--no-report", dest="report", action="store_false", help="compute, write no page")
        experiment.add_argument("--quick", action="store_true", help="smaller grids and sizes: a few minutes")
    for name in ("traditional", "tabular", "deep", "longtail"):
        each[name].add_argument("--data-home", help="folder with the data files")
    for name in ("traditional", "tabular", "deep", "longtail"):
        each[name].add_argument("--method", action="append", help="only this method; repeatable")
    for name in ("tabular", "longtail"):
        each[name].add_argument("--set", dest="set_", action="append", help="only this set; repeatable")
    for name in ("deep", "longtail"):
        each[name].add_argument("--seeds", type=int, default=3)
    for name in ("deep", "runtime"):
        each[name].add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    each["runtime"].add_argument("--dataset", action="append", help="cifar100-imb, user-imb or inaturalist; repeatable")
    _add_tables(each["traditional"], each["tabular"])
    _add_networks(each["deep"], each["longtail"])
    return parser


def _add_tables(traditional: argparse.ArgumentParser, tabular: argparse.ArgumentParser) -> None:
    traditional.add_argument("--splits", default="authors", help="authors, or 80-10-10 without overlap")
    traditional.add_argument("--preprocessing", default="both", help="rows (authors'), standard or both")
    traditional.add_argument("--table", action="append", help="only this table; repeatable")
    tabular.add_argument("--tables", help="also the CSV files of this folder: header line, class last")
    tabular.add_argument("--autogluon", metavar="PYTHON", help="only the stack and the AutoGluon of this interpreter")
    tabular.add_argument("--budget", type=int, action="append", help="seconds for each of them (default: 30, 90, 300)")


def _add_networks(deep: argparse.ArgumentParser, longtail: argparse.ArgumentParser) -> None:
    deep.add_argument("--dataset", default="cifar100-imb", help="a feature set, kddcup99, or simulated-…")
    deep.add_argument("--features", help="your features: an .npz file with X and y")
    deep.add_argument("--tuned", action="store_true", help="each method with its best setting on the validation part")
    deep.add_argument("--settings", type=int, default=12, help="settings tried of each method")
    deep.add_argument("--tuning-seeds", type=int, default=2, help="seeds whose validation parts choose the setting")
    deep.add_argument("--summary", action="store_true", help="compute nothing; write the pages of all results in --out")
    longtail.add_argument("--part", choices=("validation", "test"), default="validation", help="rows to test on")
    longtail.add_argument("--epochs", type=int)
    longtail.add_argument("--batch", type=int)
    longtail.add_argument("--rate", type=float, help="learning rate")
    longtail.add_argument("--optimizer", choices=("sgd", "adam"))
    longtail.add_argument("--decay", type=float, help="weight decay")
    longtail.add_argument("--blocks", type=int, help="blocks in each stage of the ResNet: 5 is ResNet-32, 1 ResNet-8")


if __name__ == "__main__":
    main()
