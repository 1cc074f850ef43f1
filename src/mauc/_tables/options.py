"""Check the options of ``mauc fit`` and ``fit_table``."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mauc._tables.errors import Usage, option_name
from mauc._validation import check_real, check_whole


def _check(check: Callable[..., float], option: str, value: Any, **limits: float) -> float:
    """Return a number that a check of :mod:`mauc._validation` accepts, or raise its error as one of usage."""
    try:
        return check(option, value, **limits)
    except ValueError as error:
        raise Usage(str(error)) from None


@dataclass(frozen=True)
class Options:
    """The columns to use, and how to train and test; :func:`mauc.fit_table` explains each."""

    target: str
    time_limit: float = 60.0
    effort: Literal["quick", "normal", "best"] = "normal"
    group: str | None = None
    time_column: str | None = None
    drop: tuple[str, ...] = ()
    holdout: float = 0.25
    cv: int | None = None
    seed: int = 0
    decide: str = "balanced"
    refit: bool | None = None
    importance: bool = True
    min_rows: int = 1
    dates: str | None = None
    drop_unlabelled: bool = False
    drop_duplicates: bool = False
    row_records: bool = True

    def __post_init__(self) -> None:
        _check(check_real, option_name("holdout"), self.holdout, low=0, high=1)
        _check(check_whole, option_name("seed"), self.seed, least=0)
        _check(check_whole, option_name("min-rows"), self.min_rows, least=1)
        for option in ("refit", "importance", "drop_unlabelled", "drop_duplicates", "row_records"):
            value = getattr(self, option)
            if value not in (True, False) and not (option == "refit" and value is None):
                raise Usage(f"{option_name(option.replace('_', '-'))} must be True or False, got {value!r}")
        if self.effort not in ("quick", "normal", "best"):
            raise Usage(f"{option_name('effort')} must be quick, normal or best, got {self.effort!r}")
        if self.decide not in ("balanced", "accuracy") and not str(self.decide).lower().endswith(".csv"):
            raise Usage(
                f"{option_name('decide')} must be balanced, accuracy or a table of costs such as costs.csv, got "
                f"{self.decide!r}"
            )
        if self.dates not in (None, "day-first", "month-first"):
            raise Usage(f"{option_name('dates')} must be day-first or month-first, got {self.dates!r}")
        target, group, time_column, drop, cv = map(option_name, ("target", "group", "time-column", "drop", "cv"))
        for option, name in ((target, self.target), (group, self.group), (time_column, self.time_column)):
            if name is not None and name in self.drop:
                raise Usage(f"{drop} {name!r} is also the column of {option}: drop another column")
        if self.target and self.target in (self.group, self.time_column):
            raise Usage(f"{target} {self.target!r} cannot also be {group} or {time_column}: name another column")
        if self.time_column and self.group:
            raise Usage(f"{time_column} and {group} each choose the test rows: leave one of them out")
        if self.cv and self.time_column:
            raise Usage(f"{cv} tests on all rows in turn and {time_column} on the latest: leave one of them out")
        if self.few_seconds and self.cv:
            limit = option_name("time-limit")
            raise Usage(
                f"{limit} {self.time_limit:g} allows only one fit, but {cv} needs several: use {limit} 10 or more, or "
                f"leave {cv} out"
            )

    def fits_again(self, n_rows: int, most_rows: int = 10_000) -> bool:
        """Whether to fit the tested model, trained on ``n_rows``, again on all rows.

        On development tables of 500, 2,000 and 8,000 rows it gains 0.73, 0.67 and 0.29 points of MAUC x 100
        (``docs/results/refit.md``). With many more rows it would take too much of the default time limit.
        """
        return not self.cv and not self.few_seconds and (n_rows <= most_rows if self.refit is None else self.refit)

    @staticmethod
    def defaults(effort: str | None, time_limit: float | None, cv: int | None) -> dict[str, Any]:
        """Check the time limit and the folds; return the effort and the limit, as given or as the other one allows.

        ``best`` takes minutes. ``normal`` takes 30 to 50 seconds, and so does each training of a cross-validation.
        """
        limit = (600.0 if effort == "best" else 60.0) if time_limit is None else time_limit
        _check(check_real, option_name("time-limit"), limit, low=0)
        per_training = limit / (1 + (0 if cv is None else _check(check_whole, option_name("cv"), cv, least=2)))
        return {"effort": effort or ("quick" if per_training < 40.0 else "normal"), "time_limit": limit}

    @property
    def few_seconds(self) -> bool:
        """Whether the time is enough for one small forest only: a child process takes seconds to start."""
        return self.time_limit < 10.0

    @property
    def most_rows(self) -> int | None:
        """Most training rows that the time limit allows; None for all rows."""
        return 5_000 if self.few_seconds else 10_000 if self.time_limit < 20.0 and not self.cv else None

    @property
    def n_workers(self) -> int | None:
        """Child processes to train in; None: one for each core, at most eight."""
        return 0 if self.few_seconds else None
