r"""The log-loss beside the risk: cross-entropy of logits that are shifted by the class frequencies.

.. math:: \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + \log r)_{y_n}\right], \quad r_j = p_j / b_j

as in :mod:`mauc.log_loss`; a common factor of the r does not matter.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mauc.log_loss import partner_weights
from mauc.nn._engine.batch import exact_dtype
from mauc.nn._engine.processes import Communicator

__all__ = [
    "LogTerm",
    "class_ratios",
    "log_term",
    "log_term_and_gradient",
]


class LogTerm(NamedTuple):
    """How the log-loss is added, and what it is added to."""

    share: float
    """Its weight."""
    log1p: bool = False
    """Whether the risk of each class goes through :func:`mauc.nn._engine.moments.log1p_risk`."""
    ratios: Tensor | None = None
    """``(C,)`` r, where there is a log-loss."""


def class_ratios(pairs: str | Tensor, class_counts: Tensor) -> Tensor:
    """``(C,)`` r from the class sizes, the largest of them 1; a matrix of pair weights is read on the host."""
    ratios = class_counts.to(exact_dtype(class_counts.device))
    if isinstance(pairs, str):
        ratios = ratios if pairs == "ovo" else ratios.sign()
    else:
        ratios = ratios / torch.as_tensor(partner_weights(pairs.detach().cpu().numpy())).to(ratios)
    return ratios / ratios.max()


def log_term_and_gradient(
    logits: Tensor, y: Tensor, mass: Tensor, ratios: Tensor, world: Communicator
) -> tuple[Tensor, Tensor]:
    """The term over all ranks, and its gradient ``u_n (softmax(z_n + log r) − e_{y_n}) / Σu``.

    ``mass`` is ``(N,)`` u, 0 for ignored samples. O(N·C), one array of the shape of the logits.
    """
    log_p = _log_p(logits, ratios)
    surprise = -_own(log_p, y, mass)
    lost, total = world.sums((mass * surprise).sum(), mass.sum())
    share = mass * torch.where(total > 0, 1.0 / total, 0.0)
    gradient = log_p.exp_()
    gradient.scatter_add_(1, y[:, None], torch.full_like(gradient[:, :1], -1.0))
    gradient *= share.to(gradient.dtype)[:, None]
    return torch.where(total > 0, lost / total, 0.0), gradient


def log_term(logits: Tensor, y: Tensor, mass: Tensor, ratios: Tensor) -> Tensor:
    """The same in operations that can be differentiated any number of times, for one process."""
    total = mass.sum()
    lost = -(mass * _own(_log_p(logits, ratios), y, mass)).sum()
    return torch.where(total > 0, lost / torch.where(total > 0, total, 1.0), 0.0)


def _log_p(logits: Tensor, ratios: Tensor) -> Tensor:
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return torch.log_softmax(logits.to(wide) + ratios.log().to(wide), 1)


def _own(log_p: Tensor, y: Tensor, mass: Tensor) -> Tensor:
    """Of the samples that count: an ignored one may stand in a class that is absent."""
    own = log_p.gather(1, y[:, None])[:, 0].to(exact_dtype(log_p.device))
    return torch.where(mass > 0, own, 0.0)
