"""``mauc evaluate``: scores of any program → metrics, intervals, paired tests, report."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import DropUnlabelled, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.files import REPORTS, check_ending, check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._text import as_cell, visible

REPORT = REPORTS / "evaluation.html"
GIB = 2.0**30
NAME_TRUTH = "; if another table of the same rows has it, name that table with --truth"


def evaluate(
    scores: Annotated[
        list[Path],
        typer.Argument(
            readable=False,
            help="Scores, one column per class: a file, the parts of one, or their folder; - is standard input.",
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
    memory: Annotated[
        float, typer.Option(min=0.5, help="Most GiB of memory to use for tables that are read in parts.")
    ] = 2.0,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Evaluate the scores of any program, and compare models.

    Score columns have the names of the classes, with the same text before each or none: "cat", "score:cat", "p_cat".
    """
    from mauc._cli.summary import as_json, comparison, headline, sizes, subgroups, worst_pairs
    from mauc._tables.parts import find_parts, target_missing
    from mauc._tables.text import Reading, check_separator
    from mauc.report import judge, render

    output = current()
    if not 0 < level < 1:
        raise Usage(f"--level must be a number strictly between 0 and 1, got {level:g}")
    parts, others = find_parts(scores, "SCORES"), [find_parts([path], "--compare") for path in compare or []]
    true_parts = None if truth is None else find_parts([truth], "--truth")
    how = Reading(tuple(missing or ()), encoding, sheet, check_separator(separator), header)
    saved = _saved_scores(parts, target, others, true_parts, max_size)
    target = saved.target if saved else target
    if target is None:
        raise target_missing(true_parts or parts, how, max_size)
    tables = [parts, *others, *([] if true_parts is None else [true_parts])]
    if not no_report:
        check_writable(report, "--report", [path for table in tables for path in table.paths])
        check_ending(report, "--report", "a page", "html")
    streams = saved is None and _streams(tables)
    if (saved or streams) and (how != Reading() or drop_unlabelled or group or by):
        why = "is read in parts" if streams else "holds the scores, classes and groups of mauc fit"
        otherwise = ", or name one file that fits in memory" if streams else ""
        raise Usage(
            f"{parts.display} {why}, where --missing, --encoding, --separator, --header, --sheet, --drop-unlabelled, "
            f"--group and --by have no effect: leave them out{otherwise}"
        )
    if saved:
        output.note(f"{parts.display} holds scores of {saved.about}; {saved.how}")
        found = judge(saved.labels, {parts.name: saved.scores}, labels=saved.classes, groups=saved.groups, level=level)
    elif streams:
        n_files = f"{len(parts.paths)} files, " if parts.several else ""
        output.note(f"{parts.display} ({n_files}{parts.n_bytes / 1e6:.3g} MB) is read in parts")
        with output.working(f"evaluating {parts.display}"):
            found = judge_parts(parts, target, others, true_parts, prefix, level=level, memory=memory)
    else:
        with output.working(f"evaluating {parts.display}"):
            found = _judge_whole(
                scores[0],
                compare or [],
                truth,
                target=target,
                group=group,
                by=by,
                prefix=prefix,
                drop_unlabelled=drop_unlabelled,
                level=level,
                max_size=max_size,
                how=how,
            )
    files = {}
    if not no_report:
        details = [("scores", parts.display), ("target", target), *(("compared with", p.display) for p in others)]
        write_whole(report, render(found, title=f"{parts.name}: predicting {target}", details=details))
        files["report"] = report
    if found.absent:
        output.note(f"classes without a row are left out: {', '.join(map(visible, found.absent[:8]))}")
    output.say(
        *headline(found),
        "",
        *([comparison(found)] if found.tests else []),
        *subgroups(found),
        sizes(found),
        worst_pairs(found),
        *(f"wrote {visible(f)}" for f in files.values()),
    )
    output.result({**as_json(found), "files": files})


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


def _streams(tables: list[Any]) -> bool:
    """Return whether to read the tables in parts: if one of them is several files, or does not fit in memory."""
    unfit = [table for table in tables if table.format not in ("csv", "parquet")]
    if any(table.several for table in tables):
        if unfit and all(path.exists() for path in unfit[0].paths):
            raise Failure(f"{unfit[0].display} cannot be read in parts: save it as CSV or Parquet")
        return True
    # A workbook that is too large is refused by its reader.
    return not unfit and not all(table.fits() for table in tables)


