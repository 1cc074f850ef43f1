"""KDD Cup 99 on a file of five rows in its format; the whole file is in test_real_data."""

import gzip
import urllib.error

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets
from sklearn.utils import Bunch

from experiments import datasets
from experiments.datasets.kddcup99 import CATEGORICAL_AT, COLUMNS

RATES = ["0.00"] * 32
ROWS = [
    ["0", "tcp", "http", "SF", "181", "5450", *RATES, "0.11", "1.00", "0.05", "normal."],
    ["2", "udp", "private", "SF", "105", "146", *RATES, "0.00", "0.50", "0.00", "snmpgetattack."],
    ["0", "icmp", "ecr_i", "SF", "693375640", "0", *RATES, "0.00", "1.00", "0.00", "smurf."],
    ["0", "tcp", "http", "SF", "181", "5450", *RATES, "0.11", "1.00", "0.05", "normal."],
    ["0", "tcp", "smtp", "REJ", "0", "0", *RATES, "0.00", "1.00", "0.00", "neptune."],
]


def write(folder, rows=ROWS, compress=gzip.compress):
    path = folder / "kddcup99" / "kddcup.data_10_percent.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(compress("".join(",".join(row) + "\n" for row in rows).encode()))


def check(bunch):
    assert bunch.target_names == ["neptune", "normal", "smurf", "snmpgetattack"]
    assert bunch.y.tolist() == [1, 3, 2, 1, 0]
    assert bunch.splits is None
    assert bunch.X.flags.c_contiguous
    assert bunch.feature_names[:2] == ["duration", "src_bytes"]
    one_hot = [f"protocol_type={p}" for p in ("icmp", "tcp", "udp")]
    one_hot += [f"service={s}" for s in ("ecr_i", "http", "private", "smtp")]
    one_hot += [f"flag={f}" for f in ("REJ", "SF")]
    assert bunch.feature_names[38:] == one_hot
    third = dict(zip(bunch.feature_names, bunch.X[2].tolist(), strict=True))
    assert third["src_bytes"] == 693375640
    assert {name for name in one_hot if third[name]} == {"protocol_type=icmp", "service=ecr_i", "flag=SF"}
    assert bunch.X[0, bunch.feature_names.index("dst_host_srv_serror_rate")] == 0.11
    assert np.array_equal(bunch.X[0], bunch.X[3])


def test_from_the_file(tmp_path):
    write(tmp_path)
    bunch = datasets.load("kddcup99", tmp_path)
    assert bunch.X.shape == (5, 47)
    assert bunch.X.dtype == np.float64
    check(bunch)
    assert datasets.load("kddcup99", tmp_path, dtype="float32").X.dtype == np.float32


def test_through_scikit_learn(tmp_path, monkeypatch):
    """It returns Python numbers and bytes in an array of objects."""
    data = np.array(
        [[cell.encode() if k in CATEGORICAL_AT else float(cell) for k, cell in enumerate(row[:-1])] for row in ROWS],
        dtype=object,
    )
    target = np.array([row[-1].encode() for row in ROWS], dtype=object)
    assert data.shape[1] == len(COLUMNS) == 41
    monkeypatch.setattr(sklearn_datasets, "fetch_kddcup99", lambda percent10: Bunch(data=data, target=target))
    check(datasets.load("kddcup99", tmp_path))


def test_off_line(tmp_path, monkeypatch):
    def fetch(percent10):
        raise urllib.error.URLError("no route")

    monkeypatch.setattr(sklearn_datasets, "fetch_kddcup99", fetch)
    message = r"kddcup99 needs the file .*percent.gz, which was not found, and the download .*no route.*: try again"
    with pytest.raises(ConnectionError, match=message) as caught:
        datasets.load("kddcup99", tmp_path)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("rows", "compress"),
    [
        ([], gzip.compress),
        ([row[:20] for row in ROWS], gzip.compress),
        ([["x", *row[1:]] for row in ROWS], gzip.compress),
        (ROWS, bytes),
        (ROWS, lambda text: gzip.compress(text)[:-20]),
        (ROWS, lambda text: gzip.compress(text)[:30] + b"garbage" * 20),
    ],
    ids=["empty", "too few columns", "not a number", "not gzipped", "cut short", "damaged"],
)
def test_wrong_file(tmp_path, rows, compress):
    write(tmp_path, rows, compress)
    with pytest.raises(ValueError, match=r"percent.gz must be the gzipped 10 % training set .*: fetch the file again"):
        datasets.load("kddcup99", tmp_path)
