"""Read text tables: detect their encoding, separator, header line and decimal signs.

A warning says what was detected if a file is not UTF-8 with commas (tabs in .tsv) and decimal points.
"""

import codecs
import csv
import gzip
import io
import re
import sys
import warnings
import zlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from mauc._archive import GB
from mauc._tables.errors import Failure, Usage

PREFIX = "score:"
"""``mauc predict`` writes this before the class in the name of a score column."""
PREDICTED = "predicted"
"""Column of ``mauc predict``: the class that the model decides for."""
STDIN = Path("-")
BLOCK = 1 << 20
UNREADABLE = (EOFError, UnicodeError, ValueError, gzip.BadGzipFile, zlib.error)
"""Raised by pandas for text that is no table, and for damaged archives."""
SEPARATORS = {";": "semicolon", "\t": "tab", "|": "bar", ",": "comma"}
"""The first is preferred if all else is equal: commas also occur in numbers and text."""
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
ENCODINGS = {"utf-16": "UTF-16", "cp1252": "Windows-1252", "latin-1": "Latin-1"}
# A comma marks decimals if it does not come before three digits, or if it comes after a lone 0. Two commas, or a comma
# and then a point, mark thousands. In a file with decimal commas 1.125 means 1125; 0.125 cannot mean thousands, so its
# column stays as it was read.
NUMBER = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
AS_INTEGER = r"[+-]?(?:0|[1-9]\d*)(?:\.0*)?"
"""Spellings of an integer, also by programs that turned it into a float."""
POINT = r"\.0*$"
NAMES_OF_MISSING = frozenset({"NA", "N/A", "n/a", "NaN", "nan", "None", "none", "NULL", "Null", "null", "<NA>"})
EXACT = 2.0**53
"""From here on, floats skip integers."""
WITH_DECIMAL_COMMA = r"[+-]?(?:\d+|[1-9]\d{0,2}(?:\.\d{3})+)(?:,\d+)?(?:[eE][+-]?\d+)?"
WITH_THOUSANDS_COMMA = r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"
WITH_THOUSANDS_POINT = r"[+-]?(?:0|[1-9]\d{0,2}(?:\.\d{3})*)"
WITH_DECIMAL_POINT = rf"(?![+-]?0,)(?:{WITH_THOUSANDS_COMMA}|{NUMBER})"
COMMAS = {"decimal": "decimal commas", "thousands": "commas between thousands"}
"""What commas in numbers may mean."""
SIGNS = {"decimal": str.maketrans(",", ".", "."), "thousands": str.maketrans("", "", ",")}


@dataclass(frozen=True)
class Reading:
    """The user's options for reading a file; None: detected. And what is known from the training table."""

    missing: tuple[str, ...] = ()
    """Texts that count as missing in every column, beside empty cells."""
    encoding: str | None = None
    sheet: str | None = None
    separator: str | None = None
    header: bool | None = None
    """Whether the first line names the columns."""
    commas: str = ""
    """What commas in numbers meant in training, a key of :data:`COMMAS`; empty if there were none."""
    pointed: tuple[str, ...] = ()
    """Columns that had decimal points in training, beside others with decimal commas."""


def display_path(path: Path) -> Path:
    """Return the path as messages name it.

    >>> str(display_path(Path("-"))), str(display_path(Path("trees.csv")))
    ('standard input', 'trees.csv')
    """
    return Path("standard input") if path == STDIN else path


@dataclass(frozen=True)
class Source:
    """The bytes of a table, unpacked if they were gzipped."""

    path: Path
    """The path as messages name it."""
    kind: str
    content: bytes


def read_source(path: Path, max_size: float) -> Source:
    """Read a file, or a stream, which is ``-`` or a pipe such as ``<(zcat trees.csv.gz)``.

    Gzipped bytes may unpack to ``max_size`` GB more than their own size.
    """
    if path == STDIN and sys.stdin is None:
        raise Failure("standard input is closed: name a file, or send a table to the command")
    packed = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    content = _unpacked(packed, display_path(path), max_size) if packed.startswith(b"\x1f\x8b") else packed
    return Source(display_path(path), kind_of(path) if path.is_file() else _kind_of_bytes(content), content)


