"""Flag columns that may leak the answer, test rows that duplicate training rows, and splits that flatter the score.

A flag changes nothing: a column that looks like a leak may be the one good measurement.
Before training, each column is checked alone. After training, a quick model is fitted with and without a suspicious
column, and with a random split and a split by groups.
"""

import math
import re
import shlex
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier

from mauc._tables.columns import are_dates, date_order, dates_to_iso, iso_dates
from mauc._tables.data import Split, by_group, stratified
from mauc._tables.errors import Failure, option_name
from mauc._tables.read import Table
from mauc._tables.saved_scores import Hashes, row_hashes
from mauc._typing import Floats, Ints
from mauc.ensemble import TableColumns
from mauc.ensemble.columns import CentredNumbers, DateColumn, written_numbers
from mauc.metrics import Importance, Interval, mauc_interval, mauc_score
from mauc.model_selection import RareClassKFold, some_of_each

FEW_ROWS = 10  # with fewer rows, any column may be unique by chance
CHECKED_ROWS = 5_000
OWNER = "account|case|client|customer|member|order|patient|record|row|subject|user"
IDENTIFIER = re.compile(
    # Words that name an ID anywhere, and words that do so only at the end: number_of_rooms is a measurement.
    rf"(^|[^a-z])(({OWNER})?ids?|idx|uuid|guid|unnamed)([^a-z]|$)|(^|[^a-z])(index|key|nr|no|number|row)[^a-z]*$"
)
FitAndScore = Callable[[Table, Ints, Ints], Interval]
"""Fits a quick model on the training rows of a table; returns its MAUC on the test rows, or ``NO_SCORE``."""
NO_SCORE = Interval(math.nan, math.nan, math.nan, math.nan)
"""There is no time to fit a model, or no way to split the rows."""


@dataclass(frozen=True)
class Flag:
    """A column, or rows, that a reader should think about before believing the score."""

    kind: str
    """counter, target or code (before training); leak or group (after); rows for duplicates."""
    column: str | None
    mauc: float
    """Out-of-fold multiclass AUC of this column alone; NaN for flags that do not use it."""
    text: str


