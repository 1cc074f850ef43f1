"""Simulated sets: the posterior by brute force, the ceiling in closed form, and that nothing beats it."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import pdist
from sklearn.linear_model import LogisticRegression

from experiments.datasets import load_simulated
from experiments.datasets.gaussian import separated_means
from experiments.datasets.poisson import separated_rates
from mauc import compare_mauc, mauc_score

KINDS = ["gaussian", "poisson"]


def small(kind, **changed):
    arguments = {"n_samples": 400, "n_classes": 4, "imbalance": 20, "n_features": 12, "separation": 1.5, "kind": kind}
    return load_simulated(**(arguments | changed))


def densities(data, X):
    """(n, C) by SciPy's own density functions, one class at a time."""
    X = X.toarray() if sparse.issparse(X) else X
    if hasattr(data.classes, "means"):
        return np.column_stack([stats.multivariate_normal(mean).pdf(X) for mean in data.classes.means])
    return np.column_stack([stats.poisson(rate).pmf(X).prod(axis=1) for rate in data.classes.rates])


@pytest.mark.parametrize("kind", KINDS)
def test_posterior_and_scores_by_brute_force(kind):
    data = small(kind, n_features=6)
    X, _ = data.sample(200, seed=1)
    joint = data.priors * densities(data, X)
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(data.posterior(X), expected, rtol=1e-10)
    s = expected / data.priors
    np.testing.assert_allclose(
        data.bayes_scores(X), np.log(s / (s.sum(axis=1, keepdims=True) - s)), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e2, 1e5])
def test_far_out_all_is_finite(kind, size):
    data = small(kind)
    X = data.X[:20] * size
    posterior, scores = data.posterior(X), data.bayes_scores(X)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    assert np.isfinite(scores).all()
    # Where the posterior is 0 and 1 to all digits, the scores still tell rows apart.
    rows = X.toarray() if sparse.issparse(X) else X
    assert len(np.unique(scores[:, 0])) == len(np.unique(rows, axis=0))


@pytest.mark.parametrize("separation", [0.5, 1.0, 2.5])
@pytest.mark.parametrize("n_features", [1, 7])
def test_closed_form_for_two_gaussians(separation, n_features):
    """AUC = Φ(δ/√2) at the Mahalanobis distance δ."""
    data = load_simulated(n_classes=2, n_features=n_features, separation=separation)
    value, stderr = data.bayes_mauc(seed=2)
    assert value == pytest.approx(stats.norm.cdf(separation / np.sqrt(2)), abs=3.5 * stderr)
    assert 0 < stderr < 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_beats_the_bayes_scores(kind):
    data = small(kind)
    X, y = data.sample([4000] * 4, seed=3)
    best = data.bayes_scores(X)
    rng = np.random.default_rng(0)
    rivals = {
        "posterior": np.log(data.posterior(X)),
        "likelihood of the class alone": data.classes.log_densities(X),
        "noise": best + rng.normal(size=best.shape),
        "other classes": best @ (np.eye(4) + 0.3 * rng.random((4, 4))),
        "a model": LogisticRegression(max_iter=500).fit(data.X, data.y).predict_proba(X),
    }
    for name, rival in rivals.items():
        result = compare_mauc(y, best, rival)
        assert result.difference > 2 * result.stderr, name


@pytest.mark.parametrize("kind", KINDS)
def test_ceiling_does_not_depend_on_the_priors(kind):
    data = small(kind)
    ceiling = data.bayes_mauc(3000, seed=1)
    X, y = data.sample([4000, 400, 400, 2000], seed=2)
    assert mauc_score(y, data.bayes_scores(X)) == pytest.approx(ceiling.value, abs=0.015)
    assert small(kind, imbalance=1).bayes_mauc(3000, seed=1) == ceiling


@pytest.mark.parametrize(("n_classes", "n_features"), [(2, 1), (4, 3), (5, 4), (10, 50)])
def test_gaussian_means_are_equally_far(n_classes, n_features):
    means = separated_means(n_classes, n_features, 1.7, np.random.default_rng(0))
    np.testing.assert_allclose(pdist(means), 1.7)
    np.testing.assert_allclose(means.mean(axis=0), 0, atol=1e-12)


def test_gaussian_means_of_many_classes():
    means = separated_means(300, 5, 1.7, np.random.default_rng(0))
    assert np.sqrt(np.mean(pdist(means) ** 2)) == pytest.approx(1.7)


