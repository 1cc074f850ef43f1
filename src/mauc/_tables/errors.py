"""How commands fail: one or two plain lines that say what to do, and an exit code."""

import errno
import re

__all__ = ["NO_SPACE", "Failure", "Usage", "explain", "in_plain_words"]

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""The disk is full, or the user's part of it."""

NOT_CONVERGED = (
    "the linear model stopped before it had converged, so that its scores may improve: a larger --l2 or fewer columns "
    "let it converge sooner"
)
PLAIN = {
    r"cv must give a fold that holds out two classes": "too few rows of some classes to choose --alpha and --l2 by "
    "cross-validation: give both, such as --alpha 4 --l2 0.01, add rows, or leave such classes out with --min-rows",
    r"Found unknown categories in columns": "some columns hold values that the training rows do not have: these count "
    "as none of the known ones",
    r"\w+ stopped before the gradient fell below tol": NOT_CONVERGED,
    r"lbfgs failed to converge": NOT_CONVERGED,
}
"""What libraries say about their own parameters, and what a user of the command can do."""


def in_plain_words(text: str) -> str:
    """The first line of what a library says, in words of the command where it names parameters that this lacks."""
    lines = text.strip().splitlines()
    return next((told for said, told in PLAIN.items() if lines and re.match(said, lines[0])), "".join(lines[:1]))


class Failure(Exception):
    """The work cannot be done; the message tells the user what to do."""

    exit_code = 1


class Usage(Failure):
    """The command was called wrongly."""

    exit_code = 2


def explain(error: Exception) -> str:
    """An error as the user should read it."""
    if isinstance(error, Failure):
        return str(error)
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, MemoryError):
        return "not enough memory: use fewer rows or columns, or a larger machine"
    if isinstance(error, ImportError):
        name = (error.name or "").partition(".")[0]
        if name and name != "mauc":
            return f"this needs {name}, which is not installed: pip install 'mauc[all]'"
        return _first_line(error)
    if isinstance(error, ValueError):
        return _first_line(error)
    return f"unexpected {type(error).__name__}: {_first_line(error)}\n--debug shows where; please report it"


def _of_system(error: OSError) -> str:
    what = error.filename if error.filename is not None else "a file"
    if error.errno in NO_SPACE and error.filename is None:
        return "no space left for the output: free some, or send it to another place"
    if error.errno in NO_SPACE:
        return f"no space left to write {what}, which is left as it was: free some, or choose another place"
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return f"no permission for {what}: choose another place, or change its permissions"
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"file not found: {what}"
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return in_plain_words(str(error)) or type(error).__name__
