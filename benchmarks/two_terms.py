"""Schedules of the two terms, a warm start of alpha, a learnt temperature, covered batches, and what to rank by.

Needs the features of CIFAR-100-Imb at 32 pixels, a set of the development list, and is made for a GPU:
``python -m benchmarks.two_terms DATA_HOME [seeds] [processes]``, with 0 processes the table of what is there. Every
variant has the network of the paper, two learning rates and the same seeds; its best epoch and rate are chosen by
validation MAUC, which is also what is reported. No test row is looked at.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mauc import mauc_score
from mauc.experiments.deep import data as deep_data
from mauc.experiments.deep.fit import Batches, Features, InOrder, Shuffled, fit, logits_of
from mauc.experiments.deep.methods import recipe_of
from mauc.experiments.deep.networks import network, ranking_scores
from mauc.experiments.report_parts import markdown_table
from mauc.experiments.store import Cell, Store, compute, missing_of
from mauc.nn import ClassCoverageBatchSampler, MAUCLoss

DATASET = "cifar100-imb-32px"
RATES = (3e-4, 1e-3)
EPOCHS, DECAY, DROPOUT = 50, 1e-4, 0.5


class Staged(nn.Module):
    """One loss for each epoch."""

    def __init__(self, of_epoch: Callable[[float], nn.Module]) -> None:
        super().__init__()
        self.losses = nn.ModuleList(of_epoch(epoch / (EPOCHS - 1)) for epoch in range(EPOCHS))
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Which one counts."""
        self.epoch = epoch

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """The loss of this epoch."""
        value: Tensor = self.losses[self.epoch](logits, y)
        return value


class Tempered(nn.Module):
    """The ranking term of scores whose scale is learnt beside the network, and the log-loss as it is."""

    def __init__(self, counts: Any, activation: str, alpha: float) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.rank = MAUCLoss("exponential", alpha=alpha, activation=activation)
        self.log = MAUCLoss(log_loss="only", class_counts=counts)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """The sum."""
        value: Tensor = self.rank(self.log_scale.exp() * logits, y) + self.log(logits, y)
        return value


def both(counts: Any, activation: str = "sigmoid", alpha: float = 8.0, log_loss: float | str = 1.0) -> nn.Module:
    """The sum of the docs."""
    return MAUCLoss("exponential", alpha=alpha, activation=activation, log_loss=log_loss, class_counts=counts)


@dataclass(frozen=True)
class Variant:
    """A row of the table."""

    loss: Callable[[Any], nn.Module]
    covered: bool = False


def _later(share: float, activation: str, after: float = 1.0) -> Variant:
    return Variant(lambda n: Staged(lambda t: both(n, activation, log_loss="only" if t < share else after)))


VARIANTS = {
    "both terms, sigmoid, α = 8": Variant(both),
    "both terms, softmax, α = 8": Variant(lambda n: both(n, "softmax")),
    "log-loss alone": Variant(lambda n: both(n, log_loss="only")),
    "log-loss for half of the epochs, then both, sigmoid": _later(0.5, "sigmoid"),
    "log-loss for half of the epochs, then both, softmax": _later(0.5, "softmax"),
    "log-loss for half of the epochs, then the ranking term alone, softmax": _later(0.5, "softmax", 0.0),
    "log-loss falls from 3 to 0.1, sigmoid": Variant(lambda n: Staged(lambda t: both(n, log_loss=3.0 * (1 / 30) ** t))),
    "log-loss rises from 0.1 to 3, sigmoid": Variant(lambda n: Staged(lambda t: both(n, log_loss=0.1 * 30**t))),
    "both terms, sigmoid, α = 16": Variant(lambda n: both(n, alpha=16.0)),
    "both terms, sigmoid, α grows from 4 to 16": Variant(lambda n: Staged(lambda t: both(n, alpha=4.0 + 12.0 * t))),
    "ranking term alone, softmax, α = 16": Variant(lambda n: both(n, "softmax", 16.0, 0.0)),
    "ranking term alone, softmax, α grows from 2 to 16": Variant(
        lambda n: Staged(lambda t: both(n, "softmax", 2.0 + 14.0 * t, 0.0))
    ),
    "both terms, sigmoid, learnt temperature": Variant(lambda n: Tempered(n, "sigmoid", 8.0)),
    "both terms, softmax, learnt temperature": Variant(lambda n: Tempered(n, "softmax", 8.0)),
    "both terms, sigmoid, covered batches": Variant(lambda n: both(None), covered=True),
}
FIRST = next(iter(VARIANTS))


