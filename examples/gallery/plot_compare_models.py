"""
Is model B better than A, or is it luck?
========================================

If you test two models on the same rows, rows that are hard for both cancel out. The paired test uses the difference of
the two models on each row. It finds smaller differences than a comparison of two intervals.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import compare_mauc, mauc_interval
from mauc.model_selection import RareClassKFold

# %%
# The data are handwritten digits, from 170 zeros to 8 nines.
X, y = load_digits(return_X_y=True)
rng, sizes = np.random.default_rng(0), [170, 120, 85, 60, 42, 30, 21, 15, 11, 8]
kept = np.concatenate([rng.choice(np.flatnonzero(y == c), n, replace=False) for c, n in enumerate(sizes)])
X, y = X[kept], y[kept]
models = {
    "LR": make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000)),
    "LR, balanced": make_pipeline(StandardScaler(), LogisticRegression(C=0.01, class_weight="balanced", max_iter=1000)),
    "extra trees": ExtraTreesClassifier(100, random_state=0),
}
scores = {
    name: cross_val_predict(model, X, y, cv=RareClassKFold(4), method="predict_proba") for name, model in models.items()
}

# %%
# First compute the interval of each model. Those of the extra trees and of the balanced LR overlap: is there a
# difference?
intervals = {name: mauc_interval(y, score) for name, score in scores.items()}
for name, result in intervals.items():
    print(f"{name:12}  {result.score:.4f} [{result.low:.4f}, {result.high:.4f}]")

# %%
# Now compute the paired differences on the same rows, with interval and p-value.
comparisons = {
    f"{a} − {b}": compare_mauc(y, scores[a], scores[b])
    for a, b in (("extra trees", "LR"), ("extra trees", "LR, balanced"), ("LR, balanced", "LR"))
}
for name, result in comparisons.items():
    print(f"{name:26}  {result.difference:+.4f} [{result.low:+.4f}, {result.high:+.4f}]  p = {result.pvalue:.2g}")

# %%
# The extra trees are better than both; the gain of the balanced LR may be luck. Scores from cross-validation come from
# several fits that share data, so these p-values are approximate. Prefer a test set if you have enough samples.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), width_ratios=(1, 1.1))
for axes, results, title in (
    (left, intervals, "Each by itself: MAUC, 95 %"),
    (right, comparisons, "Paired: difference of MAUC, 95 %"),
):
    for place, result in enumerate(results.values()):
        middle = result.score if results is intervals else result.difference
        reach = [[middle - result.low], [result.high - middle]]
        axes.errorbar(middle, place, xerr=reach, fmt="o", color="C0", capsize=3)
    axes.set_yticks(range(len(results)), results)
    axes.set(title=title, ylim=(-0.5, len(results) - 0.5))
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
right.axvline(0, color="0.4", linewidth=1)
figure.tight_layout()
plt.show()
