"""Errors of the commands: one or two plain lines that say what to do, and an exit code."""

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""The disk is full, or the user's quota is used up."""


class Failure(Exception):
    """The command cannot do its work; the message tells the user what to do."""

    exit_code = 1


class Usage(Failure):
    """The command was called wrongly."""

    exit_code = 2


@contextmanager
def in_python(*options: str) -> Iterator[None]:
    """Raise the errors of commands as ValueError, with these options as parameters."""
    try:
        yield
    except Failure as error:
        raise ValueError(as_parameters(str(error), options)) from None


def as_parameters(message: str, options: Sequence[str]) -> str:
    """Replace these options in a message by parameters: ``--time-limit`` becomes ``time_limit``.

    Names and paths that hold such a text stay as they are.

    >>> as_parameters("--drop 'a--drop' is not a column", ["drop"])
    "drop 'a--drop' is not a column"
    >>> as_parameters("leave them out with --drop-unlabelled", ["drop", "drop-unlabelled"])
    'leave them out with drop_unlabelled'
    """
    if not options:
        return message
    longest_first = sorted(options, key=len, reverse=True)
    pattern = rf"(?<![\w'\"/-])--({'|'.join(longest_first)})\b"
    return re.sub(pattern, lambda found: found[1].replace("-", "_"), message)


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
        is_missing = isinstance(error, FileNotFoundError) and error.filename is not None
        return f"File not found: {what}" if is_missing else first_line
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows or columns, or a larger machine"
    if isinstance(error, ImportError):
        name = (error.name or "").partition(".")[0]
        missing = name and name != "mauc"
        return f"this needs {name}, which is not installed: pip install 'mauc[all]'" if missing else first_line
    if isinstance(error, ValueError):
        return first_line
    return f"unexpected {type(error).__name__}: {first_line}\n--debug shows where; please report it"
