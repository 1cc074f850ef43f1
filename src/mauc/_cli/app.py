"""Options that commands share. Every command takes ``--json``, ``--quiet`` and ``--debug``, and prints plain errors."""

import errno
import inspect
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mauc._cli.output import Output, use_output
from mauc._tables.errors import Failure, explain

TABLE = "CSV, TSV, Excel or Parquet file; - is standard input."
MaxSize = Annotated[
    float,
    typer.Option(min=0.0, help="A model, Excel or .gz file may unpack to this many GB more than its size."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Text that counts as missing, in the target too; can be repeated. Empty cells always count as missing; "
        "NA, null and the like do in all columns but the target.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as cp1250; default: detected.", show_default=False)
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Column separator of a text file: comma, semicolon, tab or bar; default: detected.", show_default=False
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line names the columns; default: detected.", show_default=False
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel file; default: the first.", show_default=False)]
Dates = Annotated[
    str | None,
    typer.Option(help="day-first or month-first, for dates such as 01/02/2024; default: detected.", show_default=False),
]
DropUnlabelled = Annotated[bool, typer.Option("--drop-unlabelled", help="Leave out rows without a class.")]
COMMON = {
    "json": (Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")], False),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")], False),
    "debug": (Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")], False),
}


def with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer that takes the common options, and prints warnings and errors as plain text."""

    def run(**arguments: Any) -> None:
        common = {name: arguments.pop(name) for name in COMMON}
        with use_output(Output(as_json=common["json"], quiet=common["quiet"])) as output:
            _run(lambda: function(**arguments), output, debug=common["debug"])

    signature = inspect.signature(function)
    extra = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in COMMON.items()
    ]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__signature__ = signature.replace(parameters=[*parameters, *extra])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*parameters, *extra)}
    return run


def _run(work: Callable[[], None], output: Output, *, debug: bool) -> None:
    shown = {""}

    def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Print each warning of mauc once, as a note; those of libraries are for programmers."""
        text = str(message).strip().partition("\n")[0]
        if text not in shown and issubclass(category, UserWarning) and _is_ours():
            shown.add(text)
            output.note(text)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = note
            work()
    except Exception as error:
        # Typer's own: usage errors, Exit, Abort.
        if isinstance(error, typer.Abort) or (hasattr(error, "exit_code") and not isinstance(error, Failure)):
            raise
        if debug or (isinstance(error, OSError) and error.errno == errno.EPIPE):
            raise
        output.fail(explain(error))
        raise typer.Exit(error.exit_code if isinstance(error, Failure) else 1) from None


def _is_ours() -> bool:
    """Return whether mauc gives the warning that is being shown; a library may blame the line of mauc that calls it."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals["__name__"] in (__name__, "warnings", "_py_warnings"):
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"].partition(".")[0] == "mauc"
