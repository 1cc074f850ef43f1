"""Turn probabilities into predicted classes, by offsets learned from validation rows."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from mauc._tables.errors import Failure
from mauc._tables.text import best_separator
from mauc._typing import Floats, Ints
from mauc.decision import MAUCDecision
from mauc.decision.posterior import log_scores, posterior_of
from mauc.decision.sweep import cheapest
from mauc.model_selection import some_of_each

Decision = dict[str, Any]
"""``scale``, ``offsets`` and ``lowest`` of log-probabilities, and ``costs`` or None, as a model file holds them."""


class _GivenProbabilities(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that returns the probabilities it is given."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Learn nothing."""
        return self

    def predict_proba(self, probabilities: Floats) -> Floats:
        return probabilities


def learn_decision(
    probabilities: Floats,
    codes: Ints,
    shares: Floats,
    decide: str,
    costs: Floats | None = None,
    *,
    seed: int = 0,
    most_classes: int,
    most_rows: int | None = None,
) -> Decision:
    """Learn from ``(N, C)`` probabilities of validation rows how to decide for balanced accuracy, accuracy or costs.

    ``shares`` are the class frequencies in all training rows. With more than ``most_classes`` classes nothing is
    learned, and the most probable class is predicted.

    The time grows like N·C³: at most 5,000 rows are used, and 2,000 if there are many classes.
    """
    n_classes = len(shares)
    wrong = 1.0 - np.eye(n_classes) if decide == "accuracy" and n_classes <= most_classes else None
    costs = wrong if costs is None else costs
    if n_classes > most_classes or len(np.unique(codes)) < 2:
        offsets = -np.log(shares) if decide == "balanced" else np.zeros(n_classes)
        return {"scale": 1.0, "offsets": offsets, "lowest": np.full(n_classes, 1e-12), "costs": costs}
    rows = some_of_each(codes, most_rows or max(2_000, min(5_000, 500_000 // n_classes**2)), seed)
    learned = MAUCDecision(_GivenProbabilities(np.arange(n_classes)), cv="prefit", costs=costs)
    learned.fit(probabilities[rows], codes[rows])
    return {"scale": learned.scale_, "offsets": learned.offsets_, "lowest": learned._lowest, "costs": learned.costs_}


def decisions_of(probabilities: Floats, decision: Decision) -> Ints:
    """Return the ``(N,)`` codes of the predicted classes; of several equally good ones the first in sorted order."""
    logs = log_scores(probabilities, decision["lowest"])
    if decision["costs"] is None:
        return np.asarray((decision["scale"] * logs + decision["offsets"]).argmax(axis=1))
    return np.asarray(cheapest(posterior_of(logs, decision["scale"], decision["offsets"]), decision["costs"]))


def read_costs(decide: str, labels: NDArray[Any]) -> Floats | None:
    """Return the table that ``--decide costs.csv`` names; None for ``balanced`` and ``accuracy``.

    Row i, column j of the ``(C, C)`` array is the cost of predicting class j of the ``labels`` if class i is true.
    """
    if decide in ("balanced", "accuracy"):
        return None
    try:
        # All as text: a class may be called 01 or NA.
        separator = best_separator(Path(decide).read_text(encoding="utf-8"))
        cells = pd.read_csv(decide, sep=separator, header=None, dtype=str, keep_default_na=False)
    except (ValueError, UnicodeError) as error:
        raise Failure(f"{decide} cannot be read as a table of costs ({error}): save it as CSV") from None
    cells = cells.map(str.strip, na_action="ignore")
    table = cells.iloc[1:, 1:].set_axis(cells.iloc[1:, 0]).set_axis(cells.iloc[0, 1:], axis=1)
    names = [str(name) for name in np.unique(labels)]
    for where, there in (("row", table.index), ("column", table.columns)):
        missing = [name for name in names if name not in there]
        if missing:
            raise Failure(
                f"{decide} has no {where} {missing[0]!r}: it needs a row for each true class and a column for each "
                "predicted one, and in each cell the cost"
            )
        twice = [name for name in names if list(there).count(name) > 1]
        if twice:
            raise Failure(f"{decide} has two {where}s {twice[0]!r}: remove one of them")
    costs = table.loc[names, names].apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    if not np.isfinite(costs).all():
        raise Failure(
            f"{decide} must hold a number in every cell, the cost of predicting the class of the column: write "
            "decimals as 0.5, not 0,5"
        )
    if (costs == costs[:, :1]).all():
        raise Failure(
            f"{decide} must hold different costs in a row, got the same in every cell: make right predictions cheaper "
            "than wrong ones"
        )
    return np.asarray(costs)
