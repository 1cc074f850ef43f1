"""``mauc bench``: the experiments of the paper, and ours.

A function here declares the options of the experiment of its name; they are passed on by name, so there is no body.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._text import visible
from mauc.cli.app import App
from mauc.cli.files import check_folder
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
Method = Annotated[list[str] | None, typer.Option("--method", "--methods", help="Only these methods.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seeds = Annotated[int, typer.Option(min=1, help="Repetitions: split, initial weights and batches.")]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller grids and sizes: a few minutes.")]


def _command(declared: Callable[..., None]) -> Callable[..., None]:
    name = declared.__name__

    def run(out: Path | None, jobs: int = 1, **options: Any) -> None:
        output = current()
        try:
            experiment = load(name, **{k: str(v) if isinstance(v, Path) else v for k, v in options.items()})
        except ValueError as error:
            raise Usage(str(error)) from None
        folder = out or Path("mauc-results") / name
        check_folder(folder, "--out")
        files = experiment.run(folder, jobs=jobs, console=output.progress_console())
        output.say(*(f"wrote {visible(file)}" for file in files))
        output.result({"files": files})

    run.__name__, run.__signature__ = name, inspect.signature(declared)  # type: ignore[attr-defined]
    bench.command(help=EXPERIMENTS[name][0])(run)
    return run


@_command
def acceleration(out: Out = None, quick: Quick = False) -> None: ...


@_command
def generalization(out: Out = None, jobs: Jobs = 1, quick: Quick = False) -> None: ...


@_command
def traditional(
    out: Out = None,
    data_home: Data = None,
    splits: Annotated[str, typer.Option(help="authors, or 80-10-10 without overlap.")] = "authors",
    preprocessing: Annotated[str, typer.Option(help="rows (unit length, the authors'), standard, or both.")] = "both",
    table: Annotated[list[str] | None, typer.Option(help="Only these tables.")] = None,
    method: Method = None,
    n_splits: Annotated[int, typer.Option(min=1, max=15, help="How many of the fifteen splits.")] = 15,
    floor: Annotated[float, typer.Option(min=0, max=100, help="Figure 2 leaves out AUC × 100 below; 0: all.")] = 70.0,
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None: ...


@_command
def deep(
    dataset: Annotated[
        str,
        typer.Option(
            help="cifar100-imb, user-imb, inaturalist, kddcup99, cifar100-imb-32px, caltech101, flowers102, "
            "ham10000-part, simulated-…."
        ),
    ] = "cifar100-imb",
    out: Out = None,
    data_home: Data = None,
    features: Annotated[Path | None, typer.Option(help="Your features: an .npz file with X and y.")] = None,
    method: Method = None,
    tuned: Annotated[bool, typer.Option("--tuned", help="Each method with its best setting on validation.")] = False,
    settings: Annotated[int, typer.Option(min=1, max=18, help="Settings tried of each method.")] = 12,
    tuning_seeds: Annotated[int, typer.Option(min=1, help="Seeds whose validation parts choose the setting.")] = 2,
    seeds: Seeds = 3,
    device: Device = "auto",
    jobs: Jobs = 1,
    minutes: Annotated[float | None, typer.Option(min=0.0, help="Begin no fit after so many minutes.")] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="Compute nothing: pages of all results in --out, and one over all sets.")
    ] = False,
    quick: Quick = False,
) -> None: ...


@_command
def runtime(
    out: Out = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only these of cifar100-imb, user-imb, inaturalist.")
    ] = None,
    device: Device = "auto",
    quick: Quick = False,
) -> None: ...


@_command
def consistency(
    out: Out = None, seeds: Seeds = 3, device: Device = "cpu", jobs: Jobs = 1, quick: Quick = False
) -> None: ...


@_command
def tabular(
    out: Out = None,
    data_home: Data = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Only these sets.")] = None,
    method: Method = None,
    n_splits: Annotated[int | None, typer.Option(min=1, help="Splits of each set: 10, or 2 with --quick.")] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="Also the CSV files of this folder: a header line, the class last, texts are categories."),
    ] = None,
    openml: Annotated[bool, typer.Option("--openml", help="Also fifteen sets from OpenML, on line.")] = False,
    against: Annotated[
        list[str] | None, typer.Option(help="autogluon or flaml: the stack against these libraries, and nothing else.")
    ] = None,
    budget: Annotated[list[int] | None, typer.Option(min=1, help="Seconds for each of them: 30, 90 and 300.")] = None,
    cores: Annotated[int, typer.Option(min=1, help="Cores for each of them.")] = 1,
    rival_python: Annotated[
        Path | None, typer.Option(help="Python of the environment that has them; this one if none.")
    ] = None,
    jobs: Jobs = 1,
    quick: Quick = False,
) -> None: ...
