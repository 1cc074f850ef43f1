"""The samplers of the paper's experiments, and what one would try instead; needs imbalanced-learn."""

from experiments.baselines.mwmote import MWMOTE
from experiments.baselines.registry import BASELINES, make_sampler
from experiments.baselines.safe import SafeSampler

__all__ = ["BASELINES", "MWMOTE", "SafeSampler", "make_sampler"]
