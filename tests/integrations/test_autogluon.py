"""The scorer of AutoGluon, as AutoGluon calls it."""

import pickle
import sys

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mauc import mauc_score
from mauc.integrations import autogluon_scorer
from mauc.integrations.autogluon import mauc_of_codes


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 3], [30, 12, 5])
    return codes, rng.dirichlet(np.ones(4), 47) + 0.3 * np.eye(4)[codes]


def test_codes_with_an_absent_class_as_floats_and_weighted(scored):
    codes, scores = scored
    there = [0, 1, 3]
    normalised = scores[:, there] / scores[:, there].sum(axis=1, keepdims=True)
    expected = mauc_score(codes, scores[:, there])
    assert expected != pytest.approx(roc_auc_score(codes, normalised, multi_class="ovo")), "columns as they came"
    # LightGBM in AutoGluon passes labels as float32.
    assert mauc_of_codes(codes.astype(np.float32), scores) == pytest.approx(expected, abs=1e-15)
    weight = np.where(codes == 1, 0.0, 1.0 + codes)
    expected = mauc_score(codes[codes != 1], scores[codes != 1][:, [0, 3]], sample_weight=weight[codes != 1])
    assert mauc_of_codes(codes, scores, sample_weight=weight) == pytest.approx(expected, abs=1e-15)


def test_two_classes_come_as_one_column():
    y, p = np.array([0, 1, 0, 1, 1]), np.array([0.2, 0.9, 0.4, 0.3, 0.4])
    assert mauc_of_codes(y, p) == pytest.approx(roc_auc_score(y, p))


@pytest.mark.parametrize("pairs", ["ovo", "ova", np.triu(np.ones((4, 4)))], ids=["ovo", "ova", "matrix"])
def test_the_scorer(scored, pairs):
    metrics = pytest.importorskip("autogluon.core.metrics", reason="needs autogluon.tabular", exc_type=ImportError)
    codes, scores = scored
    scorer = pickle.loads(pickle.dumps(autogluon_scorer(pairs)))
    assert isinstance(scorer, metrics.Scorer)
    assert (scorer.name, scorer.needs_proba, scorer.needs_pred, scorer.optimum) == ("mauc", True, False, 1.0)
    expected = mauc_score(codes, scores, pairs=pairs, labels=range(4), absent="ignore")
    assert scorer(codes, scores) == metrics.compute_metric(y=codes, metric=scorer, y_pred_proba=scores) == expected
    assert scorer.error(codes, scores) == 1.0 - expected


@pytest.mark.filterwarnings("default")
def test_a_predictor(tmp_path):
    """Labels that are words; a class that its threshold would drop; boosting stopped by the metric."""
    tabular = pytest.importorskip("autogluon.tabular", reason="needs autogluon.tabular", exc_type=ImportError)
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = np.repeat(["z", "m", "a", "k"], [80, 40, 20, 8])
    table = pandas.DataFrame(rng.normal(size=(148, 4)) + np.eye(4)[np.unique(y, return_inverse=True)[1]])
    table["y"] = y
    table = table.sample(frac=1.0, random_state=0)
    predictor = tabular.TabularPredictor(
        "y",
        eval_metric=autogluon_scorer(),
        path=tmp_path / "models",
        verbosity=0,
        learner_kwargs={"label_count_threshold": 1},
    )
    predictor.fit(table[:100], hyperparameters={"RF": {"n_estimators": 20}, "GBM": {"num_boost_round": 20}})
    rest = table[100:]
    scores = predictor.predict_proba(rest)
    expected = mauc_score(rest["y"], scores, labels=scores.columns, absent="ignore")
    assert predictor.evaluate(rest)["mauc"] == pytest.approx(expected)
    assert predictor.leaderboard(rest)["score_test"].max() >= expected


def test_without_autogluon(monkeypatch):
    monkeypatch.setitem(sys.modules, "autogluon", None)
    monkeypatch.setitem(sys.modules, "autogluon.core.metrics", None)
    said = "autogluon_scorer needs autogluon, which is not installed: pip install autogluon.tabular"
    with pytest.raises(ImportError, match=said):
        autogluon_scorer()
