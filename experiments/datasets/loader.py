"""Load the real data sets by name."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.utils import Bunch

from experiments.datasets.bundled import BUNDLED, load_bundled
from experiments.datasets.catalogue import RELEASE, TABLES
from experiments.datasets.folder import data_folder, read_table
from experiments.datasets.images import IMAGES, read_images
from experiments.datasets.kddcup99 import FILE, fetch_kddcup99, read_kddcup99
from mauc._validation import check_choice

__all__ = ["load", "names"]


def names() -> list[str]:
    """Return the names that :func:`load` knows.

    Examples
    --------
    >>> from experiments import datasets
    >>> datasets.names()
    ['balance', 'dermatology', 'ecoli', 'new-thyroid', 'pageblocks', 'segment-imb', 'shuttle', 'svmguide2', 'yeast',
     'kddcup99', 'cifar100-imb', 'cifar100-imb-32px', 'caltech101', 'flowers102', 'ham10000-part',
     'digits-imb', 'wine-imb']
    """
    return [*TABLES, "kddcup99", *IMAGES, *BUNDLED]


def load(name: str, data_home: str | os.PathLike[str] | None = None, *, dtype: DTypeLike = np.float64) -> Bunch:
    """Load a real imbalanced data set.

    - ``"digits-imb"``, ``"wine-imb"``: scikit-learn's digits and wine, made imbalanced by a fixed subsample. They need
      no file.
    - ``"balance"``, ``"dermatology"``, ``"ecoli"``, ``"new-thyroid"``, ``"pageblocks"``, ``"segment-imb"``,
      ``"shuttle"``, ``"svmguide2"``, ``"yeast"``: the nine tables of the paper with its authors' 15 splits, from
      ``traditional/NAME.npz`` in the data folder.
    - ``"kddcup99"``: the 10 % training set of KDD Cup 1999, 494 021 rows in 23 classes of 2 to 280 790, from
      ``kddcup99/kddcup.data_10_percent.gz`` in the data folder or through scikit-learn. Its 38 numeric columns come
      first, then the one-hot columns of protocol_type, service and flag, 118 in all: 466 MB as float64, read in a few
      seconds.
    - ``"cifar100-imb"``, ``"cifar100-imb-32px"``, ``"caltech101"``, ``"flowers102"``, ``"ham10000-part"``: 2048 outputs
      of the last pooling of a ResNet-50 for real images, from ``features/NAME.npz`` in the data folder alone. The first
      has the paper's class sizes, and up to 100 further images of each class for a large test part.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_home : path, optional
        The data folder. Default: the environment variable ``MAUC_DATA_HOME``, else ``mauc`` in scikit-learn's data
        folder. It is only read; downloads are kept where scikit-learn keeps its own.
    dtype : {float64, float32}, default=float64
        Type of X.

    Returns
    -------
    sklearn.utils.Bunch
        - ``X`` : (N, d) array, raw features.
        - ``y`` : (N,) array of class codes 0..C-1.
        - ``splits`` : list of 15 tuples (train, validation, test) of row numbers, about 20, 40 and 40 %, every class in
          every part; in ecoli and shuttle, whose smallest classes have two samples, such a sample can be in two
          parts. None where the set has no splits of its own: see :func:`stratified_splits`.
        - ``target_names`` : list of str, name of each class.
        - ``name`` : str.
        - ``DESCR`` : str, source and licence in two lines.
        - ``feature_names`` (kddcup99 only) : names of the columns.
        - ``group`` (ham10000-part only) : (N,) number of the lesion; its photographs belong in one part.
        - ``extra`` (cifar100-imb and its 32 px twin only) : (N,) bool, rows beyond the paper's set.

    Raises
    ------
    OSError
        The file was not found and the set cannot be downloaded.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments import datasets
    >>> wine = datasets.load("wine-imb")
    >>> wine.X.shape, np.bincount(wine.y)
    ((93, 13), array([59, 24, 10]))
    """
    check_choice("name", name, names())
    kind = np.dtype(dtype)
    if name in BUNDLED:
        bunch = load_bundled(name)
    elif name == "kddcup99":
        return _load_kddcup99(data_home, kind)
    elif name in IMAGES:
        return _load_images(name, data_home, kind)
    else:
        bunch = _load_table(name, data_home)
    bunch.X = bunch.X.astype(kind, copy=False)
    return bunch


def _load_table(name: str, data_home: str | os.PathLike[str] | None) -> Bunch:
    table = TABLES[name]
    path = data_folder(data_home) / "traditional" / f"{name}.npz"
    if not path.is_file():
        advice = f"put it there; its arrays X, y, train, validation and test are in the authors' release, {RELEASE}"
        raise FileNotFoundError(f"{name} needs the file {path}, which was not found: {advice}")
    X, y, splits = read_table(path, table)
    return Bunch(X=X, y=y, splits=splits, target_names=table.target_names, name=name, DESCR=table.describe())


def _load_kddcup99(data_home: str | os.PathLike[str] | None, kind: np.dtype[Any]) -> Bunch:
    path = data_folder(data_home) / FILE
    if path.is_file():
        return read_kddcup99(path, kind)
    try:
        return fetch_kddcup99(kind)
    except OSError as error:
        advice = "try again online, or put the file there (archive.ics.uci.edu has it)"
        raise ConnectionError(f"kddcup99 needs the file {path}, which was not found, and {error}: {advice}") from None


def _load_images(name: str, data_home: str | os.PathLike[str] | None, kind: np.dtype[Any]) -> Bunch:
    path = data_folder(data_home) / "features" / f"{name}.npz"
    if not path.is_file():
        raise FileNotFoundError(f"{name} needs the file {path}, which was not found: put it there")
    return read_images(path, name, kind)
