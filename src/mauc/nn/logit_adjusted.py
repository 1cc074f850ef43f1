"""Cross-entropy of logits shifted by the class frequencies."""

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mauc._validation import check_choice, check_not_negative, invalid
from mauc.nn._loss.batch import by_row, check_input
from mauc.nn._loss.settings import count_vector
from mauc.nn.modules import ExactBuffers

__all__ = ["LogitAdjustedLoss"]


class LogitAdjustedLoss(ExactBuffers):
    r"""Compute the cross-entropy of logits to which the logarithm of the class frequencies is added.

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
        Factor on the logarithm. 0 is cross-entropy.
    ignore_index : int, default=-100
        Samples with this target are left out.
    reduction : {"mean", "sum", "none"}, default="mean"
        The mean is over the samples that are not ignored; 0 if there is none.

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
        self,
        class_counts: Any,
        *,
        tau: float = 1.0,
        ignore_index: int = -100,
        reduction: Literal["mean", "sum", "none"] = "mean",
    ) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.reduction = check_choice("reduction", reduction, ("mean", "sum", "none"))
        self.tau = check_not_negative("tau", tau, "0 is cross-entropy, 1 the authors' choice")
        counts, self.unseen = count_vector(class_counts)
        counts = counts.to(torch.float64)
        self.register_buffer("shift", self.tau * (counts / counts.sum()).log(), persistent=False)

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the loss of ``(N, C)`` logits and ``(N,)`` classes, or of ``(N, C, …)`` and ``(N, …)``."""
        shape = target.shape
        logits, target, _ = by_row(logits, target, None)
        check_input(logits, target, None, self.ignore_index, self.unseen)
        if len(self.shift) != logits.shape[1]:
            came = f"{logits.shape[1]} columns"
            requirement = f"must have one column for each of the {len(self.shift)} classes"
            raise invalid("logits", requirement, came, "pass the sizes of all classes that the network scores")
        counted = target != self.ignore_index
        # Ignored rows may hold NaN, whose gradient is NaN even if it is multiplied by 0.
        adjusted = torch.where(counted[:, None], logits, 0.0) + self.shift.to(logits.dtype)
        losses = cross_entropy(adjusted, target.long(), ignore_index=self.ignore_index, reduction="none")
        if self.reduction == "none":
            return losses.reshape(shape)
        return losses.sum() if self.reduction == "sum" else losses.sum() / counted.sum().clamp(min=1)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"tau={self.tau:g}, reduction={self.reduction!r}"
