"""Train and test a model on a table. ``mauc fit`` is a shell around this."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mauc._archive import MAX_SIZE
from mauc._tables.columns import describe_columns
from mauc._tables.data import Data, prepare
from mauc._tables.decide import read_costs
from mauc._tables.errors import in_python
from mauc._tables.flags import (
    NO_SCORE,
    Flag,
    flag_columns,
    flag_duplicates,
    flag_groups,
    flag_leaks,
    quick_scorer,
)
from mauc._tables.importance import NO_TIME, importance_within
from mauc._tables.model_file import TableModel, write_model
from mauc._tables.options import Options
from mauc._tables.read import Table, as_read, count_of, read_table, warn_of_missing_signs
from mauc._tables.saved_scores import (
    Hashes,
    SavedScores,
    cell_hashes,
    column_digests,
    row_hashes,
    write_saved_scores,
)
from mauc._tables.text import Reading, display_path
from mauc._tables.training import Evaluation, Leaderboard, Trainer, cross_validate, cv_folds, evaluate_holdout
from mauc._typing import Ints
from mauc._validation import invalid
from mauc.ensemble.fitting import Watch
from mauc.ensemble.workers import Workers
from mauc.metrics import Importance, Interval
from mauc.model_selection import of_some_classes, some_of_each
from mauc.report import Report

AFTER_CTRL_C = "permutation importance was not computed after Ctrl-C"


@dataclass(frozen=True, eq=False, repr=False)
class FittedTable:
    """A model of a table, and its scores on test rows.

    Attributes
    ----------
    model : TableModel
        Classifier and decision, as a model file holds them.
    evaluation : Evaluation
        ``judgement`` has the test scores of all models.
    board : Leaderboard
    importance : list of Importance
        Permutation importance of each column.
    importance_note : str
        How it was computed.
    flags : list of Flag
        Columns and rows that may make the score too good, found before and after training.
    training_rows : dict of class to int
        Rows that the tested models were trained on.
    """

    data: Data
    options: Options
    model: TableModel
    evaluation: Evaluation
    board: Leaderboard
    importance: list[Importance]
    importance_note: str
    flags: list[Flag]
    training_rows: dict[str, int]
    digests: dict[str, str]

    def __repr__(self) -> str:
        mauc = self.evaluation.judgement.headline.mauc
        flags = f"; {count_of(len(self.flags), 'flag')}" if self.flags else ""
        score = f"test MAUC {mauc.score:.4f} [{mauc.low:.4f}, {mauc.high:.4f}]"
        return f"<FittedTable of {self.data.target!r}: {self.model.about}; {score}{flags}>"

    @property
    def cut(self) -> tuple[str, ...]:
        """What the time limit cut, in words; if empty, another machine gives the same model."""
        return self.board.cut

    @property
    def cut_text(self) -> str:
        """What was cut, and whether a longer limit or a faster machine may change the model."""
        hint = "A faster machine, or a longer time limit, may choose another model."
        if any("Ctrl-C" in reason for reason in self.cut):
            hint = "Without Ctrl-C, all models are trained."
        if self.options.few_seconds:
            hint = "A faster machine may choose another model; with 10 seconds or more, the stack is trained."
        return f"{'; '.join(self.cut)}. {hint}"

    def leaderboard(self) -> Table:
        """Return a data frame of all models, the chosen one first.

        ``validation`` is the MAUC on training rows held out from the model, by which it was chosen; ``mauc``, ``low``
        and ``high`` are the MAUC on the test rows with its 95 % interval; ``difference`` and ``pvalue`` compare it with
        the chosen model on the same rows.
        """
        found = self.evaluation.judgement
        board = pd.DataFrame(
            {"model": one.name, "mauc": one.mauc.score, "low": one.mauc.low, "high": one.mauc.high}
            for one in found.models
        )
        of_model = board["model"].map
        board.insert(1, "validation", of_model({entry.name: entry.validation for entry in self.board.entries}))
        board["difference"] = of_model({test.a: test.difference for test in found.tests})
        board["pvalue"] = of_model({test.a: test.holm for test in found.tests})
        board["seconds"] = of_model({entry.name: entry.seconds for entry in self.board.entries})
        return board

    @cached_property
    def report(self) -> Report:
        """The report on the test rows, with the flags beside the score: a reader may not see the terminal."""
        found = self.evaluation.judgement
        cut = [f"Cut: {self.cut_text}"] if self.cut else []
        return Report.of(
            replace(found, notes=(*found.notes, *cut, *self.flag_texts())),
            title=f"{self.data.path.name}: predicting {self.data.target}",
            details=self.details(),
            importance=self.importance,
            how_shuffled=self.importance_note,
        )

    def flag_texts(self, most: int = 8) -> list[str]:
        """Return the first flags in words, and how many more there are."""
        texts = [flag.text for flag in self.flags]
        more = len(texts) - most
        return texts if more <= 0 else [*texts[:most], f"{more} more flags are not shown"]

    def details(self) -> list[tuple[str, str]]:
        """Return details about the training, for the end of the report."""
        data, options = self.data, self.options
        return [
            ("table", str(data.path)),
            ("target", data.target),
            ("model", self.model.about),
            *([("model file", self.fitted_on)] if self.fitted_on else []),
            ("chosen on", self.board.chosen_by),
            *([("cut", self.cut_text)] if self.cut else []),
            ("training rows", f"{sum(self.training_rows.values()):,}"),
            ("test rows", f"{len(self.evaluation.rows):,} ({self.how})"),
            ("columns", self.columns),
            ("options", f"effort {options.effort}, time limit {options.time_limit:g} s, seed {options.seed}"),
            ("predicted classes", f"chosen for {self.goal}"),
            ("seconds", ", ".join(f"{each.name} {each.seconds:.1f}" for each in self.board.entries if each.seconds)),
            *([("left out", data.left_out)] if data.left_out else []),
        ]

    @property
    def columns(self) -> str:
        """The columns of each kind, in words."""
        return describe_columns(self.model.columns)

    @property
    def goal(self) -> str:
        """What predicted classes are chosen for, in words."""
        goals = {"balanced": "balanced accuracy", "accuracy": "accuracy"}
        return goals.get(self.options.decide, f"the costs in {self.options.decide}")

    @property
    def fitted_on(self) -> str:
        """What the model was fitted on after the test, in words; empty if it is the model that was tested."""
        n_rows = self.evaluation.final.n_rows
        again = n_rows > sum(self.training_rows.values())
        return f"fitted again on all {n_rows:,} rows after the test" if again else ""

    @property
    def how(self) -> str:
        """How the test rows were chosen, in words."""
        cv = self.options.cv
        if cv:
            return f"{cv}-fold cross-validation" + (" of whole groups" if self.data.groups is not None else "")
        if self.data.times is not None:
            return "the latest rows"
        return "rows of whole groups" if self.data.groups is not None else "random, stratified rows"

    def predict_proba(self, table: Table) -> Table:
        """Return a data frame of probabilities, which sum to 1 in each row.

        The table needs the columns of the training table. To rank rows use :meth:`decision_function`.
        """
        return self.model.predict_proba(table)

    def decision_function(self, table: Table) -> Table:
        """Return a data frame of the scores whose multiclass AUC was tested.

        The score of a class is its calibrated probability against all others, so rows need not sum to 1; or that among
        all classes, if it ranked the validation rows better. The latter favours frequent classes.
        """
        return self.model.decision_function(table)

    def predict(self, table: Table) -> Table:
        """Return a series of the predicted classes."""
        return self.model.predict(table)

    def save(self, path: str | Path) -> Path:
        """Write the model, and its test scores for ``mauc compare`` beside it; return its path.

        :func:`mauc.load_model` and ``mauc predict`` read the model. With ``row_records=False``, no scores are written.
        """
        path, found, data = Path(path), self.evaluation, self.data
        with in_python():
            write_model(path, self.model)
        if not self.options.row_records:
            return path
        saved = SavedScores(
            about=self.model.about,
            target=data.target,
            how=self.how,
            n_rows=data.n_rows,
            rows=data.positions[found.rows],
            labels=data.labels[found.rows],
            classes=found.classes,
            scores=found.scores,
            predicted=found.predicted,
            columns=self.digests,
            # Numbers, which tell rows of one group as well as the names of the groups, and nothing else.
            groups=None if data.groups is None else np.unique(data.groups[found.rows], return_inverse=True)[1],
        )
        write_saved_scores(path, saved)
        return path


def fit_table(
    table: Any,
    target: str,
    *,
    time_limit: float | None = None,
    effort: Literal["quick", "normal", "best"] | None = None,
    group: str | None = None,
    time_column: str | None = None,
    drop: str | Sequence[str] = (),
    holdout: float = 0.25,
    cv: int | None = None,
    seed: int = 0,
    decide: str = "balanced",
    refit: bool | None = None,
    importance: bool = True,
    min_rows: int = 1,
    drop_unlabelled: bool = False,
    drop_duplicates: bool = False,
    row_records: bool = True,
    dates: Literal["day-first", "month-first"] | None = None,
) -> FittedTable:
    """Train models on a table within a time limit, choose the best, and test it on held-out rows.

    Parameters
    ----------
    table : data frame of pandas, or path of a .csv, .tsv, .xlsx or .parquet file
        Columns may hold numbers, categories, dates or text, with missing values.
    target : str
        Column that holds the class of each row.
    time_limit : float, optional
        Seconds; default: 60, or 600 with ``effort="best"``. A deadline: unfinished work is cut, and ``cut`` of the
        result lists it.
    effort : {"quick", "normal", "best"}, optional
        How much to train. Default: normal, which takes up to 50 seconds on two cores for up to 100,000 rows; quick if
        the limit leaves less than 40 seconds for each training. Unless the time limit cuts something, the same table,
        effort and seed give the same model on every machine.
    group : str, optional
        Column of groups, such as the patient. A group is never split between training and test rows, the column is not
        a feature, and intervals and tests account for the groups.
    time_column : str, optional
        The latest rows by this column are the test rows; the column is not a feature.
    drop : str or sequence of str
        Columns to leave out.
    holdout : float, default=0.25
        Share of the rows to test on.
    cv : int, optional
        Test by cross-validation with this many folds; the final model is trained on all rows.
    seed : int, default=0
    decide : "balanced", "accuracy" or path of a table of costs, default="balanced"
        Goal of the predicted classes; the decision rule is learnt on validation rows.
    refit : bool, optional
        After the test, fit the models again on all rows, with the weights that were learnt; otherwise the result is the
        model that was tested. Default: if there are at most 10,000 training rows. Not with a limit below 10 s.
    importance : bool, default=True
        Compute permutation importance.
    min_rows : int, default=1
        Leave out classes with fewer rows.
    drop_unlabelled : bool, default=False
        Leave out rows without a class.
    drop_duplicates : bool, default=False
        Keep one of several equal rows.
    row_records : bool, default=True
        Whether ``save`` writes records of single rows: the scores and classes of test rows, for ``mauc compare``, and
        hashes by which the model recognises training rows. Set it to False for personal data.
    dates : {"day-first", "month-first"}, optional
        How to read dates such as 01/02/2024. Default: as the column shows; if all its values are ambiguous, month
        first, with a warning.

    Returns
    -------
    FittedTable
        With ``leaderboard()``, ``report``, ``decision_function(frame)``, ``predict_proba(frame)``, ``predict(frame)``
        and ``save(path)``.

    Warns
    -----
    UserWarning
        For columns that may leak the answer, and other reasons why the score may be too good; ``flags`` of the result
        lists them.

    Notes
    -----
    Needs the extra ``cli``: ``pip install 'mauc[cli]'``. Models are trained in child processes; a script needs no
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
    given, began = dict(locals()), time.monotonic()
    with in_python(*Options.__dataclass_fields__):
        named = {"target": target, "group": group, "time_column": time_column}
        columns: dict[str, Any] = {name: _column(name, value) for name, value in named.items()}
        dropped: Sequence[Any] = [drop] if isinstance(drop, str | int) else () if drop is None else drop
        columns["drop"] = tuple(_column("drop", name) for name in dropped)
        given |= Options.defaults(effort, time_limit, cv)
        options = Options(**{name: value for name, value in given.items() if name != "table"} | columns)
    with in_python(*Options.__dataclass_fields__), Workers(options.n_workers) as workers:
        if isinstance(table, str | Path):
            data = read_data(Path(table), options)
        else:
            data = prepare(as_read(table), options, Path("the table"))
        fitted = fit_data(data, options, began, workers, Watch())
    for text in fitted.flag_texts():
        warnings.warn(text, stacklevel=2)
    return fitted


