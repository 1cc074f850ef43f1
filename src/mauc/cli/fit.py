"""``mauc fit``: a table → a model file and a report on rows it has not seen."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._io import write_whole
from mauc._text import visible
from mauc.cli.files import REPORTS, check_ending, check_writable
from mauc.cli.options import TABLE, Dates, DropUnlabelled, Encoding, MaxSize, Missing, Sheet
from mauc.cli.output import current
from mauc.tables.errors import Failure, Usage

__all__ = ["fit"]

REPORT = REPORTS / "index.html"
HOLDOUT = 0.25


def fit(
    table: Annotated[Path, typer.Argument(readable=False, help=TABLE, show_default=False)],
    target: Annotated[
        str | None, typer.Option(help="Column that holds the class of each row; must be told.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(readable=False, help="Model file to write.")] = Path("model.skops"),
    surrogate: Annotated[
        str | None, typer.Option(help="Pair loss to train by; exponential unless told.", show_default=False)
    ] = None,
    auto: Annotated[
        bool, typer.Option("--auto", help="Train the stack of models alone, however long it takes.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(help="Train this one alone: linear, or mlp (needs torch).", show_default=False),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for the comparison of models; 60 unless told.", show_default=False)
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Margin of the loss; unless told, cross-validated if linear, 4 if mlp.")
    ] = None,
    log_loss: Annotated[
        float | None, typer.Option(help="Weight of the log-loss beside the pair loss.", show_default=False)
    ] = None,
    l2: Annotated[
        float | None, typer.Option(help="Penalty; unless told, cross-validated if linear, 1e-6 if mlp.")
    ] = None,
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
        float | None,
        typer.Option(help=f"Share of the rows to judge by; {HOLDOUT} unless told.", show_default=False),
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
        str | None, typer.Option(help="Address of a Dask scheduler; unless told, workers are started here.")
    ] = None,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Train on a table, judge on rows not trained on, write model and report.

    Columns may hold numbers, categories, dates or text, with gaps. Unless a model is named, four are compared within
    --time-limit, and the one written is the best on validation rows: the rows judged by choose nothing.
    """
    import numpy as np

    from mauc.cli.fitting import (
        Clock,
        check_cv,
        check_pair,
        compared,
        how_judged,
        importance_of,
        in_words,
        tell_doubts,
        without,
    )
    from mauc.cli.progress import watching
    from mauc.cli.summary import as_json, headline, sizes, worst_pairs
    from mauc.cli.summary import importance as of_columns
    from mauc.report import render
    from mauc.tables.doubts import column_doubts, repeated_rows, suspects
    from mauc.tables.judging import cross_validate, cv_folds, hold_out
    from mauc.tables.kept import KeptScores, fingerprints, place_of, write_kept
    from mauc.tables.model_file import TableModel, write_model
    from mauc.tables.models import Choice, make_classifier
    from mauc.tables.parts import check_fits, find_parts, no_target
    from mauc.tables.read import Reading
    from mauc.tables.source import shown
    from mauc.tables.training import Trainer

    output = current()
    clock = Clock(time_limit)
    one_model = auto or any(each is not None for each in (model, surrogate, alpha, l2, log_loss))
    choice = Choice(model or "linear", surrogate, auto, alpha, l2, seed, log_loss) if one_model else None
    if choice is not None:
        make_classifier(choice)
        if time_limit is not None:
            raise Usage("--time-limit is for the comparison of models, and one was named: leave one of them out")
    check_cv(cv, repeats, time_column, holdout, refit=refit)
    holdout = HOLDOUT if holdout is None else holdout
    if not 0 < holdout < 1:
        raise Usage(f"--holdout must be a number strictly between 0 and 1, got {holdout:g}")
    if time_column and group:
        raise Usage("--time-column and --group each say what to hold out: leave one of them out")
    parts, reading = find_parts([table], "TABLE"), Reading(tuple(missing or ()), encoding, sheet)
    if target is None:
        raise no_target(parts, reading, max_size)
    check_writable(out, "--out", parts.paths)
    check_ending(out, "--out", "a model file", "skops")
    if place_of(out).parent.is_dir():
        check_writable(place_of(out), "--out", (*parts.paths, out))
    if not no_report:
        check_writable(report, "--report", (*parts.paths, out, place_of(out)))
        check_ending(report, "--report", "a page", "html")
    if engine != "memory" or scheduler is not None:
        from mauc.cli.fit_dask import fit_on_dask

        unused = {
            "--time-column": time_column, "--group": group, "--min-rows": min_rows > 1, "--refit": refit,
            "--drop-unlabelled": drop_unlabelled, "--missing": missing, "--dates": dates, "--encoding": encoding,
            "--sheet": sheet, "--cv": cv, "--time-limit": time_limit, "--drop-suspects": drop_suspects,
            "--importance-pair": importance_pair,
        }  # fmt: skip
        given = [option for option, value in unused.items() if value]
        if engine != "dask":
            raise Usage(f"--engine must be memory or dask, and dask with --scheduler, got {engine!r}")
        if given:
            raise Usage(f"--engine dask has no use for {given[0]}: leave it out")
        linear = choice or Choice(seed=seed)
        fit_on_dask(parts, target, drop or [], linear, holdout, scheduler, out, None if no_report else report)
        return
    check_fits(parts)

    with output.working(f"reading {shown(table)}"):
        wanted = _Wanted(target, time_column, group, drop or [], min_rows, drop_unlabelled, dates)
        data = _read(table, wanted, max_size, reading)
        _check_no_singles(data.labels)
        folds = cv_folds(data.labels, data.groups, cv, repeats, seed) if cv else [[_split(data, holdout, seed)]]
        pairs = check_pair(importance_pair, data.labels)
        train, test = folds[0][0]
        doubts = column_doubts(data.features.iloc[train], data.labels[train], target, seed)
        prints = fingerprints(data.features)
        again = repeated_rows(data.features, train, test, but=suspects(doubts))
        if drop_suspects:
            kinds = without(suspects(doubts), data.kinds, data.path)
            data = replace(data, features=data.features[list(kinds)], kinds=kinds)
        doubts += again
    tell_doubts(doubts, dropped=drop_suspects)
    with watching(output, None if choice else clock.left) as watch:
        trainer = Trainer(data.features, data.labels, data.groups, data.times, choice, seed, watch)
        if cv:
            judged = cross_validate(trainer, folds, clock.for_training, watch.under)
        else:
            watch.does(f"training on {len(train)} rows")
            judged = hold_out(trainer, train, test, clock.for_training)
        found, final = judged.found, judged.final
        if judged.lost:
            output.note(f"{judged.lost} held-out rows are of classes without a training row, and are not judged")
        if importance or importance_pair:
            shuffled, how_shuffled = importance_of(judged, trainer, pairs, clock, watch)
        else:
            shuffled, how_shuffled = [], ""
        if refit:
            watch.under("on all rows, ")
            final = trainer.train(np.arange(len(data.labels)), clock.limit, None if choice else final.name)

    how = how_judged(cv, repeats, time_column, group)
    about = final.about
    write_model(out, TableModel(final.features, final.classifier, data.kinds, target, about))
    kept = KeptScores(
        about,
        target,
        how,
        len(data.labels),
        judged.rows,
        data.labels[judged.rows],
        judged.classes,
        judged.repeats,
        prints,
    )
    files = {"model": out, "scores": write_kept(out, kept)}
    board = judged.final.board
    in_training = data.labels if cv else data.labels[train]
    if not no_report:
        details = [
            ("table", str(shown(table))),
            ("target", target),
            ("model", about + (", trained again on all rows after judging" if refit else "")),
            *([("chosen by", board.chosen_by)] if board else []),
            ("training rows", str(len(in_training))),
            ("rows judged by", f"{len(judged.rows)} ({how})"),
            ("columns", str(len(data.kinds))),
            *([("left out", data.left_out)] if data.left_out else []),
        ]
        title = f"{target} of {shown(table).name}"
        # A page is handed on without its terminal: what makes the score doubtful stands beside it.
        doubted = replace(found, notes=(*found.notes, *in_words(doubts, dropped=drop_suspects)))
        page = render(doubted, title=title, details=details, importance=shuffled, how_shuffled=how_shuffled)
        write_whole(report, page)
        files["report"] = report
    training = {str(c): int((in_training == c).sum()) for c in judged.classes}
    output.say(
        f"{about}: {len(in_training)} rows to train on, {len(judged.rows)} to judge by ({how})\n",
        *headline(found),
        "",
        *compared(found, board, cv=bool(cv)),
        sizes(found, training),
        worst_pairs(found),
        *of_columns(shuffled, how_shuffled),
        *(f"wrote {visible(file)}" for file in files.values()),
    )
    output.result(
        {
            **as_json(found),
            "model": about,
            "judged_by": how,
            "leaderboard": board.to_json() if board else None,
            "doubts": [doubt.to_json() for doubt in doubts],
            "dropped": suspects(doubts) if drop_suspects else [],
            "importance": {"how": how_shuffled, "columns": [each.to_json() for each in shuffled]},
            "training_rows": training,
            "files": files,
        }
    )


