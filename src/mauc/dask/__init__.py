"""The same metric and the same linear model where the rows are on many workers, or on disk.

dask arrays, data frames, series  →  aligned partitions (_partitions.py)
                                  →  mauc_score, pairwise_auc, mauc_interval, compare_mauc (metrics.py), equal to their
                                     namesakes in :mod:`mauc`; binned_mauc_score where even N numbers are too many
                                  →  MAUCClassifier (linear.py), MAUCPluginClassifier (plugin.py): lazy predictions,
                                     to_local() for a plain model
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from mauc._lazy import lazily

if TYPE_CHECKING:
    from mauc.dask.linear import MAUCClassifier
    from mauc.dask.metrics import (
        BinnedScore,
        binned_mauc_score,
        compare_mauc,
        mauc_interval,
        mauc_score,
        pairwise_auc,
    )
    from mauc.dask.plugin import MAUCPluginClassifier

if find_spec("dask") is None:
    raise ImportError("mauc.dask needs dask, which is not installed: pip install 'mauc[dask]'")

_HOME = {
    "BinnedScore": "mauc.dask.metrics",
    "MAUCClassifier": "mauc.dask.linear",
    "MAUCPluginClassifier": "mauc.dask.plugin",
    "binned_mauc_score": "mauc.dask.metrics",
    "compare_mauc": "mauc.dask.metrics",
    "mauc_interval": "mauc.dask.metrics",
    "mauc_score": "mauc.dask.metrics",
    "pairwise_auc": "mauc.dask.metrics",
}

__all__ = [
    "BinnedScore",
    "MAUCClassifier",
    "MAUCPluginClassifier",
    "binned_mauc_score",
    "compare_mauc",
    "mauc_interval",
    "mauc_score",
    "pairwise_auc",
]

__getattr__ = lazily(__name__, _HOME, extra="dask")


def __dir__() -> list[str]:
    return sorted(__all__)
