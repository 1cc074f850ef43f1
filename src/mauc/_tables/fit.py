"""From a table to a fitted model: read, train, judge. ``mauc fit`` is a shell around this."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mauc._archive import MAX_SIZE
from mauc._tables.column_kinds import column_kinds, kinds_in_words
from mauc._tables.data import Data, Wanted, data_of
from mauc._tables.decide import costs_of, read_costs
from mauc._tables.doubts import Doubt, column_doubts, repeated_rows, suspects
from mauc._tables.errors import Usage
from mauc._tables.features import check_dates, same_columns
from mauc._tables.judging import Judged, cross_validate, cv_folds, hold_out
from mauc._tables.kept import KeptScores, fingerprints, write_kept
from mauc._tables.leaderboard import Leaderboard, Silent
from mauc._tables.leaks import find_leaks, quick_scorer
from mauc._tables.model_file import TableModel, write_model
from mauc._tables.models import Choice, make_classifier
from mauc._tables.read import Reading, Table, as_in_text, read_table
from mauc._tables.row_hashes import training_hashes
from mauc._tables.source import shown
from mauc._tables.training import Trainer
from mauc._tables.why import importance_within
from mauc._typing import Ints
from mauc.ensemble.fitting import Here
from mauc.ensemble.workers import Workers
from mauc.metrics import Importance
from mauc.model_selection import of_some_classes, some_of_each
from mauc.report import Report

__all__ = ["FittedTable", "Options", "fit_data", "fit_table", "read_data"]

TRAINING_SHARE = 0.75
"""Of the time limit; the rest is for judging, importance and the report."""
HURRIED_ROWS = 5_000
"""Training rows at most where the time limit is a few seconds."""


@dataclass(frozen=True)
class Options:
    """How to train and judge; :func:`fit_table` says what each means."""

    time_limit: float = 60.0
    effort: Literal["quick", "normal", "best"] = "normal"
    holdout: float = 0.25
    cv: int | None = None
    repeats: int = 1
    seed: int = 0
    decide: str = "balanced"
    drop_suspects: bool = False
    refit: bool = False
    importance: bool = True
    importance_pairs: tuple[tuple[str, str], ...] = ()
    choice: Choice | None = None
    """A linear model in place of the stack."""

    @property
    def hurried(self) -> bool:
        """Whether there is time for one small forest alone: a child process takes seconds to start."""
        return self.time_limit < 8.0

    @property
    def n_workers(self) -> int | None:
        """Child processes to train in; None: one for each core."""
        return 0 if self.choice is not None or self.hurried else None

    def __post_init__(self) -> None:
        if not 0 < self.time_limit < float("inf"):
            raise Usage(f"--time-limit must be a finite number of seconds above 0, got {self.time_limit:g}")
        if not 0 < self.holdout < 1:
            raise Usage(f"--holdout must be a number strictly between 0 and 1, got {self.holdout:g}")
        if self.effort not in ("quick", "normal", "best"):
            raise Usage(f"--effort must be quick, normal or best, got {self.effort!r}")
        if self.choice is not None:
            make_classifier(self.choice)


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A model of a table, and what it is worth on rows that it was not trained on.

    Attributes
    ----------
    model : TableModel
        Features, classifier and decision, as a model file holds them.
    judged : Judged
        ``found`` has all numbers of the report; ``decided`` accuracy and balanced accuracy of the decisions, beside
        those of always deciding for the largest class.
    board : Leaderboard or None
        None where a linear model was asked for.
    importance : list of Importance
        What each column is worth.
    doubts : list of Doubt
        Columns and rows that may deceive, known before training.
    leaks : list of Doubt
        Columns that may leak the answer and splits that flatter the score, known after it.
    training_rows : dict of class to int
    """

    data: Data
    options: Options
    model: TableModel
    judged: Judged
    board: Leaderboard | None
    importance: list[Importance]
    how_shuffled: str
    doubts: list[Doubt]
    leaks: list[Doubt]
    training_rows: dict[str, int]
    prints: dict[str, str] = field(repr=False)

    @property
    def classes(self) -> list[str]:
        """In the order of the columns of :meth:`predict_proba`."""
        return [str(c) for c in self.model.classifier.classes_]

    @property
    def cut(self) -> tuple[str, ...]:
        """What the time limit cut, in words; empty: another machine gives the same model."""
        return self.board.cut if self.board else ()

    def leaderboard(self) -> Table:
        """A data frame of all models, the one that was chosen first.

        ``validation`` is the MAUC on training rows held out from the model, by which the choice was made; ``mauc``,
        ``low`` and ``high`` are that on the test rows with its 95 % interval; ``difference`` and ``pvalue`` compare it
        with the chosen model on the same rows.
        """
        import pandas as pd

        found = self.judged.found
        tests = {test.name: test for test in found.tests}
        entries = {} if self.board is None else {entry.name: entry for entry in self.board.entries}
        rows = []
        for model in found.models:
            entry, test = entries.get(model.name), tests.get(model.name)
            rows.append(
                {
                    "model": model.name,
                    "validation": float("nan") if entry is None else entry.validation,
                    "mauc": model.mauc.score,
                    "low": model.mauc.low,
                    "high": model.mauc.high,
                    "difference": float("nan") if test is None else test.comparison.difference,
                    "pvalue": float("nan") if test is None else test.holm,
                    "seconds": float("nan") if entry is None else entry.seconds,
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def report(self) -> Report:
        """The page on the test rows."""
        judged = self.judged
        return Report(
            self.data.labels[judged.rows],
            judged.scores,
            labels=judged.classes,
            y_train=np.repeat(list(self.training_rows), list(self.training_rows.values())),
            groups=self._groups,
            title=f"{self.data.target} of {self.data.path.name}",
            details=self.details(),
            importance=self.importance,
        )

    @property
    def _groups(self) -> NDArray[Any] | None:
        """Of the test rows."""
        return None if self.data.groups is None else self.data.groups[self.judged.rows]

    def details(self) -> list[tuple[str, str]]:
        """How the model was made, for the end of the report."""
        data, board = self.data, self.board
        return [
            ("table", str(data.path)),
            ("target", data.target),
            ("model", self.model.about + (", trained again on all rows after judging" if self.options.refit else "")),
            *([("chosen by", board.chosen_by)] if board else []),
            *((("cut", f"{'; '.join(self.cut)}. {MAY_DIFFER}"),) if self.cut else ()),
            ("training rows", str(sum(self.training_rows.values()))),
            ("test rows", f"{len(self.judged.rows)} ({self.how})"),
            ("columns", kinds_in_words(column_kinds(data.features))),
            *([("left out", data.left_out)] if data.left_out else []),
        ]

    @property
    def how(self) -> str:
        """How the test rows were held out, in words."""
        cv, repeats = self.options.cv, self.options.repeats
        if cv:
            folds = f"cross-validation in {cv} folds" + (" of whole groups" if self.data.groups is not None else "")
            return folds + (f", {repeats} times" if repeats > 1 else "")
        if self.data.times is not None:
            return "the latest rows"
        return "rows of whole groups" if self.data.groups is not None else "random, stratified rows"

    def predict_proba(self, table: Table) -> Table:
        """A data frame of the probability of each class, for a data frame with the columns of the training table."""
        import pandas as pd

        return pd.DataFrame(self._scores(table), columns=self.classes, index=table.index)

    def predict(self, table: Table) -> Table:
        """A series of the classes decided for."""
        import pandas as pd

        decided = self.model.decided(self._scores(table))
        return pd.Series(np.asarray(self.classes, dtype=object)[decided], index=table.index, name=self.data.target)

    def _scores(self, table: Table) -> Any:
        text = as_in_text(table.rename(columns=str).reset_index(drop=True))
        known, _ = same_columns(text, self.model.kinds, Path("the table"))
        check_dates(known, self.model.features, Path("the table"))
        return np.asarray(self.model.scores(known), dtype=np.float64)

    def save(self, path: str | Path) -> Path:
        """Write the model for ``mauc predict``, and beside it the scores that it was judged by; returns its path."""
        path = Path(path)
        write_model(path, self.model)
        write_kept(path, self.kept())
        return path

    def kept(self) -> KeptScores:
        """The scores of the test rows, for ``mauc compare``."""
        judged = self.judged
        labels = self.data.labels
        return KeptScores(
            self.model.about,
            self.data.target,
            self.how,
            len(labels),
            judged.rows,
            labels[judged.rows],
            judged.classes,
            judged.repeats,
            self.prints,
            self._groups,
        )


MAY_DIFFER = "A faster machine, or a longer --time-limit, may choose another model."


def fit_table(
    table: Any,
    target: str,
    *,
    time_limit: float = 60.0,
    effort: Literal["quick", "normal", "best"] = "normal",
    group: str | None = None,
    time_column: str | None = None,
    drop: Sequence[str] = (),
    holdout: float = 0.25,
    cv: int | None = None,
    repeats: int = 1,
    seed: int = 0,
    decide: str = "balanced",
    refit: bool = False,
    importance: bool = True,
    min_rows: int = 1,
    drop_unlabelled: bool = False,
    drop_suspects: bool = False,
) -> FittedTable:
    """Train the best model it can on a table inside the time, and judge it by rows that it was not trained on.

    Parameters
    ----------
    table : data frame of pandas, or path of a .csv, .tsv, .xlsx, .parquet or .npz file
        Columns may hold numbers, categories, dates or text, with gaps.
    target : str
        Column that holds the class of each row.
    time_limit : float, default=60
        Seconds. A deadline: what is not ready is cut, and ``cut`` of the result says what.
    effort : {"quick", "normal", "best"}, default="normal"
        How much is trained; normal is about a minute on two cores for up to 100,000 rows. Unless the time limit cuts
        something, the same table, effort and seed give the same model on every machine.
    group : str, optional
        Column of what belongs together, such as the patient; its rows stay on one side, it is no feature, and intervals
        and tests are those of groups.
    time_column : str, optional
        The latest rows by this column are the test rows; it is no feature.
    drop : sequence of str
        Columns to leave out.
    holdout : float, default=0.25
        Share of the rows to hold out for judging.
    cv : int, optional
        Judge by cross-validation in so many folds in place of one hold-out; the model written has seen all rows.
    repeats : int, default=1
        How often to cross-validate, by other folds.
    seed : int, default=0
    decide : "balanced", "accuracy" or path of a table of costs, default="balanced"
        What decisions are chosen for, by training rows held out.
    refit : bool, default=False
        After judging, train again on all rows.
    importance : bool, default=True
        Shuffle each column to see what it is worth.
    min_rows : int, default=1
        Leave out classes with fewer rows.
    drop_unlabelled, drop_suspects : bool, default=False
        Leave out rows without a class; columns that raise doubts, such as a row number.

    Returns
    -------
    FittedTable
        With ``leaderboard()``, ``report``, ``predict_proba(frame)``, ``predict(frame)`` and ``save(path)``.

    Notes
    -----
    Needs the extra ``cli``: ``pip install 'mauc[cli]'``. Members are trained in child processes; a script needs no
    ``if __name__ == "__main__"`` for them.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mauc import fit_table
    >>> frame = load_wine(as_frame=True).frame
    >>> fitted = fit_table(frame, "target", effort="quick", importance=False)  # doctest: +SKIP
    >>> fitted.leaderboard()  # doctest: +SKIP
    >>> fitted.predict_proba(frame.head())  # doctest: +SKIP
    """
    began = time.monotonic()
    options = Options(time_limit, effort, holdout, cv, repeats, seed, decide, drop_suspects, refit, importance)
    wanted = Wanted(target, time_column, group, tuple(drop), min_rows, drop_unlabelled)
    with Workers(options.n_workers) as workers:
        if isinstance(table, str | Path):
            data = read_data(Path(table), wanted)
        else:
            data = data_of(as_in_text(table.rename(columns=str).reset_index(drop=True)), wanted, Path("the table"))
        return fit_data(data, options, began=began, workers=workers)


def read_data(path: Path, wanted: Wanted, max_size: float = MAX_SIZE, how: Reading | None = None) -> Data:
    """The rows of a file."""
    codes = [wanted.group] if wanted.group else []
    table = read_table(path, codes=codes, max_size=max_size, names=[wanted.target], how=how)
    return data_of(table, wanted, shown(path))


def fit_data(
    data: Data, options: Options, *, began: float, workers: Workers | None = None, watch: Silent | None = None
) -> FittedTable:
    """Train and judge; the time limit counts from when it ``began``, in the seconds of :func:`time.monotonic`."""
    watch = watch or Silent()
    costs = read_costs(options.decide)
    matrix = None if costs is None else costs_of(costs, np.unique(data.labels), options.decide)
    seed, labels = options.seed, data.labels
    if options.cv:
        folds = cv_folds(labels, data.groups, options.cv, options.repeats, seed)
    else:
        folds = [[data.split(options.holdout, seed)]]
    train, test = folds[0][0]
    hurry: tuple[str, ...] = ()
    if options.hurried and not options.cv and len(train) > HURRIED_ROWS:
        hurry = (f"the time limit leaves {HURRIED_ROWS:,} of {len(train):,} training rows",)
        train = train[some_of_each(labels[train], HURRIED_ROWS, seed)]
    watch.does("looking at the columns")
    doubts, unseen = _doubts(data, train, options, began, workers)
    prints = fingerprints(data.features)
    again = repeated_rows(data.features, train, test, but=suspects(doubts))
    if options.drop_suspects:
        data = data.without(suspects(doubts))
    trainer = Trainer(
        data.features,
        labels,
        data.groups,
        data.times,
        options.choice,
        options.effort,
        options.decide,
        matrix,
        seed,
        watch,
        workers,
        data.order,
    )
    # What is kept back is for writing the model and the report, which takes seconds where there are many trees.
    ends = began + options.time_limit - min(6.0, 0.2 * options.time_limit)
    now = time.monotonic()
    share = TRAINING_SHARE * (0.5 if options.refit else 1.0)
    until = now + share * max(0.0, ends - now)
    judged = cross_validate(trainer, folds, until) if options.cv else hold_out(trainer, train, test, until)
    final = judged.final
    if options.refit:
        watch.under("on all rows, ")
        now = time.monotonic()
        final = trainer.train(np.arange(len(labels)), test, now + 0.8 * max(0.0, ends - now))
    importance, how = _importance(judged, trainer, options, ends, watch)
    leaks = _leaks(data, judged, train, test, importance, ends - 0.05 * options.time_limit, seed, watch)
    rows = np.arange(len(labels)) if options.cv or options.refit else train
    trained = training_hashes(data.features.iloc[rows], list(data.kinds))
    model = TableModel(final.features, final.classifier, data.kinds, data.target, final.about, final.decision, trained)
    in_training = labels if options.cv else labels[train]
    counts = {str(c): int((in_training == c).sum()) for c in judged.classes}
    board = judged.final.board
    if board is not None and final.board is not None:
        again_cut = final.board.cut if final is not judged.final else ()
        board = replace(board, cut=(*hurry, *board.cut, *again_cut, *unseen))
    return FittedTable(data, options, model, judged, board, importance, how, doubts + again, leaks, counts, prints)


def _leaks(
    data: Data,
    judged: Judged,
    train: Ints,
    test: Ints,
    importance: list[Importance],
    deadline: float,
    seed: int,
    watch: Silent,
    most_columns: int = 300,
) -> list[Doubt]:
    """Columns that may leak the answer, and splits that flatter the score; none where there is no time to look."""
    if time.monotonic() > deadline or data.features.shape[1] > most_columns:
        return []
    watch.does("looking for leaks")
    return find_leaks(
        data.features,
        data.labels,
        train,
        test,
        data.target,
        score=judged.found.headline.mauc.score,
        importance=importance,
        fit_and_score=quick_scorer(data.labels, deadline, seed),
        random_split=data.groups is None and data.times is None,
        seed=seed,
    )


def _doubts(
    data: Data, train: Ints, options: Options, began: float, workers: Workers | None
) -> tuple[list[Doubt], tuple[str, ...]]:
    """Columns that may deceive, and, where there are too many to look at in time, that in words."""
    some = train[of_some_classes(data.labels[train], options.seed)]
    # Columns by themselves take milliseconds each, and a table may have thousands.
    runner = workers if workers is not None and workers.n_workers and data.features.shape[1] > 100 else Here(None)
    work = (data.features.iloc[some], data.labels[some], data.target, options.seed)
    answers = list(runner.run([(_column_doubts, work)], began + 0.25 * options.time_limit))
    if not answers:
        return [], ("the search for columns that may leak the answer was not ready in time",)
    if answers[0].error is not None:
        raise answers[0].error
    return answers[0].value, ()


def _column_doubts(_: Any, *work: Any) -> list[Doubt]:
    return column_doubts(*work)


def _importance(
    judged: Judged, trainer: Trainer, options: Options, ends: float, watch: Silent
) -> tuple[list[Importance], str]:
    """What each column is worth to the model, by rows that it did not see, in the time that is left."""
    if not (options.importance or options.importance_pairs):
        return [], ""
    seen, there = judged.seen, set(trainer.labels[judged.unseen])
    # The rest is for writing the model and the report.
    seconds = 0.6 * max(0.0, ends - time.monotonic())
    stop = time.monotonic() + seconds

    def shuffles(column: str) -> None:
        if time.monotonic() > stop:
            raise TimeoutError
        watch.does(f"shuffling {column}")

    try:
        return importance_within(
            0.8 * seconds,
            lambda table: seen.classifier.predict_proba(seen.features.transform(table)),
            trainer.table.iloc[judged.unseen],
            trainer.labels[judged.unseen],
            seen.classes,
            between=[pair for pair in options.importance_pairs if there.issuperset(pair)],
            groups=None if trainer.groups is None else trainer.groups[judged.unseen],
            seed=trainer.seed,
            watch=shuffles,
        )
    except TimeoutError:
        return [], "the columns were not all shuffled in time: raise --time-limit"
