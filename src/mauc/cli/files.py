"""Output files, checked before the work begins."""

import os
from collections.abc import Iterable
from pathlib import Path

from mauc.tables.errors import Failure

__all__ = ["check_writable"]


def check_writable(path: Path, option: str, others: Iterable[Path] = ()) -> Path:
    """Fail now, not after an hour of training; ``others`` are files of the same command, which must not be hit."""
    if path.is_dir():
        raise Failure(f"{option} must be a file, got the folder {path}: add a file name")
    if path.exists() and not path.is_file():
        raise Failure(f"{option} {path} is no plain file, and would be replaced by one: choose another name")
    for other in others:
        if path.resolve() == other.resolve():
            raise Failure(f"{option} {path} would overwrite {other}, a file of this command: choose another name")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise Failure(f"{option} {path} cannot be written, {folder} is a file: choose another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(f"no permission to write {path}: choose another {option}, or change the permissions of {folder}")
    return path
