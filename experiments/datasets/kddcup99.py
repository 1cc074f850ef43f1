"""KDD Cup 1999, the 10 % training set: the real large table with extreme imbalance."""

import gzip
import zlib
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from mauc._typing import Floats, Ints
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
CHUNK_ROWS = 1 << 14


class Records(NamedTuple):
    """Distinct records, and which of them each row is: two rows in three repeat an earlier one."""

    numeric: Floats
    """``(U, 38)``"""
    words: NDArray[np.str_]
    """``(U, 4)`` the categorical columns and the label."""
    of_row: Ints
    """``(N,)``"""


def read_kddcup99(path: Path, dtype: "np.dtype[Any]") -> Bunch:
    """Parse the original file."""
    place: dict[bytes, int] = {}
    try:
        with gzip.open(path) as lines:
            of_row = np.array([place.setdefault(line, len(place)) for line in lines], dtype=np.int64)
        if not place:
            raise ValueError("an empty file")
        records = [line.decode("ascii") for line in place]
        numeric = np.loadtxt(records, delimiter=",", usecols=NUMERIC_AT, ndmin=2)
        words = np.loadtxt(
            records, delimiter=",", usecols=[*CATEGORICAL_AT, len(COLUMNS)], dtype="U32", ndmin=2, comments=None
        )
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        requirement = "must be the gzipped 10 % training set of KDD Cup 1999, 42 columns"
        raise invalid(str(path), requirement, str(error), "fetch the file again") from None
    return _bunch(Records(numeric, words, of_row), dtype)


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
    numeric = fetched.data[:, NUMERIC_AT].astype(np.float64)
    return _bunch(Records(numeric, words, np.arange(len(words))), dtype)


def _bunch(records: Records, dtype: "np.dtype[Any]") -> Bunch:
    labels, codes = np.unique(np.char.rstrip(records.words[:, -1], "."), return_inverse=True)
    names = [COLUMNS[k] for k in NUMERIC_AT]
    categorical, ones = {}, []
    for name, column in zip(CATEGORICAL, records.words[:, :-1].T, strict=True):
        values, value = np.unique(column, return_inverse=True)
        ones.append(len(names) + value)
        categorical[name] = slice(len(names), len(names) + len(values))
        names += [f"{name}={category}" for category in values]

    n_rows, n_numeric = len(records.of_row), len(NUMERIC_AT)
    X = np.zeros((n_rows, len(names)), dtype=dtype)
    one_at = np.column_stack(ones)
    for begin in range(0, n_rows, CHUNK_ROWS):
        record = records.of_row[begin : begin + CHUNK_ROWS]
        chunk = X[begin : begin + CHUNK_ROWS]
        chunk[:, :n_numeric] = records.numeric[record]
        np.put_along_axis(chunk, one_at[record], 1.0, axis=1)
    return Bunch(
        X=X,
        y=codes.astype(np.int64)[records.of_row],
        splits=None,
        target_names=labels.tolist(),
        feature_names=names,
        categorical=categorical,
        name="kddcup99",
        DESCR=DESCR,
    )
