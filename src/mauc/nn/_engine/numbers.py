"""Checks of the whole numbers that samplers, metrics and models take."""

from typing import Any

import numpy as np

from mauc._validation import invalid

__all__ = ["check_whole"]


def check_whole(parameter: str, value: Any, *, least: int, advice: str = "pass such a number") -> int:
    """A whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise invalid(parameter, f"must be a whole number of at least {least}", repr(value), advice)
    return int(value)
