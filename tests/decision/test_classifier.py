"""Decisions by the scores of any classifier."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, fbeta_score
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from experiments.datasets import load_simulated
from mauc import MAUCDecision, mauc_score
from mauc.plugin import balanced_posterior

FACTORS = np.array([1e-3, 5.0, 0.2, 30.0])
DISTANCES = np.abs(np.subtract.outer(range(4), range(4)))


class Given(ClassifierMixin, BaseEstimator):
    """Scores are a function of the features, and nothing is learnt."""

    def __init__(self, scores, n_classes=2):
        self.scores = scores
        self.n_classes = n_classes

    def __sklearn_is_fitted__(self):
        return True

    @property
    def classes_(self):
        return np.arange(self.n_classes)

    def fit(self, X, y, sample_weight=None):
        return self

    def predict_proba(self, X):
        return self.scores(X)


@pytest.fixture(scope="module")
def data():
    return load_simulated(n_samples=900, n_classes=4, imbalance=20, n_features=4, separation=1.5, seed=3)


def prefit(scores, n_classes=4, **options):
    return MAUCDecision(Given(scores, n_classes), cv="prefit", **options)


def test_two_classes_at_the_best_threshold():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [90, 30])
    p = np.clip(rng.normal(0.2 + 0.1 * y, 0.1), 0.01, 0.99).round(2)
    scores = np.column_stack([1 - p, p])
    model = prefit(lambda X: scores[X[:, 0]], 2, shrinkage=0.0).fit(np.arange(120)[:, None], y)
    best = max(balanced_accuracy_score(y, p >= threshold) for threshold in np.append(np.unique(p), 1.0))
    assert model.best_score_ == pytest.approx(best)
    assert balanced_accuracy_score(y, model.predict(np.arange(120)[:, None])) == pytest.approx(best)
    assert balanced_accuracy_score(y, scores.argmax(axis=1)) < best - 0.05


@pytest.mark.parametrize(
    ("costs", "scale"),
    [
        (None, lambda posterior, priors: posterior),
        (DISTANCES, balanced_posterior),
        ([[0, 1, 1, 1], [5, 0, 1, 1], [2, 1, 0, 9], [7, 7, 7, 0]], lambda posterior, priors: posterior**0.3 * FACTORS),
    ],
    ids=["posterior", "under equal class sizes", "columns on scales of their own"],
)
def test_decisions_come_near_those_of_the_true_posterior(costs, scale):
    data = load_simulated(n_samples=4000, n_classes=4, imbalance=20, n_features=4, separation=1.5, seed=3)
    X, y = data.sample(np.round(20000 * data.priors).astype(int))
    paid = (1 - np.eye(4)) / data.priors[:, None] / 4 if costs is None else np.asarray(costs)
    bayes = np.mean(paid[y, (data.posterior(X) @ paid).argmin(axis=1)])

    def scores(X):
        return scale(data.posterior(X), data.priors)

    model = prefit(scores, costs=costs).fit(data.X, data.y)
    assert 0.99 * bayes < np.mean(paid[y, model.predict(X)]) < 1.03 * bayes
    np.testing.assert_array_equal(model.predict_proba(X[:5]), scores(X[:5]))


@pytest.mark.parametrize("inner", [LinearSVC(), GaussianNB(), KNeighborsClassifier(7)], ids=lambda m: type(m).__name__)
def test_better_balanced_than_the_highest_score(data, inner):
    """Of decision values, of probabilities that are too sure, and of probabilities that are often 0."""
    X, y = data.sample([400] * 4)
    model = MAUCDecision(make_pipeline(StandardScaler(), inner)).fit(data.X, data.y)
    plain = make_pipeline(StandardScaler(), inner).fit(data.X, data.y)
    assert np.mean(model.predict(X) == y) > np.mean(plain.predict(X) == y) + 0.03
    assert abs(model.best_score_ - np.mean(model.predict(X) == y)) < 0.08
    assert hasattr(model, "predict_proba") == hasattr(inner, "predict_proba")
    assert model.score(X, y) == pytest.approx(
        mauc_score(y, plain.predict_proba(X) if hasattr(plain, "predict_proba") else plain.decision_function(X))
    )


def test_a_class_of_few_rows_does_not_decide_wildly():
    """Three rows that no score tells from the rest: to catch them all would take most rows of the others."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [300, 100, 3])
    logits = 2.0 * np.eye(3)[np.where(y == 2, 0, y)] + rng.normal(size=(403, 3)) + np.log([0.74, 0.25, 0.01])
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    rows = np.arange(403)[:, None]
    free, held = (prefit(lambda X: scores[X[:, 0]], 3, shrinkage=s).fit(rows, y) for s in (0.0, 3.0))
    assert free.best_score_ >= held.best_score_
    caught, calm = (np.mean(model.predict(rows)[y < 2] == 2) for model in (free, held))
    assert calm < 0.5 * caught