def kind_of(path: Path) -> str:
    """Return the suffix of a file in lower case, without ``.gz``."""
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


def _kind_of_bytes(content: bytes) -> str:
    # A column may be named PK or PAR1: the marks of both formats are longer.
    if content.startswith(b"PAR1") and content.endswith(b"PAR1"):
        return "parquet"
    return "xlsx" if content.startswith(b"PK\3\4") else "csv"


def _unpacked(packed: bytes, path: Path, max_size: float) -> bytes:
    blocks, n_bytes, allowed = [], 0, len(packed) + max_size * GB
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
            while n_bytes <= allowed and (block := stream.read(BLOCK)):
                blocks.append(block)
                n_bytes += len(block)
    except UNREADABLE as error:
        raise unreadable_text(path, error) from None
    if n_bytes > allowed:
        raise Failure(
            f"{path} unpacks from {len(packed) / GB:.3g} to over {allowed / GB:.3g} GB, and at most {max_size:g} GB "
            "more than its size are allowed: raise --max-size if you trust the file"
        )
    return b"".join(blocks)


def check_separator(separator: str | None) -> str | None:
    """Return the character that ``--separator`` gives, or names."""
    signs = {name: sign for sign, name in SEPARATORS.items()} | {"\\t": "\t"}
    if separator is None or separator in SEPARATORS:
        return separator
    if separator not in signs:
        raise Usage(f"--separator must be comma, semicolon, tab or bar, got {separator!r}: save the file with one")
    return signs[separator]


def check_encoding(encoding: str) -> str:
    """Return the normal name of an encoding."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise Usage(f"--encoding {encoding!r} is unknown: use one such as utf-8, cp1252, cp1250 or utf-16") from None


def check_names(names: Any, path: Path) -> None:
    """Refuse two columns of one name."""
    duplicates = names[names.duplicated()]
    if len(duplicates):
        raise Failure(f"{path} has two columns named {duplicates[0]!r}: rename one of them")


def unreadable_text(path: Path, error: Exception) -> Failure:
    """Return the error for a text file that cannot be unpacked or parsed."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    advice = "save it as CSV in UTF-8, one header line, one line per row"
    if isinstance(error, EOFError | OSError | zlib.error):  # of gzip
        advice = "it is damaged, copy or download it again"
    return Failure(f"{path} cannot be read as a table ({reason}): {advice}")


