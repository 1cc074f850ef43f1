"""How far a training is, and the names of its models."""

NAMES = {
    "starter": "small forest",
    "et": "extra trees",
    "lr": "logistic regression",
    "hgb": "boosted trees",
    "hgb_deep": "deep boosted trees",
    "rf": "random forest",
    "rf_deep": "deep random forest",
    "mauc": "linear MAUC model",
    "kernel": "kernel MAUC model",
    "et_deep": "deep extra trees",
    "mlp": "perceptron",
    "lr_strong": "logistic regression with a strong penalty",
    "odds": "proportional odds",
    "odds_kernel": "proportional odds on a kernel",
    "combination": "combination of the models",
}


def full_name(name: str) -> str:
    """Return the name of a member of the stack as people read it."""
    return NAMES.get(name, name)


class Progress:
    """Ignores how far a training is; the command has one that shows it."""

    prefix = ""
    """Shown before the next steps."""

    def step(self, text: str) -> None:
        """A step begins."""

    def begins(self, name: str, step: str) -> None:
        """A fit of a member of the stack begins."""

    def ends(self, name: str, score: float, seconds: float) -> None:
        """A member of the stack is complete."""
