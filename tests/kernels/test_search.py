"""The search among sorted positives against np.unique and np.searchsorted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import distinct_and_tied_floats

from mauc._kernels import search
from mauc._kernels.search import locate, sort_columns

BIG = np.finfo(np.float64).max
TINY = 5e-324
layouts = pytest.mark.parametrize("columns_first", [True, False], ids=["columns", "rows"])


def clustered(rng, n):
    return rng.choice([-1.0, 0.0, 1e-9, 1.0], n) + rng.normal(0.0, 1e-13, n)


COLUMNS = {
    "uniform": lambda rng, n: rng.random(n),
    "clustered": clustered,
    "log-uniform": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300, 300, n),
    "tied": lambda rng, n: rng.integers(0, 7, n) / 8.0,
    "constant": lambda rng, n: np.full(n, 0.3),
    "signed zeros": lambda rng, n: rng.choice([0.0, -0.0, TINY, -TINY], n),
    "denormal": lambda rng, n: rng.integers(-50, 50, n) * TINY,
    "huge": lambda rng, n: rng.choice([-1e308, 1e308, 1.7e308, -1.7e308, 0.0, 1.0], n),
    "a tiny range": lambda rng, n: rng.choice([0.0, 1e-300, 3e-301, 1e-307], n),
    "neighbours": lambda rng, n: 1.0 + rng.integers(0, 400, n) * np.finfo(np.float64).eps,
    "far from 0": lambda rng, n: 1e15 + rng.integers(0, 3000, n) / 8.0,
    "one far outlier": lambda rng, n: np.append(rng.random(n - 1), 1e200),
    "softmax": lambda rng, n: 1.0 / (1.0 + np.exp(rng.normal(0.0, 30.0, n))),
}


def check(columns: list[np.ndarray], queries: np.ndarray, columns_first: bool) -> None:
    """All of the table and every position in it; ``queries`` go to each column."""
    own = np.concatenate(columns) if columns else np.zeros(0)
    offsets = np.cumsum([0, *map(len, columns)])
    weight = np.random.default_rng(0).random(len(own))
    table = sort_columns(own.copy(), offsets, weight)
    assert table.start[0] == 0
    assert table.start[-1] == len(table.values) == len(table.mass)
    x = np.tile(queries, (len(columns), 1)) if columns_first else np.tile(queries[:, None], (1, len(columns)))
    # Whether it warns on the way has a test of its own.
    with np.errstate(over="ignore"):
        position, tied = locate(table, x, columns_first=columns_first)
    assert position.shape == tied.shape == x.shape
    for i, column in enumerate(columns):
        begin, end = table.start[i], table.start[i + 1]
        mine = slice(offsets[i], offsets[i + 1])
        values, inverse = np.unique(column, return_inverse=True)
        np.testing.assert_array_equal(table.values[begin : end - 1], values)
        assert table.values[end - 1] == np.inf
        np.testing.assert_array_equal(table.slot[mine], begin + inverse)
        mass = np.bincount(inverse, weight[mine], len(values) + 1)
        np.testing.assert_allclose(table.mass[begin:end], mass, rtol=1e-14)
        got = position[i] if columns_first else position[:, i]
        np.testing.assert_array_equal(got - begin, np.searchsorted(values, queries))
        np.testing.assert_array_equal(tied[i] if columns_first else tied[:, i], np.isin(queries, values))


def around(columns: list[np.ndarray]) -> np.ndarray:
    """Queries at, just above and just below the values, and far away from all."""
    own = np.unique(np.concatenate(columns))
    own = own[:: max(1, len(own) // 2000)]
    far = [0.0, -0.0, TINY, -TINY, 1e-300, 1.0, 2.0, 1e30, -1e30, BIG, -BIG]
    return np.concatenate([own, np.nextafter(own, -BIG), np.nextafter(own, BIG), far])


@layouts
@pytest.mark.parametrize("size", [1, 2, 3, 40, 3000])
@pytest.mark.parametrize("kind", COLUMNS)
def test_search_of_one_kind_of_column(kind, size, columns_first):
    rng = np.random.default_rng(size)
    columns = [COLUMNS[kind](rng, size) for _ in range(2)]
    check(columns, around(columns), columns_first)


@layouts
@pytest.mark.parametrize("seed", range(4))
def test_search_of_all_kinds_side_by_side_with_empty_columns(seed, columns_first):
    rng = np.random.default_rng(seed)
    columns = [make(rng, int(rng.integers(1, 300))) for make in COLUMNS.values()]
    columns += [np.zeros(0)] * 6
    rng.shuffle(columns)
    check(columns, around(columns), columns_first)


@layouts
@pytest.mark.parametrize(
    "sizes", [(0,), (0, 0), (0, 1), (1, 0), (0, 0, 3, 0, 0), (5, 0, 0, 5)], ids=lambda s: "-".join(map(str, s))
)
def test_search_with_empty_columns(sizes, columns_first):
    rng = np.random.default_rng(0)
    check([rng.random(n) for n in sizes], np.array([-1.0, 0.0, 0.5, 1.0, BIG, -BIG]), columns_first)


@layouts
@pytest.mark.parametrize("kind", ["uniform", "clustered", "tied", "log-uniform"])
def test_search_among_many(kind, columns_first):
    rng = np.random.default_rng(7)
    columns = [COLUMNS[kind](rng, search.MANY // 2 + 1) for _ in range(2)]
    check(columns, around(columns), columns_first)


@layouts
@given(columns=st.lists(distinct_and_tied_floats(40), min_size=1, max_size=4), x=distinct_and_tied_floats(10))
def test_search_of_any_floats(columns, x, columns_first):
    columns = [np.array(column, dtype=np.float64) for column in columns]
    check(columns, np.concatenate([around(columns), x]), columns_first)


@layouts
@pytest.mark.parametrize("far", [1e30, -1e30, BIG, -BIG])
@pytest.mark.parametrize("low", [1e-300, 1.0])
def test_a_score_far_from_the_positives_is_no_cause_for_a_warning(low, far, columns_first):
    table = sort_columns(np.array([0.0, low, low / 3]), np.array([0, 3]), np.ones(3))
    position, tied = locate(table, np.full((1, 1), far), columns_first=columns_first)
    assert position[0, 0] == (3 if far > 0 else 0)
    assert not tied[0, 0]


def test_shared_bins_are_met():
    """The paths under test exist: a search by halves alone, and bins within bins."""
    rng = np.random.default_rng(0)
    weight = np.ones(3000)
    few = sort_columns(rng.random(3000), np.array([0, 3000]), weight)
    many = sort_columns(clustered(rng, 3000), np.array([0, 3000]), weight)
    assert few.fine is None
    assert len(few.shared[0]) > 0
    assert many.fine is not None
    assert len(many.shared[0]) > 0
