"""Surrogate → closed form or polynomials, each of which is the loss; sums of classes of any size."""

import time

import numpy as np
import pytest
import torch
from cases import CASES
from numpy.polynomial.chebyshev import chebval2d
from pair_loss import pair_loss

from mauc.nn._loss.batch import weigh
from mauc.nn._loss.closed import Closed, closed_form
from mauc.nn._loss.pieces import columns_of, in_torch, piecewise_risk, polynomials
from mauc.plan import TOLERANCES
from mauc.surrogates import get_surrogate


def test_closed_forms():
    assert closed_form(get_surrogate("squared", alpha=0.5)) == Closed("squared", 0.5)
    assert closed_form(get_surrogate("exponential", alpha=2.0), bounded=False) == Closed("exponential", 2.0)
    assert closed_form(get_surrogate("hinge", alpha=2.0)) == Closed("line", 2.0)
    assert closed_form(get_surrogate("hinge", alpha=2.0), bounded=False) is None
    assert closed_form(get_surrogate("hinge", alpha=0.5)) is None
    assert closed_form(get_surrogate("generalized_hinge", alpha=2.0)) == Closed("line", 2.0)
    assert closed_form(get_surrogate("logistic")) is None


@pytest.mark.parametrize(("radius", "bounded"), [(1.0, True), (4.0, False)])
def test_polynomials_are_the_loss(radius, bounded):
    half = radius / 2.0
    p, q = np.meshgrid(np.linspace(-half, half, 65), np.linspace(-half, half, 65))
    taken = set()
    for case in CASES:
        surrogate = case.build()
        form = polynomials(surrogate, radius, TOLERANCES["float64"], bounded=bounded)
        if form is None:
            continue
        taken.add(str(case).split("-alpha")[0])
        h = form.half_width
        value = sum((p - q < b) * chebval2d(p / h, q / h, a) for b, a in form.terms)
        size = np.abs(surrogate.loss(np.zeros(1))[0])
        assert np.abs(value - surrogate.loss(p - q)).max() <= 2e-6 * size, str(case)
    assert taken >= {"hinge", "q_hinge", "generalized_hinge", "logistic", "custom-pieces", "custom-polynomial"}


def test_high_powers_that_would_cancel_are_taken_pair_by_pair():
    steep = get_surrogate("q_hinge", alpha=1e-3, q=5)
    assert polynomials(steep, 1.0, TOLERANCES["float64"], bounded=True) is None
    logits, y = torch.randn(12, 3, dtype=torch.float64), torch.arange(12) % 3
    with pytest.warns(UserWarning, match="taking all pairs in blocks"):
        assert pair_loss(logits, y, surrogate=steep).isfinite()


def test_the_loss_of_tensors_is_that_of_arrays():
    t = torch.linspace(-2.0, 2.0, 401, dtype=torch.float64)
    for case in CASES:
        expected = torch.from_numpy(case.build().loss(t.numpy()))
        torch.testing.assert_close(in_torch(case.build())(t), expected, rtol=1e-12, atol=1e-14, msg=str(case))


def test_a_large_class_pads_no_other():
    y = torch.cat([torch.zeros(1000, dtype=torch.int64), torch.arange(1000) % 50])
    blocks = list(columns_of(weigh(y, 50, "ovo"), 1 << 20))
    assert sorted(c for some in blocks for c in some.number.tolist()) == list(range(50))
    assert sum(some.own.numel() for some in blocks) <= 2 * len(y)


@pytest.mark.parametrize("surrogate", ["hinge", "generalized_hinge", "logistic"])
def test_blocks_of_columns_make_no_difference(surrogate):
    generator = torch.Generator().manual_seed(0)
    scores, y = torch.rand(60, 7, generator=generator, dtype=torch.float64), torch.arange(60) ** 2 % 7
    loss, weights = get_surrogate(surrogate), weigh(y, 7, "ova")
    whole, slope = piecewise_risk(scores, weights, loss, bounded=True, gradient=True)
    value, parts = piecewise_risk(scores, weights, loss, bounded=True, gradient=True, block=1)
    torch.testing.assert_close(value, whole)
    torch.testing.assert_close(parts, slope)


@pytest.mark.slow
def test_half_of_the_samples_in_one_class_cost_no_more():
    y = torch.arange(4096) % 100
    half = torch.where(torch.arange(4096) < 2048, 0, y)
    logits = torch.randn(4096, 100, requires_grad=True)
    seconds = []
    for target in (y, half):
        times = []
        for _ in range(5):
            begin = time.process_time()
            pair_loss(logits, target, surrogate="hinge").backward()
            times.append(time.process_time() - begin)
        seconds.append(min(times))
    assert seconds[1] < 2.0 * seconds[0]
