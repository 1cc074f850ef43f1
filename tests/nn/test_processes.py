"""sync=True: several processes compute the risk of the union of their batches."""

import gc
from datetime import timedelta

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from cases import EACH_KIND
from pair_loss import PairLoss, pair_loss

from mauc.activations import ACTIVATIONS

LIMIT = timedelta(seconds=60)
PAIRS = {"ovo": "ovo", "ova": "ova", "matrix": np.arange(25.0).reshape(5, 5)}


def batch():
    """Five classes over uneven parts; class 3 in the last part alone, class 4 in the first alone."""
    generator = torch.Generator().manual_seed(0)
    sizes = (7, 16)
    y = torch.tensor([0, 1, 4, 4, 0, 1, 2, 2, 3, 0, 1, 3, 3, 2, 0, 1, 0, 0, 0, 2, 2, 1, 3])
    x = torch.randn(23, 6, generator=generator, dtype=torch.float64)
    weight = torch.rand(23, generator=generator, dtype=torch.float64) + 0.1
    return x, y, weight, sizes


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5)).double()


def part(rank):
    x, y, weight, sizes = batch()
    begin = sum(sizes[:rank])
    rows = slice(begin, begin + sizes[rank])
    return x[rows], y[rows], weight[rows]


def compare(rank, world, file):
    """Runs in each process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world, timeout=LIMIT)
    equals_one_process(rank, world)
    takes_part_without_samples(rank)
    refuses_second_derivatives(rank)
    gc.collect()  # a DistributedDataParallel that outlives its group can wait for it for ever
    dist.barrier()
    dist.destroy_process_group()


def equals_one_process(rank, world):
    """Value and averaged gradients against one process on the whole."""
    x, y, weight, _ = batch()
    mine = part(rank)
    kinds = [(case, "softmax", "ovo") for case in EACH_KIND]
    kinds += [(EACH_KIND[0], activation, pairs) for activation, pairs in zip(ACTIVATIONS, PAIRS, strict=False)]
    for case, activation, pairs in kinds:
        what = f"{case}, {activation}, {pairs}, rank {rank} of {world}"
        settings = {"surrogate": case.surrogate, "activation": activation, "pairs": PAIRS[pairs], **case.options}
        whole = network()
        expected = pair_loss(whole(x), y, weight=weight, **settings)
        expected.backward()
        model = torch.nn.parallel.DistributedDataParallel(network())
        got = PairLoss(sync=True, **settings)(model(mine[0]), mine[1], mine[2])
        got.backward()
        assert abs(got.item() - expected.item()) <= 1e-10 * abs(expected.item()), what
        # The logits of some rows differ from those of all rows in their last digits.
        tolerance = case.within("processes")
        for p, q in zip(model.parameters(), whole.parameters(), strict=True):
            assert torch.allclose(p.grad, q.grad, rtol=tolerance, atol=1e-4 * tolerance), what


def takes_part_without_samples(rank):
    x, y, _, _ = batch()
    for surrogate in ("exponential", "hinge"):
        logits = x[:, :5].clone().requires_grad_() if rank == 0 else torch.zeros(0, 5).double().requires_grad_()
        got = pair_loss(logits, y if rank == 0 else y[:0], surrogate=surrogate, activation="identity", sync=True)
        got.backward()
        assert got.item() == pytest.approx(pair_loss(x[:, :5], y, surrogate=surrogate, activation="identity").item())
        assert logits.grad.shape == logits.shape


def refuses_second_derivatives(rank):
    x, y, _ = part(rank)
    logits = x[:, :5].clone().requires_grad_()
    (slope,) = torch.autograd.grad(pair_loss(logits, y, sync=True), logits, create_graph=True)
    with pytest.raises(NotImplementedError, match="not available with sync=True: gather the logits"):
        slope.sum().backward()


@pytest.mark.slow
def test_two_processes_equal_one_on_the_whole_batch(tmp_path):
    mp.spawn(compare, args=(2, tmp_path / "store"), nprocs=2)


def one_rank_has_more_batches(rank, world, file):
    """The last rank has a batch more than the others, as at the end of an epoch."""
    torch.set_num_threads(1)
    limit = timedelta(seconds=3)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world, timeout=limit)
    model = network()
    x, y, _ = part(rank)
    PairLoss(sync=True)(model(x), y).backward()
    if rank:
        with pytest.raises(RuntimeError, match="sync=True must compute the loss equally often on every rank, got no"):
            PairLoss(sync=True)(model(x), y).backward()


@pytest.mark.slow
def test_unequal_numbers_of_batches_are_named(tmp_path):
    mp.spawn(one_rank_has_more_batches, args=(2, tmp_path / "store"), nprocs=2)


def test_a_group_of_one(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        x, y, weight, _ = batch()
        alone = pair_loss(x[:, :5], y, weight=weight)
        assert torch.allclose(pair_loss(x[:, :5], y, weight=weight, sync=True), alone, rtol=1e-14)
    finally:
        dist.destroy_process_group()