@dataclass(frozen=True)
class _Wanted:
    """What the options say about columns and rows."""

    target: str
    time_column: str | None
    group: str | None
    drop: list[str]
    min_rows: int
    drop_unlabelled: bool
    dates: str | None


@dataclass(frozen=True)
class _Data:
    path: Path
    labels: Any
    features: Any
    kinds: dict[str, str]
    left_out: str
    """Classes that have too few rows, in words."""
    times: Any = None
    groups: Any = None


def _read(path: Path, wanted: _Wanted, max_size: float, how: Any) -> _Data:
    import numpy as np

    from mauc.tables.dates import check_order, with_iso_dates
    from mauc.tables.features import check_finite, check_single, kinds_of
    from mauc.tables.read import classes_of, column, labelled, read_table
    from mauc.tables.source import shown

    target, time_column, group = wanted.target, wanted.time_column, wanted.group
    drop, min_rows = wanted.drop, wanted.min_rows
    check_order(wanted.dates)
    table = read_table(path, codes=[group] if group else [], max_size=max_size, names=[target], how=how)
    path = shown(path)
    single = column(table, target, "--target", path).to_frame()
    check_single(single, path, "choose another --target")
    if wanted.drop_unlabelled:
        table = table[labelled(single[target], target, path)].reset_index(drop=True)
        single = table[[target]]
    labels = classes_of(single[target], target, path)
    others = {
        option: column(table, name, option, path)
        for option, name in (("--time-column", time_column), ("--group", group))
        if name
    }
    for option, values in others.items():
        check_single(values.to_frame(), path, f"choose another {option}")
    for name in drop:
        column(table, name, "--drop", path)
    names, counts = np.unique(labels, return_counts=True)
    kept = np.isin(labels, names[counts >= min_rows])
    if len(np.unique(labels[kept])) < 2:
        raise Failure(f"fewer than two classes have {min_rows} rows: lower --min-rows, or collect more rows")
    left_out = _too_rare(names[counts < min_rows].tolist(), int((~kept).sum()), min_rows)
    if left_out:
        current().note(f"left out: {left_out}")
    features = table.drop(columns=list({target, *drop, *(n for n in (time_column, group) if n)}))[kept]
    if features.shape[1] == 0:
        raise Failure(f"{path} has no column besides {target!r}: a model needs at least one to learn from")
    check_single(features, path, "spread them over columns, or leave the column out with --drop")
    check_finite(features, path)
    features, kinds = with_iso_dates(features.reset_index(drop=True), kinds_of(features), wanted.dates, path)
    return _Data(
        path,
        labels[kept],
        features,
        kinds,
        left_out,
        times=_times(others["--time-column"][kept], str(time_column), path, wanted.dates) if time_column else None,
        groups=_groups(others["--group"][kept], str(group), path) if group else None,
    )


