"""
One line in a PyTorch loop
==========================

``MAUCLoss(class_counts)`` replaces ``CrossEntropyLoss``. It needs the class counts of the training set and takes logits
and classes. This example trains the same small network with both losses on the same batches of handwritten digits. The
digits 0 to 4 are frequent and 5 to 9 are rare. Each of three seeds draws its own rows, initial weights and batches. A
third loss, cross-entropy adjusted to the class counts, shows where the gain comes from.
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
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = DataLoader(TensorDataset(X[train], y[train]), batch_size=80, shuffle=True, drop_last=True)
    metric, curve = MAUC(num_classes=10), []
    for _ in range(epochs):
        model.train()
        for x, target in loader:
            optimizer.zero_grad()
            loss_fn(model(x), target).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model(X[test]).softmax(1)  # the loss ranks softmax scores; the metric applies no softmax
        metric.reset()
        metric.update(scores, y[test])
        curve.append(metric.compute().item())
    return curve


# %%
# Only the loss differs between these three calls.
curves = {"cross-entropy": [], "adjusted": [], "MAUCLoss": []}
for seed in range(3):
    train, test = split(seed)
    class_counts = torch.bincount(y[train])
    curves["cross-entropy"].append(fit(nn.CrossEntropyLoss(), train, test, seed))
    curves["adjusted"].append(fit(LogitAdjustedLoss(class_counts), train, test, seed))
    curves["MAUCLoss"].append(fit(MAUCLoss(class_counts), train, test, seed))

# %%
# After the last epoch ``MAUCLoss`` is ahead of cross-entropy with each seed. So is adjusted cross-entropy, which is one
# of its two terms: here the gain comes from the class counts. The pair term saves a few epochs and ends level.
for name, runs in curves.items():
    print(f"{name:14} test MAUC", ", ".join(f"{run[-1]:.4f}" for run in runs))

# %%
# One small data set proves little; :doc:`the results </results/index>` have many. Lines are means; the bands go from
# the lowest to the highest seed.
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for (name, runs), style, color in zip(curves.items(), ("s--", "^:", "o-"), ("C1", "C2", "C0"), strict=True):
    epochs, runs = np.arange(1, 31), np.array(runs)
    axes.plot(epochs, runs.mean(0), style, color=color, markersize=4, label=name)
    axes.fill_between(epochs, runs.min(0), runs.max(0), color=color, alpha=0.15)
axes.set(xlabel="epoch", ylabel="test MAUC", ylim=(0.85, None), title="The same loop with three losses")
axes.legend(loc="lower right")
axes.grid(alpha=0.3)
figure.tight_layout()
plt.show()
