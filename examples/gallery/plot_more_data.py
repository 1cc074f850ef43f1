"""
What does more data of the rare class buy?
==========================================

You can pay for more labels. Which class should you label? A term of every bound of the theory is
proportional to :math:`\\sqrt{\\sum_i 1/n_i}`, and rare classes dominate the sum. :func:`mauc.theory.imbalance`
computes it. This example checks by a simulation whether training follows the bounds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from mauc import MAUCClassifier, theory

# %%
# The three classes have 400, 80 and 16 samples.
sizes = np.array([400, 80, 16])
print(theory.imbalance(np.repeat(["frequent", "middle", "rare"], sizes)))

# %%
# Now add samples of the frequent or of the rare class, train, and test on fresh data. The numbers are means of 10
# repetitions.
centers = 0.5 * np.random.default_rng(0).normal(size=(3, 20))
X_test, y_test = make_blobs([2000] * 3, centers=centers, random_state=1000)
added = (0, 16, 48, 112, 240)
measured = {}
for c, name in ((0, "frequent"), (2, "rare")):
    for more in added:
        grown = sizes + more * (np.arange(3) == c)
        scores = []
        for seed in range(10):
            X, y = make_blobs(grown, centers=centers, random_state=seed)
            scores.append(MAUCClassifier("squared", l2=1e-3, tol=1e-4).fit(X, y).score(X_test, y_test))
        measured[name, more] = np.mean(scores), np.std(scores) / np.sqrt(len(scores))
    first, last = measured[name, 0], measured[name, added[-1]]
    print(f"{added[-1]} more of the {name} class: test MAUC {first[0]:.3f} -> {last[0]:.3f} (± {last[1]:.3f})")

# %%
# More samples of the frequent class gain nothing here; as many of the rare class do, as the bounds predict.
# The same experiment with more repetitions is in :doc:`the results </results/generalization>`.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
for c, name, style in ((0, "frequent", "s--"), (2, "rare", "o-")):
    rate = [theory.imbalance(np.repeat(np.arange(3), sizes + more * (np.arange(3) == c))).rate for more in added]
    left.plot(added, rate, style, label=f"{name} class")
    value, error = np.array([measured[name, more] for more in added]).T
    right.errorbar(added, value, error, fmt=style, capsize=3, label=f"{name} class")
left.set(
    xlabel="samples added",
    ylabel=r"$\xi / \sqrt{N} = \sqrt{\sum_i 1/n_i}$",
    title="What the bounds say",
    ylim=(0, None),
)
right.set(xlabel="samples added", ylabel="test MAUC", title="What training gives")
for panel in (left, right):
    panel.legend(title="added to the")
    panel.grid(alpha=0.3)
figure.tight_layout()
plt.show()
