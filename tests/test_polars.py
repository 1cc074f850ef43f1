"""Tables of polars give what those of pandas give; polars is not a dependency."""

import numpy as np
import pytest

from mauc import MAUCClassifier, mauc_importance, mauc_interval, mauc_score

pl = pytest.importorskip("polars", reason="runs where polars is installed")

CODES = np.tile([0, 1, 2], 30)
Y = np.array(["a", "b", "c"])[CODES]
SCORES = np.random.default_rng(0).normal(size=(90, 3)) + np.eye(3)[CODES]


def test_classes_scores_and_groups():
    expected, groups = mauc_score(Y, SCORES), np.arange(90) // 3
    frame = pl.DataFrame({f"p_{name}": SCORES[:, k] for k, name in ((2, "c"), (0, "a"), (1, "b"))})
    for y in (pl.Series(Y), pl.Series(Y, dtype=pl.Categorical), pl.DataFrame({"y": Y})):
        assert mauc_score(y, frame) == expected
        assert mauc_score(y, pl.DataFrame(SCORES)) == expected
    found = mauc_interval(pl.Series(Y), frame, groups=pl.Series(groups.astype(str)))
    assert found.stderr == pytest.approx(mauc_interval(Y, SCORES, groups=groups).stderr)
    with pytest.raises(ValueError, match=r"groups must hold a value for every row, got None in row 0"):
        mauc_interval(Y, SCORES, groups=pl.Series([None, *Y[1:]]))


def test_whole_numbers_beside_fractions():
    frame = pl.DataFrame({"a": np.arange(90) + 2**60, "b": SCORES[:, 1], "c": SCORES[:, 2]})
    with pytest.raises(ValueError, match="y_score must hold numbers that float64 tells apart"):
        mauc_score(Y, frame)


def test_importance_shuffles_columns_of_the_frame():
    frame = pl.DataFrame(SCORES)
    found = mauc_importance(MAUCClassifier().fit(frame, Y), frame, Y, n_repeats=2)
    expected = mauc_importance(MAUCClassifier().fit(SCORES, Y), SCORES, Y, n_repeats=2)
    assert [one.column for one in found] == [f"column_{one.column}" for one in expected]
    assert [one.drop for one in found] == pytest.approx([one.drop for one in expected])