@lru_cache(maxsize=1)
def _parts(home: str, seed: int, place: str) -> Any:
    data = deep_data.load(DATASET, home)
    parts = deep_data.parts_of(data, seed)
    where = torch.device(place)
    return parts, Features(parts.X, where), torch.from_numpy(parts.y).to(where)


def one(home: str, place: str, seed: int, name: str, rate: float) -> dict[str, float]:
    """Validation MAUC of a fit, ranked by softmax and by the logits."""
    parts, X, y = _parts(home, seed, place)
    variant = VARIANTS[name]
    schedule = replace(recipe_of(DATASET).plain, learning_rate=rate, weight_decay=DECAY, max_epochs=EPOCHS)
    order: Any = Shuffled(len(parts.train), schedule.batch_size, seed)
    if variant.covered:
        order = ClassCoverageBatchSampler(parts.y[parts.train], schedule.batch_size, min_per_class=4, seed=seed)
    n_batches = -(-len(parts.train) // schedule.batch_size)
    train, held = Batches(X, y, parts.train, order, n_batches), InOrder(X, parts.validation)
    model = network(X.n_features, recipe_of(DATASET).hidden, len(parts.counts), seed=seed, dropout=DROPOUT)
    y_held = parts.y[parts.validation]
    result = fit(model, variant.loss(parts.counts), schedule, train, held, y_held, seed=seed, replay=False)
    logits = logits_of(result.network, held)
    by_logit = mauc_score(y_held, logits.double().cpu().numpy())
    return {"softmax": mauc_score(y_held, ranking_scores(logits)), "logit": by_logit}


def main(home: str, seeds: int = 5, processes: int = 1) -> None:
    """Fit what is not there yet, print the table."""
    out = Path(__file__).parent / "results"
    store = Store(out / "two_terms")
    place = "cuda" if torch.cuda.is_available() or not processes else "cpu"
    # Seed by seed, so that a process keeps its parts.
    cells = [
        Cell((place, name, f"{rate:g}", f"{seed:02d}"), one, (home, place, seed, name, rate), (seed, k % 3))
        for seed in range(seeds)
        for k, (name, rate) in enumerate(product(VARIANTS, RATES))
    ]
    if processes:
        missing, done = missing_of(cells, store), 0
        for keys in compute(missing, store, jobs=processes):
            done += len(keys)
            print(f"{done} of {len(missing)} fits", flush=True)
    known = [store.read(cell.key) if cell.key in store else {} for cell in cells]
    found = np.array([[each.get(by, np.nan) for by in ("softmax", "logit")] for each in known])
    text = report(found.reshape(seeds, len(VARIANTS), len(RATES), 2))
    (out / "two_terms.md").write_text(text)
    print(text)


def report(found: Any) -> str:
    """Mean over seeds at the better rate, and the paired difference to the first variant with its standard error.

    ``found`` is ``(seeds, variants, rates, 2)``; a seed counts for a variant if both rates are there.
    """
    whole = ~np.isnan(found).any((2, 3))
    rows = []
    first = None
    for k, name in enumerate(VARIANTS):
        values = 100 * found[whole[:, k], k]
        best = int(values[..., 0].mean(0).argmax())
        of_seed = dict(zip(np.flatnonzero(whole[:, k]), values[:, best, 0], strict=True))
        first = of_seed if first is None else first
        gain = np.array([of_seed[s] - first[s] for s in of_seed if s in first])
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
        told = "" if name == FIRST else f"{gain.mean():+.2f} ± {error:.2f} ({(gain > 0).sum()} of {len(gain)})"
        by_logit = (values[:, best, 1] - values[:, best, 0]).mean()
        rows.append([name, f"{values[:, best, 0].mean():.2f}", told, f"{by_logit:+.2f}", f"{RATES[best]:g}"])
    head = ["loss", "validation MAUC × 100", "difference to the first (seeds above)", "ranked by the logit", "rate"]
    return f"{DATASET}, {whole[:, 0].sum()} seeds\n\n{markdown_table(head, rows)}\n"


if __name__ == "__main__":
    from benchmarks import two_terms  # under its own name, which other processes can import

    two_terms.main(sys.argv[1], *map(int, sys.argv[2:]))
