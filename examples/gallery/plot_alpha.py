"""
Which α?
========

α is the margin of the squared and hinge losses and the rate of the exponential one. It works together with the penalty:
choose both by cross-validated multiclass AUC. :class:`mauc.MAUCClassifierCV` does it, with folds in which every class
stays in every training part.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments import datasets
from mauc import MAUCClassifierCV

# %%
# Four classes of 257 samples down to 13.
data = datasets.load_simulated(n_samples=400, n_classes=4, imbalance=20, n_features=8, separation=2)
X = StandardScaler().fit_transform(data.X)

alphas = (0.5, 1.0, 2.0, 4.0, 8.0)
l2s = (1.0, 1e-1, 1e-2, 1e-3)
search = MAUCClassifierCV(alphas=alphas, log_losses=(0.0,), l2s=l2s, cv=4, tol=1e-4).fit(X, data.y)
print(f"chosen: α = {search.alpha_:g}, l2 = {search.l2_:g}, cross-validated MAUC {search.best_score_:.4f}")

# %%
# All candidates. At the best penalty α hardly matters here; a wrong penalty costs more. The standard deviation over
# folds says how much of the pattern to believe.
results = search.cv_results_
place = {(p["alpha"], p["l2"]): k for k, p in enumerate(results["params"])}
mean = np.array([[results["mean_test_score"][place[a, l2]] for a in alphas] for l2 in l2s])
spread = np.array([[results["std_test_score"][place[a, l2]] for a in alphas] for l2 in l2s])
print(f"standard deviation over folds: {spread.min():.4f} to {spread.max():.4f}")

figure, axes = plt.subplots(figsize=(7, 4))
image = axes.imshow(mean, cmap="viridis", aspect="auto")
for (row, column), value in np.ndenumerate(mean):
    dark = value < (mean.min() + mean.max()) / 2
    axes.text(column, row, f"{value:.3f}", ha="center", va="center", color="white" if dark else "black")
best = np.unravel_index(mean.argmax(), mean.shape)
axes.add_patch(plt.Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, fill=False, edgecolor="red", linewidth=2))
axes.set_xticks(range(len(alphas)), [f"{a:g}" for a in alphas])
axes.set_yticks(range(len(l2s)), [f"{l2:g}" for l2 in l2s])
axes.set(xlabel="α of the exponential loss", ylabel="l2", title="Cross-validated MAUC")
figure.colorbar(image)
figure.tight_layout()
plt.show()
