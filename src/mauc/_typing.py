"""Aliases of array types, and of options that take a few words."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Absent = Literal["raise", "ignore"]
By = Literal["column", "difference"]
PairName = Literal["ovo", "ova", "ovr"]
Pairs = PairName | ArrayLike
"""Weights of the class pairs: a name or a (C, C) matrix."""
