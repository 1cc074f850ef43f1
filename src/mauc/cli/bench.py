"""``mauc bench``: the experiments of the paper, and ours. The options of each are here, the rest in its module."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc.cli.app import App
from mauc.cli.output import current
from mauc.experiments.registry import EXPERIMENTS, load
from mauc.tables.errors import Usage

__all__ = ["bench"]

bench = App(help="The experiments of the paper, and ours.", no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the results, mauc-results/NAME if none; what is there is not computed again."),
]
Data = Annotated[Path | None, typer.Option(help="Folder with the data files.")]
Methods = Annotated[list[str] | None, typer.Option("--method", "--methods", help="Only these methods.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seeds = Annotated[int, typer.Option(min=1, help="Repetitions: split, initial weights and batches.")]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller grids and sizes: a few minutes.")]


def _command(function: Callable[..., None]) -> None:
    bench.command(help=EXPERIMENTS[function.__name__].title)(function)


@_command
def acceleration(out: Out = None, quick: Quick = False) -> None:
    _run("acceleration", out, quick=quick)


@_command
def generalization(out: Out = None, jobs: Jobs = 1, quick: Quick = False) -> None:
    _run("generalization", out, jobs, quick=quick)


@_command
def traditional(
    out: Out = None,
    data_home: Data = None,
    splits: Annotated[str, typer.Option(help="authors, or 80-10-10 without overlap.")] = "authors",
    preprocessing: Annotated[str, typer.Option(help="rows (unit length, the authors'), standard, or both.")] = "both",
    table: Annotated[list[str] | None, typer.Option(help="Only these tables.")] = None,
    method: Methods = None,
    n_splits: Annotated[int, typer.Option(min=1, max=15, help="How many of the fifteen splits.")] = 15,
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    _run(
        "traditional",
        out,
        jobs,
        data_home=_text(data_home),
        protocol=splits,
        preprocessing=preprocessing,
        tables=table,
        methods=method,
        n_splits=n_splits,
        quick=quick,
    )


@_command
def deep(
    dataset: Annotated[
        str, typer.Option(help="cifar100-imb, user-imb, inaturalist, kddcup99, simulated-….")
    ] = "cifar100-imb",
    out: Out = None,
    data_home: Data = None,
    features: Annotated[Path | None, typer.Option(help="Your features: an .npz file with X and y.")] = None,
    method: Methods = None,
    seeds: Seeds = 3,
    device: Device = "auto",
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    _run(
        "deep",
        out,
        jobs,
        dataset=dataset,
        data_home=_text(data_home),
        features=_text(features),
        methods=method,
        seeds=1 if quick else seeds,
        device=device,
        quick=quick,
    )


@_command
def runtime(
    out: Out = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these of cifar100-imb, user-imb, inaturalist.")
    ] = None,
    device: Device = "auto",
    quick: Quick = False,
) -> None:
    _run("runtime", out, sets=dataset, device=device, quick=quick)


@_command
def consistency(
    out: Out = None, seeds: Seeds = 3, device: Device = "cpu", jobs: Jobs = 1, quick: Quick = False
) -> None:
    _run("consistency", out, jobs, seeds=1 if quick else seeds, device=device, quick=quick)


@_command
def tabular(
    out: Out = None,
    data_home: Data = None,
    name: Annotated[list[str] | None, typer.Option("--set", help="Only these sets.")] = None,
    method: Methods = None,
    n_splits: Annotated[int | None, typer.Option(min=1, help="Splits of each set: 10, or 2 with --quick.")] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="Also the CSV files of this folder: a header line, the class last, texts are categories."),
    ] = None,
    openml: Annotated[bool, typer.Option("--openml", help="Also fifteen sets from OpenML, on line.")] = False,
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None:
    _run(
        "tabular",
        out,
        jobs,
        data_home=_text(data_home),
        sets=name,
        methods=method,
        n_splits=n_splits,
        tables=_text(tables),
        openml=openml,
        quick=quick,
    )


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _run(name: str, out: Path | None, jobs: int = 1, **options: Any) -> None:
    output = current()
    try:
        experiment = load(name, **options)
    except ValueError as error:
        raise Usage(str(error)) from None
    files = experiment.run(out or Path("mauc-results") / name, jobs=jobs, console=output.progress_console())
    output.say(*(f"wrote {file}" for file in files))
    output.result({"files": files})
