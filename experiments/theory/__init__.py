"""The bounds as the paper prints them, and corrected, to compare with those of :mod:`mauc.theory`."""

from experiments.theory.bernstein import bernstein, bernstein_factor
from experiments.theory.finite_lists import finite
from experiments.theory.linear_models import linear_bound, linear_complexity
from experiments.theory.logits import logit_chaining, transformation_bound
from experiments.theory.printed import theorem_7, theorem_8, theorem_9

__all__ = [
    "bernstein",
    "bernstein_factor",
    "finite",
    "linear_bound",
    "linear_complexity",
    "logit_chaining",
    "theorem_7",
    "theorem_8",
    "theorem_9",
    "transformation_bound",
]
