"""One private folder for all that a command and its libraries put aside; it is gone when the command ends."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["private_folder"]


@contextmanager
def private_folder() -> Iterator[None]:
    """Let temporary files, and caches that the user does not have, go to a folder of our own, and remove it.

    torch's compiler, Dask and :mod:`tempfile` follow ``TMPDIR``, matplotlib ``MPLCONFIGDIR``. TERM and HUP, which end
    a process at once, end the command here as an error does, so that nothing stays behind.
    """
    owner = os.getpid()
    with suppress(OSError):  # nothing can be written anywhere: what needs a file will say so
        folder = tempfile.mkdtemp(prefix="mauc-")
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        if "MPLCONFIGDIR" not in os.environ and not _has_fonts():
            os.environ["MPLCONFIGDIR"] = folder
    _end_by_signals()
    try:
        yield
    finally:
        if tempfile.tempdir is not None and os.getpid() == owner:
            shutil.rmtree(tempfile.tempdir, ignore_errors=True)


def _has_fonts() -> bool:
    """Whether matplotlib has its folders in the user's home, with its list of fonts, which takes seconds to make."""
    config = cache = Path(os.path.expanduser("~"), ".matplotlib")
    if sys.platform.startswith(("linux", "freebsd")):
        config = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "matplotlib")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "matplotlib")
    return os.access(config, os.W_OK) and os.access(cache, os.W_OK) and any(cache.glob("fontlist-*.json"))


def _end_by_signals() -> None:
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # nohup ignores HUP, and so do we then.
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    def as_before() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=as_before)  # who ends a child wants it to end at once
