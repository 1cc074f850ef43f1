"""sync=True: several processes compute the risk of the union of their batches."""

import gc
from datetime import timedelta
from itertools import product

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
    sizes = {2: (7, 16), 3: (7, 1, 15)}
    y = torch.tensor([0, 1, 4, 4, 0, 1, 2, 2, 3, 0, 1, 3, 3, 2, 0, 1, 0, 0, 0, 2, 2, 1, 3])
    x = torch.randn(23, 6, generator=generator, dtype=torch.float64)
    weight = torch.rand(23, generator=generator, dtype=torch.float64) + 0.1
    return x, y, weight, sizes


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 7), torch.nn.Tanh(), torch.nn.Linear(7, 5)).double()


def part(rank, world):
    x, y, weight, sizes = batch()
    begin = sum(sizes[world][:rank])
    rows = slice(begin, begin + sizes[world][rank])
    return x[rows], y[rows], weight[rows]


def compare(rank, world, file):
    """Runs in each process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world, timeout=LIMIT)
    equals_one_process(rank, world)
    nothing_here(rank)
    nan_is_seen_by_all(rank)
    gc.collect()  # a DistributedDataParallel that outlives its group can wait for it for ever
    dist.barrier()
    dist.destroy_process_group()


def equals_one_process(rank, world):
    """Value and averaged gradients against one process on the whole."""
    x, y, weight, _ = batch()
    mine = part(rank, world)
    for case, activation in product(EACH_KIND, ACTIVATIONS):
        for name, pairs in PAIRS.items():
            tolerance = case.within("processes")  # sums of large terms, in another order, where it approximates
            what = f"{case}, {activation}, {name}, rank {rank} of {world}"
            settings = {"surrogate": case.surrogate, "activation": activation, "pairs": pairs, **case.options}
            whole = network()
            expected = pair_loss(whole(x), y, weight=weight, **settings)
            expected.backward()
            model = torch.nn.parallel.DistributedDataParallel(network())
            got = PairLoss(sync=True, **settings)(model(mine[0]), mine[1], mine[2])
            got.backward()
            assert abs(got.item() - expected.item()) <= 1e-10 * abs(expected.item()), what
            # On a wider range the pieces of an approximation are differences of larger sums.
            rough = case.scheme == "ranked" and not case.exact and activation == "identity"
            near = tolerance * (max(q.grad.abs().max().item() for q in whole.parameters()) if rough else 1e-4)
            for p, q in zip(model.parameters(), whole.parameters(), strict=True):
                assert torch.allclose(p.grad, q.grad, rtol=tolerance, atol=near), what


def nothing_here(rank):
    """A rank whose samples are all ignored, or that has none, takes part all the same."""
    x, y, _, _ = batch()
    for surrogate, activation in (("squared", "softmax"), ("exponential", "identity"), ("hinge", "identity")):
        logits = x[:, :5].clone().requires_grad_() if rank == 0 else torch.zeros(0, 5).double().requires_grad_()
        got = pair_loss(logits, y if rank == 0 else y[:0], surrogate=surrogate, activation=activation, sync=True)
        got.backward()
        assert got.item() == pytest.approx(pair_loss(x[:, :5], y, surrogate=surrogate, activation=activation).item())
        assert logits.grad.shape == logits.shape


def nan_is_seen_by_all(rank):
    for surrogate in ("squared", "exponential", "hinge", "logistic"):
        logits = torch.zeros(3, 3, dtype=torch.float64)
        if rank == 0:
            logits[1, 1] = torch.nan
        for activation in ("softmax", "identity"):
            assert pair_loss(logits, torch.arange(3), surrogate=surrogate, activation=activation, sync=True).isnan()


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3])
def test_processes_equal_one_on_the_whole_batch(world, tmp_path):
    mp.spawn(compare, args=(world, tmp_path / "store"), nprocs=world)


def test_a_group_of_one(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        x, y, weight, _ = batch()
        alone = pair_loss(x[:, :5], y, weight=weight)
        assert torch.allclose(pair_loss(x[:, :5], y, weight=weight, sync=True), alone, rtol=1e-14)
    finally:
        dist.destroy_process_group()
