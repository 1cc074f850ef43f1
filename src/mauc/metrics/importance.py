"""Permutation importance by multiclass AUC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mauc._labels import names_of, positions, text_of
from mauc._typing import Floats, Ints
from mauc._validation import check_groups, check_real, check_scored_classes, check_whole, invalid, listing, scores_of
from mauc.metrics.inference import score_and_influence
from mauc.metrics.scores import present_pairs
from mauc.metrics.uncertainty import NO_DIFFERENCE, Sample, comparison
from mauc.partition import ClassPartition

__all__ = ["Importance", "mauc_importance"]


@dataclass(frozen=True)
class Importance:
    """The drop of the multiclass AUC, or of the AUC of one pair of classes, when a column is shuffled."""

    column: str
    pair: tuple[str, str] | None
    """The two classes; None for all pairs."""
    drop: float
    """The AUC minus the AUC with the column shuffled, mean over the repeats. Below 0 the column hurts."""
    low: float
    high: float
    stderr: float


def mauc_importance(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    columns: Sequence[str] | None = None,
    between: Sequence[tuple[Any, Any]] = (),
    n_repeats: int = 5,
    groups: ArrayLike | None = None,
    level: float = 0.95,
    random_state: int = 0,
    watch: Callable[[str], None] | None = None,
) -> list[Importance]:
    r"""Compute the permutation importance of every column by multiclass AUC, with standard errors.

    Shuffling a column among the rows keeps its values and removes their relation to the class. The importance is

    .. math:: \mathrm{drop} = \mathrm{MAUC} - \tfrac1R \sum_r \mathrm{MAUC}^{(r)}

    over the shuffles r. Its standard error is that of a paired comparison (:func:`mauc.compare_mauc`) between the
    scores before and after shuffling. It covers both the choice of the rows and the shuffles.

    Parameters
    ----------
    model : fitted classifier, or function from X to (N, C) scores
    X : (N, d) array or data frame
        Test rows, on which the model was not trained.
    y : (N,) classes
    labels : (C,) array, optional
        The class of each column of scores. Default: ``model.classes_``, else the sorted classes of ``y``. Classes
        without a row are left out.
    columns : sequence of str, optional
        Names of the columns to shuffle; for an array, their positions as text. Default: all.
    between : sequence of pairs of classes
        For each of these pairs, also compute the drop of the mean of its two AUCs.
    n_repeats : int, default=5
        Number of shuffles of each column.
    groups : (N,) array, optional
        The group of each row, such as the patient; see :func:`mauc.mauc_interval`.
    level : float, default=0.95
    random_state : int, default=0
    watch : function, optional
        Called with the name of each column before it is shuffled.

    Returns
    -------
    list of Importance
        First over all pairs, then for each pair in ``between``; the largest drop comes first. If two columns hold the
        same information, both have small drops, because the model can use the other one. A column that the model does
        not use has a drop of exactly 0 ± 0.

    Notes
    -----
    For d columns, the model predicts ``d · n_repeats + 1`` times.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc import MAUCClassifier
    >>> from mauc.metrics import mauc_importance
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> X = np.column_stack([rng.normal(size=200), rng.normal(size=200) + 2 * (y == "yew"), (y == "oak") * 1.0])
    >>> for found in mauc_importance(MAUCClassifier().fit(X, y), X, y):
    ...     print(f"column {found.column}: {found.drop:.3f} ± {found.stderr:.3f}")
    column 2: 0.240 ± 0.017
    column 1: 0.190 ± 0.025
    column 0: -0.000 ± 0.005
    """
    check_whole("n_repeats", n_repeats, least=1, advice="pass how often each column is shuffled")
    level = check_real("level", level, low=0, high=1)
    score = model if callable(model) and not hasattr(model, "predict_proba") else partial(scores_of, model)
    if labels is None:
        labels = getattr(model, "classes_", None)
    scored = check_scored_classes(y, score(X), labels, None)
    partition, v = present_pairs(scored, parameter="y")
    group_codes = check_groups(groups, len(scored.codes))
    whole = slice(None)
    measures = [
        _Measure(Sample.of(partition, v, group_codes), v, whole, whole, None),
        *(_Measure.of_pair(partition, scored.labels, pair, group_codes) for pair in between),
    ]
    before = [each.value(scored.scores) for each in measures]
    rng = np.random.default_rng(check_whole("random_state", random_state, least=0, advice="pass a seed"))
    found: list[list[Importance]] = [[] for _ in measures]
    for name, place in _columns(X, columns):
        if watch is not None:
            watch(name)
        values, unused = [], True
        for shuffled in _shuffled(X, place, n_repeats, rng):
            scores = check_scored_classes(y, score(shuffled), labels, None).scores
            values.append([each.value(scores) for each in measures])
            unused = unused and np.array_equal(scores, scored.scores)
        for k, measure in enumerate(measures):
            after = (float(np.mean([v[k][0] for v in values])), np.mean([v[k][1] for v in values], axis=0))
            c = NO_DIFFERENCE if unused else comparison(measure.sample, before[k], after, level)
            found[k].append(Importance(name, measure.pair, c.difference, c.low, c.high, c.stderr))
    return [each for part in found for each in sorted(part, key=lambda one: -one.drop)]


@dataclass(frozen=True, eq=False)
class _Measure:
    """A weighted mean of the AUCs of pairs, over some of the rows and classes."""

    sample: Sample
    v: Floats
    rows: Ints | slice
    columns: Ints | slice
    pair: tuple[str, str] | None

    @classmethod
    def of_pair(
        cls, partition: ClassPartition, labels: NDArray[Any], pair: tuple[Any, Any], groups: Ints | None
    ) -> _Measure:
        columns = positions(list(pair), labels)
        if len(pair) != 2 or columns[0] == columns[1] or (columns < 0).any() or not partition.present[columns].all():
            requirement = "must hold pairs of two different classes that have rows"
            there = listing(names_of(labels[partition.present]))
            raise invalid("between", requirement, repr(pair), f"choose from {there}")
        rows, two = partition.between(*columns)
        v = two.pair_weights("ovo")
        some = None if groups is None else groups[rows]
        return cls(Sample.of(two, v, some), v, rows, columns, (text_of(pair[0]), text_of(pair[1])))

    def value(self, scores: NDArray[np.floating]) -> tuple[float, Floats]:
        """Return the mean, and the influence of each row."""
        some = np.ascontiguousarray(scores[self.rows][:, self.columns])
        return score_and_influence(self.sample.partition, some, self.v)


def _columns(X: Any, wanted: Sequence[str] | None) -> list[tuple[str, int]]:
    """Return the name and the position of each column to shuffle."""
    names = [str(name) for name in (X.columns if hasattr(X, "columns") else range(np.shape(X)[1]))]
    unknown = [name for name in wanted or () if name not in names]
    if unknown:
        raise invalid("columns", "must name columns of X", repr(unknown[0]), f"choose from {listing(names)}")
    return [(name, k) for k, name in enumerate(names) if wanted is None or name in wanted]


def _shuffled(X: Any, place: int, n_repeats: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield the rows with one column shuffled; all columns of a data frame keep their types."""
    is_frame = hasattr(X, "isetitem")
    is_polars = hasattr(X, "with_columns")
    table: Any = X.copy() if is_frame else X if is_polars else np.array(X)
    for _ in range(n_repeats):
        order = rng.permutation(len(table))
        if is_frame:
            table.isetitem(place, X.iloc[:, place].take(order).set_axis(X.index))
        elif is_polars:
            table = X.with_columns(X[:, place][order])
        else:
            table[:, place] = np.asarray(X)[order, place]
        yield table
