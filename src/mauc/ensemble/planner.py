"""What a stack trains: a pure function of the size of a table and an effort, never of the clock.

The same table and effort give the same plan on every machine. Work is counted in units of about one second of one core;
where that is wrong by a factor, a plan takes longer, and is the same plan.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from mauc._validation import check_choice
from mauc.ensemble.bases import default_estimators, ordinal_estimators
from mauc.ensemble.tree_columns import Layout, TreeColumns

__all__ = ["EFFORTS", "Member", "Plan", "Size", "many_trees", "plan_members", "starter", "work_of"]

EFFORTS = {"quick": 12.0, "normal": 48.0, "best": 600.0}
"""Work of all members together: about 40 s on two quiet cores for normal, with what else there is to do."""
FORESTS = ("et", "rf", "rf_deep", "et_deep")
FEW_ROWS = 3_500
SHARES = {"hgb": 0.5, "rf": 0.4, "lr": 0.12, "rf_deep": 0.25, "hgb_deep": 0.3, "et": 0.2}
"""Of the work, at most, where there are more rows than these; 0.1 for all others, and 0.45 for each with fewer."""
WIDE = 250
"""Columns that boosting gets at most, for its work grows with them: the telling ones."""


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


def plan_members(
    size: Size, effort: str = "normal", seed: int = 0, order: list[int] | None = None, layout: Layout | None = None
) -> Plan:
    """The members, each as large as its share of the work allows; trees and a linear model in any case.

    Fewer folds where there are more rows or more work: five, three, one part that is held out. Then members that would
    take more than their share of the work get fewer trees or fewer rows, and those for which even that is too much are
    left out. The first two are boosting and a forest where there are many rows, close to what scikit-learn's defaults
    are: with a deadline they are fitted on all rows before any other member begins.

    Parameters
    ----------
    size : Size
    effort : {"quick", "normal", "best"}, default="normal"
    seed : int, default=0
    order : list of int, optional
        Codes of the classes from the lowest to the highest, where they have an order.
    layout : Layout, optional
        Where trees find categories; default: all columns are plain numbers.

    Examples
    --------
    >>> for rows in (500, 10_000, 100_000):
    ...     plan = plan_members(Size(rows, 20, 5))
    ...     print(plan.n_folds, *(f"{each.name}:{each.rows}" for each in plan.members))
    5 et:500 lr:500 hgb:500 rf:500 mauc:500 kernel:500 et_deep:500 mlp:500 lr_strong:500
    3 rf:10000 hgb:10000 lr:10000 rf_deep:10000 hgb_deep:10000 et:10000 kernel:10000 mauc:10000
    1 rf:100000 hgb:100000 lr:100000 rf_deep:50000 et:100000 kernel:5000 mauc:20000
    """
    check_choice("effort", effort, tuple(EFFORTS))
    odds = dict([] if order is None else ordinal_estimators(order, seed))
    task = _Task(size, seed, layout or Layout.of_numbers(size.columns), odds)
    return _filled(task, EFFORTS[effort], _folds(task, effort))


@dataclass(frozen=True)
class _Task:
    """What a plan is made for."""

    size: Size
    seed: int
    layout: Layout
    odds: dict[str, Any]

    @property
    def few(self) -> bool:
        """Whether the default members are used as they are, each on all columns."""
        return self.size.rows <= FEW_ROWS

    @property
    def order(self) -> list[str]:
        """Quick ones first where rows are few; else boosting, which gains most by many rows, and forests."""
        if self.few:
            return ["et", "lr", *self.odds, "hgb", "rf", "mauc", "kernel", "et_deep", "mlp", "lr_strong"]
        return ["rf", "hgb", "lr", "rf_deep", "hgb_deep", "et", *self.odds, "kernel", "mauc", "mlp"]

    def for_trees(self, model: Any, most: int = 10**9) -> Any:
        """The model behind the narrower table, where there is one."""
        layout = self.layout
        plain = self.few or layout.width == self.size.columns
        if plain and self.size.columns <= most:
            return model
        view = Layout.of_numbers(self.size.columns) if plain else layout
        columns = TreeColumns(list(view.plain), list(view.words), most, self.seed)
        return make_pipeline(columns, model)


def _filled(task: _Task, budget: float, n_folds: int) -> Plan:
    left = budget
    members: list[Member] = []
    for name in task.order:
        share = 0.45 if task.few else SHARES.get(name, 0.1)
        chosen = None
        for member in _variants(name, task):
            work = _work_in_folds(member, task, n_folds)
            if work <= min(left, share * budget):
                chosen = member
                break
        # The least of its variants: some trees and a linear model there are in any case.
        if chosen is None and (name in ("lr", "rf") or (name == "et" and task.few)):
            chosen = member
        if chosen is not None:
            members.append(chosen)
            left -= work
    return Plan(tuple(members), n_folds)


def starter(seed: int, classes: int) -> Member:
    """A small forest on few rows: something to fall back on where a deadline leaves time for nothing else."""
    return Member("starter", _bounded(dict(default_estimators(seed, 20))["et"], 2_000, classes, 1e7), 2_000)


def _folds(task: _Task, effort: str, most_scores: int = 4_000_000, share: float = 0.6) -> int:
    """Three in place of one where that leaves work for others than the first two, boosting and a forest.

    As many scores as there are rows and classes are kept of every member.
    """
    size = task.size
    most = {"quick": 8_000, "normal": 20_000, "best": 100_000}[effort]
    if size.rows * size.classes > most_scores or size.rows > most:
        return 1
    if task.few or (effort == "best" and size.rows <= 20_000):
        return 5 if effort != "quick" or size.rows <= 2_000 else 3
    first = [next(_variants(name, task)) for name in task.order[:2]]
    return 3 if sum(_work_in_folds(member, task, 3) for member in first) <= share * EFFORTS[effort] else 1


def _variants(name: str, task: _Task) -> Iterator[Member]:
    """A member on all rows and on fewer, with as many trees as there are or fewer."""
    size, seed = task.size, task.seed
    rows = [size.rows, *(n for n in (50_000, 20_000, 10_000, 5_000, 2_000) if n < size.rows)]
    if name in FORESTS:
        most = [(rows[0], 300), (rows[0], 200)] if task.few else []
        for n, trees in [*most, *((n, trees) for n in rows for trees in (100, 60))]:
            yield Member(name, task.for_trees(_bounded(_forest(name, seed, trees), n, size.classes)), n)
    elif name == "hgb_deep":
        yield Member(name, task.for_trees(_boosting(size.rows, 200, seed), WIDE), size.rows)
    elif name == "hgb":
        # Boosting on a small part of the rows is no gain.
        for n in (n for n in rows if 10 * n >= size.rows):
            for iterations in (100, 60, 40) if n > FEW_ROWS else (100, 50):
                yield Member(name, task.for_trees(_boosting(n, iterations, seed), WIDE), n)
    else:
        for n in rows:
            model = task.odds[name] if name in task.odds else dict(default_estimators(seed))[name]
            if n > FEW_ROWS and name in ("lr", "lr_strong"):
                model.set_params(logisticregression__max_iter=200)
            if n > FEW_ROWS and name in ("mauc", "kernel"):
                model.set_params(maucclassifier__max_iter=200)
            yield Member(name, model, n)


def _forest(name: str, seed: int, trees: int) -> Any:
    """``rf_deep`` is scikit-learn's default: grown out, and no class balanced."""
    if name == "rf_deep":
        return RandomForestClassifier(trees, random_state=seed)
    return dict(default_estimators(seed, trees))[name]