def _column(parameter: str, name: Any) -> str | None:
    """Return the name of a column as text; the columns of a data frame may be numbers."""
    if name is None and parameter in ("group", "time_column"):
        return None
    if not isinstance(name, str | int):
        raise invalid(parameter, "must name a column", repr(name), "pass a text, such as target='class'")
    return str(name)


def read_data(path: Path, options: Options, max_size: float = MAX_SIZE, how: Reading | None = None) -> Data:
    """Read the rows of a file."""
    codes = [options.group] if options.group else []
    table = read_table(path, codes=codes, max_size=max_size, names=[options.target], how=how)
    warn_of_missing_signs(table, {*codes, options.target}, display_path(path))
    reading = table.attrs["reading"]
    return replace(prepare(table, options, display_path(path)), reading=reading)


def fit_data(data: Data, options: Options, began: float, workers: Workers, progress: Watch) -> FittedTable:
    """Train and test; the time limit counts from ``began``, in the seconds of :func:`time.monotonic`."""
    costs = read_costs(options.decide, data.labels)
    seed, labels = options.seed, data.labels
    folds = cv_folds(data.codes, data.groups, options.cv, seed) if options.cv else [data.split(options.holdout, seed)]
    train, test = folds[0]
    n_unknown = len(labels) - len(train) - len(test)
    cut: list[str] = []
    if options.most_rows:
        data, train, test = _few_rows(data, train, test, options.most_rows, seed, cut)
        folds, labels = [(train, test)], data.labels
    progress.step("checking the columns")
    flags = _flag_columns(data, train, options, began, cut)
    cells = cell_hashes(data.features)
    flagged = {str(flag.column) for flag in flags}
    grouped, dropped = data.groups is not None, options.drop_duplicates
    flags += flag_duplicates(cells, folds, ignore=flagged, dropped=dropped, grouped=grouped)
    trainer = Trainer(data, options, costs, progress, workers)
    # The rest of the time is for writing the model and the report: many trees take seconds.
    ends = began + options.time_limit - min(6.0, 0.2 * options.time_limit)
    now = time.monotonic()
    # A quarter is for testing, importance and the fit on all rows.
    until = now + 0.75 * max(0.0, ends - now)
    if options.cv:
        evaluation = cross_validate(trainer, folds, until)
    else:
        # On a busy machine, threads that wait for each other take more time than a small forest.
        with threadpool_limits(1 if options.few_seconds else None):
            evaluation = evaluate_holdout(trainer, train, test, until, n_unknown)
    cut = [*evaluation.final.board.cut, *cut]
    tested_on = evaluation.final.n_rows
    if options.fits_again(tested_on) and workers.stopped:
        cut.append("the fit on all rows was not begun when Ctrl-C came")
    elif options.fits_again(tested_on):
        progress.prefix = "after the test: "
        now = time.monotonic()
        evaluation = replace(evaluation, final=trainer.fit_again(evaluation.final, now + 0.5 * max(0.0, ends - now)))
        cut.extend(evaluation.final.board.cut)
        progress.prefix = ""
    final = evaluation.final
    if options.few_seconds:
        ends -= 0.2 * options.time_limit  # on a slow machine it takes a second to import what writes the model
    importance, note = _importance(evaluation, trainer, ends)
    leaks = _flag_leaks(trainer, evaluation, train, test, importance, ends - 0.05 * options.time_limit)
    if leaks is None or not importance:
        note = "; ".join(filter(None, [note, "columns were not checked for leaks after training"]))
    flags += leaks or []
    on_all_rows = final.n_rows > len(train)
    rows = np.arange(len(labels)) if on_all_rows else train
    used = [name for name in data.kinds if name not in final.classifier.columns_.empty_]
    hashes = _hashes_of_single_rows(row_hashes({name: cells[name] for name in used}), rows)
    hashes = hashes if options.row_records else hashes[:0]
    model = TableModel(
        final.classifier,
        data.kinds,
        data.target,
        final.board.about,
        final.decision,
        hashes,
        data.class_type,
        data.reading.missing,
        data.reading.commas,
        data.reading.pointed,
    )
    names, n_each = np.unique(labels if options.cv and on_all_rows else labels[train], return_counts=True)
    return FittedTable(
        data=data,
        options=options,
        model=model,
        evaluation=evaluation,
        board=replace(evaluation.final.board, cut=tuple(cut)),
        importance=importance,
        importance_note=note,
        flags=flags,
        training_rows=dict(zip(names.tolist(), n_each.tolist(), strict=True)),
        digests=column_digests(cells) if len(labels) == data.n_rows else {},
    )