def read_text(
    source: Source,
    copied: Collection[str],
    text: Collection[str],
    codes: Collection[str],
    names: Collection[str],
    how: Reading,
) -> tuple[Any, Any]:
    """Return a pandas DataFrame, and copies of columns; see :func:`mauc._tables.read.read_with_copies`."""
    import pandas as pd

    # pandas 3 reads the nearest float, and pandas 2 only if told.
    exact = {"float_precision": "round_trip"} if pd.__version__.startswith("2.") else {}

    def parse(**options: Any) -> Any:
        content = io.BytesIO(source.content)
        return pd.read_csv(content, sep=separator, encoding=encoding, index_col=False, **(exact | named | options))

    try:
        encoding = detect_encoding(source) if how.encoding is None else check_encoding(how.encoding)
        sample = source.content[:BLOCK].decode(encoding, errors="replace")
        sample = sample if len(source.content) < BLOCK else sample[: sample.rfind("\n") + 1] or sample
        separator = check_separator(how.separator) or best_separator(sample)
        named: dict[str, Any] = {}
        # The header is read separately, because pandas renames the second of two columns of one name.
        header = pd.Index(parse(header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0])
        if _has_header(_rows(sample, separator), how.header, source.path):
            check_names(header[header != ""], source.path)
        else:
            named = {"header": None, "names": [f"column_{k}" for k in range(1, len(header) + 1)]}
        if len(header) == 1:
            # A blank line among the rows is a missing value, here alone.
            lines = re.sub(r"^[^\S\n]+$", "", source.content.decode(encoding), flags=re.MULTILINE).strip("\r\n")
            source, named["skip_blank_lines"] = replace(source, content=lines.encode(encoding)), False
        missing = list(how.missing)
        with warnings.catch_warnings():
            # Without index_col=False, pandas would take the first cells for names of rows, and move all others.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = parse(low_memory=False, dtype=dict.fromkeys(text, str), na_values=missing)
        overflown = _with_texts_of_missing(table, missing)
        if overflown:
            table[overflown] = parse(usecols=overflown, dtype=str, na_values=missing)[overflown]
        coded, long = sorted({*codes, *names} & set(table.columns)), with_long_integers(table)
        if coded or long:
            written = parse(usecols=[*{*coded, *long}], dtype=str, keep_default_na=False, na_values=["", *missing])
            for name in long:
                table[name] = as_integers(table[name], written[name])
            for name in coded:
                table[name] = as_code(table[name], written[name], literal=name in names, header=table.columns)
        kept = [name for name in table.columns if name in copied]
        copies = parse(usecols=kept, dtype=str, keep_default_na=False) if kept else table[kept]
    except pd.errors.ParserWarning:
        raise Failure(
            f"{source.path} has rows with more cells than its first line, which has {len(header)}: name every column, "
            "also that of row names"
        ) from None
    except UNREADABLE as error:
        raise unreadable_text(source.path, error) from None
    parse, unchanged, pointed = partial(parse, na_values=missing), {*text, *codes, *names}, how.pointed
    if how.commas:
        # In a cell of Excel a point is the decimal point of a number.
        points = not source.kind.startswith("xls")
        commas = _parse_as_learnt(table, {*unchanged, *pointed}, parse, source.path, how.commas, points=points)
    else:
        commas, pointed = _parse_commas(table, unchanged, parse, source.path)
    table.attrs["reading"] = replace(how, commas=commas, pointed=pointed)
    notes = [] if encoding in ("utf-8", "utf-8-sig") else [f"in {ENCODINGS.get(encoding, encoding)}"]
    if separator != ("\t" if source.kind in ("tsv", "tab") else ",") and len(header) > 1:
        notes.append(f"with {SEPARATORS[separator]}s between columns")
    if commas:
        notes.append(f"with {COMMAS[commas]}")
    if notes:
        other = "; choose another with --encoding" if encoding in ("cp1252", "latin-1") and not how.encoding else ""
        warnings.warn(f"{source.path} is read as a table {', '.join(notes)}{other}", stacklevel=4)
    return table, copies


