"""What a stack trains: a pure function of the size of a table and an effort, never of the clock.

The same table and effort give the same plan on every machine. Work is counted in units of about one second of one core;
where that is wrong by a factor, a plan takes longer, and is the same plan.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.pipeline import Pipeline

from mauc._validation import check_choice
from mauc.ensemble.bases import default_estimators, ordinal_estimators

__all__ = ["EFFORTS", "Member", "Plan", "Size", "plan_members", "starter", "work_of"]

EFFORTS = {"quick": 15.0, "normal": 75.0, "best": 750.0}
"""Work of all members together."""
FORESTS = ("et", "rf", "et_deep")
FEW_ROWS = 8_000
SHARES = {"lr": 0.15, "hgb": 0.45, "rf": 0.3, "et": 0.2}
"""Of the work, at most, where there are more rows than these; 0.1 for all others, and 0.4 for each with fewer."""


class Size(NamedTuple):
    """Of a table of numbers."""

    rows: int
    columns: int
    classes: int


@dataclass(frozen=True, eq=False)
class Member:
    """A model of the stack, and how many rows one fit of it gets at most."""

    name: str
    model: Any
    rows: int


@dataclass(frozen=True, eq=False)
class Plan:
    """The members in the order they are trained, and in how many folds; 1: a fifth of the rows is held out once."""

    members: tuple[Member, ...]
    n_folds: int

    @property
    def fold_rows(self) -> int:
        """Most rows that a fit on a fold gets: where one part is held out, all members are fitted again on all rows."""
        return 30_000 if self.n_folds == 1 else 10**9


def plan_members(size: Size, effort: str = "normal", seed: int = 0, order: list[int] | None = None) -> Plan:
    """The members, each as large as its share of the work allows; trees and a linear model in any case.

    Fewer folds where there are more rows: five, three, one part that is held out. Then members that would take more
    than their share of the work get fewer trees or fewer rows, and those for which even that is too much are left out.

    Parameters
    ----------
    size : Size
    effort : {"quick", "normal", "best"}, default="normal"
    seed : int, default=0
    order : list of int, optional
        Codes of the classes from the lowest to the highest, where they have an order.

    Examples
    --------
    >>> for rows in (500, 10_000, 100_000):
    ...     plan = plan_members(Size(rows, 20, 5))
    ...     print(plan.n_folds, *(f"{each.name}:{each.rows}" for each in plan.members))
    5 et:500 lr:500 hgb:500 rf:500 mauc:500 kernel:500 et_deep:500 mlp:500 lr_strong:500
    3 et:10000 lr:10000 hgb:10000 rf:10000 mauc:10000 kernel:10000 mlp:2000 et_deep:10000
    1 et:100000 lr:100000 hgb:100000 rf:50000 mauc:100000 kernel:20000 mlp:2000 et_deep:20000
    """
    check_choice("effort", effort, tuple(EFFORTS))
    budget = EFFORTS[effort]
    plan = Plan((), _folds(size, effort))
    odds = dict([] if order is None else ordinal_estimators(order, seed))
    left = budget
    members: list[Member] = []
    for name in _order(size, list(odds)):
        share = SHARES.get(name, 0.1) if size.rows > FEW_ROWS else 0.4
        chosen = None
        for member in _variants(name, size, seed, odds):
            work = _work_in_folds(member, size, plan)
            if work <= min(left, share * budget):
                chosen = member
                break
        if chosen is None and (name == "lr" or (name == "et" and not {"hgb", "rf"} & {m.name for m in members})):
            chosen = member
        if chosen is not None:
            members.append(chosen)
            left -= work
    return Plan(tuple(members), plan.n_folds)


def _order(size: Size, odds: list[str]) -> list[str]:
    """Quick trees and a linear model first, for a deadline; with many rows boosting next, which gains most by them."""
    if size.rows <= FEW_ROWS:
        return ["et", "lr", *odds, "hgb", "rf", "mauc", "kernel", "et_deep", "mlp", "lr_strong"]
    return ["et", "lr", "hgb", "rf", *odds, "mauc", "kernel", "mlp", "et_deep"]


def starter(seed: int, classes: int) -> Member:
    """A small forest on few rows: something to fall back on where a deadline leaves time for nothing else."""
    return Member("starter", _bounded(dict(default_estimators(seed, 20))["et"], 2_000, classes, 1e7), 2_000)


def _folds(size: Size, effort: str, most_scores: int = 4_000_000) -> int:
    """As many scores as there are rows and classes are kept of every member."""
    many = {"quick": (2_000, 10_000), "normal": (FEW_ROWS, 25_000), "best": (50_000, 100_000)}[effort]
    if size.rows * size.classes > most_scores:
        return 1
    return 5 if size.rows <= many[0] else 3 if size.rows <= many[1] else 1


def _variants(name: str, size: Size, seed: int, odds: dict[str, Any]) -> Iterator[Member]:
    """A member on all rows and on fewer, with as many trees as there are or fewer."""
    rows = [size.rows, *(n for n in (50_000, 20_000, 10_000, 5_000, 2_000) if n < size.rows)]
    if name in FORESTS:
        for n, trees in [(rows[0], 300), (rows[0], 200), *((n, trees) for n in rows for trees in (100, 50))]:
            forest = dict(default_estimators(seed, trees))[name]
            if n > 2_000 and name == "rf":
                forest.set_params(min_samples_leaf=2)
            yield Member(name, _bounded(forest, n, size.classes), n)
    elif name == "hgb":
        # Boosting on a small part of the rows is no gain.
        for n in (n for n in rows if 10 * n >= size.rows):
            for model in _boosting(n, size, seed):
                yield Member(name, model, n)
    else:
        for n in rows:
            model = odds[name] if name in odds else dict(default_estimators(seed))[name]
            if n > 5_000 and name in ("lr", "lr_strong"):
                model.set_params(logisticregression__max_iter=200)
            if n > 5_000 and name in ("mauc", "kernel"):
                model.set_params(maucclassifier__max_iter=200)
            yield Member(name, model, n)


def _boosting(rows: int, size: Size, seed: int) -> Iterator[Any]:
    """Few rows want small steps and small trees. Of many columns, each split looks at some only."""
    for iterations in (200, 100, 60, 40) if rows > 2_000 else (100, 50):
        model = dict(default_estimators(seed))["hgb"]
        if rows > 2_000:
            model.set_params(learning_rate={200: 0.07, 100: 0.1}.get(iterations, 0.15), max_leaf_nodes=31)
        yield model.set_params(max_iter=iterations, max_features=min(1.0, 60 / size.columns))


def _bounded(forest: Any, rows: int, classes: int, most_bytes: float = 8e7) -> Any:
    """With as many leaves at most as fit into a model file: a node takes 64 bytes and 8 for each class."""
    leaves = int(0.5 * most_bytes / (forest.n_estimators * (64 + 8 * classes)))
    return forest if leaves >= rows / forest.min_samples_leaf else forest.set_params(max_leaf_nodes=max(2, leaves))


def _work_in_folds(member: Member, size: Size, plan: Plan) -> float:
    """Of all fits: one in each fold, and one on all rows of a forest, or where there is one fold."""
    name, share = member.name, 0.8 if plan.n_folds == 1 else 1.0 - 1.0 / plan.n_folds
    last = member.model.steps[-1][1] if isinstance(member.model, Pipeline) else member.model
    in_fold = size._replace(rows=min(member.rows, int(share * size.rows), plan.fold_rows))
    again = plan.n_folds == 1 or name in FORESTS
    return plan.n_folds * work_of(name, in_fold, last) + again * work_of(name, size._replace(rows=member.rows), last)


def work_of(name: str, size: Size, model: Any) -> float:
    """One fit of a member.

    >>> forest, boosting = (dict(default_estimators())[name] for name in ("rf", "hgb"))
    >>> work_of("rf", Size(20_000, 20, 5), forest) > 10 * work_of("hgb", Size(200, 20, 5), boosting)
    True
    """
    n, d, c = size
    if name in FORESTS:
        per_row = {"et": 4.5e-8, "et_deep": 6.0e-8, "rf": 1.0e-7}[name]
        return model.n_estimators * (1.5e-3 + per_row * n * math.log2(max(n, 2)) * (1.0 + 0.4 * math.sqrt(d)))
    if name == "hgb":
        columns = d * model.max_features
        per_tree = 2e-3 + columns * (8e-5 + 1e-9 * model.max_leaf_nodes**0.5 * 3 * n)
        return model.max_iter * (c if c > 2 else 1) * per_tree
    return {
        "lr": 0.01 + 1.0e-7 * n * d * c,
        "lr_strong": 0.01 + 1.0e-7 * n * d * c,
        "mauc": 0.04 + 2.0e-7 * n * d * c,
        "kernel": 0.05 + 2.2e-5 * n * c,
        "odds": 0.02 + 1.0e-7 * n * d,
        "odds_kernel": 0.05 + 6.0e-6 * n,
        "mlp": 0.05 + 9e-4 * n,
    }[name]
