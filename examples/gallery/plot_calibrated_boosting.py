"""
The plug-in on boosting: calibrate first?
=========================================

The plug-in divides probabilities by the class shares (:doc:`plot_plugin`), so it wants probabilities that are right.
Those of boosted trees are too sure of themselves. ``MAUCPluginClassifier(model, cv=…)`` calibrates them on folds before
it divides.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier

from experiments import datasets
from mauc import MAUCPluginClassifier, mauc_score


def boosting(**params):
    return HistGradientBoostingClassifier(early_stopping=False, random_state=0, **params)


# %%
# Five Gaussian classes, the first fifty times the last, in three sizes; fresh samples to judge by.
gentle = {"max_iter": 50, "max_leaf_nodes": 6}
models = {
    "as it is": boosting(),
    "balanced": boosting(class_weight="balanced"),
    "plug-in": MAUCPluginClassifier(boosting()),
    "plug-in, calibrated": MAUCPluginClassifier(boosting(), cv=3),
    "gentle, balanced": boosting(class_weight="balanced", **gentle),
    "gentle, plug-in, calibrated": MAUCPluginClassifier(boosting(**gentle), cv=3),
}
sizes = (500, 1500, 4500)
found = {name: [] for name in models}
for n_samples in sizes:
    data = datasets.load_simulated(n_samples=n_samples, n_classes=5, imbalance=50, n_features=6, separation=2)
    X_test, y_test = data.sample([500] * 5)
    for name, model in models.items():
        found[name].append(mauc_score(y_test, model.fit(data.X, data.y).predict_proba(X_test)))
for name, scores in found.items():
    print(f"{name:28}", *(f"{score:.3f}" for score in scores))

# %%
# At scikit-learn's defaults the plug-in ranks better than balanced weights do, and calibrating first is better still.
# But a hundred trees of 31 leaves were too many for these data: with few and small trees each of the two is far
# better, and there balanced weights are level with the plug-in. So tune the trees by multiclass AUC first
# (:func:`mauc.mauc_scorer`); reach for the calibrated plug-in where the boosted model is given and cannot be trained
# again with weights.
figure, axes = plt.subplots(figsize=(7.4, 3.6))
for name, scores in found.items():
    axes.plot(sizes, scores, "o--" if name.startswith("gentle") else "o-", label=name)
axes.axhline(data.bayes_mauc().value, color="0.2", linestyle=":", linewidth=1, label="ceiling")
axes.set(xscale="log", xlabel="training samples", ylabel="test MAUC", ylim=(0.75, None))
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.legend(fontsize=8, ncols=2, loc="lower right")
axes.grid(alpha=0.3)
figure.tight_layout()
plt.show()