def detect_encoding(source: Source) -> str:
    """Return what a byte order mark shows, else UTF-8 if all bytes fit it, else Windows-1252, or Latin-1."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if source.content.startswith(mark):
            return encoding
    if b"\0" in source.content[:BLOCK]:
        raise Failure(
            f"{source.path} has bytes of value 0: if it is not a text file, give it the right suffix; if it is UTF-16 "
            "without a byte order mark, pass --encoding utf-16"
        )
    for encoding in ("utf-8", "cp1252"):
        with suppress(UnicodeDecodeError):
            source.content.decode(encoding)
            return encoding
    return "latin-1"  # five bytes have no letter in Windows-1252


def _rows(sample: str, separator: str, most: int = 50) -> list[list[str]]:
    """Return the cells of the first lines. As in pandas, U+2028, which a name may hold, does not end a line."""
    longest = csv.field_size_limit(max(len(sample), 1))  # pandas has no limit
    try:
        lines = csv.reader(io.StringIO(sample, newline=""), delimiter=separator)
        return [row for row in islice(lines, most) if row]
    except csv.Error:
        return []
    finally:
        csv.field_size_limit(longest)


def best_separator(sample: str) -> str:
    """Return the separator that gives most of the first lines as many cells as the header, then most cells.

    A header of ``mauc predict`` has commas, whatever its classes are called.
    """
    by_commas = _rows(sample, ",")
    if by_commas and sum(name.startswith(PREFIX) for name in by_commas[0]) > 1:
        return ","

    def merit(separator: str) -> tuple[float, int]:
        widths = [len(row) for row in _rows(sample, separator)]
        if not widths or widths[0] < 2:
            return 0.0, 0
        return widths.count(widths[0]) / len(widths), widths[0]

    best = max(SEPARATORS, key=merit)
    return best if merit(best)[1] else ","


def _has_header(rows: list[list[str]], given: bool | None, path: Path) -> bool:
    """Return what the user gave, else what the first lines look like."""
    if given is not None or not rows:
        return given is not False
    found = has_header(rows[0], rows[1:])
    if not found:
        warnings.warn(
            f"{path} seems to have no header, so its first line is read as a row and its columns are named column_1 to "
            f"column_{len(rows[0])}; if the first line names them, use --header",
            stacklevel=4,
        )
    return found


def has_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line names the columns.

    A word above numbers is a name, and so is a word above repeating words that it is not one of. Without such a name
    the line is a row of the table if half of its words occur again below, or if most of its cells look like
    measurements: numbers that are not whole, that repeat, or that stand above whole numbers in every column. Numbers
    that rise from column to column, such as years or wavelengths, may be names, and so may class numbers in text order.

    >>> has_header(["5.1", "3.5", "setosa"], [["4.9", "3.0", "setosa"]])
    False
    >>> has_header(["400.5", "401.0", "401.5"], [["4.9", "3.0", "5.1"]])
    True
    >>> has_header(["506", "37", "812"], [["498", "40", "790"]])
    False
    >>> has_header(["2", "1", "0"], [["0.1", "0.2", "0.7"]])
    True
    """
    numbers = [value for cell in first if (value := _as_number(cell)) is not None]
    words = {k: cell.strip() for k, cell in enumerate(first) if _as_number(cell) is None and cell.strip()}
    below = {k: [row[k].strip() for row in rows if len(row) > k and row[k].strip()] for k in words}
    n_again = sum(words[k] in below[k] for k in words)
    for k, word in words.items():
        is_above_numbers = bool(below[k]) and all(_as_number(cell) is not None for cell in below[k])
        if is_above_numbers and any(map(str.isalpha, word)):
            return True
    if words and 2 * n_again >= len(words) and n_again + len(numbers) > 1:
        return False
    if any(words[k] not in below[k] and 2 * len(set(below[k])) <= len(below[k]) for k in words):
        return True
    written = [cell.strip() for cell in first if _as_number(cell) is not None]
    cells = [_as_number(cell) for row in rows for cell in row if cell.strip()]
    above_whole = not words and all(value is not None and value == int(value) for value in cells)
    measured = above_whole or len(set(written)) < len(written) or any(value != int(value) for value in numbers)
    rising = all(a < b for a, b in pairwise(numbers)) or all(a < b for a, b in pairwise(written))
    return not (measured and len(numbers) > 1 and 2 * len(numbers) > len(first) and not rising)


def _as_number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if abs(value) < 1e300 else None  # neither nan nor inf


