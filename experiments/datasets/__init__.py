"""Data sets: the paper's tables, KDD Cup 99, two bundled ones, and simulated ones with a known ceiling."""

from experiments.datasets.loader import load, names
from experiments.datasets.simulated import load_simulated
from experiments.datasets.splits import stratified_splits

__all__ = ["load", "load_simulated", "names", "stratified_splits"]
