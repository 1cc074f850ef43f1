"""The display of ROC curves of classes, or of pairs of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from mauc._typing import Floats, PairName
from mauc._validation import check_choice, check_real, invalid
from mauc.metrics.curves import ROCCurve, average_of, band, curves_of, lowest_auc, simultaneous_quantile, thinned
from mauc.metrics.display.common import COLORS, Display, response, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MulticlassROCDisplay"]

GRID = np.linspace(0.0, 1.0, 201)


class MulticlassROCDisplay(Display):
    r"""ROC curves of the classes, one-vs-rest, or of pairs of classes, with their average.

    The curve of class i shows how column i of the scores ranks its samples above those of the other classes. With
    ``pairs="ovo"`` every other class counts the same: the area below the curve is the mean of
    :math:`\mathrm{AUC}_{i|j}` over the other classes, and the area below the average curve is the multiclass AUC. With
    ``pairs="ova"`` all other samples count the same. The average curve is the mean sensitivity at each false positive
    rate.

    Use :meth:`from_predictions`, :meth:`from_estimator` or :meth:`from_cv_results` to make one. All parameters are
    stored as attributes.

    Parameters
    ----------
    curves : sequence of ROCCurve
        Each has ``name``, ``fpr``, ``tpr``, ``auc`` (an :class:`mauc.Interval`) and ``point``, the false positive rate
        and sensitivity of a decision.
    average : ROCCurve, optional
        The average of all classes, drawn above the others.
    level : float, default=0.95
        Confidence level of the bands.
    left_out : int, default=0
        Number of classes that are not drawn.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        One for each curve.
    bands_ : list of matplotlib PolyCollection
    points_ : list of matplotlib Line2D
    average_ : matplotlib Line2D or None
    chance_level_ : matplotlib Line2D
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import MulticlassROCDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (y[:, None] == ["elm", "oak", "yew"])
    >>> display = MulticlassROCDisplay.from_predictions(y, scores)
    >>> [(curve.name, round(curve.auc.score, 3)) for curve in display.curves]
    [('elm', 0.929), ('oak', 0.879), ('yew', 0.822)]
    >>> round(display.average.auc.score, 3)
    0.877
    """

    def __init__(
        self,
        curves: Sequence[ROCCurve],
        *,
        average: ROCCurve | None = None,
        level: float = 0.95,
        left_out: int = 0,
    ) -> None:
        self.curves = list(curves)
        self.average = average
        self.level = level
        self.left_out = left_out

    def plot(
        self,
        *,
        ax: Axes | None = None,
        bands: Literal["auto", "pointwise", "simultaneous"] | None = "auto",
    ) -> Self:
        """Draw the curves, their average, the operating points of a decision, and the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        bands : {"auto", "pointwise", "simultaneous"} or None, default="auto"
            A pointwise band covers the sensitivity at one false positive rate with the probability ``level``, a
            simultaneous band covers the whole curve. "auto": pointwise for up to four curves, else none. Curves of
            cross-validation have no bands.

        Returns
        -------
        MulticlassROCDisplay
            Itself.
        """
        if bands is not None:
            check_choice("bands", bands, ("auto", "pointwise", "simultaneous"))
        if bands == "auto":
            bands = "pointwise" if len(self.curves) <= 4 else None
        plt, axes = self._new_axes(ax, (8.2, 5.4))
        ink = plt.rcParams["text.color"]
        self.lines_, self.bands_, self.points_ = [], [], []
        for k, curve in enumerate(self.curves):
            color, line = COLORS[k % 6], ("-", "--", ":")[k // 6 % 3]
            self.lines_ += axes.plot(*_drawn(curve), color=color, linestyle=line, linewidth=1.8, label=_label(curve))
            if bands is not None and curve.positives is not None:
                low, high = self.band(curve, simultaneous=bands == "simultaneous")
                self.bands_.append(axes.fill_between(GRID, low, high, color=color, alpha=0.16, linewidth=0, zorder=1))
            if curve.point is not None:
                dot = {"marker": "o", "markersize": 8, "markeredgecolor": ink, "linestyle": "none", "zorder": 4}
                self.points_ += axes.plot(*curve.point, color=color, **dot)
        self.average_ = None
        if self.average is not None:
            style = {"color": ink, "linewidth": 2.4, "label": _label(self.average), "zorder": 3}
            (self.average_,) = axes.plot(*_drawn(self.average), **style)
        (self.chance_level_,) = axes.plot([0, 1], [0, 1], color="0.55", linestyle=":", linewidth=1.2)
        self._decorate(axes, bands)
        return self

    def band(self, curve: ROCCurve, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Return the ``(201,)`` low and high ends of the sensitivity at false positive rates 0, 0.005, …, 1."""
        quantile = float(special.ndtri(0.5 + 0.5 * self.level))
        if simultaneous:
            quantile = simultaneous_quantile(curve, GRID, self.level)
        low, high = band(curve, GRID, quantile)
        return low.clip(0.0, 1.0), high.clip(0.0, 1.0)

    def _decorate(self, axes: Any, bands: str | None) -> None:
        """Set axes, title and legend."""
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("sensitivity")
        axes.grid(color="0.5", alpha=0.2, linewidth=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        notes = []
        if self.bands_:
            notes.append(f"{bands} bands of {100 * self.level:g} %")
        if self.points_:
            notes.append("dots: the decision")
        if self.left_out:
            notes.append(f"{len(self.curves)} classes of lowest AUC, {self.left_out} more not drawn")
        axes.set_title("; ".join(["ROC curves", *notes]), fontsize=9.5, loc="left")
        brackets = f"in brackets: the {100 * self.level:g} % interval of the AUC"
        if any(np.isnan(curve.auc.stderr) for curve in self.curves):
            brackets = "in brackets: the range of the folds"
        place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0}
        title = {"title": f"AUC\n{brackets}", "alignment": "left", "title_fontsize": 9}
        self.legend_ = axes.legend(frameon=False, **place, **title)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        between: Sequence[tuple[Any, Any]] | None = None,
        pairs: PairName = "ovo",
        y_pred: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        level: float = 0.95,
        ax: Axes | None = None,
        **plot_kw: Any,
    ) -> Self:
        """Draw the curves of scores.

        Parameters
        ----------
        y_true, y_score, labels, sample_weight
            As in :func:`mauc.pairwise_auc`. Classes without samples have no curve.
        classes : array of classes, optional
            Classes whose curves to draw. Default: all, or the eight with the lowest AUC.
        between : sequence of pairs of classes, optional
            Pairs to draw instead of classes: ``("oak", "elm")`` shows how the score of oak ranks oak above elm.
        pairs : {"ovo", "ova", "ovr"}, default="ovo"
            "ovo": all other classes count the same. "ova": all other samples count the same.
        y_pred : (N,) array of classes, optional
            Predicted classes, whose operating point is drawn on each curve.
        groups : (N,) array, optional
            The group of each row, such as the patient; see :func:`mauc.mauc_interval`.
        level : float, default=0.95
            Confidence level of the bands and of the intervals of the AUCs.
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        **plot_kw
            Other parameters of :meth:`plot`.

        Returns
        -------
        MulticlassROCDisplay
        """
        level = check_real("level", level, low=0, high=1)
        which: dict[str, Any] = {"classes": classes, "between": between, "pairs": pairs, "y_pred": y_pred}
        of_rows: dict[str, Any] = {"labels": labels, "sample_weight": sample_weight, "groups": groups}
        curves, average, left_out = curves_of(y_true, y_score, level=level, **which, **of_rows)
        return cls(curves, average=average, level=level, left_out=left_out).plot(ax=ax, **plot_kw)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
        """Draw the curves of a fitted classifier, with the operating points of its ``predict``.

        Parameters
        ----------
        estimator : fitted classifier, or pipeline that ends in one
            Scored by ``predict_proba``, else by ``decision_function``.
        X : (N, d) array, sparse matrix or table
        y : (N,) array of classes
        **options
            Parameters of :meth:`from_predictions` and :meth:`plot`. ``labels`` is ``estimator.classes_`` by default.
            ``y_pred=None`` draws no operating points.

        Returns
        -------
        MulticlassROCDisplay
        """
        if "y_pred" not in options and hasattr(estimator, "predict") and not isinstance(estimator, type):
            options["y_pred"] = estimator.predict(X)
        return super().from_estimator(estimator, X, y, **options)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        level: float = 0.95,
        **options: Any,
    ) -> Self:
        """Draw the mean curves of the folds of a cross-validation.

        The curve of a class is the mean of its curves in all folds; scores of different folds are never compared. There
        are no bands, because folds share training rows; for a test see :func:`mauc.compare_cv_scores`.

        Parameters
        ----------
        cv_results : dict
            The result of ``sklearn.model_selection.cross_validate`` with ``return_estimator=True`` and
            ``return_indices=True``.
        X, y
            As they were passed to it.
        ax : matplotlib Axes, optional
            Default: those of a new figure.
        level : float, default=0.95
        **options
            ``classes``, ``between``, ``pairs`` of :meth:`from_predictions`, and parameters of :meth:`plot`.

        Returns
        -------
        MulticlassROCDisplay
            ``auc`` of each curve has the mean of the folds as ``score``, and their range as ``low`` and ``high``.
        """
        missing = [name for name in ("estimator", "indices") if name not in cv_results]
        if missing:
            advice = "pass return_estimator=True and return_indices=True to cross_validate"
            raise invalid("cv_results", "must hold 'estimator' and 'indices'", f"none of {missing}", advice)
        from sklearn.utils import _safe_indexing

        chosen = {name: options.pop(name) for name in ("classes", "between", "pairs") if name in options}
        folds = []
        for k, (estimator, test) in enumerate(zip(cv_results["estimator"], cv_results["indices"]["test"], strict=True)):
            scores, known = response(estimator, _safe_indexing(X, test))
            of_test = np.asarray(y)[test]
            unknown = np.setdiff1d(of_test, known)
            if len(unknown):
                came, advice = f"class {unknown[0]} only in the test rows of fold {k}", "split by mauc.RareClassKFold"
                raise invalid("cv_results", "must have every class in the training rows of each fold", came, advice)
            every = {"classes": known, **chosen}
            folds.append(curves_of(of_test, scores, labels=known, level=level, **every))
        # In the order of the fold with most classes: another one may lack some.
        ordered = sorted((fold for fold, *_ in folds), key=len, reverse=True)
        names = dict.fromkeys(curve.name for fold in ordered for curve in fold)
        curves = [average_of([c for fold, *_ in folds for c in fold if c.name == name], name) for name in names]
        averages = [average for _, average, _ in folds if average is not None]
        average = average_of(averages, averages[0].name) if averages else None
        shown = curves if "classes" in chosen or "between" in chosen else lowest_auc(curves)
        display = cls(shown, average=average, level=level, left_out=len(curves) - len(shown))
        return display.plot(ax=ax, **options)


def _drawn(curve: ROCCurve, most: int = 4000) -> tuple[Floats, Floats]:
    """Return at most ``most`` points of the curve."""
    kept = thinned(curve.fpr, curve.tpr, most)
    return curve.fpr[kept], curve.tpr[kept]


def _label(curve: ROCCurve) -> str:
    found = curve.auc
    return f"{shorten(curve.name, 34)}\n{found.score:.3f} [{found.low:.3f}, {found.high:.3f}]"