def as_code(values: Any, written: Any, *, literal: bool, header: Sequence[str] = ()) -> Any:
    """Return a column of codes as numbers if it is written as numbers write themselves, as 12 and 12.0; else as text.

    Texts are as they are written, so 007, 1E1, 1.10 and integers that a float cannot hold keep their digits. 12.0 is 12
    among them: a program that turns integers into floats writes it. If ``literal``, fractions are numbers, which are
    measurements, not classes; text is also returned if ``NA`` and the like are names, or if two columns of the
    ``header`` are named after two spellings of one number, such as 1 and 1.0.
    """
    known = written[values.notna()].str.strip()
    if not (values.dtype.kind in "iuf" or known.str.fullmatch(NUMBER).all()):
        # In a column of numbers NA is missing; in a column of words it may be a word.
        return written if literal and bool((values.isna() & written.notna()).any()) else values
    whole = known.str.fullmatch(AS_INTEGER)
    named = literal and _name_columns(values, written, header)
    exact = values.dtype.kind in "iu" or (values.dtype.kind == "f" and not (values.abs() >= EXACT).any())
    measured = literal and values.dtype.kind == "f" and (values.dropna() % 1 != 0).any()
    if not named and exact and (whole.all() or measured):
        return values
    return (known if named else known.mask(whole, known.str.replace(POINT, "", regex=True))).reindex(values.index)


def _with_texts_of_missing(table: Any, missing: Collection[str]) -> list[str]:
    """Return the columns in which missing values are texts: pandas leaves them where an integer has over 64 bits."""
    texts = [name for name, kind in table.dtypes.items() if kind.kind not in "iufb"]
    return [name for name in texts if table[name].isin([*NAMES_OF_MISSING, "", *missing]).any()]


def with_long_integers(table: Any) -> list[str]:
    """Return the columns that were read as floats, and hold numbers of which floats cannot hold the last digits."""
    floats = [name for name, kind in table.dtypes.items() if kind.kind == "f"]
    return [name for name in floats if (table[name].abs() >= EXACT).any()]


def as_integers(values: Any, written: Any) -> Any:
    """Return a column that was read as floats with all digits of its integers.

    It stays as it is if floats hold them all. Beside fractions, or beyond 64 bits, it becomes text.
    """
    known = written[values.notna()].str.strip()
    whole = known.str.fullmatch(r"[+-]?\d+(?:\.0*)?")
    integers = known[whole].str.replace(POINT, "", regex=True).map(int)
    if (integers == integers.map(float).map(int)).all():
        return values
    kinds = {"Int64": (-(2**63), 2**63 - 1), "UInt64": (0, 2**64 - 1)}
    fitting = [kind for kind, limits in kinds.items() if whole.all() and integers.between(*limits).all()]
    return (integers.astype(fitting[0]) if fitting else known).reindex(values.index)


def _name_columns(values: Any, written: Any, header: Sequence[str]) -> bool:
    """Return whether columns are named after several spellings of one number."""
    spellings = written[values.notna()].str.strip().drop_duplicates()
    several = spellings[values[spellings.index].duplicated(keep=False)]
    return sum(any(str(name).endswith(word) for name in header) for word in several) > 1


def _parse_commas(table: Any, unchanged: Collection[str], parse: Any, path: Path) -> tuple[str, tuple[str, ...]]:
    """Convert columns of numbers with commas in place; return ``commas`` and ``pointed`` of :class:`Reading`."""
    conventions = {
        name: found
        for name in table.columns
        if name not in unchanged
        and table[name].dtype.kind not in "iufbM"
        and (found := _convention(table[name])) is not None
    }
    known = set(conventions.values()) - {"ambiguous"}
    if len(known) != 1:
        for name in conventions:
            example = next(value for value in table[name].dropna() if "," in value)
            warnings.warn(
                f"column {name!r} of {path} holds numbers such as {example}, whose comma may mark decimals or "
                "thousands: it is read as text; write them without commas",
                stacklevel=4,
            )
        return "", ()
    (convention,) = known
    for name in conventions:
        table[name] = _as_numbers(table[name], convention)
    if convention == "thousands":
        return convention, ()
    pointed = [n for n in table.columns if n not in conventions and n not in unchanged and table[n].dtype.kind == "f"]
    written = parse(usecols=pointed, dtype=str) if pointed else {}
    still_pointed = []
    for name in pointed:
        cells = written[name].dropna().str.strip()
        if not cells.str.contains(".", regex=False).any():
            continue
        # Beside decimal commas, 1.234 is one thousand.
        if cells.str.fullmatch(WITH_THOUSANDS_POINT).all():
            table[name] = _as_numbers(written[name], convention)
        else:
            still_pointed.append(name)
    return convention, tuple(still_pointed)


