"""Choose the models of a stack from the size of a table and an effort, never from the clock.

The same table and effort give the same plan on every machine. Work is estimated in seconds of one core. A wrong
estimate makes a plan slower; it does not change the plan.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline

from mauc._validation import check_choice
from mauc.ensemble.bases import default_estimators, ordinal_estimators
from mauc.ensemble.tree_columns import TreeColumns

Effort = Literal["quick", "normal", "best"]
EFFORTS = {"quick": 12.0, "normal": 48.0, "best": 600.0}
"""Work of all members together, in seconds of one core; normal takes 30 to 50 s on two idle cores."""
FORESTS = ("et", "rf", "rf_deep", "et_deep")
TREES = {*FORESTS, "hgb", "hgb_deep"}
FEW_ROWS = 3_500
SHARES = {"hgb": 0.5, "rf": 0.4, "lr": 0.12, "rf_deep": 0.25, "hgb_deep": 0.3, "et": 0.2}
"""Largest share of the work for one member on tables of more than ``FEW_ROWS`` rows; default: 0.1. On smaller tables
it is 0.45."""
MAX_BOOSTING_COLUMNS = 250
"""Boosting gets at most this many columns, the most important ones, because its work grows with their number."""


class Size(NamedTuple):
    """Size of a table of numbers."""

    rows: int
    columns: int
    classes: int


@dataclass(frozen=True, eq=False)
class Member:
    """A model of the stack, and the largest number of rows in one fit of it."""

    name: str
    model: Any
    rows: int


@dataclass(frozen=True, eq=False)
class StackPlan:
    """The members in training order, and the number of folds; with 1, a fifth of the rows is held out once."""

    members: tuple[Member, ...]
    n_folds: int
    early: tuple[str, ...] = ()
    """Names of the members to finish before any other starts."""

    @property
    def fold_rows(self) -> int:
        """Largest number of rows in a fit on a fold; with one fold all members are fitted again on all rows."""
        return 30_000 if self.n_folds == 1 else 10**9


def plan_members(
    size: Size,
    effort: Effort = "normal",
    seed: int = 0,
    order: list[int] | None = None,
    tree_columns: TreeColumns | None = None,
) -> StackPlan:
    """Return the members, each as large as its share of the work allows, always with trees and a linear model.

    More rows or more work mean fewer folds: five, three, or one part that is held out. Members that would take more
    than their share of the work get fewer trees or fewer rows, or are left out. With many rows the first two are a
    forest and boosting, close to scikit-learn's defaults. These two and the linear model are fitted on all rows before
    any other member starts.

    Parameters
    ----------
    size : Size
    effort : {"quick", "normal", "best"}, default="normal"
    seed : int, default=0
    order : list of int, optional
        Codes of ordered classes from the lowest to the highest.
    tree_columns : TreeColumns, optional
        Columns for trees. Default: all columns.

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
    # With few rows, one-hot columns cost little.
    if tree_columns is None or size.rows <= FEW_ROWS or tree_columns.width == size.columns:
        tree_columns = TreeColumns(list(range(size.columns)), [])
    return _Planner(size, effort, seed, tree_columns, odds).plan()


def starter(seed: int, n_classes: int, n_trees: int = 60) -> Member:
    """Return a small forest on few rows, for a deadline that leaves no time for other trees.

    With a limit of 5 seconds, 20 extra trees on 2,000 rows scored 0.01 to 0.04 less on the four large development
    tables of ``benchmarks.fit_tables`` and saved up to 0.9 s.
    """
    forest = dict(default_estimators(seed, n_trees))["rf"]
    return Member("starter", _with_bounded_leaves(forest, 5_000, n_classes, 1e7), 5_000)


