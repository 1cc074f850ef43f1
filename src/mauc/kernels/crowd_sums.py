"""Rows of the scores with weights that leave some scores out: the sums and slopes of :mod:`mauc.kernels.crowd`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Floats, Ints
from mauc.kernels.tiles import COLUMNS_FIRST_BELOW, Classes, Problem, Scattered, V, sums_of_others

__all__ = ["Block", "sum_dtype", "weights_of"]

LEFT = 2.0**-20
"""Share of the weight in a column that must be left when that of scores apart is taken off: six digits of sixteen."""
SHORT = 128
"""Rows summed in single precision before double precision takes over."""


def sum_dtype(problem: Problem) -> np.dtype[Any]:
    """In which the crowd is summed: single precision for such scores where :func:`_short_sums` keeps the digits."""
    by_rows = problem.classes.factors is not None and problem.scores.shape[1] >= COLUMNS_FIRST_BELOW
    return np.dtype(np.float32 if by_rows and problem.scores.dtype == np.float32 else np.float64)


class Block:
    """Some rows of the scores, in the layout of a :class:`mauc.kernels.tiles.Tile`."""

    def __init__(self, problem: Problem, rows: slice, dtype: np.dtype[Any]) -> None:
        scores = problem.scores[rows]
        self.rows, self.columns_first = rows, problem.scores.shape[1] < COLUMNS_FIRST_BELOW
        self.x = np.asarray(scores.T if self.columns_first else scores, dtype, order="C")

    def along(self, of_class: V) -> V:
        return of_class[:, None] if self.columns_first else of_class

    def down(self, of_row: V) -> V:
        return of_row if self.columns_first else of_row[:, None]

    def place(self, index: Ints) -> tuple[Ints, Ints]:
        """Row and column of places of the flattened block."""
        outer = index // self.x.shape[1]
        inner = index - outer * self.x.shape[1]
        return (inner, outer) if self.columns_first else (outer, inner)

    def index(self, row: Ints, column: Ints) -> Ints:
        """The inverse of :meth:`place`."""
        return column * self.x.shape[1] + row if self.columns_first else row * self.x.shape[1] + column

    def of(self, whole: NDArray[Any]) -> NDArray[Any]:
        part = whole[self.rows]
        return part.T if self.columns_first else part

    def scattered(self, index: Ints, weight: Floats, row: Ints, column: Ints) -> Scattered:
        return Scattered(self.x.ravel().take(index).astype(np.float64), weight, row + self.rows.start, column)


class Matrix:
    """Weights of the scores of a block, one by one."""

    are_left = True

    def __init__(self, classes: Classes, block: Block) -> None:
        self.block = block
        self.weight = classes.negative_weights(block.rows, columns_first=block.columns_first)

    def cleared(self, distance: NDArray[Any]) -> NDArray[Any]:
        """0 where the weight alone does not leave a score out."""
        return distance

    def at(self, index: Ints) -> tuple[Scattered, Ints]:
        """Those of some places that have a weight, with it, and their places."""
        weight = self.weight.ravel().take(index)
        index, weight = index[weight != 0.0], weight[weight != 0.0]
        return self.block.scattered(index, weight, *self.block.place(index)), index

    def leave_out(self, index: Ints, apart: Scattered) -> None:
        """Of the moments, the scores apart."""
        self.weight.ravel()[index] = 0.0

    def moments(self, distance: NDArray[Any], size: int) -> Floats:
        """``(size, C)`` sums ``Σ ω d^k``; ``distance`` may be 0 where something is left out, from now on."""
        axis = 1 if self.block.columns_first else 0
        total = "cn,cn->c" if self.block.columns_first else "nc,nc->c"
        found = [self.weight.sum(axis=axis)]
        term = self.weight
        for k in range(1, size):
            found.append(np.einsum(total, term, distance))
            term = term * distance if k + 1 < size else term
        return np.stack(found)

    def store(self, distances: list[NDArray[Any]], steepness: list[Floats], slope: NDArray[Any]) -> None:
        """Write the weighted slopes, of polynomials with the coefficients ``steepness``."""
        whole = _sum_of_polynomials(self.block, distances, steepness)
        np.multiply(self.weight, whole, out=self.block.of(slope), casting="same_kind")


class Product:
    """Weights that are products of a row's and a column's: nothing of the size of the block is made."""

    def __init__(self, classes: Classes, block: Block) -> None:
        assert classes.factors is not None
        self.block, self.y = block, classes.y[block.rows]
        self.row, self.column = classes.factors[0][block.rows], classes.factors[1]
        self.own = block.index(np.arange(len(self.y)), self.y)

    def cleared(self, distance: NDArray[Any]) -> NDArray[Any]:
        """As :meth:`Matrix.cleared`, in the own columns."""
        distance.ravel()[self.own] = 0.0
        return distance

    def at(self, index: Ints) -> tuple[Scattered, Ints]:
        """As :meth:`Matrix.at`."""
        row, column = self.block.place(index)
        weight = self.row.take(row) * self.column.take(column)
        counts = np.flatnonzero((self.y.take(row) != column) & (weight != 0.0))
        index = index[counts]
        return self.block.scattered(index, weight[counts], row[counts], column[counts]), index

    def leave_out(self, index: Ints, apart: Scattered) -> None:
        """As :meth:`Matrix.leave_out`, and the own columns."""
        self.out = index
        others = sums_of_others(np.asarray(np.bincount(self.y, self.row, len(self.column)), dtype=np.float64))
        first = self.block.rows.start
        self.left = others - np.bincount(apart.column, self.row.take(apart.row - first), len(self.column))
        self.are_left = bool((self.left >= LEFT * others).all())

    def moments(self, distance: NDArray[Any], size: int) -> Floats:
        """As :meth:`Matrix.moments`."""
        distance.ravel()[self.out] = 0.0
        found = [self.left]
        row, term = self.row.astype(distance.dtype), distance
        for k in range(1, size):
            if self.block.columns_first:
                found.append(term @ row)
            else:
                found.append(_short_sums(row, term))
            term = term * distance if k + 1 < size else term
        return np.stack(found) * self.column

    def store(self, distances: list[NDArray[Any]], steepness: list[Floats], slope: NDArray[Any]) -> None:
        """As :meth:`Matrix.store`."""
        whole = _sum_of_polynomials(self.block, distances, [s * self.column for s in steepness])
        row = self.block.down(self.row.astype(whole.dtype))
        np.multiply(row, whole, out=self.block.of(slope), casting="same_kind")


def _short_sums(row: NDArray[Any], x: NDArray[Any]) -> Floats:
    """``row @ x``, of which single precision sums no more than a few rows."""
    if x.dtype == np.float64:
        return np.asarray(row @ x)
    whole = len(x) // SHORT * SHORT
    parts = row[:whole].reshape(-1, 1, SHORT) @ x[:whole].reshape(-1, SHORT, x.shape[1])
    return np.asarray(parts.sum(axis=(0, 1), dtype=np.float64) + row[whole:] @ x[whole:])


def _sum_of_polynomials(block: Block, distances: list[NDArray[Any]], coefficients: list[Floats]) -> NDArray[Any]:
    """``Σ_k coefficients[k] d^k`` by Horner's rule, summed over the sides; broadcasts over the block."""
    total: NDArray[Any] | None = None
    for d, rows in zip(distances, coefficients, strict=True):
        if not len(rows):
            continue
        value, *more = (block.along(row.astype(d.dtype)) for row in rows[::-1])
        for row in more:
            value = value * d
            value += row
        total = value if total is None else total + value
    return np.zeros(1, distances[0].dtype) if total is None else total


def weights_of(classes: Classes, block: Block) -> Matrix | Product:
    """As products where they are."""
    return Matrix(classes, block) if classes.factors is None else Product(classes, block)
