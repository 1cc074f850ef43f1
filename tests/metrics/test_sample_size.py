"""Studies of the size that is computed reach their goal as often as it says."""

import numpy as np
import pytest

from mauc import compare_mauc, mauc_interval, mauc_sample_size


def draw(rng, counts, noise=0.0):
    """Scores of three classes; a second model has more noise."""
    y = np.repeat([0, 1, 2], counts)
    scores = rng.normal(size=(len(y), 3)) + 1.5 * np.eye(3)[y]
    return y, scores, scores + noise * rng.normal(size=scores.shape)


@pytest.mark.slow
def test_width_is_reached_as_often_as_asked():
    rng = np.random.default_rng(0)
    y, scores, _ = draw(rng, [600, 300, 150])
    found = mauc_sample_size(y, scores, width=0.06, power=0.8)
    counts = list(found.class_counts.values())
    assert sum(counts) == found.rows

    def reached(counts):
        widths = []
        for _ in range(200):
            result = mauc_interval(*draw(rng, counts)[:2])
            widths.append(result.high - result.low)
        return np.mean(np.array(widths) <= 0.06)

    assert 0.6 < reached(counts) < 0.95
    assert reached([int(0.8 * n) for n in counts]) < 0.3


@pytest.mark.slow
def test_difference_is_seen_as_often_as_asked():
    """The true difference is that of the noise; the difference of the pilot by chance does not matter."""
    rng = np.random.default_rng(1)
    truth = np.mean([compare_mauc(*draw(rng, [2000, 2000, 2000], 0.5)).difference for _ in range(10)])
    pilot = draw(rng, [200, 100, 50], 0.5)
    found = mauc_sample_size(*pilot, difference=truth, power=0.8)
    seen = [compare_mauc(*draw(rng, list(found.class_counts.values()), 0.5)).pvalue < 0.05 for _ in range(200)]
    assert 0.65 < np.mean(seen) < 0.95


def test_more_rows_for_narrower_intervals_and_fewer_where_they_help():
    y, scores, _ = draw(np.random.default_rng(2), [100, 50, 10])
    options = {"n_draws": 20}
    wide, narrow = (mauc_sample_size(y, scores, width=width, **options) for width in (0.2, 0.1))
    assert narrow.rows > 2 * wide.rows
    assert max(narrow.uncertainty, key=narrow.uncertainty.get) == 2
    assert sum(narrow.uncertainty.values()) == pytest.approx(1.0)
    even = mauc_sample_size(y, scores, width=0.1, class_shares=[1, 1, 1], **options)
    assert even.rows < narrow.rows
    assert len(set(even.class_counts.values())) == 1
    assert even == mauc_sample_size(y, scores, width=0.1, class_shares=[2, 2, 2], **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "width must be given, or difference, but not both, got neither"),
        ({"width": 0.1, "difference": 0.1}, "width must be given, or difference, but not both, got both"),
        ({"difference": 0.1}, "difference must be given together with score_b, got only one of them"),
        ({"width": 2}, "width must be a finite number strictly between 0 and 1, got 2"),
        ({"width": 0.1, "class_shares": [1, 0, 1]}, "class_shares must hold 3 positive numbers, one per class, got"),
        ({"width": 0.01, "max_rows": 100}, "max_rows must be enough for the goal, got 100"),
    ],
)
def test_bad_input(options, message):
    y, scores, _ = draw(np.random.default_rng(0), [20, 10, 5])
    with pytest.raises(ValueError, match=message):
        mauc_sample_size(y, scores, n_draws=10, **options)


def test_bad_pilot():
    y, scores, _ = draw(np.random.default_rng(0), [20, 10, 1])
    with pytest.raises(ValueError, match="y_true must hold two rows or more of each class, got one of 2"):
        mauc_sample_size(y, scores, width=0.1)
    with pytest.raises(ValueError, match="score_b must differ from y_score, got the same scores"):
        mauc_sample_size(y, scores, scores, difference=0.1)


def test_the_design_effect_is_that_of_the_goal():
    """Both models find the same groups hard: the score varies more with groups, the difference does not."""
    rng = np.random.default_rng(0)
    y, group = np.repeat([0, 1, 2], 120), np.arange(360) // 4
    shared = rng.normal(size=(360, 3)) + 1.5 * np.eye(3)[y] + 2 * rng.normal(size=(90, 3))[group]
    a, b = (shared + 0.7 * rng.normal(size=shared.shape) for _ in range(2))
    alone, width = (mauc_sample_size(y, a, width=0.1, groups=g, n_draws=20) for g in (None, group))
    difference = mauc_sample_size(y, a, b, difference=0.05, groups=group, n_draws=20)
    assert alone.design_effect == 1.0
    assert width.design_effect > 1.5 > 1.3 > difference.design_effect
    assert width.rows == pytest.approx(alone.rows * width.design_effect, abs=3)
    expected = [compare_mauc(y, a, b, groups=g).stderr for g in (group, None)]
    assert difference.design_effect == pytest.approx((expected[0] / expected[1]) ** 2)


def test_the_pilot_bounds_the_size():
    rng = np.random.default_rng(0)
    few, many = (mauc_sample_size(*draw(rng, n)[:2], width=0.1, n_draws=20) for n in ([60, 20, 6], [600, 200, 60]))
    for found in (few, many):
        assert found.low < found.rows < found.high
    assert few.high / few.low > 2 * many.high / many.low
    assert many.high / many.low < 2.5