@dataclass(frozen=True)
class _Planner:
    size: Size
    effort: Effort
    seed: int
    tree_columns: TreeColumns
    odds: dict[str, Any]

    @property
    def few_rows(self) -> bool:
        return self.size.rows <= FEW_ROWS

    @property
    def names(self) -> list[str]:
        """The members in training order: quick ones first for few rows, forests and boosting first for many."""
        if self.few_rows:
            return ["et", "lr", *self.odds, "hgb", "rf", "mauc", "kernel", "et_deep", "mlp", "lr_strong"]
        return ["rf", "hgb", "lr", "rf_deep", "hgb_deep", "et", *self.odds, "kernel", "mauc", "mlp"]

    def plan(self) -> StackPlan:
        n_folds = self.n_folds()
        budget = left = EFFORTS[self.effort]
        members: list[Member] = []
        for name in self.names:
            share = 0.45 if self.few_rows else SHARES.get(name, 0.1)
            # The smallest variant of a forest and of a linear model is trained in any case.
            required = name in ("lr", "rf") or (name == "et" and self.few_rows)
            for member in self.variants(name):
                work = self.work_in_folds(member, n_folds)
                if fits := work <= min(left, share * budget):
                    break
            if fits or required:
                members.append(member)
                left -= work
        # With the trees first, a slow machine had neither them nor the linear model on 60,000 rows of 300 columns.
        early = ("et", "lr") if self.few_rows else ("lr", "rf", "hgb")
        return StackPlan(tuple(members), n_folds, early)

    def n_folds(self, max_scores: int = 4_000_000, share: float = 0.6) -> int:
        """Use three folds rather than one if that leaves work for more than the first two members.

        Every member keeps rows × classes scores in memory, at most ``max_scores``.
        """
        rows, _, classes = self.size
        max_rows = {"quick": 8_000, "normal": 20_000, "best": 100_000}[self.effort]
        if rows * classes > max_scores or rows > max_rows:
            return 1
        if self.few_rows or (self.effort == "best" and rows <= 20_000):
            return 5 if self.effort != "quick" or rows <= 2_000 else 3
        work = sum(self.work_in_folds(next(self.variants(name)), 3) for name in self.names[:2])
        return 3 if work <= share * EFFORTS[self.effort] else 1

    def variants(self, name: str) -> Iterator[Member]:
        """Yield a member on all rows and on fewer, with all trees and with fewer."""
        rows = [self.size.rows, *(n for n in (50_000, 20_000, 10_000, 5_000, 2_000) if n < self.size.rows)]
        if name in FORESTS:
            large = [(rows[0], 300), (rows[0], 200)] if self.few_rows else []
            for n, trees in [*large, *((n, trees) for n in rows for trees in (100, 60))]:
                forest = _with_bounded_leaves(_forest(name, self.seed, trees), n, self.size.classes)
                yield Member(name, self.on_tree_columns(forest), n)
        elif name == "hgb_deep":
            model = _boosting(self.size.rows, 200, self.seed)
            yield Member(name, self.on_tree_columns(model, MAX_BOOSTING_COLUMNS), self.size.rows)
        elif name == "hgb":
            # Boosting on a small part of the rows gains nothing.
            for n in (n for n in rows if 10 * n >= self.size.rows):
                for iterations in (100, 60, 40) if n > FEW_ROWS else (100, 50):
                    model = _boosting(n, iterations, self.seed)
                    yield Member(name, self.on_tree_columns(model, MAX_BOOSTING_COLUMNS), n)
        else:
            for n in rows:
                model = self.odds[name] if name in self.odds else dict(default_estimators(self.seed))[name]
                if n > FEW_ROWS and name in ("lr", "lr_strong"):
                    model.set_params(logisticregression__max_iter=200)
                if n > FEW_ROWS and name in ("mauc", "kernel"):
                    model.set_params(maucclassifier__max_iter=200)
                yield Member(name, model, n)

    def on_tree_columns(self, model: Any, max_columns: int = 10**9) -> Any:
        """Put the narrower table for trees before the model, unless it has the same columns."""
        if self.tree_columns.width == self.size.columns <= max_columns:
            return model
        return make_pipeline(clone(self.tree_columns).set_params(most=max_columns, random_state=self.seed), model)

    def work_in_folds(self, member: Member, n_folds: int) -> float:
        """Estimate all fits of a member: one per fold, and one on all rows for a forest or a single fold."""
        steps = member.model.steps if isinstance(member.model, Pipeline) else [("model", member.model)]
        size, model = self.size, steps[-1][1]
        if isinstance(steps[0][1], TreeColumns):
            size = size._replace(columns=steps[0][1].width)
        train_share = 0.8 if n_folds == 1 else 1.0 - 1.0 / n_folds
        fold_rows = min(member.rows, int(train_share * size.rows), StackPlan((), n_folds).fold_rows)
        refitted = is_refitted(model, size.classes, n_folds)
        in_fold = work_of(member.name, size._replace(rows=fold_rows), model)
        return n_folds * in_fold + refitted * work_of(member.name, size._replace(rows=member.rows), model)


def _forest(name: str, seed: int, trees: int) -> Any:
    """Return a forest by name; ``rf_deep`` is scikit-learn's default, fully grown and without class weights."""
    if name == "rf_deep":
        return RandomForestClassifier(trees, random_state=seed)
    return dict(default_estimators(seed, trees))[name]


def _boosting(rows: int, iterations: int, seed: int) -> Any:
    """Return boosting; with few rows it makes small steps and small trees."""
    model = dict(default_estimators(seed))["hgb"]
    if rows > FEW_ROWS:
        rate = {200: 0.07, 100: 0.1, 60: 0.15}.get(iterations, 0.2)
        model.set_params(learning_rate=rate, max_leaf_nodes=31 if iterations == 200 else 15)
    return model.set_params(max_iter=iterations)


def _with_bounded_leaves(forest: Any, rows: int, classes: int, max_bytes: float = 2e8) -> Any:
    """Limit the leaves so that the forest fits into a model file: a node takes 64 bytes and 8 per class."""
    leaves = int(0.5 * max_bytes / (forest.n_estimators * (64 + 8 * classes)))
    return forest if leaves >= rows / forest.min_samples_leaf else forest.set_params(max_leaf_nodes=max(2, leaves))


def is_refitted(model: Any, n_classes: int, n_folds: int, min_folds: int = 2) -> bool:
    """Return whether a model is fitted on all rows rather than averaged over the folds.

    A forest is an average already, and five forests predict five times as slowly. With fewer than ``min_folds``, a
    model of one fold has seen too few rows. Boosting may have too many trees in all folds together for a model file:
    1,000 trees take a second to write, and another to read. On tables with three folds one more fit takes longer.
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if n_folds < min_folds or isinstance(last, ExtraTreesClassifier | RandomForestClassifier):
        return True
    if not isinstance(last, HistGradientBoostingClassifier):
        return False
    return bool(last.max_iter * (n_classes if n_classes > 2 else 1) * n_folds > (1_200 if n_folds > 3 else 3_600))


def work_of(name: str, size: Size, model: Any) -> float:
    """Estimate one fit of a member in seconds of one core.

    >>> forest = dict(default_estimators())["rf"]
    >>> work_of("rf", Size(20_000, 20, 5), forest) > 10 * work_of("rf", Size(200, 20, 5), forest)
    True
    """
    n, d, c = size
    if name in FORESTS:
        per_row = {"et": 2.2e-8, "et_deep": 3.0e-8, "rf": 3.5e-8, "rf_deep": 5.0e-8}[name]
        return model.n_estimators * (1.5e-3 + per_row * n * math.log2(max(n, 2)) * (1.0 + 0.4 * math.sqrt(d)))
    if name in TREES:
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
