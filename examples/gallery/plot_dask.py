"""
Does the score change when the rows are on many workers?
========================================================

No: :mod:`mauc.dask` has the same functions for Dask collections, and they give the same numbers. Only each row's score
for its own class goes to all workers. Everything else is a sum over partitions.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

import mauc
from mauc import dask as mauc_dask

# %%
# Start a cluster of two workers. Here they are threads of this process, so that the page runs anywhere. For a real
# cluster pass ``Client("tcp://scheduler:8786")``; nothing else changes.
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
client = Client(cluster)

# %%
# The rows are never in one place: a worker draws, or reads, each of 8 partitions.
N_PARTS, ROWS, N_CLASSES, N_FEATURES = 8, 10_000, 4, 6
centres = np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES))


def draw(seed):
    rng = np.random.default_rng(seed)
    y = rng.choice(N_CLASSES, ROWS, p=[0.8, 0.15, 0.04, 0.01])
    return 0.5 * centres[y] + rng.normal(size=(ROWS, N_FEATURES)), y


parts = [dask.delayed(draw)(seed) for seed in range(N_PARTS)]
X = da.concatenate([da.from_delayed(part[0], (ROWS, N_FEATURES), float) for part in parts]).persist()
y = da.concatenate([da.from_delayed(part[1], (ROWS,), int) for part in parts]).persist()

# %%
# Train the linear model. The solver runs here; the workers hold the rows and compute the gradients.
model = mauc_dask.MAUCClassifier(l2=1e-3).fit(X, y)
scores = model.predict_proba(X).persist()
found = mauc_dask.mauc_interval(y, scores)
print(f"on the workers  {found.score:.6f} [{found.low:.6f}, {found.high:.6f}]")

# %%
# Compute the same in memory, where these few rows fit.
X_here, y_here, scores_here = dask.compute(X, y, scores)
expected = mauc.mauc_interval(y_here, scores_here)
print(f"in memory       {expected.score:.6f} [{expected.low:.6f}, {expected.high:.6f}]")
local = mauc.MAUCClassifier(l2=1e-3).fit(X_here, y_here)
print(f"largest difference of coefficients: {np.abs(local.coef_ - model.coef_).max():.0e}")

# %%
# The matrix of all pairs of classes is a plain array.
matrix = mauc_dask.pairwise_auc(y, scores)
figure, axes = plt.subplots(figsize=(4.8, 3.6))
picture = axes.imshow(matrix, vmin=0.5, vmax=1.0)
axes.set(xlabel="against class", ylabel="class", xticks=range(N_CLASSES), yticks=range(N_CLASSES))
figure.colorbar(picture, label="AUC")
figure.tight_layout()
plt.show()

# %%
client.close()
cluster.close()
