"""MAUC Rademacher complexity (Definition 2): how far a class of models can follow random signs of the samples.

By simulation for linear models (:func:`linear`); bounded by norms (:func:`linear_bound`) or covering numbers
(:func:`chaining`).
"""

from mauc.theory.rademacher.covering import chaining
from mauc.theory.rademacher.norms import linear_bound
from mauc.theory.rademacher.simulation import Complexity, linear

__all__ = ["Complexity", "chaining", "linear", "linear_bound"]
