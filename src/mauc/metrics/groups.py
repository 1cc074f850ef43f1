"""Groups of rows that may depend on each other, such as the images of one patient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["Cells", "check_groups"]


class Cells(NamedTuple):
    """Cells: the rows of one class in one group. A cell replaces an independent row."""

    of_row: Ints
    """``(N,)`` cell of each row."""
    codes: Ints
    """``(K,)`` class of each cell."""
    groups: Ints
    """``(K,)`` group of each cell."""
    shares: Floats
    """``(K,)`` share of the cell in the weight of its class."""

    @classmethod
    def of(cls, groups: Ints, codes: Ints, shares: Floats, n_classes: int) -> Cells:
        """Return the cells, from the ``(N,)`` groups, classes and shares of the rows."""
        found, of_row = np.unique(groups * np.int64(n_classes) + codes, return_inverse=True)
        return cls(
            of_row,
            found % n_classes,
            found // n_classes,
            np.bincount(of_row, shares, len(found)).astype(np.float64, copy=False),
        )

    def sums(self, x: Floats) -> Floats:
        """Return the ``(K,)`` sums over the rows of each cell."""
        return np.bincount(self.of_row, x, len(self.codes)).astype(np.float64, copy=False)

    def group_sums(self, x: Floats) -> Floats:
        """Return the sums over the cells of each group."""
        return np.bincount(self.groups, x).astype(np.float64, copy=False)

    def effective_groups(self, weight: Floats) -> float:
        """Return the effective number of groups, by the squared weights of their cells; infinite if no group has
        rows of two classes, since then the classes are independent of each other."""
        filled = self.shares > 0
        if np.bincount(self.groups[filled]).max(initial=0) < 2:
            return np.inf
        by_group = self.group_sums((weight[self.codes] * self.shares) ** 2)
        return float(by_group.sum() ** 2 / np.square(by_group).sum())


def check_groups(
    groups: ArrayLike | None,
    n_rows: int,
    name: str = "groups",
    advice: str = "pass the group of each row, such as the patient",
) -> Ints | None:
    """Return the ``(N,)`` number 0, 1, … of the group of each row; None for None."""
    if groups is None:
        return None
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise invalid(name, f"must have the shape ({n_rows},)", f"{given.shape}", advice)
    missing = np.array([_is_missing(value) for value in given.tolist()])
    if missing.any():
        row = int(np.argmax(missing))
        raise invalid(name, "must hold a value for every row", f"{given[row]!r} in row {row}", advice)
    place: dict[Any, int] = {}
    return np.array([place.setdefault(value, len(place)) for value in given.tolist()], dtype=np.int64)


def _is_missing(value: Any) -> bool:
    """Return True for None, NaN, and the missing values of pandas."""
    if value is None:
        return True
    try:
        return not bool(value == value)
    except TypeError:
        return True
