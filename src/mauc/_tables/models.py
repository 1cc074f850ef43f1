"""The linear model that options of ``mauc fit`` ask for in place of the stack."""

from dataclasses import dataclass
from typing import Any

from mauc._tables.errors import Usage
from mauc._validation import check_choice

__all__ = ["MODELS", "Choice", "describe", "make_classifier"]

MODELS = ("linear",)
# Margins that suit softmax scores, which differ by one at most.
ALPHAS = {"squared": (0.5, 1.0, 2.0), "hinge": (0.2, 0.5, 1.0)}


@dataclass(frozen=True)
class Choice:
    """What the user asked for; None: to be chosen by cross-validation, or by default."""

    model: str = "linear"
    surrogate: str | None = None
    alpha: float | None = None
    l2: float | None = None
    seed: int = 0
    log_loss: float | None = None


def check(choice: Choice) -> None:
    """Options that contradict one another or have unknown values are usage errors."""
    from mauc.surrogates import SURROGATES, get_surrogate

    try:
        check_choice("--model", choice.model, MODELS)
        if choice.surrogate is not None:
            check_choice("--surrogate", choice.surrogate, sorted(SURROGATES))
    except ValueError as error:
        raise Usage(str(error)) from None
    for option, value in (("--alpha", choice.alpha), ("--l2", choice.l2)):
        if value is not None and not 0 < value < float("inf"):
            raise Usage(f"{option} must be a finite number above 0, got {value}")
    if choice.log_loss is not None and not 0 <= choice.log_loss < float("inf"):
        raise Usage(f"--log-loss must be a finite number of at least 0, got {choice.log_loss:g}")
    if choice.alpha is not None:
        try:
            get_surrogate(choice.surrogate or "exponential", alpha=choice.alpha)
        except ValueError as error:
            raise Usage(f"--{error}") from None


def make_classifier(choice: Choice) -> Any:
    """The classifier that was asked for, not fitted yet; it searches over what was left open."""
    check(choice)
    surrogate = choice.surrogate or "exponential"
    from mauc.linear import MAUCClassifier, MAUCClassifierCV

    weight: dict[str, Any] = {} if choice.log_loss is None else {"log_loss": choice.log_loss}
    if choice.l2 is not None and choice.alpha is not None:
        return MAUCClassifier(surrogate, alpha=choice.alpha, l2=choice.l2, **weight)
    search: dict[str, Any] = {"alphas": ALPHAS.get(surrogate) if choice.alpha is None else (choice.alpha,)}
    if choice.l2 is not None:
        search["l2s"] = (choice.l2,)
    if choice.log_loss is not None:
        search["log_losses"] = (choice.log_loss,)
    return MAUCClassifierCV((surrogate,), cv=3, **search)


def describe(classifier: Any) -> str:
    """A fitted classifier in a few words."""
    name = type(classifier).__name__
    if hasattr(classifier, "log_loss_"):
        loss = _loss(classifier.surrogate_, classifier.alpha_, classifier.log_loss_)
        return f"{name}: {loss}, l2 {classifier.l2_:g}"
    if hasattr(classifier, "surrogate") and hasattr(classifier, "alpha"):
        given = classifier.alpha
        # None where the classifier took its own; then what it resolves to.
        chosen = getattr(classifier._surrogate(), "alpha", None) if given is None else given
        return f"{name}: {_loss(classifier.surrogate, chosen, getattr(classifier, 'log_loss', 0.0))}"
    return name


def _loss(surrogate: Any, alpha: float | None, log_loss: float) -> str:
    margin = "" if alpha is None else f", alpha {alpha:g}"
    return f"{surrogate}{margin}" + (f", log-loss {log_loss:g}" if log_loss else "")
