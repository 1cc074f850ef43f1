"""``mauc evaluate``: scores from any program → metrics, intervals, paired tests, report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.files import REPORTS, check_ending, check_writable
from mauc._cli.options import DropUnlabelled, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._text import visible

__all__ = ["evaluate"]

REPORT = REPORTS / "evaluation.html"


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
        typer.Option(readable=False, help="Scores of another model on the same rows; may be repeated."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(readable=False, help="Table with the target, where it is another one.")
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(help="Text before the class in the names of score columns (default: detected).")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Column of what rows belong to, such as the patient: intervals are those of groups."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Column of subgroups, such as the sex: each level against the other rows.")
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
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Read a single file in parts, or whole; parts unless it fits in memory.",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[float, typer.Option(min=0.5, help="GiB to stay within where tables are read in parts.")] = 2.0,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Judge scores of any program, and compare models.

    Score columns are named as the classes, with the same text before each or none: "cat", "score:cat", "p_cat".
    """
    from mauc._cli.summary import as_json, comparison, headline, sizes, subgroups, worst_pairs
    from mauc._tables.layout import check_separator
    from mauc._tables.parts import find_parts, no_target
    from mauc._tables.read import Reading
    from mauc.report import judge, render

    output = current()
    if not 0 < level < 1:
        raise Usage(f"--level must be a number strictly between 0 and 1, got {level:g}")
    parts, others = find_parts(scores, "SCORES"), [find_parts([path], "--compare") for path in compare or []]
    true_parts = None if truth is None else find_parts([truth], "--truth")
    how = Reading(tuple(missing or ()), encoding, sheet, check_separator(separator), header)
    kept = _kept(parts, target, compare, truth, max_size)
    target = kept.target if kept else target
    if target is None:
        raise no_target(true_parts or parts, how, max_size)
    tables = [parts, *others, *([] if true_parts is None else [true_parts])]
    if not no_report:
        check_writable(report, "--report", [path for table in tables for path in table.paths])
        check_ending(report, "--report", "a page", "html")
    if kept:
        if group or by:
            raise Usage(
                f"{parts.shown} holds no columns but scores, and the groups that mauc fit --group was given: leave "
                "--group and --by out"
            )
        output.note(f"{parts.shown} holds scores of {kept.about}; {kept.how}")
        scores_of = {parts.name: kept.repeats}
        found = judge(kept.labels, scores_of, labels=kept.classes, groups=kept.groups, level=level)
    elif _streams(tables, stream):
        if how != Reading() or drop_unlabelled or group or by:
            raise Usage(
                f"{parts.shown} is read in parts, where --missing, --encoding, --separator, --header, --sheet, "
                "--drop-unlabelled, --group and --by have no effect: leave them out, or name one file that fits in "
                "memory"
            )
        from mauc._cli.evaluate_parts import judge_parts

        size = f"{len(parts.paths)} files, " if parts.several else ""
        output.note(f"{parts.shown} ({size}{_as_text(parts.n_bytes)}) is read in parts")
        with output.working(f"judging {parts.shown}"):
            found = judge_parts(parts, target, others, true_parts, prefix, level=level, memory=memory)
    else:
        with output.working(f"judging {parts.shown}"):
            wanted = _Wanted(target, group, by, prefix, drop_unlabelled, max_size, how)
            labels, classes, models, belonging = _read(scores[0], compare or [], truth, wanted)
            found = judge(labels, models, labels=classes, **belonging, level=level)
    files = {}
    if not no_report:
        details = [("scores", parts.shown), ("target", target), *(("compared with", p.shown) for p in others)]
        write_whole(report, render(found, title=f"{target} by {parts.name}", details=details))
        files["report"] = report
    if found.absent:
        output.note(f"classes without a row are left out: {', '.join(map(visible, found.absent[:8]))}")
    several = [comparison(found)] if found.tests else []
    output.say(
        *headline(found),
        "",
        *several,
        *subgroups(found),
        sizes(found),
        worst_pairs(found),
        *(f"wrote {visible(f)}" for f in files.values()),
    )
    output.result({**as_json(found), "files": files})


def _kept(parts: Any, target: str | None, compare: list[Path] | None, truth: Path | None, max_size: float) -> Any:
    """The scores that mauc fit kept beside a model, which have classes and target in them; None for other files."""
    from mauc._tables.kept import is_kept, read_scores

    if parts.several or not is_kept(parts.paths[0]):
        return None
    found = read_scores(parts.paths[0], max_size)
    if target not in (None, found.target):
        raise Usage(f"--target {target!r} is not the target of {parts.shown}, which is {found.target!r}: leave it out")
    if compare or truth:
        raise Usage(
            f"{parts.shown} holds the scores of a model and their classes: leave --truth out, and compare models by "
            "mauc compare a.skops b.skops"
        )
    return found


def _as_text(n_bytes: float) -> str:
    """A size that can be read at a glance."""
    unit, name = next(((u, n) for u, n in ((1e9, "GB"), (1e6, "MB")) if n_bytes >= u), (1e3, "kB"))
    return f"{n_bytes / unit:.3g} {name}"


