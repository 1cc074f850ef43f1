"""Draw the picture of ``theory.md``: minimisers of the risk over scores in [0, 1] as α grows.

Run with ``PYTHONPATH=. python docs/theory_picture.py``; it writes ``docs/_static/minimisers.png``.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from experiments.theory import likelihoods, risk_minimiser

HERE = Path(__file__).parent
RATIOS = np.geomspace(0.1, 10.0, 9)
ALPHAS = np.geomspace(0.1, 20.0, 161)
TIED = 1e-6

distribution = likelihoods(RATIOS)
figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), sharey=True, layout="constrained")
colours = plt.get_cmap("viridis")(np.linspace(0.0, 0.92, len(RATIOS)))
for ax, name in zip(axes, ("exponential", "logistic", "squared"), strict=True):
    found = [risk_minimiser(name, distribution, "unit", alpha=alpha) for alpha in ALPHAS]
    # Inside the interval any shift of the scores has the same risk: the middle point is drawn at one half.
    scores = np.array([each.scores[:, 0] for each in found])
    scores += np.where(np.ptp(scores, axis=1) < 1 - TIED, 0.5 - scores[:, len(RATIOS) // 2], 0.0)[:, None]
    tied = np.array([not each.optimal for each in found])
    ax.fill_between(ALPHAS, 0, 1, where=tied, transform=ax.get_xaxis_transform(), color="0.88", linewidth=0)
    for k, ratio in enumerate(RATIOS):
        ax.plot(ALPHAS, scores[:, k], color=colours[k], linewidth=1.6, label=f"{ratio:.3g}")
    # The spread of the unbounded minimiser is proportional to α for the squared loss, else to 1 / α.
    spread = risk_minimiser(name, distribution, alpha=1.0).spread
    edge, side = (1.0 / spread, "up to") if name == "squared" else (spread, "from")
    ax.axvline(edge, color="black", linewidth=1, linestyle="--")
    ax.text(edge * 1.07, -0.085, f"{side} α = {edge:.2f}", fontsize=8)
    worst = min(found, key=lambda each: each.mauc)
    ax.set_title(f"{name}: AUC {worst.mauc:.3f} to {worst.bayes_mauc:.3f}", fontsize=10)
    ax.set(xscale="log", xlabel="α", xlim=(ALPHAS[0], ALPHAS[-1]), ylim=(-0.12, 1.05))
    ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
axes[0].set_ylabel("score of the minimiser")
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles[::-1], labels[::-1], title="likelihood\nratio", loc="outside right center", fontsize=8)
target = HERE / "_static" / "minimisers.png"
figure.savefig(target, dpi=110, metadata={"Software": None})
print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
