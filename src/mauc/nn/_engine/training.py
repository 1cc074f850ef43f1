"""The training of :class:`mauc.nn.MAUCMLPClassifier` by Lightning; imported when a fit begins, for Lightning's import
takes seconds.
"""

import inspect
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

from mauc._validation import invalid
from mauc.nn._engine.rows import Rows, rows_at_a_time
from mauc.nn._engine.schedule import Schedule
from mauc.nn.metric import MAUC
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["Epochs", "History", "Settings", "plain_trainer", "quiet", "read_seed", "train"]

LAST, BEST, SCORE = "last.ckpt", "best.ckpt", "val_mauc"


@dataclass(frozen=True, kw_only=True)
class Settings(Schedule):
    """How to train; the names are those of the classifier."""

    min_per_class: int
    patience: int | None
    """Epochs without progress before the end; None: train all epochs."""
    tol: float
    pairs: Any
    accelerator: str
    checkpoint_dir: str | None
    resume: bool
    verbose: int
    seed: int


@dataclass
class History:
    """What is known after a fit."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """Validation score after each epoch; empty without validation."""


class Epochs(LightningModule):
    """A network, trained by its loss at the rates of a schedule, and the mean loss of each epoch.

    A subclass adds ``training_step``, which passes each loss through :meth:`counted`, and what it does with the rest.
    """

    def __init__(self, network: nn.Module, loss: nn.Module, schedule: Schedule) -> None:
        super().__init__()
        self.network, self.loss, self.schedule = network, loss, schedule
        self._sum, self._count = torch.zeros(()), 0

    def configure_optimizers(self) -> torch.optim.Optimizer:
        s = self.schedule
        if s.optimizer == "sgd":
            return torch.optim.SGD(
                self.parameters(), lr=s.learning_rate, momentum=s.momentum, weight_decay=s.weight_decay
            )
        return torch.optim.Adam(self.parameters(), lr=s.learning_rate, weight_decay=s.weight_decay)

    def on_train_epoch_start(self) -> None:
        self.set_rate(self.trainer.optimizers[0])
        self._sum, self._count = torch.zeros((), device=self.device), 0

    def set_rate(self, optimizer: torch.optim.Optimizer) -> None:
        """The rate of the epoch that begins."""
        # From the number of the epoch, not by a scheduler: Lightning saves the last epoch before its schedulers step,
        # so a resumed run would be one step behind.
        s = self.schedule
        for group in optimizer.param_groups:
            group["lr"] = s.learning_rate * s.lr_decay ** (self.current_epoch // s.lr_decay_every)

    def counted(self, value: Tensor) -> Tensor:
        """The loss of a step, taken into the mean of the epoch."""
        self._sum, self._count = self._sum + value.detach(), self._count + 1
        return value

    def mean_loss(self) -> float:
        """Of the steps of this epoch so far."""
        return (self._sum / self._count).item()


class Training(Epochs):
    """The network with its loss, optimiser and validation score."""

    def __init__(self, network: nn.Module, loss: nn.Module, settings: Settings, weighted: bool, run: dict[str, Any]):
        super().__init__(network, loss, settings)
        self.value = _weighted(loss) if weighted else lambda logits, y, _: loss(logits, y)
        self.run, self.history = run, History()
        self.metric = MAUC(run["n_classes"], pairs=settings.pairs)

    def training_step(self, batch: tuple[Tensor, Tensor, Tensor | None], _: int) -> Tensor:
        x, y, weight = batch
        return self.counted(self.value(self.network(x), y, weight))

    def on_train_epoch_end(self) -> None:
        mean = self.mean_loss()
        self.history.losses.append(mean)
        if not math.isfinite(mean):
            came = f"a loss of {mean} in epoch {self.current_epoch + 1}"
            advice = "lower learning_rate or alpha, or scale the features"
            raise invalid("learning_rate", "must let the loss stay finite", came, advice)
        self.log("loss", mean, prog_bar=True)

    def validation_step(self, batch: tuple[Tensor, Tensor, Tensor | None], _: int) -> None:
        x, y, weight = batch
        self.metric.update(self.network(x).softmax(1), y, weight)

    def on_validation_epoch_end(self) -> None:
        score = self.metric.compute()
        self.metric.reset()
        self.history.scores.append(score.item())
        self.log(SCORE, score, prog_bar=True)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["mauc"] = {**self.run, "losses": self.history.losses, "scores": self.history.scores}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        saved = checkpoint["mauc"]
        self.history = History(list(saved["losses"]), list(saved["scores"]))


def _weighted(loss: nn.Module) -> Callable[..., Tensor]:
    """The loss of weighted samples: by its own third argument, or as the weighted mean of the samples' losses."""
    if len(inspect.signature(loss.forward).parameters) > 2:
        return loss
    if hasattr(loss, "reduction"):
        setattr(loss, "reduction", "none")  # noqa: B010 — mypy takes attributes of modules for tensors
        return lambda logits, y, weight: (loss(logits, y) * weight).sum() / weight.sum()
    advice = "give its forward a third argument, the weights of the samples, or pass no sample_weight"
    requirement = "must take sample weights where sample_weight is passed"
    raise invalid("loss", requirement, type(loss).__name__, advice)


