"""Hash rows, and save the test scores of ``mauc fit`` beside a model, so that two fits can be compared later.

The same values give the same hash, whatever file they came from. A model file holds the hashes of its training rows, 8
bytes each, so that ``mauc predict`` can name the rows of a new table that it was trained on. ``model.scores.npz`` has
the class and the scores of each test row, a digest of each column of the table, and one of the model file, so that only
scores of the same table are compared.
"""

import functools
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._archive import MAX_SIZE, Refused, TooLarge, read_arrays
from mauc._io import write_whole
from mauc._tables.errors import Failure
from mauc._tables.model_file import is_model
from mauc._tables.read import Table
from mauc._tables.text import EXACT
from mauc._typing import Floats, Ints

Hashes = NDArray[np.uint64]
MISSING, INTEGER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
SMALLEST_INT, LARGEST_INT = -(2**63), 2**63 - 1
WHOLE = re.compile(r"([+-]?\d+)(?:\.0*)?")
DATE = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d*))?")
TRAINED_ON = "trained_on"
"""Column of ``mauc predict``: yes for training rows, else no."""


def cell_hashes(table: Table) -> dict[str, Hashes]:
    """Return the ``(N,)`` hashes of the cells of each column.

    Equal values have equal hashes in every file, in every part of a file, and beside any other cells. A whole number
    counts with all of its digits, whether it was read as an integer, a float or a text. A number with a fraction counts
    by its first 12 digits: spreadsheets and R write 15 of 17. Truth values are 1 and 0, midnight is the date alone, and
    all missing values are the same.
    """
    # Numbers at once: a table may have thousands of columns.
    kinds = {name: kind for name, kind in table.dtypes.items() if isinstance(kind, np.dtype)}
    wide = {name for name, kind in kinds.items() if kind.kind == "u" and (table[name] > LARGEST_INT).any()}
    integers = [name for name, kind in kinds.items() if kind.kind in "iub" and name not in wide]
    floats = [name for name, kind in kinds.items() if kind == np.float64]
    found = dict(zip(integers, _hash_integers(table[integers].to_numpy(np.int64).T), strict=True))
    found |= dict(zip(floats, _hash_floats(table[floats].to_numpy(np.float64).T), strict=True))
    return {str(name): found[name] if name in found else _hash_others(table[name]) for name in table.columns}


def column_digests(cells: Mapping[str, Hashes]) -> dict[str, str]:
    """Return a digest of each column, which depends on the order of the rows."""
    return {name: hashlib.sha256(hashes.tobytes()).hexdigest() for name, hashes in cells.items()}


