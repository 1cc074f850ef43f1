"""Scores at one place, taken together, against the definition: ties with bounds, both layouts and kinds of weights."""

from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from cases import INF, Ramp
from crowded import classes_of, trained
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from strategies import examples

from mauc.kernels import crowd, crowd_pieces
from mauc.kernels.crowd_pieces import MOST_APART
from mauc.kernels.crowd_sums import _short_sums, sum_dtype
from mauc.kernels.pairwise import pairwise_risk
from mauc.kernels.piecewise import ranked_risk
from mauc.kernels.tiles import COLUMNS_FIRST_BELOW
from mauc.plan import plan
from mauc.surrogates import Piece, Surrogate, get_surrogate


@dataclass(frozen=True)
class Valley(Surrogate):
    """``|s| + s²`` of ``s = t − ¼``: pieces without end on both sides, neither of them 0."""

    name: ClassVar[str] = "valley"

    def loss(self, t):
        return np.abs(t - 0.25) + (t - 0.25) ** 2

    def derivative(self, t):
        return np.where(t < 0.25, -1.0, 1.0) + 2.0 * (t - 0.25)

    @property
    def pieces(self):
        return (Piece(-INF, 0.25, (0.3125, -1.5, 1.0)), Piece(0.25, INF, (-0.1875, 0.5, 1.0)))


LOSSES = [
    get_surrogate("hinge", alpha=0.25),
    get_surrogate("q_hinge", alpha=0.5, q=3.0),
    get_surrogate("generalized_hinge", alpha=0.5, epsilon=0.125),
    Ramp(),
    Valley(),
]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


@contextmanager
def crowds(most_apart=0.9, block=100, most_pairs=crowd_pieces.MOST_PAIRS):
    """Crowds are looked for in the smallest of problems; yields what each visit of some rows returned."""
    found = []
    visit = crowd.Crowd.visit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd_pieces, "MANY", 0)
        patch.setattr(crowd_pieces, "MOST_APART", most_apart)
        patch.setattr(crowd_pieces, "MOST_PAIRS", most_pairs)
        patch.setattr(crowd, "BLOCK", 8 * block)
        patch.setattr(crowd, "AT_ONCE", 5)
        patch.setattr(crowd.Crowd, "visit", lambda self, *args: found.append(visit(self, *args)) or found[-1])
        yield found


def pieces_of(loss):
    found = plan(loss, INF)
    assert found is not None
    assert found.scheme == "ranked"
    return list(found.pieces)


def assert_is_definition(loss, y, scores, weight=None, *, factored, tolerance=1e-13):
    n_classes = scores.shape[1]
    expected = pairwise_risk(
        classes_of(y, n_classes, weight).with_scores(scores.astype(np.float64)), loss.loss, loss.derivative
    )
    problem = classes_of(y, n_classes, weight, factored).with_scores(scores)
    value, slope = ranked_risk(problem, pieces_of(loss), gradient=True, dtype=scores.dtype)
    assert slope.dtype == scores.dtype
    size = np.abs(expected[1]).max()
    assert value == pytest.approx(expected[0], rel=tolerance, abs=1e-15)
    np.testing.assert_allclose(slope, expected[1], rtol=0.0, atol=tolerance * size + 1e-300)
    assert ranked_risk(problem, pieces_of(loss), gradient=False)[0] == value


@st.composite
def crowded(draw):
    """Most scores within 3/64 above 0, some anywhere on a grid that has the bounds of all losses; both layouts."""
    n_classes = draw(st.sampled_from([3, COLUMNS_FIRST_BELOW]))
    n_samples = draw(st.integers(2, 14))
    y = draw(hnp.arrays(np.int64, n_samples, elements=st.integers(0, n_classes - 1)))
    near = draw(hnp.arrays(np.int64, (n_samples, n_classes), elements=st.integers(0, 3))) / 64.0
    far = draw(hnp.arrays(np.int64, (n_samples, n_classes), elements=st.integers(-16, 16))) / 16.0
    often = draw(st.integers(0, 4))
    scores = np.where(draw(hnp.arrays(np.int64, far.shape, elements=st.integers(0, 9))) < often, far, near)
    own = np.arange(n_samples)
    scores[own, y] = far[own, y]
    weight = None
    if draw(st.booleans()):
        weight = draw(hnp.arrays(np.float64, n_samples, elements=st.sampled_from([0.0, 0.5, 1.0, 3.0])))
        weight[np.unique(y, return_index=True)[1]] = 1.0
    return y, scores.astype(draw(st.sampled_from([np.float64, np.float32]))), weight


