"""From scores to decisions: a ranking alone does not say where one class ends and the next begins.

held-out scores  →  posterior (posterior.py)  →  weights of the classes that make decisions cheapest (sweep.py)
                 →  MAUCDecision (classifier.py)
"""

from mauc.decision.classifier import MAUCDecision

__all__ = ["MAUCDecision"]
