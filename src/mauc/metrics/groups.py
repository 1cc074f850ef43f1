"""Groups of rows that may depend on each other, such as the images of one patient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mauc._typing import Floats, Ints


class Cells(NamedTuple):
    """Cells, each with the rows of one class in one group. A cell takes the place of an independent row."""

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
        """Return the effective number of groups; infinite if no group has rows of two classes, because the classes are
        then independent."""
        filled = self.shares > 0
        if np.bincount(self.groups[filled]).max(initial=0) < 2:
            return np.inf
        by_group = self.group_sums((weight[self.codes] * self.shares) ** 2)
        return float(by_group.sum() ** 2 / np.square(by_group).sum())
