"""Whether classes have an order by their names: numbers, ranges of numbers, and words of a scale.

``"low" < "medium" < "high"``, ``"very poor" < "fair" < "good"``, ``"I" < "II" < "IV"``, ``"<1" < "1-2" < "3+"``. Words
that all classes share, such as *risk* in "low risk" and "high risk", say nothing.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mauc._typing import Ints
from mauc._validation import invalid

__all__ = ["are_numbers", "order_of", "order_wanted"]

SCALES = (
    # From the lowest to the highest; words of one place mean the same.
    "low|medium, mid, middle, moderate, average, normal, intermediate|high",
    "terrible, awful|bad, poor|fair, average, ok, okay, acceptable, medium, normal|good|excellent, outstanding",
    "disagree|neutral, undecided, unsure, neither, neither agree nor disagree|agree",
    "dissatisfied, unsatisfied|neutral, neither|satisfied",
    "unhappy|neutral|happy",
    "unlikely|neutral, possible|likely",
    "unimportant|neutral|important",
    "oppose, against|neutral, undecided|support, favor, favour",
    "negative|neutral|positive",
    "worse|same, unchanged, stable|better",
    "less|same, equal|more",
    "decrease, decreased, down|same, unchanged, stable, steady|increase, increased, up",
    "too little, too few, too low|about right, right|too much, too many, too high",
    "tiny|small, little|medium, mid, middle, normal, average|large, big|huge, giant",
    "short|medium, mid, middle, average|long, tall",
    "slow|medium, moderate, average|fast, quick",
    "cold|cool, mild|warm|hot",
    "light|medium, moderate|heavy",
    "weak|medium, moderate, average|strong",
    "easy|medium, moderate|hard, difficult",
    "cheap|medium, moderate, average|expensive",
    "none, no, absent, healthy|minimal, slight|mild, minor, light|moderate, medium|severe, serious, major|critical",
    "never|rarely, seldom, hardly ever|sometimes, occasionally|often, frequently, regularly|usually|always",
    "none|few, a few, little, a little|some, several|many, much, a lot|most|all",
    "not at all|not, not too, not very|slightly, a little|somewhat, fairly, rather|pretty, quite|very|extremely",
    "beginner, novice, basic, elementary|intermediate|advanced, proficient|expert",
    "bronze|silver|gold|platinum|diamond",
    "freshman|sophomore|junior|senior",
    "primary|secondary|tertiary",
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth",
    "xxs|xs|s|m|l|xl|xxl|xxxl",
)
# How far a word is from the middle of its scale with one of these before it: "very low" is below "low".
STRESS = {"extremely": 1.75, "very": 1.5, "strongly": 1.5, "highly": 1.5, "much": 1.5} | {
    "fairly": 0.5,
    "somewhat": 0.5,
    "rather": 0.5,
    "moderately": 0.5,
    "slightly": 0.25,
}
# What may stand beside a number. "type 1" and "cluster 1" are names, and tell no order.
GRADED = frozenset(("grade", "stage", "level", "score", "degree", "rank", "rating", "phase", "tier"))
BELOW = frozenset(("<", "<=", "≤", "under", "below", "less", "fewer", "younger", "up"))
ABOVE = frozenset((">", ">=", "≥", "+", "over", "above", "more", "older", "plus", "least"))
BETWEEN = frozenset(
    ("-", "–", "to", "and", "or", "than", "at", "years", "year", "$", "€", "%", "(", "[", "]", ")", ",")
)
NOTHING = frozenset(("none", "never", "no"))
PLAIN = re.compile(r"[+-]?\d+(\.\d+)?")
ROMAN = re.compile(r"(x{0,3})(ix|iv|v?i{0,3})([abc]?)")
TOKENS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?|[^\W\d_]+|[<>]=?|[^\w\s]")

Key = tuple[float, ...]


def order_of(classes: Sequence[Any] | NDArray[Any]) -> Ints | None:
    """Places of the classes from the lowest to the highest; None where their names tell no order.

    Two classes have none: either order is the same to a model.

    Examples
    --------
    >>> order_of(["high risk", "low risk", "mid risk"]).tolist()
    [1, 2, 0]
    >>> order_of(["3 or more", "none", "1-2"]).tolist()
    [1, 2, 0]
    >>> order_of(["cat", "dog", "bird"]) is None
    True
    """
    given = np.asarray(classes)
    if len(given) < 3 or given.dtype.kind == "b":
        return None
    if are_numbers(given):
        return np.argsort(given.astype(np.float64), kind="stable")
    names = [TOKENS.findall(str(name).lower()) for name in given.tolist()]
    shared = set.intersection(*map(set, names))
    words = [" ".join(token for token in name if token.isalpha()) for name in names]
    bare = [" ".join(token for token in name if token.isalpha() and token not in shared) for name in names]
    readings = [
        [_of_number(name) for name in names],
        [_of_roman(name) for name in names],
        *([_on_scale(name, scale) for name in said] for said in (words, bare) for scale in _PLACES),
    ]
    for keys in readings:
        found = [key for key in keys if key is not None]
        if len(set(found)) == len(keys):
            return np.array(sorted(range(len(keys)), key=lambda k: found[k]), dtype=np.int64)
    return None


def order_wanted(ordinal: Any, classes: NDArray[Any], *, by_itself: bool) -> Ints | None:
    """The same by what the user says: True, which sorts classes whose names tell no order; False; all classes in order;
    or ``"auto"``, which is by the names, where models of an order may come by themselves.
    """
    if isinstance(ordinal, str) and ordinal == "auto":
        return order_of(classes) if by_itself else None
    if isinstance(ordinal, bool | np.bool_):
        found = order_of(classes)
        sorted_ones = np.arange(len(classes)) if len(classes) > 2 else None
        return None if not ordinal else sorted_ones if found is None else found
    given = [] if isinstance(ordinal, str) or np.ndim(ordinal) != 1 else np.asarray(ordinal).tolist()
    places = {name: place for place, name in enumerate(classes.tolist())}
    if len(given) != len(places) or set(given) != set(places):
        requirement = "must be True, False, 'auto' or a list of all classes, the lowest first"
        raise invalid("ordinal", requirement, repr(ordinal), f"the classes are {', '.join(map(str, places))}")
    return np.array([places[name] for name in given]) if len(places) > 2 else None


def are_numbers(classes: Sequence[Any] | NDArray[Any]) -> bool:
    """Whether all classes are plain numbers, or written as such: grades perhaps, or mere codes.

    Examples
    --------
    >>> are_numbers(["1", "2", "10"]), are_numbers(["1-2", "3-5", "6-10"])
    (True, False)
    """
    given = np.asarray(classes)
    if given.dtype.kind in "iuf":
        return True
    return all(PLAIN.fullmatch(str(name).strip()) is not None for name in given.tolist())


def _of_number(name: list[str]) -> Key | None:
    """Of a range, or a number with a word: its first number, and whether it is all below or above that."""
    if NOTHING.issuperset(name):
        return (0.0, -1.0)
    numbers = [float(token.replace(",", "")) for token in name if token[0].isdecimal()]
    rest = {token for token in name if not token[0].isdecimal()}
    if not numbers or not rest <= GRADED | BELOW | ABOVE | BETWEEN:
        return None
    return (numbers[0], float(bool(rest & ABOVE)) - float(bool(rest & BELOW)))


def _of_roman(name: list[str]) -> Key | None:
    """Of I to XXXIX, with a letter after it as in stage IIIB."""
    plain = "".join(token for token in name if token not in GRADED)
    found = ROMAN.fullmatch(plain)
    if found is None or not (found[1] or found[2]):
        return None
    ones = {"ix": 9, "iv": 4}.get(found[2], 5 * found[2].count("v") + found[2].count("i"))
    return (10.0 * len(found[1]) + ones, float(ord(found[3]) if found[3] else 0))


def _places(scale: str) -> dict[str, float]:
    """Words and their distance from the middle of the scale."""
    steps = [[word.strip() for word in step.split(",")] for step in scale.split("|")]
    middle = (len(steps) - 1) / 2
    return {word: k - middle for k, step in enumerate(steps) for word in step}


_PLACES = [_places(scale) for scale in SCALES]


def _on_scale(words: str, places: dict[str, float]) -> Key | None:
    if words in places:
        return (places[words],)
    stress, _, rest = words.partition(" ")
    return (STRESS[stress] * places[rest],) if stress in STRESS and rest in places else None
