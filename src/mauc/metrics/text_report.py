"""Multiclass AUC, class by class, as text."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._kernels.auc import auc_influence, auc_matrix
from mauc._typing import Floats, Ints
from mauc._validation import ScoredClasses, check_real, check_scored_classes, check_whole, invalid
from mauc.metrics.groups import check_groups
from mauc.metrics.inference import class_against_others, class_influence, hidden_errors, warn_of_singles
from mauc.metrics.scores import check_pair_weights, weighted_mean
from mauc.metrics.subgroups import Subgroup, subgroup_scores, warn_of_subgroups
from mauc.metrics.uncertainty import Interval, Sample, interval
from mauc.partition import ClassPartition

__all__ = ["multiclass_auc_report"]

SUMMARY = {"MAUC": "ovo", "one-vs-rest": "ova"}
"""Rows below the classes, and the pairs that they average over."""
SUBGROUPS = "subgroups"


def multiclass_auc_report(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    target_names: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: str = "raise",
    groups: ArrayLike | None = None,
    subgroups: ArrayLike | None = None,
    level: float = 0.95,
    digits: int = 3,
    output_dict: bool = False,
) -> str | dict[str, dict[str, Any]]:
    r"""Multiclass AUC with its interval, class by class, in the style of scikit-learn's ``classification_report``.

    The row of class i has the mean of row i of :func:`pairwise_auc`, how well the score of class i ranks its samples
    above those of the other classes, each of which counts the same:

    .. math:: \frac{1}{C - 1} \sum_{j \ne i} \mathrm{AUC}_{i|j} .

    Their mean over the classes is the multiclass AUC. Beside it stands the class that is hardest to rank below class i.

    Parameters
    ----------
    y_true : (N,) array of classes, integers or strings
    y_score : (N, C) array of real scores
        Column i ranks "is class i"; rows need not sum to 1. The columns of a data frame are matched by class name.
    labels : (C,) array, optional
        The class of each column. Default: the sorted classes of ``y_true``.
    target_names : (C,) array, optional
        Names to show, in the order of ``labels``. Default: ``labels``.
    sample_weight : (N,) array, optional
        Weights >= 0. With weights, the support of a class is its summed weight.
    absent : {"raise", "ignore"}, default="raise"
        A class of ``labels`` without samples is an error, or its row is left empty.
    groups : (N,) array, optional
        What each row belongs to, such as the patient of an image; intervals are then those of dependent rows, see
        :func:`mauc_interval`.
    subgroups : (N,) array, optional
        A level of each row, such as the sex or the centre: a second table has the multiclass AUC of each level, and its
        difference to all other rows with a test, corrected by Holm for the number of levels.
    level : float, default=0.95
        Confidence level of the intervals, between 0 and 1; see :func:`mauc_interval`.
    digits : int, default=3
        Decimals of the text.
    output_dict : bool, default=False
        Return a dict instead of text.

    Returns
    -------
    str or dict
        The dict has an entry for each class, for ``"MAUC"`` and for ``"one-vs-rest"``, the mean of the AUCs of each
        class against all others together; each is a dict with ``"auc"``, ``"low"``, ``"high"``, ``"support"`` and, for
        a class, ``"hardest"`` and ``"hardest_auc"``. Without samples, the numbers are NaN and ``"hardest"`` is None.
        With ``subgroups``, ``"subgroups"`` is a dict of dicts by level, with ``"difference"``, ``"difference_low"``,
        ``"difference_high"``, ``"pvalue"``, ``"holm"`` and ``"absent"``, the classes without rows in the level.
        Below the text stands a note where a small class may hide errors from the interval, see :func:`mauc_interval`.

    Notes
    -----
    O(N·C) time after a sort of each column, O(N) extra memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import multiclass_auc_report
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (y[:, None] == ["elm", "oak", "yew"])
    >>> print(multiclass_auc_report(y, scores))
                   AUC   95 % interval  support   hardest against
    <BLANKLINE>
            elm  0.929  [0.868, 0.964]       40   oak (0.891)
            oak  0.879  [0.804, 0.928]      150   elm (0.844)
            yew  0.822  [0.644, 0.922]       10   oak (0.817)
    <BLANKLINE>
           MAUC  0.877  [0.803, 0.926]      200
    one-vs-rest  0.858  [0.794, 0.904]      200
    >>> multiclass_auc_report(y, scores, output_dict=True)["yew"]["hardest"]
    'oak'
    """
    level = check_real("level", level, low=0, high=1)
    digits = check_whole("digits", digits, least=0)
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    names = _names(scored, target_names)
    v = check_pair_weights(scored.labels, partition, "ovo", absent)
    together = check_groups(groups, len(scored.codes))
    if v is not None:
        warn_of_singles(Sample.of(partition, v, together), scored.labels)
    matrix = auc_matrix(partition.problem(scored.scores, normalised=False))
    support = partition.counts if scored.sample_weight is None else partition.weights
    report = {}
    for i, name in enumerate(names):
        found = _of_class(i, partition, scored.scores, matrix, level, together)
        against = None if np.isnan(matrix[i]).all() else int(np.nanargmin(matrix[i]))
        report[name] = _entry(found, support[i]) | {
            "hardest": None if against is None else names[against],
            "hardest_auc": float("nan") if against is None else float(matrix[i, against]),
        }
    for name, pairs in SUMMARY.items():
        report[name] = _entry(_of_all(pairs, partition, scored.scores, matrix, level, together), support.sum())
    found_by_level = None
    if subgroups is not None:
        found_by_level = subgroup_scores(
            partition, scored.scores, np.asarray(names), subgroups, groups=together, level=level
        )
        warn_of_subgroups(found_by_level)
    if output_dict:
        return report if found_by_level is None else {**report, SUBGROUPS: _as_dicts(found_by_level)}
    text = _text(report, names, level, digits)
    if found_by_level is not None:
        text += "\n\n" + _subgroup_text(found_by_level, level, digits)
    return text + _note(partition, scored.scores, names, together)


def _names(scored: ScoredClasses, target_names: ArrayLike | None) -> list[str]:
    names = [str(name) for name in (scored.labels if target_names is None else np.asarray(target_names))]
    if len(names) != len(scored.labels):
        requirement, advice = f"must have the shape ({len(scored.labels)},)", "pass one name per class"
        raise invalid("target_names", requirement, f"{len(names)} names", advice)
    twice = next((name for name in names if names.count(name) > 1 or name in (*SUMMARY, SUBGROUPS)), None)
    if twice is not None:
        advice = "pass target_names=[…], all different"
        raise invalid(
            "names of classes", f"must differ from each other and from {' and '.join(SUMMARY)}", twice, advice
        )
    return names


def _of_class(
    i: int,
    partition: ClassPartition,
    scores: NDArray[np.floating],
    matrix: Floats,
    level: float,
    groups: Ints | None,
) -> Interval | None:
    """Of the mean of row i: :func:`mauc_interval` with ones in row i of ``pairs``, without the other columns."""
    v = class_against_others(i, partition.present)
    if not partition.present[i] or not v.any():
        return None
    influence = class_influence(partition, scores[:, i], i, v)
    return interval(Sample.of(partition, v, groups), weighted_mean(matrix, v), influence, level)


def _of_all(
    pairs: str,
    partition: ClassPartition,
    scores: NDArray[np.floating],
    matrix: Floats,
    level: float,
    groups: Ints | None,
) -> Interval | None:
    v = partition.pair_weights(pairs)
    if not v.any():
        return None
    influence = auc_influence(partition.problem(scores, v))
    return interval(Sample.of(partition, v, groups), weighted_mean(matrix, v), influence, level)


def _note(partition: ClassPartition, scores: NDArray[np.floating], names: list[str], groups: Ints | None) -> str:
    """What a reader of the MAUC must know of a small class, below the table; mostly nothing."""
    v = partition.pair_weights("ovo")
    if not v.any():
        return ""
    found = hidden_errors(Sample.of(partition, v, groups), auc_influence(partition.problem(scores, v)), names)
    return "\n\n" + "\n".join(textwrap.wrap(f"Note: {found}.", 80)) if found else ""


def _as_dicts(found: list[Subgroup]) -> dict[str, Any]:
    return {
        one.level: {
            **_entry(one.mauc, np.int64(one.rows)),
            "difference": one.difference.difference,
            "difference_low": one.difference.low,
            "difference_high": one.difference.high,
            "pvalue": one.difference.pvalue,
            "holm": one.holm,
            "absent": list(one.absent),
        }
        for one in found
    }


def _subgroup_text(found: list[Subgroup], level: float, digits: int) -> str:
    """A line for each level."""
    span = f"{100 * level:g} % interval"
    rows = [("", "MAUC", span, "support", "against the rest", span, "p")]
    for one in found:
        d, m = one.difference, one.mauc
        scored = (f"{m.score:.{digits}f}", f"[{m.low:.{digits}f}, {m.high:.{digits}f}]")
        if np.isnan(m.score):
            scored = ("–", "–")
        tested = (
            ("–", "–", "–")
            if np.isnan(d.difference)
            else (f"{d.difference:+.{digits}f}", f"[{d.low:+.{digits}f}, {d.high:+.{digits}f}]", f"{one.holm:.2g}")
        )
        rows.append((one.level, *scored, f"{one.rows:,}", *tested))
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([lines[0], "", *lines[1:]])


def _entry(found: Interval | None, support: np.number) -> dict[str, Any]:
    auc, low, high = (float("nan"),) * 3 if found is None else (found.score, found.low, found.high)
    return {"auc": auc, "low": low, "high": high, "support": support.item()}


def _text(report: dict[str, dict[str, Any]], names: list[str], level: float, digits: int) -> str:
    span = f"{100 * level:g} % interval"
    columns = {name: len(name) for name in ("AUC", span, "support")}
    rows = {name: _cells(entry, digits) for name, entry in report.items()}
    width = max(map(len, rows))
    widths = [max(least, *(len(row[k]) for row in rows.values())) for k, least in enumerate(columns.values())]

    def line(name: str, cells: list[str]) -> str:
        parts = [f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=False)]
        return f"{name:>{width}}  {parts[0]}  {parts[1]}  {parts[2]}   {cells[3]}".rstrip()

    return "\n".join(
        [
            line("", [*columns, "hardest against"]),
            "",
            *(line(name, rows[name]) for name in names),
            "",
            *(line(name, rows[name]) for name in SUMMARY),
        ]
    )


def _cells(entry: dict[str, Any], digits: int) -> list[str]:
    support = entry["support"]
    size = f"{support:,}" if isinstance(support, int) else f"{support:,.{digits}f}"
    if np.isnan(entry["auc"]):
        return ["–", "–", size, ""]
    auc, low, high = (f"{entry[key]:.{digits}f}" for key in ("auc", "low", "high"))
    lowest = entry.get("hardest_auc", 1.0)
    # Where all pairs are ranked right no class is harder than the others.
    hardest = f"{entry['hardest']} ({lowest:.{digits}f})" if lowest < 1.0 else ""
    return [auc, f"[{low}, {high}]", size, hardest]
