"""Metrics and objectives inside LightGBM and XGBoost, through their native and scikit-learn interfaces."""

import numpy as np
import pytest

pytest.importorskip("lightgbm", reason="needs the extra mauc[boosting]")
pytest.importorskip("xgboost", reason="needs the extra mauc[boosting]")

import lightgbm
import xgboost
from cases import EACH_KIND

from mauc import SurrogateRisk, mauc_score
from mauc.activations import activate
from mauc.boosting import (
    lightgbm_metric,
    lightgbm_objective,
    xgboost_metric,
    xgboost_objective,
)

QUIET = {"verbosity": -1, "num_threads": 1, "metric": "none", "num_leaves": 7, "min_data_in_leaf": 3}
QUIET_XGB = {"verbosity": 0, "nthread": 1, "max_depth": 3, "disable_default_eval_metric": True}


def blobs(sizes=(90, 40, 12), seed=0, shift=2.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(y), 4)) + shift * np.eye(len(sizes), 4)[y], y


def test_lightgbm_train():
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    objective = lightgbm_objective(alpha=2.0)
    params = {**QUIET, "objective": objective, "num_class": 3}
    data = lightgbm.Dataset(X, y)
    record = {}
    model = lightgbm.train(
        params,
        data,
        60,
        valid_sets=[lightgbm.Dataset(Z, truth, reference=data)],
        feval=objective.metric,
        callbacks=[lightgbm.record_evaluation(record), lightgbm.early_stopping(20, verbose=False)],
    )
    best = mauc_score(truth, activate(model.predict(Z), "softmax"))
    curve = record["valid_0"]["mauc"]
    assert best == pytest.approx(max(curve), abs=1e-9)
    assert best > 0.8
    assert model.best_iteration == int(np.argmax(curve)) + 1


def test_lightgbm_scikit_learn():
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    weight = np.linspace(0.5, 2.0, len(y))
    model = lightgbm.LGBMClassifier(objective=lightgbm_objective(), n_estimators=30, **QUIET)
    model.fit(X, y, sample_weight=weight, eval_X=Z, eval_y=truth, eval_metric=lightgbm_objective().metric)
    raw = model.predict(Z, raw_score=True)
    assert raw.shape == (len(Z), 3)
    assert model.evals_result_["valid_0"]["mauc"][-1] == pytest.approx(mauc_score(truth, activate(raw, "softmax")))
    native = lightgbm.train(
        {**QUIET, "objective": lightgbm_objective(), "num_class": 3}, lightgbm.Dataset(X, y, weight=weight), 30
    )
    np.testing.assert_allclose(native.predict(Z), raw, atol=1e-4)


def test_metrics_beside_the_libraries_own_objectives():
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    model = lightgbm.LGBMClassifier(n_estimators=10, **QUIET)
    model.fit(X, y, eval_X=Z, eval_y=truth, eval_metric=lightgbm_metric)
    expected = mauc_score(truth, model.predict_proba(Z))
    assert model.evals_result_["valid_0"]["mauc"][-1] == pytest.approx(expected)
    other = xgboost.XGBClassifier(n_estimators=10, eval_metric=xgboost_metric, **QUIET_XGB)
    other.fit(X, y, eval_set=[(Z, truth)], verbose=False)
    found = other.evals_result()["validation_0"]["auc_multiclass"]
    assert found[-1] == pytest.approx(mauc_score(truth, other.predict_proba(Z)))


def test_xgboost_train():
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    record, objective = {}, xgboost_objective(alpha=2.0)
    model = xgboost.train(
        {**QUIET_XGB, "num_class": 3},
        xgboost.DMatrix(X, y),
        60,
        obj=objective,
        custom_metric=objective.metric,
        evals=[(xgboost.DMatrix(Z, truth), "valid")],
        early_stopping_rounds=20,
        evals_result=record,
        verbose_eval=False,
    )
    curve = record["valid"]["auc_multiclass"]
    assert model.best_iteration == int(np.argmax(curve)), "a higher AUC is better, untold"
    raw = model.predict(xgboost.DMatrix(Z), output_margin=True, iteration_range=(0, model.best_iteration + 1))
    assert mauc_score(truth, activate(raw.astype(float), "softmax")) == pytest.approx(max(curve), abs=1e-6)
    assert max(curve) > 0.8


