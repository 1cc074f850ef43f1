"""
Nystroem + MAUCClassifier: a kernel without a kernel machine
============================================================

:class:`mauc.MAUCClassifier` is linear. If the class boundaries are curved, put scikit-learn's ``Nystroem`` or
``SplineTransformer`` before it: they make the features that a linear model needs. The time to train such a pipeline
grows linearly with the number of rows.

Is it worth it? On the 57 held-out tables of :doc:`the results </results/tabular>`, its mean rank is 12.6 of 25 methods.
The linear MAUC model has 15.1, balanced logistic regression 10.9, and a balanced forest 10.6. On twenty smaller tables
it has 9.9, balanced logistic regression 13.2, and the forest 9.6. So use it if the boundaries are curved and a fit must
take hundredths of a second. The stack of :doc:`plot_stacking` trains such a model by default.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import MAUCClassifier, mauc_interval


def rings(sizes, rng):
    """Return points of three classes: a disc, a ring around it, and a ring around both."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    angle = rng.uniform(0, 2 * np.pi, len(y))
    radius = y + rng.normal(0.5, 0.3, len(y))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


rng = np.random.default_rng(0)
X, y = rings([400, 100, 20], rng)
X_test, y_test = rings([300, 300, 300], rng)

# %%
# Train the same estimator on two features and on eighty.
models = {
    "linear": make_pipeline(StandardScaler(), MAUCClassifier(alpha=4.0, l2=1e-3)),
    "Nystroem + linear": make_pipeline(
        StandardScaler(), Nystroem(gamma=0.5, n_components=80, random_state=0), MAUCClassifier(alpha=4.0, l2=1e-4)
    ),
}
for name, model in models.items():
    result = mauc_interval(y_test, model.fit(X, y).predict_proba(X_test))
    print(f"{name:18} test MAUC {result.score:.3f} [{result.low:.3f}, {result.high:.3f}]")

# %%
# The picture shows the score of the rare outer ring, which has 20 samples, over the plane.
x1, x2 = np.meshgrid(np.linspace(-4, 4, 120), np.linspace(-4, 4, 120))
plane = np.column_stack([x1.ravel(), x2.ravel()])
figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True)
for panel, (name, model) in zip(panels, models.items(), strict=True):
    score = model.predict_proba(plane)[:, 2]
    rank = score.argsort().argsort().reshape(x1.shape) / len(score)
    panel.contourf(x1, x2, rank, levels=12, cmap="Greys")
    for c, color in enumerate(("C0", "C1", "C3")):
        label = f"class {c} ({np.sum(y == c)})"
        panel.plot(*X[y == c].T, "." if c < 2 else "o", color=color, markersize=4 + c, label=label)
    panel.set(title=f"{name}: MAUC {model.score(X_test, y_test):.3f}", aspect="equal")
panels[0].legend(loc="lower left", fontsize=9)
figure.tight_layout()
plt.show()