def row_hashes(cells: Mapping[str, Hashes]) -> Hashes:
    """Return the ``(N,)`` hash of each row, from the hashes of its cells; the order of columns does not matter.

    Examples
    --------
    >>> import pandas as pd
    >>> a = pd.DataFrame({"x": [1, 2], "soil": ["sand", None]})
    >>> b = pd.DataFrame({"soil": ["sand", float("nan")], "x": [1.0, 2.0]})
    >>> (row_hashes(cell_hashes(a)) == row_hashes(cell_hashes(b))).tolist()
    [True, True]
    """
    from pandas.util import hash_array

    seeds = [int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little") for name in cells]
    mixed = (hash_array(hashes ^ np.uint64(seed)) for hashes, seed in zip(cells.values(), seeds, strict=True))
    return hash_array(functools.reduce(np.add, mixed))


def trained_note(n_trained: int, n_rows: int) -> str:
    """Return a note about training rows; empty if there are none.

    >>> trained_note(776, 1000)
    '776 of these 1,000 rows were training rows, so the score is too good: test the model on other rows'
    """
    if not n_trained:
        return ""
    if n_trained == n_rows:
        which = "these rows are all training rows" if n_rows > 1 else "this row is a training row"
    else:
        were = "was a training row" if n_trained == 1 else "were training rows"
        which = f"{n_trained:,} of these {n_rows:,} rows {were}"
    return f"{which}, so the score is too good: test the model on other rows"


def _hash_others(values: Any) -> Hashes:
    import pandas as pd

    # Each value once: a column of a few categories may have millions of rows. A missing value has the code -1.
    codes, found = pd.factorize(values)
    return np.append(_hash_texts([_spelling(value) for value in np.asarray(found)]), MISSING)[codes]


def _spelling(value: Any) -> str:
    """Return a value as text, of several spellings the first.

    >>> [_spelling(value) for value in (True, "TRUE", " 007 ", "2024-03-31T00:00:00", "2024-03-31 10:30:00.500")]
    ['1', '1', '007', '2024-03-31', '2024-03-31 10:30:00.5']
    """
    text = str(value).strip()
    date = DATE.fullmatch(text)
    if date:
        day, clock, fraction = date[1], date[2], (date[3] or "").rstrip("0")
        return day if clock.strip("0:") == fraction == "" else f"{day} {clock}{fraction and '.'}{fraction}"
    return {"true": "1", "false": "0"}.get(text.lower(), text)


def _hash_texts(texts: Sequence[str]) -> Hashes:
    """Hash texts, and those of numbers as the numbers."""
    import pandas as pd

    words = np.array(texts, dtype=object)
    numbers = np.array(pd.to_numeric(pd.Series(words), errors="coerce"), dtype=np.float64)
    found = ~np.isnan(numbers)
    numbers[found] = words[found].astype(np.float64)  # pandas 2 rounds the last digit another way
    hashes, others = _hash_floats(numbers), np.isnan(numbers)
    hashes[others] = pd.util.hash_array(words[others], categorize=False)
    long = {k: WHOLE.fullmatch(words[k]) for k in np.flatnonzero(np.abs(numbers) >= EXACT)}
    integers = {k: int(whole[1]) for k, whole in long.items() if whole}
    hashes[list(integers)] = _hash_long_integers(list(integers.values()))
    return hashes


def _hash_floats(numbers: NDArray[np.float64]) -> Hashes:
    """Hash whole numbers as integers, and of others the first 40 bits of the mantissa, rounded; NaN is missing."""
    from pandas.util import hash_array

    bits = (numbers.view(np.uint64) + np.uint64(1 << 11)) >> np.uint64(12)
    hashes = np.asarray(hash_array(bits.ravel())).reshape(numbers.shape)
    whole = numbers == np.floor(numbers)
    fits = whole & (numbers >= SMALLEST_INT) & (numbers < LARGEST_INT)
    hashes[fits] = _hash_integers(numbers[fits].astype(np.int64))
    infinite, large = np.isinf(numbers), whole & ~fits & np.isfinite(numbers)
    hashes[infinite] = hash_array(numbers[infinite].astype(str).astype(object), categorize=False)
    hashes[large] = _hash_long_integers([int(number) for number in numbers[large]])
    hashes[np.isnan(numbers)] = MISSING
    return hashes


def _hash_integers(integers: Ints) -> Hashes:
    from pandas.util import hash_array

    # A fraction of these bits has another hash.
    return np.asarray(hash_array(integers.ravel().view(np.uint64)) ^ INTEGER).reshape(integers.shape)


def _hash_long_integers(integers: Sequence[int]) -> Hashes:
    """Hash integers of any size."""
    from pandas.util import hash_array

    fits = np.array([SMALLEST_INT <= each <= LARGEST_INT for each in integers], dtype=bool)
    hashes = hash_array(np.array([str(each) for each in integers], dtype=object), categorize=False)
    hashes[fits] = _hash_integers(np.array(integers, dtype=object)[fits].astype(np.int64))
    return np.asarray(hashes)


@dataclass(frozen=True, eq=False)
class SavedScores:
    """The scores of one model on its test rows."""

    about: str
    target: str
    how: str
    """How the test rows were chosen, in words."""
    n_rows: int
    """Rows of the whole table."""
    rows: Ints
    """``(n,)`` positions of the test rows."""
    labels: NDArray[Any]
    """``(n,)`` their classes."""
    classes: NDArray[Any]
    """``(C,)`` the class of each column."""
    scores: Floats
    """``(n, C)``"""
    columns: dict[str, str]
    """Digest of each column of the table."""
    predicted: NDArray[Any]
    """``(n,)`` the class that the model predicts."""
    groups: NDArray[Any] | None = None
    """``(n,)`` number of the group of each row; None if rows are independent."""


def scores_path(model: Path) -> Path:
    """Return the path of the scores of a model file: ``model.scores.npz`` beside ``model.skops``."""
    return model.with_name(model.name.removesuffix(".skops") + ".scores.npz")


def is_saved_scores(path: Path) -> bool:
    """Return whether a file has the name of saved scores."""
    return path.name.endswith(".scores.npz") and path.is_file()


def write_saved_scores(model: Path, saved: SavedScores) -> Path:
    """Write the scores beside the model file, which must exist; return their path."""
    path = scores_path(model)
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in vars(saved).items() if value is not None}
    arrays["columns"] = np.array(list(saved.columns.items()), dtype=str).reshape(-1, 2)
    arrays["model"] = np.array(_digest(model))
    arrays = {name: array.astype(str) if array.dtype == object else array for name, array in arrays.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_whole(path, buffer.getvalue())
    return path


def read_saved_scores(path: Path, max_size: float = MAX_SIZE) -> SavedScores:
    """Return the scores in a ``.scores.npz`` file, or beside a model file; refuse those of another model."""
    if is_saved_scores(path):
        return _read(path, max_size)[0]
    if not path.exists():
        raise Failure(f"File not found: {path}: name a model file that mauc fit wrote")
    if not is_model(path):
        raise Failure(
            f"{path} is not a model file: name those that mauc fit wrote; to compare tables of scores use mauc "
            "evaluate with --compare"
        )
    beside = scores_path(path)
    if not beside.exists():
        raise Failure(f"File not found: {beside}, the test scores of {path}: put it back, or fit again")
    saved, digest = _read(beside, max_size)
    if digest != _digest(path):
        raise Failure(f"{beside} holds the scores of another model than {path}: fit again")
    return saved


def _read(path: Path, max_size: float) -> tuple[SavedScores, str]:
    """Return the scores, and the digest of the model file."""
    try:
        found: dict[str, Any] = read_arrays(path, max_size)
        digest = str(found.pop("model"))
        found |= {name: str(found[name]) for name in ("about", "target", "how")}
        found |= {"n_rows": int(found["n_rows"]), "columns": dict(found["columns"].tolist())}
        saved = SavedScores(**found)
        n, c = len(saved.rows), len(saved.classes)
        shapes_fit = len(saved.labels) == n and saved.scores.shape == (n, c) and saved.predicted.shape == (n,)
        groups_fit = saved.groups is None or saved.groups.shape == (n,)
        sound = saved.rows.dtype.kind == "i" and shapes_fit and groups_fit and bool(np.isfinite(saved.scores).all())
    except TooLarge as error:
        raise Failure(f"{path} {error}: raise --max-size if you trust the file") from None
    except (Refused, KeyError, ValueError, IndexError, TypeError):
        sound = False
    if not sound:
        raise Failure(f"{path} is damaged or was not written by mauc fit: fit again")
    return saved, digest


def check_same_table(first: SavedScores, other: SavedScores, names: Sequence[Path]) -> None:
    """Refuse scores of different tables: other rows, classes or targets, or a common column that differs."""
    a, b = names
    if first.target != other.target:
        raise Failure(f"{a} predicts {first.target!r} and {b} predicts {other.target!r}: compare models of one target")
    if first.n_rows != other.n_rows:
        raise Failure(
            f"the table of {a} has {first.n_rows} rows and that of {b} {other.n_rows}: fit both on the same table"
        )
    if not np.array_equal(first.classes, other.classes):
        raise Failure(f"{a} and {b} score different classes: fit both on the same table")
    changed = [name for name in first.columns if other.columns.get(name, first.columns[name]) != first.columns[name]]
    if changed:
        raise Failure(
            f"column {changed[0]!r} differs between the tables of {a} and {b}: fit both on the same rows in the same "
            "order"
        )


def common_rows(
    saved: Sequence[SavedScores], names: Sequence[Path]
) -> tuple[NDArray[Any], list[Floats], NDArray[Any] | None]:
    """Return the classes of the shared test rows, the scores of each model, and groups if any model has them."""
    rows = saved[0].rows
    for each in saved[1:]:
        rows = np.intersect1d(rows, each.rows)
    places = [np.searchsorted(each.rows, rows) for each in saved]
    labels = [each.labels[place] for each, place in zip(saved, places, strict=True)]
    for name, theirs in zip(names, labels, strict=True):
        if not np.array_equal(theirs, labels[0]):
            raise Failure(f"the classes of the rows of {name} and {names[0]} differ: fit both on the same table")
    if len(np.unique(labels[0])) < 2:
        raise Failure("the models were tested on different rows: fit with the same --seed and --holdout, or with --cv")
    groups = [each.groups[place] for each, place in zip(saved, places, strict=True) if each.groups is not None]
    scores = [each.scores[place] for each, place in zip(saved, places, strict=True)]
    return labels[0], scores, groups[0] if groups else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
