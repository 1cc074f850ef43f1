"""The competitors: they fit the paper's tables and classes of one sample, the same way every time."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import scale

from experiments.baselines import BASELINES, make_sampler
from mauc import mauc_score

PAPER = ("LR", "BM", "MM", "IHT", "NM", "TL")


def quick(name, **params):
    """Small ensembles: what is tested does not depend on their size."""
    small = {"HGB": {"max_iter": 10}, "BRF": {"n_estimators": 20}, "ET": {"n_estimators": 20}}
    model = BASELINES[name].make(**params, **small.get(name, {}))
    if name == "IHT":
        model.set_params(sampler__sampler__estimator=RandomForestClassifier(10, random_state=0))
    return model


def small_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c", "d", "e"], [60, 20, 3, 2, 1])
    shift = 2 * rng.normal(size=(5, 6))[np.unique(y, return_inverse=True)[1]]
    return scale(rng.normal(size=(len(y), 6)) + shift), y


def test_names():
    assert tuple(BASELINES) == (*PAPER, "LR-balanced", "HGB", "BRF", "ET")
    assert tuple(name for name, entry in BASELINES.items() if entry.in_paper) == PAPER
    assert [name for name, entry in BASELINES.items() if entry.is_logistic] == [*PAPER, "LR-balanced"]
    assert BASELINES["BM"].make(C=10.0).get_params()["classifier__C"] == 10.0


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize("dataset", ["ecoli", "shuttle"])  # those with the rarest classes
def test_sets_of_the_paper(real_data, dataset, name):
    data = np.load(real_data / "traditional" / f"{dataset}.npz")
    X, y, train, test = scale(data["X"]), data["y"], data["train"][0], data["test"][0]
    model = quick(name).fit(X[train], y[train])
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert mauc_score(y[test], model.predict_proba(X[test])) > 0.55


@pytest.mark.parametrize("name", BASELINES)
def test_classes_of_one_to_three_samples(name):
    X, y = small_classes()
    probability = quick(name).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert mauc_score(y, probability) > 0.8
    np.testing.assert_array_equal(quick(name).fit(X, y).predict_proba(X), probability)


@pytest.mark.parametrize("name", PAPER[1:])
def test_samplers_alone(name):
    """Every class stays, and the number of processes changes nothing."""
    X, y = small_classes()
    one, two = (make_sampler(name, random_state=1, n_jobs=jobs).fit_resample(X, y) for jobs in (None, 2))
    assert set(one[1]) == set(y)
    np.testing.assert_array_equal(one[0], two[0])
