"""Names of a package that are imported when first asked for, so that importing the package stays cheap."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazily"]


def lazily(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's ``__getattr__``: each name of ``home`` from the module that defines it, or that is it."""

    def find(name: str) -> Any:
        if name in home:
            module = import_module(home[name])
            return module if home[name] == f"{package}.{name}" else getattr(module, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
