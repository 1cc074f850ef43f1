"""Multiclass AUC as AutoGluon's ``eval_metric``."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mauc._lazy import needing
from mauc._validation import check_codes, check_pairs, check_weights
from mauc.metrics import mauc_score

__all__ = ["autogluon_scorer"]


def autogluon_scorer(pairs: str | ArrayLike = "ovo", *, name: str = "mauc") -> Any:
    """Multiclass AUC as a scorer of AutoGluon: ``TabularPredictor(label, eval_metric=autogluon_scorer())``.

    It stops AutoGluon's boosting, chooses and weighs its models, and is what ``evaluate`` and ``leaderboard`` report.
    Unlike AutoGluon's own ``"roc_auc_ovo"`` it takes weights of samples, and two classes too. Classes without rows in
    the part that is scored drop out, as do rows of weight 0.

    Parameters
    ----------
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
        ``"ovo"``: every pair of classes counts the same. ``"ova"``: each class against all others together. A matrix:
        ``[i, j]`` is the weight of column i on class i against class j, in the order of the predictor's
        ``class_labels``.
    name : str, default="mauc"
        How AutoGluon's logs and tables call it.

    Returns
    -------
    autogluon.core.metrics.Scorer

    Notes
    -----
    AutoGluon leaves out classes of fewer than 10 rows before any metric sees them:
    ``TabularPredictor(…, learner_kwargs={"label_count_threshold": 1})`` keeps them.
    """
    with needing(None, "autogluon_scorer", package="autogluon.tabular"):
        from autogluon.core.metrics import make_scorer
    if isinstance(pairs, str):
        check_pairs(pairs, 2)
    # Not a closure: AutoGluon pickles its scorer with the models.
    return make_scorer(name, partial(mauc_of_codes, pairs=pairs), optimum=1.0, greater_is_better=True, needs_proba=True)


def mauc_of_codes(
    y_true: ArrayLike, y_pred: Any, *, pairs: str | ArrayLike = "ovo", sample_weight: ArrayLike | None = None
) -> float:
    """Multiclass AUC as AutoGluon asks for it: by the numbers of the columns as classes, LightGBM's as floats, and of
    two classes by the ``(N,)`` probability of the second.
    """
    scores = np.asarray(y_pred)
    n_classes = 2 if scores.ndim == 1 else scores.shape[1]
    codes = check_codes(y_true, len(scores), n_classes)
    if sample_weight is not None:
        # AutoGluon takes an error, such as that a class weighs nothing, for "knows no weights", and drops them.
        weight = check_weights(sample_weight, codes.shape)
        scores, codes, sample_weight = scores[weight > 0], codes[weight > 0], weight[weight > 0]
    labels = np.arange(n_classes)
    return mauc_score(codes, scores, pairs=pairs, labels=labels, sample_weight=sample_weight, absent="ignore")
