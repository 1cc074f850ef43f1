"""The steps of ``mauc fit``: read, train, write, and tell."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mauc._cli.files import check_ending, check_writable
from mauc._cli.output import TextTable, current
from mauc._cli.progress import watching
from mauc._cli.summary import advice, as_json, comparison, headline, leaderboard, sizes, worst_pairs
from mauc._cli.summary import importance as of_columns
from mauc._io import write_whole
from mauc._tables.data import Data, Wanted
from mauc._tables.doubts import Doubt, suspects
from mauc._tables.errors import Usage
from mauc._tables.fit import MAY_DIFFER, FittedTable, Options, fit_data, read_data
from mauc._tables.kept import place_of, write_kept
from mauc._tables.leaderboard import Leaderboard
from mauc._tables.model_file import load_skops, write_model
from mauc._tables.parts import Parts, check_fits, no_target
from mauc._tables.read import nearest
from mauc._tables.source import shown
from mauc._tables.text import Reading
from mauc._text import visible
from mauc.ensemble.workers import Workers
from mauc.report import render

__all__ = ["Job", "check_pair"]

MOST_DOUBTS = 8


@dataclass(frozen=True, eq=False)
class Job:
    """One run of the command: what to read, how to train, where to write."""

    table: Path
    parts: Parts
    wanted: Wanted
    reading: Reading
    max_size: float
    options: Options
    model: Path
    report: Path | None
    began: float
    """When the command began, in the seconds of :func:`time.monotonic`: the time limit counts from then."""

    def check(self) -> None:
        """The target is named, and all files can be written and are none of those read."""
        if not self.wanted.target:
            raise no_target(self.parts, self.reading, self.max_size)
        tables, scores = self.parts.paths, place_of(self.model)
        check_writable(self.model, "--out", tables)
        check_ending(self.model, "--out", "a model file", "skops")
        if scores.parent.is_dir():
            check_writable(scores, "--out", (*tables, self.model))
        if self.report is not None:
            check_writable(self.report, "--report", (*tables, self.model, scores))
            check_ending(self.report, "--report", "a page", "html")

    def run(self) -> None:
        """Read the table, train and judge, write model, scores and report, and say what came of it."""
        check_fits(self.parts)
        with Workers(self.options.n_workers, on_stop=_stopped) as workers:
            fitted = self.trained(self.read(), workers)
        _tell_doubts(fitted.doubts, dropped=self.options.drop_suspects)
        for leak in fitted.leaks:
            current().note(leak.text)
        _note(fitted)
        _tell(fitted, self.written(fitted))

    def read(self) -> Data:
        """The rows of the table."""
        with current().working(f"reading {shown(self.table)}"):
            data = read_data(self.table, self.wanted, self.max_size, self.reading)
            check_pair(self.options.importance_pairs, data.labels)
        return data

    def trained(self, data: Data, workers: Workers) -> FittedTable:
        """The model, judged."""
        # It takes seconds to import, and there is nothing to do here while the workers train.
        threading.Thread(target=load_skops, daemon=True).start()
        with watching(current(), self.began + self.options.time_limit) as watch:
            return fit_data(data, self.options, began=self.began, workers=workers, watch=watch)

    def written(self, fitted: FittedTable) -> dict[str, Path]:
        """The files that hold it, by what they are."""
        write_model(self.model, fitted.model)
        files = {"model": self.model, "scores": write_kept(self.model, fitted.kept())}
        if self.report is not None:
            write_whole(self.report, _page(fitted))
            files["report"] = self.report
        return files


def _stopped() -> None:
    current().note("stopped: the best model so far is kept; Ctrl-C again ends without one")


def _note(fitted: FittedTable) -> None:
    """What is worth knowing, and no result."""
    output, judged = current(), fitted.judged
    if judged.lost:
        output.note(
            f"{judged.lost} held-out rows are not judged: no training row has their class, or the classes are hundreds "
            "and some are drawn"
        )
    there = set(fitted.data.labels[judged.unseen])
    for name in sorted({name for pair in fitted.options.importance_pairs for name in pair} - there):
        output.note(f"--importance-pair: no test row is of class {name!r}")
    for each in fitted.cut:
        output.note(f"cut: {each}")
    if fitted.cut:
        output.note(MAY_DIFFER)


def _page(fitted: FittedTable) -> str:
    """The report. It is handed on without its terminal: what makes the score doubtful stands beside it."""
    found = fitted.judged.found
    cut = (f"Cut: {'; '.join(fitted.cut)}. {MAY_DIFFER}",) if fitted.cut else ()
    doubts = _in_words(fitted.doubts, dropped=fitted.options.drop_suspects)
    notes = (*found.notes, *cut, *doubts, *(leak.text for leak in fitted.leaks))
    return render(
        replace(found, notes=notes),
        title=f"{fitted.data.target} of {fitted.data.path.name}",
        details=fitted.details(),
        importance=fitted.importance,
        how_shuffled=fitted.how_shuffled,
    )


def _tell(fitted: FittedTable, files: dict[str, Path]) -> None:
    """The summary for people, and the JSON for machines."""
    output, found, board = current(), fitted.judged.found, fitted.board
    n_training = sum(fitted.training_rows.values())
    output.say(
        f"{fitted.model.about}: {n_training} training rows, {len(fitted.judged.rows)} test rows ({fitted.how})\n",
        *headline(found),
        *_decided(fitted),
        "",
        *_compared(fitted, board),
        sizes(found, fitted.training_rows),
        worst_pairs(found),
        *of_columns(fitted.importance, fitted.how_shuffled),
        *advice(found),
        *(f"wrote {visible(file)}" for file in files.values()),
    )
    output.result(
        {
            **as_json(found),
            "model": fitted.model.about,
            "judged_by": fitted.how,
            "decisions": dict(vars(fitted.judged.decided)),
            "leaderboard": board.to_json() if board else None,
            "cut": list(fitted.cut),
            "doubts": [doubt.to_json() for doubt in fitted.doubts],
            "leaks": [leak.to_json() for leak in fitted.leaks],
            "dropped": suspects(fitted.doubts) if fitted.options.drop_suspects else [],
            "importance": {"how": fitted.how_shuffled, "columns": [each.to_json() for each in fitted.importance]},
            "training_rows": fitted.training_rows,
            "files": files,
        }
    )


def _decided(fitted: FittedTable) -> list[str]:
    """What the decisions are worth, beside always deciding for the largest class."""
    found = fitted.judged.decided
    goal = {"balanced": "balanced accuracy", "accuracy": "accuracy"}.get(found.decide, f"the costs in {found.decide}")
    return [
        f"decisions, chosen for {goal}: accuracy {found.accuracy:.4f} (always {found.largest!r}: "
        f"{found.accuracy_of_largest:.4f}), balanced accuracy {found.balanced_accuracy:.4f} "
        f"(always {found.largest!r}: {found.balanced_accuracy_of_largest:.4f})"
    ]


def _compared(fitted: FittedTable, board: Leaderboard | None) -> list[str | TextTable]:
    """The models side by side, and what time did not allow."""
    if board is None:
        return []
    chosen = f"{board.winner} was chosen by {board.chosen_by}; the test rows played no part in the choice."
    if fitted.options.cv:
        chosen = f"Each fold chose by its training rows alone, and is judged by its own choice. {chosen}"
    cut = [f"Cut: {'; '.join(board.cut)}. {MAY_DIFFER}"] if board.cut else []
    found = fitted.judged.found
    return [comparison(found) if fitted.options.cv else leaderboard(found, board), chosen, *cut, ""]


def check_pair(pairs: Sequence[tuple[str, str]], labels: Any) -> None:
    """Each is of two different classes of the table."""
    classes = sorted(set(map(str, labels)))
    for pair in pairs:
        unknown = [name for name in pair if name not in classes]
        if unknown:
            near = nearest(unknown[0], classes)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the classes are {', '.join(classes[:8])}"
            raise Usage(f"--importance-pair {unknown[0]!r} is no class{hint}")
        if pair[0] == pair[1]:
            raise Usage(f"--importance-pair must name two different classes, got {pair[0]!r} twice")


def _tell_doubts(doubts: Sequence[Doubt], *, dropped: bool) -> None:
    """On standard error, so that a score which is too good is read together with its reason."""
    output = current()
    for text in _in_words(doubts, dropped=dropped):
        output.note(text)
    doubted = [doubt.column for doubt in doubts if doubt.column]
    if doubted and not dropped:
        used = f"column {doubted[0]!r} is" if len(doubted) == 1 else f"the {len(doubted)} flagged columns are"
        output.note(f"{used} used all the same: --drop-suspects leaves out flagged columns, --drop the one you name")


def _in_words(doubts: Sequence[Doubt], *, dropped: bool) -> list[str]:
    """The first doubts, and how many more there are, for the terminal and the report."""
    texts = [doubt.text + (" (left out)" if dropped and doubt.column else "") for doubt in doubts]
    more = len(texts) - MOST_DOUBTS
    return texts if more <= 0 else [*texts[:MOST_DOUBTS], f"{more} more notes: --json has all"]
