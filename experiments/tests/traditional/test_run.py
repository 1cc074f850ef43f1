"""Cells, protocols and the authors' penalty."""

import numpy as np
import pytest

from experiments.traditional import run as traditional
from experiments.traditional.run import AUTHORS_SETTINGS, PROTOCOLS, TABLES, methods, parts_of
from mauc import SurrogateRisk


def blobs(sizes=(30, 20, 10, 8)):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), 5)) + np.eye(len(sizes), 5)[y], y


@pytest.mark.parametrize(("loss", "factor"), [("squared", 2.0), ("exponential", 1.0), ("hinge", 1.0)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_authors_penalty_in_our_terms(loss, factor):
    X, y = blobs()
    model = traditional.with_authors_penalty(loss, 0.6, 0.9, max_iter=25)
    assert (model.alpha, model.max_iter) == (0.9, 25)
    for _ in range(2):
        model.fit(X, y)
        l2 = factor * 0.6 / (4 * 3)
        risk = SurrogateRisk(loss, alpha=0.9).value(y, model.predict_proba(X))
        assert model.objective_ == pytest.approx(risk + 0.5 * l2 * (model.coef_**2).sum(), rel=1e-10)
        assert model.l2 == 0.6, "a second fit starts from the same penalty"


def test_the_authors_settings_are_those_of_each_table():
    assert tuple(AUTHORS_SETTINGS) == TABLES
    for table in TABLES:
        by_name = {m.name: m for m in methods(table)}
        for loss, (penalty, alpha) in zip(("squared", "exponential", "hinge"), AUTHORS_SETTINGS[table], strict=True):
            method = by_name[f"MAUC {loss}, authors' settings"]
            model = method.make(**method.grid[0])
            assert (model.surrogate, model.l2, model.alpha, model.max_iter) == (loss, penalty, alpha, 100)


def test_methods():
    full, quick = methods("ecoli"), methods("ecoli", quick=True)
    names = [m.name for m in full]
    assert len(set(names)) == len(names)
    assert names == [m.name for m in quick]
    for name in ("LR", "BM", "MM", "IHT", "NM", "TL"):
        assert {f"{name}, C=1", f"{name}, tuned"} <= set(names), "both ways"
    assert {"LR-balanced, tuned", "HGB", "BRF", "ET", "forest", "plug-in on LR", "plug-in on forest"} <= set(names)
    assert all(len(q.grid) <= len(f.grid) for q, f in zip(quick, full, strict=True))
    assert max(p["alpha"] for m in full if m.name == "MAUC exponential" for p in m.grid) == 10.0
    for method in full:
        for params in method.grid:
            assert hasattr(method.make(**params), "fit")


@pytest.mark.parametrize("preprocessing", ["rows", "standard"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_parts(made_up_data, protocol, preprocessing):
    file = np.load(made_up_data / "traditional" / "ecoli.npz")
    parts = parts_of("ecoli", str(made_up_data), protocol, preprocessing, 3)
    rows = {name: getattr(parts, f"X_{name}") for name in ("train", "validation", "test")}
    if protocol == "authors":
        for name in rows:
            np.testing.assert_array_equal(getattr(parts, f"y_{name}"), file["y"][file[name][3]])
    else:
        n = len(file["y"])
        sizes = [len(part) for part in rows.values()]
        assert sum(sizes) == n
        np.testing.assert_allclose(sizes, [0.8 * n, 0.1 * n, 0.1 * n], atol=2)
        together = np.vstack(list(rows.values()))
        assert len(np.unique(together.round(12), axis=0)) == n, "no row is in two parts"
        assert set(np.unique(parts.y_train)) == set(range(8))
        other = parts_of("ecoli", str(made_up_data), protocol, preprocessing, 4)
        assert not np.array_equal(np.sort(other.X_test[:, 0]), np.sort(parts.X_test[:, 0]))
    if preprocessing == "rows":
        np.testing.assert_allclose(np.linalg.norm(rows["test"], axis=1), 1.0)
    else:
        np.testing.assert_allclose(rows["train"].mean(axis=0), 0.0, atol=1e-12)
