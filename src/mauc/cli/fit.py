"""``mauc fit``: a table → a model file and a report on rows it has not seen."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mauc._archive import MAX_SIZE
from mauc.cli.files import REPORTS, check_ending, check_writable
from mauc.cli.options import TABLE, Dates, DropUnlabelled, Encoding, MaxSize, Missing, Sheet
from mauc.tables.errors import Usage

__all__ = ["fit"]

REPORT = REPORTS / "index.html"


def fit(
    table: Annotated[Path, typer.Argument(readable=False, help=TABLE, show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="Column that holds the class of each row; required.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(readable=False, help="Model file to write.")] = Path("model.skops"),
    time_limit: Annotated[float, typer.Option(help="Seconds for the whole run: a deadline.")] = 60.0,
    effort: Annotated[str, typer.Option(help="How much to train: quick, normal or best.")] = "normal",
    decide: Annotated[
        str, typer.Option(help="What decisions are chosen for: balanced, accuracy, or a table such as costs.csv.")
    ] = "balanced",
    model: Annotated[
        str | None, typer.Option(help="Train this one alone in place of the stack: linear.", show_default=False)
    ] = None,
    surrogate: Annotated[
        str | None, typer.Option(help="Pair loss of the linear model; default: exponential.", show_default=False)
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Margin of its loss; default: cross-validated.", show_default=False)
    ] = None,
    log_loss: Annotated[
        str | None, typer.Option(help="Weight of the log-loss beside it, or only.", show_default=False)
    ] = None,
    l2: Annotated[float | None, typer.Option(help="Its penalty; default: cross-validated.", show_default=False)] = None,
    time_column: Annotated[
        str | None, typer.Option(help="Hold out the latest rows by this column, which is no feature then.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Keep rows of one group on one side; the column is no feature then.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Leave this column out, such as a row number.")] = None,
    drop_suspects: Annotated[
        bool, typer.Option("--drop-suspects", help="Leave out the columns that raise doubts, as a row number does.")
    ] = False,
    holdout: Annotated[
        float | None, typer.Option(help="Share of the rows to judge by; default: 0.25.", show_default=False)
    ] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Judge by cross-validation in so many folds.", show_default=False)
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often to cross-validate, by other folds.")] = 1,
    min_rows: Annotated[int, typer.Option(min=1, help="Leave out classes with fewer rows.")] = 1,
    drop_unlabelled: DropUnlabelled = False,
    missing: Missing = None,
    dates: Dates = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    refit: Annotated[bool, typer.Option("--refit", help="After judging, train again on all rows.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of all random choices.")] = 0,
    importance: Annotated[
        bool, typer.Option("--importance/--no-importance", help="Shuffle each column to see what it is worth.")
    ] = True,
    importance_pair: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Two classes: what each column is worth to tell them apart.", show_default=False),
    ] = None,
    report: Annotated[Path, typer.Option(readable=False, help="Report to write.")] = REPORT,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    engine: Annotated[
        str, typer.Option(help="memory, or dask: the linear model on a table in parts, or too large for memory.")
    ] = "memory",
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler; default: workers are started here.")
    ] = None,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Train on a table, judge on rows not trained on, write model and report.

    Columns may hold numbers, categories, dates or text, with gaps. A stack of models is trained within --time-limit;
    what is written is chosen by training rows that were held out: the test rows choose nothing.
    """
    began = time.monotonic()
    from mauc.cli.fitting import check_together, fit_and_write
    from mauc.tables.data import Wanted
    from mauc.tables.fit import Options
    from mauc.tables.models import Choice
    from mauc.tables.parts import find_parts, no_target
    from mauc.tables.read import Reading

    named = any(each is not None for each in (model, surrogate, alpha, l2, log_loss))
    choice = Choice(model or "linear", surrogate, alpha, l2, seed, log_loss) if named else None
    check_together(cv, repeats, time_column, group, holdout, refit=refit)
    pairs = (importance_pair,) if importance_pair else ()
    options = Options(
        time_limit, cast(Any, effort), 0.25 if holdout is None else holdout, cv, repeats, seed, decide, drop_suspects,
        refit, importance, pairs, choice,
    )  # fmt: skip
    parts, reading = find_parts([table], "TABLE"), Reading(tuple(missing or ()), encoding, sheet)
    if target is None:
        raise no_target(parts, reading, max_size)
    places = Places(out, None if no_report else report)
    places.check(parts.paths)
    if engine != "memory" or scheduler is not None:
        unused = {
            "--time-column": time_column, "--group": group, "--min-rows": min_rows > 1, "--refit": refit,
            "--drop-unlabelled": drop_unlabelled, "--missing": missing, "--dates": dates, "--encoding": encoding,
            "--sheet": sheet, "--cv": cv, "--drop-suspects": drop_suspects, "--importance-pair": importance_pair,
        }  # fmt: skip
        _on_dask(engine, unused, parts, target, drop or [], options, scheduler, places)
        return
    wanted = Wanted(target, time_column, group, tuple(drop or ()), min_rows, drop_unlabelled, dates)
    fit_and_write(table, parts, wanted, reading, max_size, options, places, began)


@dataclass(frozen=True)
class Places:
    """Where to write."""

    model: Path
    report: Path | None

    def check(self, tables: Any) -> None:
        """All can be written, and none is one of the tables."""
        from mauc.tables.kept import place_of

        check_writable(self.model, "--out", tables)
        check_ending(self.model, "--out", "a model file", "skops")
        scores = place_of(self.model)
        if scores.parent.is_dir():
            check_writable(scores, "--out", (*tables, self.model))
        if self.report is not None:
            check_writable(self.report, "--report", (*tables, self.model, scores))
            check_ending(self.report, "--report", "a page", "html")


def _on_dask(
    engine: str,
    unused: dict[str, Any],
    parts: Any,
    target: str,
    drop: list[str],
    options: Any,
    scheduler: str | None,
    places: Places,
) -> None:
    """The linear model on a table in parts."""
    from mauc.cli.fit_dask import fit_on_dask
    from mauc.tables.models import Choice

    given = [option for option, value in unused.items() if value]
    if engine != "dask":
        raise Usage(f"--engine must be memory or dask, and dask with --scheduler, got {engine!r}")
    if given:
        raise Usage(f"--engine dask has no use for {given[0]}: leave it out")
    linear = options.choice or Choice(seed=options.seed)
    fit_on_dask(parts, target, drop, linear, options.holdout, scheduler, places.model, places.report)