def _judge_whole(
    path: Path,
    others: list[Path],
    truth: Path | None,
    *,
    target: str,
    group: str | None,
    by: str | None,
    prefix: str | None,
    drop_unlabelled: bool,
    level: float,
    max_size: float,
    how: Any,
) -> Any:
    """Judge tables that fit in memory."""
    import numpy as np

    from mauc._tables.columns import check_single
    from mauc._tables.data import parse_groups
    from mauc._tables.flags import are_recurring_codes
    from mauc._tables.read import class_labels, get_column, has_class, read_table
    from mauc._tables.saved_scores import TRAINED_ON, trained_note
    from mauc._tables.scores import as_in_columns, scored_rows, scores_in
    from mauc._tables.text import display_path
    from mauc.report import judge

    keys = [name for name in (target, group, by) if name]

    def read(path: Path) -> Any:
        """Read a table; restore the name of the target if ``mauc predict`` had to quote it."""
        table = read_table(path, codes=keys[1:], max_size=max_size, names=[target, as_cell(target)], how=how)
        if target not in table.columns:
            table = table.rename(columns={as_cell(target): target})
        check_single(table[[n for n in table.columns if n == target]], path, "choose another --target")
        return table

    def without_keys(table: Any) -> Any:
        """Return the columns that may hold scores."""
        return table.drop(columns=keys, errors="ignore")

    table = read(path)
    path = display_path(path)
    true_path, true_table = (path, table) if truth is None else (display_path(truth), read(truth))
    if truth and target not in true_table.columns and target in table.columns:
        raise Usage(f"--truth {truth} has no column {target!r}, but {path} has: name the scores first, then --truth")
    true_classes = get_column(true_table, target, "--target", true_path, "" if truth else NAME_TRUTH)
    _check_same_rows(str(path), len(table), str(true_path), len(true_classes))
    used = np.ones(len(table), dtype=bool)
    if drop_unlabelled:
        used = has_class(true_classes, target, true_path).copy()
    labels = as_in_columns(class_labels(true_classes[used], target, true_path, as_named=True), table, prefix)
    names = [str(name) for name in without_keys(table).columns]
    scored = scored_rows(names, *np.unique(labels, return_inverse=True), path, prefix)
    used[used], labels = scored, labels[scored]
    belonging: dict[str, Any] = {}
    for keyword, option, name in (("groups", "--group", group), ("subgroups", "--by", by)):
        if name is not None:
            in_scores = name not in true_table.columns and name in table.columns
            source, columns = (path, table) if in_scores else (true_path, true_table)
            values = get_column(columns, name, option, source)[used]
            belonging[keyword] = parse_groups(values, name, source, option)
    table = table[used].reset_index(drop=True)
    for name in without_keys(table).columns if group is None else ():
        if are_recurring_codes(name, table[name], labels):
            current().note(
                f"column {name!r} of {path} holds codes that recur: if rows of one code depend on each other, use "
                f"--group {name}"
            )
    note = ""
    if TRAINED_ON in table.columns and target != TRAINED_ON:
        note = trained_note(int((table[TRAINED_ON] == "yes").sum()), len(table))
    classes, first = scores_in(without_keys(table), labels, path, prefix)
    models = {path.name if path.name not in {p.name for p in others} else str(path): first}
    for other in others:
        second = read(other)
        _check_same_rows(str(other), len(second), str(path), len(used))
        second = second[used].reset_index(drop=True)
        if target in second.columns:
            theirs = as_in_columns(class_labels(second[target], target, other, as_named=True), second, prefix)
            _check_same_classes(np.flatnonzero(used)[theirs != labels], str(other), str(true_path), target)
        their_classes, values = scores_in(without_keys(second), labels, other, prefix)
        _check_same_columns(their_classes, classes, str(other), str(path))
        name = other.name if other.name not in models else str(other)
        _check_new_name(name, models, str(other))
        models[name] = values[:, [their_classes.index(c) for c in classes]]
    judgement = judge(labels, models, labels=np.array(classes), **belonging, level=level)
    return replace(judgement, notes=(f"{note}.", *judgement.notes)) if note else judgement


