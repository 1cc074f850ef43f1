"""The rarest pairs of classes, model beside model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._validation import check_whole, invalid
from mauc.metrics.display.common import (
    artist_style,
    check_auc,
    import_pyplot,
    matrix_and_sizes,
    new_axes,
    response,
    shorten,
    size_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MinorityPairsDisplay"]

# Okabe and Ito's colours without yellow, which fades on white. Their number and that of the markers have no common
# divisor, so that 84 models differ in colour or marker, and up to 7 differ in both.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = "oDs^vPXd<>hp"


class MinorityPairsDisplay:
    r"""AUC of the k rarest pairs of classes, for one model or several.

    The AUC of the unordered pair of classes i and j is the mean of its two directions,

    .. math:: \tfrac12 (\mathrm{AUC}_{i|j} + \mathrm{AUC}_{j|i}),

    and the rarest pairs are those with the smallest :math:`n_i n_j`, the number of comparisons behind that AUC. Ties
    keep the order of the classes; classes without samples form no pair.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. All parameters are stored as attributes.

    Parameters
    ----------
    auc : (n_models, k) array, or (k,) for one model
    pairs : (k, 2) array
        Names of the classes, the rarest pair first.
    pair_counts : (k, 2) array
        Sizes of the classes, or their summed sample weights.
    name : str or sequence of str, optional
        Name of each model.

    Attributes
    ----------
    points_ : list of matplotlib Line2D, one per model
    chance_level_ : matplotlib Line2D, or None
    legend_ : matplotlib Legend, or None
        Drawn for two models or more; a single model is named in the title.
    ax_, figure_ : matplotlib Axes and Figure

    References
    ----------
    Yang, Xu, Bao, Cao, Huang: Learning with multiclass AUC: theory and algorithms. TPAMI 2021, Figure 2.

    Examples
    --------
    >>> from mauc import MinorityPairsDisplay
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> disp = MinorityPairsDisplay.from_predictions(["cat", "cat", "dog", "fox"], scores, k=2)
    >>> disp.pairs.tolist()
    [['dog', 'fox'], ['cat', 'dog']]
    >>> disp.auc
    array([[1.   , 0.625]])
    """

    def __init__(
        self, auc: ArrayLike, pairs: ArrayLike, pair_counts: ArrayLike, *, name: str | Sequence[str] | None = None
    ) -> None:
        self.auc = np.atleast_2d(check_auc("auc", auc))
        self.pairs, self.pair_counts = np.asarray(pairs), np.asarray(pair_counts)
        if self.auc.ndim != 2 or self.auc.size == 0:
            advice = "pass one row per model and one column per pair"
            raise invalid("auc", "must have the shape (n_models, k)", f"shape {self.auc.shape}", advice)
        k = self.auc.shape[1]
        for parameter, array in (("pairs", self.pairs), ("pair_counts", self.pair_counts)):
            if array.shape != (k, 2):
                advice = "pass one row per pair and one column per class"
                raise invalid(parameter, f"must have the shape ({k}, 2)", f"shape {array.shape}", advice)
        self.name = name
        if name is not None and len(_names(name)) != len(self.auc):
            raise invalid("name", f"must name {len(self.auc)} models", repr(name), "pass one name per row of auc")

    def plot(
        self,
        *,
        ax: Axes | None = None,
        plot_chance_level: bool = True,
        chance_level_kw: dict[str, Any] | None = None,
        marker_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw one row per pair, the rarest on top, and one marker per model.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure, whose height grows with the number of markers.
        plot_chance_level : bool, default=True
            Whether to mark 0.5. The axis reaches down to it unless every AUC is above 0.75.
        chance_level_kw, marker_kw : dict, optional
            Keywords of ``axvline`` and of ``plot``, the latter for every model.

        Returns
        -------
        MinorityPairsDisplay
            Itself.
        """
        plt = import_pyplot(f"{type(self).__name__}.plot")
        n_models, k = self.auc.shape
        names = [shorten(name, 40) for name in _names(self.name) or (f"model {m + 1}" for m in range(n_models))]
        pairs = [self._pair_text(row) for row in range(k)]
        width = 4.6 + 0.07 * max(map(len, pairs)) + (0.5 + 0.08 * max(map(len, names)) if n_models > 1 else 0.0)
        height = float(np.clip(1.4 + k * max(0.36, 0.12 + 0.1 * n_models), max(2.4, 0.8 + 0.22 * n_models), 14.0))
        self.ax_, self.figure_ = axes, _ = new_axes(plt, ax, (width, height))

        rows = np.arange(k)
        for row in rows[::2]:
            axes.axhspan(row - 0.5, row + 0.5, color="0.95", linewidth=0, zorder=0)
        # Models are spread over the height of a row: equal AUCs, 1 above all, would hide one another.
        spread = (np.arange(n_models) - (n_models - 1) / 2) * 0.8 / n_models
        self.points_: list[Any] = []
        for m in range(n_models):
            style: dict[str, Any] = {"color": COLORS[m % len(COLORS)], "marker": MARKERS[m % len(MARKERS)]}
            style |= {"linestyle": "none", "label": names[m], "markersize": 8 if n_models <= 4 else 7}
            style |= {"markeredgecolor": "white", "markeredgewidth": 0.5}
            self.points_ += axes.plot(self.auc[m], rows + spread[m], **artist_style(plt.Line2D, style, marker_kw))

        lowest = float(np.min(self.auc, initial=1.0, where=~np.isnan(self.auc)))
        low = min(lowest, 0.95) if lowest > 0.75 else min(lowest, 0.5)
        self.chance_level_ = None
        if plot_chance_level:
            style = {"color": "0.35", "linestyle": "--", "linewidth": 1, "zorder": 1}
            self.chance_level_ = axes.axvline(0.5, **artist_style(plt.Line2D, style, chance_level_kw))
        margin = 0.04 * (1.0 - low)
        axes.set(xlim=(low - margin, 1.0 + margin), ylim=(k - 0.5, -0.5))
        axes.set_yticks(rows, pairs, fontsize=9)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.85", linewidth=0.8)
        axes.set_axisbelow(True)
        title = "AUC of the rarest pair of classes" if k == 1 else f"AUC of the {k} rarest pairs of classes"
        axes.set_title(title if n_models > 1 or self.name is None else f"{title}\n{names[0]}")
        chance = "   (dashed: chance)" if plot_chance_level and low <= 0.5 else ""
        mean = r"$\frac{1}{2}\,(\mathrm{AUC}_{\,i\,|\,j} + \mathrm{AUC}_{\,j\,|\,i})$"
        axes.set_xlabel(f"{mean}{chance}")
        self.legend_ = None
        if n_models > 1:
            self.legend_ = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
        return self

    def _pair_text(self, row: int) -> str:
        first, second = (
            f"{shorten(name)} ({size_text(n)})" for name, n in zip(self.pairs[row], self.pair_counts[row], strict=True)
        )
        return f"{first} vs {second}"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        k: int = 5,
        name: str | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the rarest pairs of one fitted classifier or several.

        Parameters
        ----------
        estimator : fitted classifier, or dict of name -> fitted classifier
            Scored by ``predict_proba``, else by ``decision_function``.
        X : (N, d) array, sparse matrix or table
        y : (N,) array of classes
        name : str, optional
            Name of a single classifier. Default: that of its type.
        labels : (C,) array, optional
            The class of each column of the scores. Default: ``estimator.classes_``.
        k, sample_weight, ax, **plot_kw
            As in :meth:`from_predictions`.

        Returns
        -------
        MinorityPairsDisplay
        """
        import_pyplot(f"{cls.__name__}.from_estimator")
        models = _models("estimator", estimator, name, type(estimator).__name__)
        responses = {key: response(model, X) for key, model in models.items()}
        if labels is None:
            labels = next(iter(responses.values()))[1]
            for key, (_, classes) in responses.items():
                if not np.array_equal(classes, labels):
                    advice = "fit all of them on the same classes, or compare their scores by from_predictions"
                    raise invalid("estimator", "must hold models of the same classes", f"others in {key!r}", advice)
        y_score = {key: scores for key, (scores, _) in responses.items()}
        return cls.from_predictions(y, y_score, k=k, labels=labels, sample_weight=sample_weight, ax=ax, **plot_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        k: int = 5,
        name: str | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the rarest pairs of the scores of one model or several.

        Parameters
        ----------
        y_true, labels, sample_weight
            As in :func:`mauc.pairwise_auc`. With weights, the size of a class is its summed weight.
        y_score : (N, C) array, or dict of name -> (N, C) array
        k : int, default=5
            How many pairs to show, at most: all of them, if there are fewer.
        name : str, optional
            Name of a single model.
        ax, **plot_kw
            Parameters of :meth:`plot`.

        Returns
        -------
        MinorityPairsDisplay
        """
        import_pyplot(f"{cls.__name__}.from_predictions")
        check_whole("k", k, least=1, advice="pass how many pairs to show")
        auc = []
        models = _models("y_score", y_score, name, "")
        for key, scores in models.items():
            try:
                matrix, classes, sizes = matrix_and_sizes(y_true, scores, labels, sample_weight)
            except ValueError as error:
                raise ValueError(f"model {key!r}: {error}" if len(models) > 1 else str(error)) from None
            i, j = _rarest_pairs(sizes, k)
            auc.append((matrix[i, j] + matrix[j, i]) / 2)
        pairs, pair_counts = np.column_stack([classes[i], classes[j]]), np.column_stack([sizes[i], sizes[j]])
        names = None if list(models) == [""] else list(models)
        return cls(np.array(auc), pairs, pair_counts, name=names).plot(ax=ax, **plot_kw)


def _rarest_pairs(sizes: NDArray[Any], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The two classes of each of the ``k`` pairs with the smallest ``n_i n_j > 0``."""
    present = np.flatnonzero(sizes > 0)
    i, j = (present[side] for side in np.triu_indices(len(present), 1))
    rarest = np.argsort(sizes[i].astype(np.float64) * sizes[j], kind="stable")[:k]
    return i[rarest], j[rarest]


def _models(parameter: str, given: Any, name: str | None, default: str) -> dict[str, Any]:
    """Models by name, be it one or a dict of them."""
    if not isinstance(given, Mapping):
        return {default if name is None else name: given}
    if not given:
        raise invalid(parameter, "must hold at least one model", "an empty dict", "pass name -> model")
    if name is not None:
        advice = f"leave it out: the keys of {parameter} name the models"
        raise invalid("name", "must be None for a dict of models", repr(name), advice)
    return {str(key): value for key, value in given.items()}


def _names(name: str | Sequence[str] | None) -> list[str]:
    return [] if name is None else [name] if isinstance(name, str) else list(name)
