"""Model files: skops, never pickle. Loading one runs no code but that of the listed types, or of those its user trusts.

A file is read once, its archive checked and unpacked within bounds (:mod:`mauc._archive`), its tree compared with the
list (:mod:`mauc._tables.model_schema`); what skops then loads is packed anew from the parts that were checked.
"""

import io
import json
import sys
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mauc._archive import GB, MAX_SIZE, Refused, TooLarge, check_header, open_archive, printable, read_member
from mauc._io import write_whole
from mauc._tables.boosted_trees import packed_trees, unpack_trees
from mauc._tables.errors import Failure
from mauc._tables.model_schema import ALLOWED, Malformed, foreign_parts

__all__ = ["TableModel", "is_model", "load_skops", "read_model", "write_model"]

FORMAT = "mauc model 1"
SCHEMA = "schema.json"
REAL = (ImportError, MemoryError, OSError)
"""Errors that say nothing about the file: they are told as they are."""
SCHEMA_SHARE = 0.25  # of the size allowed: as Python objects it takes several times its length


@dataclass(frozen=True)
class TableModel:
    """A classifier with the columns it wants."""

    features: Any
    """From a table to numbers, fitted."""
    classifier: Any
    kinds: dict[str, str]
    target: str
    about: str
    decision: dict[str, Any] | None = None
    """How to decide by the scores (:mod:`mauc._tables.decide`); None: for the class of the highest."""
    trained: Any = None
    """Hashes of the training rows (:func:`mauc._tables.row_hashes.training_hashes`); None: not known."""

    def scores(self, table: Any) -> Any:
        """``(N, C)`` scores, columns in the order of ``classifier.classes_``."""
        return self.classifier.predict_proba(self.features.transform(table))

    def decided(self, scores: Any) -> Any:
        """``(N,)`` place of the class decided for among ``classifier.classes_``."""
        from mauc._tables.decide import decisions_of

        return decisions_of(scores, self.decision)


def load_skops() -> Any:
    """Import skops, which imports all of scikit-learn to list its classes, and so the array libraries beside it.

    These are not found meanwhile, in this thread: torch alone takes longer to import than all the rest.
    """
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        import skops.io
    finally:
        sys.meta_path.remove(absent)
    return skops


