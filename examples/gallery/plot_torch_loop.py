"""
One line in a PyTorch loop
==========================

``MAUCLoss`` takes logits and classes, as ``CrossEntropyLoss`` does. It compares the samples of a batch, so the batches
should hold every class: the sampler is the second line. Here both losses train the same small network on the same
batches of handwritten digits, of which 0 to 4 are common and 5 to 9 are rare.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mauc import pairwise_auc
from mauc.nn import MAUC, ClassCoverageBatchSampler, MAUCLoss

X, y = load_digits(return_X_y=True)
# The lower half of each image, to make it harder.
X, y = torch.tensor(X[:, 32:] / 16, dtype=torch.float32), torch.tensor(y)
rng = np.random.default_rng(0)
rows = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
train = np.concatenate([r[:90] if digit < 5 else r[:5] for digit, r in enumerate(rows)])
test = np.concatenate([r[90:] for r in rows])


def fit(loss_fn, epochs=30):
    """Train, and note the test MAUC after each epoch."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    sampler = ClassCoverageBatchSampler(y[train], batch_size=80, min_per_class=2)
    loader = DataLoader(TensorDataset(X[train], y[train]), batch_sampler=sampler)
    metric, curve = MAUC(num_classes=10), []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        for x, target in loader:
            optimizer.zero_grad()
            loss_fn(model(x), target).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model(X[test]).softmax(1)  # what the loss ranks; the metric applies no softmax by itself
        metric.reset()
        metric.update(scores, y[test])
        curve.append(metric.compute().item())
    return curve, pairwise_auc(y[test], scores)


# %%
# The one line:
curves = {
    "cross-entropy": fit(nn.CrossEntropyLoss()),
    "MAUC, α = 4": fit(MAUCLoss("exponential", alpha=4.0)),
}

# %%
# After the last epoch: all pairs, and the pairs of two rare digits.
for name, (curve, matrix) in curves.items():
    print(f"{name:14} test MAUC {curve[-1]:.4f}, pairs of rare digits {np.nanmean(matrix[5:, 5:]):.4f}")

# %%
# One data set and one seed are no verdict; the tables of :doc:`the results </results/index>` have many of both. Note
# that cross-entropy is given the same batches here: the sampler alone shows the rare digits to both.
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for (name, (curve, _)), style in zip(curves.items(), ("s--", "o-"), strict=True):
    axes.plot(np.arange(1, len(curve) + 1), curve, style, markersize=4, label=name)
axes.set(xlabel="epoch", ylabel="test MAUC", ylim=(0.9, None), title="The same loop with two losses")
axes.legend(loc="lower right")
axes.grid(alpha=0.3)
figure.tight_layout()
plt.show()
