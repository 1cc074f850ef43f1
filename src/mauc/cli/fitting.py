"""The parts of ``mauc fit``: its clock, what it doubts, what it compared, what the columns are worth."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mauc.cli.output import TextTable, current
from mauc.cli.progress import Speaking
from mauc.cli.summary import comparison, leaderboard
from mauc.metrics import Importance
from mauc.report import Judgement
from mauc.tables.doubts import Doubt
from mauc.tables.errors import Failure, Usage
from mauc.tables.judging import Judged
from mauc.tables.leaderboard import Leaderboard
from mauc.tables.read import nearest
from mauc.tables.training import Trainer
from mauc.tables.why import importance_within

__all__ = [
    "Clock",
    "check_cv",
    "check_pair",
    "compared",
    "how_judged",
    "importance_of",
    "in_words",
    "tell_doubts",
    "without",
]

TIME_LIMIT = 60.0
TRAINING_SHARE = 0.75
IMPORTANCE_SHARE = 0.2
MOST_DOUBTS = 8


class Clock:
    """What is left of the time limit since the command began."""

    def __init__(self, limit: float | None) -> None:
        if limit is not None and not 0 < limit < float("inf"):
            raise Usage(f"--time-limit must be a finite number of seconds above 0, got {limit:g}")
        self.limit = TIME_LIMIT if limit is None else limit
        self.began = time.monotonic()

    @property
    def for_training(self) -> float:
        """The rest is for judging."""
        return TRAINING_SHARE * self.left

    @property
    def left(self) -> float:
        """In seconds; a tenth of the limit once it is spent, since what is begun is brought to its end."""
        return max(0.1 * self.limit, self.limit - (time.monotonic() - self.began))


def check_cv(cv: int | None, repeats: int, time_column: str | None, holdout: float | None, *, refit: bool) -> None:
    """Options that contradict one another."""
    if cv and time_column:
        raise Usage("--cv holds out any rows and --time-column the latest: leave one of them out")
    if cv and holdout is not None:
        raise Usage("--cv judges by all rows, in turns, and --holdout by a share of them: leave one of them out")
    if cv and refit:
        raise Usage("--cv trains on all rows after judging, as --refit does: leave --refit out")
    if repeats > 1 and not cv:
        raise Usage("--repeats says how often to cross-validate: add --cv 5, or leave it out")


def how_judged(cv: int | None, repeats: int, time_column: str | None, group: str | None) -> str:
    """By which rows, in words."""
    if cv:
        folds = f"cross-validation in {cv} folds" + (" of whole groups" if group else "")
        return folds + (f", {repeats} times" if repeats > 1 else "")
    return "the latest rows" if time_column else "rows of whole groups" if group else "random, stratified rows"


def tell_doubts(doubts: Sequence[Doubt], *, dropped: bool) -> None:
    """On standard error, so that a score which is too good is read together with its reason."""
    output = current()
    for text in in_words(doubts, dropped=dropped):
        output.note(text)
    doubted = [doubt.column for doubt in doubts if doubt.column]
    if doubted and not dropped:
        used = f"column {doubted[0]!r} is" if len(doubted) == 1 else f"the {len(doubted)} doubted columns are"
        output.note(
            f"{used} used all the same: --drop-suspects leaves out what is doubted, --drop a column of your choice"
        )


def in_words(doubts: Sequence[Doubt], *, dropped: bool) -> list[str]:
    """The first doubts, and how many more there are, for the terminal and the report."""
    texts = [doubt.text + (" (left out)" if dropped and doubt.column else "") for doubt in doubts]
    more = len(texts) - MOST_DOUBTS
    return texts if more <= 0 else [*texts[:MOST_DOUBTS], f"{more} more doubts: --json names all"]


def without(names: Sequence[str], kinds: Mapping[str, str], path: Path) -> dict[str, str]:
    """The columns that are left, with their kinds."""
    left = {name: kind for name, kind in kinds.items() if name not in names}
    if not left:
        raise Failure(f"--drop-suspects leaves no column of {path}: choose by --drop which ones to leave out")
    return left


def check_pair(pair: tuple[str, str] | None, labels: Any) -> list[tuple[str, str]]:
    """Two different classes of the table, or none."""
    if pair is None:
        return []
    classes = sorted(set(map(str, labels)))
    unknown = [name for name in pair if name not in classes]
    if unknown:
        near = nearest(unknown[0], classes)
        hint = f"; did you mean {near[0]!r}?" if near else f"; the classes are {', '.join(classes[:8])}"
        raise Usage(f"--importance-pair {unknown[0]!r} is no class{hint}")
    if pair[0] == pair[1]:
        raise Usage(f"--importance-pair must name two different classes, got {pair[0]!r} twice")
    return [pair]


def importance_of(
    judged: Judged, trainer: Trainer, pairs: Sequence[tuple[str, str]], clock: Clock, watch: Speaking
) -> tuple[list[Importance], str]:
    """What each column is worth to the model, by rows that it did not see."""
    seen = judged.seen
    there = set(trainer.labels[judged.unseen])
    for name in sorted({name for pair in pairs for name in pair} - there):
        current().note(f"--importance-pair: no row judged by is of class {name!r}")
    pairs = [pair for pair in pairs if there.issuperset(pair)]
    return importance_within(
        IMPORTANCE_SHARE * clock.limit,
        lambda table: seen.classifier.predict_proba(seen.features.transform(table)),
        trainer.table.iloc[judged.unseen],
        trainer.labels[judged.unseen],
        seen.classes,
        between=pairs,
        seed=trainer.seed,
        watch=lambda column: watch.does(f"shuffling {column}"),
    )


def compared(found: Judgement, board: Leaderboard | None, *, cv: bool) -> list[str | TextTable]:
    """The models that were compared, and those that time did not allow."""
    if board is None:
        return []
    chosen = f"{board.winner} was chosen by {board.chosen_by}; the rows judged by chose nothing."
    if cv:
        chosen = f"Each fold chose by its training rows alone, and is judged by its own choice. {chosen}"
    left_out = [f"{entry.name} was left out: it {entry.left_out} (--time-limit)" for entry in board.left_out]
    return [comparison(found) if cv else leaderboard(found, board), chosen, *left_out, ""]
