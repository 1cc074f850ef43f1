"""Output files and folders, checked before the work begins."""

import os
from collections.abc import Iterable
from pathlib import Path

from mauc._cli.output import current
from mauc._io import destination, first_missing, is_at_root
from mauc._tables.errors import Failure, Usage

__all__ = ["REPORTS", "check_ending", "check_folder", "check_writable"]

REPORTS = Path("mauc-report")
"""Default folder of reports; each command has its own file name."""
ENDINGS = ("csv", "gz", "npz", "parquet", "pq", "skops", "tab", "tsv", "txt", "xls", "xlsm", "xlsx", "zip")
"""Of files that these commands read, and that other programs open by their names."""


def check_writable(path: Path, option: str, others: Iterable[Path] = ()) -> None:
    """Fail now, not after an hour of training; ``others`` are files of the same command, which must not be hit."""
    if path.is_dir():
        raise Failure(f"{option} must be a file, got the folder {path}: add a file name")
    if path.exists() and not path.is_file():
        raise Failure(f"{option} {path} is no plain file, and would be replaced by one: choose another name")
    for other in others:
        if destination(path) == destination(other):
            raise Failure(f"{option} {path} would overwrite {other}, a file of this command: choose another name")
    _check_place(path, option, path)
    if path.exists() and not os.access(path, os.W_OK):
        raise Failure(f"no permission to write {path}: choose another {option}, or change its permissions")


def check_ending(path: Path, option: str, what: str, *endings: str) -> None:
    """The name says what is written: other programs cannot open CSV named as Excel, and no table gets lost."""
    ending = path.name.lower().rpartition(".")[2]
    if ending in ENDINGS and ending not in endings:
        raise Usage(f"{option} {path} would be {what}, which its name does not say: end it in .{endings[0]}")


def check_folder(path: Path, option: str) -> None:
    """The same for a folder of results."""
    if path.exists() and not path.is_dir():
        raise Failure(f"{option} must be a folder, got the file {path}: choose another place")
    _check_place(path / "file", option, path)


def _check_place(file: Path, option: str, shown: Path) -> None:
    """Missing folders can be made, which is told, and need not be made at the root."""
    folder = destination(file).parent
    missing = first_missing(folder)
    parent = folder if missing is None else missing.parent
    if not parent.is_dir():
        raise Failure(f"{option} {shown} cannot be written, {parent} is a file: choose another place")
    if is_at_root(file):
        raise Failure(
            f"{option} {shown} needs the folder {missing} at the root, which is not there: check the name, "
            "or make the folder first"
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise Failure(f"no permission to write {shown}: choose another {option}, or change the permissions of {parent}")
    if missing is not None and file.parent != REPORTS:  # a name that nobody typed is not mistyped
        made = folder if file.parent.exists() else file.parent
        current().note(f"{option} {shown}: the folder {made} is not there, and is made")
