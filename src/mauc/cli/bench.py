"""``mauc bench``: the experiments of the paper, and ours."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._text import visible
from mauc.cli.app import App
from mauc.cli.files import check_folder
from mauc.cli.output import current
from mauc.tables.errors import Usage

__all__ = ["bench"]

bench = App(help="The experiments of the paper, and ours.", no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(help="Folder for the results; what is there is not computed again.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seeds = Annotated[int, typer.Option(min=1, help="Repetitions: split, initial weights and batches.")]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller grids and sizes: a few minutes.")]


@bench.command()
def acceleration(out: Out = Path("mauc-results/acceleration"), quick: Quick = False) -> None:
    """Loops over all pairs against the exact schemes, loss and gradient apart (the paper's acceleration figure)."""
    from mauc.experiments import acceleration as experiment
    from mauc.experiments.acceleration_report import write_report
    from mauc.experiments.store import Store

    store = Store(out / "cells")
    _run_cells(experiment.cells(quick=quick), store)
    _say(write_report(store, out, quick=quick))


@bench.command()
def generalization(out: Out = Path("mauc-results/generalization"), jobs: Jobs = 1, quick: Quick = False) -> None:
    """Gap between training and test risk over size and imbalance, and which samples close it."""
    from mauc.experiments import generalization as experiment
    from mauc.experiments.generalization_report import write_report
    from mauc.experiments.store import Store

    store = Store(out / "cells")
    _run_cells(experiment.cells(quick=quick), store, jobs=jobs)
    _say(write_report(store, out, quick=quick))


@bench.command()
def traditional(
    out: Out = Path("mauc-results/traditional"),
    data_home: Annotated[Path | None, typer.Option(help="Folder with the paper's tables.")] = None,
    splits: Annotated[str, typer.Option(help="authors, or 80-10-10 without overlap.")] = "authors",
    preprocessing: Annotated[str, typer.Option(help="rows (unit length, the authors'), standard, or both.")] = "both",
    table: Annotated[list[str] | None, typer.Option(help="Only these tables.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Only these methods.")] = None,
    n_splits: Annotated[int, typer.Option(min=1, max=15, help="How many of the fifteen splits.")] = 15,
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    """Nine tables, fifteen splits, all methods (the paper's Figures 1 and 2)."""
    from mauc._validation import check_choice
    from mauc.experiments.store import Store
    from mauc.experiments.traditional import run as experiment
    from mauc.experiments.traditional import stopping as stopping
    from mauc.experiments.traditional.report import write_report
    from mauc.experiments.tuning import PREPROCESSINGS

    try:
        check_choice("--splits", splits, experiment.PROTOCOLS)
        check_choice("--preprocessing", preprocessing, ("both", *PREPROCESSINGS))
        tables = [check_choice("--table", name, experiment.TABLES) for name in table or experiment.TABLES]
        known = [m.name for m in experiment.methods(tables[0])]
        only = [check_choice("--method", name, known) for name in method] if method else None
    except ValueError as error:
        raise Usage(str(error)) from None
    kinds = PREPROCESSINGS if preprocessing == "both" else (preprocessing,)
    store = Store(out / "cells")
    cells = experiment.cells(
        data_home, protocol=splits, preprocessings=kinds, tables=tables, n_splits=n_splits, quick=quick, only=only
    )
    for name in tables:
        experiment.parts_of(name, None if data_home is None else str(data_home), splits, kinds[0], 0)
    if "rows" in kinds and only is None and not quick:
        cells += stopping.cells(data_home, protocol=splits, tables=tables, n_splits=n_splits)
    _run_cells(cells, store, jobs=jobs)
    depth = "quick" if quick else "full"
    _say(write_report(store, out, protocol=splits, preprocessings=kinds, tables=tables, depth=depth))


@bench.command()
def deep(
    dataset: Annotated[
        str, typer.Option(help="cifar100-imb, user-imb, inaturalist, kddcup99, simulated-….")
    ] = "cifar100-imb",
    out: Out = Path("mauc-results/deep"),
    data_home: Annotated[Path | None, typer.Option(help="Folder with KDD Cup 99.")] = None,
    features: Annotated[Path | None, typer.Option(help="Your features: an .npz file with X and y.")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", "--methods", help="Only these methods.")] = None,
    seeds: Seeds = 3,
    device: Device = "auto",
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    """Deep networks with every method on one set (the paper's Tables 2, 3 and 4)."""
    from mauc.experiments.deep import data as deep_data
    from mauc.experiments.deep import run as experiment
    from mauc.experiments.deep.report import write_report
    from mauc.experiments.store import Store

    home, file = (None if path is None else str(path) for path in (data_home, features))
    n_seeds = 1 if quick else seeds
    try:
        cells = experiment.cells(
            dataset, data_home=home, features=file, methods=method, seeds=n_seeds, device=device, quick=quick
        )
        deep_data.load(dataset, home, file, quick)
    except ValueError as error:
        raise Usage(str(error)) from None
    store = Store(out / "cells")
    _run_cells(cells, store, jobs=jobs)
    _, name, place, *_ = cells[0].key
    _say(write_report(store, out, name, place, quick=quick))


@bench.command()
def runtime(
    out: Out = Path("mauc-results/runtime"),
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these of cifar100-imb, user-imb, inaturalist.")
    ] = None,
    device: Device = "auto",
    quick: Quick = False,
) -> None:
    """Seconds an epoch of the exact losses, of loops over class pairs, and of plain loops."""
    from mauc.experiments import runtime as experiment
    from mauc.experiments.runtime_report import write_report
    from mauc.experiments.store import Store

    try:
        cells = experiment.cells(sets=dataset, device=device, quick=quick)
    except ValueError as error:
        raise Usage(str(error)) from None
    store = Store(out / "cells")
    _run_cells(cells, store)
    _say(write_report(store, out, cells[0].key[1], quick=quick))


@bench.command()
def consistency(
    out: Out = Path("mauc-results/consistency"),
    seeds: Seeds = 3,
    device: Device = "cpu",
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    """A flexible network and more and more samples: which losses come to the Bayes MAUC."""
    from mauc.experiments import consistency as experiment
    from mauc.experiments.consistency_report import write_report
    from mauc.experiments.store import Store

    try:
        cells = experiment.cells(seeds=1 if quick else seeds, device=device, quick=quick)
    except ValueError as error:
        raise Usage(str(error)) from None
    store = Store(out / "cells")
    _run_cells(cells, store, jobs=jobs)
    _say(write_report(store, out, cells[0].key[1], quick=quick))


@bench.command()
def tabular(
    out: Out = Path("mauc-results/tabular"),
    data_home: Annotated[Path | None, typer.Option(help="Folder with the data files.")] = None,
    name: Annotated[list[str] | None, typer.Option("--set", help="Only these sets.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="Only these methods.")] = None,
    n_splits: Annotated[int | None, typer.Option(min=1, help="Splits of each set: 10, or 2 with --quick.")] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="Also the CSV files of this folder: a header line, the class last, texts are categories."),
    ] = None,
    openml: Annotated[bool, typer.Option("--openml", help="Also fifteen sets from OpenML, on line.")] = False,
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    """Real tables: single models, competitors and combinations, with ranks and tests."""
    from mauc._validation import check_choice
    from mauc.experiments.store import Store
    from mauc.experiments.tabular import run as experiment
    from mauc.experiments.tabular.data import check_unchanged, load_set, set_names
    from mauc.experiments.tabular.methods import entries
    from mauc.experiments.tabular.report import write_report

    try:
        known = set_names(openml=True, tables=tables)
        given = set_names(openml=openml, tables=tables, quick=quick)
        sets = [check_choice("--set", s, known) for s in name or given]
        names = [entry.name for entry in entries()]
        only = [check_choice("--method", m, names) for m in method] if method else None
    except ValueError as error:
        raise Usage(str(error)) from None
    home, folder = (None if path is None else str(path) for path in (data_home, tables))
    for s in sets:
        load_set(s, home, folder)
    store = Store(out / "cells")
    if tables is not None:
        check_unchanged(tables, sets, store.folder)
    splits = n_splits or (2 if quick else experiment.N_SPLITS)
    cells = experiment.cells(home, tables=folder, sets=sets, n_splits=splits, quick=quick, only=only)
    _run_cells(cells, store, jobs=jobs)
    _say(write_report(store, out, sets=sets, depth="quick" if quick else "full"))


def _run_cells(cells: Iterable[Any], store: Any, *, jobs: int = 1) -> None:
    from mauc.experiments.store import run_cells

    check_folder(store.folder.parent, "--out")
    run_cells(cells, store, jobs=jobs, console=current().progress_console())


def _say(files: list[Path]) -> None:
    output = current()
    output.say(*(f"wrote {visible(file)}" for file in files))
    output.result({"files": files})
