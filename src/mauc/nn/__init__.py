"""Multiclass AUC in PyTorch, at the price of cross-entropy.

logits + targets  →  mauc_loss, MAUCLoss (functional.py, modules.py): one line instead of cross-entropy
                  →  fused on CUDA and exact over all processes (_engine/)
batches           →  ClassCoverageBatchSampler (samplers.py), full_batch_backward (fullbatch.py)
judgement         →  MAUC (metric.py)
all of it         →  MAUCMLPClassifier (classifier.py)
competitors       →  FocalLoss, ClassBalancedLoss, LDAMLoss, LogitAdjustedLoss (baselines.py),
                     DeepAUCLoss with PPDOptimizer (deepauc.py)
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from mauc._lazy import lazily

if TYPE_CHECKING:
    from mauc.nn.functional import mauc_loss
    from mauc.nn.modules import MAUCLoss

if find_spec("torch") is None:
    raise ImportError("mauc.nn needs torch, which is not installed: pip install 'mauc[torch]'")

_HOME = {
    "ClassBalancedLoss": "mauc.nn.baselines",
    "ClassCoverageBatchSampler": "mauc.nn.samplers",
    "DeepAUCLoss": "mauc.nn.deepauc",
    "FocalLoss": "mauc.nn.baselines",
    "LDAMLoss": "mauc.nn.baselines",
    "LogitAdjustedLoss": "mauc.nn.baselines",
    "MAUC": "mauc.nn.metric",
    "MAUCLoss": "mauc.nn.modules",
    "MAUCMLPClassifier": "mauc.nn.classifier",
    "PPDOptimizer": "mauc.nn.deepauc",
    "full_batch_backward": "mauc.nn.fullbatch",
    "mauc_loss": "mauc.nn.functional",
}

__all__ = [
    "MAUC",
    "ClassBalancedLoss",
    "ClassCoverageBatchSampler",
    "DeepAUCLoss",
    "FocalLoss",
    "LDAMLoss",
    "LogitAdjustedLoss",
    "MAUCLoss",
    "MAUCMLPClassifier",
    "PPDOptimizer",
    "full_batch_backward",
    "mauc_loss",
]


__getattr__ = lazily(__name__, _HOME, extra="torch")


def __dir__() -> list[str]:
    return sorted(__all__)
