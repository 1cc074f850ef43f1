"""The display of the rarest pairs of classes, for several models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._validation import check_real, check_scored_classes, check_whole, invalid
from mauc.metrics.display.common import COLORS, Display, shorten, size_text
from mauc.metrics.inference import score_and_influence
from mauc.metrics.scores import present_pairs
from mauc.metrics.uncertainty import Interval, Sample, interval
from mauc.partition import ClassPartition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MinorityPairsDisplay"]

# 7 colours and 12 markers have no common divisor: 84 models differ in colour or marker.
MARKERS = "oDs^vPXd<>hp"


class MinorityPairsDisplay(Display):
    r"""AUC of the k rarest pairs of classes with its interval, for one model or several.

    The AUC of the unordered pair of classes i and j is the mean of its two directions,

    .. math:: \tfrac12 (\mathrm{AUC}_{i|j} + \mathrm{AUC}_{j|i}).

    The rarest pairs are those with the smallest :math:`n_i n_j` in ``y_true``. Ties keep the order of the classes;
    classes without samples form no pair.

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. All parameters are stored as attributes.

    Parameters
    ----------
    auc, low, high : (n_models, k) arrays
        AUC of each pair, and the ends of its interval.
    pairs : (k, 2) array
        Names of the classes, the rarest pair first.
    pair_counts : (k, 2) array
        Sizes of the classes, or their summed sample weights.
    name : sequence of str, optional
        Name of each model.

    Attributes
    ----------
    points_ : list of matplotlib Line2D, one per model
    intervals_ : list of matplotlib LineCollection, one per model
    chance_level_ : matplotlib Line2D
        Marks 0.5. The axis includes it unless all intervals are above 0.75.
    legend_ : matplotlib Legend, or None
        Drawn for two models or more; a single model is named in the title.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mauc import MinorityPairsDisplay
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> disp = MinorityPairsDisplay.from_predictions(["cat", "cat", "dog", "fox"], scores, k=2)
    >>> disp.pairs.tolist()
    [['dog', 'fox'], ['cat', 'dog']]
    >>> disp.auc
    array([[1.   , 0.625]])
    >>> disp.low.round(2), disp.high.round(2)  # of one sample against one, and of two against one
    (array([[0.24, 0.06]]), array([[1.  , 0.98]]))
    """

    def __init__(
        self,
        auc: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        pairs: ArrayLike,
        pair_counts: ArrayLike,
        *,
        name: Sequence[str] | None = None,
    ) -> None:
        self.auc, self.low, self.high = np.asarray(auc), np.asarray(low), np.asarray(high)
        self.pairs, self.pair_counts = np.asarray(pairs), np.asarray(pair_counts)
        self.name = name

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw one row per pair, the rarest on top, and one marker per model, with its interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure, whose height grows with the number of markers.

        Returns
        -------
        MinorityPairsDisplay
            Itself.
        """
        n_models, k = self.auc.shape
        names = [shorten(name, 40) for name in self.name or (f"model {m + 1}" for m in range(n_models))]
        pairs = [self._pair_text(row) for row in range(k)]
        width = 4.6 + 0.07 * max(map(len, pairs)) + (0.5 + 0.08 * max(map(len, names)) if n_models > 1 else 0.0)
        height = float(np.clip(1.4 + k * max(0.36, 0.12 + 0.1 * n_models), max(2.4, 0.8 + 0.22 * n_models), 14.0))
        _, axes = self._new_axes(ax, (width, height))

        rows = np.arange(k)
        for row in rows[::2]:
            axes.axhspan(row - 0.5, row + 0.5, color="0.95", linewidth=0, zorder=0)
        # Models are spread over the height of a row, so that equal AUCs do not hide one another.
        spread = (np.arange(n_models) - (n_models - 1) / 2) * 0.8 / n_models
        self.points_: list[Any] = []
        self.intervals_: list[Any] = []
        for m in range(n_models):
            y, color = rows + spread[m], COLORS[m % len(COLORS)]
            style: dict[str, Any] = {"marker": MARKERS[m % len(MARKERS)], "linestyle": "none", "label": names[m]}
            style |= {"markersize": 8 if n_models <= 4 else 7, "markeredgecolor": "white", "markeredgewidth": 0.5}
            self.points_ += axes.plot(self.auc[m], y, color=color, **style)
            self.intervals_.append(axes.hlines(y, self.low[m], self.high[m], color=color, linewidth=1.2, alpha=0.6))

        lowest = float(self.low.min())
        low = min(lowest, 0.95) if lowest > 0.75 else min(lowest, 0.5)
        self.chance_level_ = axes.axvline(0.5, color="0.35", linestyle="--", linewidth=1, zorder=1)
        margin = 0.04 * (1.0 - low)
        axes.set(xlim=(low - margin, 1.0 + margin), ylim=(k - 0.5, -0.5))
        axes.set_yticks(rows, pairs, fontsize=9)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="0.85", linewidth=0.8)
        axes.set_axisbelow(True)
        title = "AUC of the rarest pair of classes" if k == 1 else f"AUC of the {k} rarest pairs of classes"
        axes.set_title(title if n_models > 1 or self.name is None else f"{title}\n{names[0]}")
        chance = "   (dashed: chance)" if low <= 0.5 else ""
        mean = r"$\frac{1}{2}\,(\mathrm{AUC}_{\,i\,|\,j} + \mathrm{AUC}_{\,j\,|\,i})$"
        axes.set_xlabel(f"{mean}{chance}")
        self.legend_ = None
        if n_models > 1:
            self.legend_ = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, borderaxespad=0.0)
        return self

    def _pair_text(self, row: int) -> str:
        names_and_sizes = zip(self.pairs[row], self.pair_counts[row], strict=True)
        return " vs ".join(f"{shorten(name)} ({size_text(n)})" for name, n in names_and_sizes)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        k: int = 5,
        level: float = 0.95,
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
            Scores of one model, or of several by name. All score the same classes.
        k : int, default=5
            Largest number of pairs to show.
        level : float, default=0.95
            Confidence level of the intervals, those of :func:`mauc.mauc_interval` for the samples of the two classes.
        ax, **plot_kw
            Parameters of :meth:`plot`.

        Returns
        -------
        MinorityPairsDisplay
        """
        check_whole("k", k, least=1, advice="pass how many pairs to show")
        level = check_real("level", level, low=0, high=1)
        found = []
        models = y_score if isinstance(y_score, Mapping) else {"": y_score}
        if not models:
            raise invalid("y_score", "must hold at least one model", "an empty dict", "pass name -> scores")
        for key, scores in models.items():
            try:
                scored = check_scored_classes(y_true, scores, labels, sample_weight)
                partition, _ = present_pairs(scored)
            except ValueError as error:
                raise ValueError(f"model {key!r}: {error}" if len(models) > 1 else str(error)) from None
            pairs = _rarest_pairs(partition.sizes, k)
            found.append([_pair_interval(partition, scored.scores, int(i), int(j), level) for i, j in pairs])
        auc, low, high = np.array([[(each.score, each.low, each.high) for each in some] for some in found]).T
        names = [str(key) for key in models] if isinstance(y_score, Mapping) else None
        display = cls(auc.T, low.T, high.T, scored.labels[pairs], partition.sizes[pairs], name=names)
        return display.plot(ax=ax, **plot_kw)


def _rarest_pairs(sizes: NDArray[Any], k: int) -> NDArray[np.intp]:
    """Return the classes i < j of the ``k`` pairs with the smallest ``n_i n_j``, ``(k, 2)``."""
    known = np.flatnonzero(sizes)
    i, j = (known[side] for side in np.triu_indices(len(known), 1))
    rarest = np.argsort(sizes[i].astype(np.float64) * sizes[j], kind="stable")[:k]
    return np.column_stack([i[rarest], j[rarest]])


def _pair_interval(partition: ClassPartition, scores: NDArray[np.floating], i: int, j: int, level: float) -> Interval:
    """Return the AUC of a pair with its interval, from the samples of its two classes."""
    rows, two = partition.between(i, j)
    v = two.pair_weights("ovo")
    # No warning of single samples: the picture shows the sizes.
    return interval(Sample.of(two, v), *score_and_influence(two, scores[rows][:, [i, j]], v), level)
