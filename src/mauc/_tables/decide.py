"""From probabilities to decisions: learnt from rows that the model was not trained on."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from mauc._tables.errors import Failure, Usage
from mauc._typing import Floats, Ints
from mauc.decision import MAUCDecision
from mauc.decision.posterior import log_scores, posterior_of
from mauc.decision.sweep import cheapest
from mauc.model_selection import some_of_each

__all__ = ["DECIDE", "Decision", "costs_of", "decisions_of", "learn_decision", "read_costs"]

DECIDE = ("balanced", "accuracy")
Decision = dict[str, Any]
"""``scale``, ``offsets`` and ``lowest`` of the logs of probabilities, and ``costs`` or None, as a model file has it."""


class _Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are what it is given."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> Self:
        """There is nothing to learn."""
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
    most_classes: int = 40,
    most_rows: int = 5_000,
) -> Decision:
    """How to decide by ``(N, C)`` probabilities of held-out rows, at the best balanced accuracy, accuracy or costs.

    ``shares`` are those of the classes among all training rows. Beyond so many classes nothing is learnt: the
    probabilities are taken as they are.
    """
    n_classes = len(shares)
    wrong = 1.0 - np.eye(n_classes) if decide == "accuracy" and n_classes <= most_classes else None
    costs = wrong if costs is None else costs
    if n_classes > most_classes or len(np.unique(codes)) < 2:
        offsets = -np.log(shares) if decide == "balanced" else np.zeros(n_classes)
        return {"scale": 1.0, "offsets": offsets, "lowest": np.full(n_classes, 1e-12), "costs": costs}
    rows = some_of_each(codes, most_rows, seed)
    learnt = MAUCDecision(_Given(np.arange(n_classes)), cv="prefit", costs=costs)
    learnt.fit(probabilities[rows], codes[rows])
    return {"scale": learnt.scale_, "offsets": learnt.offsets_, "lowest": learnt._lowest, "costs": learnt.costs_}


def decisions_of(probabilities: Floats, decision: Decision | None) -> Ints:
    """``(N,)`` code of the class decided for; the likeliest where nothing was learnt."""
    if decision is None:
        return np.asarray(probabilities.argmax(axis=1))
    logs = log_scores(probabilities, decision["lowest"])
    if decision["costs"] is None:
        return np.asarray((decision["scale"] * logs + decision["offsets"]).argmax(axis=1))
    return np.asarray(cheapest(posterior_of(logs, decision["scale"], decision["offsets"]), decision["costs"]))


def read_costs(decide: str) -> Any:
    """The table that ``--decide costs.csv`` names; None for ``balanced`` and ``accuracy``."""
    import pandas as pd

    if decide in DECIDE:
        return None
    path = Path(decide)
    if path.suffix.lower() != ".csv":
        raise Usage(f"--decide must be balanced, accuracy or a table of costs such as costs.csv, got {decide!r}")
    try:
        table = pd.read_csv(path, index_col=0)
    except (ValueError, UnicodeError) as error:
        raise Failure(f"{path} cannot be read as a table of costs ({error}): save it as CSV") from None
    return table.set_axis(table.index.map(str), axis=0).set_axis(table.columns.map(str), axis=1)


def costs_of(table: Any, classes: NDArray[Any], path: str) -> Floats:
    """``(C, C)`` costs of taking the class of a row for that of a column, in the order of the classes."""
    names = [str(name) for name in classes]
    for where, there in (("row", table.index), ("column", table.columns)):
        missing = [name for name in names if name not in there]
        if missing:
            raise Failure(
                f"{path} has no {where} {missing[0]!r}: it needs a row and a column for each class, with the cost of "
                "taking the class of the row for that of the column"
            )
    found = table.loc[names, names].to_numpy()
    try:
        costs = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        costs = np.full((1, 1), np.nan)
    if not np.isfinite(costs).all():
        raise Failure(f"{path} must hold a number in every cell: the cost of taking the class of the row for another")
    return costs
