"""The best scores, their multiclass AUC, and the pair weights of one-vs-rest."""

import re
from pathlib import Path

import numpy as np
import pytest

from experiments import datasets
from mauc import mauc_score, theory
from mauc.plugin import balanced_posterior
from mauc.theory import bayes_scores, ova_weights


def odds_by_hand(eta, priors):
    out = np.empty_like(eta)
    for n, row in enumerate(eta):
        s = [e / p for e, p in zip(row, priors, strict=True)]
        for i in range(len(s)):
            others = sum(s[:i] + s[i + 1 :])
            out[n, i] = s[i] / others if others else np.inf
    return out


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_scores_are_the_formula(n_classes):
    rng = np.random.default_rng(n_classes)
    eta, priors = rng.dirichlet(np.ones(n_classes), 50), rng.dirichlet(np.full(n_classes, 3.0))
    expected = odds_by_hand(eta, priors)
    np.testing.assert_allclose(bayes_scores(eta, priors), expected / (1 + expected), rtol=1e-12)
    np.testing.assert_allclose(bayes_scores(eta[0], priors), bayes_scores(eta, priors)[0], rtol=1e-15)


def test_certain_samples():
    eta = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1 - 1e-16, 1e-16, 0.0]])
    bounded = bayes_scores(eta, [0.5, 0.3, 0.2])
    assert np.isfinite(bounded).all()
    assert bounded[0].tolist() == [1.0, 0.0, 0.0]


def test_one_definition_with_the_plugin():
    rng = np.random.default_rng(0)
    eta, priors = rng.dirichlet(np.ones(4), 20), rng.dirichlet(np.ones(4))
    np.testing.assert_array_equal(bayes_scores(eta, priors), balanced_posterior(eta, priors / priors.sum()))


def test_no_scores_beat_them():
    data = datasets.load_simulated(n_samples=3000, n_classes=3, imbalance=30, n_features=3, separation=1.5, seed=1)
    eta = data.posterior(data.X)
    best = mauc_score(data.y, bayes_scores(eta, data.priors))
    assert best > mauc_score(data.y, eta), "the posterior itself ranks by the frequent classes"
    assert best == pytest.approx(mauc_score(data.y, data.bayes_scores(data.X)), abs=1e-12)
    ceiling = data.bayes_mauc()
    assert abs(best - ceiling.value) < 5 * (ceiling.stderr + 0.01)


def test_ova_weights_are_the_formula():
    p = np.array([0.5, 0.45, 0.05])
    v = ova_weights(p)
    for i in range(3):
        for j in range(3):
            assert v[i, j] == pytest.approx(0.0 if i == j else p[j] / (3 * (1 - p[i])), rel=1e-12)
    assert v.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(ova_weights([0.25] * 4), (1 - np.eye(4)) / 12, rtol=1e-12)


@pytest.mark.parametrize(
    ("priors", "text"),
    [
        ([0.5, 0.4], r"priors must sum to 1, got the sum 0.9: divide by the sum"),
        ([1.0, 0.0], r"priors must be positive, got 0 for class 1: drop the classes without samples"),
        ([1.2, -0.2], r"priors must be positive, got -0.2 for class 1"),
        ([np.nan, 1.0], r"priors must be two or more finite numbers, one for each class"),
        ([1.0], r"priors must be two or more finite numbers, one for each class, got \[1.0\]: pass the share"),
        ("ab", r"priors must be two or more finite numbers, one for each class, got 'ab'"),
    ],
)
def test_priors_that_are_no_distribution(priors, text):
    with pytest.raises(ValueError, match=text):
        ova_weights(priors)
    with pytest.raises(ValueError, match=text):
        bayes_scores([[0.5, 0.5]], priors)


def test_posteriors_that_are_none():
    with pytest.raises(ValueError, match=r"posterior must have rows >= 0 that sum to 1, got \[0.5 0.6\] in row 1"):
        bayes_scores([[0.5, 0.5], [0.5, 0.6]], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"posterior must have rows >= 0 that sum to 1"):
        bayes_scores([[1.5, -0.5]], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"posterior must have one column for each of the 3 priors, got 2"):
        bayes_scores([[0.5, 0.5]], [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match=r"posterior must be finite"):
        bayes_scores([[np.nan, 0.5]], [0.5, 0.5])


def test_the_page_names_functions_that_exist():
    page = Path(__file__).resolve().parents[2] / "docs" / "theory.md"
    if not page.is_file():
        pytest.skip("no docs beside the tests")
    named = re.findall(r"`(?:theory\.)?((?:bounds)?\.?[a-z_]+)\(?[^`]*`", page.read_text(encoding="utf-8"))
    dotted = {name for name in named if name.startswith("bounds.")}
    assert len(dotted) >= 7
    for name in dotted:
        module, function = name.split(".")
        assert function in getattr(theory, module).__all__
    for name in ("imbalance", "ova_weights", "bayes_scores", "consistency_report"):
        assert name in named


def test_names():
    for name in theory.__all__:
        assert getattr(theory, name).__doc__
    for name in theory.bounds.__all__:
        assert getattr(theory.bounds, name).__doc__
