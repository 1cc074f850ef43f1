"""Errors of the commands: one or two plain lines that say what to do, and an exit code."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk is full, the user's quota is used up, or the system allows no larger file."""


class Failure(Exception):
    """The command cannot do its work; the message tells the user what to do."""

    exit_code = 1


class Usage(Failure):
    """The command was called wrongly."""

    exit_code = 2


_parameters: ContextVar[frozenset[str]] = ContextVar("parameters", default=frozenset())
"""Parameters of the Python function that runs; none while a command runs."""


def option_name(option: str) -> str:
    """Return an option as the caller writes it: ``--drop-unlabelled``, or the parameter of a Python function.

    >>> with in_python("drop_unlabelled"):
    ...     print(option_name("drop-unlabelled"), option_name("missing"))
    drop_unlabelled --missing
    >>> option_name("drop-unlabelled")
    '--drop-unlabelled'
    """
    parameter = option.replace("-", "_")
    return parameter if parameter in _parameters.get() else f"--{option}"


@contextmanager
def in_python(*parameters: str) -> Iterator[None]:
    """Raise the errors of commands as ValueError, and let messages name these parameters instead of options."""
    before = _parameters.set(frozenset(parameters))
    try:
        yield
    except Failure as error:
        raise ValueError(str(error)) from None
    finally:
        _parameters.reset(before)


def explain(error: Exception) -> str:
    """Return an error as the user should read it."""
    first_line = str(error).strip().partition("\n")[0] or type(error).__name__
    if isinstance(error, Failure):
        return str(error)
    if isinstance(error, OSError):
        what = error.filename if error.filename is not None else "a file"
        if error.errno in NO_SPACE and error.filename is None:
            return "no space left for the output: free some, or send it to another place"
        if error.errno in NO_SPACE:
            return f"no space left to write {what}, which is unchanged: free some, or choose another place"
        if isinstance(error, PermissionError) or error.errno == errno.EROFS:
            return f"no permission for {what}: choose another place, or change its permissions"
        if isinstance(error, FileNotFoundError) and error.filename is not None:
            return f"File not found: {what}"
        return first_line if error.strerror is None else f"{what}: {error.strerror}: check it, or choose another place"
    # A library that does not fit in memory is not loaded; the text is that of the system's linker.
    unmapped = isinstance(error, ImportError) and any(sign in str(error) for sign in ("map segment", "llocate memory"))
    if isinstance(error, MemoryError) or unmapped:
        return "not enough memory: use fewer rows or columns, or a larger machine"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"this needs {error.name.partition('.')[0]}, which is not installed: pip install 'mauc[all]'"
    if isinstance(error, ImportError | ValueError):
        return first_line
    return f"unexpected {type(error).__name__}: {first_line}\n--debug shows where; please report it"
