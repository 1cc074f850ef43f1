"""What to compare with: the samplers of the paper's experiments, and what one would try instead.

name  →  BASELINES (registry.py): title, reference, grid to tune
      →  make_baseline: sampler (SafeSampler in safe.py, MWMOTE in mwmote.py) → classifier, in one pipeline

All of it needs imbalanced-learn, which comes with ``pip install 'mauc[bench]'``.
"""

try:
    import imblearn  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "imblearn":
        raise
    raise ImportError(
        "experiments.baselines needs imbalanced-learn, which is not installed: run pip install 'mauc[bench]'"
    ) from error

from experiments.baselines.mwmote import MWMOTE, MinorityAnalysis
from experiments.baselines.registry import BASELINES, Baseline, baseline_names, make_baseline, make_sampler
from experiments.baselines.safe import SafeSampler

__all__ = [
    "BASELINES",
    "MWMOTE",
    "Baseline",
    "MinorityAnalysis",
    "SafeSampler",
    "baseline_names",
    "make_baseline",
    "make_sampler",
]