def test_weights(data):
    """No result depends on a common factor, a weight of 0 is no sample, and what weighs more is decided for."""
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, len(data.y)).astype(float)
    kept = weight > 0
    models = [
        prefit(data.posterior, costs=DISTANCES).fit(X, y, w)
        for X, y, w in (
            (data.X, data.y, weight),
            (data.X, data.y, 8.0 * weight),
            (data.X[kept], data.y[kept], weight[kept]),
            (data.X, data.y, np.where(data.y == 2, 50.0, 1.0)),
            (data.X, data.y, None),
        )
    ]
    for other in models[1:3]:
        np.testing.assert_allclose(other.offsets_, models[0].offsets_, rtol=1e-9)
        assert other.best_score_ == pytest.approx(models[0].best_score_)
    twos = [np.mean(model.predict(data.X) == 2) for model in models]
    assert twos[3] > twos[4] + 0.2


def test_a_metric_is_maximised(data):
    some = slice(None, 300)
    scoring = partial(fbeta_score, beta=2, average="macro")
    model = prefit(data.posterior, scoring=scoring).fit(data.X[some], data.y[some])
    taken = model.predict(data.X[some])
    assert model.best_score_ == pytest.approx(scoring(data.y[some], taken))
    assert model.best_score_ > scoring(data.y[some], data.posterior(data.X[some]).argmax(axis=1)) + 0.03


@pytest.mark.slow
def test_a_scorer_by_its_name(data):
    """As the function, with weights too."""
    X, y = data.X[:120], data.y[:120]
    for own in (None, np.linspace(1.0, 2.0, 120)):
        named, given = (
            prefit(data.posterior, scoring=scoring).fit(X, y, own)
            for scoring in ("f1_macro", partial(f1_score, average="macro"))
        )
        assert named.best_score_ == given.best_score_
        assert (named.offsets_ == given.offsets_).all()


def test_a_class_of_one_row_and_text_labels(data):
    names = np.array(["a", "b", "c", "d", "lonely"])
    X, y = np.vstack([data.X, data.X[:1]]), names[np.append(data.y, 4)]
    model = MAUCDecision(GaussianNB(var_smoothing=1e-3)).fit(X, y)
    assert model.classes_.tolist() == names.tolist()
    assert np.isfinite(model.offsets_).all()
    assert model.best_score_ > 0.5
    assert np.mean(model.predict(X) == "lonely") < 0.2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"costs": np.eye(3)}, r"costs must be a \(4, 4\) matrix of finite numbers, got shape \(3, 3\): pass \[i, j\]"),
        ({"costs": np.full((4, 4), np.nan)}, r"costs must be .*, got nan at \(0, 0\)"),
        ({"costs": np.ones((4, 4))}, "costs must differ between decisions, got rows of equal numbers"),
        ({"costs": DISTANCES, "scoring": fbeta_score}, "scoring must be None if costs are given"),
        ({"scoring": 3}, r"scoring must be a function of \(y_true, y_pred\) or the name of a scorer, got 3"),
        ({"scoring": "f1_macor"}, "scoring must be the name of a scorer, got 'f1_macor': sklearn.metrics.get_scorer"),
        (
            {"scoring": "roc_auc_ovo"},
            "scoring must be a metric of predicted classes, got 'roc_auc_ovo', which needs scores",
        ),
        ({"shrinkage": -1}, "shrinkage must be a finite number of at least 0, got -1"),
    ],
)
def test_errors(data, options, said):
    with pytest.raises(ValueError, match=said):
        prefit(data.posterior, **options).fit(data.X, data.y)


def test_errors_of_folds_and_fitted_models(data):
    with pytest.raises(ValueError, match=r"cv must train on every class in every fold, got a fold without \d: RareC"):
        MAUCDecision(cv=KFold(4)).fit(*(a[np.argsort(data.y)] for a in (data.X, data.y)))
    with pytest.raises(ValueError, match="y must hold classes of the fitted estimator, got the class 9"):
        prefit(data.posterior).fit(data.X, np.where(data.y == 3, 9, data.y))
    with pytest.raises(NotFittedError):
        MAUCDecision(LogisticRegression(), cv="prefit").fit(data.X, data.y)
    with pytest.raises(ValueError, match="sample_weight needs a scoring that takes it"):
        prefit(data.posterior, scoring=lambda y, p: 0.0).fit(data.X, data.y, np.linspace(1, 2, len(data.y)))


def test_stored_and_loaded(data):
    skops = pytest.importorskip("skops.io", reason="needs the extra mauc[cli]")
    model = MAUCDecision(GaussianNB(), costs=DISTANCES).fit(data.X, data.y)
    stored = skops.dumps(model)
    again = skops.loads(stored, trusted=skops.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(again.predict(data.X), model.predict(data.X))


# With a tree that is sure, the decision is the highest score, as these checks expect.
@parametrize_with_checks([MAUCDecision(DecisionTreeClassifier(random_state=0), cv=2)])
def test_estimator_checks(estimator, check):
    check(estimator)
