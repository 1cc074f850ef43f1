"""Tables of scores in parts: classes as codes, and score columns that are read again whenever they are needed."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._tables.errors import Failure
from mauc._tables.parts import Parts, no_number, opened, part_batches
from mauc._tables.read import as_in_text, classes_of
from mauc._tables.text import as_code
from mauc._typing import Ints

__all__ = ["ScoreColumns", "TrueClasses", "narrow", "read_classes"]

MOST_VALUES = 100_000
"""Different values of a column of classes."""


@dataclass(frozen=True, eq=False)
class TrueClasses:
    """The class of every row."""

    labels: NDArray[np.str_]
    """Some classes, sorted."""
    codes: NDArray[Any]
    """``(N,)`` their places, in as few bytes as they need."""
    part_rows: tuple[int, ...] = ()
    """Rows of each part."""

    def named(self, names: NDArray[np.str_]) -> "TrueClasses":
        """The same rows with other names for the labels; labels that get one name become one."""
        labels, place = np.unique(names, return_inverse=True)
        return TrueClasses(labels, narrow(place, len(labels))[self.codes], self.part_rows)

    def of(self, rows: NDArray[np.bool_]) -> "TrueClasses":
        """Some of the rows, and the labels that they have."""
        used, codes = np.unique(self.codes[rows], return_inverse=True)
        return TrueClasses(self.labels[used], narrow(codes, len(used)))


def read_classes(parts: Parts, name: str) -> TrueClasses:
    """The classes in column ``name``, written as ``classes_of`` writes them where a table is read whole."""
    places: dict[Any, int] = {}
    found: list[NDArray[Any]] = []
    part_rows = []
    for path in parts.paths:
        missing, first_missing, row = 0, 0, 0
        for values, index in _values_of(path, name):
            empty = np.flatnonzero(index < 0)
            first_missing = row + int(empty[0]) + 1 if len(empty) and not missing else first_missing
            missing += len(empty)
            row += len(index)
            place = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
            if len(places) > MOST_VALUES:
                raise Failure(
                    f"column {name!r} of {parts.shown} holds over {MOST_VALUES} different values, not classes: "
                    "choose another column"
                )
            if not missing:
                found.append(narrow(place, len(places))[index])
        if missing:
            rows = "1 row" if missing == 1 else f"{missing} rows"
            raise Failure(
                f"column {name!r} of {path} has no class in {rows} (first: row {first_missing}): fill them in or "
                "drop them"
            )
        part_rows.append(row)
    if not places:
        raise Failure(f"{parts.shown} has no rows: check that it is the right file")
    labels = classes_of(_as_series(parts, name, list(places)), name, Path(parts.shown), as_named=True)
    codes = np.empty(sum(map(len, found)), narrow(np.zeros(0), len(places)).dtype)
    end = 0
    while found:  # not all in memory twice
        part = found.pop(0)
        codes[end : end + len(part)] = part
        end += len(part)
    return TrueClasses(np.arange(len(places)).astype(str), codes, tuple(part_rows)).named(labels)


def narrow(index: Any, n: int) -> NDArray[Any]:
    """Numbers below n in as few bytes as they need."""
    return np.asarray(index).astype(np.min_scalar_type(max(n - 1, 0)))


def _values_of(path: Path, name: str) -> Iterator[tuple[list[Any], Ints]]:
    """Of batches of a column: its distinct values, and the place of each row's among them, -1 where there is none.

    Those of CSV are text: whether NA is a gap or a class is told by the other values.
    """
    for batch in part_batches(path, [name], 1 << 20, text=True):
        import pyarrow.types as t  # after the reader has said what is missing

        values = batch.column(0)
        if t.is_nested(values.type):
            raise Failure(f"column {name!r} of {path} holds lists, not classes: choose another column")
        coded = values if t.is_dictionary(values.type) else values.dictionary_encode()
        index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        distinct = coded.dictionary.to_pylist()
        absent = [k for k, value in enumerate(distinct) if value is None or value != value]
        index[np.isin(index, absent)] = -1
        used = np.unique(index[index >= 0])
        place = np.full(len(distinct) + 1, -1)  # the last for those at -1
        place[used] = np.arange(len(used))
        yield [distinct[k] for k in used], place[index]


def _as_series(parts: Parts, name: str, values: list[Any]) -> Any:
    """Distinct values of a column, of the type that the column has where it is read whole."""
    import pandas as pd

    if parts.kind == "parquet":
        import pyarrow as pa

        of = opened(parts.paths[0]).schema_arrow.field(name).type
        of = of.value_type if pa.types.is_dictionary(of) else of
        table = pa.table({name: pa.array(values, type=of)}).to_pandas()
        return as_in_text(table)[name]
    text = io.StringIO(pd.DataFrame({name: values}).to_csv(index=False, quoting=csv.QUOTE_ALL))
    written = pd.Series(values, dtype=str)
    typed = as_code(pd.read_csv(text, low_memory=False)[name], written, literal=True)
    gaps = written[typed.isna()].tolist()
    if gaps:
        raise Failure(f"column {name!r} of {parts.shown} holds {gaps[0]!r} among numbers: fill it in or drop such rows")
    return typed


class ScoreColumns:
    """Columns of scores in parts; a :class:`mauc.metrics.out_of_core.ScoredRows`."""

    def __init__(
        self, parts: Parts, names: Sequence[str], codes: NDArray[Any], counts: Ints, rows: NDArray[np.bool_]
    ) -> None:
        """``rows`` of the parts are meant; ``codes`` and ``counts`` are of these alone."""
        self.parts, self.names, self.codes, self.counts = parts, list(names), codes, counts
        self.rows = rows
        self._checked: set[str] = set()

    def scan(self, columns: Sequence[int], n_rows: int) -> Iterator[tuple[int, list[NDArray[np.floating]]]]:
        """As :class:`mauc.metrics.out_of_core.ScoredRows` has it; what is read for the first time is checked."""
        names = [self.names[k] for k in columns]
        first = n_before = 0
        for path in self.parts.paths:
            row = 0
            for batch in part_batches(path, names, n_rows):
                found = dict(zip(batch.schema.names, batch.columns, strict=True))
                arrays = [self._numbers(found[name], name, path, row) for name in names]
                meant = self.rows[first + row : first + row + len(arrays[0])]
                row += len(arrays[0])
                if meant.any():
                    yield n_before, arrays if meant.all() else [array[meant] for array in arrays]
                n_before += int(meant.sum())
            first += row
        self._checked.update(names)

    def _numbers(self, values: Any, name: str, path: Path, row: int) -> NDArray[np.floating]:
        import pyarrow.types as t

        of = values.type
        if not any(kind(of) for kind in (t.is_floating, t.is_integer, t.is_boolean, t.is_decimal)):
            raise no_number(name, path)
        narrow_enough = t.is_float16(of) or t.is_float32(of)
        array = values.to_numpy(zero_copy_only=False).astype(np.float32 if narrow_enough else np.float64, copy=False)
        if name not in self._checked:
            _check_finite(array, name, path, row)
        return array


def _check_finite(array: NDArray[np.floating], name: str, path: Path, row: int) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        k = int(np.argmin(finite))
        what = "missing" if np.isnan(array[k]) else "infinite"
        raise Failure(
            f"column {name!r} of {path} has a score that is {what} (row {row + k + 1}): "
            "every row needs a finite score for every class"
        )
