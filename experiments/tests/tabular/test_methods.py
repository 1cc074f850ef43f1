"""The rows of the tabular experiment, on classes of two samples."""

import numpy as np
import pytest

from experiments.tabular.methods import OURS, Task, entries
from mauc.ensemble import default_estimators

NAMES = [entry.name for entry in entries()]


COMBINATIONS = [OURS, f"{OURS}, weights alone", "average", "best by CV"]


@pytest.fixture(scope="module")
def task():
    """Three classes, one of them of two samples."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [40, 25, 2])
    X = rng.normal(size=(67, 3)) + 2.0 * np.eye(3)[y]
    return Task(X, y, X + 0.1 * rng.normal(size=X.shape), 3, True)


def test_methods():
    assert len(set(NAMES)) == len(NAMES)
    assert [entry.name for entry in entries(quick=True)] == NAMES
    assert {"LR", "BM", "MM", "IHT", "NM", "TL"} <= set(NAMES), "the paper's competitors"


# Hardness by cross-validated forests takes longer than all the others together.
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n == "IHT" else []) for n in NAMES])
@pytest.mark.filterwarnings("ignore")
def test_every_method_takes_classes_of_two_samples(task, name):
    outcome = next(entry for entry in entries(quick=True) if entry.name == name).run(task)
    assert outcome.scores.shape == (67, 3)
    assert np.isfinite(outcome.scores).all()
    assert outcome.fit_seconds >= 0


@pytest.mark.filterwarnings("ignore")
def test_combinations_are_made_of_the_same_fits(task):
    runs = {entry.name: entry.run(task) for entry in entries(quick=True) if entry.name in COMBINATIONS}
    assert list(runs[OURS].params["weights"]) == [name for name, _ in default_estimators()]
    share = runs[OURS].params["weighted_share"]
    by_parts = share * runs[f"{OURS}, weights alone"].scores + (1 - share) * runs["average"].scores
    np.testing.assert_allclose(runs[OURS].scores, by_parts)
    assert runs["best by CV"].params["model"] in runs[OURS].params["weights"]
    np.testing.assert_allclose(runs["average"].scores.sum(axis=1), 1.0)
