"""Turn scores into decisions.

held-out scores → posterior (posterior.py) → shifts of the classes that make decisions cheapest (sweep.py)
→ MAUCDecision (classifier.py)
"""

from mauc.decision.classifier import MAUCDecision

__all__ = ["MAUCDecision"]
