r"""The log-loss beside the risk: cross-entropy of logits that are shifted by the class frequencies.

.. math:: \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(z_n + \log r)_{y_n}\right], \quad r_j = p_j / b_j

as in :mod:`mauc.log_loss`; a common factor of the r does not matter.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from mauc.log_loss import ONLY, partner_weights, read_log_loss
from mauc.nn._engine.batch import Batch, exact_dtype
from mauc.nn._engine.processes import Communicator

__all__ = [
    "ONLY",
    "LogTerm",
    "class_ratios",
    "class_sizes",
    "log_term",
    "log_term_and_gradient",
    "of_partners",
    "read_log_loss",
]


class LogTerm(NamedTuple):
    """How the log-loss is added."""

    share: float
    """Its weight."""
    ranks: bool
    """Whether the risk counts beside it."""
    ratios: Tensor | None = None
    """``(C,)`` r, where it is known before the batch."""
    partners: Tensor | None = None
    """``(C,)`` b of pair weights given as a matrix."""

    def of(self, batch: Batch, pairs: str | Tensor, class_counts: Tensor | None) -> Tensor:
        """``(C,)`` r for a batch."""
        if self.ratios is not None:
            return self.ratios
        sizes = batch.size if class_counts is None else class_counts.to(batch.size.dtype)
        return class_ratios(pairs, self.partners, sizes)


def of_partners(pairs: str | Tensor) -> Tensor | None:
    """``(C,)`` b of pair weights ``a_i b_j`` given as a matrix; reads the matrix on the host."""
    return None if isinstance(pairs, str) else torch.as_tensor(partner_weights(pairs.detach().cpu().numpy()))


def class_ratios(pairs: str | Tensor, partners: Tensor | None, sizes: Tensor) -> Tensor:
    """``(C,)`` r up to a common factor, from the class sizes; 0 for absent classes.

    1 for all classes where no sample counts: with r = 0 everywhere, ``softmax(z + log r)`` would be NaN, and so would
    the gradient, which is that times a weight of 0.
    """
    sizes = torch.where((sizes > 0).any(), sizes, 1.0)
    if isinstance(pairs, str):
        return sizes if pairs == "ovo" else sizes.sign()
    assert partners is not None
    return sizes / partners.to(sizes)


def class_sizes(
    target: Tensor, weight: Tensor | None, class_counts: Tensor | None, ignore_index: int, n_classes: int
) -> Tensor:
    """``(C,)`` sizes of the classes, of the batch where those of the training set are not known."""
    if class_counts is not None:
        return class_counts
    counted = (target != ignore_index) & (target >= 0) & (target < n_classes)
    mass = counted.to(torch.float32) if weight is None else torch.where(counted, weight.to(torch.float32), 0.0)
    return mass.new_zeros(n_classes).index_add(0, torch.where(counted, target, 0).long(), mass)


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
