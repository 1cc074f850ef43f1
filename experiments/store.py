"""Store results on disk, one small file per cell, so that a killed run resumes where it stopped."""

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from mauc._io import write_whole
from mauc._tables.errors import NO_SPACE
from mauc._text import visible

__all__ = ["Cell", "Store", "run_cells", "write_whole"]


@dataclass(frozen=True)
class Cell:
    """One fit: a key that names its result, and a function with arguments that computes it in any process."""

    key: tuple[str, ...]
    function: Callable[..., dict[str, Any]]
    arguments: tuple[Any, ...]
    together: tuple[Any, ...] | None = None
    """Cells with the same value here run one after another in one process, where they share what is cached."""


class Store:
    """A folder of JSON results, one file per key."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, key: Sequence[str]) -> Path:
        """Return the file of a key: its parts are folders, the last one the file."""
        *folders, name = (part.replace("/", "_") for part in key)
        return self.folder.joinpath(*folders, f"{name}.json")

    def __contains__(self, key: Sequence[str]) -> bool:
        """Return whether the key has a result that can be read."""
        try:
            self.read(key)
        except (FileNotFoundError, ValueError):
            return False
        return True

    def read(self, key: Sequence[str]) -> dict[str, Any]:
        """Return the result of a key; an empty or cut-off file is a ValueError."""
        path = self.path(key)
        try:
            result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise ValueError(f"{path} is empty or cut off: run the experiment that wrote it again") from None
        return result

    def write(self, key: Sequence[str], result: dict[str, Any]) -> None:
        """Store the result of a key."""
        write_whole(self.path(key), json.dumps(result))


def run_cells(cells: Iterable[Cell], store: Store, *, jobs: int = 1, keep_going: bool = False) -> int:
    """Compute the cells that have no result yet and store each result; return their number.

    Each cell prints a line on stderr. A result that cannot be read is computed again, with a warning that names its
    file. A kill loses only the cells in flight. A cell that fails stops the run with its key in the error; with
    ``keep_going`` it only prints a line.
    """
    cells = list(cells)
    missing, began, number = [cell for cell in cells if cell.key not in store], time.time(), 0
    for path in (store.path(cell.key) for cell in missing):
        if path.exists():
            warnings.warn(f"{path} is empty or cut off, and is computed again", UserWarning, stacklevel=2)
    print(f"{len(cells)} fits, {len(cells) - len(missing)} already computed", file=sys.stderr, flush=True)
    work = (delayed(_compute)(group, str(store.folder), keep_going) for group in _groups(missing))
    for keys in Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(work):
        number += len(keys)
        for key in keys:
            pace = f"{number} of {len(missing)} in {time.time() - began:.0f} s"
            print(f"{pace}: {visible(' / '.join(key))}", file=sys.stderr, flush=True)
    if number < len(missing):
        print(f"{len(missing) - number} are left: run the same command again", file=sys.stderr, flush=True)
    return number


def _groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group the cells that belong together, in the order of their first cells."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.key if cell.together is None else ("together", cell.together), []).append(cell)
    return list(groups.values())


def _compute(cells: Sequence[Cell], folder: str, keep_going: bool) -> list[tuple[str, ...]]:
    done = []
    for cell in cells:
        try:
            Store(folder).write(cell.key, cell.function(*cell.arguments))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in NO_SPACE:
                raise  # the cell is not the cause
            message = f"{' / '.join(cell.key)}: {type(error).__name__}: {error}"
            if not keep_going:
                raise RuntimeError(message) from error
            print(message, file=sys.stderr, flush=True)
        else:
            done.append(cell.key)
    return done
