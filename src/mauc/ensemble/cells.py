"""The cells of a table as the transformers of several folds ask for them: read once, looked up by each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["Cells", "Words", "known_words", "looked_up", "one_hot"]


class Cells:
    """A data frame of pandas, and what was made of it so far."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self._numbers: dict[tuple[Any, ...], Floats] = {}
        self._words: dict[tuple[Any, ...], Words] = {}

    def numbers(self, names: Sequence[Any]) -> Floats:
        """``(N, columns)`` float64, NaN where one is missing."""
        key = tuple(names)
        if key not in self._numbers:
            self._numbers[key] = np.column_stack([_as_numbers(self.table[name], name) for name in names])
        return self._numbers[key]

    def words(self, names: Sequence[Any]) -> "Words":
        """Of these columns."""
        import pandas as pd

        key = tuple(names)
        if key not in self._words:
            objects = np.column_stack([self.table[name].to_numpy(dtype=object) for name in names])
            codes, values = pd.factorize(objects.ravel())
            numbers = {value: number for number, value in enumerate(values)}
            self._words[key] = Words(codes.reshape(objects.shape), numbers)
        return self._words[key]


@dataclass(frozen=True, eq=False)
class Words:
    """The values of several columns, each different one by a number."""

    codes: Ints
    """``(N, columns)``, -1 where a value is missing."""
    numbers: Mapping[Any, int]
    """Of each value."""

    def among(self, column: int, known: Sequence[Any]) -> Ints:
        """``(N,)``: place of each value of a column among the known ones, None being a missing one; else -1."""
        place = np.full(len(self.numbers) + 1, -1)
        for k, value in enumerate(known):
            number = -1 if value is None else self.numbers.get(value)
            if number is not None:
                place[number] = k
        return np.asarray(place[self.codes[:, column]])


def one_hot(words: Words, categories: Sequence[Sequence[Any]]) -> NDArray[np.float32]:
    """One column for each category of each column, as scikit-learn's encoder gives them, in a tenth of its time."""
    return np.hstack(
        [
            np.eye(len(known) + 1, len(known), dtype=np.float32)[words.among(column, known)]
            for column, known in enumerate(categories)
        ]
    )


def known_words(words: Words, made: Sequence[Floats]) -> list[tuple[list[Any], Floats]]:
    """For each column its values and what was made of each of them; None stands for a missing one."""
    values = [*words.numbers, None]
    known = []
    for codes, block in zip(words.codes.T, made, strict=True):
        there, first = np.unique(codes, return_index=True)
        known.append(([values[code] for code in there], block[first]))
    return known


def looked_up(words: Words, known: Sequence[tuple[list[Any], Floats]]) -> Floats | None:
    """What was made of these values; None where there is one that is not known."""
    places = [words.among(column, values) for column, (values, _) in enumerate(known)]
    if any((place < 0).any() for place in places):
        return None
    return np.hstack([made[place] for place, (_, made) in zip(places, known, strict=True)])


def _as_numbers(column: Any, name: Any) -> Floats:
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        came = f"{column.dtype} in column {name!r}"
        raise invalid("X", "must hold numbers where it did in training", came, "correct it, or train again") from None
