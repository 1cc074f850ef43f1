"""Decide which labels are the same: classes, predictions, names of columns and levels may be of different types.

A label has one text or more, from the strictest to the loosest (:func:`texts`). Two labels are the same if their first
texts are equal, or if one of their looser texts leads from the one to the other and to no third.
"""

from __future__ import annotations

import datetime
import math
import numbers
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

WHOLE = re.compile(r"(-?\d+)\.0")


def texts(label: Any) -> tuple[str, ...]:
    """Return the texts of a label, the strictest first.

    Numbers have the text of a whole number last, True and False also have 1 and 0, bytes the text that they encode, and
    dates the shortest text of their time, whatever their unit.

    >>> texts(1.0), texts("1.0"), texts(True), texts(b"a"), texts(np.datetime64("2020-01-01T00:00"))
    (('1.0', '1'), ('1.0', '1'), ('True', '1'), ('a',), ('2020-01-01',))
    """
    if isinstance(label, bytes):
        return texts(label.decode("utf-8", "backslashreplace"))
    if isinstance(label, str):
        text = str.__str__(label)
        whole = WHOLE.fullmatch(text)
        return (text, whole[1]) if whole else (text,)
    if isinstance(label, bool | np.bool_):
        return str(bool(label)), str(int(label))
    if isinstance(label, np.datetime64):
        return (str(np.datetime_as_string(label, unit="auto")),)
    if isinstance(label, datetime.date):
        return (_text_of_date(label),)
    if isinstance(label, np.timedelta64 | datetime.timedelta):
        return (str(np.timedelta64(label).astype("timedelta64[ns]")),)
    number: Any = label if isinstance(label, numbers.Real | Decimal) else math.nan
    is_whole = math.isfinite(number) and number == int(number)
    return tuple(dict.fromkeys((str(label), str(int(number))))) if is_whole else (str(label),)


def _text_of_date(date: datetime.date) -> str:
    """Return the text of a date or a time of Python or pandas; one with a zone is a time of UTC."""
    zone = date.tzinfo if isinstance(date, datetime.datetime) else None
    if isinstance(date, datetime.datetime) and zone is not None:
        date = date.astimezone(datetime.UTC).replace(tzinfo=None)
    exact = getattr(date, "to_datetime64", lambda: np.datetime64(date))()  # pandas has nanoseconds
    return str(np.datetime_as_string(exact, unit="auto")) + ("Z" if zone else "")


def text_of(label: Any) -> str:
    """Return the strictest text of a label."""
    return texts(label)[0]


def names_of(labels: Any) -> list[str]:
    """Return the strictest text of each label, by which people see it."""
    return list(map(text_of, _one_by_one(labels)))


def _one_by_one(labels: Any) -> Iterator[Any]:
    """Yield labels one by one; dates of an array stay dates, which its ``tolist`` would turn into numbers."""
    as_it_is = isinstance(labels, list | tuple) or (isinstance(labels, np.ndarray) and labels.dtype.kind in "mM")
    yield from labels if as_it_is else np.asarray(labels).tolist()


def positions(names: Any, classes: Any) -> NDArray[np.int64]:
    """Return the position of each name among different classes, -1 for a name of none.

    >>> positions([1, "2.0", True, "x"], ["1", "2"]).tolist()
    [0, 1, 0, -1]
    """
    of_classes = list(map(texts, _one_by_one(classes)))
    exact = {found[0]: k for k, found in enumerate(of_classes)}
    times = Counter(text for found in of_classes for text in found)
    loose = {text: k for k, found in enumerate(of_classes) for text in found if times[text] == 1}

    def position(name: Any) -> int:
        found = texts(name)
        return exact.get(found[0], next((loose[text] for text in found if text in loose), -1))

    if isinstance(names, np.ndarray) and names.dtype.kind != "O":
        distinct, place = np.unique(names, return_inverse=True)
        return np.fromiter(map(position, _one_by_one(distinct)), np.int64, len(distinct))[place]
    return np.fromiter(map(position, _one_by_one(names)), np.int64, len(names))


def columns_of(columns: Sequence[Any], classes: Any) -> tuple[list[int] | None, bool]:
    """Return the column of each class, and whether some columns seem to be named after classes, and others not.

    All columns may have the same text before the class and after it, as in ``p_1`` and ``p_2``; then case and blanks
    around the name may differ. The columns are None unless each is named after another class.
    """
    wanted = list(map(texts, _one_by_one(classes)))
    partly = False
    ways = (
        ([text_of(name) for name in columns], [found[0] for found in wanted]),
        ([texts(name)[-1] for name in columns], [found[-1] for found in wanted]),
        ([text_of(name).casefold().strip() for name in columns], [found[-1].casefold().strip() for found in wanted]),
    )
    for have, want in ways:
        if len(set(want)) < len(want):
            continue  # in this way two classes have one name
        around = _named_after(have, want)
        exact = around.pop(("", ""), {})
        whole = [found for found in (exact, *around.values()) if len(found) == len(want) == len(have)]
        orders = {tuple(found[k] for k in range(len(want))) for found in whole[: 1 if whole[:1] == [exact] else None]}
        if len(orders) == 1:
            return list(orders.pop()), False
        partly = partly or bool(exact) or any(_is_meant(*key, len(found)) for key, found in around.items())
    return None, partly


def _named_after(have: Sequence[str], want: Sequence[str]) -> dict[tuple[str, str], dict[int, int]]:
    """Return, for each pair of texts before and after a class, the column of each class so named."""
    place = {text: k for k, text in enumerate(want)}
    lengths = {len(text) for text in want} - {0}
    found: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for column, text in enumerate(have):
        if text in place:
            found["", ""][place[text]] = column
        for n in lengths:
            for at in range(len(text) - n + 1):
                if text[at : at + n] in place:
                    found[text[:at], text[at + n :]][place[text[at : at + n]]] = column
    return found


def _is_meant(before: str, after: str, n_classes: int) -> bool:
    """Return whether columns are hardly named so by chance: two classes are, or one is a word of the name."""
    return n_classes > 1 or not (before[-1:].isalnum() or after[:1].isalnum())


def class_within(name: Any, classes: Any) -> int:
    """Return the position of the only class that is a word of a longer name, as 0 in ``p_0``; -1 if there is none."""
    words = re.split(r"[\W_]+", text_of(name))
    found = [k for k, text in enumerate(names_of(classes)) if text in words]
    return found[0] if len(found) == 1 else -1
