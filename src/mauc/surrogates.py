"""Surrogates ℓ of the 0-1 pair loss: ℓ, its derivative, and the facts the rest of the library relies on.

A surrogate is a small immutable object with ``loss(t)`` and ``derivative(t)``, both vectorised over the difference
``t = F_mi − F_ni`` of a positive and a negative score. ``pieces`` tells how it is computed fast: ℓ restricted to
``[low, high)`` is a polynomial (its coefficients, from the constant up) or smooth (``None``, to be approximated).
To add one, write the class and enter it in :data:`SURROGATES`: every test and every scheme then runs on it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mauc._typing import Floats
from mauc._validation import check_choice, check_real, invalid

__all__ = [
    "SURROGATES",
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


class Piece(NamedTuple):
    """ℓ on ``[low, high)``: polynomial coefficients from degree 0 up, or None for "smooth, not a polynomial"."""

    low: float
    high: float
    coefficients: tuple[float, ...] | None
    at_end: tuple[float, ...] | None = None
    """The same polynomial as :attr:`from_end`, where it is known without rounding."""

    @property
    def from_end(self) -> tuple[float, ...]:
        """Coefficients of the powers of ``s >= 0``, the distance from ``high``, from ``low`` if ``high`` is infinite:
        near the end ``t^k`` would cancel.
        """
        if self.at_end is not None:
            return self.at_end
        assert self.coefficients is not None
        t = np.polynomial.Polynomial([self.high, -1.0] if self.high < INF else [self.low, 1.0])
        return tuple(float(c) for c in np.atleast_1d(np.polynomial.Polynomial(self.coefficients)(t).coef))


class Surrogate(ABC):
    """Base of all surrogates. Subclasses are frozen dataclasses of their parameters."""

    name: ClassVar[str]
    convex: bool = True
    """ℓ is convex on the whole line."""
    smooth: bool = True
    """ℓ is differentiable on the whole line."""

    @abstractmethod
    def loss(self, t: Floats) -> Floats:
        """ℓ(t)."""

    @abstractmethod
    def derivative(self, t: Floats) -> Floats:
        """ℓ′(t); at a kink, the slope on its right."""

    @property
    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """Contiguous pieces that cover the line."""

    @property
    def non_increasing(self) -> bool:
        """ℓ does not rise on [−1, 1], the range of differences of softmax scores."""
        return True

    @property
    def consistent_condition(self) -> bool:
        """Theorem 3's sufficient condition for consistency on [−1, 1]; False does not mean "inconsistent"."""
        slope = float(self.derivative(np.zeros(1))[0])
        return self.smooth and self.convex and self.non_increasing and slope < 0


@dataclass(frozen=True)
class Squared(Surrogate):
    """``ℓ(t) = (α − t)²``. Rises again beyond ``t = α``: below α = 1 the consistency condition is not met."""

    name: ClassVar[str] = "squared"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_real("alpha", self.alpha, low=0)

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


@dataclass(frozen=True)
class Exponential(Surrogate):
    """``ℓ(t) = exp(−α t)``."""

    name: ClassVar[str] = "exponential"
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_real("alpha", self.alpha, low=0)

    def loss(self, t: Floats) -> Floats:
        return np.exp(-self.alpha * t)

    def derivative(self, t: Floats) -> Floats:
        return -self.alpha * np.exp(-self.alpha * t)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return (Piece(-INF, INF, None),)


