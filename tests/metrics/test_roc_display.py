"""ROC curves of classes and pairs: areas are AUCs, bands cover, and the picture shows what was asked for."""

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_curve
from sklearn.model_selection import cross_validate

from mauc import MulticlassROCDisplay, mauc_interval, mauc_score, multiclass_auc_report, pairwise_auc
from mauc.metrics.curves import band, curves_of, simultaneous_quantile

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

NAMES = np.array(["elm", "oak", "yew"])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def simulated(counts=(40, 150, 12), decimals=None, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(NAMES, counts))
    scores = rng.normal(size=(len(y), 3)) + 1.5 * (y[:, None] == NAMES)
    return y, scores if decimals is None else np.round(scores, decimals)


def area(curve):
    return float(np.sum(np.diff(curve.fpr) * (curve.tpr[1:] + curve.tpr[:-1])) / 2)


@pytest.mark.parametrize("pairs", ["ovo", "ova"])
@pytest.mark.parametrize("decimals", [None, 0])
@pytest.mark.parametrize("weighted", [False, True])
def test_areas_are_aucs(pairs, decimals, weighted):
    y, scores = simulated(decimals=decimals)
    weight = np.random.default_rng(1).random(len(y)) if weighted else None
    display = MulticlassROCDisplay.from_predictions(y, scores, pairs=pairs, sample_weight=weight)
    assert area(display.average) == pytest.approx(mauc_score(y, scores, pairs=pairs, sample_weight=weight), abs=1e-12)
    assert display.average.auc == mauc_interval(y, scores, pairs=pairs, sample_weight=weight)
    for curve in display.curves:
        assert area(curve) == pytest.approx(curve.auc.score, abs=1e-12)
        assert (curve.fpr[0], curve.tpr[0], curve.fpr[-1], curve.tpr[-1]) == (0, 0, 1, 1)
        assert (np.diff(curve.fpr) >= 0).all()
        assert (np.diff(curve.tpr) >= 0).all()
    assert [line.get_label().split("\n")[0] for line in display.lines_] == list(NAMES)


def test_intervals_are_those_of_the_text_report():
    y, scores = simulated()
    groups = np.arange(len(y)) // 3
    table = multiclass_auc_report(y, scores, groups=groups, output_dict=True)
    for curve in MulticlassROCDisplay.from_predictions(y, scores, groups=groups).curves:
        assert (curve.auc.low, curve.auc.high) == pytest.approx((table[curve.name]["low"], table[curve.name]["high"]))
    assert "[0.7" in display_text(MulticlassROCDisplay.from_predictions(y, scores, groups=groups))


def display_text(display):
    return " ".join(text.get_text() for text in display.legend_.get_texts())


def test_the_legend_has_classes_whose_names_begin_with_an_underscore():
    y, scores = simulated()
    shown = display_text(MulticlassROCDisplay.from_predictions(np.char.add("_", y), scores))
    assert all(f"_{name}" in shown for name in np.unique(y))


def test_pairs_of_classes():
    y, scores = simulated()
    display = MulticlassROCDisplay.from_predictions(y, scores, between=[("yew", "oak"), ("oak", "yew")])
    matrix = pairwise_auc(y, scores)
    assert [area(curve) for curve in display.curves] == pytest.approx([matrix[2, 1], matrix[1, 2]], abs=1e-12)
    assert [curve.name for curve in display.curves] == ["yew over oak", "oak over yew"]
    assert display.average is None
    assert display.average_ is None


def test_the_operating_point_of_a_decision_lies_where_its_rows_say():
    y, scores = simulated()
    decided = NAMES[scores.argmax(axis=1)]
    display = MulticlassROCDisplay.from_predictions(y, scores, y_pred=decided, pairs="ova")
    for curve, name, dot in zip(display.curves, NAMES, display.points_, strict=True):
        expected = (np.mean(decided[y != name] == name), np.mean(decided[y == name] == name))
        assert curve.point == pytest.approx(expected)
        assert (dot.get_xdata()[0], dot.get_ydata()[0]) == pytest.approx(expected)
    assert "dots: the decision" in display.ax_.get_title(loc="left")


