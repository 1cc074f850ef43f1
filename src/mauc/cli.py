"""The command ``mauc``."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    help="Train and judge classifiers by multiclass AUC.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)
bench = typer.Typer(help="The experiments of the paper, and ours.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench, name="bench")

Out = Annotated[Path, typer.Option(help="Folder for the results; what is there is not computed again.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller grids and sizes: a few minutes.")]


@app.callback()
def _about() -> None:
    """Train and judge classifiers by multiclass AUC."""


@app.command()
def demo() -> None:
    """Judge a classifier on an imbalanced sample of the handwritten digits that come with scikit-learn."""
    from mauc.demo import run_demo

    run_demo()


@bench.command()
def acceleration(out: Out = Path("mauc-results/acceleration"), quick: Quick = False) -> None:
    """Loops over all pairs against the exact schemes, loss and gradient apart (the paper's acceleration figure)."""
    from mauc.bench import acceleration as experiment
    from mauc.bench.acceleration_report import write_report
    from mauc.bench.store import Store, run_cells

    store = Store(out / "cells")
    run_cells(experiment.cells(quick=quick), store)
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
    from mauc.bench import traditional as experiment
    from mauc.bench import traditional_stopping as stopping
    from mauc.bench.store import Store, run_cells
    from mauc.bench.traditional_report import write_report
    from mauc.bench.tuning import PREPROCESSINGS

    try:
        check_choice("--splits", splits, experiment.PROTOCOLS)
        check_choice("--preprocessing", preprocessing, ("both", *PREPROCESSINGS))
        tables = [check_choice("--table", name, experiment.TABLES) for name in table or experiment.TABLES]
        known = [m.name for m in experiment.methods(tables[0])]
        only = [check_choice("--method", name, known) for name in method] if method else None
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    kinds = PREPROCESSINGS if preprocessing == "both" else (preprocessing,)
    store = Store(out / "cells")
    cells = experiment.cells(
        data_home, protocol=splits, preprocessings=kinds, tables=tables, n_splits=n_splits, quick=quick, only=only
    )
    try:
        for name in tables:
            experiment.parts_of(name, None if data_home is None else str(data_home), splits, kinds[0], 0)
    except (OSError, ValueError) as error:
        typer.echo(f"mauc: {error}", err=True)
        raise typer.Exit(1) from None
    if "rows" in kinds and only is None and not quick:
        cells += stopping.cells(data_home, protocol=splits, tables=tables, n_splits=n_splits)
    run_cells(cells, store, jobs=jobs)
    depth = "quick" if quick else "full"
    _say(write_report(store, out, protocol=splits, preprocessings=kinds, tables=tables, depth=depth))


def _say(files: list[Path]) -> None:
    for file in files:
        typer.echo(f"wrote {file}")


def main() -> None:
    """Entry point of the command."""
    app()
