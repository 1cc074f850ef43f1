"""The command ``mauc``: one module for each subcommand, and shared helpers."""

import sys

from mauc._lazy import needing

try:
    with needing("cli", "the command"):
        from mauc._cli.main import app, main
except ImportError as error:
    _missing = str(error)

    def main() -> None:
        """Say what to install: pip installs the script even without the extra ``cli``."""
        sys.exit(f"mauc: {_missing}")


__all__ = ["app", "main"]