def _streams(tables: list[Any], asked: bool | None) -> bool:
    """Whether tables are read in parts: several files, what does not fit in memory, or what the user says."""
    several = [table for table in tables if table.several]
    if several and asked is False:
        raise Usage(f"--no-stream reads single files, and {several[0].shown} is not one: leave it out")
    if several or asked:
        unfit = [table for table in tables if table.kind not in ("csv", "parquet")]
        if unfit and all(path.exists() for path in unfit[0].paths):
            raise Failure(f"{unfit[0].shown} cannot be read in parts: save it as CSV or Parquet")
    return bool(several) or (asked if asked is not None else not all(table.fits() for table in tables))


@dataclass(frozen=True)
class _Wanted:
    """What the options say about all tables of one call."""

    target: str
    group: str | None
    by: str | None
    prefix: str | None
    drop_unlabelled: bool
    max_size: float
    how: Any


def _read(path: Path, others: list[Path], truth: Path | None, wanted: _Wanted) -> tuple[Any, Any, Any, Any]:
    """True classes, the class of each column, the scores of each model by name, and groups and subgroups of rows."""
    import numpy as np

    from mauc._tables.read import classes_of, column, labelled
    from mauc._tables.row_hashes import TRAINED_ON, known_note
    from mauc._tables.scores import as_in_columns, scored_rows, scores_in
    from mauc._tables.source import shown

    target, prefix = wanted.target, wanted.prefix
    table = _read_table(path, wanted)
    path = shown(path)
    true_path, true_table = (path, table) if truth is None else (shown(truth), _read_table(truth, wanted))
    otherwise = "" if truth else "; a table of the same rows that has it can be named with --truth"
    if truth and target not in true_table.columns and target in table.columns:
        raise Usage(f"--truth {truth} has no column {target!r}, and {path} has it: name the scores first, then --truth")
    true_classes = column(true_table, target, "--target", true_path, otherwise)
    _same_length(path, len(table), true_path, len(true_classes))
    kept = np.ones(len(table), dtype=bool)
    if wanted.drop_unlabelled:
        kept = labelled(true_classes, target, true_path).copy()
    written = classes_of(true_classes[kept], target, true_path, as_named=True)
    labels = as_in_columns(written, table, prefix)
    names = [str(name) for name in _without(table, wanted).columns]
    scored = scored_rows(names, *np.unique(labels, return_inverse=True), path, prefix)
    kept[kept], labels = scored, labels[scored]
    belonging = _belonging(wanted, {true_path: true_table, path: table}, kept)
    table = table[kept].reset_index(drop=True)
    if TRAINED_ON in table.columns and target != TRAINED_ON:
        trained = known_note(int((table[TRAINED_ON] == "yes").sum()), len(table))
        if trained:
            current().note(trained)
    first = scores_in(_without(table, wanted), labels, path, prefix)
    models = {path.name if path.name not in {p.name for p in others} else str(path): first.values}
    for other in others:
        second = _read_table(other, wanted)
        _same_length(other, len(second), path, len(kept))
        second = second[kept].reset_index(drop=True)
        if target in second.columns:
            theirs = as_in_columns(classes_of(second[target], target, other, as_named=True), second, prefix)
            differ = np.flatnonzero(theirs != labels)
            if len(differ):
                row = np.flatnonzero(kept)[differ[0]] + 1
                raise Failure(
                    f"{other} has other classes in {target!r} than {true_path} (first: row {row}): "
                    "paired tests need the same rows in the same order"
                )
        found = scores_in(_without(second, wanted), labels, other, prefix)
        if set(found.classes) != set(first.classes):
            odd = sorted(set(found.classes) ^ set(first.classes))[0]
            raise Failure(
                f"{other} and {path} score different classes ({odd!r} is in one of them): compare like with like"
            )
        name = other.name if other.name not in models else str(other)
        if name in models:
            raise Usage(f"--compare {other} is named twice, or is the file itself: name other scores")
        models[name] = found.values[:, [found.classes.index(c) for c in first.classes]]
    return labels, np.array(first.classes), models, belonging


def _belonging(wanted: _Wanted, tables: dict[Path, Any], kept: Any) -> dict[str, Any]:
    """Groups and subgroups of the rows, from the first table that has the column, for the judgement."""
    from mauc._tables.data import groups_of
    from mauc._tables.read import column

    found = {}
    for keyword, option, name in (("groups", "--group", wanted.group), ("subgroups", "--by", wanted.by)):
        if name is not None:
            path = next((path for path, table in tables.items() if name in table.columns), next(iter(tables)))
            found[keyword] = groups_of(column(tables[path], name, option, path)[kept], name, path, option)
    return found


def _read_table(path: Path, wanted: _Wanted) -> Any:
    """The target under its own name, where ``mauc predict`` had to put a quote before it."""
    from mauc._tables.features import check_single
    from mauc._tables.read import read_table
    from mauc._text import as_cell

    target = wanted.target
    codes = [name for name in (wanted.group, wanted.by) if name]
    table = read_table(path, codes=codes, max_size=wanted.max_size, names=[target, as_cell(target)], how=wanted.how)
    if target not in table.columns:
        table = table.rename(columns={as_cell(target): target})
    check_single(table[[n for n in table.columns if n == target]], path, "choose another --target")
    return table


def _without(table: Any, wanted: _Wanted) -> Any:
    """The target, the group and the subgroup may be named as scores are, and hold none."""
    named = [name for name in (wanted.target, wanted.group, wanted.by) if name]
    return table.drop(columns=named, errors="ignore")


def _same_length(path: Path, n: int, other: Path, m: int) -> None:
    if n != m:
        raise Failure(f"{path} has {n} rows and {other} has {m}: they must be of the same rows in the same order")
