"""A narrower table for trees: one code in place of a column for each category, and of very many columns the telling
ones.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import ExtraTreesClassifier

from mauc._typing import Floats, Ints
from mauc.model_selection import some_of_each

__all__ = ["Layout", "TreeColumns"]


@dataclass(frozen=True)
class Layout:
    """Where the columns of a table are among the numbers made of it."""

    plain: tuple[int, ...]
    """Numbers, dates, codes and leading directions of texts."""
    words: tuple[tuple[int, int], ...] = ()
    """First column of each block of categories, and the one after its last."""

    @property
    def width(self) -> int:
        """How many columns trees get."""
        return len(self.plain) + len(self.words)

    @classmethod
    def of_numbers(cls, n_columns: int) -> "Layout":
        """All columns are plain."""
        return cls(tuple(range(n_columns)))


class TreeColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of numbers as they are, and for each column of categories the place of the category in sorted order.

    Trees take a tenth of the time on it that they take on one column for each category. Tried in place of sorted order:
    categories along the leading direction of their class shares, and boosting's own splits of categories; neither was
    ahead on the development tables of ``benchmarks/fit_tables``. Of more than ``most`` columns, those stay by which a
    small forest splits best.

    Parameters
    ----------
    plain, words : list
        As in :class:`Layout`.
    most : int, default=1_000_000_000
        Columns that stay.
    random_state : int, default=0

    Attributes
    ----------
    kept_ : (n,) array or None
        Places of the columns that stay; None: all.

    Examples
    --------
    >>> X = np.array([[1.5, 0.0, 1.0], [2.5, 1.0, 0.0], [3.5, 0.0, 0.0]])
    >>> TreeColumns([0], [(1, 3)]).fit_transform(X, np.array([0, 1, 0]))
    array([[1.5, 1. ],
           [2.5, 0. ],
           [3.5, nan]])
    """

    def __init__(
        self, plain: list[int], words: list[tuple[int, int]], most: int = 10**9, random_state: int = 0
    ) -> None:
        self.plain = plain
        self.words = words
        self.most = most
        self.random_state = random_state

    def fit(self, X: Floats, y: Ints) -> Self:
        """Find which columns stay."""
        self.kept_ = None
        columns = self._columns(X)
        if columns.shape[1] > self.most:
            self.kept_ = _telling(columns, np.asarray(y), self.most, self.random_state)
        return self

    def transform(self, X: Floats) -> Floats:
        """``(N, columns)``"""
        columns = self._columns(X)
        return columns if self.kept_ is None else columns[:, self.kept_]

    def _columns(self, X: Floats) -> Floats:
        blocks = [X[:, first:end] for first, end in self.words]
        codes = [np.where(block.any(axis=1), block.argmax(axis=1), np.nan) for block in blocks]
        return np.column_stack([X[:, list(self.plain)], *codes])


def _telling(columns: Floats, y: Ints, most: int, seed: int) -> Ints:
    """Places of the columns of the highest importance in a small forest on some rows."""
    rows = some_of_each(y, 4_000, seed)
    forest = ExtraTreesClassifier(60, min_samples_leaf=5, class_weight="balanced", random_state=seed)
    importance = forest.fit(columns[rows], y[rows]).feature_importances_
    return np.sort(np.argsort(-importance, kind="stable")[:most])
