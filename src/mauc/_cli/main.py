"""The command ``mauc``."""

import io
import os
import sys
import traceback
from typing import Annotated

import typer

import mauc
from mauc._cli.app import App
from mauc._cli.compare import compare
from mauc._cli.demo import demo
from mauc._cli.evaluate import evaluate
from mauc._cli.fit import fit
from mauc._cli.predict import predict
from mauc._cli.private import private_folder
from mauc._tables.errors import NO_SPACE, explain
from mauc._text import visible

__all__ = ["app", "main"]

EXAMPLES = """\b
Examples:
  mauc demo
  mauc fit patients.csv --target diagnosis --out model.skops
  mauc predict model.skops new-patients.csv --out scores.csv
  mauc evaluate scores.csv --target diagnosis --compare other-scores.csv
  mauc compare model.skops other-model.skops
"""

app = App(
    help="Train and judge classifiers by multiclass AUC: every pair of classes counts the same, however rare.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mauc {mauc.__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version.")]


@app.callback()
def before_all(version: Version = False) -> None:
    """Before every command."""


for command in (demo, fit, predict, evaluate, compare):
    app.command()(command)


def main() -> None:
    """Entry point of the command."""
    is_closed = sys.stdout is None
    _open_all()
    if is_closed:
        sys.stderr.write("mauc: standard output is closed: send it to a file, or to /dev/null\n")
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        # Class names may hold characters that the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with private_folder():
        code = _run()
    sys.exit(code)


def _run() -> int:
    """The command; returns its exit code."""
    try:
        code = app(standalone_mode=False)
        if code:
            _forget_output()  # the command has said why
        else:
            sys.stdout.flush()
    except Exception as error:
        code = getattr(error, "exit_code", 1)
        sys.stderr.write(visible(_shown(error), lines=True))
        _forget_output()
    return int(code or 0)


def _open_all() -> None:
    """Standard output and error, where they are closed, go nowhere: no file of ours is opened in their place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, as long as the process lives


def _shown(error: Exception) -> str:
    """Typer's own errors as it shows them; where all others come from, which ``--debug`` asks for."""
    if isinstance(error, typer.Abort):
        return "Aborted.\n"
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        return f"mauc: {explain(error)}\n"
    if not hasattr(error, "show"):
        return "".join(traceback.format_exception(error))
    shown = io.StringIO()
    error.show(shown)
    return shown.getvalue()


def _forget_output() -> None:
    """What a full disk did not take, Python would try to write once more at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
