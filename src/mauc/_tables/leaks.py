"""After training: columns that may leak the answer, and splits that flatter the score.

Three questions, each asked only where the data give a reason:

- a column without which the score falls near chance: will it be known at prediction time?
- a column of codes, such as a person's, that recur in training and test rows: should --group keep them together?
- a column of dates, where the score on later rows is lower: should --time-column hold out the latest rows?

``fit_and_score(table, train, test)`` fits a quick model on the training rows of a table and returns its multiclass AUC
on the test rows, or NaN where there is no time. With it the score is given both ways, and what makes no difference is
not mentioned. Without it the first two are told by what a column achieves alone.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.doubts import Doubt, are_dates, named_as_identifier, score_alone
from mauc._tables.errors import Failure
from mauc._tables.holdout import by_group, by_time, some_of_each, stratified
from mauc._tables.read import Table
from mauc._typing import Ints
from mauc.metrics import Importance, mauc_score

__all__ = ["FitAndScore", "find_leaks", "leaking_columns", "quick_scorer", "recurring_codes", "times_that_matter"]

FitAndScore = Callable[[Table, Ints, Ints], float]


def find_leaks(
    table: Table,
    labels: NDArray[Any],
    train: Ints,
    test: Ints,
    target: str,
    *,
    score: float,
    importance: Sequence[Importance] = (),
    fit_and_score: FitAndScore | None = None,
    random_split: bool = True,
    seed: int = 0,
) -> list[Doubt]:
    """All three questions of one training run.

    Parameters
    ----------
    table : features of all rows
    labels : (N,) classes of all rows
    train, test : rows of the two parts
    target : name of the column to predict
    score : test MAUC of the model
    importance : of the same model, from :func:`mauc.metrics.mauc_importance`
    fit_and_score : optional, see the module
    random_split : False where the user chose --group or --time-column already
    seed : of the samples and splits
    """
    found = leaking_columns(table, labels, train, test, target, score, importance, fit_and_score, seed=seed)
    if random_split:
        found += recurring_codes(table, labels, train, test, fit_and_score, seed=seed)
        found += times_that_matter(table, labels, fit_and_score, seed=seed)
    return found


def leaking_columns(
    table: Table,
    labels: NDArray[Any],
    train: Ints,
    test: Ints,
    target: str,
    score: float,
    importance: Sequence[Importance],
    fit_and_score: FitAndScore | None = None,
    *,
    least_alone: float = 0.9,
    most_left: float = 1 / 3,
    most_rows: int = 5_000,
    seed: int = 0,
) -> list[Doubt]:
    """Columns that reach ``least_alone`` by themselves, and without which at most ``most_left`` of the score above
    chance remains.

    What remains is the score of a model fitted without the column, or of the model with the column shuffled. The
    former is fairer: a model that leaned on a column would have used others.
    """
    rows = train[some_of_each(labels[train], most_rows, seed)]
    found = []
    for each in importance:
        if each.pair is not None or score - each.drop - 0.5 > most_left * (score - 0.5):
            continue
        alone = score_alone(table[each.column].iloc[rows], labels[rows], seed)
        if not alone >= least_alone:
            continue
        without = score - each.drop
        if fit_and_score is not None and table.shape[1] > 1:
            refitted = fit_and_score(table.drop(columns=each.column), train, test)
            without = without if math.isnan(refitted) else refitted
        if without - 0.5 <= most_left * (score - 0.5):
            text = (
                f"column {each.column!r} alone predicts {target!r} almost perfectly (MAUC {alone:.3f} alone, "
                f"{without:.3f} without it); will you have it at prediction time?"
            )
            found.append(Doubt("leak", each.column, alone, text))
    return found


def recurring_codes(
    table: Table,
    labels: NDArray[Any],
    train: Ints,
    test: Ints,
    fit_and_score: FitAndScore | None = None,
    *,
    least_alone: float = 0.6,
    least_loss: float = 0.03,
    most_rows: int = 5_000,
    most_scored: int = 2,
    seed: int = 0,
) -> list[Doubt]:
    """Columns of codes that are in training and in test rows, and whose rows share their class: persons, devices, …

    With ``fit_and_score``, the ``most_scored`` strongest ones are fitted with a random split and with a split by whole
    groups. A column whose split costs less than ``least_loss``, or no more than chance allows, is not mentioned.
    """
    rows = train[some_of_each(labels[train], most_rows, seed)]
    found = []
    for name in map(str, table.columns):
        values = table[name]
        if not _are_recurring_codes(name, values) or not _recur(values, train, test):
            continue
        alone = score_alone(values.iloc[rows].astype(str), labels[rows], seed)
        if alone >= least_alone and not _is_smooth(values.iloc[rows], labels[rows], alone, seed):
            found.append((alone, name))
    told = []
    for alone, name in sorted(found, reverse=True)[:most_scored]:
        scores = _both_ways(table, labels, name, "group", fit_and_score, most_rows, seed)
        if scores is not None and scores[0] - scores[1] < max(least_loss, scores[2]):
            continue
        both = "" if scores is None else f" (MAUC {scores[0]:.3f} so, {scores[1]:.3f} with whole groups held out)"
        text = (
            f"column {name!r} holds codes that are in both training and test rows{both}: if new rows will have new "
            f"codes, use --group {name}"
        )
        told.append(Doubt("group", name, alone, text))
    return told


def times_that_matter(
    table: Table,
    labels: NDArray[Any],
    fit_and_score: FitAndScore | None = None,
    *,
    least_loss: float = 0.03,
    most_rows: int = 5_000,
    most_scored: int = 2,
    seed: int = 0,
) -> list[Doubt]:
    """The first of up to ``most_scored`` columns of dates by which the latest rows are predicted worse than random
    rows, by ``least_loss`` and beyond chance."""
    if fit_and_score is None:
        return []
    names = [str(name) for name in table.columns if _times(table[name]) is not None]
    for name in names[:most_scored]:
        scores = _both_ways(table, labels, name, "time", fit_and_score, most_rows, seed)
        if scores is not None and scores[0] - scores[1] >= max(least_loss, scores[2]):
            text = (
                f"the latest rows by column {name!r} are predicted worse than random rows (MAUC {scores[1]:.3f} and "
                f"{scores[0]:.3f}): if the model is for later rows, use --time-column {name}"
            )
            return [Doubt("time", name, float("nan"), text)]
    return []


def _both_ways(
    table: Table,
    labels: NDArray[Any],
    name: str,
    kind: str,
    fit_and_score: FitAndScore | None,
    most_rows: int,
    seed: int,
    share: float = 0.25,
) -> tuple[float, float, float] | None:
    """The score with a random split, with one by whole groups or by time, and by how much chance may make them differ;
    None where one of the scores is unknown."""
    keys = _times(table[name]) if kind == "time" else np.asarray(table[name].astype(str))
    if fit_and_score is None or keys is None:
        return None
    rows = _some_groups(keys, most_rows, seed) if kind == "group" else some_of_each(labels, most_rows, seed)
    try:
        split = (
            by_time(labels[rows], keys[rows], share)
            if kind == "time"
            else by_group(labels[rows], keys[rows], share, seed)
        )
    except Failure:  # too few groups or moments
        return None
    splits = [stratified(labels[rows], share, seed), split]
    random = fit_and_score(table, *(rows[part] for part in splits[0]))
    other = fit_and_score(table.drop(columns=name), *(rows[part] for part in split)) if table.shape[1] > 1 else 0.5
    variances = [_variance(score, labels[rows[test]]) for score, (_, test) in zip((random, other), splits, strict=True)]
    return None if math.isnan(random + other) else (random, other, 2.0 * math.sqrt(sum(variances)))


def _variance(score: float, labels: NDArray[Any]) -> float:
    """About that of a multiclass AUC θ of these test rows: ``θ(1 − θ)/3 · Σ_i (2/C)² / n_i``."""
    counts = np.unique(labels, return_counts=True)[1]
    return score * (1.0 - score) / 3.0 * float(np.sum((2.0 / len(counts)) ** 2 / counts))


def _some_groups(keys: NDArray[Any], most: int, seed: int) -> Ints:
    """All rows of some groups, about ``most`` rows at most."""
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(counts))
    n_groups = max(2, int(np.searchsorted(np.cumsum(counts[order]), most, side="right")))
    return np.flatnonzero(np.isin(codes, order[:n_groups]))


def _are_recurring_codes(name: str, values: Any, *, least_codes: int = 20, least_rows: float = 1.5) -> bool:
    """Many values, each in a few rows, named or written as identifiers are: letters with digits in one word."""
    there = values.dropna()
    codes = there.unique()
    if len(codes) < least_codes or len(there) < least_rows * len(codes) or values.dtype.kind in "bM":
        return False
    if values.dtype.kind == "f" and not np.array_equal(there, np.floor(there)):
        return False
    if named_as_identifier(name):
        return True
    words = codes[:500].astype(str) if values.dtype.kind not in "iuf" else []
    mixed = [any(c.isdigit() for c in w) and any(c.isalpha() for c in w) and " " not in w.strip() for w in words]
    return bool(mixed) and float(np.mean(mixed)) > 0.9 and min(map(len, words)) >= 4


def _recur(values: Any, train: Ints, test: Ints, *, least: float = 0.5) -> bool:
    """Whether at least half of the test rows have a value that a training row has."""
    return bool(values.iloc[test].isin(values.iloc[train].dropna()).mean() >= least)


def _is_smooth(values: Any, labels: NDArray[Any], alone: float, seed: int) -> bool:
    """Whether a number predicts as well by its size as by its exact value: then it measures, and names nothing."""
    return values.dtype.kind in "iuf" and score_alone(values, labels, seed) > alone - 0.03


def _times(values: Any, *, least: int = 20) -> NDArray[np.float64] | None:
    """Dates as numbers; None where the column holds none, or has gaps."""
    import pandas as pd

    if (
        values.dtype.kind in "iufb"
        or values.nunique() < least
        or values.isna().any()
        or not are_dates(values.astype(str))
    ):
        return None
    dates = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
    return None if dates.isna().any() else np.asarray(dates.astype("int64"), dtype=np.float64)


def quick_scorer(
    labels: NDArray[Any], deadline: float, seed: int = 0, *, most_rows: int = 3_000, most_classes: int = 100
) -> FitAndScore:
    """A forest of extra trees on some of the training rows; no score where the last one left too little time.

    ``deadline`` is in the seconds of :func:`time.monotonic`. With very many classes there is no score.
    """
    longest = 0.0

    def fit_and_score(table: Table, train: Ints, test: Ints) -> float:
        nonlocal longest
        began = time.monotonic()
        if began + 2.0 * longest > deadline or len(np.unique(labels)) > most_classes:
            return math.nan
        from sklearn.ensemble import ExtraTreesClassifier

        from mauc.ensemble import TableColumns

        rows, judged = (part[some_of_each(labels[part], most_rows, seed)] for part in (train, test))
        columns = TableColumns()
        X = columns.fit_transform(table.iloc[rows], labels[rows])
        model = ExtraTreesClassifier(60, min_samples_leaf=2, random_state=seed).fit(X, labels[rows])
        known = np.isin(labels[judged], model.classes_)
        scores = model.predict_proba(columns.transform(table.iloc[judged[known]]))
        found = mauc_score(labels[judged[known]], scores, labels=model.classes_, absent="ignore")
        longest = max(longest, time.monotonic() - began)
        return float(found)

    return fit_and_score
