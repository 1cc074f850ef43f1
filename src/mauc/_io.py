"""Write output files whole or not at all, and format JSON.

A file is written under a temporary name beside its final one and renamed when it is complete. After a kill or on a full
disk, either the old or the new file exists. A killed process may leave its temporary file; a day later, the next write
to the folder removes it.
"""

import errno
import json
import math
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

TEMPORARY = re.compile(r"\.part-mauc-[0-9a-f]{16}")
SURELY_DEAD = 24 * 3600.0
"""Seconds without a change after which a temporary file counts as abandoned."""


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all; if this fails, the old one stays.

    The file keeps the permissions of the one it replaces, and its owner and group as far as the system allows; a new
    one gets those of the umask. A symbolic link stays, and its target is written. Missing folders are made, except at
    the root of the file system (see :func:`is_at_root`).
    """
    # A name of a file may have bytes that are not UTF-8, which Python keeps as surrogates.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    with named(path), open_whole(path) as file:
        file.write(data)


@contextmanager
def open_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file that is written whole or not at all, as :func:`write_whole` does, for content written bit by bit."""
    final = destination(path)
    if is_at_root(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    final.parent.mkdir(parents=True, exist_ok=True)
    _sweep(final.parent)
    with _replace(final) as file:
        yield file


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Give an error of the system the name that the user knows, instead of the temporary one or none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def json_text(value: Any) -> str:
    """Return JSON in which NaN is null, NumPy's numbers are numbers and paths are strings."""
    return json.dumps(_json_value(value), allow_nan=False)


def _json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _json_value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(v) for v in value]
    if hasattr(value, "tolist"):
        return _json_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def destination(path: Path) -> Path:
    """Return the file behind symbolic links; it need not exist."""
    return Path(os.path.realpath(path))


def first_missing(folder: Path) -> Path | None:
    """Return the topmost missing folder on the way to this one; None if it exists."""
    missing = None
    while not folder.exists():
        missing, folder = folder, folder.parent
    return missing


def is_at_root(path: Path) -> bool:
    """Return True if writing would create a folder at the root of the file system, probably by a typing error.

    Such as ``/reslts`` for ``/reslts/scores.csv``.
    """
    missing = first_missing(destination(path).parent)
    typed = path.is_absolute() or path.is_symlink()
    return missing is not None and typed and missing.parent == Path(missing.anchor)


@contextmanager
def _replace(final: Path) -> Iterator[BinaryIO]:
    try:
        old = os.stat(final)
    except FileNotFoundError:
        old = None
    temporary = final.with_name(f".part-mauc-{secrets.token_hex(8)}")
    # The umask sets the permissions of a new file; what replaces a private one is private from the first byte.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if old is not None:
                _keep_access(file.fileno(), old)
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


def _keep_access(handle: int, old: os.stat_result) -> None:
    """Set owner, group and permissions of the file that is replaced."""
    if sys.platform == "win32":
        return
    mode = stat.S_IMODE(old.st_mode)
    with suppress(OSError):
        os.fchown(handle, old.st_uid, -1)
    try:
        os.fchown(handle, -1, old.st_gid)
    except OSError:
        # The new group must not get the rights of the old one: it gets those of everybody.
        mode &= ~0o070 | (mode & 0o007) << 3
    os.fchmod(handle, mode)


def _sweep(folder: Path) -> None:
    """Remove this user's temporary files that nobody has written to for a day."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not TEMPORARY.fullmatch(entry.name):
                continue
            with suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                ours = stat.S_ISREG(found.st_mode) and (sys.platform == "win32" or found.st_uid == os.geteuid())
                if ours and time.time() - found.st_mtime > SURELY_DEAD:
                    os.unlink(entry.path)