def test_poisson_rates():
    rates = separated_rates(12, 21527, 2.0, np.random.default_rng(0))
    assert np.sqrt(np.mean(pdist(2 * np.sqrt(rates)) ** 2)) == pytest.approx(2.0, rel=0.03)
    np.testing.assert_allclose(rates.sum(axis=1), 75, rtol=0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_set(kind, dtype):
    data = small(kind, dtype=dtype)
    assert data.X.shape == (400, 12)
    assert data.X.dtype == dtype
    assert sparse.issparse(data.X) == (kind == "poisson")
    assert np.array_equal(np.bincount(data.y), data.class_counts)
    np.testing.assert_allclose(data.priors, data.class_counts / 400)
    assert (np.diff(data.y) != 0).sum() > 20  # the classes are mixed
    assert data.posterior(data.X).dtype == np.float64
    assert data.name == "simulated"


def test_moments_of_the_draws():
    gaussian = small("gaussian").classes
    X = gaussian.draw(np.full(20_000, 2), np.random.default_rng(0), np.dtype(np.float64))
    np.testing.assert_allclose(X.mean(axis=0), gaussian.means[2], atol=0.03)
    np.testing.assert_allclose(np.cov(X.T), np.eye(12), atol=0.05)
    poisson = small("poisson").classes
    counts = poisson.draw(np.full(20_000, 2), np.random.default_rng(0), np.dtype(np.float64)).toarray()
    np.testing.assert_allclose(counts.mean(axis=0), poisson.rates[2], atol=0.02)
    np.testing.assert_allclose(np.cov(counts.T), np.diag(poisson.rates[2]), atol=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_seeds(kind):
    first, again, other = small(kind, seed=1), small(kind, seed=1), small(kind, seed=2)
    as_array = np.asarray if kind == "gaussian" else lambda X: X.toarray()
    assert np.array_equal(as_array(first.X), as_array(again.X))
    assert np.array_equal(first.y, again.y)
    assert not np.array_equal(as_array(first.X), as_array(other.X))
    fresh, y = first.sample(first.class_counts, seed=1)
    assert np.array_equal(np.bincount(y), first.class_counts)
    assert not np.array_equal(np.sort(first.posterior(fresh)[:, 0]), np.sort(first.posterior(first.X)[:, 0]))
    assert np.array_equal(as_array(first.sample(50, seed=4)[0]), as_array(again.sample(50, seed=4)[0]))
    assert first.bayes_mauc(50, seed=4) == again.bayes_mauc(50, seed=4)


def test_sample_sizes():
    data = small("gaussian")
    _, y = data.sample(20_000)
    np.testing.assert_allclose(np.bincount(y) / 20_000, data.priors, atol=0.02)
    X, y = data.sample([0, 3, 0, 2])
    assert X.shape == (5, 12)
    assert np.bincount(y).tolist() == [0, 3, 0, 2]
    empty, y = small("poisson").sample([0, 0, 0, 0])
    assert empty.shape == (0, 12)
    assert len(y) == 0


@pytest.mark.parametrize(
    ("preset", "counts", "n_classes"),
    [("cifar100-imb", 16_550, 100), ("user-imb", 32_400, 12), ("inaturalist", 675_170, 5089)],
)
def test_presets(preset, counts, n_classes):
    data = load_simulated(preset, n_features=40)
    assert data.X.shape == (counts, 40)
    assert data.X.dtype == np.float32
    assert sparse.issparse(data.X) == (preset == "user-imb")
    assert np.array_equal(np.bincount(data.y), data.class_counts)
    assert len(data.class_counts) == n_classes
    small_copy = load_simulated(preset, n_features=40, max_samples=20_000)
    assert small_copy.X.shape[0] == min(counts, 20_000)
    assert small_copy.class_counts.min() >= 3


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"preset must be one of 'cifar100-imb', .*got 'mnist'"):
        load_simulated("mnist")
    with pytest.raises(ValueError, match="kind must be one of 'gaussian', 'poisson', got 'cauchy'"):
        load_simulated(kind="cauchy")
    with pytest.raises(ValueError, match=r"separation must be below 4.47 for sparse counts of 10 features, got 9"):
        load_simulated(separation=9, kind="poisson")
    with pytest.raises(ValueError, match="X must have the 12 features of the data set, got 3: pass rows of X"):
        small("gaussian").posterior(np.zeros((2, 3)))
