"""Names of a package that are imported when first asked for, so that importing the package stays cheap."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, home: Mapping[str, str], *, extra: str | None = None) -> Callable[[str], Any]:
    """A module's ``__getattr__``: each name of ``home`` from the module that defines it, or that is it.

    ``extra`` is what to install where a library is missing that such a module imports.
    """

    def find(name: str) -> Any:
        if name in home:
            try:
                module = import_module(home[name])
            except ModuleNotFoundError as error:
                if extra is None or (error.name or "mauc").partition(".")[0] == "mauc":
                    raise
                what = f"{package}.{name} needs {error.name}, which is not installed"
                raise ImportError(f"{what}: pip install 'mauc[{extra}]'") from None
            return module if home[name] == f"{package}.{name}" else getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
