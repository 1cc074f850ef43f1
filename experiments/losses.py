"""Losses that others made for rare classes, to compare with."""

import math
from typing import Any

import torch
from torch import Tensor

from mauc._validation import check_choice, check_not_negative, check_real, check_whole, invalid
from mauc.nn._loss.batch import can_read
from mauc.nn._loss.checks import check_input, count_vector
from mauc.nn.modules import ExactBuffers

__all__ = ["ClassBalancedLoss", "FocalLoss", "LDAMLoss", "effective_number_weights"]

BASES = ("cross_entropy", "focal")
REDUCTIONS = ("mean", "sum", "none")


class ClassLoss(ExactBuffers):
    """Hold what the losses share: the arguments, checks and reductions of torch.nn."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, ignore_index: int, reduction: str) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        # Buffers, so that they follow the module to its device; settings, so not part of its state.
        self.register_buffer("weight", weight, persistent=False)

    def _check(self, logits: Tensor, target: Tensor, of_classes: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check the input; return ``(N, C)`` logits and ``(N,)`` classes, both 0 for ignored samples.

        The gradient of NaN is NaN, even where it is multiplied by 0: a mask on the losses would not do.
        """
        check_input(logits, target, None, self.ignore_index)
        if of_classes is not None and len(of_classes) != logits.shape[1]:
            came = f"{logits.shape[1]} columns"
            advice = "pass the class sizes or weights of all classes that the network scores"
            raise invalid("logits", f"must have one column for each of the {len(of_classes)} classes", came, advice)
        y = target.long()
        valid = y != self.ignore_index
        return torch.where(valid[:, None], logits, 0.0), torch.where(valid, y, 0)

    def _reduce(self, losses: Tensor, target: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Reduce as :class:`torch.nn.CrossEntropyLoss` does: the mean divides by the summed weights."""
        valid = target != self.ignore_index
        each = valid.to(losses.dtype) if weight is None else torch.where(valid, weight.to(losses.dtype)[y], 0.0)
        weighted = torch.where(valid, losses, 0.0) * each
        if self.reduction == "none":
            return weighted
        if self.reduction == "sum":
            return weighted.sum()
        total = each.sum()
        return weighted.sum() / torch.where(total > 0, total, 1.0)


def log_p(logits: Tensor, y: Tensor) -> Tensor:
    """Return the ``(N,)`` logarithm of each sample's probability of its class."""
    return torch.log_softmax(logits, 1).gather(1, y[:, None])[:, 0]


def effective_number_weights(class_counts: Any, beta: float = 0.9999) -> Tensor:
    r"""``(C,)`` weights of the classes by their effective number of samples, of mean 1.

    .. math:: w_i \propto \frac{1 - \beta}{1 - \beta^{n_i}}

    From 1 for every class at :math:`\beta = 0` to :math:`1 / n_i` as :math:`\beta \to 1` (Cui et al., CVPR 2019).

    Examples
    --------
    >>> from experiments.losses import effective_number_weights
    >>> effective_number_weights([1000, 100, 10], beta=0.99).numpy().round(3)
    array([0.23 , 0.363, 2.407])
    """
    counts = count_vector(class_counts, None).to(torch.float64)
    check_real("beta", beta, low=0, high=1, closed="left", advice="pass e.g. 0.9999")
    # 1 − βⁿ cancels for β near 1.
    weight = torch.ones_like(counts) if beta == 0 else -1.0 / torch.expm1(counts * math.log(beta))
    return weight / weight.mean()


def _focal(log_p: Tensor, gamma: float) -> Tensor:
    """``−(1 − p)^γ log p``."""
    if gamma == 0:
        return -log_p
    # The slope of a power below 1 is infinite at 0, which log p = 0 would turn into NaN.
    wrong = (-torch.expm1(log_p)).clamp(min=torch.finfo(log_p.dtype).tiny)
    return -wrong.pow(gamma) * log_p


def _gamma(gamma: Any) -> float:
    return check_not_negative("gamma", gamma, "0 is cross-entropy, 2 the authors' choice")


class FocalLoss(ClassLoss):
    r"""Cross-entropy that turns away from the samples that are right already.

    .. math:: -w_y (1 - p_y)^\gamma \log p_y, \qquad p = \operatorname{softmax}(\text{logits})

    Lin, Goyal, Girshick, He, Dollár: Focal loss for dense object detection, ICCV 2017; here for the softmax.

    Parameters
    ----------
    gamma : float, default=2.0
        0 is cross-entropy.
    weight : (C,) tensor or sequence, optional
        Weights w of the classes, above 0.
    ignore_index : int, default=-100
        Samples of this target count nowhere.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean divides by the summed weights of the samples, as :class:`torch.nn.CrossEntropyLoss` does; without any
        sample that counts it is 0.

    Notes
    -----
    Called with ``(N, C)`` logits and ``(N,)`` classes; O(N·C).

    Examples
    --------
    >>> import torch
    >>> from experiments.losses import FocalLoss
    >>> logits = torch.tensor([[3.0, 0.0], [0.0, 0.0]])
    >>> FocalLoss(gamma=2.0, reduction="none")(logits, torch.tensor([0, 0]))
    tensor([1.0928e-04, 1.7329e-01])
    """

    def __init__(
        self, gamma: float = 2.0, *, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        kept = None if weight is None else _class_weights(weight)
        super().__init__(kept, ignore_index, reduction)
        self.gamma = _gamma(gamma)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of ``(N, C)`` logits and ``(N,)`` classes."""
        logits, y = self._check(logits, target, self.weight)
        return self._reduce(_focal(log_p(logits, y), self.gamma), target, y, self.weight)

    def extra_repr(self) -> str:
        """The settings."""
        return f"gamma={self.gamma:g}, reduction={self.reduction!r}"


class ClassBalancedLoss(ClassLoss):
    r"""Cross-entropy or focal loss with the classes weighed by their effective number of samples.

    .. math:: w_y \cdot \ell(p, y), \qquad w_i \propto \frac{1 - \beta}{1 - \beta^{n_i}}, \quad
        \operatorname{mean} w = 1, \qquad \ell = -\log p_y \ \text{ or } \ -(1 - p_y)^\gamma \log p_y

    Cui, Jia, Lin, Song, Belongie: Class-balanced loss based on effective number of samples, CVPR 2019; there over the
    batch size, here, as in torch, over the summed weights of the batch.

    Parameters
    ----------
    class_counts : (C,) tensor or sequence
        Size n of each class in the training set.
    beta : float, default=0.9999
        At least 0 and below 1; 0 weighs all classes alike, near 1 the weights are the inverse sizes.
    loss : {"cross_entropy", "focal"}, default="cross_entropy"
    gamma : float, default=2.0
        Of the focal loss.
    ignore_index : int, default=-100
        Samples of this target count nowhere.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean divides by the summed weights of the samples, as :class:`torch.nn.CrossEntropyLoss` does; without any
        sample that counts it is 0.

    Examples
    --------
    >>> import torch
    >>> from experiments.losses import ClassBalancedLoss
    >>> loss = ClassBalancedLoss([1000, 10], beta=0.999)
    >>> round(loss(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])).item(), 4)
    1.2978
    """

    weight: Tensor

    def __init__(
        self,
        class_counts: Any,
        *,
        beta: float = 0.9999,
        loss: str = "cross_entropy",
        gamma: float = 2.0,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(effective_number_weights(class_counts, beta), ignore_index, reduction)
        self.beta = beta
        self.loss = check_choice("loss", loss, BASES)
        self.gamma = _gamma(gamma) if loss == "focal" else 0.0

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of ``(N, C)`` logits and ``(N,)`` classes."""
        logits, y = self._check(logits, target, self.weight)
        return self._reduce(_focal(log_p(logits, y), self.gamma), target, y, self.weight)

    def extra_repr(self) -> str:
        """The settings."""
        focal = f", gamma={self.gamma:g}" if self.loss == "focal" else ""
        return f"{self.loss!r}, beta={self.beta:g}{focal}, reduction={self.reduction!r}"


