"""The tables that OpenML has, row for row, for users who do not have the authors' files."""

import warnings
from http.client import HTTPException
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_datasets

from experiments.datasets.catalogue import Table
from experiments.datasets.folder import check_is_table
from mauc._typing import Floats, Ints

__all__ = ["fetch_table"]


def fetch_table(table: Table) -> tuple[Floats, Ints]:
    """Load features and class codes from OpenML, as in the authors' file; scikit-learn caches the download.

    Raises
    ------
    OSError
        Why there is nothing, as the part of a message.
    """
    try:
        with warnings.catch_warnings():
            # scikit-learn warns at each retry; that they all failed is said once, by the error.
            warnings.simplefilter("ignore")
            # This parser does without pandas.
            fetched = sklearn_datasets.fetch_openml(data_id=table.openml_id, as_frame=False, parser="liac-arff")
        X, codes = _as_released(fetched, table)
        check_is_table(X, codes, table)
    except (OSError, HTTPException, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise OSError(f"OpenML's data set {table.openml_id} did not come ({reason})") from None
    return X, codes


def _as_released(fetched: Any, table: Table) -> tuple[Floats, Ints]:
    X = np.array(fetched.data, dtype=np.float64, order="C")
    for column, feature in enumerate(fetched.feature_names):
        if feature in fetched.categories:  # numbers that OpenML calls categories come as their places in a list
            values = np.array(fetched.categories[feature], dtype=np.float64)
            known = ~np.isnan(X[:, column])
            X[known, column] = values[X[known, column].astype(np.int64)]
    labels = table.openml_labels or tuple(table.classes)
    code_of = {label: code for code, label in enumerate(labels)}
    codes = np.array([code_of.get(str(label), len(labels)) for label in fetched.target], dtype=np.int64)
    kept = ~np.isnan(X).any(axis=1)
    if table.extra_row is not None:
        kept &= (np.array(table.extra_row) != X).any(axis=1)
    return X[kept], codes[kept]
