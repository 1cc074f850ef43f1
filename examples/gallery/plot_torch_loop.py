"""
One line in a PyTorch loop
==========================

``MAUCLoss(class_counts)`` replaces ``CrossEntropyLoss``. It needs the class counts of the training set and takes logits
and classes. This example trains the same small network with both losses on the same batches of handwritten digits. The
digits 0 to 4 are frequent and 5 to 9 are rare. Each of three seeds draws its own rows, initial weights and batches. The
optimiser is plain SGD with momentum and a cosine. Class-weighted cross-entropy is what people try first; cross-entropy
adjusted to the class counts is one of the two terms of ``MAUCLoss``.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mauc.nn import MAUC, LogitAdjustedLoss, MAUCLoss

X, y = load_digits(return_X_y=True)
# To make the task harder, keep only the lower half of each image.
X, y = torch.tensor(X[:, 32:] / 16, dtype=torch.float32), torch.tensor(y)


def split(seed):
    """Return 90 training rows of each frequent digit and 5 of each rare one, and other rows as test rows."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
    train = np.concatenate([r[:90] if digit < 5 else r[:5] for digit, r in enumerate(rows)])
    return train, np.concatenate([r[90:] for r in rows])


def fit(loss_fn, train, test, seed, epochs=30):
    """Train a network and return its test MAUC after each epoch."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    loader = DataLoader(TensorDataset(X[train], y[train]), batch_size=80, shuffle=True, drop_last=True)
    metric, curve = MAUC(num_classes=10), []
    for _ in range(epochs):
        model.train()
        for x, target in loader:
            optimizer.zero_grad()
            loss_fn(model(x), target).backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            logits = model(X[test])
        metric.reset()
        metric.update(logits.softmax(1), y[test])  # the loss ranks softmax scores
        curve.append(metric.compute().item())
    return curve, logits


# %%
# Only the loss differs between these calls.
curves, accuracies = {}, {}
for seed in range(3):
    train, test = split(seed)
    class_counts = torch.bincount(y[train])
    losses = {
        "cross-entropy": nn.CrossEntropyLoss(),
        "weighted": nn.CrossEntropyLoss(weight=class_counts.sum() / (10 * class_counts)),
        "adjusted": LogitAdjustedLoss(class_counts),
        "MAUCLoss": MAUCLoss(class_counts),
    }
    for name, loss_fn in losses.items():
        curve, logits = fit(loss_fn, train, test, seed)
        curves.setdefault(name, []).append(curve)
        accuracies.setdefault(name, []).append((logits.argmax(1) == y[test]).float().mean().item())

# %%
# ``MAUCLoss`` and adjusted cross-entropy are level with each other. Both rank better than cross-entropy with each seed.
# The accuracy is that of test rows in which the rare digits are not rare.
for name, runs in curves.items():
    shown = ", ".join(f"{run[-1]:.4f}" for run in runs)
    print(f"{name:14} test MAUC {shown}; accuracy {np.mean(accuracies[name]):.3f}")

# %%
# One small data set proves little; :doc:`the results </results/index>` have many. Lines are means; the bands go from
# the lowest to the highest seed.
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for (name, runs), style, color in zip(
    curves.items(), ("s--", "v-.", "^:", "o-"), ("C1", "C3", "C2", "C0"), strict=True
):
    epochs, runs = np.arange(1, 31), np.array(runs)
    axes.plot(epochs, runs.mean(0), style, color=color, markersize=4, label=name)
    axes.fill_between(epochs, runs.min(0), runs.max(0), color=color, alpha=0.15)
axes.set(xlabel="epoch", ylabel="test MAUC", ylim=(0.85, None), title="The same loop with four losses")
axes.legend(loc="lower right")
axes.grid(alpha=0.3)
figure.tight_layout()
plt.show()
