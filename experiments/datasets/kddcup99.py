"""KDD Cup 1999, the 10 % training set: the real large table with extreme imbalance."""

import gzip
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from mauc._typing import Floats
from mauc._validation import invalid

__all__ = ["FILE", "fetch_kddcup99", "read_kddcup99"]

FILE = "kddcup99/kddcup.data_10_percent.gz"
DESCR = "Source: UCI KDD Cup 1999 Data, 10 % training set.\nLicence: CC BY 4.0 (UCI)."
# fmt: off
COLUMNS = [
    "duration", "protocol_type", "service", "flag", "src_bytes", "dst_bytes", "land", "wrong_fragment", "urgent", "hot",
    "num_failed_logins", "logged_in", "num_compromised", "root_shell", "su_attempted", "num_root", "num_file_creations",
    "num_shells", "num_access_files", "num_outbound_cmds", "is_host_login", "is_guest_login", "count", "srv_count",
    "serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate", "same_srv_rate", "diff_srv_rate",
    "srv_diff_host_rate", "dst_host_count", "dst_host_srv_count", "dst_host_same_srv_rate", "dst_host_diff_srv_rate",
    "dst_host_same_src_port_rate", "dst_host_srv_diff_host_rate", "dst_host_serror_rate", "dst_host_srv_serror_rate",
    "dst_host_rerror_rate", "dst_host_srv_rerror_rate",
]
# fmt: on
CATEGORICAL = ("protocol_type", "service", "flag")
CATEGORICAL_AT = [COLUMNS.index(name) for name in CATEGORICAL]
NUMERIC_AT = [k for k in range(len(COLUMNS)) if k not in CATEGORICAL_AT]


def read_kddcup99(path: Path, dtype: "np.dtype[Any]") -> Bunch:
    """Parse the original file."""
    import pandas as pd  # only here: tests of the core draw other sets without pandas

    try:
        table = pd.read_csv(path, header=None, compression="gzip", keep_default_na=False)
        if table.shape[1] != len(COLUMNS) + 1:
            raise ValueError(f"{table.shape[1]} columns")
        numeric = table[NUMERIC_AT].to_numpy(np.float64)
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        requirement = "must be the gzipped 10 % training set of KDD Cup 1999, 42 columns"
        raise invalid(str(path), requirement, str(error), "fetch the file again") from None
    return _bunch(numeric, table[[*CATEGORICAL_AT, len(COLUMNS)]].to_numpy(np.str_), dtype)


def fetch_kddcup99(dtype: "np.dtype[Any]") -> Bunch:
    """Load scikit-learn's copy of the same file, downloaded at first use.

    Raises
    ------
    OSError
        Why there is nothing, as the part of a message.
    """
    try:
        fetched = sklearn_datasets.fetch_kddcup99(percent10=True)
    except (OSError, HTTPException) as error:
        reason = str(error) or type(error).__name__
        raise OSError(f"the download by scikit-learn's fetch_kddcup99 failed ({reason})") from None
    words = np.column_stack([fetched.data[:, CATEGORICAL_AT], fetched.target]).astype(np.bytes_).astype(np.str_)
    return _bunch(fetched.data[:, NUMERIC_AT].astype(np.float64), words, dtype)


def _bunch(numeric: Floats, words: NDArray[np.str_], dtype: "np.dtype[Any]") -> Bunch:
    """Make the set of the numbers and of the categorical columns, of which the last has the classes."""
    labels, codes = np.unique(np.char.rstrip(words[:, -1], "."), return_inverse=True)
    names, ones = [COLUMNS[k] for k in NUMERIC_AT], []
    for name, column in zip(CATEGORICAL, words[:, :-1].T, strict=True):
        values, value = np.unique(column, return_inverse=True)
        ones.append(len(names) + value)
        names += [f"{name}={category}" for category in values]
    X = np.zeros((len(codes), len(names)), dtype=dtype)
    X[:, : numeric.shape[1]] = numeric
    np.put_along_axis(X, np.column_stack(ones), 1.0, axis=1)
    return Bunch(
        X=X,
        y=codes.astype(np.int64),
        splits=None,
        target_names=labels.tolist(),
        feature_names=names,
        name="kddcup99",
        DESCR=DESCR,
    )
