"""One fit of the deep experiments: Lightning trains, validation MAUC chooses the epoch, divergence is told."""

import copy
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mauc._typing import Floats, Ints
from mauc._validation import is_sparse
from mauc.experiments.deep.networks import ranking_scores
from mauc.metrics import mauc_score
from mauc.nn._engine.rows import dense, rows_at_a_time
from mauc.nn._engine.training import Epochs, Schedule, plain_trainer, quiet
from mauc.nn.baselines import LDAMLoss
from mauc.nn.deepauc import DeepAUCLoss, PPDOptimizer
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["Batches", "Features", "Fit", "InOrder", "Schedule", "Shuffled", "fit", "scores_of"]

DENSE_BYTES = 16 << 30
"""A sparse matrix is made dense on a GPU up to this size."""
STAGE_ENDS = (0.5, 0.75)
"""When the stages of the proximal primal-dual method end, as shares of the epochs."""


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
        if isinstance(self.X, Tensor):
            return self.X[torch.from_numpy(rows).to(self.place)]
        return dense(self.X[rows]).to(self.place)


class Shuffled:
    """All rows in random order, in batches of one size up to one row; another order in each epoch."""

    def __init__(self, n_rows: int, batch_size: int, seed: int) -> None:
        self.n_rows, self.n_batches, self.seed, self.epoch = n_rows, -(-n_rows // batch_size), seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Fixes the order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Ints]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.n_rows)
        yield from np.array_split(order, self.n_batches)


class Batches:
    """As many batches in an epoch as asked for: all methods take the same number of steps, whatever their rows."""

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
        for batch in islice(self._stream, self.n_batches):
            rows = self.rows[np.asarray(batch)]
            yield self.X[rows], self.y[torch.from_numpy(rows).to(self.y.device)]


class InOrder:
    """All of some rows, once."""

    def __init__(self, X: Features, rows: Ints) -> None:
        self.X, self.rows, self.step = X, rows, rows_at_a_time(X.n_features)

    def __len__(self) -> int:
        return -(-len(self.rows) // self.step)

    def __iter__(self) -> Iterator[Tensor]:
        return (self.X[self.rows[k : k + self.step]] for k in range(0, len(self.rows), self.step))


@dataclass
class Fit:
    """What came of a fit; the network is left at its best epoch."""

    network: nn.Module
    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """Validation MAUC after each epoch that stayed finite."""
    diverged: int | None = None
    """The epoch, from 1, whose loss or logits were not finite; training ends there."""
    seconds: float = 0.0
    """Of the training, without its validation."""

    @property
    def best_epoch(self) -> int | None:
        """From 1; None where no epoch stayed finite."""
        return int(np.argmax(self.scores)) + 1 if self.scores else None


class _Training(Epochs):
    """Divergence is told instead of raised, and the optimiser of :class:`mauc.nn.deepauc.DeepAUCLoss` is known."""

    def __init__(
        self, result: Fit, loss: nn.Module, schedule: Schedule, y_validation: Ints, log_prior: Tensor | None
    ) -> None:
        super().__init__(result.network, loss, schedule)
        self.result, self.y_validation, self.log_prior = result, y_validation, log_prior
        self._logits, self._began = list[Tensor](), 0.0
        self._best: dict[str, Any] | None = None

    def configure_optimizers(self) -> torch.optim.Optimizer:
        s = self.schedule
        if s.optimizer != "ppd":
            return super().configure_optimizers()
        assert isinstance(self.loss, DeepAUCLoss)  # schedules and losses are ours
        return PPDOptimizer(
            self.network.parameters(), self.loss, s.learning_rate, weight_decay=s.weight_decay, method="adagrad"
        )

    def set_rate(self, optimizer: torch.optim.Optimizer) -> None:
        if not isinstance(optimizer, PPDOptimizer):
            super().set_rate(optimizer)
        elif self.current_epoch in [math.ceil(share * self.schedule.max_epochs) for share in STAGE_ENDS]:
            optimizer.end_stage()

    def on_train_epoch_start(self) -> None:
        super().on_train_epoch_start()
        if isinstance(self.loss, LDAMLoss):
            self.loss.set_epoch(self.current_epoch)
        self._began = time.perf_counter()

    def training_step(self, batch: tuple[Tensor, Tensor], _: int) -> Tensor:
        x, y = batch
        return self.counted(self.loss(self.network(x), y))

    def on_validation_start(self) -> None:
        self._logits = []
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.result.seconds += time.perf_counter() - self._began

    def validation_step(self, batch: Tensor, _: int) -> None:
        self._logits.append(self.network(batch))

    def on_validation_epoch_end(self) -> None:
        logits = torch.cat(self._logits)
        mean = self.mean_loss()
        if not math.isfinite(mean) or not bool(logits.isfinite().all()):
            self.result.diverged = self.current_epoch + 1
            self.trainer.should_stop = True
            return
        self.result.losses.append(mean)
        scores = ranking_scores(logits, self.log_prior)
        score = mauc_score(self.y_validation, scores, labels=np.arange(scores.shape[1]), absent="ignore")
        if not self.result.scores or score > max(self.result.scores):
            self._best = copy.deepcopy(self.network.state_dict())
        self.result.scores.append(score)

    def on_fit_end(self) -> None:
        if self._best is not None:
            self.network.load_state_dict(self._best)


def fit(
    network: nn.Module,
    loss: nn.Module,
    schedule: Schedule,
    train: Batches,
    validation: InOrder,
    y_validation: Ints,
    *,
    log_prior: Tensor | None = None,
) -> Fit:
    """Train the network in place, and leave it at the epoch of the highest MAUC on the validation rows.

    Parameters
    ----------
    network, loss : Module
    schedule : Schedule
        Its optimiser is ``adam``, ``sgd`` or ``ppd``, the last for :class:`mauc.nn.deepauc.DeepAUCLoss`.
    train : Batches
    validation : InOrder
    y_validation : (n,) array
        Their classes.
    log_prior : (C,) tensor, optional
        Judge by the optimal scores of Theorem 2 instead of the softmax.
    """
    result = Fit(network)
    module = _Training(result, loss, schedule, y_validation, log_prior)
    place = train.X.place
    with TemporaryDirectory(prefix="mauc-") as scratch, quiet(), _deterministic(place):
        plain_trainer(place.type, schedule.max_epochs, scratch).fit(module, train, validation)
    network.eval()
    return result


def scores_of(network: nn.Module, rows: InOrder, log_prior: Tensor | None = None) -> Floats:
    """``(n, C)`` what the rows are ranked by."""
    with torch.inference_mode(), _deterministic(rows.X.place):
        network = network.to(rows.X.place).eval()
        return np.concatenate([ranking_scores(network(x), log_prior) for x in rows])


@contextmanager
def _deterministic(place: torch.device) -> Iterator[None]:
    """The same numbers in every run on one kind of device, whatever else runs there.

    On a CPU one thread, for sums depend on how many share them: run several processes instead. On a GPU no sums by
    atomic addition.
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
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
