"""The metric against ``mauc_score`` on all data at once, whatever the batches, ranks, weights and precision.

Run as a script, this file is the second process of the distributed test.
"""

import pickle
import re
import subprocess
import sys
from copy import deepcopy
from datetime import timedelta

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from torch import tensor

from mauc import BinnedMAUC, mauc_score
from mauc.nn.metric import MAUC

BINS = [None, 50, BinnedMAUC(4, edges=np.linspace(0.2, 0.8, 25))]


def data(n=90, n_classes=4, seed=0, dtype=torch.float32):
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n, p=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum())
    y[:n_classes] = np.arange(n_classes)
    logits = np.round(rng.normal(size=(n, n_classes)) + np.eye(n_classes)[y], 1)
    scores = np.clip(0.5 + logits / 8.0, 0.0, 1.0)
    return tensor(scores).to(dtype), tensor(y), tensor(rng.random(n) + 0.1, dtype=torch.float32)


def reference(scores, y, weight=None, pairs="ovo"):
    weight = None if weight is None else weight.double().numpy()
    labels = range(scores.shape[1])
    return mauc_score(
        y.numpy(), scores.double().numpy(), sample_weight=weight, pairs=pairs, labels=list(labels), absent="ignore"
    )


def filled(metric, scores, y, weight=None, sizes=(30, 1, 59)):
    for part in torch.arange(len(y)).split(list(sizes)):
        metric.update(scores[part], y[part], None if weight is None else weight[part])
    return metric


MATRIX = np.arange(16).reshape(4, 4)


@pytest.mark.parametrize("pairs", ["ovo", "ova", MATRIX], ids=["ovo", "ova", "matrix"])
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_give_the_score_of_all_data(pairs, weighted):
    scores, y, weight = data()
    weight = weight if weighted else None
    metric = filled(MAUC(4, pairs=pairs), scores, y, weight)
    value = metric.compute()
    assert value.shape == ()
    assert value.dtype == torch.get_default_dtype()
    assert value.item() == pytest.approx(reference(scores, y, weight, pairs), abs=1e-7)
    assert metric.error_bound() == 0


