"""The base of all displays: matplotlib on demand, scores of estimators, short labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._lazy import needing
from mauc._validation import invalid, scores_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours without yellow, which is hard to see on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")


class Display:
    """A picture with the constructors of scikit-learn's displays; subclasses define ``from_predictions``.

    ``plot`` has few options. To change a colour, a width or a text, use the artists that it leaves as attributes, such
    as ``display.chance_level_.set_visible(False)``.
    """

    ax_: Any
    figure_: Any

    @classmethod
    def from_predictions(cls, y_true: ArrayLike, y_score: Any, **options: Any) -> Self:
        """Draw scores; subclasses implement it."""
        raise NotImplementedError(f"{cls.__name__} must define from_predictions")

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, labels: ArrayLike | None = None, **options: Any
    ) -> Self:
        """Draw the scores of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier, or pipeline that ends in one
            Scored by ``predict_proba``, else by ``decision_function``.
        X : (N, d) array, sparse matrix or table
        y : (N,) array of classes
        labels : (C,) array, optional
            The class of each column of the scores. Default: ``estimator.classes_``.
        **options
            Other parameters of :meth:`from_predictions` and :meth:`plot`.

        Returns
        -------
        The display.
        """
        y_score, classes = response(estimator, X)
        return cls.from_predictions(y, y_score, labels=classes if labels is None else labels, **options)

    def _new_axes(self, ax: Axes | None, figsize: tuple[float, float]) -> tuple[Any, Any]:
        """Return matplotlib.pyplot, and the axes passed or those of a new figure, laid out with room for the labels.

        Unlike "constrained", the layout "compressed" does not clip the labels of axes with square cells.
        """
        with needing("plot", type(self).__name__):
            import matplotlib.pyplot as plt
            from matplotlib.figure import Figure
        if ax is None:
            _, ax = plt.subplots(figsize=figsize, layout="compressed")
        elif isinstance(ax.figure, Figure) and ax.figure.get_layout_engine() is None:
            ax.figure.set_layout_engine("compressed")
        self.ax_, self.figure_ = ax, ax.figure
        return plt, ax


def response(estimator: Any, X: Any) -> tuple[Any, NDArray[Any]]:
    """Return the scores of a fitted classifier, and the classes of their columns."""
    if isinstance(estimator, type):
        came, advice = f"the class {estimator.__name__}", "pass a fitted instance of it"
        raise invalid("estimator", "must be a fitted classifier", came, advice)
    y_score = scores_of(estimator, X)
    if not hasattr(estimator, "classes_"):
        came, advice = f"{type(estimator).__name__} without", "pass a classifier, or scores to from_predictions"
        raise invalid("estimator", "must have classes_", came, advice)
    return y_score, np.asarray(estimator.classes_)


def shorten(name: object, most: int = 28) -> str:
    """Return a short label that matplotlib does not read as a formula, nor leave out of the legend."""
    text = f" {name}" if str(name).startswith("_") else str(name)
    return (text if len(text) <= most else text[: most - 1] + "…").replace("$", r"\$")


def size_text(n: float) -> str:
    return f"{n:,.0f}" if n >= 100 or n == round(n) else f"{n:.3g}"
