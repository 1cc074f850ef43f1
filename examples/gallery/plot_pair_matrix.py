"""
Which pair of classes is confused?
==================================

One number for ten classes hides where the classifier errs. The pair matrix has ninety numbers: row i, column j shows
how well the score of class i ranks class i above class j. It is not symmetric. A dark cell is a weak pair.
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
# The data are handwritten digits, from 170 zeros to 8 nines. Cross-validation computes their scores.
X, y = load_digits(return_X_y=True)
rng, sizes = np.random.default_rng(0), [170, 120, 85, 60, 42, 30, 21, 15, 11, 8]
kept = np.concatenate([rng.choice(np.flatnonzero(y == c), n, replace=False) for c, n in enumerate(sizes)])
X, y = X[kept], y[kept]
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
scores = cross_val_predict(model, X, y, cv=RareClassKFold(4), method="predict_proba")

# %%
# The most frequent class comes first, so rare pairs are at the bottom right. A darker cell has a lower AUC. The colours
# span the range of this model, 0.8 to 1. Cells without a number have an AUC of 1.000.
display = PairwiseAUCDisplay.from_predictions(y, scores)
display.ax_.set_title(f"Which digits are confused? MAUC = {display.mauc:.3f}")
plt.show()

# %%
# Print the weakest pairs.
matrix = pairwise_auc(y, scores)
worst = np.argsort(matrix, axis=None)[:3]  # NaN, the diagonal, comes last
for i, j in zip(*np.unravel_index(worst, matrix.shape), strict=True):
    print(f"score of {i} on {i} against {j}: AUC {matrix[i, j]:.3f}")

# %%
# A cell compares the score of class i on one row of class i and one row of class j. The AUC is the share of such pairs
# in which the row of class i has the higher score.
i, j = np.unravel_index(worst[0], matrix.shape)
figure, axes = plt.subplots(figsize=(6.4, 2.4))
for row, (c, color) in enumerate(((i, "C0"), (j, "C1"))):
    own = scores[y == c, i]
    axes.semilogx(own, np.full(len(own), row), "|", markersize=22, markeredgewidth=2, color=color)
axes.set_yticks([0, 1], [f"digit {c} ({np.sum(y == c)})" for c in (i, j)])
axes.set(xlabel=f"score of {i}", ylim=(1.5, -0.5), title=f"AUC of {i} against {j}: {matrix[i, j]:.3f}")
figure.tight_layout()
plt.show()
