"""Multiclass AUC in PyTorch: losses, batches and a metric.

loss         MAUCLoss, mauc_loss (modules.py, functional.py), computed by _loss/ and on CUDA by _triton/
batches      ClassCoverageBatchSampler (samplers.py), full_batch_backward (fullbatch.py)
metric       MAUC (metric.py); mauc_score and pairwise_auc in functional.py
alternative  LogitAdjustedLoss (logit_adjusted.py): cross-entropy adjusted to the class frequencies
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
    "ClassCoverageBatchSampler": "mauc.nn.samplers",
    "LogitAdjustedLoss": "mauc.nn.logit_adjusted",
    "MAUC": "mauc.nn.metric",
    "MAUCLoss": "mauc.nn.modules",
    "full_batch_backward": "mauc.nn.fullbatch",
    "mauc_loss": "mauc.nn.functional",
}

__all__ = [
    "MAUC",
    "ClassCoverageBatchSampler",
    "LogitAdjustedLoss",
    "MAUCLoss",
    "full_batch_backward",
    "mauc_loss",
]


__getattr__ = lazily(__name__, _HOME, extra="torch")


def __dir__() -> list[str]:
    return sorted(__all__)
