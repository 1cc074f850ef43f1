"""Flags columns that may leak the answer, and test rows that duplicate training rows.

Nothing is left out because of a flag unless the user says so: a column that looks like a leak may be the one good
measurement. Each flag comes with the score of that column alone.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.holdout import some_of_each
from mauc._tables.read import Table
from mauc._tables.row_hashes import row_hashes
from mauc._typing import Ints
from mauc.metrics import mauc_score
from mauc.model_selection import RareClassKFold

__all__ = [
    "COLUMN_KINDS",
    "Doubt",
    "are_dates",
    "column_doubts",
    "column_scores",
    "named_as_identifier",
    "recall_alone",
    "repeated_rows",
    "score_alone",
    "suspects",
]

COLUMN_KINDS = ("counter", "target", "constant", "code")
MOST_CELLS = 200_000
MOST_ROWS, FEWEST_ROWS = 5_000, 1_000
ENOUGH = 10  # rows, below which any column is unique by chance
NEARLY = 0.9  # distinct values per row of a code
SURE = 0.998  # multiclass AUC of one column from which on it may repeat the target
IDENTIFIER = re.compile(r"(^|[^a-z])(id|ids|idx|index|uuid|guid|key|nr|no|number|row|rowid|unnamed)([^a-z]|$)")


@dataclass(frozen=True)
class Doubt:
    """A column, or rows, that a reader should think about before believing the score."""

    kind: str
    """Of a column: counter, target, constant or code; leak, group or time (:mod:`mauc._tables.leaks`). Of rows:
    rows."""
    column: str | None
    mauc: float
    """Multiclass AUC of this column alone, out of fold; NaN where that says nothing."""
    text: str

    def to_json(self) -> dict[str, Any]:
        """By name, as JSON has it."""
        return dict(vars(self))


def column_doubts(
    table: Table, labels: NDArray[Any], target: str, seed: int = 0, *, many_columns: int = 100
) -> list[Doubt]:
    """Flagged columns, in the order of the table. Pass training rows alone, in the order of the file.

    A column is flagged if it is constant, counts the rows, predicts the target almost perfectly by itself, or is
    different in nearly every row, as an ID is. Of more than ``many_columns``, those that cannot predict the target
    almost perfectly are told by :func:`recall_alone`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> table = pd.DataFrame({"Id": np.arange(60), "unit": "cm", "code": np.repeat([7, 8, 9], 20)})
    >>> for doubt in column_doubts(table, np.repeat(["oak", "elm", "yew"], 20), "species"):
    ...     print(doubt.column, doubt.kind, round(doubt.mauc, 2))
    Id counter 1.0
    unit constant nan
    code target 1.0
    """
    most = int(np.clip(MOST_CELLS // max(1, table.shape[1]), FEWEST_ROWS, MOST_ROWS))
    rows = some_of_each(labels, most, seed)
    some_labels = labels[rows]
    enough = np.unique(some_labels, return_counts=True)[1].min() >= ENOUGH
    found = []
    for name in map(str, table.columns):
        values = table[name]
        if values.nunique(dropna=False) < 2:
            found.append(Doubt("constant", name, float("nan"), f"column {name!r} has the same value in every row"))
            continue
        counts, is_map, is_code = _counts_rows(values), _is_map(values, labels), _is_code(name, values)
        flagged = counts or is_map or is_code
        if not flagged and table.shape[1] > many_columns and recall_alone(values.iloc[rows], some_labels) < 0.9:
            continue
        alone = score_alone(values.iloc[rows], some_labels, seed)
        if counts:
            kind, text = (
                "counter",
                f"looks like a row number (MAUC {alone:.3f} alone): new rows will have other numbers",
            )
        elif is_map or (enough and alone >= SURE):
            kind = "target"
            text = (
                f"alone predicts {target!r} almost perfectly (MAUC {alone:.3f}); will you have it at prediction time?"
            )
        elif is_code:
            kind = "code"
            text = f"is different in nearly every row, like an ID (MAUC {alone:.3f} alone): new rows will have others"
        else:
            continue
        found.append(Doubt(kind, name, alone, f"column {name!r} {text}"))
    return found


def suspects(doubts: Sequence[Doubt]) -> list[str]:
    """The columns among them."""
    return [doubt.column for doubt in doubts if doubt.column is not None]


def repeated_rows(table: Table, train: Ints, test: Ints, but: Sequence[str] = ()) -> list[Doubt]:
    """One flag where test rows equal training rows in every column ``but`` these; else none.

    A row number would hide all duplicates: name such columns in ``but``.
    """
    hashes = row_hashes(table, [str(name) for name in table.columns if name not in but] or None)
    n_repeated = int(np.isin(hashes[test], hashes[train]).sum())
    if not n_repeated:
        return []
    rows = (
        "1 test row duplicates a training row" if n_repeated == 1 else f"{n_repeated} test rows duplicate training rows"
    )
    text = (
        f"{rows}{' in all columns that are not flagged' if but else ''} ({100 * n_repeated / len(test):.1f} % of the "
        "test rows): drop duplicates, or keep rows of one origin together with --group"
    )
    return [Doubt("rows", None, float("nan"), text)]


def column_scores(values: Any, labels: NDArray[Any], seed: int = 0) -> tuple[Ints, NDArray[np.float64]]:
    """Rows that can be held out, and their ``(n, C)`` out-of-fold scores by one column alone.

    Numbers go through a decision tree, all others through the class frequencies of each value, with equal weight for
    every class. A value without training rows gets the same score for every class.
    """
    _, codes = np.unique(labels, return_inverse=True)
    is_number = values.dtype.kind in "iufb"
    cells = np.asarray(values, dtype=np.float64)[:, None] if is_number else _factorised(values)
    scores = np.full((len(codes), codes.max() + 1), np.nan)
    for train, test in RareClassKFold(3, random_state=seed).split(codes, codes):
        if len(test):
            learn = _tree if is_number else _frequencies
            scores[test] = learn(cells[train], codes[train], cells[test], scores.shape[1])
    rows = np.flatnonzero(~np.isnan(scores[:, 0]))
    return rows, scores[rows]


def score_alone(values: Any, labels: NDArray[Any], seed: int = 0) -> float:
    """Multiclass AUC of one column alone, out of fold; NaN where fewer than two classes can be held out."""
    rows, scores = column_scores(values, labels, seed)
    if len(np.unique(labels[rows])) < 2:
        return float("nan")
    return mauc_score(labels[rows], scores, labels=np.unique(labels), absent="ignore")


def recall_alone(values: Any, labels: NDArray[Any], most_bins: int = 100) -> float:
    """Balanced accuracy of the best class of each stretch of numbers, or of each text, on the rows it is chosen by.

    An upper bound of sorts on what a column is worth, for a hundredth of the time of :func:`score_alone`.

    >>> import pandas as pd
    >>> recall_alone(pd.Series(np.arange(40.0)), np.repeat(["a", "b"], 20))
    1.0
    """
    n_bins = int(np.clip(len(labels) // 10, 2, most_bins))
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
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=2, class_weight="balanced", random_state=0)
    scores = np.zeros((len(new), n_classes))
    scores[:, np.unique(codes)] = tree.fit(cells, codes).predict_proba(new)
    return scores


def _frequencies(cells: Ints, codes: Ints, new: Ints, n_classes: int) -> NDArray[np.float64]:
    counts = np.zeros((max(cells.max(), new.max()) + 1, n_classes))
    np.add.at(counts, (cells, codes), 1.0)
    shares = (counts + 1e-3) / np.maximum(counts.sum(axis=0), 1.0)
    return np.asarray((shares / shares.sum(axis=1, keepdims=True))[new])


def _factorised(values: Any) -> Ints:
    import pandas as pd

    texts = values if values.dtype.kind in "iufb" else values.astype(str).where(values.notna())
    return np.asarray(pd.factorize(texts, use_na_sentinel=False)[0])


def _whole_numbers(values: Any) -> NDArray[np.float64] | None:
    """A column of whole numbers without gaps, all of them different."""
    if values.dtype.kind not in "iuf" or len(values) < ENOUGH or values.isna().any():
        return None
    numbers = np.asarray(values, dtype=np.float64)
    return numbers if np.array_equal(numbers, np.floor(numbers)) and values.is_unique else None


def _counts_rows(values: Any) -> bool:
    """Whole numbers that rise or fall from row to row, or fill half of their range without a repeat."""
    numbers = _whole_numbers(values)
    if numbers is None:
        return False
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all() or np.ptp(numbers) < 2 * len(numbers))


def _is_map(values: Any, labels: NDArray[Any]) -> bool:
    """Every value has one class, and occurs three times or more on average."""
    if 3 * values.nunique(dropna=False) > len(values):
        return False
    cells = _factorised(values)
    n_values = int(cells.max()) + 1
    _, codes = np.unique(labels, return_inverse=True)
    return len(np.unique(cells * (codes.max() + 1) + codes)) == n_values


def _is_code(name: str, values: Any) -> bool:
    """Text of one word, or a whole number that is named as identifiers are, nearly unique; no date."""
    there = values.dropna()
    if len(there) < ENOUGH or there.nunique() < NEARLY * len(there):
        return False
    if values.dtype.kind in "iuf":
        numbers = np.asarray(there, dtype=np.float64)
        return bool(np.array_equal(numbers, np.floor(numbers)) and named_as_identifier(name))
    words = there.astype(str).str.strip()
    return not _are_decimals(there) and bool(words.str.contains(r"\s").mean() < 0.5) and not are_dates(words)


def named_as_identifier(name: str) -> bool:
    """Whether a column's name has a word such as id, key or index.

    >>> [named_as_identifier(name) for name in ("PatientId", "row_id", "width", "idea")]
    [True, True, False, False]
    """
    return IDENTIFIER.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) is not None


def _are_decimals(values: Any) -> bool:
    """Numbers that Parquet keeps as decimals."""
    from pandas.api.types import infer_dtype

    return infer_dtype(values) == "decimal"


def are_dates(words: Any) -> bool:
    """Whether nine tenths of these strings can be read as dates."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that formats are guessed
        return bool(pd.to_datetime(words.head(200), errors="coerce", utc=True).notna().mean() > 0.9)
