"""The folder of data files that the user names, and the tables in it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from experiments.datasets.catalogue import Table
from mauc._archive import read_arrays
from mauc._typing import Floats, Ints
from mauc._validation import invalid

__all__ = ["Splits", "data_folder", "read_table"]

VARIABLE = "MAUC_DATA_HOME"
ARRAYS = ("X", "y", "train", "validation", "test")

Splits = list[tuple[Ints, Ints, Ints]]


def data_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """Return the argument, else the environment variable, else ``mauc`` in scikit-learn's data folder.

    A folder that was named must exist: to fetch other data quietly would hide a slip of the pen.
    """
    requirement, advice = "must be a folder", "name the folder that holds traditional/ and kddcup99/"
    if data_home is not None:
        if not isinstance(data_home, str | os.PathLike):
            raise invalid("data_home", requirement, repr(data_home), advice)
        parameter, folder = "data_home", Path(data_home).expanduser()
    elif os.environ.get(VARIABLE):
        parameter, folder = f"the environment variable {VARIABLE}", Path(os.environ[VARIABLE]).expanduser()
    else:
        return Path(sklearn_datasets.get_data_home()) / "mauc"
    if not folder.is_dir():
        raise invalid(parameter, requirement, f"{str(folder)!r}, which does not exist", advice)
    return folder


def read_table(path: Path, table: Table) -> tuple[Floats, Ints, Splits]:
    """Read features, class codes and the authors' splits from their file."""
    try:
        arrays = read_arrays(path)
        for key in ARRAYS:
            if key not in arrays:
                raise ValueError(f"{key} is not a file in the archive")
        X, y, *parts = (arrays[key] for key in ARRAYS)
        codes = y.astype(np.int64, casting="same_kind")
        splits = list(zip(*(part.astype(np.int64, casting="same_kind") for part in parts), strict=True))
        check_is_table(X, codes, table)
        if any(part.min() < 0 or part.max() >= len(codes) for part in parts):
            raise ValueError("a split that names rows beyond the last")
    except (TypeError, ValueError) as error:
        requirement = "must hold the arrays X, y, train, validation and test of the authors' release"
        raise invalid(str(path), requirement, str(error).strip("'\""), "fetch the file again") from None
    return np.ascontiguousarray(X, dtype=np.float64), codes, splits


def check_is_table(X: Any, codes: Ints, table: Table) -> None:
    """Check the numbers of features and of rows in each class; ValueError if they are not the table's."""
    if X.ndim != 2 or X.shape != (len(codes), table.n_features):
        raise ValueError(f"X of shape {X.shape} for {len(codes)} rows and {table.n_features} features")
    sizes = np.bincount(codes, minlength=len(table.classes)).tolist()
    if sizes != table.class_sizes:
        raise ValueError(f"class sizes {sizes} for {table.class_sizes}")
