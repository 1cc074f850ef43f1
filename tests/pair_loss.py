"""The paper's pair loss for the tests of torch: no log-loss and no bound unless a test asks for them.

torch is imported inside: some tests that use this run without it, and skip.
"""

from typing import Any

__all__ = ["PairLoss", "pair_loss"]


def pair_loss(logits: Any, target: Any, **settings: Any) -> Any:
    """:func:`mauc.nn.functional.mauc_loss` without the log-loss; class counts where they are needed alone."""
    from mauc.nn.functional import mauc_loss

    if settings.get("log_loss") and settings.get("class_counts") is None:
        settings["class_counts"] = list(range(1, logits.shape[1] + 1))
    elif not settings.get("log_loss") and isinstance(pairs := settings.get("pairs", "ovo"), str) and pairs == "ovo":
        settings.pop("class_counts", None)
    return mauc_loss(logits, target, **{"log_loss": 0.0, "log1p": False, "limit": None, **settings})


def PairLoss(surrogate: Any = "exponential", **settings: Any) -> Any:
    """:class:`mauc.nn.MAUCLoss` without the log-loss, the surrogate first."""
    from mauc.nn import MAUCLoss

    return MAUCLoss(**{"surrogate": surrogate, "log_loss": 0.0, "log1p": False, "limit": None, **settings})
