"""The arrays every kernel takes, and the tiles in which it walks them."""

from dataclasses import replace

import numpy as np
import pytest
from cases import draw_classes

from mauc._kernels.tiles import (
    Classes,
    Problem,
    chebyshev_terms,
    column_centre,
    column_range,
    tiles,
    walks,
)


def make(n_classes: int, dtype: type = np.float64, n_samples: int = 100) -> Problem:
    rng = np.random.default_rng(n_classes)
    y = draw_classes(n_samples, np.delete(np.arange(n_classes), 1) if n_classes > 2 else np.arange(2), rng)
    scores = rng.normal(size=(n_samples, n_classes)).astype(dtype)
    v = rng.random((n_classes, n_classes)) * (1 - np.eye(n_classes))
    return Classes(y, rng.random(n_samples), n_classes, v).with_scores(scores)


@pytest.mark.parametrize("n_classes", [2, 5, 40])
def test_samples_are_grouped_by_class(n_classes):
    problem = make(n_classes)
    assert sorted(problem.classes.order) == list(range(100))
    for i in range(n_classes):
        np.testing.assert_array_equal(
            problem.classes.order[problem.classes.offsets[i] : problem.classes.offsets[i + 1]],
            np.flatnonzero(problem.classes.y == i),
        )
    np.testing.assert_array_equal(problem.own, [problem.scores[n, k] for n, k in enumerate(problem.classes.y)])


@pytest.mark.parametrize(
    ("n_classes", "dtype", "elements"), [(2, np.float64, 1 << 15), (31, np.float32, 64), (32, np.float64, 37)]
)
def test_tiles_are_the_scores_and_their_weights_as_negatives(n_classes, dtype, elements):
    problem = replace(make(n_classes, dtype), tile_elements=elements)
    kept = problem.scores.copy()
    walk = walks(problem)
    for part in (walk(list)[0], walk(list)[0]):
        x, weight, rebuilt = [], [], np.full(problem.scores.shape, np.nan)
        for tile in part:
            assert tile.columns_first == (n_classes < 32)
            assert tile.x.dtype == tile.weight.dtype == np.float64
            assert tile.x.flags.c_contiguous
            assert tile.weight.flags.c_contiguous
            turned = (tile.x.T, tile.weight.T) if tile.columns_first else (tile.x, tile.weight)
            x.append(turned[0])
            weight.append(turned[1])
            tile.of(rebuilt)[...] = tile.x
            np.testing.assert_allclose(tile.sum(tile.x), turned[0].sum(axis=0), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(tile.total(tile.x, tile.weight), (turned[0] * turned[1]).sum(axis=0), atol=1e-12)
            np.testing.assert_array_equal(tile.peak(tile.x), turned[0].max(axis=0))
            spread = np.broadcast_to(tile.along(np.arange(n_classes)), tile.x.shape)
            assert np.all((spread.T if tile.columns_first else spread) == np.arange(n_classes))
        np.testing.assert_array_equal(np.vstack(x), problem.scores)
        np.testing.assert_array_equal(rebuilt, problem.scores)
        expected = [
            [problem.classes.unit[n] * problem.classes.v[i, problem.classes.y[n]] for i in range(n_classes)]
            for n in range(100)
        ]
        np.testing.assert_allclose(np.vstack(weight), expected, rtol=1e-15)
        assert len(x) == -(-100 // max(1, elements // n_classes))
    np.testing.assert_array_equal(problem.scores, kept)


def test_one_tile_is_prepared_once_and_many_are_not_kept():
    problem = make(3)
    walk = walks(problem)
    assert walk(list)[0][0] is walk(list)[0][0]
    problem = replace(problem, tile_elements=30)
    walk = walks(problem)
    assert walk(list)[0][0] is not walk(list)[0][0]
    assert len(list(tiles(problem))) == 10


def test_column_range_and_centre():
    scores = np.array([[1.0, -2.0, 3.0], [5.0, -2.0, -1.0]], dtype=np.float32)
    problem = Classes(np.array([0, 1]), np.ones(2), 3).with_scores(scores)
    low, high = column_range(problem)
    np.testing.assert_array_equal(low, [1.0, -2.0, -1.0])
    np.testing.assert_array_equal(high, [5.0, -2.0, 3.0])
    np.testing.assert_array_equal(column_centre(problem), [3.0, -2.0, 1.0])
    assert low.dtype == high.dtype == np.float64


@pytest.mark.parametrize("degree", [0, 1, 2, 9])
def test_chebyshev_polynomials(degree):
    x = np.linspace(-1.0, 1.0, 7)
    cosines = [np.cos(k * np.arccos(x)) for k in range(degree + 1)]
    np.testing.assert_allclose(list(chebyshev_terms(x, degree)), cosines, atol=1e-14)
