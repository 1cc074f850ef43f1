"""The command ``mauc``: one module for each command, and what they share."""

from mauc.cli.main import app, main

__all__ = ["app", "main"]