def read_seed(folder: str | None, resume: bool) -> int | None:
    """The seed of the run that is to be resumed, if there is one."""
    if folder is None or not resume or not Path(folder, LAST).exists():
        return None
    return int(_read(Path(folder, LAST))["mauc"]["seed"])


def train(network: nn.Module, loss: nn.Module, train_rows: Rows, validation: Rows | None, s: Settings) -> History:
    """Train the network in place, and leave it at its best epoch where there is a validation part, on the CPU."""
    run = {
        "n_samples": len(train_rows),
        "n_classes": int(train_rows.codes.max()) + 1,
        "shapes": [list(p.shape) for p in network.parameters()],
        "seed": s.seed,
    }
    module = Training(network, loss, s, train_rows.weight is not None, run)
    sampler = ClassCoverageBatchSampler(
        train_rows.codes[train_rows.rows], s.batch_size, min_per_class=s.min_per_class, seed=s.seed
    )
    with TemporaryDirectory(prefix="mauc-") as scratch, quiet():
        folder = Path(s.checkpoint_dir or scratch)
        last = _resumable(folder / LAST, run) if s.resume and s.checkpoint_dir is not None else None
        callbacks: list[Callback] = []
        best = None
        if validation is not None:
            best = _checkpoint(folder, BEST, monitor=SCORE, mode="max", save_weights_only=True)
            callbacks.append(best)
            if s.patience is not None:
                callbacks.append(EarlyStopping(SCORE, mode="max", patience=s.patience, min_delta=s.tol))
        if s.checkpoint_dir is not None:
            callbacks.append(_checkpoint(folder, LAST, save_on_train_epoch_end=True))
        trainer = plain_trainer(s.accelerator, s.max_epochs, scratch, callbacks, progress=bool(s.verbose))
        if last is not None and _finished(last, s):
            module.on_load_checkpoint(last)
            module.load_state_dict(last["state_dict"])
        else:
            trainer.fit(
                module,
                _loader(train_rows, sampler),
                None if validation is None else _loader(validation, _in_order(validation)),
                ckpt_path=None if last is None else str(folder / LAST),
            )
        if best is not None:
            module.load_state_dict(_read(folder / BEST)["state_dict"])
    network.cpu().eval()
    return module.history


def plain_trainer(
    accelerator: str, max_epochs: int, scratch: str, callbacks: Sequence[Callback] = (), *, progress: bool = False
) -> Trainer:
    """One device, no logger, no trial run of the validation; checkpoints where a callback makes them."""
    return Trainer(
        accelerator=accelerator,
        devices=1,
        max_epochs=max_epochs,
        callbacks=list(callbacks),
        logger=False,
        enable_checkpointing=any(isinstance(c, ModelCheckpoint) for c in callbacks),
        enable_progress_bar=progress,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        default_root_dir=scratch,
    )


def _in_order(rows: Rows) -> BatchSampler:
    return BatchSampler(SequentialSampler(rows), rows_at_a_time(rows.X.shape[1]), drop_last=False)


def _loader(rows: Rows, batches: Any) -> DataLoader[Any]:
    # Its own generator: the loader would draw a number from the global one.
    return DataLoader(rows, batch_sampler=batches, collate_fn=_as_it_is, generator=torch.Generator())


def _as_it_is(batch: Any) -> Any:
    return batch


def _checkpoint(folder: Path, name: str, **options: Any) -> ModelCheckpoint:
    return ModelCheckpoint(
        folder, filename=name.removesuffix(".ckpt"), save_top_k=1, enable_version_counter=False, **options
    )


def _read(path: Path) -> dict[str, Any]:
    return dict(torch.load(path, map_location="cpu", weights_only=True))


def _resumable(path: Path, run: dict[str, Any]) -> dict[str, Any] | None:
    """The last epoch of the same run, if there is one."""
    if not path.exists():
        return None
    checkpoint = _read(path)
    saved = checkpoint["mauc"]
    for key, value in run.items():
        if saved[key] != value:
            came = f"{key} {saved[key]} where this fit has {value}"
            advice = "pass an empty folder, or resume=False to start anew"
            raise invalid("checkpoint_dir", "must hold a run on the same data and network", came, advice)
    return checkpoint


def _finished(checkpoint: dict[str, Any], s: Settings) -> bool:
    states = checkpoint["callbacks"].items()
    stopped = s.patience is not None and any(k.startswith("EarlyStopping") and v["stopped_epoch"] for k, v in states)
    return stopped or len(checkpoint["mauc"]["losses"]) >= s.max_epochs


@contextmanager
def quiet() -> Iterator[None]:
    """Without Lightning's remarks on hardware, data loaders and folders."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PossibleUserWarning)
            # The last is Lightning's own call of what torch 2.13 deprecates.
            for message in (".*Checkpoint directory .* exists", ".*available but not used", ".*treespec, LeafSpec"):
                warnings.filterwarnings("ignore", message=message)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
