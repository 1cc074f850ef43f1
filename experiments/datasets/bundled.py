"""Two sets that come with scikit-learn, made imbalanced: they need no file and no net."""

from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

__all__ = ["BUNDLED", "load_bundled"]

BUNDLED = {
    "digits-imb": (170, 120, 85, 60, 42, 30, 21, 15, 11, 8),
    "wine-imb": (59, 24, 10),
}
ORIGIN = {"digits-imb": "UCI Optical Recognition of Handwritten Digits", "wine-imb": "UCI Wine"}
SEED = 0


def load_bundled(name: str) -> Bunch:
    """Load a bundled set; the samples of each class are drawn with a fixed seed, class after class."""
    full: Any = sklearn_datasets.load_digits() if name == "digits-imb" else sklearn_datasets.load_wine()
    rng = np.random.default_rng(SEED)
    kept = np.concatenate(
        [
            rng.choice(np.flatnonzero(full.target == code), size, replace=False)
            for code, size in enumerate(BUNDLED[name])
        ]
    )
    return Bunch(
        X=np.ascontiguousarray(full.data[kept], dtype=np.float64),
        y=full.target[kept].astype(np.int64),
        splits=None,
        target_names=[str(label) for label in full.target_names],
        name=name,
        DESCR=f"Source: {ORIGIN[name]}, as scikit-learn bundles it; subsampled by mauc.\nLicence: CC BY 4.0 (UCI).",
    )