def test_xgboost_scikit_learn_with_weights():
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    weight = np.linspace(0.5, 2.0, len(y))
    model = xgboost.XGBClassifier(n_estimators=20, objective=xgboost_objective(), **QUIET_XGB)
    model.fit(X, y, sample_weight=weight)
    raw = model.predict(Z, output_margin=True)
    native = xgboost.train(
        {**QUIET_XGB, "num_class": 3}, xgboost.DMatrix(X, y, weight=weight), 20, obj=xgboost_objective()
    )
    np.testing.assert_allclose(native.predict(xgboost.DMatrix(Z), output_margin=True), raw, atol=1e-4)
    assert mauc_score(truth, activate(raw.astype(float), "softmax")) > 0.8


def test_two_classes_have_one_score():
    (X, y), (Z, truth) = blobs((60, 20)), blobs((60, 20), seed=1)
    model = lightgbm.train({**QUIET, "objective": lightgbm_objective()}, lightgbm.Dataset(X, y), 30)
    z = model.predict(Z)
    assert z.ndim == 1
    assert mauc_score(truth, z) > 0.75
    assert lightgbm_metric(z, lightgbm.Dataset(Z, truth).construct())[1] == pytest.approx(mauc_score(truth, z))
    other = xgboost.train(QUIET_XGB, xgboost.DMatrix(X, y), 30, obj=xgboost_objective())
    assert mauc_score(truth, other.predict(xgboost.DMatrix(Z), output_margin=True).astype(float)) > 0.75


def test_a_class_absent_from_the_training_part():
    X, y = blobs((40, 30))
    model = lightgbm.train({**QUIET, "objective": lightgbm_objective(), "num_class": 3}, lightgbm.Dataset(X, y), 10)
    assert np.isfinite(model.predict(X)).all()
    other = xgboost.train({**QUIET_XGB, "num_class": 3}, xgboost.DMatrix(X, y), 10, obj=xgboost_objective())
    assert np.isfinite(other.predict(xgboost.DMatrix(X), output_margin=True)).all()


def test_default_learning_rates_learn():
    """In as many rounds as the library's own loss needs, the training part is ranked as well."""
    X, y = blobs(shift=0.8)
    own = lightgbm.train(
        {**QUIET, "objective": "multiclass", "num_class": 3, "is_unbalance": False}, lightgbm.Dataset(X, y), 50
    )
    ours = lightgbm.train({**QUIET, "objective": lightgbm_objective(), "num_class": 3}, lightgbm.Dataset(X, y), 50)
    gap = mauc_score(y, own.predict(X)) - mauc_score(y, activate(ours.predict(X), "softmax"))
    assert gap < 0.03


@pytest.mark.parametrize("make", [lightgbm_objective, xgboost_objective])
def test_an_objective_has_the_metric_of_its_scores(make):
    objective, y = make(pairs="ova"), np.array([0, 1, 2, 1])
    raw = np.random.default_rng(0).normal(size=(4, 3))
    found = objective.metric(y, raw)
    value = found[1] if isinstance(found, tuple) else found
    assert value == mauc_score(y, activate(raw.copy(), "softmax"), pairs="ova")


def draw(seed, sizes=(5, 3, 2, 1)):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return y, rng.normal(size=(len(y), len(sizes))), rng.uniform(0.5, 3.0, len(y))


LOSSES = [case for case in EACH_KIND if case.linear and case.build().derivative(np.zeros(1))[0] < 0]


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_at_zero_the_gradient_is_that_of_the_balanced_log_loss(case):
    y, _, weight = draw(3, sizes=(6, 4, 2))
    for u in (None, weight):
        ones = np.ones(len(y)) if u is None else u
        gradient, curvature = lightgbm_objective(case.build())(y, np.zeros((12, 3)), u)
        balanced = ones * ones.sum() / (3 * np.bincount(y, ones)[y])
        expected = balanced[:, None] * (1 / 3 - np.eye(3)[y])
        np.testing.assert_allclose(gradient, expected, atol=1e-5)
        assert (curvature >= np.abs(gradient)).all()


