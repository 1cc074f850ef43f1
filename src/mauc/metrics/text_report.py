"""A text report of multiclass AUC, class by class."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import UndefinedMetricWarning

from mauc._kernels.auc import auc_matrix
from mauc._labels import names_of
from mauc._typing import Absent
from mauc._validation import ScoredClasses, check_groups, check_real, check_scored_classes, check_whole, invalid
from mauc.metrics.inference import (
    class_against_others,
    class_influence,
    score_and_influence,
    small_class_note,
    warn_of_singles,
)
from mauc.metrics.scores import scored_pairs, weighted_mean
from mauc.metrics.subgroups import Subgroup, subgroup_notes, subgroup_scores
from mauc.metrics.uncertainty import Interval, Sample, interval

__all__ = ["multiclass_auc_report"]

SUMMARY = {"MAUC": "ovo", "one-vs-rest": "ova"}
"""The rows below the classes, and the pair weights of each."""
SUBGROUPS = "subgroups"


def multiclass_auc_report(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    target_names: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    absent: Absent = "raise",
    groups: ArrayLike | None = None,
    subgroups: ArrayLike | None = None,
    level: float = 0.95,
    digits: int = 3,
    output_dict: bool = False,
) -> str | dict[str, dict[str, Any]]:
    r"""Build a text report of multiclass AUC with intervals, in the style of scikit-learn's ``classification_report``.

    The row of class i shows the mean of row i of :func:`pairwise_auc`, in which each other class counts the same:

    .. math:: \frac{1}{C - 1} \sum_{j \ne i} \mathrm{AUC}_{i|j} .

    The mean of these numbers over the classes is the multiclass AUC. The last column names the class that is hardest to
    rank below class i.

    Parameters
    ----------
    y_true, y_score, labels
        As in :func:`mauc_score`.
    target_names : (C,) array, optional
        Names to show, in the order of ``labels``. Default: ``labels``.
    sample_weight : (N,) array, optional
        Weights >= 0. With weights, the support of a class is its summed weight.
    absent : {"raise", "ignore"}, default="raise"
        Raise an error if a class of ``labels`` has no samples, or leave its row empty.
    groups, level
        Groups of dependent rows, and confidence level of the intervals; see :func:`mauc_interval`.
    subgroups : (N,) array, optional
        The level of each row, such as the sex or the centre. A second table has the multiclass AUC of each level, and
        its difference to all other rows with a test and Holm's correction for the number of levels.
    digits : int, default=3
        Decimals of the text.
    output_dict : bool, default=False
        Return a dict instead of text.

    Returns
    -------
    str or dict
        The dict has an entry for each class, for ``"MAUC"`` and for ``"one-vs-rest"``. Each is a dict with ``"auc"``,
        ``"low"``, ``"high"``, ``"support"`` and, for a class, ``"hardest"`` and ``"hardest_auc"``. Without samples, the
        numbers are NaN and ``"hardest"`` is None.
        With ``subgroups``, ``"subgroups"`` is a dict of dicts by level, with ``"auc"``, ``"low"``, ``"high"`` and
        ``"support"`` of the level, ``"difference"``, ``"difference_low"``, ``"difference_high"``, ``"pvalue"`` and
        ``"holm"`` of its comparison with all other rows, and ``"absent"``, the classes without rows in the level.
        The text ends with a note if a small class may hide errors from the interval, see :func:`mauc_interval`.

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
    names = _names(scored, target_names)
    partition, v = scored_pairs(scored, "ovo", absent)
    group_codes = check_groups(groups, len(scored.codes))
    if v is not None:
        warn_of_singles(Sample.of(partition, v, group_codes), scored.labels)
    matrix = auc_matrix(partition.problem(scored.scores, normalised=False))
    support = partition.sizes
    report = {}
    for i, name in enumerate(names):
        found, v_class = None, class_against_others(i, partition.present)
        if partition.present[i] and v_class.any():
            influence = class_influence(partition, scored.scores[:, i], i, v_class)
            sample = Sample.of(partition, v_class, group_codes)
            found = interval(sample, weighted_mean(matrix, v_class), influence, level)
        hardest = None if np.isnan(matrix[i]).all() else int(np.nanargmin(matrix[i]))
        report[name] = _entry(found, support[i]) | {
            "hardest": None if hardest is None else names[hardest],
            "hardest_auc": float("nan") if hardest is None else float(matrix[i, hardest]),
        }
    note = ""
    for name, pairs in SUMMARY.items():
        found, v_all = None, partition.pair_weights(pairs)
        if v_all.any():
            sample = Sample.of(partition, v_all, group_codes)
            score, influence = score_and_influence(partition, scored.scores, v_all)
            found = interval(sample, score, influence, level)
            note = note or (small_class_note(sample, influence, names) if pairs == "ovo" else "")
        report[name] = _entry(found, support.sum())
    by_level = None
    if subgroups is not None:
        by_level = subgroup_scores(
            partition, scored.scores, np.asarray(names), subgroups, groups=group_codes, level=level
        )
        for about in subgroup_notes(by_level):
            warnings.warn(about, UndefinedMetricWarning, stacklevel=2)
    if output_dict:
        return report if by_level is None else {**report, SUBGROUPS: _as_dicts(by_level)}
    text = _text(report, names, level, digits)
    if by_level is not None:
        text += "\n\n" + _subgroup_text(by_level, level, digits)
    return text + ("\n\n" + "\n".join(textwrap.wrap(f"Note: {note}.", 80)) if note else "")


