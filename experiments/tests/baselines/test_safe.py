"""SafeSampler: the sampler itself on large classes, something sensible on small ones."""

import numpy as np
import pytest
from imblearn.over_sampling import BorderlineSMOTE
from imblearn.under_sampling import InstanceHardnessThreshold, NearMiss, TomekLinks
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from experiments.baselines import SafeSampler

FOREST = RandomForestClassifier(10, random_state=0)
SAMPLERS = [
    BorderlineSMOTE(random_state=0),
    InstanceHardnessThreshold(estimator=FOREST, random_state=0),
    NearMiss(),
    TomekLinks(),
]
each = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
SIZES = (60, 20, 3, 2, 1)
NAMES = np.array(["a", "b", "c", "d", "e"])


def small_classes(seed=0):
    y = np.repeat(NAMES, SIZES)
    return np.random.default_rng(seed).normal(size=(len(y), 4)), y


@each
def test_is_the_sampler_itself_on_large_classes(sampler):
    X, y = make_classification(400, n_informative=4, n_classes=3, weights=[0.6, 0.3, 0.1], random_state=0)
    expected = clone(sampler).fit_resample(X, y)
    for one, other in zip(SafeSampler(sampler).fit_resample(X, y), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@each
@pytest.mark.parametrize("seed", range(3))
def test_every_class_survives(sampler, seed):
    X, y = small_classes(seed)
    resampled, labels = SafeSampler(sampler).fit_resample(X, y)
    assert set(labels) == set(NAMES)
    assert len(resampled) == len(labels)


def test_over_sampling_leaves_a_class_that_gives_nothing():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(12, 2)) + 50])
    labels = SafeSampler(BorderlineSMOTE(random_state=0)).fit_resample(X, np.repeat([0, 1], [30, 12]))[1]
    assert np.bincount(labels).tolist() == [30, 12]


def test_over_sampling_with_fewer_samples_than_neighbours():
    safe = SafeSampler(BorderlineSMOTE(random_state=0))
    assert set(safe.fit_resample(np.arange(6.0)[:, None], [0, 0, 0, 0, 1, 1])[1]) == {0, 1}


def test_near_miss_brings_all_classes_to_the_smallest():
    labels = SafeSampler(NearMiss()).fit_resample(*small_classes())[1]
    assert np.unique(labels, return_counts=True)[1].tolist() == [1] * 5


def test_cleaning_never_removes_a_class():
    # The two samples of class 1 are each in a link with one of class 0.
    X = np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1], [9.2], [20.0]])
    y = np.array([0, 1, 0, 1, 0, 0, 0, 2])
    assert np.bincount(SafeSampler(TomekLinks()).fit_resample(X, y)[1]).tolist() == [3, 2, 1]


def test_labels_need_not_be_column_numbers():
    X, codes = make_classification(120, n_informative=4, n_classes=3, weights=[0.6, 0.3, 0.1], random_state=0)
    sampler = InstanceHardnessThreshold(estimator=FOREST, random_state=0)
    expected = SafeSampler(sampler).fit_resample(X, codes)[1]
    names = np.array([10, 20, 30])
    np.testing.assert_array_equal(SafeSampler(sampler).fit_resample(X, names[codes])[1], names[expected])
