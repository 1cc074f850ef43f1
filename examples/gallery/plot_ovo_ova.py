"""
One-vs-one or one-vs-rest: which one sees a rare class?
=======================================================

Both average the pair matrix. One-vs-one gives every ordered pair the same weight. One-vs-rest compares a class with all
other rows, so the weight of a pair grows with the size of its second class. If the second class is rare, the score may
rank it at random and the mean hardly changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from mauc import mauc_score
from mauc.theory import ova_weights

# %%
# These are the weights of three classes of 50, 45 and 5 % (Example 1 of the paper).
priors = np.array([0.50, 0.45, 0.05])
print("ova weights\n", ova_weights(priors).round(3))

# %%
# Model a cannot separate the first class from the rare third one. Model b errs a little on the two frequent classes.
a, b = np.ones((2, 3, 3))
a[0, 2] = 0.5
b[0, 1] = 0.8
ovo, ova = np.full((3, 3), 1 / 6), ova_weights(priors)
np.fill_diagonal(ovo, 0.0)
for name, matrix in (("a", a), ("b", b)):
    print(f"model {name}: ovo {np.sum(ovo * matrix):.3f}, ova {np.sum(ova * matrix):.3f}")

# %%
# One-vs-rest (ova) prefers model a, which ranks one pair at random. One-vs-one (ovo) prefers model b. The same happens
# on data: all pairs but one are ranked well, and the rare class of that pair gets rarer.
rng = np.random.default_rng(0)
shares = np.array([0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005])
measured = {"ovo": [], "ova": []}
for share in shares:
    y = np.repeat([0, 1, 2], np.round(20_000 * np.array([(1 - share) / 2, (1 - share) / 2, share])).astype(int))
    scores = rng.normal(size=(len(y), 3)) + 3 * np.eye(3)[y]
    scores[y == 2, 0] += 3  # column 0 does not tell class 2 from class 0
    for pairs, values in measured.items():
        values.append(mauc_score(y, scores, pairs=pairs))

figure, axes = plt.subplots(figsize=(6.4, 3.6))
axes.semilogx(shares, measured["ovo"], "o-", label="ovo: every pair counts the same")
axes.semilogx(shares, measured["ova"], "s--", label="ova: a pair counts by the size of its second class")
axes.set(xlabel="share of the rare class", ylabel="multiclass AUC", title="One pair of classes is ranked at random")
axes.invert_xaxis()
axes.legend(loc="center right")
axes.grid(alpha=0.3)
figure.tight_layout()
plt.show()
