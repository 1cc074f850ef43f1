"""Chunks give the loss and the gradients of one pass over all rows."""

import re
from datetime import timedelta
from itertools import combinations_with_replacement

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from pair_loss import PairLoss
from torch import nn

from mauc.nn import full_batch_backward

LOSSES = [PairLoss("exponential", alpha=4.0), PairLoss("squared"), PairLoss("hinge"), nn.CrossEntropyLoss()]


def problem(n=50, seed=0):
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, 6, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 4, (n,), generator=generator)
    y[y == 3] = torch.where(torch.arange(int((y == 3).sum())) > 1, 0, 3)
    return X, y


def network(*extra):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), *extra, nn.ReLU(), nn.Linear(8, 4)).double()


def gradients(model):
    return [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("chunk_size", [1, 7, 50, 1000])
@pytest.mark.parametrize("loss_fn", LOSSES, ids=["exponential", "squared", "hinge", "cross-entropy"])
def test_equals_one_pass(loss_fn, chunk_size):
    X, y = problem()
    plain, chunked = network(), network()
    expected = loss_fn(plain(X), y)
    expected.backward()
    loss = full_batch_backward(chunked, loss_fn, X, y, chunk_size=chunk_size)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradients(chunked), gradients(plain))


def test_weights_and_gradients_add_up():
    X, y = problem()
    weight = torch.rand(50, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plain, chunked = network(), network()
    loss_fn = PairLoss("squared")
    (loss_fn(plain(X), y, weight) + loss_fn(plain(X), y)).backward()
    full_batch_backward(chunked, loss_fn, X, y, chunk_size=8, weight=weight)
    full_batch_backward(chunked, loss_fn, X, y, chunk_size=8)
    torch.testing.assert_close(gradients(chunked), gradients(plain))


def test_batch_normalisation_in_eval_mode_and_once_only_buffers():
    X, y = problem()
    plain, chunked = network(nn.BatchNorm1d(8)), network(nn.BatchNorm1d(8))
    for model in (plain, chunked):
        model[1].running_mean.fill_(0.3)
        model.eval()
    PairLoss()(plain(X), y).backward()
    full_batch_backward(chunked, PairLoss(), X, y, chunk_size=8)
    torch.testing.assert_close(gradients(chunked), gradients(plain))
    chunked.train()
    full_batch_backward(chunked, PairLoss(), X, y, chunk_size=25)
    assert chunked[1].num_batches_tracked == 2


def test_batch_normalisation_in_training_mode_is_that_of_the_chunks():
    X, y = problem()
    plain, chunked = network(nn.BatchNorm1d(8)), network(nn.BatchNorm1d(8))
    PairLoss()(torch.cat([plain(part) for part in X.split(25)]), y).backward()
    full_batch_backward(chunked, PairLoss(), X, y, chunk_size=25)
    torch.testing.assert_close(gradients(chunked), gradients(plain))


def test_dropout_draws_the_same_masks_in_both_passes():
    X, y = problem()
    plain, chunked = network(nn.Dropout(0.5)), network(nn.Dropout(0.5))
    torch.manual_seed(3)
    PairLoss()(torch.cat([plain(part) for part in X.split(8)]), y).backward()
    after = torch.get_rng_state()
    torch.manual_seed(3)
    full_batch_backward(chunked, PairLoss(), X, y, chunk_size=8)
    torch.testing.assert_close(gradients(chunked), gradients(plain))
    assert torch.equal(torch.get_rng_state(), after)


def test_graph_of_one_chunk_only():
    """The largest batch that the model sees with a graph is a chunk."""
    X, y = problem()
    model, sizes = network(), []
    model.register_forward_hook(lambda _, inputs, output: sizes.append((len(inputs[0]), output.requires_grad)))
    full_batch_backward(model, PairLoss(), X, y, chunk_size=20)
    assert sizes == [(20, False), (20, False), (10, False), (20, True), (20, True), (10, True)]


@pytest.mark.gpu
def test_rows_move_to_the_gpu_a_chunk_at_a_time():
    X, y = problem()
    plain, chunked = network(nn.Dropout(0.5)).cuda(), network(nn.Dropout(0.5)).cuda()
    torch.manual_seed(3)
    PairLoss()(torch.cat([plain(part.cuda()) for part in X.split(8)]), y.cuda()).backward()
    torch.manual_seed(3)
    full_batch_backward(chunked, PairLoss(), X, y, chunk_size=8)
    torch.testing.assert_close(gradients(chunked), gradients(plain))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chunk_size": 0}, "chunk_size must be a whole number of at least 1, got 0"),
        (
            {"target": torch.zeros(3)},
            "X must have one row per target, and at least one, got 50 rows for 3 targets: pass",
        ),
    ],
)
def test_bad_arguments(arguments, message):
    X, y = problem()
    with pytest.raises(ValueError, match=re.escape(message)):
        full_batch_backward(
            **{"model": network(), "loss_fn": PairLoss(), "X": X, "target": y, "chunk_size": 5, **arguments}
        )


def in_ranks(rank, world, file):
    """Every split of 30 rows among the ranks, empty parts included: gradients of one process on all rows."""
    torch.set_num_threads(1)
    limit = timedelta(seconds=60)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world, timeout=limit)
    X, y = problem(30)
    steps = range(0, 31, 1 if world == 2 else 5)
    for cut in combinations_with_replacement(steps, world - 1):
        edges = [0, *cut, 30]
        mine = slice(edges[rank], edges[rank + 1])
        plain, each = network(nn.BatchNorm1d(8)), network(nn.BatchNorm1d(8))
        for model in (plain, each):
            model[1].running_mean.fill_(0.3)
            model.eval()
        each[1].running_mean.add_(rank)  # DistributedDataParallel copies the buffers of rank 0
        for _ in range(2):
            PairLoss("squared")(plain(X), y).backward()
        chunked = nn.parallel.DistributedDataParallel(each)
        for _ in range(2):
            full_batch_backward(chunked, PairLoss("squared", sync=True), X[mine], y[mine], chunk_size=6)
        torch.testing.assert_close(gradients(chunked), gradients(plain))
    with pytest.raises(ValueError, match="model must be a DistributedDataParallel, or have no part that communicates"):
        full_batch_backward(nn.Sequential(chunked), PairLoss(), X, y, chunk_size=6)
    del chunked
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3])
def test_ranks_with_different_numbers_of_chunks(world, tmp_path):
    mp.spawn(in_ranks, args=(world, tmp_path / "store"), nprocs=world)