@dataclass(frozen=True)
class Hinge(Surrogate):
    """``ℓ(t) = max(α − t, 0)``."""

    name: ClassVar[str] = "hinge"
    smooth = False
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_real("alpha", self.alpha, low=0)

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
    alpha: float = 1.0
    q: float = 2.0

    def __post_init__(self) -> None:
        check_real("alpha", self.alpha, low=0)
        check_real("q", self.q, low=1)

    def loss(self, t: Floats) -> Floats:
        return np.maximum(self.alpha - t, 0.0) ** self.q

    def derivative(self, t: Floats) -> Floats:
        return -self.q * np.maximum(self.alpha - t, 0.0) ** (self.q - 1.0)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        power = at_end = None
        if float(self.q).is_integer():
            power = tuple(float(c) for c in (np.polynomial.Polynomial([self.alpha, -1.0]) ** int(self.q)).coef)
            at_end = (0.0,) * int(self.q) + (1.0,)
        return (Piece(-INF, self.alpha, power, at_end), Piece(self.alpha, INF, (0.0,)))


@dataclass(frozen=True)
class GeneralizedHinge(Surrogate):
    """A hinge with its corner rounded by a parabola.

    ``α − t`` for ``t <= α − ε``, ``(t − α − ε)² / (4ε)`` up to ``α + ε``, then 0, with ``0 < ε < ½``.
    """

    name: ClassVar[str] = "generalized_hinge"
    alpha: float = 1.0
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        check_real("alpha", self.alpha, low=0)
        check_real("epsilon", self.epsilon, low=0, high=0.5)

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
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_real("alpha", self.alpha, low=0)

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
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, low=0, high=1)

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

    ``breakpoints`` are the places where ℓ is not smooth; between them it is approximated by polynomials to the
    tolerance asked for. ``convex``, ``smooth`` and ``decreasing`` are the caller's word, and default to the cautious
    one.
    """

    name: ClassVar[str] = "custom"
    loss_function: Callable[[Floats], Floats]
    derivative_function: Callable[[Floats], Floats]
    breakpoints: tuple[float, ...] = ()
    convex: bool = False
    smooth: bool = False
    decreasing: bool = False

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


def get_surrogate(surrogate: str | Any, *, alpha: float = 1.0, **options: float) -> Surrogate:
    """The surrogate of that name with its parameters, or the object itself.

    An object needs ``loss(t)`` and ``derivative(t)``; ``breakpoints``, if it has them, tell where it is not smooth.

    >>> get_surrogate("q_hinge", alpha=0.5, q=3)
    QHinge(alpha=0.5, q=3)
    """
    if not isinstance(surrogate, str):
        return _from_object(surrogate, alpha, options)
    kind = SURROGATES[check_choice("surrogate", surrogate, tuple(SURROGATES))]
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if "alpha" in known:
        options["alpha"] = alpha
    elif alpha != 1.0:
        raise invalid("alpha", f"does not exist for the {surrogate} surrogate", alpha, f"it takes {_listing(known)}")
    unknown = sorted(set(options) - known)
    if unknown:
        raise invalid(
            unknown[0],
            f"is not an option of the {surrogate} surrogate",
            options[unknown[0]],
            f"it takes {_listing(known)}",
        )
    return kind(**options)


def _from_object(surrogate: Any, alpha: float, options: dict[str, float]) -> Surrogate:
    if alpha != 1.0 or options:
        given = {"alpha": alpha, **options} if alpha != 1.0 else options
        raise invalid(
            next(iter(given)),
            "goes with a surrogate's name",
            f"it together with the object {surrogate!r}",
            "set the parameters on the object itself",
        )
    if isinstance(surrogate, Surrogate):
        return surrogate
    loss, derivative = getattr(surrogate, "loss", None), getattr(surrogate, "derivative", None)
    if not callable(loss) or not callable(derivative):
        raise invalid(
            "surrogate",
            "must be a name or an object with the methods loss(t) and derivative(t)",
            repr(surrogate),
            f"use one of {_listing(SURROGATES)}, or mauc.surrogates.CustomSurrogate(loss, derivative)",
        )
    facts = {name: bool(getattr(surrogate, name, False)) for name in ("convex", "smooth", "decreasing")}
    return CustomSurrogate(loss, derivative, tuple(getattr(surrogate, "breakpoints", ())), **facts)


def _listing(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