def _names(scored: ScoredClasses, target_names: ArrayLike | None) -> list[str]:
    names = names_of(scored.labels if target_names is None else np.asarray(target_names))
    if len(names) != len(scored.labels):
        requirement, advice = f"must have the shape ({len(scored.labels)},)", "pass one name per class"
        raise invalid("target_names", requirement, f"{len(names)} names", advice)
    twice = next((name for name in names if names.count(name) > 1 or name in (*SUMMARY, SUBGROUPS)), None)
    if twice is not None:
        requirement = f"must differ from each other and from {', '.join(SUMMARY)} and {SUBGROUPS}"
        raise invalid("names of classes", requirement, twice, "pass target_names=[…], all different")
    return names


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


def _entry(found: Interval | None, support: np.number) -> dict[str, Any]:
    auc, low, high = (float("nan"),) * 3 if found is None else (found.score, found.low, found.high)
    return {"auc": auc, "low": low, "high": high, "support": support.item()}


def _subgroup_text(found: list[Subgroup], level: float, digits: int) -> str:
    """Return a table with a line for each level."""
    span = f"{100 * level:g} % interval"
    rows = [("", "MAUC", span, "support", "against the rest", span, "p")]
    for one in found:
        d, m = one.difference, one.mauc
        score = ("–", "–") if np.isnan(m.score) else _score_cells(m.score, m.low, m.high, f".{digits}f")
        test = ("–", "–", "–")
        if not np.isnan(d.difference):
            test = (*_score_cells(d.difference, d.low, d.high, f"+.{digits}f"), f"{one.holm:.2g}")
        rows.append((one.level, *score, f"{one.rows:,}", *test))
    lines = _aligned(rows)
    return "\n".join([lines[0], "", *lines[1:]])


def _text(report: dict[str, dict[str, Any]], names: list[str], level: float, digits: int) -> str:
    """Return a table with a line for each class, and one for each mean."""
    rows = [("", "AUC", f"{100 * level:g} % interval", "support")]
    hardest = ["hardest against"]
    for name in (*names, *SUMMARY):
        entry = report[name]
        support = entry["support"]
        size = f"{support:,}" if isinstance(support, int) else f"{support:,.{digits}f}"
        score, lowest = ("–", "–"), 1.0
        if not np.isnan(entry["auc"]):
            score = _score_cells(entry["auc"], entry["low"], entry["high"], f".{digits}f")
            lowest = entry.get("hardest_auc", 1.0)
        rows.append((name, *score, size))
        # Where all pairs are ranked right no class is harder than the others.
        hardest.append(f"{entry['hardest']} ({lowest:.{digits}f})" if lowest < 1.0 else "")
    lines = [f"{line}   {last}".rstrip() for line, last in zip(_aligned(rows), hardest, strict=True)]
    return "\n".join([lines[0], "", *lines[1 : 1 + len(names)], "", *lines[1 + len(names) :]])


def _score_cells(score: float, low: float, high: float, spec: str) -> tuple[str, str]:
    return format(score, spec), f"[{low:{spec}}, {high:{spec}}]"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows]