@pytest.mark.parametrize("pairs", ["ovo", "ova", MATRIX], ids=["ovo", "ova", "matrix"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_between_all_scores_give_the_same(pairs, weighted):
    scores, y, weight = data()
    weight = weight if weighted else None
    between = BinnedMAUC(4, edges=np.unique(scores.numpy())[:-1] + 0.005)
    binned = filled(MAUC(4, pairs=pairs, bins=between), scores, y, weight).compute()
    assert binned.item() == pytest.approx(reference(scores, y, weight, pairs), abs=1e-7)


@pytest.mark.filterwarnings("ignore:preds from .* for bins from 0 to 1:UserWarning")  # the bound holds for any
@given(
    n_classes=st.integers(2, 5),
    n=st.integers(5, 60),
    seed=st.integers(0, 100),
    kind=st.sampled_from(["softmax", "logits", "tied"]),
    bins=st.sampled_from([2, 5, 100, [0.0], [-1.0, 0.0, 0.5, 2.0]]),
    pairs=st.sampled_from(["ovo", "ova"]),
    weighted=st.booleans(),
)
def test_the_binned_score_is_within_its_bound(n_classes, n, seed, kind, bins, pairs, weighted):
    scores, y, weight = data(n, n_classes, seed)
    logits = 8.0 * scores - 4.0
    scores = {"softmax": logits.softmax(1), "logits": logits, "tied": logits.round()}[kind]
    weight = weight if weighted else None
    if kind != "softmax" or not isinstance(bins, int):
        bins = BinnedMAUC(n_classes, edges=[0.0, 0.1] if isinstance(bins, int) else bins)
    metric = MAUC(n_classes, pairs=pairs, bins=bins, softmax=False, absent="ignore")
    metric.update(scores, y, weight)
    off = abs(metric.compute().item() - reference(scores, y, weight, pairs))
    assert off <= metric.error_bound().item() + 1e-6


def test_the_bound_is_attained_and_falls_with_the_bins():
    y = tensor([0, 0, 1, 1])
    scores = tensor([[0.4, 0.1], [0.3, 0.2], [0.2, 0.3], [0.1, 0.4]])
    metric = MAUC(2, bins=BinnedMAUC(2, edges=[0.5]))
    metric.update(scores, y)
    assert metric.compute() == metric.error_bound() == 0.5
    scores, y, _ = data(500)
    bounds = []
    for bins in (5, 50, 5000):
        metric = MAUC(4, bins=bins)
        metric.update((8.0 * scores.double()).softmax(1), y)
        bounds.append(metric.error_bound().item())
    assert bounds[0] > 4 * bounds[1]
    assert bounds[1] > 4 * bounds[2]
    assert bounds[2] < 1e-3


@pytest.mark.parametrize("bins", BINS, ids=["exact", "number", "edges"])
def test_forward_reset_pickle_and_copies(bins):
    scores, y, weight = data()
    metric = MAUC(4, bins=bins)
    whole = filled(MAUC(4, bins=bins), scores, y, weight).compute()
    first = MAUC(4, bins=bins)
    first.update(scores[:40], y[:40], weight[:40])
    assert metric(scores[:40], y[:40], weight[:40]) == first.compute()
    copies = [deepcopy(metric), pickle.loads(pickle.dumps(metric)), metric.clone()]
    for each in [metric, *copies]:
        each(scores[40:], y[40:], weight[40:])
        torch.testing.assert_close(each.compute(), whole)
    metric.reset()
    metric.update(scores[:40], y[:40], weight[:40])
    assert metric.compute() == first.compute()


@pytest.mark.parametrize("bins", [None, 50])
def test_merge_and_metric_collection(bins):
    from torchmetrics import MetricCollection

    scores, y, weight = data()
    collection = MetricCollection({kind: MAUC(4, pairs=kind, bins=bins) for kind in ("ovo", "ova")})
    filled(collection, scores, y, weight)
    expected = {kind: filled(MAUC(4, pairs=kind, bins=bins), scores, y, weight).compute() for kind in ("ovo", "ova")}
    assert collection.compute() == expected
    one, other = MAUC(4, bins=bins), MAUC(4, bins=bins)
    one.update(scores[:50], y[:50], weight[:50])
    other.update(scores[50:], y[50:], weight[50:])
    one.merge_state(other)
    torch.testing.assert_close(one.compute(), expected["ovo"])


@pytest.mark.parametrize("bins", [None, 50])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_precision(dtype, bins):
    scores, y, _ = data()
    scores = (8.0 * scores).softmax(1).to(dtype)
    metric = MAUC(4, bins=bins)
    metric.update(scores, y)
    assert metric.compute().item() == pytest.approx(reference(scores, y), abs=metric.error_bound().item() + 1e-6)


@pytest.mark.parametrize("pairs", ["ovo", "ova", MATRIX], ids=["ovo", "ova", "matrix"])
@pytest.mark.parametrize("bins", [None, "between"])
def test_one_number_per_class(pairs, bins):
    scores, y, weight = data()
    keep = y != 2
    scores, y, weight = scores[keep], y[keep], weight[keep]
    between = None if bins is None else BinnedMAUC(4, edges=np.unique(scores.numpy())[:-1] + 0.005)
    metric = MAUC(4, pairs=pairs, average=None, bins=between, absent="ignore")
    metric.update(scores, y, weight)
    found = metric.compute()
    assert found.shape == (4,)
    assert found.dtype == torch.get_default_dtype()
    assert found.isnan().tolist() == [False, False, True, False]
    w = np.bincount(y, weight.double().numpy(), 4)
    of_row = {"ovo": np.ones((4, 4)), "ova": np.tile(w, (4, 1))}[pairs] if isinstance(pairs, str) else MATRIX
    for i in (0, 1, 3):
        row = np.where(np.arange(4)[:, None] == i, of_row, 0.0)
        assert found[i].item() == pytest.approx(reference(scores, y, weight, row), abs=1e-7)


@pytest.mark.parametrize("bins", [None, 50])
def test_pixels_are_samples(bins):
    rng = torch.Generator().manual_seed(0)
    preds, target = torch.rand(5, 3, 4, 2, generator=rng), torch.randint(3, (5, 4, 2), generator=rng)
    weight = torch.rand(5, 4, 2, generator=rng)
    images, rows = MAUC(3, bins=bins), MAUC(3, bins=bins)
    images.update(preds, target, weight)
    for n in range(5):
        for a, b in np.ndindex(4, 2):
            rows.update(preds[n, :, a, b][None], target[n, a, b][None], weight[n, a, b][None])
    torch.testing.assert_close(images.compute(), rows.compute())
    images.update(torch.zeros(0, 3, 4, 2), torch.zeros(0, 4, 2, dtype=torch.long))


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    scores, y, _ = data()
    metric, by_class = filled(MAUC(4), scores, y), filled(MAUC(4, average=None), scores, y)
    try:
        _, axes = metric.plot()
        assert axes.lines[0].get_ydata().item() == pytest.approx(metric.compute().item())
        _, axes = metric.plot([metric.compute()] * 3)
        assert len(axes.lines[0].get_ydata()) == 3
        _, axes = pyplot.subplots()
        by_class.plot(ax=axes)
        assert [line.get_ydata().item() for line in axes.lines] == pytest.approx(by_class.compute().tolist())
        assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"Class {k}" for k in range(4)]
    finally:
        pyplot.close("all")


def test_float64_scores_are_not_rounded():
    scores = torch.zeros(2, 2, dtype=torch.float64)
    scores[0, 0] = scores[1, 1] = 1e-12
    metric = MAUC(2)
    metric.update(1.0 + scores, tensor([0, 1]))
    assert metric.compute() == 1.0


@pytest.mark.parametrize("factor", [1e-50, 1e-200, 1e200])
@pytest.mark.parametrize("bins", [None, 50])
def test_float64_weights_are_not_rounded(bins, factor):
    scores, y, weight = data()
    expected = filled(MAUC(4, bins=bins), scores, y, weight.double()).compute()
    scaled = filled(MAUC(4, bins=bins), scores, y, factor * weight.double()).compute()
    torch.testing.assert_close(scaled, expected)


def test_logits_for_equal_bins_are_refused():
    scores, y, _ = data()
    metric, logits = MAUC(4, bins=50, softmax=False), 8.0 * scores - 4.0
    metric.update(logits.softmax(1), y)
    with pytest.raises(ValueError, match=r"preds must be from 0 to 1 for equal bins, got -.*logits\.softmax\(1\)"):
        metric.update(logits, y)
    MAUC(4, bins=50, softmax=False, validate_args=False).update(logits, y)
    MAUC(4, bins=50).update(logits, y)
    fitted = MAUC(4, bins=BinnedMAUC.for_scores(y, logits))
    fitted.update(logits, y)
    assert fitted.compute().item() == pytest.approx(reference(logits, y), abs=1e-6)


def test_the_counts_are_those_of_numpy():
    scores, y, weight = data()
    for like in (BinnedMAUC(4, 64), BinnedMAUC.for_scores(y, scores, 64)):
        metric = filled(MAUC(4, bins=like.bins if like.edges is None else like), scores, y)
        np.testing.assert_array_equal(metric.binned().counts, like.copy().update(y, scores).counts)
        assert metric.binned().score() == pytest.approx(metric.compute().item(), abs=1e-7)
        with_weights = filled(MAUC(4, bins=like), scores, y, weight)
        np.testing.assert_allclose(with_weights.binned().counts, like.copy().update(y, scores, weight).counts)
    with pytest.raises(ValueError, match="bins must be given for counts, got None: pass bins=65_536"):
        MAUC(4).binned()


def test_pairs_may_be_a_tensor():
    scores, y, _ = data()
    pairs = tensor(MATRIX, dtype=torch.float32, requires_grad=True)
    assert filled(MAUC(4, pairs=pairs), scores, y).compute() == filled(MAUC(4, pairs=MATRIX), scores, y).compute()


@pytest.mark.parametrize("bins", [None, 5])
def test_scores_may_be_used_as_they_are(bins):
    # Column 0 is in order, column 1 is not; softmax would turn column 0 around, to 0.0 in all.
    metric = MAUC(2, bins=BinnedMAUC(2, edges=[3.0, 15.0]) if bins else None, softmax=None if bins else False)
    metric.update(tensor([[10.0, 0.0], [20.0, 30.0]]), tensor([1, 0]))
    assert metric.compute() == 0.5


@pytest.mark.parametrize("bins", [None, 2000])
def test_logits_get_a_softmax(bins):
    """As in torchmetrics; and batches whose logits happen to lie in [0, 1] are logits, too."""
    scores, y, _ = data()
    logits = 16.0 * scores.double() - 8.0
    expected = filled(MAUC(4), logits.softmax(1), y, sizes=(90,)).compute()
    sizes = (90,) if bins else (30, 1, 59)
    found = filled(MAUC(4, bins=bins), logits, y, sizes=sizes).compute()
    assert found.item() == pytest.approx(expected.item(), abs=0.02 if bins else 1e-12)
    assert filled(MAUC(4, softmax=True), logits, y).compute() == expected
    assert abs(filled(MAUC(4, softmax=False), logits, y).compute() - expected) > 1e-3
    small = MAUC(4)
    small.update(logits.clamp(0.0, 1.0)[:5], y[:5])
    small.update(logits, y)
    both = torch.cat([logits.clamp(0.0, 1.0)[:5], logits])
    assert small.compute() == filled(MAUC(4), both.softmax(1), torch.cat([y[:5], y]), sizes=(95,)).compute()


@pytest.mark.parametrize("bins", BINS, ids=["exact", "number", "edges"])
def test_a_class_without_samples_is_named_once(bins):
    scores, y, _ = data()
    y[y == 2] = 1
    metric = MAUC(4, bins=bins)
    metric.update(scores, y)
    with pytest.warns(UndefinedMetricWarning, match="no sample of class 2: its pairs are left out"):
        value = metric.compute()
    metric.update(scores, y)
    assert metric.compute() == pytest.approx(value.item())
    silent, strict = (MAUC(4, bins=bins, absent=kind) for kind in ("ignore", "raise"))
    silent.update(scores, y)
    assert silent.compute() == value
    strict.update(scores, y)
    with pytest.raises(ValueError, match="target must have samples of every class, got none of class 2"):
        strict.compute()


def test_gradients_stop():
    scores, y, _ = data()
    metric = MAUC(4)
    value = metric(scores.clone().requires_grad_(), y)
    assert not value.requires_grad
    assert not metric.preds[0].requires_grad
    assert (metric.is_differentiable, metric.higher_is_better, metric.full_state_update) == (False, True, False)


@pytest.mark.parametrize("bins", BINS, ids=["exact", "number", "edges"])
def test_absent_classes_and_zero_weights_drop_out(bins):
    scores, y, weight = data()
    weight[y == 2] = 0
    weight[:7] = 0
    metric = MAUC(4, bins=bins, absent="ignore")
    metric.update(scores, y, weight)
    kept = weight > 0
    without = MAUC(4, bins=bins, absent="ignore")
    without.update(scores[kept], y[kept], weight[kept])
    torch.testing.assert_close(metric.compute(), without.compute())
    if bins is None:
        expected = reference(scores[kept], y[kept], weight[kept])
        assert metric.compute().item() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("bins", BINS, ids=["exact", "number", "edges"])
def test_no_pair_is_nan_with_a_warning(bins):
    scores, _, _ = data()
    metric = MAUC(4, bins=bins)
    metric.update(scores[:5], tensor([1] * 5))
    with pytest.warns(UndefinedMetricWarning, match="no pair of classes with positive weight has samples"):
        assert metric.compute().isnan()
    metric.reset()
    metric.update(scores[:0], tensor([], dtype=torch.long))
    with pytest.warns(UndefinedMetricWarning):
        assert metric.compute().isnan()


@pytest.mark.parametrize("bins", [None, 50])
def test_ignore_index(bins):
    scores, y, weight = data()
    hidden = y.clone()
    hidden[::3] = -100
    metric = MAUC(4, ignore_index=-100, bins=bins)
    metric.update(scores, hidden, weight)
    kept = hidden >= 0
    without = MAUC(4, bins=bins)
    without.update(scores[kept], y[kept], weight[kept])
    assert metric.compute() == without.compute()


def test_memory_of_the_binned_metric_is_constant():
    metric = MAUC(4, bins=10)
    for seed in range(3):
        scores, y, _ = data(seed=seed)
        metric.update(scores, y)
    assert [tuple(state.shape) for state in metric.metric_state.values()] == [(4, 4, 10)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_classes": 1}, "num_classes must be a whole number of at least 2, got 1"),
        ({"average": "weighted"}, "average must be one of 'macro', 'none', got 'weighted'"),
        ({"bins": 1}, "bins must be a whole number of at least 2, got 1: pass None for the exact metric"),
        ({"bins": [0.5, 0.1]}, "bins must be a whole number of at least 2, got [0.5, 0.1]: pass None for the exact"),
        ({"bins": BinnedMAUC(4)}, "bins must have 3 classes, as num_classes says, got 4: use one state"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MAUC(**{"num_classes": 3, **arguments})


GOOD = {"preds": torch.rand(4, 3, generator=torch.Generator().manual_seed(0)), "target": tensor([0, 1, 2, 0])}


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            {"preds": torch.rand(4, 2)},
            "preds must have the shape (N, 3) or (N, 3, …), got shape (4, 2): pass one row per sample and",
        ),
        ({"preds": torch.ones(4, 3, dtype=torch.long)}, "preds must be a floating-point tensor, got torch.int64: pass"),
        ({"target": tensor([0, 1, 2])}, "target must have the shape (4,), got shape (3,): pass one class per"),
        (
            {"preds": torch.rand(4, 3, 2)},
            "target must have the shape (4, 2), got shape (4,): pass one class",
        ),
        ({"target": tensor([0, 1, 3, 0])}, "target must be from 0 to 2, got 3: number the classes"),
        ({"preds": torch.full((4, 3), float("nan"))}, "preds must be finite, got NaN or infinity: find where"),
        (
            {"weight": torch.ones(3)},
            "weight must be a tensor of shape (4,), got shape (3,): pass one weight",
        ),
        ({"weight": torch.ones(4, dtype=torch.complex64)}, "weight must be real numbers on cpu, got torch.complex64"),
        ({"target": GOOD["target"].to("meta")}, "target must be on the device of preds, cpu, got meta: move it"),
        ({"weight": tensor([1.0, 1, 1, -2])}, "weight must be finite and not negative, got -2: pass weights >= 0"),
    ],
)
def test_bad_batches(batch, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MAUC(3).update(**{**GOOD, **batch})


@pytest.mark.gpu
@pytest.mark.parametrize("bins", BINS, ids=["exact", "number", "edges"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_on_a_gpu(bins, dtype):
    scores, y, weight = data(dtype=dtype)
    metric = MAUC(4, bins=bins).to("cuda")
    filled(metric, scores.cuda(), y.cuda(), weight.cuda())
    value = metric.compute()
    assert value.device.type == "cuda"
    torch.testing.assert_close(value.cpu(), filled(MAUC(4, bins=bins), scores, y, weight).compute())


# Rank 0 and 1 see so many samples; the last has no batch at all.
SHARES = {"uneven": (70, 20), "one without a batch": (90, 0)}


def run_rank(rank):
    for dtype in (torch.float32, torch.float64):
        scores, y, weight = data(dtype=dtype)
        for shares in SHARES.values():
            part = slice(0, shares[0]) if rank == 0 else slice(shares[0], None)
            for bins in (None, 50):
                metric = MAUC(4, bins=bins)
                whole = MAUC(4, bins=bins, sync_on_compute=False)
                whole.update(scores, y, weight)
                for rows in torch.arange(90)[part].split(25):
                    if len(rows):
                        metric.update(scores[rows], y[rows], weight[rows])
                metric._update_count = 1  # torchmetrics warns of a rank without a batch
                torch.testing.assert_close(metric.compute(), whole.compute())
                torch.testing.assert_close(metric.error_bound(), whole.error_bound())
                # The synced state is not kept: another batch on one rank counts once.
                if rank == 0:
                    metric.update(scores[:9], y[:9], weight[:9])
                whole.update(scores[:9], y[:9], weight[:9])
                metric._computed = None
                torch.testing.assert_close(metric.compute(), whole.compute())


def run_process(rank, rendezvous):
    limit = timedelta(minutes=5)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", timeout=limit, rank=rank, world_size=2
    )
    run_rank(rank)
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_with_uneven_shares(tmp_path):
    rendezvous = str(tmp_path / "rendezvous")
    other = subprocess.Popen([sys.executable, "-W", "error", __file__, rendezvous], stderr=subprocess.PIPE, text=True)
    run_process(0, rendezvous)
    said = other.communicate(timeout=300)[1]
    assert other.returncode == 0, said


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_process(1, sys.argv[1])
