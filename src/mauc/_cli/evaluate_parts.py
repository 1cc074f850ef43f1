"""``mauc evaluate`` of tables in parts: read as often as needed, never held."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mauc._tables.errors import Failure, Usage
from mauc._tables.parts import Parts, available_memory

__all__ = ["GIB", "judge_parts", "target_name"]

GIB = 2.0**30


def judge_parts(
    scores: Parts,
    target: str,
    others: Sequence[Parts],
    truth: Parts | None,
    prefix: str | None,
    *,
    level: float,
    memory: float,
) -> Any:
    """The judgement that ``mauc.report.judge`` gives of the tables read whole, in ``memory`` GiB."""
    import numpy as np

    from mauc._tables.score_parts import ScoreColumns, narrow, read_classes
    from mauc._tables.scores import score_columns, scored_rows
    from mauc.report.judgement import judge_rows

    source = scores if truth is None else truth
    otherwise = "" if truth else "; a table of the same rows that has it can be named with --truth"
    written = read_classes(source, target_name(source, target, otherwise))
    _check_memory(len(written.codes), memory, scores)
    all_true = written.named(_as_named(written.labels, scores, prefix))
    rows = scored_rows(_scored(scores, target), all_true.labels.tolist(), all_true.codes, scores.shown, prefix)
    true = all_true if rows.all() else all_true.of(rows)
    columns = score_columns(_scored(scores, target), true.labels.tolist(), scores.shown, prefix)
    classes = list(columns)
    column_of = np.array([classes.index(label) for label in true.labels.tolist()])
    counts = np.bincount(column_of[true.codes], minlength=len(classes))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    place = np.zeros(len(classes), dtype=np.int64)
    place[order] = np.arange(len(order))
    codes = narrow(place[column_of], len(order))[true.codes]
    judged = [classes[k] for k in order]
    models = {}
    for k, parts in enumerate((scores, *others)):
        found = columns
        if k:
            _check_same_classes(parts, target, prefix, all_true, source)
            found = score_columns(_scored(parts, target), true.labels.tolist(), parts.shown, prefix)
            if set(found) != set(columns):
                odd = sorted(set(found) ^ set(columns))[0]
                raise Failure(
                    f"{parts.shown} and {scores.shown} score different classes ({odd!r} is in one of them): "
                    "compare like with like"
                )
        name = parts.name if parts.name not in {p.name for p in (scores, *others) if p is not parts} else parts.shown
        if name in models:
            raise Usage(f"--compare {parts.shown} is named twice, or is the table itself: name other scores")
        if (parts is not source) and parts.n_rows != len(rows):
            raise Failure(
                f"{parts.shown} has {parts.n_rows} rows and {source.shown} has {len(rows)}: "
                "they must be of the same rows in the same order"
            )
        models[name] = ScoreColumns(parts, [found[c] for c in judged], codes, counts[order], rows)
    absent = [c for c, n in zip(classes, counts, strict=True) if not n]
    return judge_rows(models, judged, absent, level=level, budget=memory * GIB)


def target_name(parts: Parts, target: str, otherwise: str) -> str:
    """The target as it is named: ``mauc predict`` may have had to put a quote before it."""
    import pandas as pd

    from mauc._tables.read import column
    from mauc._text import as_cell

    if target not in parts.names and as_cell(target) in parts.names:
        return str(as_cell(target))
    column(pd.DataFrame(columns=parts.names), target, "--target", Path(parts.shown), otherwise)
    return target


def _scored(parts: Parts, target: str) -> list[str]:
    """Names of columns that may hold scores: the target may be named as these are, and holds none."""
    from mauc._text import as_cell

    hidden = target if target in parts.names else as_cell(target)
    return [name for name in parts.names if name != hidden]


def _as_named(labels: Any, parts: Parts, prefix: str | None) -> Any:
    import pandas as pd

    from mauc._tables.scores import as_in_columns

    return as_in_columns(labels, pd.DataFrame(columns=parts.names), prefix)


def _check_same_classes(parts: Parts, target: str, prefix: str | None, true: Any, source: Parts) -> None:
    """Other scores that have the target too have the same class in every row."""
    import numpy as np

    from mauc._tables.score_parts import read_classes
    from mauc._text import as_cell

    if not {target, as_cell(target)} & set(parts.names):
        return
    written = read_classes(parts, target_name(parts, target, ""))
    theirs = written.named(_as_named(written.labels, parts, prefix))
    if len(theirs.codes) != len(true.codes):
        return  # told where rows are counted
    place = {label: k for k, label in enumerate(true.labels.tolist())}
    differ = np.flatnonzero(np.array([place.get(c, -1) for c in theirs.labels.tolist()])[theirs.codes] != true.codes)
    if len(differ):
        raise Failure(
            f"{parts.shown} has other classes in {target!r} than {source.shown} (first: row {differ[0] + 1} of all): "
            "paired tests need the same rows in the same order"
        )


def _check_memory(n_rows: int, memory: float, parts: Parts) -> None:
    """Each row's score of its own class, one column and the classes are held, however small the parts."""
    needed = n_rows * (8.0 + 8.0 + 1.0)
    if needed > max(available_memory(), memory * GIB):
        raise Failure(
            f"{parts.shown} has {n_rows} rows, of which {needed / GIB:.1f} GiB must be held, and "
            f"{available_memory() / GIB:.1f} are free: use a larger machine, or mauc.dask on several"
        )
