"""The metric from columns that are read in batches, against scores in memory."""

import numpy as np
import pytest
from array_rows import ArrayRows, make_rows

from mauc.metrics import pairwise_auc
from mauc.metrics.out_of_core import read_all, score_rows


@pytest.mark.parametrize(("ties", "dtype"), [(False, np.float64), (True, np.float64), (True, np.float32)])
def test_numbers_of_all_rows_are_exact(ties, dtype):
    codes, scores = make_rows(0, ties=ties, dtype=dtype)
    rows = ArrayRows(codes, scores)
    found = score_rows(rows, 50)
    np.testing.assert_array_equal(found.matrix, pairwise_auc(codes, scores))
    top = scores == scores.max(axis=1, keepdims=True)
    np.testing.assert_allclose(found.right, np.bincount(codes, top[range(len(codes)), codes] / top.sum(axis=1)))
    assert rows.readings == 1 + 5, "one pass over all columns, and one over each"
    np.testing.assert_array_equal(read_all(rows), scores)


@pytest.mark.parametrize(("n_sample", "most"), [(5, 30), (500, 130), (3_999, 4_000)])
def test_the_sample_has_about_equally_many_rows_of_each_large_class(n_sample, most):
    codes, scores = make_rows(1, n=4_000)
    found = score_rows(ArrayRows(codes, scores), n_sample)
    counts, sampled = np.bincount(codes), np.bincount(found.codes)
    np.testing.assert_array_equal(sampled[counts <= 30], counts[counts <= 30])
    np.testing.assert_allclose(sampled, np.minimum(counts, most), atol=30)
    assert {(code, *row) for code, row in zip(found.codes, found.scores.tolist(), strict=True)} <= {
        (code, *row) for code, row in zip(codes, scores.tolist(), strict=True)
    }


def test_two_models_have_the_same_rows_in_their_samples():
    codes, scores = make_rows(2)
    a, b = (score_rows(ArrayRows(codes, each, most_rows), 60) for each, most_rows in ((scores, 70), (-scores, 11)))
    np.testing.assert_array_equal(a.codes, b.codes)
    np.testing.assert_array_equal(a.scores, -b.scores)
