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
        "mauc.baselines needs imbalanced-learn, which is not installed: run pip install 'mauc[bench]'"
    ) from error

from mauc.baselines.mwmote import MWMOTE, MinorityAnalysis
from mauc.baselines.registry import BASELINES, Baseline, baseline_names, make_baseline, make_sampler
from mauc.baselines.safe import SafeSampler

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
