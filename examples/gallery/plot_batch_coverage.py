"""
Does class coverage of batches matter?
======================================

The loss compares the classes within a batch, so it seldom compares a rare class.
:class:`mauc.nn.ClassCoverageBatchSampler` puts every class into every batch. This example counts the pairs of classes
in a batch, and shows how many epochs the network needs with each sampler.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import make_blobs
from torch import nn
from torch.utils.data import BatchSampler, RandomSampler

from mauc import mauc_score
from mauc.nn import ClassCoverageBatchSampler, MAUCLoss

# %%
# The data have twenty classes of 325 to 3 samples. Batches have 64 samples.
sizes = np.geomspace(325, 3, 20).astype(int)
centers = np.random.default_rng(0).normal(size=(20, 20))
X, y = make_blobs(sizes, centers=centers, cluster_std=1.6, random_state=0)
X_test, y_test = make_blobs([100] * 20, centers=centers, cluster_std=1.6, random_state=1)
X, X_test, y = torch.tensor(X).float(), torch.tensor(X_test).float(), torch.tensor(y)
print("class sizes", sizes)


def batches(kind, epoch):
    if kind == "random":
        generator = torch.Generator().manual_seed(epoch)
        return BatchSampler(RandomSampler(y, generator=generator), batch_size=64, drop_last=True)
    sampler = ClassCoverageBatchSampler(y, batch_size=64)
    sampler.set_epoch(epoch)
    return sampler


# %%
# How many of the 380 ordered pairs of classes meet in a batch?
met = {}
for kind in ("random", "coverage"):
    present = [len(torch.unique(y[batch])) for batch in batches(kind, epoch=0)]
    met[kind] = np.array(present) * (np.array(present) - 1) / 380
    print(f"{kind:8}  {met[kind].mean():.1%} of the pairs in a batch, {len(present)} batches an epoch")

# %%
# Train the same network with the same loss on both kinds of batches, with three seeds. The sampler repeats rare
# classes, so the loss gets the sampler's class counts.
curves = {}
for kind in ("random", "coverage"):
    runs = []
    for seed in range(3):
        torch.manual_seed(seed)
        model = nn.Linear(20, 20)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        loss_fn = MAUCLoss(torch.bincount(y) if kind == "random" else batches(kind, 0).class_visits)
        curve = []
        for epoch in range(10):
            for batch in batches(kind, epoch=100 * seed + epoch):
                optimizer.zero_grad()
                loss_fn(model(X[batch]), y[batch]).backward()
                optimizer.step()
            with torch.no_grad():
                curve.append(mauc_score(y_test, model(X_test).softmax(1).numpy()))
        runs.append(curve)
    curves[kind] = np.array(runs)
    early, late = curves[kind].mean(axis=0)[[2, -1]]
    print(f"{kind:8}  test MAUC after 3 epochs {early:.4f}, after 10 {late:.4f}")

# %%
# With coverage the network learns in fewer epochs; in the end random batches catch up. An epoch with coverage repeats
# rare samples and has a few more batches, so the right panel counts batches. The bands go from the lowest to the
# highest seed.
n_batches = {kind: len(batches(kind, 0)) for kind in curves}
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), width_ratios=(0.7, 1, 1))
left.bar(list(met), [share.mean() for share in met.values()], color=["C1", "C0"])
left.set(ylabel="share of class pairs", title="Pairs met in a batch", ylim=(0, 1.05))
for kind, style, color in (("random", "s--", "C1"), ("coverage", "o-", "C0")):
    epochs = np.arange(1, curves[kind].shape[1] + 1)
    for panel, x in ((middle, epochs), (right, epochs * n_batches[kind])):
        panel.plot(x, curves[kind].mean(0), style, color=color, label=kind)
        panel.fill_between(x, curves[kind].min(0), curves[kind].max(0), color=color, alpha=0.15)
middle.set(xlabel="epochs", ylabel="test MAUC")
right.set(xlabel="batches")
for panel in (middle, right):
    panel.legend(loc="lower right")
    panel.grid(alpha=0.3)
figure.tight_layout()
plt.show()
