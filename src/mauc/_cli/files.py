"""Check output files before the work begins."""

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from mauc._cli.output import current
from mauc._io import destination, first_missing, is_at_root
from mauc._tables.errors import Failure, Usage

REPORTS = Path("mauc-report")
"""Default folder of reports; each command has its own file name."""
ENDINGS = (
    *("csv", "gz", "npz", "parquet", "pq", "skops", "tab", "tsv", "txt", "xls", "xlsm", "xlsx", "zip"),
    *("joblib", "pickle", "pkl"),
)
"""Suffixes of files that the commands read, or that other programs open by their names."""


def check_writable(path: Path, option: str, what: str, endings: Sequence[str], others: Iterable[Path] = ()) -> None:
    """Check that a file can be written, before hours of training; it must not be one of ``others``.

    Refuse the suffix of another format: Excel cannot open CSV named .xlsx, and no table is overwritten. ``what`` names
    the file in the message, and ``endings`` are its own suffixes.
    """
    if path == Path("-"):
        raise Usage(f"{option} - would be standard output, which cannot take {what}: name a file")
    _check_name(path, option)
    if path.is_dir():
        raise Failure(f"{option} must be a file, got the folder {path}: add a file name")
    if path.exists() and not path.is_file():
        raise Failure(f"{option} {path} is not a regular file: choose another name")
    for other in others:
        if destination(path) == destination(other):
            raise Failure(f"{option} {path} would overwrite {other}, which this command uses: choose another name")
    _check_folder(path, option)
    if path.exists() and not os.access(path, os.W_OK):
        raise Failure(f"no permission to write {path}: choose another {option}, or change its permissions")
    ending = path.name.lower().rpartition(".")[2]
    if ending in ENDINGS and ending not in endings:
        raise Usage(f"{option} {path} is {what}, so it must end in .{endings[0]}")


def _check_name(path: Path, option: str) -> None:
    """Refuse names that are too long, also below folders that do not exist yet, and links that lead to themselves."""
    final = destination(path)
    folder = next(parent for parent in final.parents if os.path.isdir(parent))
    for place in (path, *(folder / part for part in final.relative_to(folder).parts)):
        try:
            os.stat(place)
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
                raise Failure(f"{option} {path} cannot be written ({error.strerror}): choose another name") from None


def _check_folder(path: Path, option: str) -> None:
    """Check that missing folders can be made, and print a note; refuse new folders at the root of the file system."""
    folder = destination(path).parent
    missing = first_missing(folder)
    parent = folder if missing is None else missing.parent
    if not parent.is_dir():
        raise Failure(f"{option} {path} cannot be written, {parent} is a file: choose another place")
    if is_at_root(path):
        raise Failure(
            f"{option} {path} needs the folder {missing} at the root, which does not exist: check the name, or "
            "make the folder first"
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise Failure(f"no permission to write {path}: choose another {option}, or change the permissions of {parent}")
    if missing is not None and path.parent != REPORTS:  # the default name is not a typing error
        made = folder if path.parent.exists() else path.parent
        current().note(f"{option} {path}: making the folder {made}")
