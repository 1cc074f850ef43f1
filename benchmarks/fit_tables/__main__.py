"""``python -m benchmarks.fit_tables``: collect the tables, run the cells that are missing, write the page."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.fit_tables.cells import AUTOGLUON, BASELINES, DEFAULT_LIMIT, OURS, Cell, Store, compute
from benchmarks.fit_tables.collect import collect, read_index
from benchmarks.fit_tables.page import write_page
from benchmarks.fit_tables.process import on_cores
from benchmarks.fit_tables.tables import TABLES

MOST_ROWS_OF_RIVAL = 20_000
"""AutoGluon is run on large tables of no more rows."""


def main(
    folder: Annotated[Path, typer.Option(envvar="MAUC_FIT_TABLES", help="Folder of the tables.")] = Path("tables"),
    make: Annotated[bool, typer.Option("--collect", help="Make the tables in the folder, and stop.")] = False,
    out: Annotated[Path, typer.Option(help="Store of results; what it has is not run again.")] = Path("fit.jsonl"),
    tables: Annotated[str | None, typer.Option(help="Names of tables, separated by commas. Default: all.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds given to mauc fit, and to AutoGluon.")] = DEFAULT_LIMIT,
    load: Annotated[int, typer.Option(min=0, help="Busy processes beside mauc fit.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the split, and of mauc fit.")] = 0,
    rival_python: Annotated[str | None, typer.Option(help="Interpreter with AutoGluon, to run that too.")] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores of all runs.")] = 2,
    page: Annotated[Path | None, typer.Option(help="Page to write from the whole store.")] = None,
) -> None:
    """Compare mauc fit with scikit-learn's defaults on public tables."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as progress:
        if make:
            for name in progress.track(collect(folder), total=len(TABLES), description="collecting"):
                progress.console.print(name)
            return
        index, store = read_index(folder), Store(out)
        wanted = tables.split(",") if tables else list(index)
        unknown = [name for name in wanted if name not in index]
        if unknown:
            raise typer.BadParameter(f"no table {unknown[0]!r} in {folder}: choose among {', '.join(index)}")
        chosen = [name for name in index if name in wanted]
        cells = [Cell(name, method, seed=seed) for name in chosen for method in BASELINES]
        cells += [Cell(name, OURS, time_limit, load, seed) for name in chosen]
        if rival_python:
            some = [n for n in chosen if index[n]["large"] and index[n]["rows"] <= MOST_ROWS_OF_RIVAL]
            cells += [Cell(name, AUTOGLUON, time_limit, seed=seed) for name in some]
        on_cores(cores)
        task = progress.add_task("running", total=len(cells), completed=len(cells) - len(store.missing(cells)))
        for cell in store.missing(cells):
            progress.update(task, description=f"{cell.method} on {cell.table}")
            about = index[cell.table]
            place, keep = folder / about["file"], store.scores_of(cell)
            result = compute(cell, place, about["target"], keep, cores=cores, rival_python=rival_python)
            store.add(cell, result)
            score = f"MAUC {result['mauc']:.4f}" if "mauc" in result else result["failed"]
            progress.console.print(f"{cell.table}, {cell.method}: {score} in {result['seconds']:.1f} s")
            progress.advance(task)
    if page:
        write_page(store, index, page)


if __name__ == "__main__":
    typer.run(main)
