"""Output files: there complete or not at all, and checked before the work begins."""

import os
import tempfile
from pathlib import Path

from mauc.commands.errors import Failure

__all__ = ["check_writable", "write_whole"]


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there complete or not at all; what was there before stays if this fails."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # temporary files are private
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)  # not the temporary name, which says nothing to the user
        raise
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def check_writable(path: Path, option: str) -> Path:
    """Fail now, not after an hour of training."""
    if path.is_dir():
        raise Failure(f"{option} must be a file, got the folder {path}: add a file name")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise Failure(f"{option} {path} cannot be written, {folder} is a file: choose another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(f"no permission to write {path}: choose another {option}, or change the permissions of {folder}")
    return path
