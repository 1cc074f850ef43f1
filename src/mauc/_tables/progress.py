"""Report the progress of a training, and name its models."""

from mauc.ensemble.fitting import Watch

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


class Progress(Watch):
    """Ignore the progress of a training; the command line has a subclass that shows it."""

    prefix = ""
    """Text before the name of each step."""

    def step(self, text: str) -> None:
        """Report that a step begins."""