def judge_parts(
    scores: Any, target: str, others: Sequence[Any], truth: Any, prefix: str | None, *, level: float, memory: float
) -> Any:
    """Judge tables in parts within ``memory`` GiB; the numbers equal those of ``mauc.report.judge`` on whole tables."""
    import numpy as np
    import pandas as pd

    from mauc._tables.parts import ScoreColumns, read_target, smallest_ints
    from mauc._tables.scores import as_in_columns, score_columns, scored_rows
    from mauc.report.judgement import judge_rows

    def classes_of(parts: Any, otherwise: str = "") -> Any:
        found = read_target(parts, target_name(parts, target, otherwise))
        columns = pd.DataFrame(columns=(parts if parts is not truth else scores).names)
        return found.renamed(as_in_columns(found.labels, columns, prefix))

    def score_names(parts: Any) -> list[str]:
        hidden = target if target in parts.names else as_cell(target)
        return [name for name in parts.names if name != hidden]

    source = scores if truth is None else truth
    all_true = classes_of(source, "" if truth else NAME_TRUTH)
    _check_memory(len(all_true.codes), memory, scores.display)
    rows = scored_rows(score_names(scores), all_true.labels.tolist(), all_true.codes, scores.display, prefix)
    true = all_true if rows.all() else all_true.subset(rows)
    columns = score_columns(score_names(scores), true.labels.tolist(), scores.display, prefix)
    classes = list(columns)
    column_of = np.array([classes.index(label) for label in true.labels.tolist()])
    counts = np.bincount(column_of[true.codes], minlength=len(classes))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    place = np.zeros(len(classes), dtype=np.int64)
    place[order] = np.arange(len(order))
    codes = smallest_ints(place[column_of], len(order))[true.codes]
    present = [classes[k] for k in order]
    models: dict[str, Any] = {}
    for parts in (scores, *others):
        found = score_columns(score_names(parts), true.labels.tolist(), parts.display, prefix)
        if parts is not scores:
            if {target, as_cell(target)} & set(parts.names):
                theirs = classes_of(parts)
                _check_same_rows(parts.display, len(theirs.codes), source.display, len(rows))
                index = {label: k for k, label in enumerate(all_true.labels.tolist())}
                translated = np.array([index.get(c, -1) for c in theirs.labels.tolist()])[theirs.codes]
                _check_same_classes(np.flatnonzero(translated != all_true.codes), parts.display, source.display, target)
            _check_same_columns(list(found), classes, parts.display, scores.display)
        name = parts.name if parts.name not in {p.name for p in (scores, *others) if p is not parts} else parts.display
        _check_new_name(name, models, parts.display)
        if parts is not source:
            _check_same_rows(parts.display, parts.n_rows, source.display, len(rows))
        models[name] = ScoreColumns(parts, [found[c] for c in present], codes, counts[order], rows)
    absent = [c for c, n in zip(classes, counts, strict=True) if not n]
    return judge_rows(models, present, absent, level=level, budget=memory * GIB)


def target_name(parts: Any, target: str, otherwise: str = "") -> str:
    """Return the name of the target column, which ``mauc predict`` may have quoted."""
    import pandas as pd

    from mauc._tables.read import get_column

    if target not in parts.names and as_cell(target) in parts.names:
        return str(as_cell(target))
    get_column(pd.DataFrame(columns=parts.names), target, "--target", Path(parts.display), otherwise)
    return target


def _check_same_rows(name: str, n: int, other: str, m: int) -> None:
    if n != m:
        raise Failure(f"{name} has {n} rows and {other} has {m}: they must be of the same rows in the same order")


def _check_same_classes(differ: Any, name: str, other: str, target: str) -> None:
    if len(differ):
        raise Failure(
            f"{name} has other classes in {target!r} than {other} (first: row {differ[0] + 1}): paired tests need the "
            "same rows in the same order"
        )


def _check_same_columns(classes: Sequence[str], others: Sequence[str], name: str, other: str) -> None:
    if set(classes) != set(others):
        odd = sorted(set(classes) ^ set(others))[0]
        raise Failure(f"only one of {name} and {other} scores the class {odd!r}: both must score the same classes")


def _check_new_name(name: str, models: dict[str, Any], given: str) -> None:
    if name in models:
        raise Usage(f"--compare {given} is named twice, or is the scores themselves: name other scores")


def _check_memory(n_rows: int, memory: float, name: str) -> None:
    """Check that there is memory for two scores and a class code of every row."""
    from mauc._tables.parts import available_memory

    needed = n_rows * (8.0 + 8.0 + 1.0)
    if needed > max(available_memory(), memory * GIB):
        raise Failure(
            f"{name} has {n_rows} rows, which need {needed / GIB:.1f} GiB of memory, and "
            f"{available_memory() / GIB:.1f} are free: use a larger machine, or mauc.dask on several"
        )
