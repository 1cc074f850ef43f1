"""Boosted trees as arrays: the same predictions after a round trip, and no node that leads astray."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc._tables.model_file import packed_trees, unpack_trees


@pytest.fixture
def model():
    X, y = load_wine(return_X_y=True)
    X[:, 0] = y[::-1]
    booster = HistGradientBoostingClassifier(max_iter=4, categorical_features=[0], min_samples_leaf=5)
    return {"classifier": [make_pipeline(StandardScaler().set_output(transform="default"), booster).fit(X, y)]}, X


def test_predictions_survive(model):
    parts, X = model
    (pipeline,) = parts["classifier"]
    before, trees = pipeline.predict_proba(X), pipeline[-1]._predictors
    with packed_trees(parts):
        packed = pipeline[-1]._predictors
        assert packed["per_round"] == 3
        assert len(packed["ends"]) == 12
    assert pipeline[-1]._predictors is trees
    pipeline[-1]._predictors = packed
    unpack_trees(parts)
    np.testing.assert_array_equal(pipeline.predict_proba(X), before)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 2**31, "leads out of its tree"),
        ("right", 0, "leads out of its tree"),
        ("feature_idx", 13, "names a column"),
        ("feature_idx", -1, "names a column"),
    ],
)
def test_a_forged_node_is_refused(model, field, value, message):
    parts, _ = model
    booster = parts["classifier"][0][-1]
    with packed_trees(parts):
        packed = booster._predictors
    packed["nodes"] = packed["nodes"].copy()
    packed["nodes"][0][field] = value
    booster._predictors = packed
    with pytest.raises(ValueError, match=message):
        unpack_trees(parts)
