"""What all classifiers share: class codes of a target, scores of any estimator."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from mauc._validation import invalid

__all__ = ["encode_classes", "scores_of"]


def encode_classes(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes of a training target, two at least, and the number of each sample's class among them."""
    if y is None:
        raise invalid(
            "y", "is required: a classifier requires y to be passed, but the target y is None", None, "pass y"
        )
    target = column_or_1d(
        check_array(y, ensure_2d=False, dtype=None, input_name="y", ensure_all_finite="allow-nan"), warn=True
    )
    if target.dtype.kind in "Of" and any(_is_missing(value) for value in target.tolist()):
        advice = "drop the samples without a class"
        raise invalid("y", "must name the class of every sample", "a missing value", advice)
    check_classification_targets(target)
    classes, codes = np.unique(target, return_inverse=True)
    if len(classes) < 2:
        came = f"1 class, {classes.tolist()[0]!r}"
        raise invalid("y", "must hold two classes or more", came, "multiclass AUC compares classes; check the split")
    return classes, codes


def _is_missing(value: Any) -> bool:
    """None, NaN, pandas.NaT and pandas.NA, which is neither equal to itself nor not."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def scores_of(estimator: Any, X: Any) -> NDArray[Any]:
    """``predict_proba`` where the estimator has it, else ``decision_function``."""
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return np.asarray(getattr(estimator, method)(X))
    raise invalid(
        "estimator",
        "must have predict_proba or decision_function",
        type(estimator).__name__,
        "pass a classifier that scores its classes; CalibratedClassifierCV makes one",
    )