def _boosting(rows: int, iterations: int, seed: int) -> Any:
    """Few rows want small steps and small trees."""
    model = dict(default_estimators(seed))["hgb"]
    if rows > FEW_ROWS:
        rate = {200: 0.07, 100: 0.1, 60: 0.15}.get(iterations, 0.2)
        model.set_params(learning_rate=rate, max_leaf_nodes=31 if iterations == 200 else 15)
    return model.set_params(max_iter=iterations)


def _bounded(forest: Any, rows: int, classes: int, most_bytes: float = 2e8) -> Any:
    """With as many leaves at most as fit into a model file: a node takes 64 bytes and 8 for each class."""
    leaves = int(0.5 * most_bytes / (forest.n_estimators * (64 + 8 * classes)))
    return forest if leaves >= rows / forest.min_samples_leaf else forest.set_params(max_leaf_nodes=max(2, leaves))


def _work_in_folds(member: Member, task: _Task, n_folds: int) -> float:
    """Of all fits: one in each fold, and one on all rows of a forest, or where there is one fold."""
    share = 0.8 if n_folds == 1 else 1.0 - 1.0 / n_folds
    steps = member.model.steps if isinstance(member.model, Pipeline) else [("model", member.model)]
    size, most = task.size, 10**9
    if isinstance(steps[0][1], TreeColumns):
        most = steps[0][1].most
        size = size._replace(columns=size.columns if task.few else task.layout.width)
    size = size._replace(columns=min(size.columns, most))
    in_fold = size._replace(rows=min(member.rows, int(share * size.rows), Plan((), n_folds).fold_rows))
    model = steps[-1][1]
    again = n_folds == 1 or member.name in FORESTS or many_trees(model, size.classes, n_folds)
    once = work_of(member.name, size._replace(rows=member.rows), model)
    return n_folds * work_of(member.name, in_fold, model) + again * once


def many_trees(model: Any, n_classes: int, n_folds: int) -> bool:
    """Whether boosting has too many trees in all folds together for a model file: 1,000 take a second to write, and
    as long to read. Three folds are for tables on which one more fit takes longer than that.
    """
    most = 1_200 if n_folds > 3 else 3_600
    boosted = isinstance(model, HistGradientBoostingClassifier)
    return boosted and model.max_iter * (n_classes if n_classes > 2 else 1) * n_folds > most


def work_of(name: str, size: Size, model: Any) -> float:
    """One fit of a member, in seconds of one core.

    >>> forest = dict(default_estimators())["rf"]
    >>> work_of("rf", Size(20_000, 20, 5), forest) > 10 * work_of("rf", Size(200, 20, 5), forest)
    True
    """
    n, d, c = size
    if name in FORESTS:
        per_row = {"et": 2.2e-8, "et_deep": 3.0e-8, "rf": 3.5e-8, "rf_deep": 5.0e-8}[name]
        return model.n_estimators * (1.5e-3 + per_row * n * math.log2(max(n, 2)) * (1.0 + 0.4 * math.sqrt(d)))
    if name in ("hgb", "hgb_deep"):
        per_tree = 1.5e-3 + 8e-9 * n * d + 2.9e-6 * d * model.max_leaf_nodes
        return model.max_iter * (c if c > 2 else 1) * per_tree
    return {
        "lr": 0.01 + 1.6e-7 * n * d * c,
        "lr_strong": 0.01 + 1.6e-7 * n * d * c,
        "mauc": 0.04 + 2.0e-7 * n * d * c,
        "kernel": 0.05 + 2.2e-5 * n * c,
        "odds": 0.02 + 1.0e-7 * n * d,
        "odds_kernel": 0.05 + 6.0e-6 * n,
        "mlp": 0.05 + 9e-4 * n,
    }[name]