def _parse_as_learnt(
    table: Any, unchanged: Collection[str], parse: Any, path: Path, learnt: str, *, points: bool
) -> str:
    """Do the same for new rows: where a number may be read either way, other numbers of its column decide.

    If these leave it open, those of the file do, and then what commas meant in training. Without ``points``, columns
    without commas stay as they are.
    """
    import pandas as pd

    from mauc._validation import listing

    names = [name for name in table.columns if name not in unchanged and table[name].dtype.kind not in "iubM"]
    written = parse(usecols=names, dtype=str) if names else {}
    fits: dict[str, dict[str, Any]] = {}
    shown: dict[str, dict[str, str]] = {}
    doubtful = []
    for name in names:
        cells = written[name] = written[name].str.strip()
        with_comma, with_point = (cells.str.contains(sign, regex=False, na=False) for sign in ",.")
        if not with_comma.any() and not (points and with_point.any()):
            continue
        by_comma, by_point = (cells.str.fullmatch(each, na=False) for each in (WITH_DECIMAL_COMMA, WITH_DECIMAL_POINT))
        fits[name] = {"decimal": by_comma, "thousands": by_point}
        only = {"decimal": cells[by_comma & ~by_point], "thousands": cells[by_point & ~by_comma]}
        shown[name] = {meaning: found.iloc[0] for meaning, found in only.items() if len(found)}
        if shown[name].keys() != {learnt} and (by_comma & by_point & (with_comma | with_point)).any():
            doubtful.append(name)
    examples = {meaning: example for each in shown.values() for meaning, example in each.items()}
    usual = next(iter(examples)) if len(examples) == 1 else learnt
    meanings = {name: next(iter(each)) if len(each) == 1 else usual for name, each in shown.items()}
    other = next((example for meaning, example in examples.items() if meaning != learnt), None)
    signs = {"decimal": "decimal commas", "thousands": "decimal points"}
    for meaning in {meanings[name] for name in doubtful if other}:
        columns = [repr(name) for name in doubtful if meanings[name] == meaning]
        warnings.warn(
            f"{path} holds numbers such as {other}, although the training table had {signs[learnt]}: "
            f"numbers such as 1.234 or 1,234 are read with {signs[meaning]} in {listing(columns, 5)}",
            stacklevel=4,
        )
    used = ""
    for name, meaning in meanings.items():
        cells, fit = written[name], fits[name][meaning]
        numbers = cells.where(~fit, cells.str.translate(SIGNS[meaning]))
        if not numbers.equals(cells):
            table[name], used = pd.to_numeric(numbers) if (fit | cells.isna()).all() else numbers, meaning
    return used


def _convention(values: Any) -> str | None:
    """Return ``"decimal"``, ``"thousands"`` or ``"ambiguous"`` for a column of numbers with commas, else None."""
    cells = values.dropna()
    # The first cell is enough to skip most columns of words.
    if not len(cells) or not isinstance(cells.iloc[0], str) or not re.fullmatch(r"[\s\d.,eE+-]+", cells.iloc[0]):
        return None
    cells = cells.astype(str).str.strip()
    if not cells.str.contains(",", regex=False).any():
        return None
    if cells.str.fullmatch(WITH_DECIMAL_COMMA).all():
        either = cells.str.fullmatch(rf"[+-]?[1-9]\d{{0,2}},\d{{3}}|{NUMBER}")
        return "ambiguous" if either.all() else "decimal"
    return "thousands" if cells.str.fullmatch(f"{WITH_THOUSANDS_COMMA}|{NUMBER}").all() else None


def _as_numbers(values: Any, convention: str) -> Any:
    import pandas as pd

    return pd.to_numeric(values.astype("str").str.strip().str.translate(SIGNS[convention]).where(values.notna()))
