"""The metric and the linear model of :mod:`mauc` for Dask arrays, data frames and series.

``_partitions`` aligns the collections, ``metrics`` has the functions, ``linear`` the model, whose objective is a sum
over partitions (``_objective``).
"""

from mauc._lazy import needing

with needing("dask", "mauc.dask"):
    from mauc.dask.linear import MAUCClassifier
    from mauc.dask.metrics import binned_mauc, compare_mauc, mauc_interval, mauc_score, pairwise_auc

__all__ = ["MAUCClassifier", "binned_mauc", "compare_mauc", "mauc_interval", "mauc_score", "pairwise_auc"]
