"""Multiclass AUC in PyTorch, at the price of cross-entropy.

logits + targets  →  mauc_loss, MAUCLoss (functional.py, modules.py): one line instead of cross-entropy
                  →  fused on CUDA (triton.py), exact over all processes (distributed.py)
batches           →  ClassCoverageBatchSampler (samplers.py), full_batch_backward (fullbatch.py)
judgement         →  MAUC (metric.py)
all of it         →  MAUCMLPClassifier (classifier.py)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mauc.nn.functional import mauc_loss
    from mauc.nn.modules import MAUCLoss

_HOME = {
    "ClassCoverageBatchSampler": "mauc.nn.samplers",
    "MAUC": "mauc.nn.metric",
    "MAUCLoss": "mauc.nn.modules",
    "MAUCMLPClassifier": "mauc.nn.classifier",
    "full_batch_backward": "mauc.nn.fullbatch",
    "mauc_loss": "mauc.nn.functional",
}

__all__ = [
    "MAUC",
    "ClassCoverageBatchSampler",
    "MAUCLoss",
    "MAUCMLPClassifier",
    "full_batch_backward",
    "mauc_loss",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'mauc.nn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
