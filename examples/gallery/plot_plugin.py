"""
Can I have Bayes-optimal scores of any classifier?
===================================================

Theorem 2 says: divide the probability of each class by its share in the training data, and normalise. If the
probabilities are right, no scores have a higher multiclass AUC. :class:`mauc.MAUCPluginClassifier` does this for any
classifier. On simulated data we know the best possible score, so we can see how much the division gains.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.datasets import make_blobs
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from mauc import MAUCPluginClassifier, mauc_score
from mauc.theory import bayes_scores

# %%
# The data have five Gaussian classes of 1500 to 25 training samples. The test data are fresh.
sizes = np.array([1500, 500, 200, 75, 25])
priors = sizes / sizes.sum()
centers = 0.8 * np.random.default_rng(0).normal(size=(5, 6))
X, y = make_blobs(sizes, centers=centers, random_state=0)
X_test, y_test = make_blobs([2000] * 5, centers=centers, random_state=1)

# %%
# Even the exact posterior is not the best score: it must be divided by the priors as well.
exact = softmax(-0.5 * ((X_test[:, None] - centers) ** 2).sum(axis=2) + np.log(priors), axis=1)
ceiling = mauc_score(y_test, bayes_scores(exact, priors))
print(f"exact posterior     {mauc_score(y_test, exact):.4f}")
print(f"divided by priors   {ceiling:.4f}")

# %%
# Now do the same with estimated probabilities.
models = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "naive Bayes": GaussianNB(),
    "random forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
}
scores = {"exact posterior": (mauc_score(y_test, exact), ceiling)}
for name, model in models.items():
    plain = model.fit(X, y).predict_proba(X_test)
    divided = MAUCPluginClassifier(model).fit(X, y).predict_proba(X_test)
    scores[name] = mauc_score(y_test, plain), mauc_score(y_test, divided)
    print(f"{name:20} {scores[name][0]:.4f} -> {scores[name][1]:.4f}")

# %%
# The probabilities must be close to right. Class weights and resampling already divide by the class frequencies: do not
# divide twice.
figure, axes = plt.subplots(figsize=(7.4, 3))
for row, (before, after) in enumerate(scores.values()):
    axes.annotate("", (after, row), (before, row), arrowprops={"arrowstyle": "->", "color": "0.4", "linewidth": 1.5})
    axes.plot(before, row, "o", color="C0", label="probabilities" if row == 0 else None)
    axes.plot(after, row, "o", color="C1", label="divided by the priors" if row == 0 else None)
axes.axvline(ceiling, color="0.2", linestyle="--", linewidth=1, label="ceiling")
axes.set_yticks(range(len(scores)), scores)
axes.set(xlabel="test MAUC", ylim=(len(scores) - 0.5, -0.5))
axes.legend(loc="upper left")
axes.grid(axis="x", alpha=0.3)
figure.tight_layout()
plt.show()
