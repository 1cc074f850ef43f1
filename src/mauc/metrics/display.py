"""Pictures of multiclass AUC: the matrix of class pairs, and the rarest pairs of several models."""

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._validation import check_scored_classes, invalid
from mauc.kernels.problem import Floats
from mauc.metrics.scores import pairwise_auc
from mauc.partition import ClassPartition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = ["MinorityPairsDisplay", "PairwiseAUCDisplay"]

LEGIBLE = 15  # classes whose cells still hold a number
MOST_TICKS = 25
# Okabe and Ito's colours without yellow, which fades on white. Their number and that of the markers have no common
# divisor, so that 84 models differ in colour or marker, and up to 7 differ in both.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = "oDs^vPXd<>hp"


class PairwiseAUCDisplay:
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
        self.matrix = _check_auc("matrix", matrix)
        n_classes = len(self.matrix)
        if self.matrix.shape != (n_classes, n_classes) or n_classes < 2:
            requirement = "must have the shape (n_classes, n_classes), for two classes or more"
            raise invalid("matrix", requirement, f"shape {self.matrix.shape}", "pass the result of pairwise_auc")
        self.display_labels = None if display_labels is None else np.asarray(display_labels)
        self.counts = None if counts is None else np.asarray(counts)
        for parameter, array in (("display_labels", self.display_labels), ("counts", self.counts)):
            if array is not None and array.shape != (n_classes,):
                requirement = f"must have the shape ({n_classes},)"
                raise invalid(parameter, requirement, f"shape {array.shape}", "pass one entry a class of matrix")

    @property
    def mauc(self) -> float:
        off_diagonal = self.matrix[~np.eye(len(self.matrix), dtype=bool)]
        defined = off_diagonal[~np.isnan(off_diagonal)]
        return float(defined.mean()) if len(defined) else float("nan")

    def plot(
        self,
        *,
        include_values: bool | None = None,
        cmap: "str | Colormap" = "viridis",
        xticks_rotation: str | float | None = None,
        values_format: str | None = None,
        ax: "Axes | None" = None,
        colorbar: bool = True,
        im_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        include_values : bool, optional
            Whether to write the AUC into each cell. Default: up to 15 classes.
        cmap : str or matplotlib Colormap, default="viridis"
            The scale ends at 1 and begins at 0.5, or at the lowest AUC if that is worse than chance.
        xticks_rotation : {"vertical", "horizontal"} or float, optional
            Default: horizontal if the names are short, 45 degrees if not, vertical if only some classes are named.
        values_format : str, optional
            Default: ".3f" up to 6 classes, ".2f" above.
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        colorbar : bool, default=True
        im_kw, text_kw : dict, optional
            Keywords of ``imshow`` and ``text``.

        Returns
        -------
        PairwiseAUCDisplay
            Itself.
        """
        plt = _pyplot(f"{type(self).__name__}.plot")
        n = len(self.matrix)
        side = float(np.clip(2.4 + 0.5 * n, 4.4, 7.4))
        self.ax_, self.figure_ = axes, figure = _axes(plt, ax, (side + 1.2, side))

        sizes = np.zeros(n) if self.counts is None else self.counts.astype(np.float64)
        self.order_ = np.argsort(-sizes, kind="stable")
        shown = self.matrix[np.ix_(self.order_, self.order_)]
        np.fill_diagonal(shown, np.nan)
        im_kw = {"cmap": cmap, **(im_kw or {})}
        if "norm" not in im_kw:
            lowest = float(np.min(shown, initial=0.5, where=~np.isnan(shown)))
            im_kw = {"vmin": lowest, "vmax": 1.0, **im_kw}
        self.im_ = axes.imshow(shown, **im_kw)
        # NaN cells are transparent: what shows through is this one patch behind the image.
        backing = {"facecolor": "0.93", "edgecolor": "0.75", "hatch": "////", "linewidth": 0.0}
        axes.add_patch(plt.Rectangle((-0.5, -0.5), n, n, zorder=self.im_.get_zorder() - 1, **backing))
        if n <= LEGIBLE:
            axes.set_xticks(np.arange(n - 1) + 0.5, minor=True)
            axes.set_yticks(np.arange(n - 1) + 0.5, minor=True)
            axes.grid(which="minor", color="white", linewidth=1)
            axes.tick_params(which="minor", length=0)

        self.text_ = None
        if include_values or (include_values is None and n <= LEGIBLE):
            cell = min(axes.get_window_extent().size) / figure.dpi * 72 / n
            common = {"ha": "center", "va": "center", "fontsize": float(np.clip(0.27 * cell, 4.5, 11))}
            self.text_ = np.full((n, n), None, dtype=object)
            for i, j in np.argwhere(~np.isnan(shown)):
                value = format(shown[i, j], values_format or (".3f" if n <= 6 else ".2f"))
                color = _readable_on(self.im_.cmap(self.im_.norm(shown[i, j])))
                self.text_[i, j] = axes.text(j, i, value, **_style(plt.Text, common | {"color": color}, text_kw))

        ticks = np.arange(0, n, next(s for s in (1, 2, 5, *range(10, n + 10, 10)) if n / s <= MOST_TICKS))
        names = [_shorten(k if self.display_labels is None else self.display_labels[k]) for k in self.order_[ticks]]
        sized = names
        if self.counts is not None:
            sized = [f"{name} ({_size(self.counts[k])})" for name, k in zip(names, self.order_[ticks], strict=True)]
        fontsize = 10 if n <= 12 else 8
        if xticks_rotation is None:
            crowded = max(map(len, names)) * n > 48
            xticks_rotation = 90 if len(ticks) < n else 45 if crowded else 0
        slanted = {"ha": "right", "rotation_mode": "anchor"} if xticks_rotation == 45 else {}
        axes.set_xticks(ticks, names, rotation=xticks_rotation, fontsize=fontsize, **slanted)
        axes.set_yticks(ticks, sized, fontsize=fontsize)
        axes.set(xlabel="class j, ranked against", ylabel="class i, ranked by its score")
        axes.set_title(f"MAUC = {self.mauc:.3f}")
        if colorbar:
            figure.colorbar(self.im_, ax=axes, label=r"$\mathrm{AUC}_{\,i\,|\,j}$")
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        display_labels: ArrayLike | None = None,
        ax: "Axes | None" = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the matrix of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier, or pipeline that ends in one
            Scored by ``predict_proba``, else by ``decision_function``.
        X : (N, d) array, sparse matrix or table
        y : (N,) array of classes
        labels : (C,) array, optional
            The class of each column of the scores. Default: ``estimator.classes_``.
        sample_weight, display_labels, ax, **plot_kw
            As in :meth:`from_predictions`.

        Returns
        -------
        PairwiseAUCDisplay
        """
        _pyplot(f"{cls.__name__}.from_estimator")
        y_score, classes = _response(estimator, X)
        return cls.from_predictions(
            y,
            y_score,
            labels=classes if labels is None else labels,
            sample_weight=sample_weight,
            display_labels=display_labels,
            ax=ax,
            **plot_kw,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        display_labels: ArrayLike | None = None,
        ax: "Axes | None" = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the matrix of scores.

        Parameters
        ----------
        y_true, y_score, labels, sample_weight
            As in :func:`mauc.pairwise_auc`. With weights, the size of a class is its summed weight.
        display_labels : (C,) array, optional
            Names to show, in the order of ``labels``. Default: ``labels``.
        ax, **plot_kw
            Parameters of :meth:`plot`.

        Returns
        -------
        PairwiseAUCDisplay
        """
        _pyplot(f"{cls.__name__}.from_predictions")
        matrix, names, sizes = _matrix_and_sizes(y_true, y_score, labels, sample_weight)
        display = cls(matrix, display_labels=names if display_labels is None else display_labels, counts=sizes)
        return display.plot(ax=ax, **plot_kw)


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
    points_ : list of matplotlib Line2D, one a model
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
        self.auc = np.atleast_2d(_check_auc("auc", auc))
        self.pairs, self.pair_counts = np.asarray(pairs), np.asarray(pair_counts)
        if self.auc.ndim != 2 or self.auc.size == 0:
            advice = "pass one row a model and one column a pair"
            raise invalid("auc", "must have the shape (n_models, k)", f"shape {self.auc.shape}", advice)
        k = self.auc.shape[1]
        for parameter, array in (("pairs", self.pairs), ("pair_counts", self.pair_counts)):
            if array.shape != (k, 2):
                advice = "pass one row a pair and one column a class"
                raise invalid(parameter, f"must have the shape ({k}, 2)", f"shape {array.shape}", advice)
        self.name = name
        if name is not None and len(_names(name)) != len(self.auc):
            raise invalid("name", f"must name {len(self.auc)} models", repr(name), "pass one name a row of auc")

    def plot(
        self,
        *,
        ax: "Axes | None" = None,
        plot_chance_level: bool = True,
        chance_level_kw: dict[str, Any] | None = None,
        marker_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw one row a pair, the rarest on top, and one marker a model.

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
        plt = _pyplot(f"{type(self).__name__}.plot")
        n_models, k = self.auc.shape
        names = [_shorten(name, 40) for name in _names(self.name) or (f"model {m + 1}" for m in range(n_models))]
        pairs = [self._pair_text(row) for row in range(k)]
        width = 4.6 + 0.07 * max(map(len, pairs)) + (0.5 + 0.08 * max(map(len, names)) if n_models > 1 else 0.0)
        height = float(np.clip(1.4 + k * max(0.36, 0.12 + 0.1 * n_models), max(2.4, 0.8 + 0.22 * n_models), 14.0))
        self.ax_, self.figure_ = axes, _ = _axes(plt, ax, (width, height))

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
            self.points_ += axes.plot(self.auc[m], rows + spread[m], **_style(plt.Line2D, style, marker_kw))

        lowest = float(np.min(self.auc, initial=1.0, where=~np.isnan(self.auc)))
        low = min(lowest, 0.95) if lowest > 0.75 else min(lowest, 0.5)
        self.chance_level_ = None
        if plot_chance_level:
            style = {"color": "0.35", "linestyle": "--", "linewidth": 1, "zorder": 1}
            self.chance_level_ = axes.axvline(0.5, **_style(plt.Line2D, style, chance_level_kw))
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
            f"{_shorten(name)} ({_size(n)})" for name, n in zip(self.pairs[row], self.pair_counts[row], strict=True)
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
        ax: "Axes | None" = None,
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
        _pyplot(f"{cls.__name__}.from_estimator")
        models = _models("estimator", estimator, name, type(estimator).__name__)
        responses = {key: _response(model, X) for key, model in models.items()}
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
        ax: "Axes | None" = None,
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
        _pyplot(f"{cls.__name__}.from_predictions")
        if not isinstance(k, numbers.Integral) or isinstance(k, bool) or k < 1:
            raise invalid("k", "must be a whole number above 0", repr(k), "pass how many pairs to show")
        auc = []
        models = _models("y_score", y_score, name, "")
        for key, scores in models.items():
            try:
                matrix, classes, sizes = _matrix_and_sizes(y_true, scores, labels, sample_weight)
            except ValueError as error:
                raise ValueError(f"model {key!r}: {error}" if len(models) > 1 else str(error)) from None
            i, j = _rarest_pairs(sizes, k)
            auc.append((matrix[i, j] + matrix[j, i]) / 2)
        pairs, pair_counts = np.column_stack([classes[i], classes[j]]), np.column_stack([sizes[i], sizes[j]])
        names = None if list(models) == [""] else list(models)
        return cls(np.array(auc), pairs, pair_counts, name=names).plot(ax=ax, **plot_kw)


def _pyplot(caller: str) -> Any:
    """matplotlib.pyplot, or scikit-learn's error: called before any computation."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        advice = "You can install matplotlib with `pip install matplotlib`"
        raise ImportError(f"{caller} requires matplotlib. {advice}") from error
    return plt


def _axes(plt: Any, ax: "Axes | None", figsize: tuple[float, float]) -> tuple[Any, Any]:
    """The axes passed, or those of a new figure that makes room for its labels; and their figure."""
    if ax is None:
        # Unlike "constrained", "compressed" does not clip the labels of axes with square cells.
        _, ax = plt.subplots(figsize=figsize, layout="compressed")
    return ax, ax.figure


def _style(artist: Any, default: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    """Keywords of a matplotlib artist: the given ones, by whichever alias, over the default ones."""
    from matplotlib.cbook import normalize_kwargs

    return normalize_kwargs(default, artist) | normalize_kwargs(given or {}, artist)


def _matrix_and_sizes(
    y_true: ArrayLike, y_score: ArrayLike, labels: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """``(C, C)`` AUCs, ``(C,)`` classes, ``(C,)`` sizes of the classes, weighted if the samples are."""
    scored = check_scored_classes(y_true, y_score, labels, sample_weight)
    partition = ClassPartition(scored.codes, len(scored.labels), scored.sample_weight)
    if partition.present.sum() < 2:
        came = f"only the class {scored.labels[partition.present][0]}"
        advice = "multiclass AUC compares classes; check the split"
        raise invalid("y_true", "must hold two classes or more", came, advice)
    sizes = partition.counts if sample_weight is None else partition.weights
    return pairwise_auc(y_true, y_score, labels=labels, sample_weight=sample_weight), scored.labels, sizes


def _rarest_pairs(sizes: NDArray[Any], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The two classes of each of the ``k`` pairs with the smallest ``n_i n_j > 0``."""
    present = np.flatnonzero(sizes > 0)
    i, j = (present[side] for side in np.triu_indices(len(present), 1))
    rarest = np.argsort(sizes[i].astype(np.float64) * sizes[j], kind="stable")[:k]
    return i[rarest], j[rarest]


def _response(estimator: Any, X: Any) -> tuple[Any, NDArray[Any]]:
    """Scores of a fitted classifier, and the classes of their columns."""
    requirement = "must be a fitted classifier with predict_proba or decision_function"
    advice = "pass such a classifier (CalibratedClassifierCV makes one), or pass scores to from_predictions"
    if isinstance(estimator, type):
        raise invalid("estimator", requirement, f"the class {estimator.__name__}", "pass a fitted instance of it")
    kind = type(estimator).__name__
    method = next((name for name in ("predict_proba", "decision_function") if hasattr(estimator, name)), None)
    if method is None:
        raise invalid("estimator", requirement, f"{kind} with neither", advice)
    y_score = getattr(estimator, method)(X)
    if not hasattr(estimator, "classes_"):
        raise invalid("estimator", requirement, f"{kind} without classes_", advice)
    return y_score, np.asarray(estimator.classes_)


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


def _check_auc(parameter: str, auc: ArrayLike) -> Floats:
    requirement, advice = "must hold AUCs from 0 to 1, or NaN", "pass values of pairwise_auc"
    try:
        array = np.asarray(auc, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(parameter, requirement, type(auc).__name__, advice) from None
    outside = array[(array < 0) | (array > 1)]
    if array.ndim == 0 or len(outside):
        raise invalid(parameter, requirement, f"{outside[0] if len(outside) else auc}", advice)
    return array


def _names(name: str | Sequence[str] | None) -> list[str]:
    return [] if name is None else [name] if isinstance(name, str) else list(name)


def _shorten(name: object, most: int = 28) -> str:
    """A label that neither crowds out the picture nor is read as a formula."""
    text = str(name)
    return (text if len(text) <= most else text[: most - 1] + "…").replace("$", r"\$")


def _size(n: float) -> str:
    return f"{n:,.0f}" if n >= 100 or n == round(n) else f"{n:.3g}"


def _readable_on(color: tuple[float, float, float, float]) -> str:
    """Black or white, whichever has the higher WCAG contrast on the colour."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
    return "black" if np.dot(linear, (0.2126, 0.7152, 0.0722)) > 0.179 else "white"