def test_of_an_estimator():
    rng = np.random.default_rng(0)
    y, X = simulated()
    model = LogisticRegression().fit(X, y)
    display = MulticlassROCDisplay.from_estimator(model, X, y, classes=["yew"])
    (curve,) = display.curves
    assert area(display.average) == pytest.approx(mauc_score(y, model.predict_proba(X)))
    assert curve.point is not None
    assert MulticlassROCDisplay.from_estimator(model, X, y, y_pred=None).curves[0].point is None
    ridge = MulticlassROCDisplay.from_estimator(RidgeClassifier().fit(X, y), X, y)
    assert len(ridge.curves) == 3
    many = rng.permutation(np.arange(400) % 10)
    scores = rng.normal(size=(400, 10)) + np.eye(10)[many] * np.arange(10)
    lowest = MulticlassROCDisplay.from_predictions(many, scores)
    assert [curve.name for curve in lowest.curves] == list("01234567")
    assert lowest.bands_ == []
    assert "8 classes of lowest AUC, 2 more not drawn" in lowest.ax_.get_title(loc="left")


def test_of_a_cross_validation():
    y, X = simulated()
    found = cross_validate(LogisticRegression(), X, y, cv=3, return_estimator=True, return_indices=True)
    display = MulticlassROCDisplay.from_cv_results(found, X, y)
    scores = [
        mauc_score(y[test], model.predict_proba(X[test]))
        for model, test in zip(found["estimator"], found["indices"]["test"], strict=True)
    ]
    assert area(display.average) == pytest.approx(np.mean(scores), abs=1e-9)
    assert (display.average.auc.low, display.average.auc.high) == pytest.approx((min(scores), max(scores)))
    assert [curve.name for curve in display.curves] == list(NAMES)
    assert display.bands_ == []
    assert "range of the folds" in display.legend_.get_title().get_text()
    with pytest.raises(ValueError, match=r"^cv_results must hold 'estimator' and 'indices', got .* return_estimator"):
        MulticlassROCDisplay.from_cv_results({"estimator": []}, X, y)
    by_class = np.split(np.argsort(y, kind="stable"), np.cumsum(np.unique(y, return_counts=True)[1])[:-1])
    without_last = [(np.concatenate(by_class[:-1]), by_class[-1])]
    lacking = cross_validate(LogisticRegression(), X, y, cv=without_last, return_estimator=True, return_indices=True)
    message = (
        r"^cv_results must have every class in the training rows .* only in the test rows of fold 0: split by mauc"
    )
    with pytest.raises(ValueError, match=message):
        MulticlassROCDisplay.from_cv_results(lacking, X, y)


def test_classes_without_samples_have_no_curve():
    y, scores = simulated()
    kept = y != y[0]
    display = MulticlassROCDisplay.from_predictions(y[kept], scores[kept], labels=NAMES)
    assert [curve.name for curve in display.curves] == [name for name in NAMES if name != y[0]]
    found = mauc_score(y[kept], scores[kept], labels=NAMES, absent="ignore")
    assert area(display.average) == pytest.approx(found) == display.average.auc.score
    with pytest.raises(ValueError, match="y_true must hold two classes or more, got only the class"):
        MulticlassROCDisplay.from_predictions(y[~kept], scores[~kept], labels=NAMES)


@pytest.mark.parametrize("bands", ["pointwise", "simultaneous", None])
def test_bands(bands):
    y, scores = simulated()
    display = MulticlassROCDisplay.from_predictions(y, scores, bands=bands)
    assert len(display.bands_) == (0 if bands is None else 3)
    if bands is not None:
        assert f"{bands} bands of 95 %" in display.ax_.get_title(loc="left")
    yew = display.curves[2]
    (low, high), (lowest, highest) = display.band(yew), display.band(yew, simultaneous=True)
    assert (lowest <= low).all()
    assert (high <= highest).all()
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()
    assert (high - low)[1:-1].min() > 0


