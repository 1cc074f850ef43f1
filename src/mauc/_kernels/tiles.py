"""The input of every kernel: scores with class codes and weights, and the tiles that they are processed in."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mauc._kernels.threads import over_rows
from mauc._typing import Floats, Ints

__all__ = [
    "Classes",
    "Problem",
    "Tile",
    "chebyshev_terms",
    "column_centre",
    "column_range",
    "tiles",
    "walks",
]

V = TypeVar("V", Floats, Ints)
R = TypeVar("R")

# A dozen temporaries of this many float64 stay in a second-level cache; 2**13 and 2**17 were slower.
TILE_ELEMENTS = 1 << 15
COLUMNS_FIRST_BELOW = 32


@dataclass(frozen=True)
class Classes:
    """A weighted class partition: a problem without its scores.

    The weight of the pair (positive ``m``, negative ``n``) in column ``i = y[m]`` is
    ``unit[m] · unit[n] · v[i, y[n]]``, so that each class pair has the weight ``v_ij`` in all.
    """

    y: Ints
    """``(N,)`` class codes ``0..C-1``."""
    unit: Floats
    """``(N,)`` sample weight over the weight of its class: sums to 1 within each class."""
    n_classes: int
    pair_weights: Floats | None = None
    """``(C, C)`` ``v_ij``, 0 on the diagonal and where a class is absent; None where no kernel needs them."""

    @property
    def v(self) -> Floats:
        """The weights of the class pairs."""
        assert self.pair_weights is not None
        return self.pair_weights

    @property
    def counted(self) -> bool:
        """True if every sample has the weight 1."""
        return self.unit.strides == (0,) and bool((self.unit[:1] == 1.0).all())

    @cached_property
    def order(self) -> Ints:
        """``(N,)`` samples grouped by class."""
        # NumPy's stable sort of 16-bit numbers is a radix sort, an order of magnitude faster than that of wider ones.
        narrow = self.y.astype(np.int16) if self.n_classes < 2**15 else self.y
        return np.argsort(narrow, kind="stable")

    @cached_property
    def offsets(self) -> Ints:
        """``(C + 1,)`` class ``i`` is ``order[offsets[i]:offsets[i + 1]]``."""
        offsets = np.zeros(self.n_classes + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.y, minlength=self.n_classes), out=offsets[1:])
        return offsets

    @cached_property
    def of_negative(self) -> Floats:
        """``(C, C)`` ``v_ij`` at ``[j, i]``: a row has the weights of a negative of that class in each column."""
        return np.ascontiguousarray(self.v.T)

    def negative_weights(self, rows: slice, *, columns_first: bool) -> Floats:
        """Return ``(rows, C)`` or ``(C, rows)`` weights of scores as negatives: 0 in each sample's own column."""
        y = self.y[rows]
        weight = self.v.take(y, axis=1) if columns_first else self.of_negative.take(y, axis=0)
        weight *= self.unit[rows] if columns_first else self.unit[rows][:, None]
        return weight

    def with_scores(self, scores: NDArray[np.floating]) -> "Problem":
        """Return these classes with scores; cached properties are shared by all such problems."""
        return Problem(self, scores)


@dataclass(frozen=True)
class Problem:
    """Classes with their scores: the input of every kernel."""

    classes: Classes
    scores: NDArray[np.floating]
    """``(N, C)`` finite scores; float32 is widened tile by tile."""
    tile_elements: int = TILE_ELEMENTS
    """Approximate number of scores in a tile."""
    columns_first_below: int = COLUMNS_FIRST_BELOW
    """With fewer columns, tiles are ``(C, rows)``."""
    block_positives: int = 1 << 16
    """Number of positives that are sorted together: their bins stay in the cache while all rows are searched."""

    @cached_property
    def own(self) -> Floats:
        """``(N,)`` score of each sample in the column of its own class."""
        return self.scores[np.arange(len(self.classes.y)), self.classes.y].astype(np.float64)


class Tile(NamedTuple):
    """Some rows of the scores, as float64, with their weights.

    Arrays are ``(rows, C)``, or ``(C, rows)`` if the classes are few: NumPy broadcasts a vector over the classes
    fast only along long rows. The methods hide which of the two it is.
    """

    rows: slice
    x: Floats
    weight: Floats
    """Weight of each score as a negative; 0 in the sample's own column."""
    columns_first: bool

    def along(self, of_class: V) -> V:
        """Return a ``(C,)`` vector in the shape that broadcasts over the tile."""
        return of_class[:, None] if self.columns_first else of_class

    def total(self, a: Floats, b: Floats) -> Floats:
        """Return ``(C,)`` sums of ``a·b`` over the rows."""
        return np.einsum("cn,cn->c" if self.columns_first else "nc,nc->c", a, b)

    def sum(self, a: Floats) -> Floats:
        """Return ``(C,)`` sums over the rows, in float64 where NumPy would add row after row."""
        return a.sum(axis=1) if self.columns_first else np.ones(len(a)) @ a

    def peak(self, a: Floats) -> Floats:
        """Return the ``(C,)`` largest entry of each column."""
        return a.max(axis=1 if self.columns_first else 0)

    def of(self, scores: NDArray[Any]) -> NDArray[Any]:
        """Return the view of an ``(N, C)`` array that has the shape of the tile."""
        part = scores[self.rows]
        return part.T if self.columns_first else part


def tiles(problem: Problem, first: int = 0, last: int | None = None) -> Iterator[Tile]:
    """Yield the rows ``first`` to ``last`` in tiles of about ``tile_elements`` scores."""
    n_rows, n_columns = problem.scores.shape
    last = n_rows if last is None else last
    columns_first = n_columns < problem.columns_first_below
    step = max(1, problem.tile_elements // max(1, n_columns))
    for begin in range(first, last, step):
        rows = slice(begin, min(begin + step, last))
        scores = problem.scores[rows]
        x = np.asarray(scores.T if columns_first else scores, dtype=np.float64, order="C")
        weight = problem.classes.negative_weights(rows, columns_first=columns_first)
        yield Tile(rows, x, weight, columns_first)


def walks(problem: Problem) -> Callable[[Callable[[Iterable[Tile]], R]], list[R]]:
    """Return a function that calls ``visit`` with the tiles of consecutive parts of the rows, and lists its results.

    It uses several threads if the problem is large. A single tile is prepared only once for all calls.
    """
    if problem.scores.size > problem.tile_elements:
        return lambda visit: over_rows(problem.scores.shape, lambda first, last: visit(tiles(problem, first, last)))
    only = list(tiles(problem))
    return lambda visit: [visit(only)]


def column_range(problem: Problem) -> tuple[Floats, Floats]:
    """Return the ``(C,)`` smallest and largest score of each column."""
    low, high = problem.scores.min(axis=0), problem.scores.max(axis=0)
    return low.astype(np.float64), high.astype(np.float64)


def column_centre(problem: Problem) -> Floats:
    """Return the ``(C,)`` middle of each column's range."""
    low, high = column_range(problem)
    return low + 0.5 * (high - low)


def chebyshev_terms(x: Floats, degree: int, weight: Floats | float = 1.0) -> Iterator[Floats]:
    """Yield the Chebyshev polynomials ``T_0(x) … T_degree(x)``, times a weight."""
    before, term, twice = np.full_like(x, weight), x * weight, 2.0 * x
    yield before
    for k in range(1, degree + 1):
        yield term
        if k < degree:
            following = twice * term
            following -= before
            before, term = term, following
