"""What is imported when first asked for, so that importing a package stays cheap and needs no extra."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

__all__ = ["lazily", "needing", "spare_home"]


def lazily(package: str, home: Mapping[str, str], *, extra: str | None = None) -> Callable[[str], Any]:
    """A module's ``__getattr__``: each name of ``home`` from the module that defines it, or that is it.

    ``extra`` is what to install where a library is missing that such a module imports.
    """

    def find(name: str) -> Any:
        if name in home:
            with needing(extra, f"{package}.{name}"):
                module = import_module(home[name])
            return module if home[name] == f"{package}.{name}" else getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


@contextmanager
def needing(extra: str | None, what: str, *, package: str | None = None) -> Iterator[None]:
    """An import inside, for ``what``, that fails for lack of a library says what to install: an extra, or a package
    that is in none.
    """
    if extra == "cli":
        spare_home()
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        install = f"'mauc[{extra}]'" if package is None else package
        if (extra is None and package is None) or library in ("", "mauc"):
            raise
        raise ImportError(f"{what} needs {library}, which is not installed: pip install {install}") from None


def spare_home() -> None:
    """Name a folder that exists for skrub's data: without one, skrub makes ``~/skrub_data`` when it is imported."""
    names = ("SKB_DATA_DIRECTORY", "SKRUB_DATA_DIRECTORY")
    if any(name in os.environ for name in names) or os.path.isdir(os.path.expanduser("~/skrub_data")):
        return
    try:
        os.environ[names[0]] = tempfile.gettempdir()
    except OSError:  # nothing can be written anywhere
        os.environ[names[0]] = os.path.abspath(os.sep)
