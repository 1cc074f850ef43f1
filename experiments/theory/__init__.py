"""The paper's bounds as printed and corrected, to compare with those of :mod:`mauc.theory`, and counterexamples."""

from experiments.theory.bernstein import bernstein, bernstein_factor
from experiments.theory.finite_lists import finite
from experiments.theory.linear_models import linear_bound, linear_complexity
from experiments.theory.logits import logit_chaining, transformation_bound
from experiments.theory.minimiser import RiskMinimiser, counterexample, likelihoods, risk_minimiser
from experiments.theory.printed import theorem_7, theorem_8, theorem_9

__all__ = [
    "RiskMinimiser",
    "bernstein",
    "bernstein_factor",
    "counterexample",
    "finite",
    "likelihoods",
    "linear_bound",
    "linear_complexity",
    "logit_chaining",
    "risk_minimiser",
    "theorem_7",
    "theorem_8",
    "theorem_9",
    "transformation_bound",
]
