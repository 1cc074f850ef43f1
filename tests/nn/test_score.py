"""The score in torch against ``mauc_score`` in NumPy: ties, weights, absent classes, blocks of columns, devices."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning

from mauc import mauc_score as reference
from mauc import pairwise_auc as reference_pairs
from mauc.nn import MAUC
from mauc.nn._loss.batch import weigh
from mauc.nn._loss.score import beaten_by
from mauc.nn.functional import mauc_score, pairwise_auc


def draw(seed, n_classes=6, n=80, *, tied=True, weighted=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1.0, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    scores = rng.normal(size=(n, n_classes)) + 0.5 * np.eye(n_classes)[y]
    weight = rng.random(n) + 0.01 if weighted else None
    return y, (scores.round(1) if tied else scores).astype(dtype), weight


@given(
    st.integers(0, 10**6),
    st.integers(2, 7),
    st.integers(3, 60),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["ovo", "ova", "matrix"]),
)
def test_the_score_is_that_of_numpy(seed, n_classes, n, tied, weighted, pairs):
    y, scores, weight = draw(seed, n_classes, n, tied=tied, weighted=weighted)
    if seed % 3 == 0:
        y = np.minimum(y, 1)  # classes without a sample
    v = np.random.default_rng(seed).random((n_classes, n_classes)) if pairs == "matrix" else pairs
    if len(np.unique(y)) < 2:
        return
    expected = reference(y, scores, pairs=v, labels=np.arange(n_classes), sample_weight=weight, absent="ignore")
    u = None if weight is None else torch.from_numpy(weight)
    found = mauc_score(torch.from_numpy(scores), torch.from_numpy(y), pairs=v, weight=u)
    assert found.shape == ()
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_columns_make_no_difference(weighted):
    y, scores, weight = draw(3, weighted=weighted)
    u = None if weight is None else torch.from_numpy(weight)
    pairs = {"pairs": "ovo", "class_counts": None, "valid": None}
    weights = weigh(torch.from_numpy(y), scores.shape[1], weight=u, **pairs)
    one, many = (
        torch.cat([found for _, found in beaten_by(torch.from_numpy(scores), weights, weighted=weighted, block=block)])
        for block in (None, 1)
    )
    assert torch.equal(one, many)


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_of_classes(weighted):
    """With ties and a class that no row has."""
    y, scores, weight = draw(3, weighted=weighted)
    y[y == 2] = 4
    expected = reference_pairs(y, scores, labels=np.arange(6), sample_weight=weight)
    u = None if weight is None else torch.from_numpy(weight)
    found = pairwise_auc(torch.from_numpy(scores), torch.from_numpy(y), weight=u).numpy()
    assert np.isnan(found[2]).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert pairwise_auc(torch.rand(0, 3), torch.zeros(0, dtype=torch.long)).isnan().all()


def test_no_pair_is_no_number():
    scores = torch.rand(4, 3)
    assert mauc_score(scores, torch.ones(4, dtype=torch.long)).isnan()
    assert mauc_score(scores[:0], torch.zeros(0, dtype=torch.long)).isnan()
    y, weight = torch.tensor([0, 1, 1, 2]), torch.tensor([1.0, 0.0, 0.0, 2.0])
    without = torch.tensor([True, False, False, True])
    assert mauc_score(scores, y, weight=weight) == mauc_score(scores[without], y[without]), "a class of weight 0"
    assert mauc_score(scores, y, weight=torch.tensor([1.0, 0.0, 0.0, 0.0])).isnan()


def test_a_perfect_order_scores_one():
    y = torch.arange(70) % 7
    assert mauc_score(torch.eye(7)[y], y) == 1.0
    assert mauc_score(-torch.eye(7)[y], y, weight=torch.rand(70) + 0.1) < 1e-12


def test_precision_and_gradient():
    y, scores, _ = draw(0, tied=False, dtype=np.float32)
    logits = torch.from_numpy(scores).requires_grad_()
    found = mauc_score(logits, torch.from_numpy(y).int())
    assert not found.requires_grad
    assert found.item() == pytest.approx(reference(y, scores, labels=np.arange(6), absent="ignore"), abs=1e-12)
    half = torch.from_numpy(scores).half()
    expected = reference(y, half.double().numpy(), labels=np.arange(6), absent="ignore")
    assert mauc_score(half, torch.from_numpy(y)).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"scores": torch.zeros(3)},
            r"scores must have the shape \(N, C\), got shape \(3,\): pass one row per sample",
        ),
        ({"scores": torch.tensor([[0.0, np.nan]] * 3)}, "scores must be finite, got NaN or infinity"),
        (
            {"target": torch.tensor([0, 1])},
            r"target must have the shape \(3,\), got shape \(2,\): pass one class per sample",
        ),
        ({"target": torch.tensor([0, 1, 2])}, "target must be from 0 to 1, got 2: number the classes"),
        ({"weight": torch.tensor([1.0, -1.0, 1.0])}, "weight must be finite and not negative, got -1"),
        ({"pairs": "all"}, "pairs must be one of 'ovo', 'ova'"),
    ],
)
def test_errors(arguments, message):
    given = {"target": torch.tensor([0, 1, 1]), "scores": torch.zeros(3, 2), **arguments}
    with pytest.raises(ValueError, match=message):
        mauc_score(given.pop("scores"), given.pop("target"), **given)


def test_the_metric_computes_where_its_scores_are(monkeypatch):
    """On a GPU; here the same path on the CPU."""
    y, scores, weight = draw(3, weighted=True)
    metric = MAUC(6, pairs="ova")
    metric.update(torch.from_numpy(scores[:50]), torch.from_numpy(y[:50]), torch.from_numpy(weight[:50]))
    metric.update(torch.from_numpy(scores[50:]), torch.from_numpy(y[50:]), torch.from_numpy(weight[50:]))
    assert metric._on_device() == metric.compute()
    empty = MAUC(3)
    empty.update(torch.rand(2, 3), torch.tensor([1, 1]))
    with pytest.warns(UndefinedMetricWarning, match="no pair of classes"):
        assert empty._on_device().isnan()


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
def test_on_the_gpu(weighted):
    y, scores, weight = draw(1, 40, 2000, weighted=weighted)
    expected = reference(y, scores, labels=np.arange(40), sample_weight=weight, absent="ignore")
    target, there = torch.from_numpy(y).cuda(), torch.from_numpy(scores).cuda()
    u = None if weight is None else torch.from_numpy(weight).cuda()
    found = mauc_score(there, target, weight=u)
    assert found.is_cuda
    assert found.item() == pytest.approx(expected, abs=1e-12)
    metric = MAUC(40).cuda()
    metric.update(there, target, u)
    assert metric.compute().is_cuda
    assert metric.compute().item() == pytest.approx(expected, abs=1e-6)
    there[0, 0] = torch.nan
    assert mauc_score(there, target).isnan(), "no check waits for the device"
