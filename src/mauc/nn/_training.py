"""The training loop of :class:`mauc.nn.MAUCMLPClassifier`: progress, early stopping, a checkpoint after each epoch."""

import inspect
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mauc._io import write_whole
from mauc._typing import Floats, Ints
from mauc._validation import invalid
from mauc.nn.metric import MAUC
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["History", "Rows", "dense", "hold_out", "read_seed", "rows_at_a_time", "train"]

LAST, BEST = "last.ckpt", "best.ckpt"


@dataclass(frozen=True)
class Rows:
    """Some rows of the data, dense or CSR, made dense a batch at a time."""

    X: Any
    codes: Ints
    weight: Floats | None
    rows: Ints

    def batches(self, parts: Iterable[Any], device: torch.device) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Features, classes and weights of the rows that each part names."""
        for part in parts:
            rows = self.rows[part]
            weight = None if self.weight is None else torch.from_numpy(self.weight[rows].astype(np.float32)).to(device)
            yield dense(self.X[rows]).to(device), torch.from_numpy(self.codes[rows]).to(device), weight

    def in_order(self) -> Iterator[slice]:
        """All rows, some at a time."""
        step = rows_at_a_time(self.X.shape[1])
        return (slice(begin, begin + step) for begin in range(0, len(self.rows), step))


def dense(rows: Any) -> Tensor:
    """Rows of a dense or sparse matrix as a float32 tensor."""
    array = rows.toarray() if hasattr(rows, "toarray") else rows
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def rows_at_a_time(n_features: int) -> int:
    """As many rows as make 64 MB when dense, 4096 at most."""
    return max(1, min(4096, (1 << 24) // max(1, n_features)))


def hold_out(codes: Ints, rows: Ints, fraction: float, rng: np.random.Generator, least: int = 4) -> tuple[Ints, Ints]:
    """Training and validation part of the rows, stratified; classes of fewer than ``least`` rows stay in training."""
    counts = np.bincount(codes[rows])
    take = np.maximum(np.rint(fraction * counts).astype(np.int64), 1)
    take = np.where(counts < least, 0, np.minimum(take, counts - 1))
    if np.count_nonzero(take) < 2:
        came = f"class sizes {counts[:8].tolist()}"
        advice = "pass X_val and y_val, or early_stopping=False"
        requirement = f"must have two classes of {least} samples or more for the hold-out of early_stopping"
        raise invalid("y", requirement, came, advice)
    shuffled = rng.permutation(rows)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    held = place < np.repeat(take, counts)
    return np.sort(by_class[~held]), np.sort(by_class[held])


@dataclass
class History:
    """What is known after a fit."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """Validation score after each epoch; empty without validation."""

    def stopped(self, s: Any) -> bool:
        """Whether the training is at its end: all epochs, or as many without progress as are allowed."""
        best, waited = -math.inf, 0
        for score in self.scores if s.early_stopping else ():
            best, waited = (score, 0) if score > best + s.tol else (best, waited + 1)
        return len(self.losses) >= s.max_epochs or waited >= s.patience


def train(network: nn.Module, loss: nn.Module, train_rows: Rows, validation: Rows | None, s: Any, seed: int) -> History:
    """Train the network in place, and leave it at its best epoch where there is a validation part, on the CPU.

    ``s`` is the classifier, of whose parameters the loop is made.
    """
    device, value_of = _device(s.accelerator), _weighted(loss) if train_rows.weight is not None else _unweighted(loss)
    run: dict[str, Any] = {
        "n_samples": len(train_rows.rows),
        "n_classes": int(train_rows.codes.max()) + 1,
        "shapes": [list(p.shape) for p in network.parameters()],
        "seed": seed,
    }
    network.to(device)
    loss.to(device)
    # The loss may have parameters of its own.
    trained = nn.ModuleList([network, loss])
    optimizer, history = _optimizer(trained, s), History()
    best: dict[str, Tensor] | None = None
    folder = None if s.checkpoint_dir is None else Path(s.checkpoint_dir)
    if folder is not None and s.resume and (folder / LAST).exists():
        history, best = _restore(folder, run, trained, optimizer)
    sampler = ClassCoverageBatchSampler(
        train_rows.codes[train_rows.rows], s.batch_size, min_per_class=s.min_per_class, seed=seed
    )
    while not history.stopped(s):
        history.losses.append(_epoch(trained, value_of, optimizer, train_rows, sampler, len(history.losses), s, device))
        is_best = False
        if validation is not None:
            score = _score(network, validation, run["n_classes"], s.pairs, device)
            is_best = score > max(history.scores, default=-math.inf)
            history.scores.append(score)
        if is_best:
            best = {name: x.detach().cpu().clone() for name, x in network.state_dict().items()}
        if folder is not None:
            _save(folder, run, history, trained, optimizer, best if is_best else None)
        if s.verbose:
            _report(history, s.max_epochs)
    if best is not None:
        network.load_state_dict(best)
    network.cpu().eval()
    return history


def _device(accelerator: str) -> torch.device:
    if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        return torch.device("cuda")
    if accelerator in ("auto", "gpu", "mps") and torch.backends.mps.is_available():
        return torch.device("mps")
    if accelerator in ("gpu", "cuda", "mps"):
        raise invalid("accelerator", "must be there", f"{accelerator!r}, which this machine lacks", "pass 'auto'")
    return torch.device("cpu")


def _optimizer(trained: nn.Module, s: Any) -> torch.optim.Optimizer:
    if s.optimizer == "sgd":
        return torch.optim.SGD(
            trained.parameters(), lr=s.learning_rate, momentum=s.momentum, weight_decay=s.weight_decay
        )
    return torch.optim.Adam(trained.parameters(), lr=s.learning_rate, weight_decay=s.weight_decay)


def _epoch(
    trained: nn.ModuleList,
    value_of: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    rows: Rows,
    sampler: ClassCoverageBatchSampler,
    epoch: int,
    s: Any,
    device: torch.device,
) -> float:
    """The mean loss of the minibatches of one epoch."""
    trained.train()
    sampler.set_epoch(epoch)
    for group in optimizer.param_groups:
        group["lr"] = s.learning_rate * s.lr_decay ** (epoch // s.lr_decay_every)
    total, steps = torch.zeros((), device=device), 0
    for x, y, weight in rows.batches(sampler, device):
        optimizer.zero_grad()
        value = value_of(trained[0](x), y, weight)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total, steps = total + value.detach(), steps + 1
    mean = (total / steps).item()
    if not math.isfinite(mean):
        came = f"a loss of {mean} in epoch {epoch + 1}"
        advice = "lower learning_rate or alpha, or scale the features"
        raise invalid("learning_rate", "must let the loss stay finite", came, advice)
    return mean


@torch.no_grad()
def _score(network: nn.Module, rows: Rows, n_classes: int, pairs: Any, device: torch.device) -> float:
    """Multiclass AUC of the validation part."""
    network.eval()
    metric = MAUC(n_classes, pairs=pairs).to(device)
    for x, y, weight in rows.batches(rows.in_order(), device):
        metric.update(network(x).softmax(1), y, weight)
    return float(metric.compute())


def _unweighted(loss: nn.Module) -> Callable[..., Tensor]:
    return lambda logits, y, _: loss(logits, y)


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


def _report(history: History, max_epochs: int) -> None:
    """A line of progress."""
    shown = f"Epoch {len(history.losses)}/{max_epochs}, loss {history.losses[-1]:.4g}"
    shown += f", val_mauc {history.scores[-1]:.4f}" if history.scores else ""
    sys.stderr.write(f"{shown}\n")


def read_seed(folder: Any) -> int | None:
    """The seed of the run in a folder, if there is one."""
    path = Path(folder, LAST)
    return int(_read(path)["run"]["seed"]) if path.exists() else None


def _read(path: Path) -> dict[str, Any]:
    found = torch.load(path, map_location="cpu", weights_only=True)
    if "run" not in found:
        advice = "pass an empty folder, or resume=False to start anew"
        raise invalid("checkpoint_dir", "must hold a run of this version", f"{path.name} of another one", advice)
    return dict(found)


def _save(
    folder: Path,
    run: dict[str, Any],
    history: History,
    trained: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: dict[str, Tensor] | None,
) -> None:
    """Both files whole or not at all, the best epoch first: a kill in between leaves one that is read again."""
    if best is not None:
        _write(folder / BEST, {"run": run, "network": best})
    state = {"trained": trained.state_dict(), "optimizer": optimizer.state_dict(), "history": asdict(history)}
    _write(folder / LAST, {"run": run, **state})


def _write(path: Path, content: dict[str, Any]) -> None:
    memory = io.BytesIO()
    torch.save(content, memory)
    write_whole(path, memory.getvalue())


def _restore(
    folder: Path, run: dict[str, Any], trained: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[History, dict[str, Tensor] | None]:
    """The last epoch of the same run, and the network of its best one."""
    saved = _read(folder / LAST)
    for key, value in run.items():
        if saved["run"][key] != value:
            came = f"{key} {saved['run'][key]} where this fit has {value}"
            advice = "pass an empty folder, or resume=False to start anew"
            raise invalid("checkpoint_dir", "must hold a run on the same data and network", came, advice)
    trained.load_state_dict(saved["trained"])
    optimizer.load_state_dict(saved["optimizer"])
    history = History(**saved["history"])
    return history, dict(_read(folder / BEST)["network"]) if history.scores else None
