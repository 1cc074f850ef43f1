"""One hash per cell, column and row of a table: the same values give the same hash, whatever file they came from.

A model file keeps the hashes of its training rows (8 bytes each, at most about a million), so that ``mauc predict`` can
say which rows of a new table it was trained on. Only features are hashed: a table to predict has no target.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.read import Table

__all__ = [
    "TRAINED_ON",
    "Hashes",
    "are_known",
    "estimated",
    "fingerprints",
    "known_note",
    "known_rows",
    "row_hashes",
    "training_hashes",
]

Hashes = NDArray[np.uint64]
MISSING = np.uint64(0x9E3779B97F4A7C15)
LARGEST = 2**64 - 1
TRAINED_ON = "trained_on"
"""Column that ``mauc predict`` writes of rows that it knows: yes or no."""


def fingerprints(table: Table) -> dict[str, str]:
    """One digest per column; depends on the order of its rows."""
    return {str(name): hashlib.sha256(_cells(table[name]).tobytes()).hexdigest() for name in table.columns}


def row_hashes(table: Table, columns: Sequence[str] | None = None) -> Hashes:
    """``(N,)`` hash of each row over these columns, default all; the order of the columns does not matter.

    Numbers count by their first 12 digits, since CSV files may lose the last ones. Whole numbers, decimals and
    numbers written as text equal the same number as a float; every kind of missing value is the same.

    Examples
    --------
    >>> import pandas as pd
    >>> a = pd.DataFrame({"x": [1, 2], "soil": ["sand", None]})
    >>> b = pd.DataFrame({"soil": ["sand", float("nan")], "x": [1.0, 2.0]})
    >>> (row_hashes(a) == row_hashes(b)).tolist()
    [True, True]
    """
    total = np.zeros(len(table), dtype=np.uint64)
    for name in table.columns if columns is None else columns:
        seed = int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:8], "little")
        total += _mixed(_cells(table[name]) ^ np.uint64(seed))
    return _mixed(total)


def training_hashes(table: Table, columns: Sequence[str] | None = None, *, most: int = 1_000_000) -> Hashes:
    """What a model file keeps of its training rows: a limit, then the sorted hashes up to it, each once.

    Of up to ``most`` rows all hashes are kept. Of more rows, only those below a limit are: a random sample.
    """
    limit = LARGEST if len(table) <= most else LARGEST * most // len(table)
    hashes = np.unique(row_hashes(table, columns))
    return np.concatenate([np.array([limit], dtype=np.uint64), hashes[hashes <= np.uint64(limit)]])


def are_known(table: Table, kept: Hashes, columns: Sequence[str] | None = None) -> NDArray[np.bool_]:
    """``(N,)`` which rows of a table were trained on, by what :func:`training_hashes` returned."""
    hashes, trained = row_hashes(table, columns), kept[1:]
    place = np.minimum(np.searchsorted(trained, hashes), len(trained) - 1)
    return np.asarray(trained[place] == hashes) if len(trained) else np.zeros(len(hashes), dtype=bool)


def known_rows(table: Table, kept: Hashes, columns: Sequence[str] | None = None) -> tuple[int, bool]:
    """How many rows of a table were trained on, and whether that number is exact.

    ``kept`` is what :func:`training_hashes` returned, ``columns`` are the model's features. Where only a sample of the
    hashes was kept, the number is an estimate.

    Examples
    --------
    >>> import pandas as pd
    >>> train = pd.DataFrame({"x": range(100)})
    >>> known_rows(pd.DataFrame({"x": [5, 7, 200]}), training_hashes(train))
    (2, True)
    """
    return estimated(int(are_known(table, kept, columns).sum()), len(table), kept)


def estimated(n_found: int, n_rows: int, kept: Hashes) -> tuple[int, bool]:
    """The same from the number of rows that :func:`are_known` found, for a table that is read in parts."""
    limit = int(kept[0])
    if limit == LARGEST:
        return n_found, True
    return min(n_rows, round(n_found * LARGEST / limit)), False


def known_note(n_known: int, n_rows: int, *, exact: bool = True) -> str:
    """What to say of them; empty where there are none.

    >>> known_note(776, 1000)
    '776 of these 1000 rows were trained on: a score on them is too good, judge the model by other rows'
    """
    if not n_known:
        return ""
    rows = "1 of these" if n_known == 1 else f"{'' if exact else 'about '}{n_known} of these"
    were = "was" if n_known == 1 else "were"
    return f"{rows} {n_rows} rows {were} trained on: a score on them is too good, judge the model by other rows"


def _cells(values: Any) -> Hashes:
    """``(N,)`` hash of each cell of a column."""
    import pandas as pd

    if values.dtype.kind in "iufb":
        hashes = _of_numbers(_numbers(values))
        hashes[np.asarray(values.isna())] = MISSING
        return hashes
    # Each value once: a column of a few categories may have millions of rows. A missing value has the code -1.
    codes, found = pd.factorize(values.astype(object))
    return np.append(_of_words([_written(value) for value in found]), MISSING)[codes]


def _of_words(words: list[str]) -> Hashes:
    """Of numbers written as text as of numbers, of all others by their letters."""
    import pandas as pd

    text = np.array(words, dtype=object)
    numbers = np.asarray(pd.to_numeric(pd.Series(text), errors="coerce"), dtype=np.float64)
    others = np.isnan(numbers)
    hashes = _of_numbers(numbers)
    hashes[others] = pd.util.hash_array(text[others], categorize=False)
    return hashes


def _numbers(values: Any) -> NDArray[np.float64]:
    """As a CSV file has them: 0.1 in single precision is written 0.1."""
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        numbers = np.asarray(values.astype(str), dtype=np.float64)
    return np.asarray(numbers)


def _written(value: Any) -> str:
    """As a CSV file has it; True and False are 1 and 0, as in a column of truth values."""
    return str(int(value)) if isinstance(value, bool | np.bool_) else str(value).strip()


def _of_numbers(numbers: NDArray[np.float64]) -> Hashes:
    """Of the first 40 bits of the mantissa, rounded; −0 is 0."""
    bits = (numbers + 0.0).view(np.uint64)
    return _mixed((bits + np.uint64(1 << 11)) >> np.uint64(12))


def _mixed(x: Hashes) -> Hashes:
    """The finaliser of SplitMix64: every bit of the input changes about half of the bits of the output."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
