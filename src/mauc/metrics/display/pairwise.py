"""The display of the pair matrix as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._kernels.auc import auc_matrix
from mauc._typing import Floats
from mauc._validation import check_scored_classes
from mauc.metrics.display.common import Display, shorten, size_text
from mauc.metrics.scores import present_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = ["PairwiseAUCDisplay"]

LEGIBLE = 15  # most classes whose cells have room for a number
MOST_TICKS = 25
# The report's colours from AUC 1 down: pale is good, dark is bad.
RAMP = ("#f3f5f1", "#f5dfa8", "#ee9d5a", "#c9434f", "#6b1d5e", "#2b0b3a")
NEAR_ONE = 0.95  # AUCs from here on are written with three decimals


class PairwiseAUCDisplay(Display):
    r"""Heat map of the AUC of every ordered pair of classes, the most frequent class first.

    Row i, column j shows how well column i of the scores ranks class i above class j, see :func:`mauc.pairwise_auc`:

    .. math:: \mathrm{AUC}_{i|j} = \operatorname{mean}_{m \in N_i,\, n \in N_j}
        [F_{mi} > F_{ni}] + \tfrac12 [F_{mi} = F_{ni}]

    Use :meth:`from_estimator` or :meth:`from_predictions` to make one. All parameters are stored as attributes.

    Parameters
    ----------
    matrix : (C, C) array
        AUC of the pairs, NaN for classes without samples. The diagonal is not read.
    display_labels : (C,) array, optional
        Names of the classes. Default: 0 to C - 1.
    counts : (C,) array, optional
        Sizes of the classes, or their summed sample weights. Without them the classes keep their order.

    Attributes
    ----------
    mauc : float
        Mean of the matrix over the pairs that have an AUC: the multiclass AUC of Hand and Till.
    order_ : (C,) array
        Class drawn in each row and column; ties in size keep the order of the classes.
    im_ : matplotlib AxesImage
    text_ : (C, C) array of matplotlib Text, or None
        In the order of the picture; None in cells without a value.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> from mauc import PairwiseAUCDisplay
    >>> scores = [[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]
    >>> disp = PairwiseAUCDisplay.from_predictions(["cat", "cat", "dog", "fox"], scores)
    >>> disp.matrix.shape
    (3, 3)
    >>> disp.mauc
    0.875
    """

    def __init__(
        self, matrix: ArrayLike, *, display_labels: ArrayLike | None = None, counts: ArrayLike | None = None
    ) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        self.display_labels = None if display_labels is None else np.asarray(display_labels)
        self.counts = None if counts is None else np.asarray(counts)

    @property
    def mauc(self) -> float:
        off_diagonal = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        defined = off_diagonal[~np.isnan(off_diagonal)]
        return float(defined.mean()) if len(defined) else float("nan")

    def plot(
        self,
        *,
        include_values: bool | None = None,
        cmap: str | Colormap | None = None,
        ax: Axes | None = None,
        colorbar: bool = True,
    ) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        include_values : bool, optional
            Write the AUC into each cell: three decimals from 0.95 on and two below, without the leading 0. Default:
            only up to 15 classes, and not in cells with an AUC of 1.000 or with a class of one row.
        cmap : str or matplotlib Colormap, optional
            Default: the colours of the report, in which pale is good and dark is bad. The scale ends at 1 and begins at
            the lowest AUC, rounded down to a multiple of 0.05 and at most 0.95. To compare pictures, give all the
            same scale: ``display.im_.set_clim(0.8, 1)``.
        ax : matplotlib Axes, optional
            Default: those of a new figure. A figure without a layout engine gets matplotlib's "compressed" layout, so
            that labels and colour bars of neighbouring axes do not overlap.
        colorbar : bool, default=True
            Draw the colour bar beside the matrix.

        Returns
        -------
        PairwiseAUCDisplay
            Itself.
        """
        n = len(self.matrix)
        side = float(np.clip(2.4 + 0.5 * n, 4.4, 7.4))
        plt, axes = self._new_axes(ax, (side + 1.2, side))

        sizes = np.zeros(n) if self.counts is None else self.counts.astype(np.float64)
        self.order_ = np.argsort(-sizes, kind="stable")
        shown = self.matrix[np.ix_(self.order_, self.order_)]
        np.fill_diagonal(shown, np.nan)
        lowest = np.floor(20.0 * np.min(shown, initial=0.95, where=~np.isnan(shown))) / 20.0
        self.im_ = axes.imshow(shown, cmap=_report_colours() if cmap is None else cmap, vmin=lowest, vmax=1.0)
        # NaN cells are transparent and show this patch behind the image.
        backing = {"facecolor": "0.93", "edgecolor": "0.75", "hatch": "////", "linewidth": 0.0}
        axes.add_patch(plt.Rectangle((-0.5, -0.5), n, n, zorder=self.im_.get_zorder() - 1, **backing))
        if n <= LEGIBLE:
            axes.set_xticks(np.arange(n - 1) + 0.5, minor=True)
            axes.set_yticks(np.arange(n - 1) + 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=1)
            axes.tick_params(which="minor", length=0)

        # Estimate the space in points for the axes with their labels: matplotlib computes it only when it draws.
        width, height = 1.29 * axes.get_window_extent().size / self.figure_.dpi * 72
        font_scale = float(np.clip(min(width, height) / 280, 0.5, 1.0))
        ticks = np.arange(0, n, next(s for s in (1, 2, 5, *range(10, n + 10, 10)) if n / s <= MOST_TICKS))
        fontsize = float(np.clip(0.5 * min(width, height) / len(ticks), 5, 10 * font_scale))
        max_length = int(np.clip(0.3 * width / (0.6 * fontsize), 6, 28))
        names = [
            shorten(k if self.display_labels is None else self.display_labels[k], max_length)
            for k in self.order_[ticks]
        ]
        names_and_sizes = names
        if self.counts is not None:
            shown_sizes = (size_text(self.counts[k]) for k in self.order_[ticks])
            names_and_sizes = [f"{name} ({size})" for name, size in zip(names, shown_sizes, strict=True)]
        longest, across = (0.6 * fontsize * max(map(len, some)) for some in (names, names_and_sizes))
        width -= across + (70 if colorbar else 30) * font_scale
        # Horizontal if the names have room, slanted if not, vertical if only some classes are named.
        rotation = 90 if len(ticks) < n else 45 if 1.2 * longest > width / n else 0
        slanted = {"ha": "right", "rotation_mode": "anchor"} if rotation == 45 else {}
        height -= (0 if rotation == 0 else 0.7 * longest) + 50 * font_scale
        axes.set_xticks(ticks, names, rotation=rotation, fontsize=fontsize, **slanted)
        axes.set_yticks(ticks, names_and_sizes, fontsize=fontsize)
        axes.set_xlabel("class j, ranked against", fontsize=10 * font_scale)
        axes.set_ylabel("class i, ranked by its score", fontsize=10 * font_scale)
        axes.set_title(f"MAUC = {self.mauc:.3f}", fontsize=12 * font_scale)

        self.text_, note = None, ""
        if include_values or (include_values is None and n <= LEGIBLE):
            written = ~np.isnan(shown)
            if include_values is None:
                informative, note = self._informative(shown)
                written &= informative
            common = {"ha": "center", "va": "center", "fontsize": float(np.clip(0.33 * min(width, height) / n, 3, 11))}
            self.text_ = np.full((n, n), None, dtype=object)
            for i, j in np.argwhere(written):
                color = _readable_on(self.im_.cmap(self.im_.norm(shown[i, j])))
                self.text_[i, j] = axes.text(j, i, _brief(shown[i, j]), color=color, **common)
        if colorbar:
            bar = self.figure_.colorbar(self.im_, ax=axes)
            bar.set_label(r"$\mathrm{AUC}_{\,i\,|\,j}$" + note, fontsize=10 * font_scale)
            bar.ax.tick_params(labelsize=9 * font_scale)
        return self

    def _informative(self, shown: Floats) -> tuple[NDArray[np.bool_], str]:
        """Return the ``(C, C)`` cells whose number is written, and why the others are blank."""
        perfect = shown >= 1.0 - 0.5e-3
        single = np.zeros(len(shown), dtype=bool)  # with weights it is not known which classes have one row
        if self.counts is not None and self.counts.dtype.kind in "iu":
            single = self.counts[self.order_] == 1
        of_one_row = (single[:, None] | single) & ~np.isnan(shown)
        kinds = [words for cells, words in ((perfect, "1.000"), (of_one_row & ~perfect, "one row")) if cells.any()]
        return ~(perfect | of_one_row), f", blank: {' or '.join(kinds)}" if kinds else ""

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        display_labels: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the matrix of scores.

        Parameters
        ----------
        y_true, y_score, labels, sample_weight
            As in :func:`mauc.pairwise_auc`. With weights, the size of a class is its summed weight.
        display_labels : (C,) array, optional
            Names to show, in the order of ``labels``. Default: ``labels``.
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        **plot_kw
            Other parameters of :meth:`plot`.

        Returns
        -------
        PairwiseAUCDisplay
        """
        scored = check_scored_classes(y_true, y_score, labels, sample_weight)
        partition, _ = present_pairs(scored)
        matrix = auc_matrix(partition.problem(scored.scores, normalised=False))
        names = scored.labels if display_labels is None else display_labels
        return cls(matrix, display_labels=names, counts=partition.sizes).plot(ax=ax, **plot_kw)


def _report_colours() -> Colormap:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("mauc", RAMP[::-1])


def _brief(auc: float) -> str:
    """Format an AUC as ``.87``, ``.974`` or ``1.000``."""
    return f"{auc:.{3 if auc >= NEAR_ONE else 2}f}".removeprefix("0")


def _readable_on(color: tuple[float, float, float, float]) -> str:
    """Return black or white, whichever has the higher WCAG contrast on the colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    return "black" if np.dot(linear, (0.2126, 0.7152, 0.0722)) > 0.179 else "white"
