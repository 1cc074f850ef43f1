"""How commands fail: one or two plain lines that say what to do, and an exit code."""

import errno

__all__ = ["NO_SPACE", "Failure", "Usage", "explain"]

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""The disk is full, or the user's part of it."""


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
        return f"{what} is not there: check the name"
    return _first_line(error)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
