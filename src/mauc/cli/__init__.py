"""The command ``mauc``: one module for each command, and what they share."""

import sys

try:
    from mauc.cli.main import app, main
except ModuleNotFoundError as error:
    if (error.name or "mauc").partition(".")[0] == "mauc":
        raise
    _missing = error.name

    def main() -> None:
        """What the script says that pip installs even without the extra ``cli``."""
        sys.exit(f"mauc: the command needs {_missing}, which is not installed: pip install 'mauc[cli]'")


__all__ = ["app", "main"]
