"""
Which pair of classes is confused?
==================================

One number for a classifier of ten classes hides where it errs. The pair matrix has ninety: row i, column j shows how
well the score of class i ranks class i above class j. It is not symmetric, and a strong colour names a pair.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import PairwiseAUCDisplay, pairwise_auc
from mauc.model_selection import RareClassKFold

# %%
# Handwritten digits with 170 zeros down to 8 nines, scored out of sample.
X, y = load_digits(return_X_y=True)
rng, sizes = np.random.default_rng(0), [170, 120, 85, 60, 42, 30, 21, 15, 11, 8]
kept = np.concatenate([rng.choice(np.flatnonzero(y == c), n, replace=False) for c, n in enumerate(sizes)])
X, y = X[kept], y[kept]
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
scores = cross_val_predict(model, X, y, cv=RareClassKFold(4), method="predict_proba")

# %%
# Classes are drawn from the most frequent to the rarest: rare pairs are at the bottom right. Pale is fine, strong is
# bad; the colours span what this model has, 0.8 to 1, and an AUC of 1.000 needs no number.
display = PairwiseAUCDisplay.from_predictions(y, scores)
display.ax_.set_title(f"Which digits are confused? MAUC = {display.mauc:.3f}")
plt.show()

# %%
# The worst pairs in numbers.
matrix = pairwise_auc(y, scores)
worst = np.argsort(matrix, axis=None)[:3]  # NaN, the diagonal, comes last
for i, j in zip(*np.unravel_index(worst, matrix.shape), strict=True):
    print(f"score of {i} on {i} against {j}: AUC {matrix[i, j]:.3f}")

# %%
# What such a cell means: the score of class i on the samples of the two classes. The share of pairs, one of each class,
# in which the sample of class i is the higher one is the AUC.
i, j = np.unravel_index(worst[0], matrix.shape)
figure, axes = plt.subplots(figsize=(6.4, 2.4))
for row, (c, color) in enumerate(((i, "C0"), (j, "C1"))):
    own = scores[y == c, i]
    axes.semilogx(own, np.full(len(own), row), "|", markersize=22, markeredgewidth=2, color=color)
axes.set_yticks([0, 1], [f"digit {c} ({np.sum(y == c)})" for c in (i, j)])
axes.set(xlabel=f"score of {i}", ylim=(1.5, -0.5), title=f"AUC of {i} against {j}: {matrix[i, j]:.3f}")
figure.tight_layout()
plt.show()
