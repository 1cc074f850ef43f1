"""``mauc fit``: a table → a model file and a report on test rows."""

import shlex
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import TABLE, Dates, DropUnlabelled, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.files import REPORTS, check_writable
from mauc._cli.output import TextTable, current
from mauc._lazy import process_age
from mauc._tables.errors import Usage
from mauc._tables.text import Reading, display_path
from mauc._text import visible

REPORT = REPORTS / "index.html"


def fit(
    table: Annotated[Path, typer.Argument(readable=False, help=TABLE, show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="Column that holds the class of each row; required.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(readable=False, help="Model file to write.")] = Path("model.skops"),
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Seconds for the whole run: a deadline; default: 60, or 600 with --effort best.", show_default=False
        ),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            help="How much to train: quick, normal or best; default: normal, or quick if the limit allows less than 40 "
            "seconds per training.",
            show_default=False,
        ),
    ] = None,
    decide: Annotated[
        str,
        typer.Option(
            help="Goal of the predicted classes: balanced (balanced accuracy), accuracy, or a table such as costs.csv."
        ),
    ] = "balanced",
    time_column: Annotated[
        str | None, typer.Option(help="Test on the latest rows by this column; it is not a feature.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Keep all rows of a group, such as a patient, in training or all in test; not a feature."),
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="Leave this column out; can be repeated.")] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share of the rows to test on; default: 0.25.", show_default=False)
    ] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Test by cross-validation with this many folds.", show_default=False)
    ] = None,
    min_rows: Annotated[int, typer.Option(min=1, help="Leave out classes with fewer rows.")] = 1,
    drop_unlabelled: DropUnlabelled = False,
    drop_duplicates: Annotated[bool, typer.Option("--drop-duplicates", help="Use duplicate rows only once.")] = False,
    missing: Missing = None,
    dates: Dates = None,
    encoding: Encoding = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="After the test, fit again on all rows; default: if there are at most 10,000 training rows.",
            show_default=False,
        ),
    ] = None,
    row_records: Annotated[
        bool,
        typer.Option(
            "--row-records/--no-row-records",
            help="Save scores of single test rows and hashes of training rows; leave them out for personal data.",
        ),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random choices.")] = 0,
    importance: Annotated[
        bool, typer.Option("--importance/--no-importance", help="Compute permutation importance.")
    ] = True,
    report: Annotated[Path, typer.Option(readable=False, help="Report to write.")] = REPORT,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Train a stack of models on a table and test it.

    Writes the model and a report. Columns may hold numbers, categories, dates or text, with missing values. The models
    are trained and combined within --time-limit, on the training rows alone. After the test they are fitted again on
    all rows, if there are at most 10,000 training rows.
    """
    given = dict(locals())
    began = time.monotonic() - min(1.0, process_age())  # the start of Python counts
    from mauc._tables.model_file import check_clock
    from mauc._tables.options import Options
    from mauc._tables.parts import check_fits, find_files, target_missing
    from mauc._tables.saved_scores import scores_path

    if cv and holdout is not None:
        raise Usage("--cv tests on all rows in turn and --holdout on a share of them: leave one of them out")
    same = set(Options.__dataclass_fields__) - {"holdout", "drop", "time_limit", "effort"}
    options = Options(
        **{name: value for name, value in given.items() if name in same},
        drop=tuple(drop or ()),
        **Options.defaults(effort, time_limit, cv),
        holdout=0.25 if holdout is None else holdout,
    )
    how = Reading(tuple(missing or ()), encoding, sheet, separator, header)
    check_fits(table, "take a random sample of its rows, or train a linear model in Python with mauc.dask")
    if target is None:
        raise target_missing(find_files([table], "TABLE"), how, max_size)
    check_clock()
    scores = scores_path(out)
    files = {"model": out} | ({"scores": scores} if row_records else {}) | ({} if no_report else {"report": report})
    check_writable(out, "--out", "a model file", ["skops"], [table])
    if row_records and scores.parent.is_dir():
        check_writable(scores, "--out", "saved scores", ["npz"], [table, out])
    if not no_report:
        check_writable(report, "--report", "a page", ["html"], [table, out, scores])
    fitted = _train(table, options, max_size, how, began)
    _print_notes(fitted)
    fitted.save(out)
    if not no_report:
        fitted.report.save(report)
    _print_summary(fitted, files)


def _train(table: Path, options: Any, max_size: float, how: Any, began: float) -> Any:
    """Read the table, train and test."""
    from mauc._cli.progress import TrainingProgress
    from mauc._tables.fit import fit_data, read_data
    from mauc._tables.model_file import load_skops
    from mauc.ensemble.fitting import ctrl_c_stops
    from mauc.ensemble.workers import Workers
    from mauc.report.page import template

    output = current()
    # What writes the model and the report takes half a second to load: do it while models are trained.
    threading.Thread(target=lambda: (load_skops(), template()), daemon=True).start()

    def stopped() -> None:
        output.note("stopped: the best model so far is used; press Ctrl-C again to end without one")

    with Workers(options.n_workers) as workers:
        with output.working(f"reading {display_path(table)}"):
            data = read_data(table, options, max_size, how)
        with TrainingProgress(output, began + options.time_limit) as progress, ctrl_c_stops(workers, stopped):
            return fit_data(data, options, began, workers, progress)


def _print_notes(fitted: Any) -> None:
    """Print flags, and what could not be tested, on standard error."""
    output, found = current(), fitted.evaluation
    for text in fitted.flag_texts():
        output.note(text)
    flagged = [flag.column for flag in fitted.flags if flag.kind in ("counter", "target", "code", "leak")]
    if flagged:
        options = " ".join(f"--drop {shlex.quote(name)}" for name in flagged[:8])
        output.note(f"flagged columns are used; to leave them out add {options}")
    if found.n_untested:
        output.note(
            f"{found.n_untested:,} held-out rows are not tested: their class has no training row, or the test uses a "
            f"sample of the rows or classes ({len(found.judgement.labels):,} of {len(found.classes):,} classes)"
        )


def _print_summary(fitted: Any, files: dict[str, Path]) -> None:
    """Print the summary for people, or the JSON for programs."""
    from mauc._cli.summary import advice, as_json, headline, importance_table, sizes, worst_pairs

    output, found, options = current(), fitted.evaluation.judgement, fitted.options
    n_training = sum(fitted.training_rows.values())
    n_columns, _, kinds = fitted.columns.partition(": ")
    again = f", {fitted.fitted_on}" if fitted.fitted_on else ""
    output.say(
        f"{fitted.board.winner}: {n_training:,} training rows, {found.n_rows:,} test rows ({fitted.how})",
        f"{n_columns} columns: {kinds}\n",
        *headline(found, f"predicted classes chosen for {fitted.goal}"),
        "",
        *_models_compared(fitted),
        sizes(found, fitted.training_rows),
        worst_pairs(found),
        *importance_table(fitted.importance, fitted.importance_note),
        *advice(found),
        *(f"wrote {visible(file)}{again if name == 'model' else ''}" for name, file in files.items()),
    )
    output.result(
        {
            **as_json(found),
            "model": fitted.model.about,
            "tested_on": fitted.how,
            "fitted_on": fitted.evaluation.final.n_rows,
            "decide": options.decide,
            "leaderboard": asdict(fitted.board),
            "cut": list(fitted.cut),
            "cut_text": fitted.cut_text if fitted.cut else "",
            "columns": fitted.columns,
            "flags": [asdict(flag) for flag in fitted.flags],
            "importance": {"how": fitted.importance_note, "columns": [asdict(each) for each in fitted.importance]},
            "training_rows": fitted.training_rows,
            "files": files,
        }
    )


def _models_compared(fitted: Any) -> list[str | TextTable]:
    """Return the models side by side, how one was chosen, and what the time limit cut."""
    from mauc._cli.summary import comparison
    from mauc._tables.training import STACK

    board, found = fitted.board, fitted.evaluation.judgement
    chosen = f"Chosen on {board.chosen_by}: {board.winner}. The test rows played no part in the choice."
    if len(board.entries) == 2:  # the other is the class frequencies
        chosen = f"Only one model was trained: {board.winner}. Its validation score comes from {board.chosen_by}."
    if board.winner == STACK:
        chosen += " A single model replaces the stack only if it is clearly ahead on the validation rows."
    if fitted.options.cv:
        chosen = f"In each fold, a model is chosen on the training rows and tested. {chosen}"
    cut = [f"Cut: {fitted.cut_text}"] if fitted.cut else []
    return [comparison(found, () if fitted.options.cv else board.entries), chosen, *cut, ""]
