"""The metric of FLAML, as FLAML calls it."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.naive_bayes import GaussianNB

from mauc import mauc_score
from mauc.integrations import flaml_metric


@pytest.fixture(scope="module")
def parts():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]
    return X[::2], np.array(["c", "a", "b"])[y[::2]], X[1::2], np.array(["c", "a", "b"])[y[1::2]]


def test_loss_and_log(parts):
    X, y, X_val, y_val = parts
    model, weight = GaussianNB().fit(X, y), np.linspace(1, 2, len(y_val))
    metric = pickle.loads(pickle.dumps(flaml_metric("ova")))
    loss, logged = metric(X_val, y_val, model, ["a", "b", "c"], X, y, weight, None, None, None, None)
    expected = mauc_score(y_val, model.predict_proba(X_val), pairs="ova", sample_weight=weight)
    assert logged["mauc"] == expected
    assert loss == 1.0 - expected
    assert 0.0 < logged["pred_time"] < 1.0


def test_classes_absent_from_either_part(parts):
    X, y, X_val, y_val = parts
    model = GaussianNB().fit(X, y)
    two = y_val != "b"
    expected = mauc_score(y_val[two], model.predict_proba(X_val[two])[:, [0, 2]])
    assert flaml_metric()(X_val[two], y_val[two], model, None, X, y)[0] == 1.0 - expected
    model = GaussianNB().fit(X[y != "b"], y[y != "b"])
    with pytest.warns(UndefinedMetricWarning, match="not in the training part"):
        loss, _ = flaml_metric()(X_val, y_val, model, None, X, y)
    assert loss == 1.0 - mauc_score(y_val[two], model.predict_proba(X_val[two]))


def test_pairs_are_checked_at_once():
    with pytest.raises(ValueError, match="pairs must be one of 'ovo', 'ova', got 'all'"):
        flaml_metric("all")


@pytest.mark.filterwarnings("default")
def test_a_search(parts):
    flaml = pytest.importorskip("flaml", reason="needs flaml[automl]", exc_type=ImportError)
    if not hasattr(flaml, "AutoML"):
        pytest.skip("needs flaml[automl]")
    X, y, X_val, y_val = parts
    search = flaml.AutoML()
    search.fit(
        X, y, task="classification", metric=flaml_metric(), estimator_list=["rf", "lgbm"], max_iter=4,
        eval_method="cv", n_splits=3, verbose=0, n_jobs=1,
    )  # fmt: skip
    loss, logged = search.metrics_for_best_config
    assert logged["mauc"] == pytest.approx(1.0 - loss)
    assert loss == search.best_loss
    assert mauc_score(y_val, search.predict_proba(X_val)) > 0.8
