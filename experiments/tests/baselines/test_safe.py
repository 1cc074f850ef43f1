"""SafeSampler: the sampler itself on large classes, something sensible and recorded on small ones."""

import numpy as np
import pytest

pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")

from imblearn.over_sampling import SMOTE, BorderlineSMOTE
from imblearn.under_sampling import InstanceHardnessThreshold, NearMiss, TomekLinks
from imblearn.utils.estimator_checks import estimator_checks_generator
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from experiments.baselines import SafeSampler

FOREST = RandomForestClassifier(10, random_state=0)
SAMPLERS = [
    BorderlineSMOTE(random_state=0),
    InstanceHardnessThreshold(estimator=FOREST, random_state=0),
    NearMiss(),
    NearMiss(version=2),
    NearMiss(version=3),
    TomekLinks(),
]
IDS = [f"{type(sampler).__name__}{getattr(sampler, 'version', '')}" for sampler in SAMPLERS]
SIZES = (60, 20, 3, 2, 1)
NAMES = np.array(["a", "b", "c", "d", "e"])


def small_classes(seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(NAMES, SIZES)
    return rng.normal(size=(len(y), 4)), y


# What parametrize_with_checks runs; its generator is refused by pytest 9.
CHECKS = [pair for sampler in SAMPLERS for pair in estimator_checks_generator(SafeSampler(sampler))]


@pytest.mark.parametrize(
    ("estimator", "check"), CHECKS, ids=[f"{type(e.sampler).__name__}-{c.func.__name__}" for e, c in CHECKS]
)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
def test_is_the_sampler_itself_on_large_classes(sampler):
    X, y = make_classification(400, n_informative=4, n_classes=3, weights=[0.6, 0.3, 0.1], random_state=0)
    expected = clone(sampler).fit_resample(X, y)
    safe = SafeSampler(sampler)
    for one, other in zip(safe.fit_resample(X, y), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert safe.skipped_ == {}
    assert safe.starved_ == []


@pytest.mark.parametrize("sampler", SAMPLERS, ids=IDS)
@pytest.mark.parametrize("seed", range(5))
def test_every_class_survives(sampler, seed):
    X, y = small_classes(seed)
    safe = SafeSampler(sampler)
    resampled, labels = safe.fit_resample(X, y)
    assert set(labels) == set(NAMES)
    assert len(resampled) == len(labels)
    after = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    assert safe.counts_ == {name: (size, after[name]) for name, size in zip(NAMES, SIZES, strict=True)}


def test_over_sampling_reduces_neighbours_class_by_class():
    X, y = small_classes()
    safe = SafeSampler(SMOTE(random_state=0))
    safe.fit_resample(X, y)
    assert safe.n_neighbors_ == {"b": 5, "c": 2, "d": 1}
    assert safe.skipped_ == {"e": "one sample: it has no neighbour of its class"}
    assert safe.counts_ == {"a": (60, 60), "b": (20, 60), "c": (3, 60), "d": (2, 60), "e": (1, 1)}


def test_over_sampling_says_which_class_gave_nothing():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(12, 2)) + 50])
    safe = SafeSampler(BorderlineSMOTE(random_state=0))
    safe.fit_resample(X, np.repeat([0, 1], [30, 12]))
    assert safe.skipped_ == {1: "the sampler chose no sample to start from"}
    assert safe.counts_ == {0: (30, 30), 1: (12, 12)}


def test_over_sampling_with_fewer_samples_than_neighbours():
    X = np.arange(6.0)[:, None]
    safe = SafeSampler(BorderlineSMOTE(random_state=0))
    assert set(safe.fit_resample(X, [0, 0, 0, 0, 1, 1])[1]) == {0, 1}


def test_near_miss_brings_all_classes_to_the_smallest_and_says_so():
    X, y = small_classes()
    safe = SafeSampler(NearMiss())
    labels = safe.fit_resample(X, y)[1]
    assert np.unique(labels, return_counts=True)[1].tolist() == [1] * 5
    assert safe.starved_ == ["a", "b", "c"]
    assert safe.n_neighbors_ == dict.fromkeys("abcd", 1)
    np.testing.assert_array_equal(y[safe.sample_indices_], labels)


def test_cleaning_never_removes_a_class():
    # The two samples of class 1 are each in a link with one of class 0.
    X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1], [9.2], [20.0]])
    y = np.array([0, 1, 0, 1, 0, 0, 0, 2])
    safe = SafeSampler(TomekLinks())
    assert np.bincount(safe.fit_resample(X, y)[1]).tolist() == [3, 2, 1]
    assert safe.skipped_ == {1: "the sampler would have removed every sample"}


@pytest.mark.parametrize("names", [["x", "y", "z"], [10, 20, 30], [-1, 0, 1]])
def test_labels_need_not_be_column_numbers(names):
    X, codes = make_classification(120, n_informative=4, n_classes=3, weights=[0.6, 0.3, 0.1], random_state=0)
    y = np.array(names)[codes]
    sampler = InstanceHardnessThreshold(estimator=FOREST, random_state=0)
    expected = SafeSampler(sampler).fit_resample(X, codes)[1]
    np.testing.assert_array_equal(SafeSampler(sampler).fit_resample(X, y)[1], np.array(names)[expected])


def test_strategy_by_label():
    X, y = small_classes()
    over = SafeSampler(SMOTE(sampling_strategy={"c": 10}, random_state=0))
    assert np.unique(over.fit_resample(X, y)[1], return_counts=True)[1].tolist() == [60, 20, 10, 2, 1]
    under = SafeSampler(NearMiss(sampling_strategy={"a": 7}))
    assert np.unique(under.fit_resample(X, y)[1], return_counts=True)[1].tolist() == [7, 20, 3, 2, 1]
    clean = SafeSampler(TomekLinks(sampling_strategy=["a"]))
    assert (np.unique(clean.fit_resample(X, y)[1], return_counts=True)[1][1:] == [20, 3, 2, 1]).all()


def test_a_shared_random_state_moves_on():
    X, y = small_classes()
    safe = SafeSampler(SMOTE(random_state=np.random.RandomState(0)))
    assert not np.array_equal(safe.fit_resample(X, y)[0], safe.fit_resample(X, y)[0])


def test_parameters_of_the_sampler_are_reached():
    safe = clone(SafeSampler(SMOTE())).set_params(sampler__k_neighbors=3)
    assert safe.get_params()["sampler__k_neighbors"] == 3
    X, y = small_classes()
    safe.fit_resample(X, y)
    assert safe.n_neighbors_ == {"b": 3, "c": 2, "d": 1}
