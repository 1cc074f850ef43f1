"""Surrogates ℓ of the 0-1 pair loss: ℓ, its derivative, and the facts the rest of the library relies on.

A surrogate is a small immutable object with ``loss(t)`` and ``derivative(t)``, both vectorised over the difference
``t = F_mi − F_ni`` of a positive and a negative score. ``pieces`` says how to compute it fast: ℓ restricted to
``[low, high)`` is a polynomial (its coefficients, from the constant up) or smooth (``None``, to be approximated).
To add one, write the class and enter it in :data:`SURROGATES`: every test and every scheme then runs on it.

The default α of each class suits softmax scores, which differ by 1 at most (``docs/results/linear-defaults.md``)::

    squared 1, exponential 4, hinge 0.5, q_hinge 1, generalized_hinge 0.5, logistic 4

Log-odds have no bound. For them two surrogates have an α that is consistent, ``log_odds_alpha``: exponential 0.5,
logistic 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mauc._typing import Floats
from mauc._validation import check_choice, check_real, invalid, listing

__all__ = [
    "SURROGATES",
    "ClosedForm",
    "CustomSurrogate",
    "DistanceWeighted",
    "Exponential",
    "GeneralizedHinge",
    "Hinge",
    "Logistic",
    "Piece",
    "QHinge",
    "Squared",
    "Surrogate",
    "get_surrogate",
]

INF = float("inf")
LARGEST = 1e100
"""Largest parameter, and largest inverse of one: beyond it their squares and cubes overflow."""
LARGEST_LOSS = 1e300
"""Largest ``(α + 1)^q``, the loss at ``t = −1``."""
MAX_POWER = 64
"""Largest whole q that is expanded into powers: beyond it the coefficients have more digits than a float."""


class Piece(NamedTuple):
    """ℓ on ``[low, high)``: polynomial coefficients from degree 0 up, or None for "smooth, not a polynomial"."""

    low: float
    high: float
    coefficients: tuple[float, ...] | None
    at_end: tuple[float, ...] | None = None
    """The coefficients of :attr:`from_end` if they are known without rounding."""

    @property
    def from_end(self) -> tuple[float, ...]:
        """Coefficients of the powers of ``s >= 0``, the distance from ``high``, or from ``low`` if that is infinite.

        Near the end powers of ``t`` would cancel.
        """
        if self.at_end is not None:
            return self.at_end
        assert self.coefficients is not None
        t = np.polynomial.Polynomial([self.high, -1.0] if self.high < INF else [self.low, 1.0])
        return tuple(float(c) for c in np.atleast_1d(np.polynomial.Polynomial(self.coefficients)(t).coef))


class ClosedForm(NamedTuple):
    """A loss that splits into functions of the positive and of the negative, and has a special kernel."""

    kind: str
    """``"squared"`` for ``(α − t)²``, ``"exponential"`` for ``exp(−α t)``."""
    alpha: float


class Surrogate(ABC):
    """Base of all surrogates. Subclasses are frozen dataclasses of their parameters."""

    name: ClassVar[str]
    convex: bool = True
    """ℓ is convex on the whole line."""
    smooth: bool = True
    """ℓ is differentiable on the whole line."""
    log_odds_alpha: ClassVar[float | None] = None
    """The α for which the risk of log-odds is consistent (``docs/theory.md``); None if there is none."""
    limits: ClassVar[dict[str, float]] = {}
    """Parameters that must be above 0, each with its upper limit."""

    def __post_init__(self) -> None:
        for name, high in self.limits.items():
            value = check_real(name, getattr(self, name), low=0, high=high)
            if not 1.0 / LARGEST <= value <= LARGEST:
                requirement = f"must lie between {1.0 / LARGEST:g} and {min(high, LARGEST):g}"
                advice = "beyond that its powers overflow: scale the scores instead"
                raise invalid(name, requirement, repr(getattr(self, name)), advice)

    @abstractmethod
    def loss(self, t: Floats) -> Floats:
        """Return ℓ(t)."""

    @abstractmethod
    def derivative(self, t: Floats) -> Floats:
        """Return ℓ′(t); at a kink, the slope on its right."""

    @property
    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """Contiguous pieces that cover the line."""

    @property
    def non_increasing(self) -> bool:
        """ℓ does not rise on [−1, 1], the range of differences of softmax scores."""
        return True

    @property
    def closed_form(self) -> ClosedForm | None:
        """The kernel that sums ℓ without polynomials; None if there is none."""
        return None


@dataclass(frozen=True)
class Squared(Surrogate):
    """``ℓ(t) = (α − t)²``. Rises again beyond ``t = α``: below α = 1 the consistency condition is not met."""

    name: ClassVar[str] = "squared"
    limits: ClassVar = {"alpha": INF}
    alpha: float = 1.0

    def loss(self, t: Floats) -> Floats:
        return (self.alpha - t) ** 2

    def derivative(self, t: Floats) -> Floats:
        return -2.0 * (self.alpha - t)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(-INF, INF, (self.alpha**2, -2.0 * self.alpha, 1.0)),)

    @property
    def non_increasing(self) -> bool:
        return self.alpha >= 1.0

    @property
    def closed_form(self) -> ClosedForm:
        return ClosedForm("squared", self.alpha)


@dataclass(frozen=True)
class Exponential(Surrogate):
    """``ℓ(t) = exp(−α t)``."""

    name: ClassVar[str] = "exponential"
    limits: ClassVar = {"alpha": INF}
    log_odds_alpha = 0.5
    alpha: float = 4.0

    def loss(self, t: Floats) -> Floats:
        return np.exp(-self.alpha * t)

    def derivative(self, t: Floats) -> Floats:
        return -self.alpha * np.exp(-self.alpha * t)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(-INF, INF, None),)

    @property
    def closed_form(self) -> ClosedForm:
        return ClosedForm("exponential", self.alpha)


@dataclass(frozen=True)
class Hinge(Surrogate):
    """``ℓ(t) = max(α − t, 0)``."""

    name: ClassVar[str] = "hinge"
    limits: ClassVar = {"alpha": INF}
    smooth = False
    alpha: float = 0.5

    def loss(self, t: Floats) -> Floats:
        return np.maximum(self.alpha - t, 0.0)

    def derivative(self, t: Floats) -> Floats:
        return np.where(t < self.alpha, -1.0, 0.0)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(-INF, self.alpha, (self.alpha, -1.0), (0.0, 1.0)), Piece(self.alpha, INF, (0.0,)))


@dataclass(frozen=True)
class QHinge(Surrogate):
    """``ℓ(t) = max(α − t, 0)^q`` with ``q > 1``."""

    name: ClassVar[str] = "q_hinge"
    limits: ClassVar = {"alpha": INF}
    alpha: float = 1.0
    q: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("q", self.q, low=1)
        if self.q * math.log1p(self.alpha) > math.log(LARGEST_LOSS):
            requirement = f"must leave (alpha + 1)^q, the loss at t = −1, below {LARGEST_LOSS:g}"
            raise invalid("q", requirement, f"{self.q!r} with alpha={self.alpha!r}", "pass a smaller q or alpha")

    def loss(self, t: Floats) -> Floats:
        return np.maximum(self.alpha - t, 0.0) ** self.q

    def derivative(self, t: Floats) -> Floats:
        return -self.q * np.maximum(self.alpha - t, 0.0) ** (self.q - 1.0)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        power = at_end = None
        if float(self.q).is_integer() and self.q <= MAX_POWER:
            power = tuple(float(c) for c in (np.polynomial.Polynomial([self.alpha, -1.0]) ** int(self.q)).coef)
            at_end = (0.0,) * int(self.q) + (1.0,)
        return (Piece(-INF, self.alpha, power, at_end), Piece(self.alpha, INF, (0.0,)))


@dataclass(frozen=True)
class GeneralizedHinge(Surrogate):
    """A hinge with its corner rounded by a parabola.

    ``α − t`` for ``t <= α − ε``, ``(t − α − ε)² / (4ε)`` up to ``α + ε``, then 0, with ``0 < ε < ½``.
    """

    name: ClassVar[str] = "generalized_hinge"
    limits: ClassVar = {"alpha": INF, "epsilon": 0.5}
    alpha: float = 0.5
    epsilon: float = 0.1

    def loss(self, t: Floats) -> Floats:
        rest = np.maximum(self.alpha + self.epsilon - t, 0.0)
        return np.where(t < self.alpha - self.epsilon, self.alpha - t, rest**2 / (4.0 * self.epsilon))

    def derivative(self, t: Floats) -> Floats:
        rest = np.maximum(self.alpha + self.epsilon - t, 0.0)
        return np.where(t < self.alpha - self.epsilon, -1.0, -rest / (2.0 * self.epsilon))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        low, high = self.alpha - self.epsilon, self.alpha + self.epsilon
        scale = 4.0 * self.epsilon
        parabola = (high**2 / scale, -2.0 * high / scale, 1.0 / scale)
        return (
            Piece(-INF, low, (self.alpha, -1.0), (self.epsilon, 1.0)),
            Piece(low, high, parabola, (0.0, 0.0, 1.0 / scale)),
            Piece(high, INF, (0.0,)),
        )


@dataclass(frozen=True)
class Logistic(Surrogate):
    """``ℓ(t) = log(1 + exp(−α t))``."""

    name: ClassVar[str] = "logistic"
    limits: ClassVar = {"alpha": INF}
    log_odds_alpha = 1.0
    alpha: float = 4.0

    def loss(self, t: Floats) -> Floats:
        return np.logaddexp(0.0, -self.alpha * t)

    def derivative(self, t: Floats) -> Floats:
        return -self.alpha * np.exp(-np.logaddexp(0.0, self.alpha * t))

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(-INF, INF, None),)


@dataclass(frozen=True)
class DistanceWeighted(Surrogate):
    """``ℓ(t) = 1/t`` for ``t > ε``, continued by its tangent ``(2 − t/ε)/ε``, with ``0 < ε < 1``."""

    name: ClassVar[str] = "distance_weighted"
    limits: ClassVar = {"epsilon": 1.0}
    epsilon: float = 0.1

    def loss(self, t: Floats) -> Floats:
        return np.where(t < self.epsilon, (2.0 - t / self.epsilon) / self.epsilon, 1.0 / np.maximum(t, self.epsilon))

    def derivative(self, t: Floats) -> Floats:
        return -1.0 / np.maximum(t, self.epsilon) ** 2

    @property
    def pieces(self) -> tuple[Piece, ...]:
        e = self.epsilon
        return (Piece(-INF, e, (2.0 / e, -1.0 / e**2), (1.0 / e, 1.0 / e**2)), Piece(e, INF, None))


@dataclass(frozen=True)
class CustomSurrogate(Surrogate):
    """Any ℓ with its derivative.

    ``breakpoints`` are the places where ℓ is not smooth; between them it is approximated by polynomials, see
    :class:`mauc.SurrogateRisk`. ``convex``, ``smooth`` and ``decreasing`` are not checked; their defaults assume
    nothing. Results are cached by the functions and some of their values, so that a function whose parameters change is
    another surrogate.
    """

    name: ClassVar[str] = "custom"
    loss_function: Callable[[Floats], Floats]
    derivative_function: Callable[[Floats], Floats]
    breakpoints: tuple[float, ...] = ()
    convex: bool = False
    smooth: bool = False
    decreasing: bool = False
    values: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        t = np.linspace(-1.0, 1.0, 9)
        values = np.concatenate([np.ravel(self.loss_function(t)), np.ravel(self.derivative_function(t))])
        object.__setattr__(self, "values", values.tobytes())

    def loss(self, t: Floats) -> Floats:
        return self.loss_function(t)

    def derivative(self, t: Floats) -> Floats:
        return self.derivative_function(t)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        edges = (-INF, *sorted(self.breakpoints), INF)
        return tuple(Piece(low, high, None) for low, high in pairwise(edges))

    @property
    def non_increasing(self) -> bool:
        return self.decreasing


SURROGATES: dict[str, type[Surrogate]] = {
    kind.name: kind for kind in (Squared, Exponential, Hinge, QHinge, GeneralizedHinge, Logistic, DistanceWeighted)
}


def get_surrogate(
    surrogate: str | Any, *, alpha: float | None = None, default_alpha: float | None = None, **options: float
) -> Surrogate:
    """Return the surrogate of that name with its parameters, or the object itself.

    ``alpha=None`` is ``default_alpha`` if that is given and the surrogate has an α, else the surrogate's default.
    An object needs ``loss(t)`` and ``derivative(t)``; it may have the attributes of :class:`CustomSurrogate`.

    >>> get_surrogate("q_hinge", alpha=0.5, q=3)
    QHinge(alpha=0.5, q=3)
    >>> get_surrogate("hinge"), get_surrogate("hinge", alpha=1.0), get_surrogate("distance_weighted")
    (Hinge(alpha=0.5), Hinge(alpha=1.0), DistanceWeighted(epsilon=0.1))
    """
    if alpha is not None:
        options = {"alpha": alpha, **options}
    if not isinstance(surrogate, str):
        return _from_object(surrogate, options)
    kind = SURROGATES[check_choice("surrogate", surrogate, tuple(SURROGATES))]
    if default_alpha is not None and has_alpha(surrogate):
        options = {"alpha": default_alpha, **options}
    # NumPy's numbers become Python's: a float32 would spread to all results, and torch.compile asks for the type.
    plain = {name: x.item() if isinstance(x, np.generic) else x for name, x in options.items()}
    known = _parameters(kind)
    for name, value in plain.items():
        if name not in known:
            what = "does not exist for" if name == "alpha" else "is not an option of"
            raise invalid(name, f"{what} the {kind.name} surrogate", value, f"it takes {listing(sorted(known))}")
    return kind(**plain)


def has_alpha(surrogate: Any) -> bool:
    """Return True for the name of a surrogate that has an α; an object has its own."""
    return isinstance(surrogate, str) and surrogate in SURROGATES and "alpha" in _parameters(SURROGATES[surrogate])


def _parameters(kind: type[Surrogate]) -> set[str]:
    # Not dataclasses.fields, which torch.compile cannot trace.
    return set(kind.__match_args__)  # type: ignore[attr-defined]


def _from_object(surrogate: Any, options: dict[str, float]) -> Surrogate:
    if options:
        came, advice = f"it together with the object {surrogate!r}", "set the parameters on the object itself"
        raise invalid(next(iter(options)), "needs a surrogate given by name", came, advice)
    if not isinstance(surrogate, Surrogate):
        loss, derivative = getattr(surrogate, "loss", None), getattr(surrogate, "derivative", None)
        if not callable(loss) or not callable(derivative):
            requirement = "must be a name or an object with the methods loss(t) and derivative(t)"
            advice = f"use one of {listing(sorted(SURROGATES))}, or mauc.surrogates.CustomSurrogate(loss, derivative)"
            raise invalid("surrogate", requirement, repr(surrogate), advice)
        facts = {name: bool(getattr(surrogate, name, False)) for name in ("convex", "smooth", "decreasing")}
        surrogate = CustomSurrogate(loss, derivative, tuple(getattr(surrogate, "breakpoints", ())), **facts)
    try:
        hash(surrogate)
    except TypeError:
        advice = "write @dataclass(frozen=True) above its class, with tuples instead of lists and arrays"
        raise invalid("surrogate", "must be hashable, as results are cached by it", repr(surrogate), advice) from None
    return surrogate
