"""Does the recommended loss diverge? ``python -m experiments.longtail.stability`` prints a table.

``--method soft-odds:alpha=0.5,weight=0.5`` compares candidates of :mod:`experiments.longtail.losses` with adjusted
cross-entropy, instead of the recommended loss.

``--overlap`` trains on noisy classes that overlap instead, with cross-entropy and the doubled loss beside.

Small networks on Gaussian classes with a long tail: 2 to 5,000 classes, batches of 32 to 4,096 rows, SGD with momentum
at a constant rate of 0.1 and Adam at 1e-3, logits in float32, and for one size of batches in bfloat16 and float16.
"""

import argparse
from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale
from torch import Tensor, nn

from experiments.longtail.losses import make
from experiments.report_parts import markdown_table
from mauc.nn import LogitAdjustedLoss, MAUCLoss
from mauc.nn.functional import mauc_score

CLASSES = (2, 3, 10, 100, 5000)
BATCHES = (32, 512, 4096)
OPTIMIZERS = {
    "SGD at 0.1": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "Adam at 1e-3": lambda parameters: torch.optim.Adam(parameters, lr=1e-3),
}
MORE_OPTIMIZERS = {
    **OPTIMIZERS,
    "SGD at 0.01": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9),
}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def draw(n_classes: int, n_rows: int, n_features: int = 32) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training rows whose class sizes fall by a factor of 100, and test rows: 2,000, or four of each class."""
    rng = np.random.default_rng(n_classes)
    sizes = 100.0 ** -np.linspace(0.0, 1.0, n_classes)
    sizes = np.maximum(2, sizes / sizes.sum() * n_rows).astype(int)
    centres = 0.5 * rng.normal(size=(n_classes, n_features))
    y, y_test = np.repeat(np.arange(n_classes), sizes), np.repeat(np.arange(n_classes), max(4, 2000 // n_classes))
    X, X_test = (centres[k] + rng.normal(size=(len(k), n_features)) for k in (y, y_test))
    return tuple(torch.from_numpy(a) for a in (X.astype(np.float32), y, X_test.astype(np.float32), y_test))


def draw_overlapping() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return training and test rows of five classes, 70 to 2 % of the rows, of which 2 % have a random class."""
    shares = [0.7, 0.15, 0.08, 0.05, 0.02]
    X, y = make_classification(6_000, 20, n_informative=10, n_classes=5, weights=shares, flip_y=0.02, random_state=1)
    X, X_test, y, y_test = train_test_split(scale(X), y, test_size=0.5, stratify=y, random_state=0)
    return tuple(torch.from_numpy(a) for a in (X.astype(np.float32), y, X_test.astype(np.float32), y_test))


def train(
    loss: Callable[[Tensor, Tensor], Tensor],
    data: tuple[Tensor, ...],
    batch: int,
    optimizer: str,
    dtype: str,
    steps: int,
    seed: int,
    normalised: bool = True,
) -> tuple[float, float]:
    """Return test MAUC and accuracy × 100 after some steps; NaN if a loss or a logit is not finite."""
    X, y, X_test, y_test = data
    torch.manual_seed(seed)
    n_classes = int(y.max()) + 1
    layers = [nn.Linear(X.shape[1], 128), *([nn.BatchNorm1d(128)] if normalised else []), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(128, n_classes))
    update = MORE_OPTIMIZERS[optimizer](network.parameters())
    for _ in range(steps):
        rows = torch.randint(len(X), (batch,))
        update.zero_grad()
        value = loss(network(X[rows]).to(DTYPES[dtype]), y[rows])
        value.backward()
        update.step()
        if not bool(value.isfinite()):
            return float("nan"), float("nan")
    network.eval()
    with torch.no_grad():
        logits = network(X_test)
    if not bool(logits.isfinite().all()):
        return float("nan"), float("nan")
    right = (logits.argmax(1) == y_test).double().mean()
    return 100.0 * float(mauc_score(logits.softmax(1), y_test)), 100.0 * float(right)


def overlap(steps: int, seeds: int) -> None:
    """Print the table of overlapping classes."""
    data = draw_overlapping()
    counts = torch.bincount(data[1])
    loss = MAUCLoss(counts)
    losses = {
        "cross-entropy": nn.CrossEntropyLoss(),
        "adjusted cross-entropy": LogitAdjustedLoss(counts),
        "`MAUCLoss`": loss,
        "`MAUCLoss(alpha=4.0)`": MAUCLoss(counts, alpha=4.0),
        "`2 * MAUCLoss`": lambda logits, y: 2.0 * loss(logits, y),
    }
    rows = []
    for normalised, batch, optimizer in product((True, False), (32, 128), MORE_OPTIMIZERS):
        setting = (data, batch, optimizer, "float32", steps)
        runs = {
            name: np.array([train(each, *setting, seed, normalised) for seed in range(seeds)])
            for name, each in losses.items()
        }
        network = "batch normalisation" if normalised else "plain"
        rows.append(
            [network, str(batch), optimizer, *(f"{x[:, 0].mean():.2f}, {x[:, 1].mean():.1f}" for x in runs.values())]
        )
        print(*rows[-1], flush=True)
    print(markdown_table(["network", "batch", "optimiser", *losses], rows))


def main() -> None:
    """Print one line per setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400, help="steps of each training (default: 400)")
    parser.add_argument("--seeds", type=int, default=3, help="trainings of each setting (default: 3)")
    parser.add_argument("--classes", type=int, nargs="*", default=CLASSES)
    parser.add_argument("--batches", type=int, nargs="*", default=BATCHES)
    parser.add_argument("--method", nargs="*", default=(), help="candidates instead of the recommended loss")
    parser.add_argument("--overlap", action="store_true", help="train on classes that overlap")
    arguments = parser.parse_args()
    if arguments.overlap:
        overlap(arguments.steps, arguments.seeds)
        return
    rows = []
    for n_classes in arguments.classes:
        data = draw(n_classes, max(20_000, 8 * n_classes))
        counts = torch.bincount(data[1])
        losses = [make(name, counts) for name in arguments.method] or [MAUCLoss(counts)]
        for batch, optimizer, dtype in product(arguments.batches, OPTIMIZERS, DTYPES):
            if dtype != "float32" and (batch != BATCHES[1] or arguments.method):
                continue
            steps = arguments.steps if batch * n_classes < 10_000_000 else arguments.steps // 4
            runs = [
                [train(loss, data, batch, optimizer, dtype, steps, seed)[0] for seed in range(arguments.seeds)]
                for loss in (LogitAdjustedLoss(counts), *losses)
            ]
            means = np.mean(runs, axis=1)
            numbers = [f"{means[0]:.2f}", *(f"{x:+.2f}" for x in means[1:] - means[0])]
            if not arguments.method:
                numbers[1:] = [f"{means[1]:.2f}", numbers[1], f"{np.min(runs[1]):.2f}"]
            rows.append([str(n_classes), str(batch), optimizer, dtype, str(steps), *numbers])
            print(*rows[-1], flush=True)
    names = ["classes", "batch", "optimiser", "logits", "steps", "adjusted cross-entropy"]
    print(markdown_table([*names, *(arguments.method or ["`MAUCLoss`", "difference", "lowest of `MAUCLoss`"])], rows))


if __name__ == "__main__":
    main()
