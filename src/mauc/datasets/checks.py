"""Checks of arguments that more than one loader takes."""

import numbers
from typing import Any

import numpy as np

from mauc._validation import invalid

__all__ = ["check_float_dtype", "check_whole"]


def check_whole(parameter: str, value: Any, *, least: int, advice: str = "pass such a number") -> int:
    """A whole number that is not below ``least``."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise invalid(parameter, f"must be a whole number of at least {least}", repr(value), advice)
    return int(value)


def check_float_dtype(dtype: Any) -> "np.dtype[Any]":
    """float32 or float64."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float32, np.float64):
        raise invalid("dtype", "must be float32 or float64", repr(dtype), "pass one of these")
    return kind
