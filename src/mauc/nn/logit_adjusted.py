"""Cross-entropy of logits shifted by the class frequencies, and what it shares with other losses of one class each."""

from typing import Any

import torch
from torch import Tensor

from mauc._validation import check_choice, check_not_negative, invalid
from mauc.nn._loss.buffers import ExactBuffers
from mauc.nn._loss.checks import check_input, count_vector

__all__ = ["ClassLoss", "LogitAdjustedLoss", "log_p"]

REDUCTIONS = ("mean", "sum", "none")


class ClassLoss(ExactBuffers):
    """What the losses share: the arguments, checks and reductions of torch.nn."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, ignore_index: int, reduction: str) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.reduction = check_choice("reduction", reduction, REDUCTIONS)
        # Buffers, so that they follow the module to its device; settings, so not part of its state.
        self.register_buffer("weight", weight, persistent=False)

    def _check(self, logits: Tensor, target: Tensor, of_classes: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check the input; ``(N, C)`` logits and ``(N,)`` classes, 0 for ignored samples.

        The logits of ignored samples are set to 0 here and not by a mask of the losses: the gradient of NaN is NaN,
        even where it is multiplied by 0.
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
        """As :class:`torch.nn.CrossEntropyLoss`: the mean is over the weights of the samples that count."""
        valid = target != self.ignore_index
        each = valid.to(losses.dtype) if weight is None else torch.where(valid, weight.to(losses.dtype)[y], 0.0)
        weighted = torch.where(valid, losses, 0.0) * each
        if self.reduction == "none":
            return weighted
        if self.reduction == "sum":
            return weighted.sum()
        total = each.sum()
        return weighted.sum() / torch.where(total > 0, total, 1.0)


class LogitAdjustedLoss(ClassLoss):
    r"""Cross-entropy of logits to which the logarithm of the class frequencies is added.

    .. math:: -\log \operatorname{softmax}(z + \tau \log p)_y, \qquad p_i = n_i / N

    The network then learns z without the frequencies: at :math:`\tau = 1` the minimiser is
    :math:`\operatorname{softmax}(z)_i \propto \eta_i / p_i`, which ranks every column as Theorem 2's optimal scores do,
    so it is consistent for the ``"ovo"`` multiclass AUC.

    Menon, Jayasumana, Rawat, Jain, Veit, Kumar: Long-tail learning via logit adjustment, ICLR 2021.

    Parameters
    ----------
    class_counts : (C,) tensor or sequence
        Size n of each class in the training set.
    tau : float, default=1.0
        0 is cross-entropy.
    ignore_index : int, default=-100
        Samples of this target count nowhere.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean divides by the summed weights of the samples, as :class:`torch.nn.CrossEntropyLoss` does; without any
        sample that counts it is 0.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn import LogitAdjustedLoss
    >>> loss = LogitAdjustedLoss([90, 10])
    >>> round(loss(torch.zeros(1, 2), torch.tensor([1])).item(), 4)  # −log 0.1
    2.3026
    """

    shift: Tensor

    def __init__(
        self, class_counts: Any, *, tau: float = 1.0, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(None, ignore_index, reduction)
        self.tau = check_not_negative("tau", tau, "0 is cross-entropy, 1 the authors' choice")
        counts = count_vector(class_counts, None).to(torch.float64)
        self.register_buffer("shift", self.tau * (counts / counts.sum()).log(), persistent=False)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of ``(N, C)`` logits and ``(N,)`` classes."""
        logits, y = self._check(logits, target, self.shift)
        return self._reduce(-log_p(logits + self.shift.to(logits.dtype), y), target, y, None)

    def extra_repr(self) -> str:
        """The settings."""
        return f"tau={self.tau:g}, reduction={self.reduction!r}"


def log_p(logits: Tensor, y: Tensor) -> Tensor:
    """``(N,)`` logarithm of each sample's probability of its class."""
    return torch.log_softmax(logits, 1).gather(1, y[:, None])[:, 0]
