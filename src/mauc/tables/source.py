"""Where a table comes from: a file, or a stream such as standard input, which is read once and kept."""

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

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

    @classmethod
    def of(cls, path: Path) -> "Source":
        """A stream is ``-``, or what is neither file nor folder: a pipe, as in ``mauc fit <(zcat trees.csv.gz)``."""
        if path == STDIN:
            return cls(shown(path), sys.stdin.buffer.read())
        if path.exists() and not path.is_file() and not path.is_dir():
            return cls(path, path.read_bytes())
        return cls(path)

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
        """The bytes, unpacked if they are gzipped."""
        with self.raw() as stream:
            packed = stream.read(2) == GZIP
            stream.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=stream) as unpacked:
                    yield cast(BinaryIO, unpacked)
            else:
                yield stream
