"""Check the options of ``mauc fit`` and ``fit_table``, and make the linear model that some of them describe."""

from dataclasses import dataclass
from typing import Any, Literal

from mauc._tables.errors import Usage
from mauc._validation import check_choice, check_not_negative, check_real

# Margins that suit softmax scores, which differ by one at most.
ALPHAS = {"squared": (0.5, 1.0, 2.0), "hinge": (0.2, 0.5, 1.0)}


@dataclass(frozen=True)
class Linear:
    """Parameters of a linear model instead of the stack; None: cross-validated, or the default."""

    surrogate: str | None = None
    alpha: float | None = None
    l2: float | None = None
    log_loss: float | None = None

    def __post_init__(self) -> None:
        from mauc.surrogates import SURROGATES, get_surrogate

        try:
            for option, value in (("--alpha", self.alpha), ("--l2", self.l2)):
                if value is not None:
                    check_real(option, value, low=0)
            if self.log_loss is not None:
                check_not_negative("--log-loss", self.log_loss)
            if self.surrogate is not None:
                check_choice("--surrogate", self.surrogate, sorted(SURROGATES))
        except ValueError as error:
            raise Usage(str(error)) from None
        try:
            if self.alpha is not None:
                get_surrogate(self.surrogate or "exponential", alpha=self.alpha)
        except ValueError as error:
            raise Usage(f"--{error}") from None

    def classifier(self) -> Any:
        """Return the unfitted classifier, which searches over the parameters that are not given."""
        from mauc.linear import MAUCClassifier, MAUCClassifierCV

        surrogate = self.surrogate or "exponential"
        weight: dict[str, Any] = {} if self.log_loss is None else {"log_loss": self.log_loss}
        if self.l2 is not None and self.alpha is not None:
            return MAUCClassifier(surrogate, alpha=self.alpha, l2=self.l2, **weight)
        search: dict[str, Any] = {"alphas": ALPHAS.get(surrogate) if self.alpha is None else (self.alpha,)}
        if self.l2 is not None:
            search["l2s"] = (self.l2,)
        if self.log_loss is not None:
            search["log_losses"] = (self.log_loss,)
        return MAUCClassifierCV((surrogate,), cv=3, **search)


def describe(classifier: Any) -> str:
    """Return a fitted linear classifier in a few words."""
    if hasattr(classifier, "log_loss_"):
        surrogate, alpha, log_loss = classifier.surrogate_, classifier.alpha_, classifier.log_loss_
    else:
        surrogate, alpha, log_loss = classifier.surrogate, classifier.alpha, classifier.log_loss
    parts = [str(surrogate)]
    parts += [] if alpha is None else [f"alpha {alpha:g}"]
    parts += [f"log-loss {log_loss:g}"] if log_loss else []
    parts.append(f"l2 {getattr(classifier, 'l2_', None) or classifier.l2:g}")
    return f"{type(classifier).__name__}: {', '.join(parts)}"


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
    repeats: int = 1
    seed: int = 0
    decide: str = "balanced"
    refit: bool = False
    importance: bool = True
    importance_pairs: tuple[tuple[str, str], ...] = ()
    min_rows: int = 1
    dates: str | None = None
    drop_unlabelled: bool = False
    drop_duplicates: bool = False
    drop_suspects: bool = False
    linear: Linear | None = None

    def __post_init__(self) -> None:
        if not 0 < self.time_limit < float("inf"):
            raise Usage(f"--time-limit must be a finite number of seconds above 0, got {self.time_limit:g}")
        if not 0 < self.holdout < 1:
            raise Usage(f"--holdout must be a number strictly between 0 and 1, got {self.holdout:g}")
        if self.effort not in ("quick", "normal", "best"):
            raise Usage(f"--effort must be quick, normal or best, got {self.effort!r}")
        if self.dates not in (None, "day-first", "month-first"):
            raise Usage(f"--dates must be day-first or month-first, got {self.dates!r}")
        if self.time_column and self.group:
            raise Usage("--time-column and --group each choose the test rows: leave one of them out")
        if self.cv and self.time_column:
            raise Usage("--cv tests on all rows in turn and --time-column on the latest: leave one of them out")
        if self.cv and self.refit:
            raise Usage("--cv trains the final model on all rows, as --refit does: leave --refit out")
        if self.few_seconds and (self.cv or self.refit) and self.linear is None:
            option = "--cv" if self.cv else "--refit"
            raise Usage(
                f"--time-limit {self.time_limit:g} allows only one fit, but {option} needs several: use "
                f"--time-limit 10 or more, or leave {option} out"
            )
        if self.repeats > 1 and not self.cv:
            raise Usage("--repeats repeats the cross-validation: add --cv 5, or leave it out")

    @property
    def few_seconds(self) -> bool:
        """Whether the time is enough for one small forest only: a child process takes seconds to start."""
        return self.time_limit < 10.0

    @property
    def n_workers(self) -> int | None:
        """Child processes to train in; None: one for each core, at most eight."""
        return 0 if self.linear is not None or self.few_seconds else None