def flag_columns(
    table: Table,
    labels: NDArray[Any],
    target: str,
    seed: int = 0,
    *,
    deadline: float = math.inf,
    many_columns: int = 100,
    nearly_perfect: float = 0.998,
) -> tuple[list[Flag], int]:
    """Flag columns of the training rows, which must be in the order of the file; say how many columns were checked.

    No column is begun after the ``deadline``, in the seconds of :func:`time.monotonic`.

    A column is flagged if it counts the rows, predicts the target almost perfectly alone (a MAUC of
    ``nearly_perfect``), or is different in nearly every row, as an ID is. With more than ``many_columns``, the MAUC of
    a column whose :func:`column_recall` is low is not computed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"Id": np.arange(60), "code": np.repeat([7, 8, 9], 20)})
    >>> flags, n_checked = flag_columns(table, np.repeat(["oak", "elm", "yew"], 20), "species")
    >>> for flag in flags:
    ...     print(flag.column, flag.kind, round(flag.mauc, 2))
    Id counter 1.0
    code target 1.0
    """
    rows = some_of_each(labels, int(np.clip(200_000 // max(1, table.shape[1]), 1_000, 5_000)), seed)
    some_labels = labels[rows]
    enough = np.unique(some_labels, return_counts=True)[1].min() >= FEW_ROWS
    found: list[Flag] = []
    for k, name in enumerate(map(str, table.columns)):
        if time.monotonic() > deadline:
            return found, k
        values = _as_measured(table[name])
        if values.nunique(dropna=False) < 2:
            continue
        counts, is_map, is_code = _counts_rows(values), _is_map(values, labels), _is_code(name, values)
        flagged = counts or is_map or is_code
        if not flagged and table.shape[1] > many_columns and column_recall(values.iloc[rows], some_labels) < 0.9:
            continue
        alone = column_mauc(values.iloc[rows], some_labels, seed)
        if counts:
            kind = "counter"
            text = f"looks like a row number (MAUC {alone:.3f} alone): new rows will have other numbers"
        elif is_map or (enough and alone >= nearly_perfect):
            kind = "target"
            how = "alone predicts" if alone >= nearly_perfect else "has no value that two classes share, so it predicts"
            text = f"{how} {target!r} almost perfectly (MAUC {alone:.3f}); will you have it at prediction time?"
        elif is_code:
            kind = "code"
            text = (
                f"has a new value in nearly every row, like an ID (MAUC {alone:.3f} alone): new rows will have others"
            )
        else:
            continue
        found.append(Flag(kind, name, alone, f"column {name!r} {text}"))
    return found, table.shape[1]


def flag_duplicates(
    cells: Mapping[str, Hashes],
    splits: Sequence[Split],
    ignore: Collection[str] = (),
    *,
    dropped: bool = False,
    grouped: bool = False,
) -> list[Flag]:
    """Flag test rows that equal training rows in every column, except those to ``ignore``, such as a row number.

    ``cells`` are the hashes of all cells, by column. ``dropped``: rows that equal others in the target too are gone.
    ``grouped``: groups of rows are kept together.
    Fewer than one duplicate in 1,000 test rows gives no flag. Rows of few columns with few values always repeat: there
    must be ten times as many duplicates as chance gives, if the columns were independent.
    """
    kept = {name: each for name, each in cells.items() if name not in ignore}
    if not kept:
        return []
    hashes = row_hashes(kept)
    n = sum(int(np.isin(hashes[test], hashes[train]).sum()) for train, test in splits)
    n_tested = sum(len(test) for _, test in splits)
    if n < max(1.0, 0.001 * n_tested):
        return []
    different = np.unique(hashes, return_index=True)[1]
    by_chance = len(hashes) * math.prod(_share_of_equal_pairs(each[different]) for each in kept.values())
    if n < 10.0 * n_tested * min(1.0, by_chance):
        return []
    # Rows that differ in a flagged column are not duplicates for --drop-duplicates.
    advice = [] if dropped or ignore else [f"use {option_name('drop-duplicates')}"]
    advice += [] if grouped else [f"keep related rows together with {option_name('group')}"]
    rows = "1 test row duplicates a training row" if n == 1 else f"{n:,} test rows duplicate training rows"
    text = (
        f"{rows}{' in all columns that are not flagged' if ignore else ''} ({100 * n / n_tested:.1f} % of the test "
        f"rows): {', or '.join(advice) or 'the score may be too good'}"
    )
    return [Flag("rows", None, math.nan, text)]


def _share_of_equal_pairs(values: NDArray[Any]) -> float:
    counts = np.unique(values, return_counts=True)[1]
    return float(counts @ (counts - 1)) / max(1, len(values) * (len(values) - 1))


def column_mauc(values: Any, labels: NDArray[Any], seed: int = 0, *, as_codes: bool = False) -> float:
    """Return the out-of-fold MAUC of one column alone; NaN if fewer than two classes can be held out.

    A decision tree scores numbers and dates, and the class frequencies of each value score all others, and numbers
    ``as_codes``, with equal weight for every class. A value without training rows gets the same score for every class.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    numbers = None if as_codes else _as_numbers(values)
    is_number = numbers is not None
    # A tree takes float32.
    cells = _factorised(values) if numbers is None else CentredNumbers().fit_transform(numbers[:, None])
    scores = np.full((len(codes), len(classes)), np.nan)
    for train, test in RareClassKFold(3, random_state=seed).split(codes, codes):
        if len(test):
            learn = _tree if is_number else _frequencies
            scores[test] = learn(cells[train], codes[train], cells[test], len(classes))
    rows = np.flatnonzero(~np.isnan(scores[:, 0]))
    if len(np.unique(codes[rows])) < 2:
        return math.nan
    return mauc_score(labels[rows], scores[rows], labels=classes, absent="ignore")


def column_recall(values: Any, labels: NDArray[Any], most_bins: int = 100) -> float:
    """Return the balanced accuracy, on the same rows, of the best class of each range of numbers or each text.

    It is a quick estimate of what a column can predict: too high if few rows share a range, because the same rows are
    scored, and too low if ranges span several classes, as with more than about 50 classes.

    >>> import pandas as pd
    >>> column_recall(pd.Series(np.arange(40.0)), np.repeat(["a", "b"], 20))
    1.0
    """
    values, n_bins = _as_measured(values), int(np.clip(len(labels) // 10, 2, most_bins))
    _, codes = np.unique(labels, return_inverse=True)
    if values.dtype.kind in "iufb":
        distinct, cells = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
        cells = cells * n_bins // max(n_bins, len(distinct))
    else:
        cells = _factorised(values)
    counts = np.zeros((int(cells.max()) + 1, int(codes.max()) + 1))
    np.add.at(counts, (cells, codes), 1.0)
    shares = counts / counts.sum(axis=0)
    right = np.where(np.arange(shares.shape[1]) == shares.argmax(axis=1)[:, None], shares, 0.0)
    return float(right.sum(axis=0).mean())


def _tree(cells: Any, codes: Ints, new: Any, n_classes: int) -> NDArray[np.float64]:
    # A class that is an interval of the numbers needs one leaf; some splits are inside a class.
    leaves = max(64, 2 * n_classes)
    tree = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=2, class_weight="balanced", random_state=0)
    scores = np.zeros((len(new), n_classes))
    scores[:, np.unique(codes)] = tree.fit(cells, codes).predict_proba(new)
    return scores


def _frequencies(cells: Ints, codes: Ints, new: Ints, n_classes: int) -> NDArray[np.float64]:
    counts = np.zeros((max(cells.max(), new.max()) + 1, n_classes))
    np.add.at(counts, (cells, codes), 1.0)
    shares = (counts + 1e-3) / np.maximum(counts.sum(axis=0), 1.0)
    return np.asarray((shares / shares.sum(axis=1, keepdims=True))[new])


def _factorised(values: Any) -> Ints:
    texts = values if values.dtype.kind in "iufb" else values.astype(str).where(values.notna())
    return np.asarray(pd.factorize(texts, use_na_sentinel=False)[0])


def _as_measured(values: Any) -> Any:
    """Return a column of numbers that are written as text as numbers; others stay."""
    numbers = written_numbers(values)
    return values if numbers is None else pd.Series(numbers, index=values.index, name=values.name)


def _as_numbers(values: Any) -> Floats | None:
    """Return numbers, and dates as seconds since one of them, as float64; None for other columns."""
    if values.dtype.kind in "iufb":
        return np.asarray(values.to_numpy(np.float64, na_value=np.nan))
    dates = iso_dates(dates_to_iso(values, "month-first") if date_order(values) else values)
    if dates is None:
        return written_numbers(values)
    return np.asarray(DateColumn().fit_transform(dates).iloc[:, -1])


def _counts_rows(values: Any) -> bool:
    """Return whether these are whole numbers that rise or fall from row to row, or fill half of their range."""
    if values.dtype.kind not in "iuf" or len(values) < FEW_ROWS or values.isna().any() or not values.is_unique:
        return False
    numbers = np.asarray(values, dtype=np.float64)
    steps = np.diff(numbers)
    runs = (steps > 0).all() or (steps < 0).all() or np.ptp(numbers) < 2 * len(numbers)
    return bool(runs and np.array_equal(numbers, np.floor(numbers)))


def _is_map(values: Any, labels: NDArray[Any]) -> bool:
    """Return whether every value has one class, and occurs three times or more on average."""
    if 3 * values.nunique(dropna=False) > len(values):
        return False
    cells = _factorised(values)
    _, codes = np.unique(labels, return_inverse=True)
    return len(np.unique(cells * (codes.max() + 1) + codes)) == int(cells.max()) + 1


def _is_code(name: str, values: Any) -> bool:
    """Return whether these are nearly unique words, or whole numbers with the name of an ID, and no dates."""
    known = values.dropna()
    if len(known) < FEW_ROWS or known.nunique() < 0.9 * len(known):
        return False
    if values.dtype.kind in "iuf":
        return bool(np.array_equal(known, np.floor(known)) and _is_named_as_id(name))
    words = known.astype(str).str.strip()
    return bool(words.str.contains(r"\s").mean() < 0.5) and not are_dates(words)


def _is_named_as_id(name: str) -> bool:
    """Return whether a column's name has a word such as id or userid, or ends in one such as key or number.

    >>> [_is_named_as_id(name) for name in ("PatientId", "row_id", "userid", "IDNumber", "case no. 2")]
    [True, True, True, True, True]
    >>> [_is_named_as_id(name) for name in ("width", "idea", "paid", "number_of_rooms", "key_rate")]
    [False, False, False, False, False]
    """
    # A word begins after a small letter, as in PatientID, or at the last capital of several, as in IDNumber, not IDs.
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s\b)[a-z])", "_", name)
    return IDENTIFIER.search(words.lower()) is not None


def flag_leaks(
    table: Table,
    labels: NDArray[Any],
    train: Ints,
    test: Ints,
    target: str,
    score: float,
    importance: Sequence[Importance],
    fit_and_score: FitAndScore,
    seed: int = 0,
) -> list[Flag]:
    """Flag a column that ranks nearly as well alone, if at most a third of (score - 0.5) remains without it.

    Nearly as well: 80 % of (score - 0.5), and a MAUC of 0.7 or more.
    "Without it" is the model with the column shuffled and, if there is time, a quick model fitted without the column.
    """
    rows = train[some_of_each(labels[train], CHECKED_ROWS, seed)]
    most_left = 0.5 + (score - 0.5) / 3
    found = []
    for each in importance:
        if score - each.drop > most_left:
            continue
        alone = column_mauc(table[each.column].iloc[rows], labels[rows], seed)
        if not alone >= max(0.7, 0.5 + 0.8 * (score - 0.5)):
            continue
        rest = table.drop(columns=each.column)
        refitted = fit_and_score(rest, train, test) if rest.shape[1] else NO_SCORE
        without = score - each.drop if math.isnan(refitted.score) else refitted.score
        if without <= most_left:
            text = (
                f"column {each.column!r} alone predicts {target!r} (MAUC {alone:.3f} alone, {without:.3f} without "
                f"it); will you have it at prediction time?"
            )
            found.append(Flag("leak", each.column, alone, text))
    return found


def flag_groups(
    table: Table, labels: NDArray[Any], train: Ints, test: Ints, fit_and_score: FitAndScore, seed: int = 0
) -> list[Flag]:
    """Flag columns of codes that are in training and test rows and predict the class: persons, devices, …

    For the two strongest ones, a quick model is scored with a random split and with whole groups held out. A column is
    not flagged if the difference is within chance, or too small to matter.
    """
    rows = train[some_of_each(labels[train], CHECKED_ROWS, seed)]
    found = []
    for name in map(str, table.columns):
        values = table[name]
        recur = are_recurring_codes(name, values, labels, seed)
        if recur and values.iloc[test].isin(values.iloc[train].dropna()).mean() >= 0.5:
            alone = column_mauc(values.iloc[rows], labels[rows], seed, as_codes=True)
            found += [(alone, name)] if alone >= 0.6 else []
    flags = []
    for alone, name in sorted(found, reverse=True)[:2]:
        random, grouped = _random_and_grouped(table, labels, name, fit_and_score, seed)
        difference = random.score - grouped.score
        # A NaN difference does not skip the column: recurring codes alone justify the flag.
        if difference < max(0.03, 2.0 * math.hypot(random.stderr, grouped.stderr)):
            continue
        scores = f" (MAUC of a quick model: {random.score:.3f}, but {grouped.score:.3f} with whole groups held out)"
        both = "" if math.isnan(difference) else scores
        text = (
            f"column {name!r} holds codes that are in both training and test rows{both}: if new rows will have new "
            f"codes, use {option_name('group')} {shlex.quote(name)}"
        )
        flags.append(Flag("group", name, alone, text))
    return flags


def _random_and_grouped(
    table: Table, labels: NDArray[Any], name: str, fit_and_score: FitAndScore, seed: int, share: float = 0.25
) -> tuple[Interval, Interval]:
    """Return the MAUC of a quick model with a random split, and with whole groups held out and without their column."""
    groups = np.asarray(table[name].astype(str))
    rows = _rows_of_some_groups(groups, CHECKED_ROWS, seed)
    try:
        train, test = (rows[part] for part in by_group(labels[rows], groups[rows], share, seed))
    except Failure:  # too few groups
        return NO_SCORE, NO_SCORE
    random_train, random_test = (rows[part] for part in stratified(labels[rows], share, seed))
    random = fit_and_score(table, random_train, random_test)
    rest = table.drop(columns=name)
    return random, fit_and_score(rest, train, test) if rest.shape[1] else Interval(0.5, 0.5, 0.5, 0.0)


def _rows_of_some_groups(keys: NDArray[Any], most: int, seed: int) -> Ints:
    """Return all rows of some groups, about ``most`` rows at most."""
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(counts))
    n_groups = max(2, int(np.searchsorted(np.cumsum(counts[order]), most, side="right")))
    return np.flatnonzero(np.isin(codes, order[:n_groups]))


def are_recurring_codes(name: str, values: Any, labels: NDArray[Any], seed: int = 0) -> bool:
    """Return whether a column holds recurring IDs: 20 values or more, each in a few rows, with the name or form of one.

    A number that predicts the class as well by its size as by its exact value is a measurement, not a code.
    """
    is_number, is_id = values.dtype.kind in "iuf", _is_named_as_id(name)
    if values.dtype.kind in "bM" or (is_number and not is_id):
        return False
    known = values.dropna()
    codes = known.unique()
    if len(codes) < 20 or len(known) < 1.5 * len(codes):
        return False
    if not is_id:
        return _are_letters_with_digits(codes[:500].astype(str))
    if not is_number:
        return True
    if not np.array_equal(known, np.floor(known)):
        return False
    rows = some_of_each(labels, CHECKED_ROWS, seed)
    by_size = column_mauc(values.iloc[rows], labels[rows], seed)
    return not (by_size >= 0.6 and by_size > column_mauc(values.iloc[rows], labels[rows], seed, as_codes=True) - 0.03)


def _are_letters_with_digits(words: Any) -> bool:
    mixed = [any(c.isdigit() for c in w) and any(c.isalpha() for c in w) and " " not in w.strip() for w in words]
    return float(np.mean(mixed)) > 0.9 and min(map(len, words)) >= 4


def quick_scorer(labels: NDArray[Any], deadline: float, seed: int = 0, *, most_classes: int = 100) -> FitAndScore:
    """Return a scorer that fits extra trees on up to 3,000 of the training rows.

    There is no score if the time until the ``deadline``, in the seconds of :func:`time.monotonic`, is less than twice
    that of the longest call so far, or where there are too many classes.
    """
    longest = 1.0

    def fit_and_score(table: Table, train: Ints, test: Ints) -> Interval:
        nonlocal longest
        began = time.monotonic()
        if began + 2.0 * longest > deadline or len(np.unique(labels)) > most_classes:
            return NO_SCORE
        fitted, scored = (part[some_of_each(labels[part], 3_000, seed)] for part in (train, test))
        columns = TableColumns()
        X = columns.fit_transform(table.iloc[fitted], labels[fitted])
        model = ExtraTreesClassifier(60, min_samples_leaf=2, random_state=seed).fit(X, labels[fitted])
        scored = scored[np.isin(labels[scored], model.classes_)]
        scores = model.predict_proba(columns.transform(table.iloc[scored]))
        longest = max(longest, time.monotonic() - began)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes with one row among these
            return mauc_interval(labels[scored], scores, labels=model.classes_, absent="ignore")

    return fit_and_score