@each_loss
@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "products"])
@examples(40)
@given(sample=crowded(), most_pairs=st.sampled_from([0, 20, crowd_pieces.MOST_PAIRS]))
def test_ties_bounds_weights_and_absent_classes(loss, factored, sample, most_pairs):
    y, scores, weight = sample
    with crowds(most_pairs=most_pairs):
        assert_is_definition(
            loss, y, scores, weight, factored=factored, tolerance=1e-13 if scores.dtype == np.float64 else 3e-7
        )


@each_loss
@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "products"])
@pytest.mark.parametrize("n_classes", [8, 40], ids=["columns", "rows"])
@pytest.mark.parametrize("most_pairs", [0, crowd_pieces.MOST_PAIRS], ids=["search", "pairs"])
def test_most_trained_scores_are_not_searched(loss, factored, n_classes, most_pairs):
    y, scores = trained(200, n_classes)
    with crowds(MOST_APART, block=1000, most_pairs=most_pairs) as found:
        assert_is_definition(loss, y, scores, factored=factored, tolerance=1e-12)
    assert all(apart is not None for apart in found)
    assert 0 < sum(len(apart.x) for apart in found) < 0.2 * scores.size


@pytest.mark.parametrize("factored", [False, True], ids=["matrix", "products"])
def test_rows_that_stand_apart_are_searched_as_a_whole(factored):
    y, scores = trained(200, 8)
    scores[170:] = np.random.default_rng(1).random((30, 8))
    with crowds(MOST_APART, block=400) as found:
        assert_is_definition(LOSSES[0], y, scores, factored=factored)
    assert None in found
    assert found[0] is not None


def test_scores_that_stand_apart_everywhere_have_no_crowd():
    y, _ = trained(200, 8)
    scores = np.random.default_rng(1).random((200, 8))
    with crowds(MOST_APART) as found:
        assert_is_definition(LOSSES[0], y, scores, factored=True)
    assert not found


def test_weights_too_uneven_to_be_taken_off_the_sum():
    y, scores = trained(200, 2)
    scores[y == 1, 0] *= 0.003
    heavy = np.flatnonzero(y == 1)[0]
    scores[heavy, 0] = 0.9
    weight = np.ones(200)
    weight[heavy] = 2.0**60
    with crowds() as found:
        assert_is_definition(LOSSES[0], y, scores, weight, factored=True)
    assert None in found
    assert any(apart is not None for apart in found)


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e6])
def test_digits_of_scores_far_from_zero(offset):
    """Exactly representable, so that nothing but the sums can lose digits."""
    rng = np.random.default_rng(3)
    y = rng.permutation(np.arange(120) % 4)
    scores = rng.integers(0, 2**16, (120, 4)) / 2.0**20 + offset
    scores[np.arange(120), y] += rng.integers(-(2**20), 2**20, 120) / 2.0**20
    for loss in LOSSES:
        with crowds() as found:
            assert_is_definition(loss, y, scores, factored=True, tolerance=1e-13)
        assert any(apart is not None for apart in found)


@each_loss
def test_single_precision_keeps_its_digits(loss):
    y, scores = trained(1000, 40, np.float32)
    exact = classes_of(y, 40).with_scores(scores.astype(np.float64))
    expected = ranked_risk(exact, pieces_of(loss), gradient=True)
    with crowds(MOST_APART, block=1 << 18) as found:
        problem = classes_of(y, 40, factored=True).with_scores(scores)
        value, slope = ranked_risk(problem, pieces_of(loss), gradient=True, dtype=np.float32)
    assert found[0] is not None
    assert sum_dtype(problem) == np.float32
    assert value == pytest.approx(expected[0], rel=1e-7)
    assert np.linalg.norm(slope - expected[1]) < 1e-7 * np.linalg.norm(expected[1])


@pytest.mark.parametrize("n_rows", [1, 128, 6000])
def test_sums_of_many_rows_keep_their_digits(n_rows):
    """A sum of 6000 rows in single precision alone is off by 7e-7."""
    rng = np.random.default_rng(0)
    row = np.full(n_rows, 0.022, np.float32)
    x = (0.1 + 0.003 * rng.random((n_rows, 40))).astype(np.float32)
    np.testing.assert_allclose(_short_sums(row, x), row.astype(np.float64) @ x.astype(np.float64), rtol=4e-7)
