"""Output files that are there complete or not at all.

A file is written under a temporary name beside its final one and renamed when it is complete, so that a reader, a kill
or a full disk finds the old file or the new one. The writer holds a lock on the temporary file while it lives: one
without a lock was left by a process that was killed, and the next write to the folder removes it.
"""

import errno
import os
import platform
import re
import secrets
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["destination", "first_missing", "is_at_root", "write_whole"]

TEMPORARY = re.compile(r"\.part-mauc-([\w.]*)-[0-9a-f]{16}")
SURELY_DEAD = 24 * 3600.0
"""Seconds without a change after which a temporary file is abandoned, where no lock can tell: writing takes minutes."""


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file so that it is there complete or not at all; what was there before stays if this fails.

    The file keeps the permissions of the one it replaces, and its owner and group as far as the system allows; a new
    one gets those of the umask. A symbolic link stays, and the file that it names is written. Folders that are missing
    are made, except at the root of the file system (see :func:`is_at_root`).
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        final = destination(path)
        if is_at_root(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final.parent)
        _replace(final, data)
    except OSError as error:
        error.filename, error.filename2 = str(path), None  # not the temporary name, which says nothing to the user
        raise


def destination(path: Path) -> Path:
    """The file that a path stands for: symbolic links are followed, to a file that need not exist."""
    return Path(os.path.realpath(path))


def first_missing(folder: Path) -> Path | None:
    """The topmost folder that would have to be made for this one to exist; None if it exists."""
    missing = None
    while not folder.exists():
        missing, folder = folder, folder.parent
    return missing


def is_at_root(path: Path) -> bool:
    """Whether writing an absolute path would make a folder at the root of the file system, such as the ``reslts`` of
    ``/reslts/scores.csv``: that is a mistyped name rather than a wish.
    """
    missing = first_missing(destination(path).parent)
    typed = path.is_absolute() or path.is_symlink()
    return missing is not None and typed and missing.parent == Path(missing.anchor)


def _replace(final: Path, data: bytes) -> None:
    try:
        old = os.stat(final)
    except FileNotFoundError:
        old = None
    # The umask makes the permissions of a new file; what replaces a private one is private from its first byte on.
    handle, temporary = _create(final.parent, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":
                if old is not None:
                    _keep_access(file.fileno(), old)
                os.replace(temporary, final)  # under the lock: nobody takes the file for abandoned
        if sys.platform == "win32":  # which renames no open file
            os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)


def _create(folder: Path, mode: int) -> tuple[int, Path]:
    """An open, locked temporary file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = folder / f".part-mauc-{_host()}-{secrets.token_hex(8)}"
        handle = os.open(path, flags, mode)
        _lock(handle)
        if path.exists():
            return handle, path
        os.close(handle)  # swept between creation and lock


def _keep_access(handle: int, old: os.stat_result) -> None:
    """Owner, group and permissions of the file that is replaced."""
    if sys.platform == "win32":
        return
    mode = stat.S_IMODE(old.st_mode)
    with suppress(OSError):
        os.fchown(handle, old.st_uid, -1)
    try:
        os.fchown(handle, -1, old.st_gid)
    except OSError:
        # Another group would get what was meant for the old one: it gets no more than everybody.
        mode &= ~0o070 | (mode & 0o007) << 3
    os.fchmod(handle, mode)


def _sweep(folder: Path) -> None:
    """Remove the temporary files of killed processes, of this user alone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = TEMPORARY.fullmatch(entry.name)
            if named:
                with suppress(OSError):
                    _remove_if_dead(Path(entry.path), named[1] == _host())


def _remove_if_dead(path: Path, of_this_host: bool) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(handle)
        ours = stat.S_ISREG(found.st_mode) and (sys.platform == "win32" or found.st_uid == os.geteuid())
        # Locks of another host may not be seen here.
        locked = _lock(handle, wait=False) if of_this_host else None
        dead = time.time() - found.st_mtime > SURELY_DEAD if locked is None else locked
        if ours and dead:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _lock(handle: int, *, wait: bool = True) -> bool | None:
    """Whether the file is now locked by this handle, which ends with it; None where there are no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _host() -> str:
    return re.sub(r"[^\w.]", "_", platform.node(), flags=re.ASCII)[:64]