def _flag_columns(data: Data, train: Ints, options: Options, began: float, cut: list[str]) -> list[Flag]:
    """Flag columns before training, in a fifth of the time; ``cut`` gets a note if that is not enough."""
    some = train[of_some_classes(data.codes[train], options.seed)]
    now = time.monotonic()
    hopeless = options.few_seconds and data.features.shape[1] > 300
    until = now if hopeless else now + 0.2 * (began + options.time_limit - now)
    columns, codes = data.features.iloc[some], data.codes[some]
    many_columns = 0 if options.few_seconds else 100
    flags, n_checked = flag_columns(
        columns, codes, data.target, options.seed, deadline=until, many_columns=many_columns
    )
    if n_checked < columns.shape[1]:
        cut.append(f"{n_checked:,} of {columns.shape[1]:,} columns were checked for leaks of the answer in time")
    return flags


def _hashes_of_single_rows(hashes: Hashes, rows: Ints) -> Hashes:
    """Return the hashes of these rows, without those of equal rows: equal rows may be different cases."""
    distinct, times = np.unique(hashes, return_counts=True)
    return np.intersect1d(distinct[times == 1], hashes[rows])


def _few_rows(data: Data, train: Ints, test: Ints, most: int, seed: int, cut: list[str]) -> tuple[Data, Ints, Ints]:
    """Return up to ``most`` training rows and half as many test rows, fewer of many columns, as data of their own.

    Every look at all rows would take a share of the few seconds. ``cut`` gets a note of what is left out.
    """
    most = max(1_000, 3 * (data.codes.max() + 1), min(most, 400 * most // data.features.shape[1]))
    some = []
    for name, rows, most_rows in (("training", train, most), ("test", test, most // 2)):
        some.append(rows[some_of_each(data.codes[rows], most_rows, seed)])
        if len(some[-1]) < len(rows):
            cut.append(f"the time limit allows {len(some[-1]):,} of {len(rows):,} {name} rows")
    rows = np.sort(np.concatenate(some))
    return data.sample(rows), np.searchsorted(rows, some[0]), np.searchsorted(rows, some[1])


def _flag_leaks(
    trainer: Trainer,
    evaluation: Evaluation,
    train: Ints,
    test: Ints,
    importance: list[Importance],
    deadline: float,
    most_columns: int = 300,
) -> list[Flag] | None:
    """Flag columns and splits after training; None if there is no time, or with many columns."""
    data, seed = trainer.data, trainer.options.seed
    workers = trainer.workers
    if workers.stopped or time.monotonic() > deadline or data.features.shape[1] > most_columns:
        return None
    trainer.progress.step("looking for leaks")
    table, labels = data.features, data.labels
    quick = quick_scorer(labels, deadline, seed)

    def scorer(*split: Any) -> Interval:
        return NO_SCORE if workers.stopped else quick(*split)

    score = evaluation.judgement.headline.mauc.score
    flags = flag_leaks(table, labels, train, test, data.target, score, importance, scorer, seed)
    if data.groups is None and data.times is None:
        flags += flag_groups(table, labels, train, test, scorer, seed)
    return flags


def _importance(evaluation: Evaluation, trainer: Trainer, ends: float) -> tuple[list[Importance], str]:
    """Return the importance of each column on rows that the model did not see, and how it was computed."""
    options, data = trainer.options, trainer.data
    if not options.importance:
        return [], ""
    if trainer.workers.stopped:
        return [], AFTER_CTRL_C
    # The rest is for writing the model and the report.
    seconds = 0.6 * (ends - time.monotonic())
    if seconds < 0.05 * options.time_limit:
        return [], NO_TIME
    probe, rows = evaluation.probe, evaluation.probe_rows

    def shuffling(column: str) -> None:
        if trainer.workers.stopped:
            raise InterruptedError
        trainer.progress.step(f"shuffling {column}")

    try:
        return importance_within(
            seconds,
            probe.classifier.predict_proba,
            data.features.iloc[rows],
            data.labels[rows],
            probe.classes,
            groups=None if data.groups is None else data.groups[rows],
            seed=options.seed,
            watch=shuffling,
        )
    except InterruptedError:
        return [], AFTER_CTRL_C