def test_the_gradient_is_the_slope_of_the_risk():
    y, raw, weight = draw(0)
    objective = lightgbm_objective("exponential", 2.0)
    gradient, curvature = objective(y, raw, weight)
    risk = SurrogateRisk("exponential", alpha=2.0)
    moves = 1e-5 * np.eye(raw.size).reshape(-1, *raw.shape)
    ends = [[risk.value(y, activate(raw + s * m, "softmax"), weight) for s in (1, -1)] for m in moves]
    slope = np.array([(up - down) / 2e-5 for up, down in ends]).reshape(raw.shape)
    # U (C − 1) / |ℓ′(0)|
    np.testing.assert_allclose(gradient, weight.sum() * 3 / 2.0 * slope, atol=1e-6 * np.abs(gradient).max())
    assert (curvature >= np.abs(gradient)).all()


@pytest.mark.parametrize("case", LOSSES, ids=str)
def test_a_newton_step_goes_down(case):
    y, scores, weight = draw(0)
    objective, values = lightgbm_objective(case.build()), []
    for _ in range(6):
        values.append(objective.risk.value(y, activate(scores.copy(), "softmax"), weight))
        gradient, curvature = objective(y, scores, weight)
        scores = scores - 0.3 * gradient / curvature
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_absent_classes_have_no_gradient_of_their_own():
    y, raw, _ = draw(4, sizes=(6, 4, 2))
    wide = np.column_stack([raw[:, :2], np.full(12, -50.0), raw[:, 2]])
    gradient, curvature = lightgbm_objective()(np.array([0, 1, 3])[y], wide)
    narrow, _ = lightgbm_objective()(y, raw)
    np.testing.assert_allclose(gradient[:, [0, 1, 3]], 4 / 3 * narrow)
    np.testing.assert_allclose(gradient[:, 2], 0.0, atol=1e-15)
    assert (curvature > 0).all()
    alone, _ = lightgbm_objective()(np.zeros(5, dtype=int), np.zeros((5, 2)))
    np.testing.assert_array_equal(alone, 0.0)


def test_one_score_for_two_classes_is_their_log_odds():
    y, raw, weight = draw(5, sizes=(6, 4))
    z = raw[:, 0]
    gradient, curvature = lightgbm_objective(alpha=2.0)(y, z, weight)
    both, above = lightgbm_objective(alpha=2.0)(y, np.column_stack([-z / 2, z / 2]), weight)
    np.testing.assert_allclose(gradient, (both[:, 1] - both[:, 0]) / 2)
    np.testing.assert_allclose(curvature, above.sum(axis=1) / 4)


def test_own_weights_of_pairs():
    y, raw, _ = draw(6, sizes=(6, 4, 2))
    only = np.zeros((3, 3))
    only[2, 0] = 1.0
    gradient, _ = lightgbm_objective(pairs=only)(y, raw)
    np.testing.assert_array_equal(gradient[y == 1], 0.0)
    assert (gradient[y == 2, 2] < 0).all()
    assert (gradient[y == 0, 2] > 0).all()


def test_one_column_for_three_classes():
    y, scores = np.array([0, 1, 2]), np.zeros(3)
    for called in (lightgbm_metric, xgboost_metric, lightgbm_objective(), xgboost_objective()):
        with pytest.raises(ValueError, match=r"num_class must be the number of classes, got one column .*: set num_cl"):
            called(y, scores)


def test_bad_data():
    with pytest.raises(ValueError, match="data must have labels, got none"):
        xgboost_metric(np.zeros((2, 2)), xgboost.DMatrix(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="raw must be finite"):
        lightgbm_objective()(np.array([0, 1]), np.array([[np.nan, 0], [0, 0]]))
    with pytest.raises(ValueError, match="y must hold whole numbers from 0 to 1"):
        lightgbm_objective()(np.array([0, 2]), np.zeros((2, 2)))


def test_bad_surrogates():
    with pytest.raises(ValueError, match="alpha must be a finite number above 0"):
        lightgbm_objective("exponential", -1.0)

    class Flat:
        def loss(self, t):
            return 1.0 + 0.0 * t

        def derivative(self, t):
            return 0.0 * t

    with pytest.raises(ValueError, match=r"surrogate must fall at 0, got .*: pass a larger alpha"):
        lightgbm_objective(Flat())


@pytest.mark.parametrize("metric", [lightgbm_metric, xgboost_metric])
@pytest.mark.parametrize("wrong", [0.5, np.nan])
def test_labels_that_are_no_classes_are_refused(metric, wrong):
    y = np.array([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="y"):
        metric(y + wrong, np.eye(3))
