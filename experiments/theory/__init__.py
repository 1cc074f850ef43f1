"""The bounds as the paper prints them, and corrected, to compare with those of :mod:`mauc.theory`."""

from experiments.theory.linear_models import linear_bound, linear_complexity
from experiments.theory.printed import theorem_7, theorem_8, theorem_9

__all__ = ["linear_bound", "linear_complexity", "theorem_7", "theorem_8", "theorem_9"]
