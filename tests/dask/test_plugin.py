"""The plug-in of lazy probabilities is the plug-in of the whole."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mauc

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
MAUCPluginClassifier = pytest.importorskip("mauc.dask").MAUCPluginClassifier

rng = np.random.default_rng(0)
names = np.array(["ant", "bee", "cat"])
codes = rng.choice(3, 300, p=[0.7, 0.2, 0.1])
y, X, w = names[codes], rng.normal(size=(300, 3)) + np.eye(3)[codes], 0.5 + rng.random(300)
lazy = da.from_array(X, chunks=((100, 0, 200), 3))


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("weight", [None, w])
def test_as_in_memory(weight):
    expected = mauc.MAUCPluginClassifier(LogisticRegression()).fit(X, y, weight)
    model = MAUCPluginClassifier(expected.estimator_).fit(None, da.from_array(y, chunks=70), weight)
    np.testing.assert_allclose(model.priors_, expected.priors_, rtol=1e-12)
    found = model.predict_proba(lazy)
    assert found.name.startswith("mauc-balanced-posterior")
    np.testing.assert_allclose(found.compute(), expected.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), rtol=1e-12)
    assert model.predict(lazy).compute().tolist() == expected.predict(X).tolist() == model.predict(X).tolist()
    assert model.score(lazy, y) == pytest.approx(expected.score(X, y), abs=1e-12)


class Eager(LogisticRegression):
    """Not of scikit-learn's own, and it computes what should stay lazy."""

    def predict_proba(self, X):
        return super().predict_proba(np.asarray(X))


def test_messages():
    classes = da.from_array(y, chunks=70)
    with pytest.raises(ValueError, match="estimator must be fitted, with classes_ and predict_proba, got LogisticReg"):
        MAUCPluginClassifier(LogisticRegression()).fit(None, classes)
    fitted = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="y must hold the classes of the estimator"):
        MAUCPluginClassifier(fitted).fit(None, classes[classes != "bee"])
    with pytest.raises(ValueError, match=r"estimator must return a Dask collection for one, got ndarray from Eager"):
        MAUCPluginClassifier(Eager().fit(X, y)).fit(None, classes).predict_proba(lazy)
