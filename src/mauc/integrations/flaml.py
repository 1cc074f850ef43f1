"""Multiclass AUC as FLAML's metric. Nothing here imports FLAML."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from mauc._estimators import mauc_of_known
from mauc._validation import check_pairs

__all__ = ["FlamlMetric", "flaml_metric"]


@dataclass(frozen=True, eq=False)
class FlamlMetric:
    """What :func:`flaml_metric` makes: an object, not a closure, so that an ``AutoML`` that holds it can be pickled."""

    pairs: str | ArrayLike = "ovo"

    def __call__(
        self,
        X_val: Any,
        y_val: ArrayLike,
        estimator: Any,
        labels: Any,
        X_train: Any,
        y_train: Any,
        weight_val: ArrayLike | None = None,
        weight_train: Any = None,
        config: Any = None,
        groups_val: Any = None,
        groups_train: Any = None,
    ) -> tuple[float, dict[str, float]]:
        """FLAML minimises the first; the second is for its log, and tells it the seconds per row of a prediction."""
        began = time.perf_counter()
        scores = estimator.predict_proba(X_val)
        seconds = (time.perf_counter() - began) / len(scores)
        score = mauc_of_known(y_val, scores, estimator.classes_, self.pairs, weight_val)
        return 1.0 - score, {"mauc": score, "pred_time": seconds}


def flaml_metric(pairs: str | ArrayLike = "ovo") -> FlamlMetric:
    """Multiclass AUC for FLAML: ``AutoML().fit(X, y, task="classification", metric=flaml_metric())``.

    The loss is ``1 − MAUC`` on the part that FLAML holds out; its log has the MAUC too. Classes without rows in that
    part drop out, and with a warning rows of a class that the training part lacks.

    Parameters
    ----------
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
        ``"ovo"``: every pair of classes counts the same. ``"ova"``: each class against all others together. A matrix:
        ``[i, j]`` is the weight of column i on class i against class j, classes in sorted order.

    Returns
    -------
    FlamlMetric
        A function of FLAML's eleven arguments.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from mauc.integrations import flaml_metric
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000).fit(X[::2], y[::2])
    >>> loss, logged = flaml_metric()(X[1::2], y[1::2], model, [0, 1, 2], X[::2], y[::2])
    >>> round(loss, 3), round(logged["mauc"], 3)
    (0.003, 0.997)
    """
    if isinstance(pairs, str):
        check_pairs(pairs, 2)
    return FlamlMetric(pairs)