@pytest.mark.parametrize(("copies", "widest"), [(0, 1.15), (4, 2.3)])
def test_bands_of_groups_are_those_of_the_independent_rows_in_them(copies, widest):
    """Groups of five independent rows say as much as the rows, groups of five equal rows as one of them."""
    y, scores = simulated()
    y, scores = np.repeat(y, 1 + copies), np.repeat(scores, 1 + copies, axis=0)
    order = np.random.default_rng(0).permutation(len(y)) if copies == 0 else np.arange(len(y))
    alone, grouped = (
        np.subtract(*display.band(display.curves[1])[::-1]).mean()
        for display in (
            MulticlassROCDisplay.from_predictions(y[order], scores[order], groups=groups)
            for groups in (None, np.arange(len(y)) // 5)
        )
    )
    assert 0.8 * widest < grouped / alone < widest


def test_bands_cover_where_a_rare_class_is_the_hard_one():
    """Half of the false positive rate is that of ten rows."""
    rng, x = np.random.default_rng(0), np.linspace(0.005, 0.995, 100)
    y = np.repeat([0, 1, 2], [300, 300, 10])
    threshold = np.linspace(-6, 6, 5001)
    fpr = (stats.norm.sf(threshold + 1.5) + stats.norm.sf(threshold)) / 2
    truth = np.interp(x, fpr[::-1], stats.norm.sf(threshold - 1.5)[::-1])
    point, whole = [], []
    for _ in range(60):
        scores = rng.normal(size=(len(y), 3)) + np.array([1.5, -1.5, 0.0])[y][:, None]
        (curve,), *_ = curves_of(y, scores, classes=[0])
        for found, quantile in ((point, 1.96), (whole, simultaneous_quantile(curve, x, 0.95, draws=100))):
            low, high = band(curve, x, quantile)
            found.append((low <= truth) & (truth <= high))
    assert np.mean(point, axis=0).min() > 0.87
    assert np.mean(np.all(whole, axis=1)) > 0.9


@pytest.mark.parametrize(("positives", "negatives", "lead"), [(30, 100, 1.5), (12, 40, 0.5)])
def test_bands_cover(positives, negatives, lead):
    rng, x = np.random.default_rng(0), np.linspace(0.0, 1.0, 51)
    truth = stats.norm.cdf(lead + stats.norm.ppf(x))
    own = np.arange(positives + negatives) < positives
    point, whole = [], []
    for _ in range(80):
        scores = rng.normal(size=len(own)) + lead * own
        fpr, tpr, _ = roc_curve(own, scores, drop_intermediate=False)
        (curve,), *_ = curves_of(own, np.column_stack([-scores, scores]), classes=[True])
        np.testing.assert_allclose([curve.fpr, curve.tpr], [fpr, tpr], atol=1e-12)
        for found, quantile in ((point, 1.96), (whole, simultaneous_quantile(curve, x, 0.95, draws=100))):
            low, high = band(curve, x, quantile)
            found.append((low <= truth + 1e-9) & (truth <= high + 1e-9))
    assert np.mean(point) > 0.93
    assert np.mean(np.all(whole, axis=1)) > 0.86


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": "each"}, "pairs must be one of 'ovo', 'ova', 'ovr', got 'each'"),
        ({"bands": "wide"}, "bands must be one of 'auto', 'pointwise', 'simultaneous', got 'wide'"),
        ({"classes": ["fir"]}, "classes must name one of the classes, got 'fir': choose from elm, oak, yew"),
        ({"between": [("fir", "oak")]}, "between must name one of the classes, got 'fir'"),
        (
            {"between": [("oak", "oak")]},
            r"between must hold pairs of two different classes, got \('oak', 'oak'\): pass",
        ),
        ({"y_pred": ["oak"]}, r"y_pred must have the shape \(202,\), got \(1,\): pass one predicted class"),
        ({"level": 2}, "level must be"),
    ],
)
def test_errors(options, message):
    y, scores = simulated()
    with pytest.raises(ValueError, match=f"^{message}"):
        MulticlassROCDisplay.from_predictions(y, scores, **options)


def test_axes_of_others():
    figure, axes = plt.subplots()
    display = MulticlassROCDisplay.from_predictions(*simulated(), ax=axes)
    assert (display.ax_, display.figure_) == (axes, figure)


def test_huge_scores_have_curves():
    y = np.array([0, 0, 1, 1])
    display = MulticlassROCDisplay.from_predictions(y, np.array([[1.0], [-1.0], [1.0], [1.0]]) * [-1e308, 1e308])
    assert [curve.auc.score for curve in display.curves] == [0.75, 0.75]
