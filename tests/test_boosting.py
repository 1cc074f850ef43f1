"""Metrics and objectives inside LightGBM and XGBoost, through their native and scikit-learn interfaces."""

import numpy as np
import pytest

pytest.importorskip("lightgbm", reason="needs the extra mauc[boosting]")
pytest.importorskip("xgboost", reason="needs the extra mauc[boosting]")

import lightgbm
import xgboost

from mauc import mauc_score
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


@pytest.mark.parametrize("activation", ["softmax", "identity"])
def test_lightgbm_train(activation):
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    objective = lightgbm_objective(activation=activation, alpha=2.0)
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
    best = mauc_score(truth, activate(model.predict(Z), activation))
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


@pytest.mark.parametrize("activation", ["softmax", "identity"])
def test_xgboost_train(activation):
    (X, y), (Z, truth) = blobs(), blobs(seed=1)
    record, objective = {}, xgboost_objective(activation=activation, alpha=2.0)
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
    assert mauc_score(truth, activate(raw.astype(float), activation)) == pytest.approx(max(curve), abs=1e-6)
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
@pytest.mark.parametrize("activation", ["softmax", "identity"])
def test_an_objective_has_the_metric_of_its_scores(make, activation):
    objective = make(activation=activation, pairs="ova")
    assert (objective.metric.activation, objective.metric.pairs) == (activation, "ova")


def test_one_column_for_three_classes():
    y, scores = np.array([0, 1, 2]), np.zeros(3)
    for called in (lightgbm_metric, xgboost_metric, lightgbm_objective(), xgboost_objective()):
        with pytest.raises(ValueError, match=r"num_class must be the number of classes, got one column .*: set num_cl"):
            called(y, scores)


def test_bad_data():
    with pytest.raises(ValueError, match="data must have labels, got none"):
        xgboost_metric(np.zeros((2, 2)), xgboost.DMatrix(np.zeros((2, 2))))
    with pytest.raises(ValueError, match="activation must be one of"):
        xgboost_objective(activation="sigmoid")


@pytest.mark.parametrize("metric", [lightgbm_metric, xgboost_metric])
@pytest.mark.parametrize("wrong", [0.5, np.nan])
def test_labels_that_are_no_classes_are_refused(metric, wrong):
    y = np.array([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="y"):
        metric(y + wrong, np.eye(3))
