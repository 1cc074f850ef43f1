"""The paper's definitions and theorems as functions; ``docs/theory.md`` has the formulas and the proofs.

posterior + priors  →  bayes_scores, ova_weights (bayes.py): the best scores, and the pair weights of one-vs-rest
surrogate           →  consistency_report (consistency.py): whether minimising its risk leads to those scores
                       smallest_alpha, largest_alpha: the α that suit scores in [0, 1]
class sizes         →  imbalance (imbalance.py): ξ, χ, and which class gains most from one more sample
model + data        →  bounds (bounds/): the risk on unseen data, from that on the training data
"""

from typing import TYPE_CHECKING

from mauc._lazy import lazily

# Not lazily: the function has the name of its module.
from mauc.theory.imbalance import Imbalance, imbalance

if TYPE_CHECKING:
    from mauc.theory import bounds
    from mauc.theory.bayes import bayes_scores, ova_weights
    from mauc.theory.consistency import ConsistencyReport, consistency_report, largest_alpha, smallest_alpha

_HOME = {
    "ConsistencyReport": "mauc.theory.consistency",
    "bayes_scores": "mauc.theory.bayes",
    "bounds": "mauc.theory.bounds",
    "consistency_report": "mauc.theory.consistency",
    "largest_alpha": "mauc.theory.consistency",
    "ova_weights": "mauc.theory.bayes",
    "smallest_alpha": "mauc.theory.consistency",
}

__all__ = [
    "ConsistencyReport",
    "Imbalance",
    "bayes_scores",
    "bounds",
    "consistency_report",
    "imbalance",
    "largest_alpha",
    "ova_weights",
    "smallest_alpha",
]

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
