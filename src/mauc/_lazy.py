"""Imports on first use, so that importing a package stays cheap and needs no extra; and how long they took."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["lazily", "needing", "process_age", "spare_home"]


def lazily(package: str, home: Mapping[str, str], *, extra: str | None = None) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that imports each name of ``home`` from the module given there.

    ``extra`` is the extra to install where such a module imports a library that is missing.
    """

    def find(name: str) -> Any:
        if name in home:
            with needing(extra, f"{package}.{name}"):
                module = import_module(home[name])
            return module if home[name] == f"{package}.{name}" else getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


@contextmanager
def needing(extra: str | None, what: str) -> Iterator[None]:
    """Turn a failed import inside into an error that says which extra to install for ``what``."""
    if extra == "cli":
        spare_home()
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if extra is None or library in ("", "mauc"):
            raise
        raise ImportError(f"{what} needs {library}, which is not installed: pip install 'mauc[{extra}]'") from None


def spare_home() -> None:
    """Name an existing folder for skrub's data: without one, skrub creates ``~/skrub_data`` when it is imported."""
    names = ("SKB_DATA_DIRECTORY", "SKRUB_DATA_DIRECTORY")
    if any(name in os.environ for name in names) or os.path.isdir(os.path.expanduser("~/skrub_data")):
        return
    try:
        os.environ[names[0]] = tempfile.gettempdir()
    except OSError:  # nothing can be written anywhere
        os.environ[names[0]] = os.path.abspath(os.sep)


def process_age() -> float:
    """Return the seconds since this process started; where the system does not tell, the processor time it has used."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, IndexError, ValueError):
        return time.process_time()
