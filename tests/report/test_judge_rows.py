"""A judgement of scores read in parts draws the page of one of scores in memory, whatever a page has room for."""

import numpy as np
import pytest
from array_rows import ArrayRows, make_rows

from mauc.report import judge
from mauc.report.judgement import judge_rows
from mauc.report.pairs import Layout, pair_data


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"curves": 10},  # ROC curves of the listed pairs alone
        {"curves": 10, "histogram_bytes": 400},  # and their histograms alone
        {"most_classes": 4},  # of the rarest classes alone
        {"thresholds": 30},
    ],
)
@pytest.mark.parametrize("probabilities", [False, True])
def test_the_page_holds_the_same_curves(limits, probabilities):
    codes, scores = make_rows(3, n_classes=6, ties=True)
    if probabilities:  # most of them near 0: drawn over the log-odds
        scores = 1.0 / (1.0 + np.exp(6.0 - 2.0 * scores))
    labels = [f"class {k}" for k in range(6)]
    layout = Layout.of(6, 1, **limits)
    expected = judge(np.array(labels)[codes], scores, labels=labels, listed=3)
    order = [labels.index(label) for label in expected.labels]
    rows = ArrayRows(np.argsort(order)[codes], scores[:, order])
    found = judge_rows({"model": rows}, expected.labels, listed=3, layout=layout)
    assert pair_data(found, layout) == pair_data(expected, layout)
    assert found.notes == expected.notes
    assert found.headline.mauc.low == pytest.approx(expected.headline.mauc.low, rel=1e-12)


def test_identical_scores_differ_by_exactly_nothing():
    codes, scores = make_rows(3, n_classes=4, ties=True)
    order = np.argsort(-np.bincount(codes), kind="stable")
    sorted_codes = np.argsort(order)[codes]
    models = {name: ArrayRows(sorted_codes, each[:, order]) for name, each in {"a": scores, "b": scores.copy()}.items()}
    (test,) = judge_rows(models, [f"class {k}" for k in order], listed=2).tests
    assert (test.low, test.high, test.stderr, test.holm) == (0.0, 0.0, 0.0, 1.0)
