"""The paper's definitions and theorems as functions; ``docs/theory.md`` has the formulas and the proofs.

posterior + priors  →  bayes_scores, ova_weights (bayes.py): the best scores, and the pair weights of one-vs-rest
surrogate           →  consistency_report (consistency.py): whether minimising its risk leads to those scores
                       bernstein (consistency.py): its polynomial in the paper
                       risk_minimiser, smallest_alpha, largest_alpha (minimiser.py): the scores that it leads to
class sizes         →  imbalance (imbalance.py): ξ, χ, and which class gains most from one more sample
model + data        →  bounds (bounds/): the risk on unseen data, from that on the training data
"""

from mauc.theory import bounds
from mauc.theory.bayes import bayes_scores, ova_weights
from mauc.theory.consistency import ConsistencyReport, bernstein, consistency_report
from mauc.theory.imbalance import Imbalance, imbalance
from mauc.theory.minimiser import RiskMinimiser, largest_alpha, likelihoods, risk_minimiser, smallest_alpha

__all__ = [
    "ConsistencyReport",
    "Imbalance",
    "RiskMinimiser",
    "bayes_scores",
    "bernstein",
    "bounds",
    "consistency_report",
    "imbalance",
    "largest_alpha",
    "likelihoods",
    "ova_weights",
    "risk_minimiser",
    "smallest_alpha",
]
