"""Checks of arguments that more than one loader takes."""

from typing import Any

import numpy as np

from mauc._validation import invalid

__all__ = ["check_float_dtype"]


def check_float_dtype(dtype: Any) -> "np.dtype[Any]":
    """float32 or float64."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float32, np.float64):
        raise invalid("dtype", "must be float32 or float64", repr(dtype))
    return kind
