"""``mauc evaluate``: scores of any program → metrics, intervals, paired tests, report."""

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import DropUnlabelled, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.files import REPORTS, check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._tables.text import PREDICTED, Reading
from mauc._text import as_cell, of_cell, visible

REPORT = REPORTS / "evaluation.html"
GIB = 2.0**30
BY_SCORE = "predicted class: the one with the highest score"


def evaluate(
    scores: Annotated[
        list[Path],
        typer.Argument(
            readable=False,
            help="Scores, one column per class: a file, several Parquet files, or their folder; - is standard input.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str | None, typer.Option(help="Column that holds the true class of each row; required.", show_default=False)
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(readable=False, help="Scores of another model on the same rows; can be repeated."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(readable=False, help="Table with the target, if the scores do not have it.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Text before the class in the names of score columns; default: detected.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column of groups, such as the patient: intervals account for dependent rows."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Column of subgroups, such as the sex: each is compared with the other rows.")
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    drop_unlabelled: DropUnlabelled = False,
    missing: Missing = None,
    encoding: Encoding = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    report: Annotated[Path, typer.Option(readable=False, help="Report to write.")] = REPORT,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Evaluate the scores of any program, and compare models.

    Score columns are named after the classes, with a common prefix or none: "cat", "score:cat", "p_cat".
    """
    from mauc._cli.summary import as_json, comparison, headline, sizes, subgroups, worst_pairs
    from mauc._tables.parts import are_in_parts, find_parts, target_missing
    from mauc._tables.read import count_of, read_table
    from mauc._tables.scores import WholeTable
    from mauc._validation import listing
    from mauc.report import judge, render

    output = current()
    if not 0 < level < 1:
        raise Usage(f"--level must be a number strictly between 0 and 1, got {level:g}")
    parts, others = find_parts(scores, "SCORES"), [find_parts([path], "--compare") for path in compare or []]
    true_parts = None if truth is None else find_parts([truth], "--truth")
    how = Reading(tuple(missing or ()), encoding, sheet, separator, header)
    saved = _saved_scores(parts, target, others, true_parts, max_size)
    target = saved.target if saved else target
    if target is None:
        raise target_missing(true_parts or parts, how, max_size)
    tables = [parts, *others, *([] if true_parts is None else [true_parts])]
    if not no_report:
        check_writable(report, "--report", "a page", ["html"], [path for table in tables for path in table.paths])
    in_parts = saved is None and are_in_parts(tables, target)
    if (saved or in_parts) and (how != Reading() or drop_unlabelled or group or by):
        why = "is read in parts" if in_parts else "holds the scores, classes and groups of mauc fit"
        otherwise = ", or name one file that fits in memory" if in_parts else ""
        raise Usage(
            f"{parts.display} {why}, where --missing, --encoding, --separator, --header, --sheet, --drop-unlabelled, "
            f"--group and --by have no effect: leave them out{otherwise}"
        )
    decided = BY_SCORE
    with output.working(f"evaluating {parts.display}"):
        if saved:
            output.note(f"{parts.display} holds scores of {saved.about}; {saved.how}")
            models = {parts.name: saved.scores}
            decided = "predicted class: as mauc fit decided"
            found = judge(
                saved.labels,
                models,
                labels=saved.classes,
                y_pred=saved.predicted,
                groups=saved.groups,
                level=level,
            )
        elif in_parts:
            n_files = f"{count_of(len(parts.paths), 'file')}, " if parts.several else ""
            output.note(f"{parts.display} ({n_files}{parts.n_bytes / 1e6:.3g} MB) is read in parts")
            found = judge_parts(parts, others, true_parts, target, prefix, level=level)
        else:
            codes, names = [name for name in (group, by) if name], [target, as_cell(target), PREDICTED]

            def read(path: Path) -> Any:
                return WholeTable(path, read_table(path, codes=codes, max_size=max_size, names=names, how=how))

            found, decided = _judge_whole(
                read(scores[0]),
                [read(path) for path in compare or []],
                None if truth is None else read(truth),
                target,
                prefix,
                group=group,
                by=by,
                drop_unlabelled=drop_unlabelled,
                level=level,
            )
    files = {}
    if not no_report:
        details = [("scores", parts.display), ("target", target), *(("compared with", p.display) for p in others)]
        write_whole(report, render(found, title=f"{parts.name}: predicting {target}", details=details))
        files["report"] = report
    if found.absent:
        output.note(f"classes without a row are left out: {listing(found.absent)}")
    output.say(
        *headline(found, decided),
        "",
        *([comparison(found)] if found.tests else []),
        *subgroups(found),
        sizes(found),
        worst_pairs(found),
        *(f"wrote {visible(f)}" for f in files.values()),
    )
    output.result({**as_json(found), "decided": decided, "files": files})


def _saved_scores(parts: Any, target: str | None, others: list[Any], truth: Any, max_size: float) -> Any:
    """Return the scores that mauc fit saved beside a model, which include classes and target; None for other files."""
    from mauc._tables.saved_scores import is_saved_scores, read_saved_scores

    if parts.several or not is_saved_scores(parts.paths[0]):
        return None
    found = read_saved_scores(parts.paths[0], max_size)
    if target not in (None, found.target):
        raise Usage(f"--target {target!r} is not the target of {parts.display}, {found.target!r}: leave it out")
    if others or truth:
        raise Usage(
            f"{parts.display} holds the scores of a model and their classes: leave --truth out, and compare models "
            "with mauc compare a.skops b.skops"
        )
    return found


def _judge_whole(
    scores: Any,
    others: Sequence[Any],
    truth: Any,
    target: str,
    prefix: str | None,
    *,
    group: str | None,
    by: str | None,
    drop_unlabelled: bool,
    level: float,
) -> tuple[Any, str]:
    """Judge tables in memory; say how the first model predicts classes."""
    from mauc._tables.data import parse_groups
    from mauc._tables.flags import are_recurring_codes
    from mauc._tables.read import get_column, has_class, rows_with_lists
    from mauc._tables.saved_scores import TRAINED_ON, trained_note
    from mauc.report import judge

    tables, source = [scores, *others, *([truth] if truth else [])], truth or scores
    check_same_rows(scores, others, truth, target)
    if drop_unlabelled:
        labelled = has_class(source.rows[target_column(source, target)], target, source.path)
        for table in tables:
            table.rows = table.rows[labelled]
    keys = [name for name in (group, by) if name]
    judged, rows, classes, models = align(scores, others, truth, target, prefix, keys)
    scored = {name for _, columns in models.values() for name in columns.values()}
    check_same_cells(tables, {target_column(source, target), PREDICTED, TRAINED_ON, *scored})
    for table in tables:
        table.rows = table.rows[rows]
    labels = judged.labels[judged.codes]
    belonging: dict[str, Any] = {}
    for keyword, option, name in (("groups", "--group", group), ("subgroups", "--by", by)):
        if name is not None:
            table = scores if name in scores.names and name not in source.names else source
            values = get_column(table.rows, name, option, table.path)
            belonging[keyword] = parse_groups(values, name, table.path, option)
    features = [name for name in scores.names if name not in (target_column(scores, target), *keys)]
    for name in features if group is None else ():
        if not rows_with_lists(scores.rows[name]) and are_recurring_codes(name, scores.rows[name], labels):
            current().note(
                f"column {name!r} of {scores.display} holds codes that recur: if rows of one code depend on each "
                f"other, use --group {shlex.quote(name)}"
            )
    matrices = {name: table.scores([columns[c] for c in classes]) for name, (table, columns) in models.items()}
    predicted, decided = None, BY_SCORE
    if PREDICTED in features and PREDICTED not in next(iter(models.values()))[1].values():
        predicted = _predicted_classes(scores, classes)
        decided = BY_SCORE if predicted is None else f"predicted class: column {PREDICTED!r}"
    judgement = judge(labels, matrices, labels=np.array(classes), y_pred=predicted, **belonging, level=level)
    if TRAINED_ON in features:
        note = trained_note(int((scores.rows[TRAINED_ON] == "yes").sum()), scores.n_rows)
        judgement = replace(judgement, notes=(*([f"{note}."] if note else []), *judgement.notes))
    return judgement, decided


def _predicted_classes(scores: Any, classes: Sequence[str]) -> list[str] | None:
    """Return the class in the column ``predicted`` of each row; None if the column holds something else."""
    from mauc._tables.read import count_of

    def key(name: str) -> str:  # a reader may turn true into True, and 1 into 1.0
        return name.removesuffix(".0").casefold()

    spelling = {key(c): c for c in classes}
    known = {**(spelling if len(spelling) == len(classes) else {}), **{c: c for c in classes}}
    found = [of_cell(str(value)).strip() for value in scores.rows[PREDICTED]]
    found = [known.get(name, known.get(key(name), name)) for name in found]
    unknown = [name for name in found if name not in known]
    if len(unknown) == len(found):
        current().note(
            f"column {PREDICTED!r} of {scores.display} holds {found[0]!r}, which is not a class: accuracies use the "
            "class with the highest score"
        )
        return None
    if unknown:
        current().note(
            f"column {PREDICTED!r} of {scores.display} holds unknown classes in {count_of(len(unknown))}, such as "
            f"{unknown[0]!r}: they count as wrong"
        )
    return found


def judge_parts(
    scores: Any, others: Sequence[Any], truth: Any, target: str, prefix: str | None, *, level: float
) -> Any:
    """Judge tables in parts."""
    from mauc._tables.parts import ScoreColumns, available_memory
    from mauc._tables.scores import smallest_ints
    from mauc.report.judgement import judge_rows

    check_same_rows(scores, others, truth, target)
    needed = scores.n_rows * (8.0 + 1.0)  # a score and a class code of every row
    if needed > max(available_memory(), GIB):
        raise Failure(
            f"{scores.display} has {scores.n_rows} rows, which need {needed / GIB:.1f} GiB of memory, and "
            f"{available_memory() / GIB:.1f} are free: use a larger machine, or mauc.dask on several"
        )
    judged, rows, classes, models = align(scores, others, truth, target, prefix)
    counts = dict(zip(judged.labels.tolist(), np.bincount(judged.codes).tolist(), strict=True))
    present = sorted((c for c in classes if c in counts), key=lambda c: -counts[c])
    place = {c: k for k, c in enumerate(present)}
    codes = smallest_ints([place[c] for c in judged.labels.tolist()], len(present))[judged.codes]
    sizes = np.array([counts[c] for c in present])
    scored = {
        name: ScoreColumns(table, [columns[c] for c in present], codes, sizes, rows)
        for name, (table, columns) in models.items()
    }
    absent = [c for c in classes if c not in counts]
    return judge_rows(scored, present, absent, level=level)


def check_same_rows(scores: Any, others: Sequence[Any], truth: Any, target: str) -> None:
    """Check that the target is there, and that all tables have the same number of rows."""
    from mauc._tables.read import check_column

    source = truth or scores
    column = target_column(source, target)
    if truth and column not in truth.names and target_column(scores, target) in scores.names:
        raise Usage(
            f"--truth {truth.display} has no column {target!r}, but {scores.display} has: name the scores first, then "
            "--truth"
        )
    hint = "" if truth else "; if another table of the same rows has it, name that table with --truth"
    check_column(source.names, column, "--target", source.display, hint)
    for table in (scores, *others):
        if table.n_rows != source.n_rows:
            raise Failure(
                f"{table.display} has {table.n_rows} rows and {source.display} has {source.n_rows}: they must be of "
                "the same rows in the same order"
            )


def align(
    scores: Any, others: Sequence[Any], truth: Any, target: str, prefix: str | None, keys: Collection[str] = ()
) -> tuple[Any, Any, list[str], dict[str, tuple[Any, dict[str, str]]]]:
    """Return the class of each row to judge, a mask of these rows, the classes that have scores, and the models.

    A model is a table and the score column of each class. All tables are in memory, or all are read in parts; tables of
    different classes are refused. ``keys`` are columns that hold no scores, beside the target.
    """
    from mauc._tables.scores import as_in_columns, score_columns, scored_rows

    def classes_of(table: Any, scored: Any) -> Any:
        found = table.classes(target_column(table, target))
        return found.renamed(as_in_columns(found.labels.tolist(), scored.names, prefix))

    def score_names(table: Any) -> list[str]:
        return [name for name in table.names if name not in {target_column(table, target), *keys}]

    source, tables = truth or scores, (scores, *others)
    true = classes_of(source, scores)
    rows = scored_rows(true, score_names(scores), scores.display, prefix)
    judged = true if rows.all() else true.subset(rows)
    classes: list[str] = []
    models: dict[str, tuple[Any, dict[str, str]]] = {}
    for table in tables:
        if table is not scores and target_column(table, target) in table.names:
            theirs = classes_of(table, table)
            place = {label: k for k, label in enumerate(true.labels.tolist())}
            codes = np.array([place.get(label, -1) for label in theirs.labels.tolist()])[theirs.codes]
            differ = np.flatnonzero(codes != true.codes)
            if len(differ):
                raise Failure(
                    f"{table.display} has other classes in {target!r} than {source.display} (first: row "
                    f"{table.row_number(differ[0])}): paired tests need the same rows in the same order"
                )
        columns = score_columns(score_names(table), judged.labels.tolist(), table.display, prefix)
        classes = classes or list(columns)
        odd = sorted(columns.keys() ^ set(classes))
        if odd:
            raise Failure(
                f"only one of {table.display} and {scores.display} scores the class {odd[0]!r}: both must score the "
                "same classes"
            )
        name = table.display if any(table.name == each.name for each in tables if each is not table) else table.name
        if name in models:
            raise Usage(f"--compare {table.display} is given twice, or is the scores file itself: name another file")
        models[name] = table, columns
    return judged, rows, classes, models


def check_same_cells(tables: Sequence[Any], ignored: Collection[str]) -> None:
    """Refuse tables in memory whose common columns differ: their rows are others, or in another order.

    Numbers with fractions may differ: they may be scores of a class without a row.
    """
    from mauc._tables.read import rows_with_lists
    from mauc._tables.saved_scores import cell_hashes

    first: dict[str, Any] = {}
    for table in tables:
        for name in table.names:
            other = first.setdefault(name, table)
            pair = [each.rows[name] for each in (table, other)]
            if name in ignored or other is table or any(map(rows_with_lists, pair)):
                continue
            if any(values.dtype.kind == "f" and (values % 1 > 0).any() for values in pair):
                continue
            mine, theirs = (cell_hashes(values.to_frame())[name] for values in pair)
            differ = np.flatnonzero(mine != theirs)
            if len(differ):
                raise Failure(
                    f"{table.display} and {other.display} must have the same rows in the same order, got other cells "
                    f"in column {name!r} (first: row {table.row_number(differ[0])}): sort both files alike, or leave "
                    "the column out of one if it does not describe the rows"
                )


def target_column(table: Any, target: str) -> str:
    """Return the name of the target column, which ``mauc predict`` may have quoted."""
    return str(as_cell(target)) if target not in table.names and as_cell(target) in table.names else target
