"""How errors read, and the options that every command has."""

import errno
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra mauc[cli]")

from typer import Typer
from typer.testing import CliRunner

from mauc._cli import app
from mauc._cli.app import with_common_options
from mauc._tables.errors import Failure, Usage, explain
from mauc._tables.read import has_class


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Failure("say so"), "say so"),
        (OSError(errno.ENOSPC, "full", "x.csv"), "no space left to write x.csv"),
        (PermissionError(errno.EACCES, "denied", "x.csv"), "no permission for x.csv"),
        (OSError(errno.EROFS, "read-only", "x.csv"), "no permission for x.csv"),
        (FileNotFoundError(errno.ENOENT, "none", "x.csv"), "File not found: x.csv"),
        (OSError("something else"), "something else"),
        (OSError(errno.EFBIG, "File too large", "x.csv"), "no space left to write x.csv"),
        (OSError(errno.EIO, "Input/output error", "x.csv"), "x.csv: Input/output error: check it, or choose another"),
        (MemoryError(), "not enough memory"),
        (ImportError("_ufuncs.so: failed to map segment from shared object", name="_ufuncs"), "not enough memory"),
        (ImportError("libgomp.so.1: cannot open shared object file", name="_trees"), "libgomp.so.1: cannot open"),
        (ModuleNotFoundError("No module named 'torch'", name="torch"), "this needs torch, which is not installed"),
        (ValueError("first line\nsecond"), "first line"),
        (KeyError("x"), "unexpected KeyError: 'x'\n--debug shows where"),
    ],
)
def test_explanations(error, words):
    told = explain(error)
    assert told.startswith(words)
    assert len(told.splitlines()) <= 2


@pytest.mark.parametrize(("error", "code"), [(Failure("no"), 1), (Usage("no"), 2), (RuntimeError("no"), 1)])
def test_exit_codes_and_debug(error, code):
    app = Typer()

    @app.command()
    @with_common_options
    def work(n: int = 1) -> None:
        raise error

    plain = CliRunner().invoke(app, [])
    assert plain.exit_code == code
    assert plain.stdout == ""
    assert plain.stderr.startswith("mauc: ")
    assert CliRunner().invoke(app, ["--debug"]).exception is error


def test_warnings_become_notes():
    import warnings

    app = Typer()

    @app.command()
    @with_common_options
    def work() -> None:
        for _ in range(2):
            has_class(np.array([True, False]), "y", Path("t.csv"))
        for category in (UserWarning, RuntimeWarning, DeprecationWarning):
            warnings.warn("of a library", category, stacklevel=1)

    result = CliRunner().invoke(app, [])
    assert (result.exit_code, result.stderr) == (0, "note: 1 row of t.csv without a class in 'y' is left out\n")
    assert CliRunner().invoke(app, ["--quiet"]).output == ""


COMMANDS = (
    "demo",
    "fit",
    "predict",
    "evaluate",
    "compare",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_common_options(command):
    told = CliRunner().invoke(app, [*command.split(), "--help"]).output
    for option in ("--json", "--quiet", "--debug"):
        assert option in told
