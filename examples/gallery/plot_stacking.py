"""
Which model should I take? All of them, weighted by multiclass AUC
==================================================================

:class:`mauc.MAUCStackingClassifier` fits several classifiers on folds. It chooses weights for which their combination
has the highest multiclass AUC on out-of-fold rows. You can pass any classifiers; by default it trains nine models.
``mauc fit`` trains the same stack from the command line.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import MAUCClassifier, MAUCStackingClassifier, mauc_interval

# %%
# The data are ten digits, from 170 zeros to 8 nines. Half of the rows are training rows.
X, y = load_digits(return_X_y=True)
rng, sizes = np.random.default_rng(0), [170, 120, 85, 60, 42, 30, 21, 15, 11, 8]
kept = np.concatenate([rng.choice(np.flatnonzero(y == c), n, replace=False) for c, n in enumerate(sizes)])
X, y = X[kept], y[kept]
X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=1)

estimators = [
    ("balanced LR", make_pipeline(StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000))),
    ("MAUC linear", make_pipeline(StandardScaler(), MAUCClassifier(alpha=4.0, l2=1e-2))),
    ("extra trees", ExtraTreesClassifier(200, min_samples_leaf=3, class_weight="balanced", random_state=0)),
    ("boosting", HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, class_weight="balanced")),
]
stack = MAUCStackingClassifier(estimators).fit(X, y)

# %%
# ``oof_scores_`` needs no test rows. It has the MAUC of each model on rows that the model was not trained on. The score
# of ``combination`` comes from rows that did not choose its weights.
for name, score in stack.oof_scores_.items():
    print(f"{name:12} out-of-fold MAUC {score:.4f}   weight {stack.weights_.get(name, float('nan')):.2f}")

# %%
# Now evaluate all models on the test rows.
scores = {name: model.predict_proba(X_test) for name, model in stack.named_estimators_.items()}
scores["combination"] = stack.predict_proba(X_test)
results = {name: mauc_interval(y_test, score) for name, score in scores.items()}
figure, axes = plt.subplots(figsize=(7.4, 2.8))
for row, (name, result) in enumerate(results.items()):
    color = "C1" if name == "combination" else "C0"
    axes.plot([result.low, result.high], [row, row], color=color, linewidth=2)
    axes.plot(result.score, row, "o", color=color)
axes.set_yticks(range(len(results)), results)
axes.set(xlabel="test MAUC, 95 % interval", ylim=(len(results) - 0.5, -0.5))
axes.grid(axis="x", alpha=0.3)
figure.tight_layout()
plt.show()
