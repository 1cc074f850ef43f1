import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mauc
from mauc.metrics.display import MinorityPairsDisplay, PairwiseAUCDisplay
from mauc.metrics.display.common import COLORS
from mauc.metrics.display.minority import MARKERS
from mauc.metrics.inference import mauc_interval
from mauc.metrics.scores import mauc_score, pairwise_auc

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

DISPLAYS = [PairwiseAUCDisplay, MinorityPairsDisplay]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def simulated(counts, seed=0, classes=None):
    """Classes with the sizes ``counts``, in random order, and scores that find them a little."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    scores = rng.normal(size=(len(codes), len(counts))) + np.eye(len(counts))[codes]
    return (codes if classes is None else np.asarray(classes)[codes]), scores


@pytest.fixture(scope="module")
def fitted():
    X, y = make_classification(
        200, n_features=6, n_informative=4, n_classes=3, weights=[0.2, 0.7, 0.1], random_state=0, class_sep=0.6
    )
    y = np.array(["fox", "cat", "dog"])[y]
    models = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
        "ridge": RidgeClassifier().fit(X, y),
        "bayes": GaussianNB().fit(X, y),
    }
    return X, y, models


def scores_of(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


def texts(labels):
    return [label.get_text() for label in labels]


class TestPairwiseAUC:
    names = ("text", "line", "graphic", "rule", "picture")
    counts = (30, 90, 4, 12, 12)

    def test_stores_the_matrix_in_the_order_of_the_labels(self):
        y, scores = simulated(self.counts, classes=self.names)
        display = PairwiseAUCDisplay.from_predictions(y, scores, labels=self.names)
        np.testing.assert_array_equal(display.matrix, pairwise_auc(y, scores, labels=self.names))
        np.testing.assert_array_equal(display.counts, self.counts)
        np.testing.assert_array_equal(display.display_labels, self.names)
        assert display.mauc == pytest.approx(mauc_score(y, scores, labels=self.names), abs=1e-14)
        assert display.ax_.get_title() == f"MAUC = {display.mauc:.3f}"

    def test_draws_the_most_frequent_class_first(self):
        y, scores = simulated(self.counts, classes=self.names)
        display = PairwiseAUCDisplay.from_predictions(y, scores, labels=self.names)
        order = [1, 0, 3, 4, 2]  # rule and picture tie: the order of the labels
        np.testing.assert_array_equal(display.order_, order)
        drawn = np.ma.filled(display.im_.get_array(), np.nan)
        np.testing.assert_array_equal(drawn, display.matrix[np.ix_(order, order)])
        assert texts(display.ax_.get_xticklabels()) == ["line", "text", "rule", "picture", "graphic"]
        assert texts(display.ax_.get_yticklabels()) == [
            "line (90)", "text (30)", "rule (12)", "picture (12)", "graphic (4)",
        ]  # fmt: skip

    def test_numbers_have_the_digits_that_tell_pairs_apart(self):
        matrix = np.full((3, 3), np.nan)
        matrix[~np.eye(3, dtype=bool)] = [0.5, 0.944, 0.974, 0.9991, 0.7, 0.04]
        display = PairwiseAUCDisplay(matrix).plot()
        written = {(i, j): text.get_text() for (i, j), text in np.ndenumerate(display.text_) if text is not None}
        assert written == {(0, 1): ".50", (0, 2): ".94", (1, 0): ".974", (1, 2): ".999", (2, 0): ".70", (2, 1): ".04"}
        assert display.text_[1, 2].get_position() == (2, 1)

    def test_numbers_that_say_nothing_are_left_out_and_the_scale_says_why(self):
        matrix, counts = np.full((3, 3), 0.9), [50, 20, 1]
        matrix[0, 1] = 1.0 - 4e-4
        display = PairwiseAUCDisplay(matrix, counts=counts).plot()
        assert [ij for ij, text in np.ndenumerate(display.text_) if text is not None] == [(1, 0)]
        assert display.im_.colorbar.ax.get_ylabel().endswith(", blank: 1.000 or one row")
        every = PairwiseAUCDisplay(matrix, counts=counts).plot(include_values=True)
        assert every.text_[0, 1].get_text() == "1.000"
        assert sum(text is not None for text in every.text_.flat) == 6
        assert "blank" not in every.im_.colorbar.ax.get_ylabel()
        # Sums of weights do not tell how many rows there are.
        weighted = PairwiseAUCDisplay(matrix, counts=[50.0, 20.0, 1.0]).plot()
        assert sum(text is not None for text in weighted.text_.flat) == 5

    def test_writes_no_values_and_few_ticks_at_a_hundred_classes(self):
        y, scores = simulated(np.full(100, 3))
        display = PairwiseAUCDisplay.from_predictions(y, scores)
        assert display.text_ is None
        assert len(display.ax_.texts) == 0
        np.testing.assert_array_equal(display.ax_.get_xticks(), np.arange(0, 100, 5))
        assert len(display.ax_.get_xticks(minor=True)) == 0

    def test_values_can_be_asked_for_and_refused(self):
        matrix = np.full((16, 16), 0.75)
        assert PairwiseAUCDisplay(matrix).plot(include_values=True).text_[3, 5].get_text() == ".75"
        assert PairwiseAUCDisplay(matrix[:3, :3]).plot(include_values=False).text_ is None
        drawn = PairwiseAUCDisplay(matrix[:3, :3]).plot(cmap="cividis", colorbar=False)
        assert drawn.im_.get_cmap().name == "cividis"
        assert len(drawn.figure_.axes) == 1

    def test_pale_is_fine_and_strong_is_bad_as_in_the_report(self):
        display = PairwiseAUCDisplay([[np.nan, 1.0], [0.5, np.nan]]).plot(include_values=True)
        script = (Path(mauc.__file__).parent / "report" / "templates" / "heatmap.js").read_text(encoding="utf-8")
        ramp = re.findall(r"#\w{6}", re.search(r"light: \[(.*?)\]", script).group(1))
        drawn = [matplotlib.colors.to_hex(display.im_.cmap(at)) for at in np.linspace(1.0, 0.0, len(ramp))]
        assert drawn[0] == ramp[0]
        for one, other in zip(drawn, ramp, strict=True):
            np.testing.assert_allclose(matplotlib.colors.to_rgb(one), matplotlib.colors.to_rgb(other), atol=0.02)
        assert display.text_[0, 1].get_color() == "black"
        assert display.text_[1, 0].get_color() == "white"

    def test_absent_classes_have_no_value_and_are_left_out_of_the_mean(self):
        y, scores = simulated(self.counts, classes=self.names)
        kept = y != "line"
        display = PairwiseAUCDisplay.from_predictions(y[kept], scores[kept], labels=self.names)
        assert display.order_[-1] == 1
        assert np.ma.getmaskarray(display.im_.get_array())[-1].all()
        assert display.text_[-1].tolist() == [None] * 5
        assert texts(display.ax_.get_yticklabels())[-1] == "line (0)"
        assert display.mauc == pytest.approx(mauc_score(y[kept], scores[kept], labels=self.names, absent="ignore"))
        (backing,) = display.ax_.patches
        assert backing.get_hatch()
        assert backing.get_zorder() < display.im_.get_zorder()

    def test_the_diagonal_is_not_read(self):
        display = PairwiseAUCDisplay([[0.1, 0.9], [0.7, 0.1]]).plot()
        assert display.mauc == pytest.approx(0.8)
        assert display.im_.get_clim() == (0.7, 1.0)
        assert np.ma.getmaskarray(display.im_.get_array()).tolist() == np.eye(2, dtype=bool).tolist()

    @pytest.mark.parametrize(("names", "rotation"), [(("a", "b", "c"), 0), (("a rather long name", "b", "c"), 45)])
    def test_long_names_are_slanted(self, names, rotation):
        display = PairwiseAUCDisplay(np.full((3, 3), 0.5), display_labels=names).plot()
        assert {label.get_rotation() for label in display.ax_.get_xticklabels()} == {rotation}

    def test_names_are_shortened_and_no_formulas(self):
        display = PairwiseAUCDisplay(np.full((2, 2), 0.5), display_labels=["x" * 50, "$1 to $2"]).plot()
        long, formula = texts(display.ax_.get_yticklabels())
        assert re.fullmatch("x{10,27}…", long)
        assert formula == r"\$1 to \$2"
        display.figure_.draw_without_rendering()

    @pytest.mark.parametrize("n_classes", [2, 10, 100])
    def test_nothing_is_clipped(self, n_classes):
        names = [f"class number {k}" for k in range(n_classes)]
        display = PairwiseAUCDisplay(
            np.full((n_classes, n_classes), 0.8), display_labels=names, counts=np.arange(n_classes) * 100
        ).plot()
        assert_nothing_clipped(display.figure_)

    @pytest.mark.parametrize(
        ("names", "figsize"),
        [(list("0123456789"), (11, 4.5)), (["headlines", "vehicle windows", "tableware"], (6.4, 4.8))],
    )
    def test_two_side_by_side_do_not_overlap(self, names, figsize):
        n = len(names)
        figure, both = plt.subplots(1, 2, figsize=figsize)
        for axes in both:
            PairwiseAUCDisplay(np.full((n, n), 0.8), display_labels=names, counts=100 + np.arange(n)).plot(ax=axes)
        assert_nothing_clipped(figure)
        left, left_bar, right, right_bar = (figure.axes[k].get_tightbbox() for k in (0, 2, 1, 3))
        assert left.x1 <= left_bar.x0 < left_bar.x1 <= right.x0 < right.x1 <= right_bar.x0
        for axes in both:
            cell = axes.get_window_extent().width / n
            assert max(text.get_window_extent().width for text in axes.texts) < cell
            labels = [label.get_window_extent() for label in axes.get_yticklabels()]
            assert all(one.y0 >= other.y1 for one, other in itertools.pairwise(labels))

    def test_a_layout_of_the_users_own_stays(self):
        figure, both = plt.subplots(1, 2, layout="tight")
        PairwiseAUCDisplay(np.full((2, 2), 0.5)).plot(ax=both[0])
        assert type(figure.get_layout_engine()).__name__ == "TightLayoutEngine"
        part = plt.figure().subfigures(1, 2)[0]
        assert PairwiseAUCDisplay(np.full((2, 2), 0.5)).plot(ax=part.subplots()).figure_ is part


def assert_nothing_clipped(figure):
    figure.draw_without_rendering()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert drawn.x0 >= 0
    assert drawn.y0 >= 0
    assert drawn.x1 <= width
    assert drawn.y1 <= height


class TestMinorityPairs:
    names = ("a", "b", "c", "d")
    counts = (6, 40, 3, 20)

    def display(self, **options):
        y, scores = simulated(self.counts, classes=self.names)
        return y, scores, MinorityPairsDisplay.from_predictions(y, scores, labels=self.names, **options)

    def test_rarest_pairs_come_first(self):
        _, _, display = self.display()
        # products 18, 60, 120 (twice: a-d, b-c), 240, 800
        np.testing.assert_array_equal(display.pairs, [list("ac"), list("cd"), list("ad"), list("bc"), list("ab")])
        np.testing.assert_array_equal(display.pair_counts, [[6, 3], [3, 20], [6, 20], [40, 3], [6, 40]])
        assert texts(display.ax_.get_yticklabels())[:2] == ["a (6) vs c (3)", "c (3) vs d (20)"]
        assert display.ax_.yaxis_inverted()

    def test_order_and_auc_agree_with_the_definition(self):
        counts = np.random.default_rng(3).integers(1, 9, size=9)
        y, scores = simulated(counts)
        display = MinorityPairsDisplay.from_predictions(y, scores, k=20)
        expected = sorted(itertools.combinations(range(9), 2), key=lambda pair: counts[pair[0]] * counts[pair[1]])[:20]
        matrix = pairwise_auc(y, scores)
        np.testing.assert_array_equal(display.pairs, expected)
        assert display.auc.shape == (1, 20)
        np.testing.assert_allclose(display.auc[0], [(matrix[i, j] + matrix[j, i]) / 2 for i, j in expected])
        np.testing.assert_array_equal(display.points_[0].get_xdata(), display.auc[0])

    def test_absent_classes_form_no_pair(self):
        y, scores = simulated(self.counts, classes=self.names)
        kept = y != "c"
        display = MinorityPairsDisplay.from_predictions(y[kept], scores[kept], labels=self.names)
        np.testing.assert_array_equal(display.pairs, [list("ad"), list("ab"), list("bd")])
        assert not np.isnan(display.auc).any()

    def test_intervals_are_those_of_the_pair_alone(self):
        """The same as of the whole sample with no weight on other pairs."""
        y, scores, display = self.display(k=3, level=0.9)
        assert display.low.shape == display.high.shape == display.auc.shape
        place = {name: k for k, name in enumerate(self.names)}
        for (i, j), auc, low, high in zip(display.pairs, display.auc[0], display.low[0], display.high[0], strict=True):
            v = np.zeros((4, 4))
            v[place[i], place[j]] = 1
            v += v.T
            expected = mauc_interval(y, scores, labels=self.names, pairs=v, level=0.9)
            np.testing.assert_allclose([auc, low, high], [expected.score, expected.low, expected.high], atol=1e-12)
        (bars,) = display.intervals_
        np.testing.assert_allclose(
            [bar[:, 0] for bar in bars.get_segments()], np.stack([display.low[0], display.high[0]], 1)
        )
        assert display.ax_.get_xlim()[0] < display.low.min()

    def test_several_models_share_the_rows(self):
        y, scores = simulated(self.counts, classes=self.names)
        models = {"good": scores, "bad": -scores, "constant": np.zeros_like(scores)}
        display = MinorityPairsDisplay.from_predictions(y, models, labels=self.names, k=3)
        assert display.auc.shape == (3, 3)
        np.testing.assert_allclose(display.auc[1], 1 - display.auc[0])
        np.testing.assert_array_equal(display.auc[2], 0.5)
        assert display.name == ["good", "bad", "constant"]
        assert texts(display.legend_.get_texts()) == display.name
        rows = np.array([points.get_ydata() for points in display.points_])
        np.testing.assert_allclose(rows.mean(axis=0), [0, 1, 2], atol=1e-12)
        assert (np.diff(rows, axis=0) > 0).all()
        np.testing.assert_array_equal(np.round(rows), np.tile([0, 1, 2], (3, 1)))

    def test_the_legend_has_models_whose_names_begin_with_an_underscore(self):
        y, scores, _ = self.display()
        display = MinorityPairsDisplay.from_predictions(y, {"_a": scores, "b": -scores}, labels=self.names, k=3)
        assert [text.strip() for text in texts(display.legend_.get_texts())] == ["_a", "b"]

    def test_many_models_look_different(self):
        auc = np.full((30, 2), 0.6)
        display = MinorityPairsDisplay(auc, auc, auc, [["a", "b"]] * 2, [[1, 2]] * 2).plot()
        assert len({(points.get_color(), points.get_marker()) for points in display.points_}) == 30
        assert np.gcd(len(COLORS), len(MARKERS)) == 1

    def test_single_model_is_named_in_the_title(self):
        assert self.display(k=1)[2].ax_.get_title() == "AUC of the rarest pair of classes"
        y, scores, _ = self.display()
        display = MinorityPairsDisplay.from_predictions(y, {"forest": scores}, labels=self.names, k=3)
        assert display.ax_.get_title() == "AUC of the 3 rarest pairs of classes\nforest"
        assert display.legend_ is None

    @pytest.mark.parametrize(("n_models", "k"), [(1, 1), (12, 2), (12, 25)])
    def test_nothing_is_clipped(self, n_models, k):
        names = [f"model number {m}" for m in range(n_models)]
        pairs, sizes = [["some long class name", "another class"]] * k, [[1, 2000]] * k
        auc = np.full((n_models, k), 0.7)
        display = MinorityPairsDisplay(auc, auc - 0.1, auc + 0.1, pairs, sizes, name=names).plot()
        assert_nothing_clipped(display.figure_)


class TestEstimators:
    @pytest.mark.parametrize("kind", ["logistic", "ridge"])
    def test_matrix_equals_that_of_the_scores(self, fitted, kind):
        X, y, models = fitted
        by_model = PairwiseAUCDisplay.from_estimator(models[kind], X, y)
        by_score = PairwiseAUCDisplay.from_predictions(y, scores_of(models[kind], X))
        np.testing.assert_array_equal(by_model.matrix, by_score.matrix)
        np.testing.assert_array_equal(by_model.display_labels, ["cat", "dog", "fox"])

    def test_pairs_equal_those_of_the_scores(self, fitted):
        X, y, models = fitted
        by_model = MinorityPairsDisplay.from_estimator(models["ridge"], X, y, k=2)
        by_score = MinorityPairsDisplay.from_predictions(y, scores_of(models["ridge"], X), k=2)
        np.testing.assert_array_equal(by_model.auc, by_score.auc)
        np.testing.assert_array_equal(by_model.pairs, by_score.pairs)

    @pytest.mark.parametrize("display", DISPLAYS)
    def test_classes_come_from_the_estimator(self, fitted, display):
        X, y, models = fitted
        kept = y != "dog"
        shown = display.from_estimator(models["ridge"], X[kept], y[kept])
        if display is PairwiseAUCDisplay:
            assert np.isnan(shown.matrix[1]).all()
        else:
            assert shown.pairs.tolist() == [["cat", "fox"]]

    @pytest.mark.parametrize("display", DISPLAYS)
    def test_estimators_without_scores_are_refused(self, fitted, display):
        X, y, _ = fitted
        for estimator, words in [
            (
                LinearRegression().fit(X, y == "cat"),
                "must have predict_proba or decision_function, got LinearRegression: pass a classifier that scores",
            ),
            (
                IsolationForest(n_estimators=2).fit(X),
                "must have classes_, got IsolationForest without: pass a classifier, or scores to from_predictions",
            ),
            ("logistic", "must have predict_proba or decision_function, got str: pass a classifier that scores"),
            (GaussianNB, "must be a fitted classifier, got the class GaussianNB: pass a fitted instance of it"),
        ]:
            with pytest.raises(ValueError, match=f"^estimator {words}"):
                display.from_estimator(estimator, X, y)


class TestBoth:
    @pytest.mark.parametrize("display", DISPLAYS)
    def test_draws_on_the_axes_passed(self, display):
        y, scores = simulated((4, 5, 6))
        figure, (left, right) = plt.subplots(1, 2)
        shown = display.from_predictions(y, scores, ax=right)
        assert shown.ax_ is right
        assert shown.figure_ is figure
        assert not left.has_data()
        assert right.has_data()
        assert plt.get_fignums() == [figure.number]
        assert shown.plot(ax=left) is shown
        assert shown.ax_ is left

    @pytest.mark.parametrize("display", DISPLAYS)
    def test_weights_count_like_repeated_samples(self, display):
        y, scores = simulated((4, 5, 6))
        weight = np.random.default_rng(0).integers(1, 4, size=len(y))
        weighted = display.from_predictions(y, scores, sample_weight=weight)
        repeated = display.from_predictions(np.repeat(y, weight), np.repeat(scores, weight, axis=0))
        for field in ("matrix", "counts", "auc", "pairs", "pair_counts"):
            np.testing.assert_allclose(getattr(weighted, field, 0), getattr(repeated, field, 0), rtol=1e-12)
        assert texts(weighted.ax_.get_yticklabels()) == texts(repeated.ax_.get_yticklabels())

    def test_fractional_weights_are_written_briefly(self):
        display = PairwiseAUCDisplay(np.full((3, 3), 0.5), counts=[1234.5, 12.3456, 0.012345]).plot()
        assert texts(display.ax_.get_yticklabels()) == ["0 (1,234)", "1 (12.3)", "2 (0.0123)"]

    def test_missing_matplotlib_is_reported(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        message = "^PairwiseAUCDisplay needs matplotlib, which is not installed: pip install 'mauc\\[plot\\]'$"
        with pytest.raises(ImportError, match=message):
            PairwiseAUCDisplay(np.full((2, 2), 0.5)).plot()

    @pytest.mark.parametrize("display", DISPLAYS)
    def test_one_class_is_refused(self, display):
        message = "y_true must hold two classes or more, got only the class 1: multiclass AUC compares classes"
        with pytest.raises(ValueError, match=re.escape(message)):
            display.from_predictions([1, 1], np.zeros((2, 3)), labels=[0, 1, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MinorityPairsDisplay.from_predictions([0, 1], [0, 1], level=95),
            "level must be a finite number strictly between 0 and 1, got 95",
        ),
        (
            lambda: MinorityPairsDisplay.from_predictions([0, 1], [0, 1], k=0),
            "k must be a whole number of at least 1, got 0: pass how many pairs to show",
        ),
        (
            lambda: MinorityPairsDisplay.from_predictions([0, 1], {}),
            "y_score must hold at least one model, got an empty dict: pass name -> scores",
        ),
        (
            lambda: MinorityPairsDisplay.from_predictions([0, 1], {"m": [0, 1], "n": [0, 1, 2]}),
            "model 'n': y_score must have one row per sample, got 3 rows for 2 true classes",
        ),
        (
            lambda: PairwiseAUCDisplay.from_predictions([0, 1, 2], np.zeros((3, 2))),
            "y_score must have one column per class, got 2 columns for 3 classes",
        ),
    ],
)
def test_messages(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
