"""Where a table comes from: a file, or a stream such as standard input, which is read once and kept."""

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from mauc._archive import GB, MAX_SIZE
from mauc._tables.errors import Failure

__all__ = ["STDIN", "Source", "shown"]

STDIN = Path("-")
GZIP = b"\x1f\x8b"


def shown(path: Path) -> Path:
    """The path as messages name it.

    >>> str(shown(Path("-"))), str(shown(Path("trees.csv")))
    ('standard input', 'trees.csv')
    """
    return Path("standard input") if path == STDIN else path


@dataclass(frozen=True)
class Source:
    """Bytes that can be read more than once."""

    path: Path
    kept: bytes | None = None
    """What a stream held; None for a file."""
    max_size: float = MAX_SIZE
    """GB that unpacking may add to it."""

    @classmethod
    def of(cls, path: Path, max_size: float = MAX_SIZE) -> "Source":
        """A stream is ``-``, or what is neither file nor folder: a pipe, as in ``mauc fit <(zcat trees.csv.gz)``."""
        if path == STDIN:
            if sys.stdin is None:
                raise Failure("standard input is closed: name a file, or send a table to the command")
            return cls(shown(path), sys.stdin.buffer.read(), max_size)
        if path.exists() and not path.is_file() and not path.is_dir():
            return cls(path, path.read_bytes(), max_size)
        return cls(path, None, max_size)

    @property
    def kind(self) -> str:
        """The ending of its name in lower case, less ``.gz``; of a stream, what its first bytes say."""
        if self.kept is None:
            return self.path.name.lower().removesuffix(".gz").rpartition(".")[2]
        # A column may be named PK or PAR1: the marks of both kinds are longer.
        if self.kept.startswith(b"PAR1") and self.kept.endswith(b"PAR1"):
            return "parquet"
        if self.kept.startswith(b"PK\3\4"):
            return "xlsx" if b"xl/workbook.xml" in self.kept else "npz"
        return "csv"

    def raw(self) -> BinaryIO:
        """The bytes as they are."""
        return self.path.open("rb") if self.kept is None else io.BytesIO(self.kept)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The bytes, unpacked if they are gzipped, and no more of them than ``max_size`` allows."""
        with self.raw() as stream:
            is_packed = stream.read(2) == GZIP
            n_packed = stream.seek(0, 2)
            stream.seek(0)
            if not is_packed:
                yield stream
                return
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield cast(BinaryIO, io.BufferedReader(_Bounded(unpacked, n_packed, self)))


class _Bounded(io.RawIOBase):
    """What an archive unpacks to, which fails where it is more than its user allows."""

    def __init__(self, unpacked: gzip.GzipFile, n_packed: int, source: Source) -> None:
        self.unpacked, self.n_packed, self.source = unpacked, n_packed, source
        self.left = n_packed + source.max_size * GB

    def readable(self) -> bool:
        """As in :mod:`io`."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As in :mod:`io`."""
        n = self.unpacked.readinto(buffer)
        self.left -= n
        if self.left < 0:
            allowed = (self.n_packed + self.source.max_size * GB) / GB
            raise Failure(
                f"{self.source.path} unpacks from {self.n_packed / GB:.3g} to over {allowed:.3g} GB, and "
                f"{self.source.max_size:g} more are allowed: raise --max-size if you know where the file comes from"
            )
        return n