class LDAMLoss(ClassLoss):
    r"""Cross-entropy with a margin that is the wider, the rarer the class: label-distribution-aware margins.

    .. math:: -\log \frac{e^{s (z_y - \Delta_y)}}{e^{s (z_y - \Delta_y)} + \sum_{j \ne y} e^{s z_j}}, \qquad
        \Delta_i = \frac{c}{n_i^{1/4}}, \quad c \text{ such that } \max_i \Delta_i = \text{max\_margin}

    Cao, Wei, Gaidon, Arechiga, Ma: Learning imbalanced datasets with label-distribution-aware margin loss, NeurIPS
    2019. Their logits z are cosines, of normalised features with normalised weights, to which the scale s and the
    margins belong; with a plain last layer take a scale near 1.

    Parameters
    ----------
    class_counts : (C,) tensor or sequence
        Size n of each class in the training set.
    max_margin : float, default=0.5
        Margin of the rarest class.
    scale : float, default=30.0
    drw_epoch : int, optional
        Deferred re-weighting: from this epoch, counted from 0, classes are weighed by their effective number as in
        :class:`ClassBalancedLoss`. Tell the loss the epoch by :meth:`set_epoch`. Default: never.
    beta : float, default=0.9999
        Of the re-weighting.
    ignore_index : int, default=-100
        Samples of this target count nowhere.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean divides by the summed weights of the samples, as :class:`torch.nn.CrossEntropyLoss` does; without any
        sample that counts it is 0.

    Examples
    --------
    >>> import torch
    >>> from experiments.losses import LDAMLoss
    >>> loss = LDAMLoss([1000, 10], drw_epoch=40)
    >>> loss.margin.numpy().round(3)
    array([0.158, 0.5  ])
    >>> logits, y = torch.tensor([[0.4, 0.0], [0.4, 0.5]]), torch.tensor([0, 1])
    >>> round(loss(logits, y).item(), 3)
    6.0
    >>> loss.set_epoch(40)
    >>> round(loss(logits, y).item(), 3)
    11.875
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
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(effective_number_weights(class_counts, beta), ignore_index, reduction)
        self.max_margin = check_real("max_margin", max_margin, low=0)
        self.scale = check_real("scale", scale, low=0)
        self.drw_epoch = None if drw_epoch is None else check_whole("drw_epoch", drw_epoch, least=0)
        self.beta = beta
        self.epoch = 0
        counts = torch.as_tensor(class_counts, dtype=torch.float64).detach()
        self.register_buffer("margin", self.max_margin * (counts.min() / counts) ** 0.25, persistent=False)

    def set_epoch(self, epoch: int) -> None:
        """The number of the epoch to come, from 0."""
        self.epoch = check_whole("epoch", epoch, least=0)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of ``(N, C)`` logits and ``(N,)`` classes."""
        logits, y = self._check(logits, target, self.margin)
        margin = self.margin.to(logits.dtype)[y]
        moved = logits.scatter_add(1, y[:, None], -margin[:, None])
        reweighted = self.drw_epoch is not None and self.epoch >= self.drw_epoch
        return self._reduce(-log_p(self.scale * moved, y), target, y, self.weight if reweighted else None)

    def extra_repr(self) -> str:
        """The settings."""
        deferred = "" if self.drw_epoch is None else f", drw_epoch={self.drw_epoch}, beta={self.beta:g}"
        return f"max_margin={self.max_margin:g}, scale={self.scale:g}{deferred}, reduction={self.reduction!r}"


def _class_weights(weight: Any) -> Tensor:
    requirement, advice = "must be one positive number per class", "pass e.g. 1 / torch.bincount(labels)"
    try:
        kept = torch.as_tensor(weight, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        raise invalid("weight", requirement, repr(weight), advice) from None
    if kept.ndim != 1:
        raise invalid("weight", requirement, f"shape {tuple(kept.shape)}", advice)
    if can_read(kept.device) and not bool(((kept > 0) & (kept < math.inf)).all()):
        raise invalid("weight", requirement, repr(weight), advice)
    return kept
