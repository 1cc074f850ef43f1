"""
LR, balanced LR or MAUC training?
=================================

Four ways to a linear model for imbalanced classes: plain logistic regression, the same with balanced class weights, the
same with its probabilities divided by the class frequencies (plug-in), and training for multiclass AUC. A fair
comparison tunes the penalty of each on validation data and judges on test data.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from experiments import datasets
from mauc import MAUCClassifier, MAUCPluginClassifier, mauc_score

# %%
# Two tables. *Balance scale* is made by its rule: 625 settings of a scale, of which 49 balance, between the two that
# tip. The *Gaussian* classes have 257 samples down to 13; there logistic regression is the right model.
X = np.array(list(product(range(1, 6), repeat=4)), dtype=float)
y = np.sign(X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]).astype(int) + 1
simulated = datasets.load_simulated(n_samples=400, n_classes=4, imbalance=20, n_features=8, separation=2)
tables = {"balance scale": (X, y), "Gaussian classes": (simulated.X, simulated.y)}
for name, (_, classes) in tables.items():
    print(name, np.bincount(classes))

# %%
# The untuned LR keeps scikit-learn's default C = 1.
candidates = (0.1, 1.0, 10.0)
methods = {
    "LR, C = 1": [LogisticRegression(max_iter=2000)],
    "LR": [LogisticRegression(C=C, max_iter=2000) for C in candidates],
    "LR, balanced": [LogisticRegression(C=C, class_weight="balanced", max_iter=2000) for C in candidates],
    "plug-in on LR": [MAUCPluginClassifier(LogisticRegression(C=C, max_iter=2000)) for C in candidates],
    "MAUC, α = 4": [MAUCClassifier(alpha=4.0, l2=l2, tol=1e-4) for l2 in (1e-1, 1e-2, 1e-3)],
}


def tuned_score(models, X, y, train, validation, test):
    """Test MAUC of the model that is best on the validation part."""
    fitted = [model.fit(X[train], y[train]) for model in models]
    best = max(fitted, key=lambda model: mauc_score(y[validation], model.predict_proba(X[validation])))
    return mauc_score(y[test], best.predict_proba(X[test]))


results = {}
for table, (X, y) in tables.items():
    X = StandardScaler().fit_transform(X)
    splits = datasets.stratified_splits(y, n_splits=5, sizes=(0.4, 0.3, 0.3))
    for method, models in methods.items():
        results[table, method] = np.array([tuned_score(models, X, y, *split) for split in splits])
        print(f"{table:16}  {method:13}  {results[table, method].mean():.4f} ± {results[table, method].std():.4f}")

# %%
# Each dot is a split, each line a mean. On the balance scale a tuned penalty is worth more than the choice between the
# last four. On the Gaussian classes all that give rare classes their weight, by whichever way, are ahead of those that
# do not, and not far apart. Nine tables, fifteen splits and more competitors say the same: see
# :doc:`the results </results/traditional>`.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
for panel, table in zip(axes, tables, strict=True):
    for row, method in enumerate(methods):
        values = results[table, method]
        panel.plot(values, np.full(len(values), row), "o", color="C0", alpha=0.45)
        panel.plot([values.mean()] * 2, [row - 0.3, row + 0.3], color="C1", linewidth=2)
    panel.set(title=table, xlabel="test MAUC")
    panel.grid(axis="x", alpha=0.3)
axes[0].set_yticks(range(len(methods)), methods)
axes[0].invert_yaxis()
figure.tight_layout()
plt.show()
