"""Features of real images: what the last pooling of a ResNet-50 makes of them, as the user's files hold it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from experiments.datasets.counts import CIFAR100_IMB
from mauc._archive import read_arrays
from mauc._typing import Ints
from mauc._validation import invalid

__all__ = ["IMAGES", "read_images"]

N_FEATURES = 2048


@dataclass(frozen=True)
class Images:
    """What is known of one set of images."""

    origin: str
    n_rows: int
    n_classes: int
    smallest: int
    largest: int
    """Rows of the smallest and of the largest class."""
    left_out: str | None = None
    """A class of the file that is no class of things."""


_CIFAR = "CIFAR-100 (Krizhevsky 2009), class sizes of the paper's CIFAR-100-Imb"
IMAGES = {
    "cifar100-imb": Images(f"{_CIFAR}, enlarged to 224 pixels", 25550, 100, 120, 600),
    "cifar100-imb-32px": Images(f"{_CIFAR}, at their own 32 pixels", 25550, 100, 120, 600),
    "caltech101": Images("Caltech 101 (Fei-Fei et al. 2004)", 8677, 101, 31, 800, left_out="BACKGROUND_Google"),
    "flowers102": Images("Oxford 102 Flowers (Nilsback, Zisserman 2008)", 8185, 102, 40, 258),
    "ham10000-part": Images("HAM10000 (Tschandl et al. 2018), the first 7 017 photographs", 7017, 7, 76, 4744),
}
"""Real image sets by their name."""


def read_images(path: Path, name: str, dtype: "np.dtype[Any]") -> Bunch:
    """Read features, classes, and, where the set has them, groups of rows and rows for a large test part.

    The file holds ``q``, ``(N, 2048)`` of 8 bits, and ``scale``, ``(2048,)``: the feature is ``(q / 255)² · scale``.
    """
    known = IMAGES[name]
    try:
        arrays = read_arrays(path)
        if missing := {"q", "scale", "y", "class_names"} - set(arrays):
            raise ValueError(f"none of {', '.join(sorted(missing))}")
        X, y, names, rest = _decode(arrays, known, dtype)
        _check(X, y, known, rest)
    except (TypeError, ValueError) as error:
        requirement = "must hold the arrays q, scale, y and class_names of those images"
        raise invalid(str(path), requirement, str(error), "fetch the file again") from None
    descr = f"Source: {known.origin}; outputs of the last pooling of a ResNet-50 trained on ImageNet."
    return Bunch(X=X, y=y, splits=None, target_names=names, name=name, DESCR=descr, **rest)


def _decode(
    arrays: dict[str, Any], known: Images, dtype: "np.dtype[Any]"
) -> tuple[Any, Ints, list[str], dict[str, Any]]:
    q, scale, y = arrays["q"], arrays["scale"], arrays["y"].astype(np.int64, casting="same_kind")
    names = [str(label) for label in arrays["class_names"]]
    if q.dtype != np.uint8 or q.shape != (len(y), N_FEATURES) or scale.shape != (N_FEATURES,):
        raise ValueError(f"q of shape {q.shape} and type {q.dtype}, scale of shape {scale.shape}, {len(y)} classes")
    if not (np.isfinite(scale) & (scale > 0)).all() or y.min() < 0 or y.max() >= len(names):
        raise ValueError("a scale that is not positive, or a class without a name")
    rest = {key: arrays[key].astype(kind) for key, kind in (("group", np.int64), ("extra", bool)) if key in arrays}
    if known.left_out is not None:
        kept = y != names.index(known.left_out)
        q, y, rest = q[kept], y[kept], {key: values[kept] for key, values in rest.items()}
        y -= y > names.index(known.left_out)
        names.remove(known.left_out)
    root = q.astype(dtype)
    root /= 255.0
    root *= root
    root *= scale.astype(dtype)
    return root, y, names, rest


def _check(X: Any, y: Ints, known: Images, rest: dict[str, Any]) -> None:
    """Check rows, classes and their sizes; ValueError if they are not those of the set."""
    sizes = np.bincount(y)
    found = (len(X), len(sizes), int(sizes.min()), int(sizes.max()))
    if found != (known.n_rows, known.n_classes, known.smallest, known.largest):
        raise ValueError(f"{found[0]} rows in {found[1]} classes of {found[2]} to {found[3]}")
    if "extra" in rest and np.bincount(y[~rest["extra"]]).tolist() != list(CIFAR100_IMB):
        raise ValueError("class sizes that are not the paper's")
