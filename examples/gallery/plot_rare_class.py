"""
Is my class of 12 ranked well?
==============================

Accuracy can look fine although a model never predicts a rare class. In this example the digits are imbalanced, and the
rarest class has 12 test rows. Multiclass AUC gives every pair of classes the same weight. With your own pair weights
you can evaluate one class: how well does its score rank it above each of the others, and how precise is that number?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import MAUCPluginClassifier, mauc_interval

# %%
# The training set has 120 zeros down to 5 nines, and the test set 58 zeros down to 12 nines. To make the task harder,
# the model sees only the lower half of each image.
X, y = load_digits(return_X_y=True)
X = X[:, 32:]
rng = np.random.default_rng(0)
train_sizes = [120, 80, 60, 45, 30, 22, 16, 11, 8, 5]
test_sizes = [58, 52, 46, 40, 36, 30, 25, 20, 16, 12]
order = [rng.permutation(np.flatnonzero(y == digit)) for digit in range(10)]
train = np.concatenate([rows[:n] for rows, n in zip(order, train_sizes, strict=True)])
test = np.concatenate([rows[-n:] for rows, n in zip(order, test_sizes, strict=True)])

model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[train], y[train])
scores = model.predict_proba(X[test])

# %%
# The accuracy is fair for half an image, but the model finds no nine.
recall = recall_score(y[test], scores.argmax(axis=1), average=None)
print(f"accuracy {model.score(X[test], y[test]):.3f}, recall of the nines {recall[9]:.3f}")

# %%
# Can the model not recognise a nine, or does it only never predict one? With weights on the pairs of one class,
# :func:`mauc.mauc_interval` gives the mean of that class's row of the pair matrix, with an interval.
by_class = []
for digit in range(10):
    only = np.zeros((10, 10))
    only[digit] = 1.0
    by_class.append(mauc_interval(y[test], scores, pairs=only))
nine = by_class[9]
print(f"AUC of the nines against the others {nine.score:.3f} [{nine.low:.3f}, {nine.high:.3f}]")
whole = mauc_interval(y[test], scores)
print(f"MAUC of all classes                 {whole.score:.3f} [{whole.low:.3f}, {whole.high:.3f}]")

# %%
# So the nines are ranked well although they are not predicted: their scores are low, but higher than those of the other
# digits. Dividing the probabilities by the class frequencies finds some of them.
plugin = MAUCPluginClassifier(model).fit(X[train], y[train])
found = recall_score(y[test], plugin.predict(X[test]), average=None)
print(f"after division by the priors: accuracy {np.mean(plugin.predict(X[test]) == y[test]):.3f}, ", end="")
print(f"recall of the nines {found[9]:.3f}")

# %%
# The interval of the nines is wide because there are only 12 of them.
figure, axes = plt.subplots(figsize=(7.2, 4))
place = np.arange(10)
value = np.array([result.score for result in by_class])
reach = np.abs(np.array([[result.low, result.high] for result in by_class]).T - value)
axes.bar(place, recall, color="0.85", label="recall of the highest score")
axes.errorbar(place, value, reach, fmt="o", capsize=3, color="C0", label="AUC against the other classes, 95 %")
axes.set_xticks(place, [f"{digit}\n({n})" for digit, n in enumerate(test_sizes)])
axes.set(xlabel="digit (test samples)", ylim=(0, 1.03), title="The nines are ranked well, but not predicted")
axes.legend(loc="lower left", framealpha=1.0)
figure.tight_layout()
plt.show()
