"""The command ``mauc``."""

import gc
import io
import os
import signal
import sys
import traceback
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

import mauc
from mauc._cli.app import with_common_options
from mauc._cli.compare import compare
from mauc._cli.demo import demo
from mauc._cli.evaluate import evaluate
from mauc._cli.fit import fit
from mauc._cli.predict import predict
from mauc._tables.errors import NO_SPACE, explain
from mauc._text import visible

EXAMPLES = """\b
Examples:
  mauc demo
  mauc fit patients.csv --target diagnosis --out model.skops
  mauc predict model.skops new-patients.csv --out scores.csv
  mauc evaluate scores.csv --target diagnosis --compare other-scores.csv
  mauc compare model.skops other-model.skops
"""

app = typer.Typer(
    help="Train and evaluate classifiers by multiclass AUC: every pair of classes counts the same, however rare.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mauc {mauc.__version__}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")]


@app.callback()
def before_all(version: Version = False) -> None:
    """Take the options of the command itself."""


for command in (demo, fit, predict, evaluate, compare):
    app.command()(with_common_options(command))


def main() -> None:
    """Run the command and exit."""
    # Imports make a million objects that stay: collecting garbage among them takes a fifth of the time to start.
    gc.set_threshold(200_000)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, as long as the process lives
    if sys.stdout is None:
        sys.exit("mauc: standard output is closed: send it to a file, or to /dev/null")
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # Without a buffer (PYTHONUNBUFFERED), Python drops what a nearly full disk does not take at once.
        sys.stdout = open(sys.stdout.fileno(), "w", encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115, as above
    for stream in (sys.stdout, sys.stderr):
        # Class names may hold characters that the terminal cannot show.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    _end_by_signals()
    with ExitStack() as stack:
        if "MPLCONFIGDIR" not in os.environ and not _has_fonts():
            with suppress(OSError):  # no folder can be written
                folder = TemporaryDirectory(prefix="mauc-", ignore_cleanup_errors=True)
                os.environ["MPLCONFIGDIR"] = stack.enter_context(folder)
        code = _run()
    gc.freeze()  # nothing to collect at the end of the process
    sys.exit(code)


def _run() -> int:
    """Run the command and return its exit code."""
    try:
        code = app(standalone_mode=False)
        if code:
            _discard_output()  # the command has printed the error
        else:
            sys.stdout.flush()
    except Exception as error:
        code = getattr(error, "exit_code", 1)
        sys.stderr.write(visible(_error_text(error), lines=True))
        _discard_output()
    return int(code or 0)


def _error_text(error: Exception) -> str:
    """Return Typer's own errors as it shows them, and the traceback of others, for ``--debug``."""
    if isinstance(error, typer.Abort):
        return "Aborted.\n"
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        return f"mauc: {explain(error)}\n"
    if not hasattr(error, "show"):
        return "".join(traceback.format_exception(error))
    shown = io.StringIO()
    error.show(shown)
    return shown.getvalue()


def _discard_output() -> None:
    """Discard output that did not fit on the disk: Python would try to write it again at exit, and fail."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _has_fonts() -> bool:
    """Return whether the user's home has the list of fonts that matplotlib writes when skrub imports it."""
    config = cache = Path(os.path.expanduser("~"), ".matplotlib")
    if sys.platform.startswith(("linux", "freebsd")):
        config = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "matplotlib")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "matplotlib")
    return os.access(config, os.W_OK) and os.access(cache, os.W_OK) and any(cache.glob("fontlist-*.json"))


def _end_by_signals() -> None:
    """Let TERM and HUP, which end a process at once, end the command as an error does: nothing stays behind."""

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # under nohup, HUP stays ignored
            signal.signal(number, end)
