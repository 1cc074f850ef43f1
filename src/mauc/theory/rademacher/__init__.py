"""MAUC Rademacher complexity (Definition 2): how far a class of models can follow random signs of the samples.

By simulation for linear models (:func:`linear`), exactly for a finite list (:func:`finite`); bounded by norms
(:func:`linear_bound`), covering numbers (:func:`chaining`, :func:`logit_chaining`) or the ordinary complexity of the
logits (:func:`transformation_bound`).
"""

from mauc.theory.rademacher.covering import chaining, logit_chaining, transformation_bound
from mauc.theory.rademacher.finite_lists import finite
from mauc.theory.rademacher.norms import contraction_bound, linear_bound
from mauc.theory.rademacher.simulation import Complexity, linear

__all__ = [
    "Complexity",
    "chaining",
    "contraction_bound",
    "finite",
    "linear",
    "linear_bound",
    "logit_chaining",
    "transformation_bound",
]
