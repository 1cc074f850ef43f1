"""Classes, decisions, calibration and what would help: each number against its definition."""

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, confusion_matrix, precision_score, recall_score, roc_auc_score

from mauc import mauc_interval, pairwise_auc
from mauc.report import Report, judge
from mauc.report.class_data import CELLS, class_data
from mauc.report.further import roc
from mauc.report.pairs import CURVE_POINTS
from mauc.report.proportions import mean_of_shares, share


def probabilities(scores):
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


@pytest.fixture
def judged(scored):
    """Ties included: scores have one decimal."""
    y, models, names = scored([12, 60, 25])
    scores = np.round(models["model a"], 1)
    return y, scores, names, judge(y, scores)


def test_each_class_against_all_others(judged):
    y, scores, names, found = judged
    order = [int(np.flatnonzero(names == label)[0]) for label in found.labels]
    top = found.headline.scores == found.headline.scores.max(axis=1, keepdims=True)
    rows, columns = np.nonzero(top)  # a row with equal scores counts for each of them in part
    taken, part_of_row = np.array(found.labels)[columns], 1.0 / top.sum(axis=1)[rows]
    assert len(rows) > len(y)
    matrix = pairwise_auc(y, scores)
    for label, k, each in zip(found.labels, order, found.further.classes, strict=True):
        assert each.auc.score == pytest.approx(np.nanmean(matrix[k]))
        v = np.zeros((3, 3))
        v[k] = 0.5
        v[k, k] = 0.0
        expected = mauc_interval(y, scores, pairs=v)
        assert (each.auc.low, each.auc.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        for part, judge_by in ((each.recall, recall_score), (each.precision, precision_score)):
            assert part.score == pytest.approx(
                judge_by(y[rows], taken, labels=[label], average="macro", sample_weight=part_of_row)
            )
            assert 0 <= part.low < part.score < part.high <= 1
        assert each.average_precision == pytest.approx(average_precision_score(y == label, scores[:, k]))


def test_curves_have_the_areas_of_their_numbers(judged):
    y, scores, names, found = judged
    scores = found.headline.scores
    for k in range(3):
        false, true = roc(scores[:, k], found.codes, found.counts, k)
        assert np.trapezoid(true, false) == pytest.approx(found.further.classes[k].auc.score)
        recall, precision = (np.array(each) for each in class_data(found, 0)["by_class"][k]["pr"])
        assert recall[-1] == 1000
        assert (np.diff(recall) >= 0).all()
        assert precision[-1] == pytest.approx(1000 * (found.codes == k).mean(), abs=0.5)
    two = judge(y[y != names[1]], scores[y != names[1]][:, [1, 2]], labels=[names[2], names[0]])
    own, column = two.codes == 0, two.headline.scores[:, 0]
    false, true = roc(column, two.codes, two.counts, 0)
    assert np.trapezoid(true, false) == pytest.approx(roc_auc_score(own, column))


def test_decisions_and_mistakes(scored):
    y, models, names = scored([12, 60, 25])
    p = probabilities(models["model a"])
    found = judge(y, p)
    order = [list(names).index(label) for label in found.labels]
    (highest,) = found.further.decisions
    labels = list(found.labels)
    np.testing.assert_array_equal(highest.confusion, confusion_matrix(y, names[p.argmax(axis=1)], labels=labels))
    assert highest.accuracy.score == found.headline.accuracy
    assert highest.balanced_accuracy.score == pytest.approx(found.headline.balanced_accuracy)
    first = found.further.mistakes[0]
    assert first.rows == np.sum((y == names[order[first.i]]) & (p.argmax(axis=1) == order[first.j]))
    more = np.vstack([np.insert(p, 3, 0.0, axis=1), [0.2, 0.7, 0.1, 0.0]])
    rare = judge([*y, "rare"], more, labels=[*names, "rare"])
    assert rare.counts[rare.further.mistakes[0].i] > 1, "a class of one row does not lead, however wrong"
    assert judge(y, models["model a"]).further.calibration is None


def test_shares():
    assert np.isnan(share(0, 0, 0.95).score)
    none, some = share(0, 10, 0.95), mean_of_shares(np.array([10.0, 0.0]), np.array([10.0, 10.0]), 0.95)
    assert (none.low, none.high) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert some.score == 0.5
    assert some.low == pytest.approx(0.5 - 0.5 * 0.2775, abs=1e-4)


def test_calibrated_scores_lie_on_the_line():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.7, 0.5, 0.3], 20_000)
    y = (p.cumsum(axis=1) > rng.random((20_000, 1))).argmax(axis=1)
    good, bold = (
        judge(y, scores, level=0.999, listed=0).further.calibration
        for scores in (p, probabilities(3 * np.log(p + 1e-9)))
    )
    assert good.error < 0.02 < 0.1 < bold.error
    assert sum(b.rows for b in good.bins) == 20_000
    assert all(b.right.low < b.mean < b.right.high for b in good.bins if b.rows > 500)


def test_what_the_page_holds_of_classes_is_bounded(scored):
    y, models, _ = scored(np.arange(200) % 7 + 9, gain=0.3)
    found = judge(y, probabilities(models["model a"]), listed=5)
    data = class_data(found, 0)
    assert len(json.dumps(data)) < 6e5
    for each in data["by_class"]:
        assert max(len(each["roc"][0]), len(each["pr"][0])) <= CURVE_POINTS
        assert (each["roc"][0][-1], each["roc"][1][-1], each["pr"][0][-1]) == (1000, 1000, 1000)
    cells = data["decisions"][0]["cells"]
    assert len(cells) <= 2 * CELLS
    assert sum(cells[1::2]) == len(y)
    later = class_data(found, 150)
    assert len(later["by_class"]) == 50
    assert later["by_class"][0] == data["by_class"][150]


def test_report(scored, tmp_path):
    pytest.importorskip("jinja2", reason="needs jinja2")
    pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    y, models, names = scored([60, 20, 1], models=2)
    report = Report(y, {"<a>": models["model a"], "b": models["model b"]}, labels=names, title="Trees & co")
    assert report.save(tmp_path / "new" / "r.html").read_text(encoding="utf-8") == report.html
    assert "<h1>Trees &amp; co</h1>" in report.html
    frame = report._repr_html_()
    assert frame.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    assert "<script" not in frame
    found = json.loads(report.to_json())
    assert found["models"][0]["mauc"]["score"] == report.judgement.headline.mauc.score
    tables = report.tables()
    assert set(tables) == {"models", "classes", "rarest_pairs", "worst_pairs", "mistakes"}
    assert tables["classes"]["class"].tolist() == list(report.judgement.labels)
    assert tables["models"]["difference"].notna().tolist() == [False, True]
    assert tables["classes"]["rows"].tolist() == [60, 20, 1]