class _Absent:
    """Finds no array library for the thread that made it; what is imported already stays as it is."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, *_: Any) -> None:
        """As in :mod:`importlib.abc`."""
        if name in ("torch", "dask", "cupy") and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


def write_model(path: Path, model: TableModel) -> None:
    """Write the file in one step: a run that is cut off leaves the old one, or none."""
    skops = load_skops()
    parts = {name: getattr(model, name) for name in TableModel.__dataclass_fields__}
    with packed_trees(parts):
        data = skops.io.dumps({"format": FORMAT, **parts})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
    # skops indents its tree, which makes it five times as long.
    members[SCHEMA] = json.dumps(json.loads(members[SCHEMA]), separators=(",", ":")).encode()
    # Level 1 takes a third of the time of level 6, and the file is a quarter larger.
    write_whole(path, _packed(members, zipfile.ZIP_DEFLATED, level=1))


def is_model(path: Path) -> bool:
    """Whether a file looks like one of these, by its directory alone."""
    try:
        with zipfile.ZipFile(path) as archive:
            return SCHEMA in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


def read_model(path: Path, *, trust: bool = False, max_size: float = MAX_SIZE) -> TableModel:
    """The model in a file; parts that ``mauc fit`` does not write are refused, unless trusted.

    ``max_size`` is how many GB unpacking may add, trusted or not.
    """
    skops = load_skops()
    if path.is_dir():
        raise Failure(f"{path} is a folder: name the model file that mauc fit wrote")
    if path.exists() and not path.is_file():
        raise Failure(f"{path} is no plain file: name the model file that mauc fit wrote")
    # No name for the new file: the one given may hold the user's data.
    another = f"{path} is no model file of mauc fit: mauc fit TABLE --target COLUMN writes one, model.skops"
    # Read once: what is checked must be what is loaded.
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        raise Failure(another)
    try:
        members = _members(data, max_size, trust=trust)
        schema = json.loads(members[SCHEMA])
        foreign = [] if trust else foreign_parts(schema, members.keys() - {SCHEMA})
        clean = _packed(members, zipfile.ZIP_STORED)
        # Without trust, what skops takes is what is listed here: it need not be asked what it would refuse.
        needed = skops.io.get_untrusted_types(data=clean) if trust else set().union(*ALLOWED.values())
    except TooLarge as error:
        raise Failure(f"{path} {error}: raise --max-size if you know where the file comes from") from None
    except Refused as error:
        raise Failure(f"{path} {error}: a model of mauc fit does not, so it is not loaded") from None
    except Malformed as error:
        raise Failure(
            f"{path} is no model file of mauc fit, its tree is forged or damaged ({printable(str(error))}): "
            "it is not loaded"
        ) from None
    except REAL:
        raise
    except Exception:
        raise Failure(another) from None
    _refuse(foreign, path)
    try:
        parts = skops.io.loads(clean, trusted=sorted(needed))
        unpack_trees(parts)
    except REAL:
        raise
    except Exception as error:
        reason = printable(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise Failure(f"{path} cannot be loaded ({reason}): train it again with this version of mauc") from error
    if not _is_ours(parts):
        raise Failure(another)
    return TableModel(**{name: parts.get(name) for name in TableModel.__dataclass_fields__})


def _refuse(foreign: list[str], path: Path) -> None:
    if not foreign:
        return
    shown = ", ".join(map(printable, foreign[:6])) + (f" and {len(foreign) - 6} more" if len(foreign) > 6 else "")
    raise Failure(
        f"{path} holds types that mauc does not know, and loading them could run their code: {shown}\n"
        "pass --trust if you know where the file comes from"
    )


def _members(data: bytes, max_size: float, *, trust: bool) -> dict[str, bytes]:
    """The tree and the arrays by file name; other files only if trusted."""
    with open_archive(io.BytesIO(data), max_size) as archive:
        for member in archive.infolist():
            if member.filename == SCHEMA and member.file_size > max_size * SCHEMA_SHARE * GB:
                raise TooLarge(f"holds a tree of {member.file_size / GB:.2g} GB")
            if member.filename != SCHEMA and not member.filename.endswith(".npy") and not trust:
                raise Refused(f"holds the file {printable(member.filename)!r}")
        members = {member.filename: read_member(archive, member) for member in archive.infolist()}
    for name, content in members.items():
        if name.endswith(".npy"):
            check_header(io.BytesIO(content), len(content), name)
    return members


def _packed(members: Mapping[str, bytes], method: int, level: int | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=method, compresslevel=level) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _is_ours(parts: Any) -> bool:
    """All parts of a model are there, each of its kind."""
    from sklearn.pipeline import Pipeline

    from mauc.ensemble import TableColumns

    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        return False
    kinds, classifier = parts.get("kinds"), parts.get("classifier")
    return (
        isinstance(parts.get("features"), Pipeline | TableColumns)
        and _is_decision(parts.get("decision"))
        and _are_hashes(parts.get("trained"))
        and hasattr(classifier, "predict_proba")
        and hasattr(classifier, "classes_")
        and isinstance(kinds, dict)
        and all(isinstance(text, str) for text in (*kinds, *kinds.values(), parts.get("target"), parts.get("about")))
    )


def _are_hashes(trained: Any) -> bool:
    plain = isinstance(trained, np.ndarray) and trained.dtype == np.uint64 and trained.ndim == 1
    return trained is None or (plain and len(trained) > 0)


def _is_decision(decision: Any) -> bool:
    names = {"scale", "offsets", "lowest", "costs"}
    return decision is None or (isinstance(decision, dict) and decision.keys() == names)
