"""``mauc evaluate``: scores of any program → metrics, intervals, paired tests, report."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import DropUnlabelled, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.files import REPORTS, check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Usage
from mauc._tables.text import PREDICTED, Reading
from mauc._text import as_cell, visible

REPORT = REPORTS / "evaluation.html"


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
        str | None,
        typer.Option(help="Column of subgroups, such as the sex: each minus the mean of the others."),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    bins: Annotated[
        int | None,
        typer.Option(
            help="Count the scores in so many bins, such as 65536, in one pass, and print the score with its bound.",
            show_default=False,
        ),
    ] = None,
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
    from mauc._cli.judging import ScoreTables
    from mauc._cli.summary import as_json, binned, comparison, headline, sizes, subgroups, worst_pairs
    from mauc._tables.parts import find_files, open_table, target_missing
    from mauc._validation import listing
    from mauc.report import judge, render

    output = current()
    if not 0 < level < 1:
        raise Usage(f"--level must be a number strictly between 0 and 1, got {level:g}")
    own, others = find_files(scores, "SCORES"), [find_files([path], "--compare") for path in compare or []]
    true = None if truth is None else find_files([truth], "--truth")
    how = Reading(tuple(missing or ()), encoding, sheet, separator, header)
    saved = _saved_scores(own, target, others, true, max_size)
    target = saved.target if saved else target
    if target is None:
        raise target_missing(true or own, how, max_size)
    named = [own, *others, *([true] if true else [])]
    if bins is not None:
        _check_bins(bins, saved, own, {"--compare": compare, "--group": group, "--by": by})
        no_report = True
    if not no_report:
        check_writable(report, "--report", "a page", ["html"], [path for files in named for path in files.paths])
    with output.working(f"evaluating {own.display}") as tell:
        if saved:
            if how != Reading() or drop_unlabelled or group or by:
                raise Usage(
                    f"{own.display} holds the scores, classes and groups of mauc fit, where --missing, --encoding, "
                    "--separator, --header, --sheet, --drop-unlabelled, --group and --by have no effect: leave them out"
                )
            output.note(f"{own.display} holds scores of {saved.about}; {saved.how}")
            decided = "predicted class: as mauc fit decided"
            known: dict[str, Any] = {"labels": saved.classes, "y_pred": saved.predicted}
            known |= {"groups": saved.groups, "folds": saved.folds or None}
            found = judge(saved.labels, {own.name: saved.scores}, **known, level=level)
        else:
            codes, names = [name for name in (group, by) if name], [target, str(as_cell(target)), PREDICTED]
            tables = [open_table(files, how, max_size, codes, names) for files in named]
            for table in tables:
                table.tell = tell
            for files in named:
                if files.by_numbers:
                    output.note(
                        f"the files of {files.display} are read in the order of their numbers: "
                        f"{listing([path.name for path in files.paths], 4)}"
                    )
            true_table = tables.pop() if true else None
            judging = ScoreTables(tables[0], tables[1:], true_table, target, prefix, group, by, drop_unlabelled, level)
            if bins is not None:
                counted = binned(judging.count(bins), level)
            else:
                found, decided = judging.judge()
    if bins is not None:
        output.say(*counted.lines)
        output.result(counted.as_json)
        return
    written = {}
    if not no_report:
        details = [("scores", own.display), ("target", target), *(("compared with", each.display) for each in others)]
        write_whole(report, render(found, title=f"{own.name}: predicting {target}", details=details))
        written["report"] = report
    if found.absent:
        output.note(f"classes without a row are left out: {listing(found.absent)}")
    output.say(
        *headline(found, decided),
        "",
        *([comparison(found)] if found.tests else []),
        *subgroups(found),
        sizes(found),
        worst_pairs(found),
        *(f"wrote {visible(f)}" for f in written.values()),
    )
    output.result({**as_json(found), "decided": decided, "files": written})


def _saved_scores(own: Any, target: str | None, others: list[Any], truth: Any, max_size: float) -> Any:
    """Return the scores that mauc fit saved beside a model, which include classes and target; None for other files."""
    from mauc._tables.saved_scores import is_saved_scores, read_saved_scores

    if own.several or not is_saved_scores(own.paths[0]):
        return None
    found = read_saved_scores(own.paths[0], max_size)
    if target not in (None, found.target):
        raise Usage(f"--target {target!r} is not the target of {own.display}, {found.target!r}: leave it out")
    if others or truth:
        advice = "compare models with mauc compare a.skops b.skops" if others else "leave --truth out"
        raise Usage(f"{own.display} holds the scores of a model and their classes: {advice}")
    return found


def _check_bins(bins: int, saved: Any, own: Any, others: dict[str, Any]) -> None:
    """Refuse what needs the scores of the rows, which bins do not keep."""
    if not 8 <= bins <= 1 << 24:
        raise Usage(f"--bins must be from 8 to {1 << 24}, got {bins}")
    given = [option for option, value in others.items() if value]
    if given:
        raise Usage(f"--bins has no effect with {given[0]}, which needs the scores of all rows: leave one of them out")
    if saved:
        raise Usage(f"{own.display} holds the scores of mauc fit, which fit in memory: leave --bins out")
