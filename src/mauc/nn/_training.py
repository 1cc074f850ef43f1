"""The training loop of :class:`mauc.nn.MAUCMLPClassifier`: progress, early stopping, a checkpoint after each epoch."""

import inspect
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Rows:
    """Some rows of the data, dense or CSR."""

    X: Any
    codes: Ints
    weight: Floats | None
    rows: Ints

    def batches(self, parts: Iterable[Any], device: torch.device) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Yield features, classes and weights of each part of the rows, made dense one part at a time."""
        for part in parts:
            rows = self.rows[part]
            weight = None if self.weight is None else torch.from_numpy(self.weight[rows].astype(np.float32)).to(device)
            yield dense(self.X[rows]).to(device), torch.from_numpy(self.codes[rows]).to(device), weight


def dense(rows: Any) -> Tensor:
    """Return rows of a dense or sparse matrix as a float32 tensor."""
    array = rows.toarray() if hasattr(rows, "toarray") else rows
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))


def rows_at_a_time(n_features: int) -> int:
    """Return how many rows take 64 MB when dense, 4096 at most."""
    return max(1, min(4096, (1 << 24) // max(1, n_features)))


def hold_out(codes: Ints, rows: Ints, fraction: float, rng: np.random.Generator, least: int = 4) -> tuple[Ints, Ints]:
    """Split the rows into training and validation by class; classes of fewer than ``least`` rows stay in training."""
    counts = np.bincount(codes[rows])
    take = np.maximum(np.rint(fraction * counts).astype(np.int64), 1)
    take = np.where(counts < least, 0, np.minimum(take, counts - 1))
    if np.count_nonzero(take) < 2:
        came = f"class sizes {counts[:8].tolist()}"
        advice = "collect more samples, or pass early_stopping=False"
        requirement = f"must have two classes of {least} samples or more for the hold-out of early_stopping"
        raise invalid("y", requirement, came, advice)
    shuffled = rng.permutation(rows)
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    in_validation = place < np.repeat(take, counts)
    return np.sort(by_class[~in_validation]), np.sort(by_class[in_validation])


def train(
    network: nn.Module, loss: nn.Module, rows: Rows, validation: Rows | None, s: Any, seed: int
) -> tuple[list[float], list[float]]:
    """Train the network in place, and return the loss and the validation score of each epoch.

    With validation rows the network is left at its best epoch. ``s`` is the classifier, whose parameters are read.
    """
    device, value_of = device_for(s.accelerator), _loss_function(loss, weighted=rows.weight is not None)
    trained = nn.ModuleList([network, loss]).to(device)  # the loss may have parameters too
    kind = torch.optim.SGD if s.optimizer == "sgd" else torch.optim.Adam
    momentum = {"momentum": s.momentum} if s.optimizer == "sgd" else {}
    optimizer = kind(trained.parameters(), lr=s.learning_rate, weight_decay=s.weight_decay, **momentum)
    sampler = ClassCoverageBatchSampler(rows.codes[rows.rows], s.batch_size, min_per_class=s.min_per_class, seed=seed)
    n_classes = int(rows.codes.max()) + 1
    shapes = [list(p.shape) for p in network.parameters()]
    run = {"n_samples": len(rows.rows), "n_classes": n_classes, "shapes": shapes, "seed": seed}
    losses: list[float] = []
    scores: list[float] = []
    best: dict[str, Tensor] | None = None
    saved = read_checkpoint(s.checkpoint_dir, run) if s.resume else None
    if saved is not None:
        trained.load_state_dict(saved["trained"])
        optimizer.load_state_dict(saved["optimizer"])
        losses, scores, best = saved["losses"], saved["scores"], saved["best"]
    while len(losses) < s.max_epochs and not (s.early_stopping and _stalled(scores, s.tol, s.patience)):
        for group in optimizer.param_groups:
            group["lr"] = s.learning_rate * s.lr_decay ** (len(losses) // s.lr_decay_every)
        sampler.set_epoch(len(losses))
        losses.append(_epoch(trained, value_of, optimizer, rows.batches(sampler, device)))
        if not math.isfinite(losses[-1]):
            came = f"a loss of {losses[-1]} in epoch {len(losses)}"
            advice = "lower learning_rate or alpha, or scale the features"
            raise invalid("learning_rate", "must let the loss stay finite", came, advice)
        if validation is not None:
            score = _score(network, validation, n_classes, s.pairs, device)
            if score > max(scores, default=-math.inf):
                best = {name: x.detach().cpu().clone() for name, x in network.state_dict().items()}
            scores.append(score)
        if s.checkpoint_dir is not None:
            state = {"trained": trained.state_dict(), "optimizer": optimizer.state_dict(), "best": best}
            memory = io.BytesIO()
            torch.save({"run": run, "losses": losses, "scores": scores, **state}, memory)
            write_whole(Path(s.checkpoint_dir, "last.ckpt"), memory.getvalue())
        if s.verbose:
            val = f", val_mauc {scores[-1]:.4f}" if scores else ""
            print(f"Epoch {len(losses)}/{s.max_epochs}, loss {losses[-1]:.4g}{val}", file=sys.stderr)
    if best is not None:
        network.load_state_dict(best)
    network.cpu().eval()
    return losses, scores


def device_for(accelerator: str) -> torch.device:
    """Return the device of an accelerator; ``"auto"`` is the best one there is."""
    if accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available():
        return torch.device("cuda")
    if accelerator in ("auto", "gpu", "mps") and torch.backends.mps.is_available():
        return torch.device("mps")
    if accelerator in ("gpu", "cuda", "mps"):
        raise invalid("accelerator", "must exist", f"{accelerator!r}, which this machine lacks", "pass 'auto'")
    return torch.device("cpu")


def _loss_function(loss: nn.Module, *, weighted: bool) -> Callable[..., Tensor]:
    """Return a function of logits, classes and weights: with the loss's third argument, or as a weighted mean."""
    if not weighted:
        return lambda logits, y, _: loss(logits, y)
    if len(inspect.signature(loss.forward).parameters) > 2:
        return loss
    if hasattr(loss, "reduction"):
        setattr(loss, "reduction", "none")  # noqa: B010 — mypy assumes that attributes of modules are tensors
        return lambda logits, y, weight: (loss(logits, y) * weight).sum() / weight.sum()
    advice = "give its forward a third argument, the weights of the samples, or pass no sample_weight"
    requirement = "must take sample weights where sample_weight is passed"
    raise invalid("loss", requirement, type(loss).__name__, advice)


