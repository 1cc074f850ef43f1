"""Is the recommended loss safe? ``python -m experiments.longtail.stability`` trains small networks in many settings.

It compares ``MAUCLoss(class_counts)``, as users type it, with adjusted, plain and class-weighted cross-entropy: 2 to
5,000 classes, of which a share of the labels is wrong; batches of 16 to 512 rows; with and without batch
normalisation; SGD at 0.1 with momentum, at a constant rate and with a cosine, and AdamW at 1e-3; perceptrons, a bag of
embeddings and a small ResNet; logits in float32 and in bfloat16. Every setting writes its line to ``--out`` when it is
done, so that a killed run resumes. All networks of a setting see the same batches.
"""

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments.longtail.networks import network_for
from mauc.nn import LogitAdjustedLoss, MAUCLoss
from mauc.nn.functional import mauc_score

RESULTS = Path(__file__).parents[1] / "results" / "stability.csv"
BASE = "adjusted cross-entropy"
LOSSES: dict[str, Callable[[Tensor], Callable[[Tensor, Tensor], Tensor]]] = {
    BASE: LogitAdjustedLoss,
    "MAUCLoss": MAUCLoss,
    "cross-entropy": lambda _: nn.CrossEntropyLoss(),
    "class-weighted cross-entropy": lambda n: lambda z, y: cross_entropy(z, y, (n.sum() / (len(n) * n)).to(z.dtype)),
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Setting:
    """What is trained, and how."""

    data: str
    """``"overlap"``, ``"gauss"``, ``"words"`` or ``"digits"``: see :func:`draw`."""
    classes: int
    noise: float
    """Share of the training labels that are drawn at random."""
    batch: int
    optimizer: str
    """``"SGD, cosine"``, ``"SGD, constant"`` or ``"AdamW"``."""
    normalised: bool
    dtype: str = "float32"
    steps: int = 600


def settings() -> Iterator[Setting]:
    """Yield the settings: each kind of data with each optimiser, and each of them with two kinds of batches."""
    optimizers = ("SGD, cosine", "SGD, constant", "AdamW")
    overlapping = [("overlap", *each) for each in ((2, 0.02), (3, 0.02), (5, 0.0), (5, 0.1), (10, 0.02))]
    batches = ((16, True), (32, False), (128, False), (512, True))
    kinds = product([*overlapping, ("gauss", 10, 0.0), ("gauss", 100, 0.05)], optimizers)
    for turn, ((data, classes, noise), optimizer) in enumerate(kinds):
        for batch, normalised in batches[turn % 2 :: 2]:
            yield Setting(data, classes, noise, batch, optimizer, normalised)
    for optimizer in optimizers:
        yield Setting("overlap", 5, 0.1, 64, optimizer, True, "bfloat16")
        yield Setting("words", 10, 0.05, 64, optimizer, False)
        yield Setting("digits", 10, 0.1, 64, optimizer, True, steps=300)
        yield Setting("gauss", 5000, 0.0, 512, optimizer, True, steps=200)


def draw(data: str, n_classes: int, noise: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training rows, whose class sizes fall by a factor of 35 to 100, and test rows.

    ``"overlap"``: clusters of scikit-learn's ``make_classification``; ``"gauss"``: Gaussian classes, on which adjusted
    cross-entropy is the right model; ``"words"``: 20 words of a text out of 2,000; ``"digits"``: images of 8 × 8.
    """
    rng = np.random.default_rng([n_classes, round(1000 * noise)])
    if data == "overlap":
        shares = 35.0 ** -np.linspace(0.0, 1.0, n_classes)
        X, y = make_classification(
            6_000, 20, n_informative=10, n_classes=n_classes, weights=shares / shares.sum(), flip_y=0.0, random_state=1
        )
        X, X_test, y, y_test = train_test_split(scale(X), y, test_size=0.5, stratify=y, random_state=0)
    elif data == "digits":
        X, y = load_digits(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X.reshape(-1, 1, 8, 8) / 8 - 1, y, test_size=0.5, random_state=0)
        kept = np.concatenate([np.flatnonzero(y == k)[: int(70 * 35.0 ** (-k / 9))] for k in range(n_classes)])
        X, y, X_test = np.repeat(X[kept], 3, 1), y[kept], np.repeat(X_test, 3, 1)
    else:
        sizes = 100.0 ** -np.linspace(0.0, 1.0, n_classes)
        sizes = np.maximum(2, sizes / sizes.sum() * max(20_000, 8 * n_classes)).astype(int)
        y, y_test = np.repeat(np.arange(n_classes), sizes), np.repeat(np.arange(n_classes), max(4, 2000 // n_classes))
        if data == "gauss":
            centres = 0.5 * rng.normal(size=(n_classes, 32))
            X, X_test = (centres[k] + rng.normal(size=(len(k), 32)) for k in (y, y_test))
        else:
            topics = 0.5 * rng.dirichlet(np.full(2000, 0.1), n_classes) + 0.5 * rng.dirichlet(np.ones(2000))
            edges = topics.cumsum(1)
            X, X_test = (
                np.stack([np.searchsorted(edges[k], rng.random(20) * edges[k, -1]) for k in labels])
                for labels in (y, y_test)
            )
    wrong = rng.random(len(y)) < noise
    y = np.where(wrong, rng.permutation(y), y)
    kind = np.int64 if data == "words" else np.float32
    X, X_test, y, y_test = X.astype(kind), X_test.astype(kind), y.astype(np.int64), y_test.astype(np.int64)
    return torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(X_test), torch.from_numpy(y_test)


class Bag(nn.Sequential):
    """The mean embedding of some words, and a layer."""

    def __init__(self, n_classes: int) -> None:
        super().__init__(nn.EmbeddingBag(2000, 32), nn.Linear(32, n_classes))


def network(setting: Setting, n_features: int) -> nn.Module:
    """Return a new network."""
    if setting.data == "words":
        return Bag(setting.classes)
    if setting.data == "digits":
        return network_for((3, 8, 8), setting.classes, blocks=1)
    norm = [nn.BatchNorm1d(128)] if setting.normalised else []
    return nn.Sequential(nn.Linear(n_features, 128), *norm, nn.ReLU(), nn.Linear(128, setting.classes))


def train(setting: Setting, loss: Callable[[Tensor, Tensor], Tensor], data: Any, seed: int) -> tuple[float, float]:
    """Return test MAUC and accuracy × 100 of the last step; 50 and 0 if a logit is not finite."""
    X, y, X_test, y_test = data
    torch.manual_seed(seed)
    net = network(setting, X.shape[1])
    if setting.optimizer == "AdamW":
        optimizer: Any = torch.optim.AdamW(net.parameters(), lr=1e-3)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    falls = setting.optimizer == "SGD, cosine"
    rate = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: 0.5 + 0.5 * math.cos(math.pi * t / setting.steps) if falls else 1.0
    )
    drawn = torch.Generator().manual_seed(seed)
    for _ in range(setting.steps):
        rows = torch.randint(len(X), (setting.batch,), generator=drawn)
        optimizer.zero_grad()
        loss(net(X[rows]).to(DTYPES[setting.dtype]), y[rows]).backward()
        optimizer.step()
        rate.step()
    net.eval()
    with torch.no_grad():
        logits = torch.cat([net(part) for part in X_test.split(2000)])
    if not bool(logits.isfinite().all()):
        return 50.0, 0.0
    right = (logits.argmax(1) == y_test).double().mean()
    return 100.0 * float(mauc_score(logits.softmax(1), y_test)), 100.0 * float(right)


COLUMNS = (*(field.name for field in fields(Setting)), "loss", "seed", "mauc", "accuracy")


def main() -> None:
    """Train what ``--out`` lacks; print a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="networks of each setting and loss (default: 5)")
    parser.add_argument("--out", type=Path, default=RESULTS, help=f"CSV file of the runs (default: {RESULTS.name})")
    parser.add_argument("--data", nargs="*", help="only these kinds of data")
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    text = arguments.out.read_text(encoding="utf-8") if arguments.out.exists() else ""
    lines = list(csv.reader(text.splitlines()))
    known = {tuple(line[:-2]) for line in lines[1:]}
    with arguments.out.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not lines:
            writer.writerow(COLUMNS)
        for setting in settings():
            if arguments.data and setting.data not in arguments.data:
                continue
            began, key = time.perf_counter(), tuple(str(value) for value in asdict(setting).values())
            todo = [(name, s) for s in range(arguments.seeds) for name in LOSSES if (*key, name, str(s)) not in known]
            if not todo:
                continue
            data = draw(setting.data, setting.classes, setting.noise)
            counts = torch.bincount(data[1], minlength=setting.classes)
            found = [(*key, name, s, *train(setting, LOSSES[name](counts), data, s)) for name, s in todo]
            writer.writerows((*row[:-2], f"{row[-2]:.3f}", f"{row[-1]:.2f}") for row in found)
            file.flush()
            means = {name: np.mean([row[-2] for row in found if row[-4] == name]) for name in LOSSES}
            shown = ", ".join(f"{name} {mean - means[BASE]:+.2f}" for name, mean in means.items() if name != BASE)
            seconds = time.perf_counter() - began
            print(f"{' '.join(key)}: {BASE} {means[BASE]:.2f}, {shown} ({seconds:.0f} s)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