def _too_rare(names: list[str], n_rows: int, min_rows: int) -> str:
    if not names:
        return ""
    which = ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
    classes = "1 class" if len(names) == 1 else f"{len(names)} classes"
    rows = "1 row" if n_rows == 1 else f"{n_rows} rows"
    return f"{classes} of fewer than {min_rows} rows ({rows} in all): {which}"


def _times(values: Any, name: str, path: Path, order: str | None) -> Any:
    """Numbers as they are, all else as dates; 01/02/2024 is refused where it may be either of two days."""
    import numpy as np
    import pandas as pd

    from mauc.tables.dates import as_iso, order_of

    without = f"column {name!r} of {path} has rows without a time: fill them in or drop them"
    if values.isna().any():
        raise Failure(without)
    found = order_of(values, order)
    if found == "open":
        raise Failure(
            f"column {name!r} of {path} holds dates such as {values.iloc[0]}, which could be either of two days: "
            "say which with --dates day-first or --dates month-first"
        )
    try:
        if values.dtype.kind in "iuf":
            times = values
        elif found == "month-first":
            times = pd.to_datetime(values, dayfirst=False, utc=True).astype("int64")
        else:
            turned = as_iso(values) if found == "day-first" else None
            times = pd.to_datetime(values if turned is None else turned, format="ISO8601", utc=True).astype("int64")
    except (ValueError, TypeError):
        raise Failure(
            f"column {name!r} of {path} holds neither numbers nor dates like 2024-03-31: write them so, "
            "or choose another --time-column"
        ) from None
    array = np.asarray(times, dtype=np.float64)
    if not np.isfinite(array).all():
        raise Failure(without)
    return array


def _groups(values: Any, name: str, path: Path) -> Any:
    missing = int(values.isna().sum())
    if missing:
        rows = "1 row" if missing == 1 else f"{missing} rows"
        raise Failure(
            f"column {name!r} of {path} has no group in {rows}: fill them in, drop them, or leave --group out"
        )
    return values.astype(str).to_numpy()


def _split(data: _Data, share: float, seed: int) -> Any:
    from mauc.tables.holdout import by_group, by_time, stratified

    if data.times is not None:
        return by_time(data.labels, data.times, share)
    if data.groups is not None:
        return by_group(data.labels, data.groups, share, seed)
    return stratified(data.labels, share, seed)


def _check_no_singles(labels: Any) -> None:
    import numpy as np

    names, counts = np.unique(labels, return_counts=True)
    single = names[counts == 1].tolist()
    if single:
        which = (
            f"class {single[0]!r} has" if len(single) == 1 else f"{len(single)} classes, such as {single[0]!r}, have"
        )
        raise Failure(
            f"{which} a single row, which cannot be both trained on and judged by: add rows, join classes, "
            "or leave such classes out with --min-rows 2"
        )
