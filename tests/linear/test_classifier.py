"""MAUCClassifier as users meet it."""

import pickle
import tracemalloc

import numpy as np
import pytest
from cases import Quartic
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_sample_weight

from mauc import MAUCClassifier, SurrogateRisk, mauc_score, mauc_scorer
from mauc.activations import activate
from mauc.model_selection import MAUCScorer, RareClassKFold
from mauc.surrogates import get_surrogate

NAMES = np.array(["ant", "bee", "cat", "dog"])


def blobs(sizes=(40, 25, 12), n_features=4, seed=0):
    """Classes that overlap, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), n_features)) + 1.5 * np.eye(len(sizes), n_features)[y], y


def fit(X, y, *args, sample_weight=None, **params):
    settings = {"log_loss": 0.0, "l2": 1e-2, "tol": 1e-8, "max_iter": 1000, **params}
    return MAUCClassifier(*args, **settings).fit(X, y, sample_weight)


def same(a, b, atol=1e-5):
    """The same solution, up to the shift of the logits that no score sees."""
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=atol)
    shift = [m.intercept_ - (m.intercept_.mean() if m.activation == "softmax" else 0.0) for m in (a, b)]
    np.testing.assert_allclose(*shift, atol=10 * atol)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, int])
def test_shapes_and_types(dtype):
    X, y = blobs()
    X = (10 * X).astype(dtype) if dtype is int else X.astype(dtype)
    model = fit(X, NAMES[y], tol=1e-4)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert model.n_features_in_ == 4
    assert model.objective_curve_.shape == (model.n_iter_ + 1,)
    assert model.objective_curve_[-1] == model.objective_ < model.objective_curve_[0]
    probability = model.predict_proba(X)
    assert probability.shape == model.decision_function(X).shape == (77, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_allclose(probability, activate(model.decision_function(X), "softmax"))
    predicted = model.predict(X)
    assert predicted.shape == (77,)
    np.testing.assert_array_equal(predicted, model.classes_[probability.argmax(axis=1)])


@pytest.mark.parametrize("labels", [["no", "yes"], [7, 3]])
def test_two_classes(labels):
    X, y = blobs((40, 15))
    target = np.array(labels)[y]
    model = fit(X, target)
    assert model.coef_.shape == (2, 4)
    decision = model.decision_function(X)
    assert decision.shape == (55,)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability[:, 1], 1.0 / (1.0 + np.exp(-decision)))
    np.testing.assert_array_equal(model.predict(X), model.classes_[(decision > 0).astype(int)])
    assert model.score(X, target) == pytest.approx(mauc_score(target, decision), abs=1e-15)
    assert model.score(X, target) > 0.85


def test_the_objective_is_risk_and_penalty():
    X, y = blobs()
    for pairs in ("ovo", "ova", np.arange(9.0).reshape(3, 3)):
        model = fit(X, y, "squared", alpha=0.7, l2=0.1, pairs=pairs)
        risk = SurrogateRisk("squared", alpha=0.7, pairs=pairs).value(y, model.predict_proba(X))
        assert model.objective_ == pytest.approx(risk + 0.05 * (model.coef_**2).sum(), rel=1e-12)


def test_pairs_decide_what_counts():
    X, y = blobs((60, 40, 5), seed=3)
    only = np.zeros((3, 3))
    only[0, 2] = only[2, 0] = 1.0
    by_pairs = {
        name: fit(X, y, l2=1e-3, pairs=pairs) for name, pairs in (("ovo", "ovo"), ("ova", "ova"), ("0-2", only))
    }
    risks = {"ovo": SurrogateRisk(), "ova": SurrogateRisk(pairs="ova"), "0-2": SurrogateRisk(pairs=only)}
    for name, risk in risks.items():
        value = {other: risk.value(y, m.predict_proba(X)) + 5e-4 * (m.coef_**2).sum() for other, m in by_pairs.items()}
        assert min(value, key=value.get) == name
        expected = mauc_score(y, by_pairs[name].predict_proba(X), pairs=risk.pairs)
        assert by_pairs[name].score(X, y) == expected


def test_only_softmax_gives_probabilities():
    X, y = blobs()
    model = fit(X, y, activation="sigmoid")
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    logits = model.decision_function(X)
    assert model.score(X, y) == mauc_score(y, logits) > 0.8, "both are increasing maps of the logits"
    np.testing.assert_array_equal(model.predict(X), logits.argmax(axis=1))
    assert mauc_scorer(model, X, y) == model.score(X, y)


def test_with_a_log_loss_softmax_ranks():
    """Whatever scores the ranking term saw: softmax is what the log-loss makes right."""
    X, y = blobs(n_features=3)
    model = fit(X, y, activation="sigmoid", log_loss=1.0)
    shares = np.exp(model.decision_function(X))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), shares)
    assert model.score(X, y) == mauc_score(y, model.predict_proba(X)) == mauc_scorer(model, X, y)


def test_score_is_that_of_the_probabilities_not_of_the_logits():
    X, y = blobs(n_features=3)
    model = fit(X, y)
    assert model.score(X, y) == mauc_score(y, model.predict_proba(X)) == mauc_scorer(model, X, y)
    # The rows are the logits. In every column the row of the other class has the higher logit, but a lower share.
    model.coef_, model.intercept_ = np.eye(3), np.zeros(3)
    rows, classes = np.array([[2.0, 0, 0], [3, 5, 0], [3, 6, 7]]), np.arange(3)
    assert model.score(rows, classes) == mauc_score(classes, model.predict_proba(rows))
    assert mauc_score(classes, model.decision_function(rows)) == pytest.approx(0.5)
    assert model.score(rows, classes) == 1.0


def test_weights_are_repetitions():
    X, y = blobs()
    times = np.random.default_rng(1).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    for pairs in ("ovo", "ova"):
        weighted = fit(X, y, sample_weight=times, pairs=pairs)
        same(weighted, fit(X[rows], y[rows], pairs=pairs))
        assert weighted.score(X, y, times) == pytest.approx(weighted.score(X[rows], y[rows]), abs=1e-12)


def test_a_weight_of_zero_is_no_sample():
    X, y = blobs()
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weight > 0
    for pairs in ("ovo", "ova"):
        same(fit(X, y, sample_weight=weight, pairs=pairs), fit(X[kept], y[kept], pairs=pairs))


def test_weights_act_within_classes_only():
    X, y = blobs()
    plain, by_class = fit(X, y), np.array([0.1, 5.0, 300.0])[y]
    same(fit(X, y, sample_weight=np.full(len(y), 7.0)), plain)
    same(fit(X, y, sample_weight=by_class), plain)
    assert np.abs(fit(X, y, sample_weight=by_class, pairs="ova").coef_ - fit(X, y, pairs="ova").coef_).max() > 1e-2
    within = np.where(X[:, 3] > 0, 5.0, 0.1)
    assert np.abs(fit(X, y, sample_weight=within).coef_ - plain.coef_).max() > 1e-2


def test_warm_start():
    X, y = blobs()
    model = MAUCClassifier(warm_start=True, log_loss=0.0, l2=1e-2, max_iter=1000, tol=1e-7).fit(X, y)
    cold, value = model.n_iter_, model.objective_
    model.fit(X, y)
    assert model.objective_curve_[0] == pytest.approx(value, rel=1e-14)
    assert model.n_iter_ <= 1 < cold
    model.set_params(l2=5e-3).fit(X, y)
    assert model.objective_curve_[0] < 0.9 * fit(X, y, l2=5e-3).objective_curve_[0]
    assert model.objective_ == pytest.approx(fit(X, y, l2=5e-3).objective_, rel=1e-9)


@pytest.mark.parametrize("change", ["classes", "columns"])
def test_warm_start_is_cold_where_the_last_solution_does_not_fit(change):
    X, y = blobs()
    model = MAUCClassifier(warm_start=True, l2=1e-2).fit(X, y)
    X, y = (X, y + 1) if change == "classes" else (X[:, :3], y)
    model.fit(X, y)
    fresh = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.objective_curve_, fresh.objective_curve_)
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    np.testing.assert_array_equal(model.classes_, np.unique(y))


def test_warm_start_without_the_intercept_of_before():
    X, y = blobs()
    model = MAUCClassifier(warm_start=True, log_loss=0.0, l2=1e-2, tol=1e-8).fit(X, y)
    assert model.intercept_.any()
    model.set_params(fit_intercept=False).fit(X, y)
    assert not model.intercept_.any()
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T)
    assert model.objective_ == pytest.approx(fit(X, y, fit_intercept=False).objective_, rel=1e-8)


def test_warning_when_it_stops_early():
    X, y = blobs()
    text = r"L-BFGS stopped before the gradient fell below tol=1e-06 \(.+\): "
    text += r"raise max_iter \(now 2\) or tol, or scale the features"
    with pytest.warns(ConvergenceWarning, match=text) as caught:
        model = MAUCClassifier(max_iter=2).fit(X, y)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 2
    assert model.objective_curve_.shape == (3,)


def test_surrogates_as_names_and_as_objects():
    X, y = blobs()
    same(fit(X, y, get_surrogate("squared", alpha=2.0)), fit(X, y, "squared", alpha=2.0))
    model = fit(X, y, Quartic())
    assert model.objective_ == pytest.approx(
        SurrogateRisk(Quartic()).value(y, model.predict_proba(X)) + 5e-3 * (model.coef_**2).sum(), rel=1e-12
    )
    with pytest.raises(ValueError, match="alpha needs a surrogate given by name"):
        fit(X, y, Quartic(), alpha=2.0)


@pytest.mark.parametrize(
    ("surrogate", "tol"),
    [
        ("squared", 1e-6),
        ("exponential", 1e-6),
        ("hinge", 1e-2),
        ("q_hinge", 1e-6),
        ("generalized_hinge", 1e-5),
        ("logistic", 1e-5),
        ("distance_weighted", 1e-5),
    ],
)
def test_every_surrogate_ranks_well(surrogate, tol):
    X, y = blobs((20, 20, 20), seed=2)
    model = fit(X, y, surrogate, l2=1e-3, tol=tol, max_iter=3000)
    assert model.score(X, y) > 0.85


def test_in_pipelines_and_searches():
    X, y = blobs()
    y = NAMES[y]
    pipeline = make_pipeline(StandardScaler(), MAUCClassifier(l2=1e-2, tol=1e-4))
    scores = cross_val_score(pipeline, 100 * X, y, scoring=mauc_scorer, cv=RareClassKFold(3))
    assert scores.shape == (3,)
    assert (scores > 0.8).all()
    np.testing.assert_array_equal(scores, cross_val_score(pipeline, 100 * X, y, cv=RareClassKFold(3)))
    grid = {"maucclassifier__alpha": [1.0, 4.0], "maucclassifier__l2": [1e-2, 10.0]}
    search = GridSearchCV(pipeline, grid, scoring=mauc_scorer, cv=3).fit(100 * X, y)
    assert search.best_params_["maucclassifier__l2"] == 1e-2
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.score(100 * X, y) == mauc_scorer(search.best_estimator_, 100 * X, y)


def test_clone_and_pickle():
    X, y = blobs()
    model = fit(X, y, "hinge", alpha=0.5, pairs=np.ones((3, 3)), tol=1e-2)
    copy = clone(model)
    assert not hasattr(copy, "coef_")
    # clone copies the parameters, so arrays and dicts are equal, not the same.
    assert {k: v for k, v in copy.get_params().items() if k != "pairs"} == {
        k: v for k, v in model.get_params().items() if k != "pairs"
    }
    np.testing.assert_array_equal(copy.pairs, model.pairs)
    back = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_skops_needs_to_trust_this_class_alone():
    io = pytest.importorskip("skops.io", reason="needs the extra mauc[cli]")
    X, y = blobs()
    model = fit(X, NAMES[y])
    file = io.dumps(model)
    trusted = ["mauc.linear.classifier.MAUCClassifier"]
    assert io.get_untrusted_types(data=file) == trusted
    back = io.loads(file, trusted=trusted)
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.get_params() == model.get_params()


def test_metadata_routing_of_weights():
    X, y = blobs()
    weight = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    folds = list(RareClassKFold(3).split(X, y))
    with config_context(enable_metadata_routing=True):
        model = MAUCClassifier(l2=1e-2).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaled = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        fitted = scaled.fit(X, y, sample_weight=weight)
        same(fitted[-1], MAUCClassifier(l2=1e-2).fit(StandardScaler().fit_transform(X), y, weight))
        assert fitted.score(X, y, sample_weight=weight) != fitted.score(X, y, sample_weight=np.ones(len(y)))
        params = {"sample_weight": weight}
        scorer = MAUCScorer().set_score_request(sample_weight=True)
        for scoring in (None, scorer):
            result = cross_validate(model, X, y, scoring=scoring, cv=folds, params=params)["test_score"]
            expected = []
            for train, test in folds:
                by_hand = MAUCClassifier(l2=1e-2).fit(X[train], y[train], weight[train])
                expected.append(by_hand.score(X[test], y[test], weight[test]))
            np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)
        unasked = MAUCClassifier(l2=1e-2)
        with pytest.raises(ValueError, match=r"sample_weight.*not explicitly set"):
            cross_validate(unasked, X, y, cv=folds, params=params, error_score="raise")


def test_csr_fits_as_dense():
    X, y = blobs()
    X[np.abs(X) < 0.8] = 0.0
    dense = fit(X, y)
    for layout in (sparse.csr_array, sparse.coo_array):
        model = fit(layout(X), y)
        same(model, dense)
        np.testing.assert_allclose(model.predict_proba(layout(X)), dense.predict_proba(X), atol=1e-5)


def test_a_wide_sparse_table_is_never_made_dense():
    """The shape of User-Imb: 4.2 GB if dense."""
    rng = np.random.default_rng(0)
    n_samples, n_features, in_a_row = 24_400, 21_527, 40
    y = np.sort(np.minimum(rng.geometric(0.25, n_samples) - 1, 11))
    columns = rng.integers(0, n_features, (n_samples, in_a_row))
    columns[:, 0] = y
    X = sparse.csr_array(
        (np.ones(columns.size, dtype=np.float32), columns.ravel(), np.arange(0, columns.size + 1, in_a_row)),
        shape=(n_samples, n_features),
    )
    tracemalloc.start()
    try:
        with pytest.warns(ConvergenceWarning):
            model = MAUCClassifier(max_iter=3).fit(X, y)
        score = model.score(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.coef_.shape == (12, n_features)
    assert score > 0.9
    assert peak < 5e8


def test_a_class_absent_from_what_is_scored_drops_out():
    X, y = blobs()
    model = fit(X, y)
    here = y != 1
    scores = model.predict_proba(X[here])
    assert model.score(X[here], y[here]) == mauc_score(y[here], scores, labels=[0, 1, 2], absent="ignore")
    both = mauc_score(y[here], scores[:, [0, 2]])
    assert model.score(X[here], y[here]) == pytest.approx(both, abs=1e-15)


def test_a_class_that_training_did_not_see():
    X, y = blobs()
    model = fit(X[y < 2], NAMES[y[y < 2]])
    for score in (model.score, lambda X, y: mauc_scorer(model, X, y)):
        with pytest.warns(UndefinedMetricWarning, match="left out of the multiclass AUC: cat; RareClassKFold"):
            assert score(X, NAMES[y]) == model.score(X[y < 2], NAMES[y[y < 2]])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"l2": -1e-9}, r"l2 must be a finite number of at least 0, got -1e-09$"),
        ({"l2": "strong"}, r"l2 must be .* got 'strong'"),
        ({"activation": "relu"}, r"activation must be one of 'softmax', 'sigmoid', 'identity', 'log_odds', got 'relu'"),
        ({"surrogate": "zero-one"}, r"surrogate must be one of 'squared', .*got 'zero-one'"),
        ({"surrogate": object()}, r"surrogate must be a name or an object with the methods"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"pairs": "all"}, r"pairs must be one of 'ovo', 'ova', 'ovr', got 'all'"),
        ({"pairs": np.ones((2, 2))}, r"pairs must be .* a \(3, 3\) matrix"),
        ({"tol": 0.0}, "tol must be a finite number above 0"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_parameters(params, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        MAUCClassifier(**params).fit(X, y)


@pytest.mark.parametrize(("layout", "bad"), [(np.asarray, np.nan), (sparse.csr_array, -np.inf)])
def test_features_must_be_finite(layout, bad):
    X, y = blobs()
    model = fit(X, y)
    X[3, 1] = bad
    for call in (lambda: MAUCClassifier().fit(layout(X), y), lambda: model.predict(layout(X))):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            call()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda y: np.where(y == 0, -1.0, 1.0), "sample_weight must not be negative"),
        (lambda y: np.ones(len(y) - 1), r"sample_weight must have the shape \(77,\), got shape \(76,\)"),
        (
            lambda y: (y != 2).astype(float),
            r"sample_weight must have a positive sum in every class, got zero for class cat",
        ),
    ],
)
def test_bad_weights(weight, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        MAUCClassifier().fit(X, NAMES[y], weight(y))


def test_other_columns_than_in_fit():
    pandas = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    X, y = blobs()
    model = fit(X, y)
    for method in (model.predict, model.predict_proba, model.decision_function, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match="X has 3 features, but MAUCClassifier is expecting 4 features"):
            method(X[:, :3])
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = fit(frame, y)
    assert named.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(named.predict(frame), model.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame.rename(columns={"a": "z"}))


def test_unfitted():
    X, y = blobs()
    model = MAUCClassifier()
    for method in (model.predict, model.predict_proba, model.decision_function, lambda X: model.score(X, y)):
        with pytest.raises(NotFittedError, match="MAUCClassifier instance is not fitted yet"):
            method(X)


def mostly_log_loss(X, y, weight=None, **options):
    """With 10,000 times the log-loss, and as much penalty, the ranking term hardly counts."""
    return MAUCClassifier(log_loss=1e4, l2=1e2, max_iter=5000, tol=1e-4, **options).fit(X, y, weight)


@pytest.mark.parametrize("kind", ["plain", "balanced", "weighted"])
def test_a_large_log_loss_is_logistic_regression(kind):
    """With ova pairs nothing is shifted; balanced classes leave nothing to shift. C is 1 / (l2 · Σu)."""
    X, y = blobs()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if kind == "weighted" else np.ones(len(y))
    of_peer = compute_sample_weight("balanced", y) if kind == "balanced" else weight
    peer = LogisticRegression(C=1 / (1e-2 * of_peer.sum()), tol=1e-9, max_iter=5000).fit(X, y, of_peer)
    options = {"balanced": True} if kind == "balanced" else {"balanced": False, "pairs": "ova"}
    ours = mostly_log_loss(X, y, None if kind == "plain" else weight, **options)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)


def test_the_shift_takes_the_priors_out():
    """The minimiser for ovo is that for ova with intercepts less log p: the same model, centred."""
    X, y = blobs()
    shifted, plain = (mostly_log_loss(X, y, pairs=pairs, balanced=False) for pairs in ("ovo", "ova"))
    np.testing.assert_allclose(shifted.coef_, plain.coef_, atol=1e-3)
    moved = plain.intercept_ - shifted.intercept_ - np.log(np.bincount(y))
    np.testing.assert_allclose(moved, moved.mean(), atol=1e-2)


@pytest.mark.parametrize(
    "pairs", ["ovo", "ova", np.outer([1.0, 3.0, 2.0], [2.0, 1.0, 5.0])], ids=["ovo", "ova", "matrix"]
)
def test_balanced_classes_leave_the_minimiser_where_it_was(pairs):
    """Balanced or shifted, the log-loss has the same minimiser where the model can reach it: here one point a class."""
    counts = np.array([[60, 20, 20], [10, 8, 2], [1, 2, 3]])
    X = np.repeat(np.eye(3), counts.sum(axis=1), axis=0)
    y = np.concatenate([np.repeat(np.arange(3), row) for row in counts])
    options = {"pairs": pairs, "log_loss": 1e4, "l2": 0.0, "fit_intercept": False, "max_iter": 5000, "tol": 1e-4}
    both = [MAUCClassifier(balanced=balanced, **options).fit(X, y) for balanced in (True, False)]
    np.testing.assert_allclose(*(model.predict_proba(np.eye(3)) for model in both), atol=1e-3)


def test_what_the_defaults_are():
    """Log-odds with the α that is right for them, beside a balanced log-loss; softmax as soon as α or 0 is given."""
    X, y = blobs()
    by_default = MAUCClassifier().fit(X, y)
    told = {"alpha": 0.5, "log_loss": 0.5, "balanced": True, "l2": 1.0 / len(y), "activation": "log_odds"}
    np.testing.assert_array_equal(by_default.coef_, MAUCClassifier("exponential", **told).fit(X, y).coef_)
    paper = {"surrogate": "exponential", "alpha": 1.0, "log_loss": 0.0}
    softmax = MAUCClassifier(**paper, activation="softmax").fit(X, y)
    np.testing.assert_array_equal(MAUCClassifier(**paper).fit(X, y).coef_, softmax.coef_)
    steep = {"alpha": 4.0, "log_loss": 1.0}
    expected = MAUCClassifier(**steep, activation="softmax").fit(X, y)
    np.testing.assert_array_equal(MAUCClassifier(**steep).fit(X, y).coef_, expected.coef_)
    hinge = MAUCClassifier("hinge", max_iter=500, tol=1e-3, activation="softmax").fit(X, y)
    np.testing.assert_array_equal(MAUCClassifier("hinge", max_iter=500, tol=1e-3).fit(X, y).coef_, hinge.coef_)


def test_the_penalty_is_that_of_logistic_regression_by_default():
    """``C=1`` beside a sum over the samples: over their number, or their summed weight."""
    X, y = blobs()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    for weights, total in ((None, len(y)), (weight, weight.sum())):
        by_default, told = (MAUCClassifier(l2=l2).fit(X, y, weights) for l2 in (None, 1.0 / total))
        np.testing.assert_array_equal(by_default.coef_, told.coef_)


@pytest.mark.parametrize("log_loss", [-1.0, np.nan, "only"])
def test_bad_log_loss(log_loss):
    with pytest.raises(ValueError, match=r"log_loss must be a finite number of at least 0, got .*: 0 is the ranking"):
        MAUCClassifier(log_loss=log_loss).fit(*blobs())


def test_pairs_that_are_no_products_have_no_log_loss():
    pairs = np.array([[0, 1, 1], [1, 0, 1], [1, 2, 0]])
    MAUCClassifier(pairs=pairs, log_loss=0.0, tol=1e-2).fit(*blobs())
    with pytest.raises(ValueError, match="log_loss needs pairs that are products a_i b_j"):
        MAUCClassifier(pairs=pairs, log_loss=1.0).fit(*blobs())


@pytest.mark.parametrize("options", [{}, {"surrogate": "squared", "log_loss": 0.0}, {"fit_intercept": False}])
@pytest.mark.parametrize("scale", [1e30, 1e100, 1e160, 1e300])
def test_features_too_large_for_a_step_are_an_error(scale, options):
    """Before, the coefficients were NaN from 1e155 on, and 0 from 1e30 on, without a word."""
    y = np.arange(60) % 3
    X = np.random.default_rng(0).normal(size=(60, 2)) + y[:, None]
    with pytest.raises(ValueError, match="divide the features by a common number"):
        MAUCClassifier(**options).fit(scale * X, y)
    far = MAUCClassifier(**options, max_iter=500).fit(1e15 * X, y)
    assert np.isfinite(far.coef_).all()
    assert far.score(1e15 * X, y) > 0.6
