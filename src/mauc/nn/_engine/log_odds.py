r"""The loss on log-odds: :math:`u_i = z_i - \log \sum_{j \ne i} e^{z_j}`, a map in front of the pair term.

It is made of torch's own operations, on every device; the pair term then takes u as it takes raw scores, and the
log-loss the logits themselves.
"""

from typing import Any

import torch
from torch import Tensor

from mauc._validation import invalid

__all__ = ["log_odds", "loss_on_log_odds"]


def log_odds(logits: Tensor) -> Tensor:
    """``(N, C)`` log-odds of the softmax, stable where a probability is near 0 or 1.

    In the column of the largest logit the others are summed by themselves: a difference would cancel. In every other
    column the sum of the others holds the largest one.
    """
    top = torch.nn.functional.one_hot(logits.argmax(1), logits.shape[1]).bool()
    peak = logits.detach().amax(1, keepdim=True)
    power = torch.exp(logits - peak)
    others = torch.where(top, 1.0, power.sum(1, keepdim=True) - power).log() + peak
    rest = torch.logsumexp(logits.masked_fill(top, -torch.inf), 1, keepdim=True)
    return logits - torch.where(top, rest, others)


def loss_on_log_odds(logits: Tensor, target: Tensor, loss_of: Any, **settings: Any) -> Tensor:
    """The pair term of the log-odds plus the log-loss of the logits."""
    if settings["sync"]:
        raise invalid("sync", "is not available with activation='log_odds'", True, "take activation='softmax'")
    share, ratios = settings["log_loss"], settings["ratios"]
    weight, ignored = settings["weight"], target == settings["ignore_index"]
    wide = logits.to(torch.float64 if logits.dtype == torch.float64 else torch.float32)
    clean = torch.where(ignored[:, None], 0.0, wide)
    alone = {**settings, "log_loss": 0.0, "ratios": None, "activation": "identity", "repeated": None}
    value = loss_of(log_odds(clean), target, **alone)
    if share:
        each = torch.nn.functional.cross_entropy(
            clean + ratios.log().to(clean), target.long(), ignore_index=settings["ignore_index"], reduction="none"
        )
        mass = (~ignored).to(clean) if weight is None else torch.where(ignored, 0.0, weight.detach().to(clean))
        total = mass.sum()
        value = value + share * (mass * each).sum() / torch.where(total > 0, total, 1.0)
    return value.to(logits.dtype) if not torch.is_autocast_enabled(logits.device.type) else value
