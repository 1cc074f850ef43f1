"""One fit of the deep experiments: a plain loop on the device; validation MAUC chooses the epoch."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.deep.networks import ranking
from experiments.deepauc import DeepAUCLoss, PPDOptimizer
from mauc._typing import Floats, Ints
from mauc._validation import is_sparse
from mauc.nn.functional import mauc_score
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["Batches", "Features", "Fit", "InOrder", "Schedule", "Shuffled", "fit", "logits_of", "ranked", "scores_of"]

DENSE_BYTES = 16 << 30
"""A sparse matrix is made dense on a GPU up to this size."""
STAGE_ENDS = (0.5, 0.75)
"""When the stages of the proximal primal-dual method end, as shares of the epochs."""


def dense(rows: Any) -> Tensor:
    """Return rows of a dense or sparse matrix as a float32 tensor."""
    array = rows.toarray() if is_sparse(rows) else rows
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def rows_at_a_time(n_features: int) -> int:
    """Return how many rows take 64 MB when dense, 4096 at most."""
    return max(1, min(4096, (1 << 24) // max(1, n_features)))


@dataclass(frozen=True)
class Schedule:
    """Optimiser, rates and steps."""

    optimizer: str
    learning_rate: float
    weight_decay: float
    lr_decay: float
    """Factor on the rate every ``lr_decay_every`` epochs."""
    lr_decay_every: int
    batch_size: int
    max_epochs: int


class Features:
    """Rows of a matrix as tensors on a device, a batch at a time."""

    def __init__(self, X: Any, place: torch.device) -> None:
        self.place = place
        self.n_features = int(X.shape[1])
        if is_sparse(X) and not (place.type == "cuda" and 4 * X.shape[0] * X.shape[1] <= DENSE_BYTES):
            self.X = X
            return
        if is_sparse(X):
            step = rows_at_a_time(self.n_features)
            self.X = torch.cat([dense(X[k : k + step]).to(place) for k in range(0, X.shape[0], step)])
        else:
            self.X = torch.from_numpy(X).to(place)

    def __getitem__(self, rows: Ints) -> Tensor:
        return self.take(rows, torch.from_numpy(rows).to(self.place))

    def take(self, rows: Ints, there: Tensor) -> Tensor:
        """Return some rows, given by their numbers on the host and on the device."""
        if isinstance(self.X, Tensor):
            return self.X[there]
        return dense(self.X[rows]).to(self.place)


class Shuffled:
    """All rows in random order, in batches of one size up to one row; another order in each epoch."""

    def __init__(self, n_rows: int, batch_size: int, seed: int) -> None:
        self.n_rows, self.n_batches, self.seed, self.epoch = n_rows, -(-n_rows // batch_size), seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Ints]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.n_rows)
        yield from np.array_split(order, self.n_batches)


class Batches:
    """A fixed number of batches per epoch: all methods take the same number of steps, whatever their rows."""

    def __init__(
        self, X: Features, y: Tensor, rows: Ints, order: Shuffled | ClassCoverageBatchSampler, n_batches: int
    ) -> None:
        self.X, self.y, self.rows, self.order, self.n_batches = X, y, rows, order, n_batches
        self._stream = self._endless()

    def _endless(self) -> Iterator[Any]:
        epoch = 0
        while True:
            self.order.set_epoch(epoch)
            yield from self.order
            epoch += 1

    def __len__(self) -> int:
        return self.n_batches

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        drawn = [self.rows[np.asarray(batch)] for batch in islice(self._stream, self.n_batches)]
        # The rows of all batches go to the device at once: a copy in every step would cost as much as the step.
        rows = torch.from_numpy(np.concatenate(drawn)).to(self.y.device)
        sizes = [len(batch) for batch in drawn]
        for host, some, y in zip(drawn, torch.split(rows, sizes), torch.split(self.y[rows], sizes), strict=True):
            yield self.X.take(host, some), y


class InOrder:
    """All of some rows, once."""

    def __init__(self, X: Features, rows: Ints) -> None:
        self.X, self.rows, self.step = X, rows, rows_at_a_time(X.n_features)

    def __iter__(self) -> Iterator[Tensor]:
        return (self.X[self.rows[k : k + self.step]] for k in range(0, len(self.rows), self.step))


@dataclass
class Fit:
    """The result of a fit; the network is at its best epoch."""

    network: nn.Module
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """Validation MAUC after each epoch that stayed finite."""
    diverged: int | None = None
    """The epoch, from 1, whose loss or logits were not finite; training ends there."""
    seconds: float = 0.0
    """Time of the training, without validation."""

    @property
    def best_epoch(self) -> int | None:
        """Return the best epoch, from 1; None where no epoch stayed finite."""
        return int(np.argmax(self.scores)) + 1 if self.scores else None


def fit(
    network: nn.Module,
    loss: nn.Module,
    schedule: Schedule,
    train: Batches,
    validation: InOrder,
    y_validation: Ints,
    *,
    log_prior: Tensor | None = None,
    seed: int = 0,
) -> Fit:
    """Train the network in place, and leave it at the epoch of the highest MAUC on the validation rows.

    Everything is on the device of the features; the host reads three numbers per epoch.

    Parameters
    ----------
    network, loss : Module
    schedule : Schedule
        The optimiser is ``adam``, ``sgd`` or, for :class:`experiments.deepauc.DeepAUCLoss`, ``ppd``.
    train : Batches
    validation : InOrder
    y_validation : (n,) array
        Their classes.
    log_prior : (C,) tensor, optional
        Score by the optimal scores of Theorem 2 instead of the softmax.
    seed : int, default=0
        Seed of the dropout.
    """
    place = train.X.place
    result, best = Fit(network), list[Tensor]()
    y_held = torch.from_numpy(y_validation).to(place)
    with _deterministic(place), _seeded(seed, place):
        network.to(place)
        loss.to(place)
        kept = [*network.parameters(), *network.buffers()]
        optimizer = _optimizer(network, loss, schedule, place)
        for epoch in range(schedule.max_epochs):
            began = time.perf_counter()
            _begin(epoch, optimizer, loss, schedule)
            mean = _train(network, loss, optimizer, train)
            result.seconds += time.perf_counter() - began
            logits = logits_of(network, validation)
            if not math.isfinite(mean) or not bool(logits.isfinite().all()):
                result.diverged = epoch + 1
                break
            score = mauc_score(ranking(logits, log_prior), y_held).item()
            if not result.scores or score > max(result.scores):
                best = [x.detach().clone() for x in kept]
            result.losses.append(mean)
            result.scores.append(score)
        with torch.no_grad():
            for x, value in zip(kept, best, strict=bool(best)):
                x.copy_(value)
    network.eval()
    return result


def _optimizer(network: nn.Module, loss: nn.Module, s: Schedule, place: torch.device) -> torch.optim.Optimizer:
    decay = s.weight_decay
    if s.optimizer == "ppd":
        assert isinstance(loss, DeepAUCLoss)  # schedules and losses are ours
        return PPDOptimizer(network.parameters(), loss, s.learning_rate, weight_decay=decay)
    parameters, fused = [*network.parameters(), *loss.parameters()], place.type == "cuda"
    if s.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=s.learning_rate, weight_decay=decay, fused=fused)
    return torch.optim.Adam(parameters, lr=s.learning_rate, weight_decay=decay, fused=fused)


def _train(network: nn.Module, loss: nn.Module, optimizer: torch.optim.Optimizer, train: Batches) -> float:
    """Take one step for each batch; return the mean of their losses."""
    network.train()
    total = torch.zeros((), device=train.X.place)
    for x, y in train:
        optimizer.zero_grad(set_to_none=True)
        value = loss(network(x), y)
        value.backward()
        optimizer.step()
        total += value.detach()
    return total.item() / len(train)


def _begin(epoch: int, optimizer: torch.optim.Optimizer, loss: nn.Module, s: Schedule) -> None:
    """Set rate and weights of an epoch, from 0."""
    set_epoch: Any = getattr(loss, "set_epoch", None)
    if set_epoch is not None:
        set_epoch(epoch)
    if isinstance(optimizer, PPDOptimizer):
        if epoch in [math.ceil(share * s.max_epochs) for share in STAGE_ENDS]:
            optimizer.end_stage()
        return
    rate = s.learning_rate * s.lr_decay ** (epoch // s.lr_decay_every)
    for group in optimizer.param_groups:
        group["lr"] = rate


def logits_of(network: nn.Module, rows: InOrder) -> Tensor:
    """Return the ``(n, C)`` logits on the device."""
    network.eval()
    with torch.inference_mode():
        return torch.cat([network(x) for x in rows])


def ranked(network: nn.Module, rows: InOrder, log_prior: Tensor | None = None) -> Tensor:
    """Return the ``(n, C)`` ranking scores on the device."""
    with _deterministic(rows.X.place):
        return ranking(logits_of(network.to(rows.X.place), rows), log_prior)


def scores_of(network: nn.Module, rows: InOrder, log_prior: Tensor | None = None) -> Floats:
    """Return :func:`ranked` on the host."""
    return ranked(network, rows, log_prior).cpu().numpy()


@contextmanager
def _seeded(seed: int, place: torch.device) -> Iterator[None]:
    """Use the random numbers of this seed; restore the generators of torch."""
    devices = [torch.cuda.current_device()] if place.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def _deterministic(place: torch.device) -> Iterator[None]:
    """Make the numbers equal in every run on one kind of device.

    On a CPU use one thread, because sums depend on the number of threads; run several processes instead. On a GPU use
    no atomic additions, and TF32 for matrix products of every method: in float32 they would be most of a fit.
    """
    if place.type != "cuda":
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when cuBLAS starts
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    switches: Any = torch.utils.deterministic
    precision = torch.get_float32_matmul_precision()
    filled = switches.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_float32_matmul_precision("high")
    switches.fill_uninitialized_memory = False  # nothing here reads what it has not written
    try:
        yield
    finally:
        switches.fill_uninitialized_memory = filled
        torch.set_float32_matmul_precision(precision)
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
