"""The acceleration figure: the loops are the definition, and what is measured agrees with them."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import acceleration
from experiments.acceleration import (
    LOSSES,
    PRIORS,
    LinearModel,
    cells,
    mean_ratio,
    measure,
    naive_value,
    naive_value_and_gradient,
    write_report,
)
from experiments.store import Store, run_cells
from mauc import SurrogateRisk

losses = pytest.mark.parametrize("loss", LOSSES)


@losses
def test_the_loops_are_the_definition(loss):
    rng = np.random.default_rng(0)
    y, scores = rng.permutation(np.arange(15) % 4), rng.random((15, 4))
    value, gradient = SurrogateRisk(loss, alpha=1.0, scheme="pairwise").value_and_gradient(y, scores)
    function, derivative = LOSSES[loss]
    assert naive_value(y, scores, function) == pytest.approx(value, rel=1e-12)
    both = naive_value_and_gradient(y, scores, function, derivative)
    assert both[0] == naive_value(y, scores, function)
    np.testing.assert_allclose(both[1], gradient, atol=1e-14)


def test_gradient_in_the_weights():
    """By differences of the loss in W."""
    model, y, risk = LinearModel.of(20), np.arange(20) % 5, SurrogateRisk("exponential")
    assert model.X.shape == (20, 100)
    assert model.W.shape == (5, 100)
    assert 0 <= min(model.X.min(), model.W.min()) < max(model.X.max(), model.W.max()) <= 1
    scores = model.scores()
    gradient = model.in_weights(scores, risk.value_and_gradient(y, scores)[1])
    for at in ((0, 0), (3, 41), (4, 99)):
        up, down = (replace(model, W=model.W + step * unit(at)) for step in (1e-5, -1e-5))
        slope = (risk.value(y, up.scores()) - risk.value(y, down.scores())) / 2e-5
        assert gradient[at] == pytest.approx(slope, rel=1e-5)


def unit(at):
    matrix = np.zeros((5, 100))
    matrix[at] = 1.0
    return matrix


def test_the_mean_of_the_ratios():
    """Not the ratio of the means."""
    result = {"value": [1.0, 2.0], "risk_value": [1.0, 1.0], "naive_value": [10.0, 100.0]}
    assert mean_ratio(result, "value") == 30.0
    assert mean_ratio(result, "value", alone=True) == 55.0


@losses
def test_measure(loss):
    result = measure(loss, 32, 2, True)
    assert result["error"] < 1e-10
    assert result["n"] == 32
    assert result["scheme"] in ("moments", "ranked")
    for what in ("value", "gradient", "risk_value", "risk_gradient", "naive_value", "naive_gradient"):
        assert len(result[what]) == 2
        assert min(result[what]) > 0
    alone = measure(loss, 40, 1, False)
    assert not {"error", "naive_value", "naive_gradient"} & set(alone)


@pytest.mark.parametrize("n", [32, 64, 100, 1024, 3000])
def test_class_sizes(n):
    sizes = acceleration._sizes(n)
    assert sizes.sum() == n
    np.testing.assert_allclose(sizes, n * np.array(PRIORS), atol=1)


def test_table_and_figure(tmp_path):
    work = cells("small", (32, 40), (300,), repetitions=3)
    store = Store(tmp_path / "cells")
    run_cells(work, store)
    page, figure = write_report(store, tmp_path, work=work)
    assert figure.read_bytes().startswith(b"\x89PNG")
    text = page.read_text()
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ") and not line.startswith("| loss")]
    assert len(rows) == 9
    assert {row[0].strip("| ") for row in rows} == set(LOSSES)
    for row in rows:
        if row[1] == "300":
            assert row[-1].strip(" |") == ""
        else:
            assert float(row[-1].strip(" |")) < 1e-10
