"""Data of the deep experiments: the user's features, KDD Cup 99, or simulated sets in the paper's shapes."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from experiments import datasets
from experiments.datasets.images import IMAGES
from mauc._archive import read_arrays
from mauc._typing import Floats, Ints
from mauc._validation import check_choice, invalid

__all__ = ["DATASETS", "MIN_ROWS", "PAPER_SETS", "DeepData", "Parts", "load", "parts_of", "resolve", "split_sizes"]

PAPER_SETS = ("cifar100-imb", "user-imb", "inaturalist")
SIMULATED = (*(f"simulated-{name}" for name in PAPER_SETS), "simulated-small")
DATASETS = (*PAPER_SETS, "kddcup99", *(name for name in IMAGES if name not in PAPER_SETS), *SIMULATED)

MIN_ROWS = 10
"""Classes with fewer rows are dropped: their test part, a tenth, would have less than one row."""
QUICK_ROWS = 20_000
"""Rows of a simulated set in a quick run."""
QUICK_CAP = 50_000
"""Largest number of rows of each class of a real set in a quick run."""
CLIP = 10.0
"""Standardised features are clipped at this many standard deviations. Byte counts of KDD Cup 99 reach 700, which hurts
most methods, above all the surrogates on plain batches."""


@dataclass(frozen=True, eq=False)
class DeepData:
    """A set, ready to be split."""

    name: str
    """Name of its results on disk."""
    X: Any
    """``(N, d)`` float32, dense or CSR."""
    y: Ints
    """``(N,)`` codes 0..C-1."""
    names: tuple[str, ...]
    """Names of the classes."""
    notes: tuple[str, ...]
    """Notes that a reader of the tables needs."""
    bayes_scores: Callable[[Any], Floats] | None = None
    """Known for simulated sets, as a function of the raw features."""
    bayes_mauc: Callable[[], Any] | None = None
    group: Ints | None = None
    """``(N,)`` rows of one group stay in one part."""
    extra: Any = None
    """``(N,)`` bool: rows that are not of the set, for a larger test part."""

    @property
    def counts(self) -> Ints:
        return np.bincount(self.y if self.extra is None else self.y[~self.extra])


@dataclass(frozen=True, eq=False)
class Parts:
    """Training, validation and test part; dense features are standardised by the training part and clipped."""

    X: Any
    y: Ints
    train: Ints
    validation: Ints
    test: Ints
    large: Ints | None = None
    """The test part with the rows beyond the set."""

    @property
    def counts(self) -> Ints:
        """Return the ``(C,)`` class sizes of the training part."""
        return np.bincount(self.y[self.train], minlength=int(self.y.max()) + 1)


def split_sizes(name: str) -> tuple[float, float, float]:
    """Return the shares of training, validation and test: 70/15/15 for iNaturalist, as in the paper, 80/10/10 else.

    Examples
    --------
    >>> from experiments.deep.data import split_sizes
    >>> split_sizes("simulated-inaturalist")
    (0.7, 0.15, 0.15)
    """
    return (0.7, 0.15, 0.15) if name.removeprefix("simulated-").startswith("inaturalist") else (0.8, 0.1, 0.1)


def resolve(dataset: str, features: str | Path | None = None, data_home: str | Path | None = None) -> str:
    """Return the name of a set in the results; only the paper's own data have the paper's name.

    Images of the paper are real where ``data_home`` or ``features`` is given, and simulated else.

    Examples
    --------
    >>> from experiments.deep.data import resolve
    >>> resolve("cifar100-imb")
    'simulated-cifar100-imb'
    """
    check_choice("dataset", dataset, DATASETS)
    if features is None:
        real = dataset not in PAPER_SETS or (dataset in IMAGES and data_home is not None)
        return dataset if real else f"simulated-{dataset}"
    if dataset not in PAPER_SETS:
        advice = "leave out features=, or name the set whose settings are to be used"
        raise invalid("dataset", f"must be one of {', '.join(PAPER_SETS)} where features= is given", dataset, advice)
    path = Path(features)
    if not path.is_file():
        advice = "make it with np.savez(file, X=features, y=classes)"
        raise invalid("features", "must be an existing .npz file", str(path), advice)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "blake2b").hexdigest()
    return f"{dataset}-{digest[:8]}"


@lru_cache(maxsize=1)
def load(dataset: str, data_home: str | None = None, features: str | None = None, quick: bool = False) -> DeepData:
    """Load a set; classes of fewer than :data:`MIN_ROWS` rows are dropped, and the notes say so.

    Parameters
    ----------
    dataset : str
        One of :data:`DATASETS`. The paper's three are simulated in their shapes unless ``features`` is given, or
        ``data_home`` for cifar100-imb.
    data_home : str, optional
        Folder with ``kddcup99/kddcup.data_10_percent.gz`` and ``features/NAME.npz``, as
        :func:`experiments.datasets.load` has it.
    features : str, optional
        An ``.npz`` file with ``X``, ``(N, d)`` features, and ``y``, ``(N,)`` classes.
    quick : bool, default=False
        Fewer rows, of the common classes only.
    """
    name = resolve(dataset, features, data_home)
    if features is not None:
        X, y, names = read_features(Path(features))
        return _kept(name, X, y, names, (f"Features from {Path(features).name}.",), quick)
    if dataset == "kddcup99":
        bunch = datasets.load("kddcup99", data_home, dtype=np.float32)
        note = "KDD Cup 99, 10 % training set. Two rows in three repeat an earlier one, also across the parts."
        return _kept(name, bunch.X, bunch.y, bunch.target_names, (note,), quick)
    if name in IMAGES:
        return _images(name, data_home)
    return _simulated(name, quick)


def _images(name: str, data_home: str | None) -> DeepData:
    bunch = datasets.load(name, data_home, dtype=np.float32)
    group, extra = bunch.get("group"), bunch.get("extra")
    sizes = np.bincount(bunch.y if extra is None else bunch.y[~extra])
    notes = [
        bunch.DESCR,
        f"{sizes.sum():,} rows, {bunch.X.shape[1]:,} features, {len(sizes):,} classes of {sizes.min():,} to "
        f"{sizes.max():,}.",
    ]
    if group is not None:
        notes.append(f"Photographs of one lesion stay in one part: {len(np.unique(group)):,} lesions.")
    if extra is not None:
        notes.append(
            f"The large test part is the test part and {np.count_nonzero(extra):,} further images of the same classes, "
            "which no fit has seen."
        )
    return DeepData(name, bunch.X, bunch.y, tuple(bunch.target_names), tuple(notes), group=group, extra=extra)


def _simulated(name: str, quick: bool) -> DeepData:
    preset = name.removeprefix("simulated-")
    if preset == "small":
        options: dict[str, Any] = {"n_samples": 1500, "n_classes": 5, "imbalance": 20.0, "n_features": 20}
        bunch = datasets.load_simulated(**options, dtype=np.float32)
    else:
        bunch = datasets.load_simulated(preset, max_samples=QUICK_ROWS if quick else None)
    counts = bunch.class_counts
    note = (
        f"Simulated by `experiments.datasets.load_simulated`: {len(bunch.y):,} rows, {bunch.X.shape[1]:,} features, "
        f"{len(counts):,} classes of {counts.min():,} to {counts.max():,}. This is not the paper's data, so "
        "its numbers are not shown."
    )
    # The Bayes scores are those of all classes, so none may be dropped; a shrunk preset keeps three rows of each.
    names = tuple(str(k) for k in range(len(counts)))
    return DeepData(name, bunch.X, bunch.y, names, (note,), bunch.bayes_scores, bunch.bayes_mauc)


def read_features(path: Path) -> tuple[Any, Ints, list[str]]:
    """Read and check features, class codes and class names of a file."""
    try:
        arrays = read_arrays(path, only=("X", "y"))
    except (OSError, ValueError) as error:
        advice = "make it with np.savez(file, X=features, y=classes)"
        raise invalid("features", "must be an .npz file of numbers", f"{path.name} ({error})", advice) from None
    if "y" not in arrays or "X" not in arrays:
        came = f"{path.name} with {', '.join(sorted(arrays)) or 'neither'}"
        raise invalid("features", "must hold the arrays X and y", came, "make it with np.savez(file, X=…, y=…)")
    X, y = arrays["X"], arrays["y"]
    if X.ndim != 2 or y.ndim != 1 or X.shape[0] != len(y):
        came = f"X of shape {X.shape}, y of shape {y.shape}"
        raise invalid("features", "must have one row of X and one class in y per sample", came, "save (N, d) and (N,)")
    if X.dtype.kind not in "fiub":
        raise invalid("features", "must have numbers in X", X.dtype, "save float32")
    X = X.astype(np.float32, copy=False)
    if not np.isfinite(X).all():
        raise invalid("features", "must be finite", "NaN or infinity in X", "drop or impute those samples")
    names, codes = np.unique(y, return_inverse=True)
    return X, codes.astype(np.int64), [str(name) for name in names]


def _kept(name: str, X: Any, y: Ints, names: list[str], notes: tuple[str, ...], quick: bool) -> DeepData:
    counts = np.bincount(y, minlength=len(names))
    large = np.flatnonzero(counts >= MIN_ROWS)
    if len(large) < 2:
        advice = "pass more rows, or merge classes"
        raise invalid("the data", f"must have two classes of {MIN_ROWS} rows or more", f"{len(large)}", advice)
    rows = np.flatnonzero(np.isin(y, large))
    if len(large) < len(counts):
        dropped = ", ".join(f"{names[k]} ({counts[k]})" for k in np.flatnonzero(counts < MIN_ROWS)[:12])
        more = "" if len(counts) - len(large) <= 12 else ", …"
        notes += (f"Classes with fewer than {MIN_ROWS} rows are dropped: {dropped}{more}.",)
    if quick:
        rows = rows[capped(y[rows], QUICK_CAP, 0)]
        notes += (f"Quick run: at most {QUICK_CAP:,} rows of each class.",)
    codes = np.searchsorted(large, y[rows])
    sizes = np.bincount(codes)
    shape = (
        f"{len(rows):,} rows, {X.shape[1]:,} features, {len(large):,} classes of {sizes.min():,} to {sizes.max():,}."
    )
    whole = len(rows) == X.shape[0]
    known = tuple(names[k] for k in large)
    return DeepData(name, X if whole else X[rows], codes, known, (*notes, shape))


def capped(y: Ints, most: int, seed: int) -> Ints:
    """Return sorted rows: all of a class with at most ``most`` of them, and that many at random of a larger one."""
    shuffled = np.random.default_rng(seed).permutation(len(y))
    by_class = shuffled[np.argsort(y[shuffled], kind="stable")]
    counts = np.bincount(y)
    place = np.arange(len(y)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_class[place < most])


def parts_of(data: DeepData, seed: int) -> Parts:
    """Return the stratified split of a seed into parts of :func:`split_sizes`, by groups where the set has them.

    Sparse features stay as they are: centred, they would be dense.
    """
    rows = np.arange(len(data.y)) if data.extra is None else np.flatnonzero(~data.extra)
    group = None if data.group is None else data.group[rows]
    parts = datasets.stratified_splits(data.y[rows], 1, split_sizes(data.name), seed, group)[0]
    train, validation, test = (rows[part] for part in parts)
    large = None if data.extra is None else np.concatenate([test, np.flatnonzero(data.extra)])
    X = data.X
    if not sparse.issparse(X):
        mean = X[train].mean(axis=0, dtype=np.float64)
        scale = X[train].std(axis=0, dtype=np.float64)
        # Constant columns: 0/1 would be kept by any scale, and rounding makes their deviation tiny, not 0.
        scale[scale <= 1e-7 * np.abs(mean)] = 1.0
        scale[scale == 0.0] = 1.0
        X = X - mean.astype(np.float32)
        X /= scale.astype(np.float32)
        np.clip(X, -CLIP, CLIP, out=X)
    return Parts(X, data.y, train, validation, test, large)
