"""``mauc fit``: a table → a model file and a report on rows it has not seen."""

import time
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.files import REPORTS
from mauc._cli.options import TABLE, Dates, DropUnlabelled, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._tables.errors import Usage

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
        float | None, typer.Option(help="Weight of the log-loss beside it.", show_default=False)
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
        bool, typer.Option("--drop-suspects", help="Leave out the columns that are flagged, as a row number is.")
    ] = False,
    holdout: Annotated[
        float | None, typer.Option(help="Share of the rows to hold out for judging; default: 0.25.", show_default=False)
    ] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Judge by cross-validation in so many folds.", show_default=False)
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often to cross-validate, by other folds.")] = 1,
    min_rows: Annotated[int, typer.Option(min=1, help="Leave out classes with fewer rows.")] = 1,
    drop_unlabelled: DropUnlabelled = False,
    drop_duplicates: Annotated[
        bool, typer.Option("--drop-duplicates", help="Take rows that are alike in every column once each.")
    ] = False,
    missing: Missing = None,
    dates: Dates = None,
    encoding: Encoding = None,
    separator: Separator = None,
    header: Header = None,
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
    given = dict(locals())
    began = time.monotonic()
    from mauc._cli.fitting import Job
    from mauc._tables.data import Wanted
    from mauc._tables.fit import Options
    from mauc._tables.layout import check_separator
    from mauc._tables.models import Choice
    from mauc._tables.parts import find_parts
    from mauc._tables.text import Reading

    _check_together(given)
    named = any(each is not None for each in (model, surrogate, alpha, l2, log_loss))
    options = Options(
        time_limit=time_limit,
        effort=cast(Any, effort),
        holdout=0.25 if holdout is None else holdout,
        cv=cv,
        repeats=repeats,
        seed=seed,
        decide=decide,
        drop_suspects=drop_suspects,
        refit=refit,
        importance=importance,
        importance_pairs=(importance_pair,) if importance_pair else (),
        choice=Choice(model or "linear", surrogate, alpha, l2, seed, log_loss) if named else None,
    )
    job = Job(
        table=table,
        parts=find_parts([table], "TABLE"),
        wanted=Wanted(
            target or "", time_column, group, tuple(drop or ()), min_rows, drop_unlabelled, dates, drop_duplicates
        ),
        reading=Reading(tuple(missing or ()), encoding, sheet, check_separator(separator), header),
        max_size=max_size,
        options=options,
        model=out,
        report=None if no_report else report,
        began=began,
    )
    job.check()
    if engine != "memory" or scheduler is not None:
        _on_dask(job, given)
        return
    job.run()


def _check_together(given: dict[str, Any]) -> None:
    """Options that contradict one another."""
    cv = given["cv"]
    if given["time_column"] and given["group"]:
        raise Usage("--time-column and --group each say what to hold out: leave one of them out")
    if cv and given["time_column"]:
        raise Usage("--cv holds out any rows and --time-column the latest: leave one of them out")
    if cv and given["holdout"] is not None:
        raise Usage("--cv judges by all rows, in turns, and --holdout by a share of them: leave one of them out")
    if cv and given["refit"]:
        raise Usage("--cv trains on all rows after judging, as --refit does: leave --refit out")
    if given["repeats"] > 1 and not cv:
        raise Usage("--repeats says how often to cross-validate: add --cv 5, or leave it out")


def _on_dask(job: Any, given: dict[str, Any]) -> None:
    """The linear model on a table in parts; it takes some of the options."""
    from mauc._cli.fit_dask import fit_on_dask
    from mauc._tables.models import Choice

    if given["engine"] != "dask":
        raise Usage(f"--engine must be memory or dask, and dask with --scheduler, got {given['engine']!r}")
    unused = [
        "time_column", "group", "refit", "drop_unlabelled", "missing", "dates", "encoding", "separator",
        "drop_duplicates", "sheet", "cv", "drop_suspects", "importance_pair",
    ]  # fmt: skip
    told = [name for name in unused if given[name]] + [name for name in ("header",) if given[name] is not None]
    told += ["min_rows"] if given["min_rows"] > 1 else []
    if told:
        raise Usage(f"--engine dask has no use for --{told[0].replace('_', '-')}: leave it out")
    options = job.options
    linear = options.choice or Choice(seed=options.seed)
    drop = list(job.wanted.drop)
    fit_on_dask(job.parts, job.wanted.target, drop, linear, options.holdout, given["scheduler"], job.model, job.report)
