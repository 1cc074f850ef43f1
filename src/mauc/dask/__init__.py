"""The same metric and the same linear model where the rows are on many workers, or on disk.

dask arrays, data frames, series → aligned partitions (_partitions.py) → metrics.py, equal to their namesakes in
:mod:`mauc`; linear.py, whose objective is a sum over partitions (_objective.py), with lazy predictions.
"""

from mauc._lazy import needing

with needing("dask", "mauc.dask"):
    from mauc.dask.linear import MAUCClassifier
    from mauc.dask.metrics import compare_mauc, mauc_interval, mauc_score, pairwise_auc

__all__ = ["MAUCClassifier", "compare_mauc", "mauc_interval", "mauc_score", "pairwise_auc"]