def _stalled(scores: list[float], tol: float, patience: int) -> bool:
    """Return whether the last ``patience`` scores did not improve by ``tol``."""
    best, waited = -math.inf, 0
    for score in scores:
        best, waited = (score, 0) if score > best + tol else (best, waited + 1)
    return waited >= patience


def _epoch(
    trained: nn.ModuleList,
    value_of: Callable[..., Tensor],
    optimizer: torch.optim.Optimizer,
    batches: Iterable[tuple[Tensor, Tensor, Tensor | None]],
) -> float:
    """Train for one epoch, and return the mean loss of its minibatches."""
    trained.train()
    values = []
    for x, y, weight in batches:
        optimizer.zero_grad()
        value = value_of(trained[0](x), y, weight)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        values.append(value.detach())
    return torch.stack(values).mean().item()


@torch.no_grad()
def _score(network: nn.Module, rows: Rows, n_classes: int, pairs: Any, device: torch.device) -> float:
    """Return the multiclass AUC of the validation rows."""
    network.eval()
    metric = MAUC(n_classes, pairs=pairs).to(device)
    step = rows_at_a_time(rows.X.shape[1])
    parts = (slice(begin, begin + step) for begin in range(0, len(rows.rows), step))
    for x, y, weight in rows.batches(parts, device):
        metric.update(network(x).softmax(1), y, weight)
    return float(metric.compute())


def read_checkpoint(folder: Any, run: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """Return the checkpoint in a folder, if there is one; it must be of the same ``run`` if that is given."""
    path = Path(folder, "last.ckpt")
    if not path.exists():
        return None
    saved = dict(torch.load(path, map_location="cpu", weights_only=True))
    of_saved = saved.get("run")
    if of_saved is None or run not in (None, of_saved):
        advice = "pass an empty folder, or resume=False to start again"
        raise invalid("checkpoint_dir", f"must hold a run with {run}", of_saved, advice)
    return saved
