"""Bounds from plain numbers: formulas, monotonicity, and that they hold."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from experiments.theory import theorem_7
from mauc.theory import bounds

COUNTS = (500, 300, 200)
LINEAR = {"gamma": 2.0, "radius": 1.5, "lipschitz": 0.8, "bound": 3.0}
DNN = {**LINEAR, "depth": 3}
CNN = {"spectral_norms": (1.2, 0.7), "distance": 0.4, "n_parameters": 50, "radius": 1.5, "bound": 3.0}
ALL = pytest.mark.parametrize(
    "build",
    [
        lambda counts=COUNTS, risk=0.1, **o: bounds.abstract(risk, counts, 0.3, **o),
        lambda counts=COUNTS, risk=0.1, **o: bounds.linear(risk, counts, **{**LINEAR, **o}),
        lambda counts=COUNTS, risk=0.1, **o: bounds.dnn(risk, counts, **{**DNN, **o}),
        lambda counts=COUNTS, risk=0.1, **o: bounds.cnn(risk, counts, **{**CNN, **o}),
    ],
    ids=["abstract", "linear", "dnn", "cnn"],
)


def xi_of(counts):
    return math.sqrt(sum(sum(counts) / n for n in counts))


def concentration(counts, B, delta):
    return 10 * B / len(counts) * xi_of(counts) * math.sqrt(math.log(2 / delta) / (2 * sum(counts)))


def test_abstract_is_the_formula():
    found = bounds.abstract(0.2, COUNTS, 0.7, bound=2.5, delta=0.01)
    assert found.complexity == pytest.approx(4 * 0.7 / 6, rel=1e-12)
    assert found.concentration == pytest.approx(concentration(COUNTS, 2.5, 0.01), rel=1e-12)
    assert found.total == found.empirical_risk + found.complexity + found.concentration
    assert found.total == sum(found.terms.values())
    assert found.gap == pytest.approx(found.total - 0.2)


def test_more_samples_never_loosen_the_bound():
    """Also of the class that is frequent already, where the printed form grows."""
    sizes = [(500 * 10**k, 300, 200) for k in range(4)]
    ours = [bounds.linear(0.1, n, **LINEAR) for n in sizes]
    printed = [theorem_7(0.1, n, **LINEAR) for n in sizes]
    assert [b.complexity for b in ours] == pytest.approx([ours[0].complexity] * 4)
    assert all(a.total >= b.total for a, b in pairwise(ours))
    assert all(a.complexity < b.complexity for a, b in pairwise(printed))


def test_only_the_risk_strays_where_the_complexity_is_fixed():
    """2B/C in place of 10B/C: one sample of class i moves the risk by at most 2B / (C n_i)."""
    ours = bounds.linear(0.1, COUNTS, **LINEAR).concentration
    assert ours == pytest.approx(2 * 3.0 / 3 * xi_of(COUNTS) * math.sqrt(math.log(2 / 0.05) / (2 * 1000)))
    assert theorem_7(0.1, COUNTS, **LINEAR).concentration == pytest.approx(5 * ours)
    for build, options in ((bounds.dnn, DNN), (bounds.cnn, CNN)):
        assert build(0.1, COUNTS, **options).concentration == pytest.approx(
            ours * build(0.1, COUNTS, **options).range / 3
        )


def test_linear_activations():
    plain = bounds.linear(0.1, COUNTS, **LINEAR).complexity
    assert bounds.linear(0.1, COUNTS, **LINEAR, activation="sigmoid").complexity == pytest.approx(plain / 4)
    assert bounds.linear(0.1, COUNTS, **LINEAR, activation="softmax").complexity == pytest.approx(plain * 1.5)
    assert bounds.linear(0.1, COUNTS, **LINEAR, activation="log_odds").complexity == pytest.approx(plain * 6)


def test_linear_is_its_formula():
    rng = np.random.default_rng(0)
    for _ in range(100):
        counts = rng.integers(1, 400, rng.integers(2, 8))
        found = bounds.linear(0.1, counts, **LINEAR).complexity
        pairs = sum(1 / math.sqrt(min(a, b)) for i, a in enumerate(counts) for j, b in enumerate(counts) if i != j)
        C = len(counts)
        assert found == pytest.approx(4 * 1.5 * 0.8 * 2.0 / (C * (C - 1)) * pairs, rel=1e-12)
        assert found <= theorem_7(0.1, counts, **LINEAR).complexity * (1 + 1e-12)
        more = counts + (np.arange(C) == counts.argmax()) * 1000
        assert bounds.linear(0.1, more, **LINEAR).complexity <= found * (1 + 1e-12)


def test_dnn_is_its_formula():
    found = bounds.dnn(0.1, COUNTS, **DNN)
    depth = math.sqrt((1 + math.sqrt(2 * 3 * math.log(2))) ** 2 + 1)
    expected = 2 * math.sqrt(2) * 0.8 * 2.0 * 1.5 * depth * xi_of(COUNTS) / math.sqrt(1000)
    assert found.complexity == pytest.approx(expected, rel=1e-12)


def test_cnn_is_its_chaining_integral():
    found = bounds.cnn(0.1, COUNTS, **CNN)
    slope = math.sqrt(2) / 4 * 1.5 * (1 + 0.4 / 2) ** 2 * 1.2 * 1.0
    chained = bounds.chaining(lambda e: 50 * math.log(1 + 2 * 0.4 * slope / e), COUNTS, radius=min(0.5, 0.4 * slope))
    assert found.complexity == pytest.approx(4 * chained / 6, rel=1e-9)
    assert found.complexity < bounds.cnn(0.1, COUNTS, **{**CNN, "distance": 0.8}).complexity
    assert found.complexity < bounds.cnn(0.1, COUNTS, **{**CNN, "n_parameters": 51}).complexity
    assert found.complexity < bounds.cnn(0.1, COUNTS, **{**CNN, "spectral_norms": (1.3, 0.7)}).complexity
    assert bounds.cnn(0.1, COUNTS, **{**CNN, "distance": 0.0}).complexity == 0
    deep = bounds.cnn(0.1, COUNTS, **{**CNN, "spectral_norms": (1e10,) * 100})
    assert math.isfinite(deep.total), "norms enter by their logarithm"


@ALL
def test_monotone(build):
    base = build()
    for factor in (2, 5, 50):
        larger = build(counts=tuple(factor * n for n in COUNTS))
        assert larger.total < base.total
        assert larger.complexity <= base.complexity
        base = larger
    by_delta = [build(delta=d).total for d in (0.5, 0.1, 0.01, 1e-6)]
    assert by_delta == sorted(by_delta)
    by_imbalance = [build(counts=c).total for c in ((400, 300, 300), (600, 200, 200), (800, 150, 50), (980, 10, 10))]
    assert by_imbalance == sorted(by_imbalance)
    assert build(risk=0.2).total == pytest.approx(build().total + 0.1)


@pytest.mark.parametrize(("build", "options"), [(bounds.linear, LINEAR), (bounds.dnn, DNN), (bounds.cnn, CNN)])
def test_rate_in_n(build, options):
    """A hundred times the data make the gap a tenth, in the same proportions."""
    counts = np.array([500_000, 300_000, 200_000])
    small, large = build(0.1, counts, **options), build(0.1, 100 * counts, **options)
    assert large.complexity == pytest.approx(small.complexity / 10, rel=1e-3)
    assert large.concentration == pytest.approx(small.concentration / 10)


def test_result():
    found = bounds.linear(0.1, COUNTS, **LINEAR)
    with pytest.raises(AttributeError):
        found.delta = 0.5
    assert not replace(found, range=1e9).vacuous
    assert bounds.linear(0.1, (2, 2, 2), **LINEAR).vacuous
    text = str(bounds.linear(0.1, (2, 2, 2), **LINEAR))
    assert text.startswith("linear bound, with probability 0.95: risk <= ")
    assert "vacuous: the loss never exceeds 3" in text
    assert found.inputs["gamma"] == 2.0


@ALL
@pytest.mark.parametrize("delta", [0, 1, np.nan])
def test_delta_outside(build, delta):
    with pytest.raises(ValueError, match="delta must be a finite number strictly between 0 and 1"):
        build(delta=delta)


@ALL
def test_classes_without_samples(build):
    with pytest.raises(ValueError, match="class_counts must be at least 1 in every class, got 0 for class 2: drop the"):
        build(counts=(5, 5, 0))
    with pytest.raises(ValueError, match="class_counts must be two or more finite numbers, one for each class"):
        build(counts=(5,))
    with pytest.raises(ValueError, match="class_counts must be two or more finite numbers"):
        build(counts="many")


@ALL
def test_negative_numbers(build):
    with pytest.raises(ValueError, match=r"empirical_risk must be a finite number of at least 0, got -0\.1"):
        build(risk=-0.1)
    with pytest.raises(ValueError, match="bound must be a finite number of at least 0, got -1"):
        build(bound=-1)


@pytest.mark.parametrize("name", ["gamma", "radius", "lipschitz"])
def test_negative_norms(name):
    text = f"{name} must be a finite number of at least 0, got -1.0"
    for build, options in ((bounds.linear, LINEAR), (bounds.dnn, DNN)):
        with pytest.raises(ValueError, match=text):
            build(0.1, COUNTS, **{**options, name: -1.0})


def test_other_bad_numbers():
    for p in (1, 1.0, 2.5, 0, "2", True):
        with pytest.raises(ValueError, match="p must be a finite number above 1 and at most 2"):
            bounds.linear(0.1, COUNTS, **LINEAR, p=p)
    with pytest.raises(ValueError, match="rademacher must be a finite number of at least 0, got -1"):
        bounds.abstract(0.1, COUNTS, -1)
    with pytest.raises(
        ValueError, match="activation must be one of 'identity', 'sigmoid', 'softmax', 'log_odds', got 'relu'"
    ):
        bounds.linear(0.1, COUNTS, **LINEAR, activation="relu")
    with pytest.raises(ValueError, match="depth must be a whole number of at least 1, got 0"):
        bounds.dnn(0.1, COUNTS, **{**DNN, "depth": 0})
    with pytest.raises(ValueError, match="spectral_norms must be a finite number of at least 0, got -1"):
        bounds.cnn(0.1, COUNTS, **{**CNN, "spectral_norms": (1.0, -1)})
    with pytest.raises(ValueError, match="spectral_norms must be one number for each layer, got none"):
        bounds.cnn(0.1, COUNTS, **{**CNN, "spectral_norms": ()})
    with pytest.raises(ValueError, match="distance must be a finite number of at least 0, got inf"):
        bounds.cnn(0.1, COUNTS, **{**CNN, "distance": np.inf})
