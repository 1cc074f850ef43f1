"""The scores that a model was judged by, in a file beside it: two fits on one table can be compared later.

The model's own file holds no rows. Beside it, ``model.scores.npz`` has the class and the scores of each row judged by,
and fingerprints of the table's columns and of the model's file, so that only what belongs together is compared.
"""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._archive import MAX_SIZE, Refused, TooLarge, read_arrays
from mauc._io import write_whole
from mauc._tables.errors import Failure
from mauc._tables.model_file import is_model
from mauc._tables.row_hashes import fingerprints
from mauc._typing import Floats, Ints

__all__ = [
    "KeptScores",
    "check_same_table",
    "common_rows",
    "fingerprints",
    "is_kept",
    "place_of",
    "read_kept",
    "read_scores",
    "write_kept",
]

WHEN = (1980, 1, 1, 0, 0, 0)  # equal runs write equal files


@dataclass(frozen=True, eq=False)
class KeptScores:
    """Of one model, on rows that it was not trained on."""

    about: str
    target: str
    how: str
    """How the rows were held out, in words."""
    n_rows: int
    """Of the whole table."""
    rows: Ints
    """``(n,)`` which of them were judged by."""
    labels: NDArray[Any]
    """``(n,)`` their classes."""
    classes: NDArray[Any]
    """``(C,)`` the class of each column."""
    repeats: list[Floats]
    """``(n, C)`` scores, one array for each repeat of cross-validation."""
    columns: dict[str, str] = field(default_factory=dict)
    """Fingerprint of each column of the table."""
    groups: NDArray[Any] | None = None
    """``(n,)`` group of each row; None where rows are independent."""


def place_of(model: Path) -> Path:
    """Where the scores of a model file are: ``model.scores.npz`` beside ``model.skops``."""
    return model.with_name(model.name.removesuffix(".skops") + ".scores.npz")


def write_kept(model: Path, kept: KeptScores) -> Path:
    """Beside the model's file, which is there already; in one step, as all files."""
    path = place_of(model)
    text = np.array([kept.about, kept.target, kept.how, _digest(model)])
    names = np.array(list(kept.columns), dtype=str)
    arrays = {
        "text": text,
        "n_rows": np.array([kept.n_rows]),
        "rows": kept.rows,
        "labels": kept.labels.astype(str),
        "classes": kept.classes.astype(str),
        "scores": np.stack(kept.repeats),
        "column_names": names,
        "column_prints": np.array(list(kept.columns.values()), dtype=str),
    }
    if kept.groups is not None:
        arrays["groups"] = kept.groups.astype(str)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", WHEN), content.getvalue(), zipfile.ZIP_DEFLATED)
    write_whole(path, buffer.getvalue())
    return path


def read_kept(model: Path, max_size: float = MAX_SIZE) -> KeptScores:
    """The scores beside a model's file; refused where they are of another file."""
    if not model.exists():
        raise Failure(f"file not found: {model}: name a model file that mauc fit wrote")
    if not is_model(model):
        raise Failure(
            f"{model} is no model file: name those that mauc fit wrote; tables of scores are compared by "
            "mauc evaluate, with --compare"
        )
    path = place_of(model)
    if not path.exists():
        raise Failure(f"{path}, the scores that {model} was judged by, is not there: put it back, or fit again")
    kept, digest = _read(path, max_size)
    if digest != _digest(model):
        raise Failure(f"{path} holds the scores of another model than {model} is: fit again")
    return kept


def is_kept(path: Path) -> bool:
    """Whether a file is named as those that mauc fit writes beside its models."""
    return path.name.endswith(".scores.npz") and path.is_file()


def read_scores(path: Path, max_size: float = MAX_SIZE) -> KeptScores:
    """The same by the name of the file itself, whether its model is there or not."""
    return _read(path, max_size)[0]


def _read(path: Path, max_size: float) -> tuple[KeptScores, str]:
    """What was kept, and the digest of the model's file."""
    try:
        found = read_arrays(path, max_size)
        about, target, how, digest = map(str, found["text"])
        kept = KeptScores(
            about,
            target,
            how,
            int(found["n_rows"][0]),
            found["rows"],
            found["labels"],
            found["classes"],
            list(found["scores"]),
            dict(zip(map(str, found["column_names"]), map(str, found["column_prints"]), strict=True)),
            found.get("groups"),
        )
        n, c = len(kept.rows), len(kept.classes)
        sound = kept.rows.dtype.kind == "i" and len(kept.labels) == n and found["scores"].shape[1:] == (n, c)
        sound = sound and (kept.groups is None or kept.groups.shape == (n,))
        sound = sound and len(kept.repeats) > 0 and bool(np.isfinite(found["scores"]).all())
    except TooLarge as error:
        raise Failure(f"{path} {error}: raise --max-size if you know where the file comes from") from None
    except (Refused, KeyError, ValueError, IndexError, TypeError):
        sound = False
    if not sound:
        raise Failure(f"{path} is no file of scores that mauc fit wrote: fit again")
    return kept, digest


def check_same_table(first: KeptScores, other: KeptScores, names: Sequence[Path]) -> None:
    """Both were judged by rows of one table: as many rows, equal classes, and no common column that differs."""
    a, b = names
    if first.target != other.target:
        raise Failure(f"{a} was trained to tell {first.target!r} and {b} {other.target!r}: compare like with like")
    if first.n_rows != other.n_rows:
        raise Failure(
            f"{a} is of a table of {first.n_rows} rows and {b} of one of {other.n_rows}: fit both on the same table"
        )
    if not np.array_equal(first.classes, other.classes):
        raise Failure(f"{a} and {b} score different classes: fit both on the same table")
    changed = [name for name in first.columns if other.columns.get(name, first.columns[name]) != first.columns[name]]
    if changed:
        raise Failure(
            f"column {changed[0]!r} differs between the tables of {a} and {b}: fit both on the same rows in the same "
            "order"
        )


def common_rows(
    kept: Sequence[KeptScores], names: Sequence[Path]
) -> tuple[NDArray[Any], list[list[Floats]], NDArray[Any] | None]:
    """Classes of the rows that all were judged by, the scores of each model on them, and their groups by the first
    model that knows some."""
    rows = kept[0].rows
    for each in kept[1:]:
        rows = np.intersect1d(rows, each.rows)
    places = [np.searchsorted(each.rows, rows) for each in kept]
    labels = [each.labels[place] for each, place in zip(kept, places, strict=True)]
    for name, theirs in zip(names, labels, strict=True):
        if not np.array_equal(theirs, labels[0]):
            raise Failure(f"the classes of the rows of {name} and {names[0]} differ: fit both on the same table")
    if len(np.unique(labels[0])) < 2:
        raise Failure("the models were judged by different rows: fit with the same --seed and --holdout, or with --cv")
    groups = [e.groups[place] for e, place in zip(kept, places, strict=True) if e.groups is not None]
    scores = [[each[place] for each in e.repeats] for e, place in zip(kept, places, strict=True)]
    return labels[0], scores, groups[0] if groups else None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
