"""The competitors' losses for rare classes; each takes ``(N, C)`` logits and ``(N,)`` classes and returns a mean."""

import math
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ClassBalancedLoss", "LDAMLoss", "effective_number_weights"]


def effective_number_weights(class_counts: Any, beta: float = 0.9999) -> Tensor:
    r"""Return ``(C,)`` weights of the classes by their effective number of samples, of mean 1.

    .. math:: w_i \propto \frac{1 - \beta}{1 - \beta^{n_i}}

    From 1 for every class at :math:`\beta = 0` to :math:`1 / n_i` as :math:`\beta \to 1` (Cui et al., CVPR 2019).

    Examples
    --------
    >>> from experiments.losses import effective_number_weights
    >>> effective_number_weights([1000, 100, 10], beta=0.99).numpy().round(3)
    array([0.23 , 0.363, 2.407])
    """
    counts = torch.as_tensor(class_counts, dtype=torch.float64)
    # 1 − βⁿ cancels for β near 1.
    weight = torch.ones_like(counts) if beta == 0 else -1.0 / torch.expm1(counts * math.log(beta))
    return weight / weight.mean()


def _log_p(logits: Tensor, y: Tensor) -> Tensor:
    return torch.log_softmax(logits, 1).gather(1, y[:, None])[:, 0]


def _focal(log_p: Tensor, gamma: float) -> Tensor:
    """Return ``−(1 − p)^γ log p``."""
    if gamma == 0:
        return -log_p
    # The slope of a power below 1 is infinite at 0, which log p = 0 would turn into NaN.
    wrong = (-torch.expm1(log_p)).clamp(min=torch.finfo(log_p.dtype).tiny)
    return -wrong.pow(gamma) * log_p


def _weighted_mean(losses: Tensor, weight: Tensor, y: Tensor) -> Tensor:
    """Divide by the summed weights of the batch, as :class:`torch.nn.CrossEntropyLoss` does."""
    each = weight.to(losses.dtype)[y]
    return (losses * each).sum() / each.sum()


class ClassBalancedLoss(nn.Module):
    r"""Focal loss, :math:`-(1 - p_y)^\gamma \log p_y`, with the classes weighed by :func:`effective_number_weights`.

    γ = 0 is cross-entropy. β = 0 weighs all classes alike, as the focal loss does (Lin, Goyal, Girshick, He, Dollár,
    ICCV 2017).

    Cui, Jia, Lin, Song, Belongie: Class-balanced loss based on effective number of samples, CVPR 2019; there over the
    batch size, here, as in torch, over the summed weights of the batch.
    """

    weight: Tensor

    def __init__(self, class_counts: Any, *, beta: float = 0.9999, gamma: float = 0.0) -> None:
        super().__init__()
        self.gamma = gamma
        self.register_buffer("weight", effective_number_weights(class_counts, beta))

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the weighted mean over the batch."""
        return _weighted_mean(_focal(_log_p(logits, y), self.gamma), self.weight, y)


class LDAMLoss(nn.Module):
    r"""Cross-entropy with label-distribution-aware margins: the rarer the class, the wider its margin.

    .. math:: -\log \frac{e^{s (z_y - \Delta_y)}}{e^{s (z_y - \Delta_y)} + \sum_{j \ne y} e^{s z_j}}, \qquad
        \Delta_i = \frac{c}{n_i^{1/4}}, \quad c \text{ such that } \max_i \Delta_i = \text{max\_margin}

    Cao, Wei, Gaidon, Arechiga, Ma: Learning imbalanced datasets with label-distribution-aware margin loss, NeurIPS
    2019. Their logits z are cosines, of normalised features with normalised weights, to which the scale s and the
    margins belong.

    Parameters
    ----------
    class_counts : (C,) tensor or sequence
        Size n of each class in the training set.
    max_margin : float, default=0.5
        Margin of the rarest class.
    scale : float, default=30.0
    drw_epoch : int, optional
        Deferred re-weighting: from this epoch, counted from 0, classes are weighed by their effective number. Report
        the epoch by :meth:`set_epoch`. Default: never.
    beta : float, default=0.9999
        Of the re-weighting.
    """

    margin: Tensor
    weight: Tensor

    def __init__(
        self,
        class_counts: Any,
        *,
        max_margin: float = 0.5,
        scale: float = 30.0,
        drw_epoch: int | None = None,
        beta: float = 0.9999,
    ) -> None:
        super().__init__()
        self.scale, self.drw_epoch, self.epoch = scale, drw_epoch, 0
        counts = torch.as_tensor(class_counts, dtype=torch.float64)
        self.register_buffer("margin", max_margin * (counts.min() / counts) ** 0.25)
        self.register_buffer("weight", effective_number_weights(counts, beta))

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, from 0."""
        self.epoch = epoch

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return the mean over the batch, weighted from ``drw_epoch`` on."""
        margin = self.margin.to(logits.dtype)[y]
        losses = -_log_p(self.scale * logits.scatter_add(1, y[:, None], -margin[:, None]), y)
        reweighted = self.drw_epoch is not None and self.epoch >= self.drw_epoch
        return _weighted_mean(losses, self.weight, y) if reweighted else losses.mean()
