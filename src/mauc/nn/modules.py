"""The loss as a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from mauc.activations import Activation
from mauc.nn._loss.evaluate import loss_of
from mauc.nn._loss.settings import LOG_LOSS, Pairs, class_ratios, pair_matrix, read_settings

__all__ = ["ExactBuffers", "MAUCLoss"]


class ExactBuffers(nn.Module):
    """A module whose buffers keep their dtype: ``.half()`` would make class sizes above 65504 infinite."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, exact in before.items():
            moved = getattr(self, name)
            if moved.dtype != exact.dtype:
                setattr(self, name, exact.to(moved.device))
        return self


class MAUCLoss(ExactBuffers):
    r"""Train a network to rank: cross-entropy and a pair loss for multiclass AUC.

    Use it instead of :class:`torch.nn.CrossEntropyLoss`. ``MAUCLoss(class_counts)`` is the recommended loss,

    .. math:: L = \operatorname{mean}_n \left[-\log \operatorname{softmax}(z_n + \log p)_{y_n}\right] + P, \qquad
        P = \frac{c}{C} \sum_i \log(1 + R_i), \qquad
        R_i = \operatorname{mean}_{j \ne i} \operatorname{mean}_{m \in N_i,\, n \in N_j} e^{-4 (F_{mi} - F_{ni})},

    with F = softmax(z), the class frequencies p and c = min(1, (C − 2) / 8). The first term is cross-entropy adjusted
    to the class frequencies, as in :class:`LogitAdjustedLoss`. P counts pairs of samples that are ranked wrongly, every
    pair of classes alike; classes that the batch lacks add nothing. For two classes the first term ranks optimally
    alone.

    **The gradient is limited.** In a batch the slope of P is shortened to that of the cross-entropy, if it is longer,
    and the sum is divided by 1 + q, with q the length of the one over that of the other. So a step is never longer than
    one of cross-entropy, and the recipe of a network that was trained with cross-entropy still works.

    ``MAUCLoss(surrogate="exponential", alpha=1.0, log_loss=0.0)`` is the paper's loss.

    Parameters
    ----------
    class_counts : (C,) tensor or sequence
        Size of each class in the training set: ``torch.bincount(labels, minlength=C)``; with sample weights, their sum.
        Required unless ``log_loss=0``. ``pairs="ova"`` uses it too.
    surrogate : str or object, default="exponential"
        The pair loss ℓ: ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``,
        ``"logistic"``, ``"distance_weighted"``, or an object with ``loss(t)`` and ``derivative(t)`` of NumPy arrays.
    alpha : float, optional
        Margin or rate α of the surrogate. Default: 4 for the exponential with ``log1p``, else the
        surrogate's own (:mod:`mauc.surrogates`): on log-odds ½ for the exponential and 1 for the logistic loss.
    log_loss : float, default=1.0
        Weight λ of the adjusted cross-entropy beside the pair loss. 0 is the pair loss alone, which trains networks
        worse than cross-entropy does. With ``pairs="ova"`` the logits are not adjusted; a matrix ``pairs`` must be of
        the form :math:`a_i b_j`, and the logits are adjusted by :math:`\log (p_j / b_j)`.
    log1p : bool, optional
        Take log(1 + R_i) instead of the risk R_i of each class, each with the weight c / C; only for the exponential.
        Default: True for the exponential with a log-loss, except on log-odds.
    limit : float or None, default=1.0
        Longest slope of the pair loss in a batch, in slopes of the log-loss. The value is then the log-loss plus 1/λ
        times the pair loss, and the gradient has the scale of cross-entropy. None is the plain sum, pair loss plus λ
        times the log-loss, whose steps have no bound. Unused with ``log_loss=0``.
    activation : {"softmax", "sigmoid", "identity", "log_odds"}, default="softmax"
        How logits become scores F. ``"log_odds"`` is log(p / (1 − p)) of the softmax p: with it the exponential loss
        (α = ½), the logistic loss (α = 1) and their sums with the log-loss are consistent for any number of classes;
        in training it is level with adjusted cross-entropy.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs. ``"ovo"``: all the same. ``"ova"``: each class against all others together. A
        matrix: the weight of column i against class j at ``[i, j]``.
    ignore_index : int, default=-100
        Samples with this target are left out and get gradient 0.
    sync : bool, default=False
        Compute the loss of the batches of all ranks of ``process_group`` as one batch. Every rank gathers the logits
        and targets of all, and returns the loss of the whole batch. It multiplies the gradient of its rows by the
        number of ranks, because ``DistributedDataParallel`` averages over ranks. All ranks need the same number of
        batches, which may be empty: a rank with more waits for the others until the group's timeout, also under
        ``model.join()``. :class:`ClassCoverageBatchSampler` deals out equal numbers.
    process_group : optional
        Default: all ranks.
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.

    Notes
    -----
    *Degenerate batches.* Pairs of classes that a batch lacks drop out, and the other weights are renormalised. A batch
    of one class has no pairs: with ``log_loss=0`` its loss and gradient are 0, and
    :class:`ClassCoverageBatchSampler` draws better batches. A logit that is NaN makes the loss NaN.

    *Unbiased batches.* With ``pairs="ovo"`` the risk of a batch is an unbiased estimate under every sampler that draws
    the samples of each class evenly and puts every class in every batch. This does not hold with ``log1p``: the
    logarithm makes the estimate too small on average, and the limit depends on the batch. With ``"ova"`` such a sampler
    changes the class shares; ``class_counts`` brings those of the training set back.

    *Cost.* O(N·C) for the squared, exponential and logistic losses, and for the hinge with ``alpha >= 1`` on softmax
    scores; O(N·C·log n) for the hinge family, with n samples in a class. On CUDA fused kernels compute the exponential
    loss, and the squared and linear losses of bounded scores, in float32 and half precision, without waiting for the
    device. All else runs in torch operations. A smooth surrogate that is not a polynomial is approximated to the
    rounding of the logits; if that fails, all pairs are computed in blocks, with a warning.

    *Second derivatives* and :mod:`torch.func` are available for every loss; a surrogate that is an object with NumPy
    functions, and that no polynomial approximates, has first derivatives alone. With ``sync=True`` and inside
    :func:`torch.compile` second derivatives are refused.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn import MAUCLoss
    >>> labels = torch.tensor([0, 0, 0, 1, 2])
    >>> loss = MAUCLoss(torch.bincount(labels))
    >>> logits = torch.zeros(5, 3, requires_grad=True)
    >>> round(loss(logits, labels).item(), 4)  # an eighth of log 2, and the entropy of the classes
    1.0369
    """

    pair_matrix: Tensor | None
    class_counts: Tensor | None
    ratios: Tensor | None
    exact_ratios: Tensor | None

    def __init__(
        self,
        class_counts: Any = None,
        *,
        surrogate: Any = "exponential",
        alpha: float | None = None,
        log_loss: float = LOG_LOSS,
        log1p: bool | None = None,
        limit: float | None = 1.0,
        activation: Activation = "softmax",
        pairs: Pairs = "ovo",
        ignore_index: int = -100,
        sync: bool = False,
        process_group: Any = None,
        **options: float,
    ) -> None:
        super().__init__()
        loss, counts = read_settings(
            surrogate, alpha, log_loss, log1p, limit, class_counts, pairs, activation, ignore_index, options
        )
        self.settings = loss
        self.sync = sync
        self.process_group = process_group
        matrix = None
        if loss.pairs == "matrix":
            matrix = pair_matrix(pairs, max((2, *np.shape(pairs)))).to(torch.float64)
        counts = None if counts is None else counts.to(torch.float64)
        exact = None
        if loss.log_loss and counts is not None:
            exact = class_ratios(loss.pairs if matrix is None else matrix, counts)
        # Buffers, so that they follow the module to its device; settings, so not part of its state.
        self.register_buffer("pair_matrix", matrix, persistent=False)
        self.register_buffer("class_counts", counts, persistent=False)
        self.register_buffer("exact_ratios", exact, persistent=False)
        self.register_buffer("ratios", None if exact is None else exact.to(torch.float32), persistent=False)

    def forward(
        self, logits: Tensor, target: Tensor, weight: Tensor | None = None, num_items_in_batch: Any = None
    ) -> Tensor:
        """Return the loss of ``(N, C)`` logits, ``(N,)`` classes and, optionally, ``(N,)`` sample weights.

        Logits may also be ``(N, C, …)`` with ``(N, …)`` classes, such as those of pixels, or an object that has them
        as ``logits``. ``num_items_in_batch``, which Hugging Face's ``Trainer`` passes, is ignored.
        """
        logits = getattr(logits, "logits", logits)
        ratios = self.exact_ratios if logits.dtype == torch.float64 else self.ratios
        counts, matrix = self.class_counts, self.pair_matrix
        return loss_of(logits, target, weight, self.settings, matrix, counts, self.sync, self.process_group, ratios)

    def extra_repr(self) -> str:
        """Return the settings."""
        loss = self.settings
        logs = f", log_loss={loss.log_loss:g}" + (", log1p=True" if loss.log1p else "")
        logs += "" if loss.limit is None else f", limit={loss.limit:g}"
        shown = f"{loss.surrogate!r}{logs}, activation={loss.activation!r}, pairs={loss.pairs!r}"
        return shown + (", sync=True" if self.sync else "")
