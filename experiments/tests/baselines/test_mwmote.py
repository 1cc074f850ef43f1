"""MWMOTE: its sets, weights, clusters and segments; small and degenerate classes."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from experiments.baselines import MWMOTE
from experiments.baselines.mwmote import _another_of_cluster, _distances, _sparse_pdist, _synthetic, analyse_minority


def line(k1=4, k2=2, k3=2, cp=1.0, **options):
    """Majority at 0 and 6, minority at 1, 2 and 4, on a line."""
    X = np.array([[0.0], [6.0], [1.0], [2.0], [4.0]])
    rng = np.random.RandomState(0)
    return analyse_minority(X, np.array([2, 3, 4]), rng, k1=k1, k2=k2, k3=k3, cp=cp, cf_th=0.5, cmax=2.0, **options)


def test_weights_by_hand_for_one_borderline_sample():
    # k1 = 1: only 1 and 2 have a member as the nearest. k2 = 1: the nearest majority sample of both is 0.
    # d = 1, 2, 4; f(1/d) = .5, .5, .25; C_f = 2, 2, 1; D_f = .4, .4, .2; I_w = .8, .8, .2.
    found = line(k1=1, k2=1, k3=3)
    assert found.borderline.tolist() == [0]
    np.testing.assert_allclose(found.probability, np.array([0.8, 0.8, 0.2]) / 1.8)


def test_weights_by_hand_for_two_borderline_samples():
    # From 0: N_min = {1, 2}, C_f = 2, 2, I_w = 1, 1. From 6: N_min = {4, 2}, C_f = 2, 1, I_w = 4/3, 1/3.
    found = line()
    assert found.borderline.tolist() == [0, 1]
    np.testing.assert_allclose(found.probability, np.array([1, 4 / 3, 4 / 3]) / (11 / 3))


@pytest.mark.parametrize(("cp", "clusters"), [(0.5, [0, 1, 2]), (1.0, [0, 0, 1]), (2.0, [0, 0, 0])])
def test_clusters_by_hand(cp, clusters):
    # Nearest other member at 1, 1, 2: d_avg = 4/3. {1, 2} merge at 1, {1, 2} and {4} at 2.5.
    found = line(cp=cp).cluster
    assert np.array_equal(found[:, None] == found, np.equal.outer(clusters, clusters))


def test_noise_does_not_stretch_the_clusters():
    # Without the member at 100, d_avg = 1 and the threshold 5; with it, 25 and 126, which would join all.
    X = np.array([[0.0], [1.0], [2.0], [100.0], [99.0], [101.0], [102.0]])
    found = analyse_minority(X, np.arange(4), np.random.RandomState(0), k1=2, cp=5.0)
    assert found.filtered.tolist() == [True, True, True, False]
    assert len(set(found.cluster[:3])) == 1
    assert found.cluster[3] != found.cluster[0]


def test_equal_samples_do_not_hide_noise_or_neighbours():
    # Seven equal samples of the majority and one of the minority: its own row need not be among its nearest.
    X = np.array([[0.0]] * 8 + [[5.0], [5.1]])
    found = analyse_minority(X, np.array([7, 8, 9]), np.random.RandomState(0), k1=2)
    assert found.filtered.tolist() == [False, True, True]


def test_synthetic_samples_lie_on_segments_within_one_cluster():
    X, y = make_blobs([90, 7, 8], centers=[[0, 0], [2, 2], [-9, 2]], cluster_std=1.0, random_state=1)
    rng = np.random.RandomState(0)
    found = analyse_minority(X, np.flatnonzero(y > 0), rng, cp=1.5)
    assert len(np.unique(found.cluster)) > 1
    rows = X[found.members]
    first, second = np.nonzero(found.cluster[:, None] == found.cluster)

    def apart(a, b):
        return np.linalg.norm(a - b, axis=-1)

    for s in _synthetic(X, found, 75, rng):
        detour = apart(s, rows[first]) + apart(s, rows[second]) - apart(rows[first], rows[second])
        assert detour.min() < 1e-9


def test_sparse_rows_stay_sparse():
    X, y = make_blobs([90, 7], centers=[[0, 0], [2, 2]], random_state=1)
    dense, _ = MWMOTE(random_state=0).fit_resample(X, y)
    for container in (sp.csr_matrix, sp.csc_array):
        resampled, _ = MWMOTE(random_state=0).fit_resample(container(X), y)
        assert resampled.format == container(X).format
        np.testing.assert_allclose(resampled.toarray(), dense)


def test_second_end_is_another_member_drawn_uniformly():
    cluster = np.array([0, 1, 1, 0, 2, 1, 1])
    seed = np.repeat(np.arange(7), 3000)
    other = _another_of_cluster(cluster, seed, np.random.RandomState(0))
    assert np.array_equal(cluster[other], cluster[seed])
    assert np.array_equal(other == seed, seed == 4)
    np.testing.assert_allclose(np.bincount(other[seed == 1], minlength=7)[[2, 5, 6]] / 3000, 1 / 3, atol=0.03)


def test_class_counts():
    X, y = make_blobs([50, 20, 9], random_state=0)
    assert np.bincount(MWMOTE().fit_resample(X, y)[1]).tolist() == [50, 50, 50]
    assert np.bincount(MWMOTE(sampling_strategy={2: 12}).fit_resample(X, y)[1]).tolist() == [50, 20, 12]
    assert np.bincount(MWMOTE(sampling_strategy="minority").fit_resample(X, y)[1]).tolist() == [50, 20, 50]


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_small_classes(size, container):
    rng = np.random.default_rng(size)
    X = rng.normal(size=(30 + size, 3))
    y = np.repeat(["a", "b"], [30, size])
    resampled, labels = MWMOTE(random_state=0).fit_resample(container(X), y)
    resampled = resampled.toarray() if sp.issparse(resampled) else resampled
    assert np.unique(labels, return_counts=True)[1].tolist() == [30, 30]
    new = resampled[len(X) :]
    if size == 1:
        np.testing.assert_array_equal(new, np.broadcast_to(X[-1], new.shape))
    if size == 2:
        step = np.linalg.norm(new - X[-1], axis=1) + np.linalg.norm(new - X[-2], axis=1)
        np.testing.assert_allclose(step, np.linalg.norm(X[-1] - X[-2]))
        assert len(np.unique(new, axis=0)) == len(new)
    assert (new.min(axis=0) >= X[30:].min(axis=0) - 1e-12).all()
    assert (new.max(axis=0) <= X[30:].max(axis=0) + 1e-12).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_equal_samples(container):
    X = np.array([[1.0, 1.0]] * 4 + [[1.0, 1.0]] * 20)
    y = np.repeat([1, 0], [4, 20])
    resampled = MWMOTE(random_state=0).fit_resample(container(X), y)[0]
    assert (resampled == 1).all() if isinstance(resampled, np.ndarray) else (resampled.toarray() == 1).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_class_whose_samples_come_twice_is_not_only_copied(container):
    rng = np.random.default_rng(0)
    X = np.vstack([np.repeat(rng.normal(size=(6, 2)), 2, axis=0), rng.normal(size=(40, 2)) + 3])
    y = np.repeat([1, 0], [12, 40])
    new = MWMOTE(random_state=0).fit_resample(container(X), y)[0][52:]
    new = new.toarray() if sp.issparse(new) else new
    assert not np.isclose(new[:, None], X[:12]).all(axis=2).any(axis=1).all()


def test_equal_sparse_rows_are_at_distance_zero_however_they_are_stored():
    columns = np.arange(41)
    rng = np.random.default_rng(0)
    rounded = False
    for _ in range(20):
        row = rng.normal(size=41)
        stored = (np.concatenate([row, row[::-1]]), np.concatenate([columns, columns[::-1]]), [0, 41, 82])
        rows = sp.csr_array(stored, shape=(2, 41))
        rounded |= _distances(rows, rows)[0, 1] > 0
        assert _sparse_pdist(rows).tolist() == [0]
    assert rounded


def test_large_classes_are_clustered_on_a_subset():
    X, y = make_blobs([400, 60, 60], centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    y[y == 2] = 1
    found = analyse_minority(X, np.flatnonzero(y == 1), np.random.RandomState(0), cp=20.0, max_clustered=30)
    assert len(np.unique(found.cluster)) == 2
    assert len(np.unique(found.cluster[X[found.members, 0] > 10])) == 1
