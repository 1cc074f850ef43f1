"""
What do the surrogates look like?
=================================

The 0-1 loss of a pair is 1 if the positive has a lower score than the negative. Training replaces it by a function ℓ of
the difference t of the two scores. Softmax scores differ by at most 1, so only [−1, 1] matters.
"""

import matplotlib.pyplot as plt
import numpy as np

from mauc import theory
from mauc.surrogates import get_surrogate

SYMBOLS = {"alpha": "α", "epsilon": "ε"}
chosen = [
    ("squared", {}),
    ("exponential", {}),
    ("exponential", {"alpha": 4.0}),
    ("logistic", {"alpha": 4.0}),
    ("hinge", {}),
    ("hinge", {"alpha": 0.3}),
    ("generalized_hinge", {"alpha": 0.3, "epsilon": 0.2}),
    ("q_hinge", {"q": 2.0}),
    ("distance_weighted", {"epsilon": 0.5}),
]

# %%
# Theorem 3 gives a condition under which minimising the risk leads to the best scores. It is sufficient, not necessary.
for name, options in chosen:
    report = theory.consistency_report(name, **options)
    print(f"{name:18} {options!s:32} condition {'met' if report.satisfied else 'not met'}")

# %%
# The curves are ℓ(t) / ℓ(0), so that all pass through one point. If a curve is steep left of 0, wrongly ranked pairs
# cost more; if it is flat right of 0, well-ranked pairs cost nothing. A larger α makes the exponential and the logistic
# loss steeper; a smaller α makes the hinge ignore a pair sooner.
t = np.linspace(-1, 1, 401)
figure, panels = plt.subplots(1, 2, figsize=(9.4, 4), sharey=True)
for place, (name, options) in enumerate(chosen):
    surrogate = get_surrogate(name, **options)
    label = ", ".join([name, *(f"{SYMBOLS.get(key, key)} = {value:g}" for key, value in options.items())])
    panel = panels[0] if surrogate.name in ("squared", "exponential", "logistic", "distance_weighted") else panels[1]
    panel.plot(t, surrogate.loss(t) / surrogate.loss(np.zeros(1)), label=label, color=f"C{place}")
for panel, title in zip(panels, ("Smooth", "Hinge family"), strict=True):
    panel.step([-1, 0, 1], [1, 1, 0], where="pre", color="0.3", linestyle=":", label="0-1 loss")
    panel.set(xlabel="t, score of the positive minus that of the negative", title=title, ylim=(0, 5))
    panel.legend(fontsize=9)
    panel.grid(alpha=0.3)
panels[0].set_ylabel("ℓ(t) / ℓ(0)")
figure.tight_layout()
plt.show()
