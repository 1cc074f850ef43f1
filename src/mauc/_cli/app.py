"""A Typer app whose every command takes ``--json``, ``--quiet`` and ``--debug``, and fails in plain lines."""

import errno
import inspect
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from mauc._cli.output import Output, speaking
from mauc._tables.errors import Failure, explain, in_plain_words

__all__ = ["App"]

COMMON = {
    "json": (Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")], False),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")], False),
    "debug": (Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")], False),
}


class App(typer.Typer):
    """Registers commands with the common options."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        """As ``typer.Typer.command``."""
        register = super().command(*args, **kwargs)

        def decorate(function: Callable[..., None]) -> Callable[..., None]:
            register(_with_common_options(function))
            return function

        return decorate


def _with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    def run(**arguments: Any) -> None:
        common = {name: arguments.pop(name) for name in COMMON}
        with speaking(Output(as_json=common["json"], quiet=common["quiet"])) as output:
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
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                work()
            finally:
                _tell(caught, output)
    except Exception as error:
        # Typer's own: usage errors, Exit, Abort.
        if isinstance(error, typer.Abort) or (hasattr(error, "exit_code") and not isinstance(error, Failure)):
            raise
        if debug or (isinstance(error, OSError) and error.errno == errno.EPIPE):
            raise
        output.fail(explain(error))
        raise typer.Exit(error.exit_code if isinstance(error, Failure) else 1) from None


def _tell(caught: list[warnings.WarningMessage], output: Output) -> None:
    """Warnings as notes, each once; those for programmers are left out."""
    for text in dict.fromkeys(
        in_plain_words(str(w.message))
        for w in caught
        if not issubclass(w.category, DeprecationWarning | FutureWarning | ResourceWarning) and str(w.message).strip()
    ):
        output.note(text)
