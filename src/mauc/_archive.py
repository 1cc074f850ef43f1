"""Read untrusted zip archives, such as .npz: check their directory, then read no more bytes than it lists."""

import math
import struct
import zipfile
import zlib
from collections.abc import Container
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mauc._text import visible

GB = 10**9
MAX_SIZE = 1.0
"""GB that unpacking may add to a file's own size by default."""
MEMBERS_PER_GB = 200_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those whose reading can be bounded
ENCRYPTED = 0x1
DAMAGED = (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeError, struct.error, zlib.error)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Refused(ValueError):
    """An archive is refused; the message continues a sentence that begins with its name."""


class TooLarge(Refused):
    """An archive is too large, unless the user allows more."""


def printable(text: str, longest: int = 120) -> str:
    """Return the beginning of an untrusted name, safe to print in a terminal."""
    return visible(text[:longest]) + ("…" if len(text) > longest else "")


def open_archive(stream: BinaryIO, max_size: float = MAX_SIZE) -> zipfile.ZipFile:
    """Open an archive and check its directory; nothing is unpacked yet.

    Raises
    ------
    Refused
        No archive, damaged, or with members that are encrypted, duplicate, or not packed by deflate.
    TooLarge
        Unpacking would add more than ``max_size`` GB, or there are more than 200 000 members per GB.
    """
    packed = stream.seek(0, 2)
    try:
        archive = zipfile.ZipFile(stream)
    except (*DAMAGED, ValueError):
        raise Refused("is damaged or not a zip archive") from None
    members = archive.infolist()
    if len(members) > MEMBERS_PER_GB * max_size:
        raise TooLarge(f"holds {len(members)} members, and {MEMBERS_PER_GB * max_size:.0f} are allowed")
    names: set[str] = set()
    for member in members:
        name = printable(member.filename)
        if member.filename in names:
            raise Refused(f"holds two members named {name!r}")
        if member.flag_bits & ENCRYPTED:
            raise Refused(f"holds the encrypted member {name!r}")
        if member.compress_type not in METHODS:
            raise Refused(f"holds {name!r}, packed by a method other than deflate")
        names.add(member.filename)
    unpacked = sum(member.file_size for member in members)
    if unpacked - packed > max_size * GB:
        raise TooLarge(f"unpacks from {packed / GB:.3g} to {unpacked / GB:.3g} GB, and {max_size:g} more are allowed")
    return archive


def read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return as many bytes of a member as the directory lists.

    ``ZipFile.read`` unpacks a member whole before it cuts it to that size, so a false size would let a bomb pass.
    """
    try:
        with archive.open(member) as stream:
            data = stream.read(member.file_size + 1)
    except (*DAMAGED, ValueError):
        data = None
    if data is None or len(data) != member.file_size:
        raise Refused(f"holds {printable(member.filename)!r}, which is damaged")
    return data


def read_arrays(
    file: Path | BinaryIO, max_size: float = MAX_SIZE, only: Container[str] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file by name, or those in ``only``; never unpickle."""
    opened = file.open("rb") if isinstance(file, Path) else nullcontext(file)
    with opened as stream, open_archive(stream, max_size) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                raise Refused(f"holds {printable(member.filename)!r}, which is not an array")
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        return {name: _array(archive, member) for name, member in members.items() if only is None or name in only}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    try:
        with archive.open(member) as stream:
            check_header(stream, member.file_size, member.filename)
        with archive.open(member) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except Refused:
        raise
    except (*DAMAGED, ValueError):
        raise Refused(f"holds {printable(member.filename)!r}, which is damaged") from None


def check_header(stream: Any, size: int, name: str) -> None:
    """Check the header of a .npy file of ``size`` bytes, before memory is allocated for the array."""
    shown = printable(name)
    try:
        shape, _, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
    except (*DAMAGED, ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Refused(f"holds {shown!r}, which is not an array of numbers or strings") from None
    if dtype.hasobject:
        raise Refused(f"holds Python objects, which could run code, in {shown!r}")
    n_items = math.prod(shape)
    if min(shape, default=0) < 0 or n_items * dtype.itemsize + stream.tell() != size or n_items > size:
        raise Refused(f"holds {shown!r}, which is not as long as it says")
