"""Multiclass AUC as a loss of logits, and as a score; all functions take ``(scores, target)``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mauc.activations import Activation
from mauc.nn._loss.evaluate import loss_of
from mauc.nn._loss.score import beaten_by, read_scores
from mauc.nn._loss.settings import LOG_LOSS, Pairs, read_settings

__all__ = ["mauc_loss", "mauc_score", "pairwise_auc"]


def mauc_loss(
    logits: Tensor,
    target: Tensor,
    *,
    class_counts: Any = None,
    surrogate: Any = "exponential",
    alpha: float | None = None,
    log_loss: float = LOG_LOSS,
    log1p: bool | None = None,
    limit: float | None = 1.0,
    activation: Activation = "softmax",
    pairs: Pairs = "ovo",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    sync: bool = False,
    process_group: Any = None,
    **options: float,
) -> Tensor:
    r"""Compute the loss of :class:`mauc.nn.MAUCLoss`, which explains the parameters that are not listed here.

    .. math:: L = \sum_i w_i \, g(R_i) + \lambda \,
        \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(Z + \log p)_{y_n}\right], \qquad
        R_i = \frac{1}{w_i} \sum_{j \ne i} v_{ij} \,
        \operatorname{mean}_{m \in N_i,\, n \in N_j} \ell(F_{mi} - F_{ni}), \qquad w_i = \sum_{j \ne i} v_{ij},

    with the scores F = activation(Z), and g(R) = R or, with ``log1p``, min(1, (C − 2) / 8) (K / C) log(1 + R) for the K
    classes that the batch has. With a ``limit`` the value is L / λ, and the gradient is limited as the class says. With
    ``log_loss=0`` it is :class:`mauc.SurrogateRisk`.

    Parameters
    ----------
    logits : (N, C) or (N, C, …) floating-point tensor
        More dimensions, such as those of an image, are more samples. float16 and bfloat16 are computed in float32.
    target : (N,) or (N, …) integer tensor
        Classes ``0..C-1``, or ``ignore_index``. Checked on the CPU; a check on another device would wait for it.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0; no gradient flows into them. A class whose weights sum to 0 counts as absent.

    Returns
    -------
    Tensor
        A scalar in the dtype of the logits, float32 under autocast, and on their device.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.functional import mauc_loss
    >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]], requires_grad=True)
    >>> loss = mauc_loss(logits, torch.tensor([0, 0, 1, 2]), surrogate="squared", log_loss=0.0)
    >>> loss.backward()
    >>> round(loss.item(), 4), tuple(logits.grad.shape)
    (0.3041, (4, 3))
    """
    loss, counts = read_settings(
        surrogate, alpha, log_loss, log1p, limit, class_counts, pairs, activation, ignore_index, options
    )
    return loss_of(logits, target, weight, loss, pairs, counts, sync, process_group)


def mauc_score(scores: Tensor, target: Tensor, *, pairs: Pairs = "ovo", weight: Tensor | None = None) -> Tensor:
    r"""Compute the exact multiclass AUC on the device of the scores: :func:`mauc.mauc_score` with ``absent="ignore"``.

    .. math:: \mathrm{MAUC} = \sum_{i \ne j} v_{ij} \, \mathrm{AUC}_{i|j}, \qquad
        \mathrm{AUC}_{i|j} = \operatorname{mean}_{m \in N_i,\, n \in N_j}
        [F_{mi} > F_{ni}] + \tfrac12 [F_{mi} = F_{ni}]

    Parameters
    ----------
    scores : (N, C) floating tensor
        Used as they are: no softmax is applied.
    target : (N,) integer tensor
        Classes ``0..C-1``; a class without samples, or whose weights are all 0, drops out.
    pairs : {"ovo", "ova", "ovr"} or (C, C) array
        Weights of the class pairs, :math:`v_{ij}` at ``[i, j]``.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0.

    Returns
    -------
    Tensor
        A float64 scalar on that device, without gradient; NaN if no pair of classes has samples. On the CPU a score
        that is not finite is an error; elsewhere, where a check would wait for the device, the result is NaN.

    Notes
    -----
    The scores of each class in its own column are sorted once, and all scores of a column are searched among them:
    :math:`O(N C \log n)` time for the largest class of n samples, and less than a gigabyte beside the scores, in blocks
    of columns. Only n is copied to the host.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.functional import mauc_score
    >>> scores = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    >>> mauc_score(scores, torch.tensor([0, 0, 1, 2])).item()
    0.875
    """
    scores, batch = read_scores(scores, target, pairs, weight)
    if batch is None:
        return torch.full((), torch.nan, dtype=torch.float64, device=scores.device)
    lost = torch.zeros((), dtype=batch.unit.dtype, device=scores.device)
    for columns, beaten in beaten_by(scores, batch, weighted=weight is not None):
        # Each share with the weight of its score as a negative.
        if batch.matrix is not None:
            lost = lost + (beaten * batch.matrix[:, columns].T[:, batch.y] * batch.row).sum()
        else:
            others = beaten.masked_fill_(batch.y == columns[:, None], 0.0)
            lost = lost + batch.column[columns] @ (others @ batch.row)
    # One minus the loss: exactly 1 if nothing is lost.
    value = 1.0 - lost / batch.total.sum()
    # NaN if no pair is left, or if a score is NaN: it has no place in the order.
    whole = (batch.total.sum() > 0) & scores.isfinite().all()
    return torch.where(whole, value.clamp(0.0, 1.0), torch.nan)


def pairwise_auc(scores: Tensor, target: Tensor, *, weight: Tensor | None = None) -> Tensor:
    r"""Compute the AUC of every ordered pair of classes on the device of the scores, as :func:`mauc.pairwise_auc` does.

    The parameters and the cost are those of :func:`mauc_score`.

    Returns
    -------
    (C, C) Tensor
        :math:`\mathrm{AUC}_{i|j}` at ``[i, j]``, float64, on that device, without gradient: how well column i ranks
        class i above class j. NaN on the diagonal and for classes without samples; all NaN if a score is not
        finite and a check would wait for the device.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.functional import pairwise_auc
    >>> scores = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    >>> pairwise_auc(scores, torch.tensor([0, 0, 1, 2]))
    tensor([[   nan, 0.5000, 1.0000],
            [0.7500,    nan, 1.0000],
            [1.0000, 1.0000,    nan]], dtype=torch.float64)
    """
    scores, batch = read_scores(scores, target, "ovo", weight)
    n_classes = scores.shape[1]
    matrix = torch.full((n_classes, n_classes), torch.nan, dtype=torch.float64, device=scores.device)
    if batch is None:
        return matrix
    for columns, beaten in beaten_by(scores, batch, weighted=weight is not None):
        lost = beaten.new_zeros((len(columns), n_classes)).index_add_(1, batch.y, beaten * batch.unit)
        matrix[columns] = (1.0 - lost).clamp_(0.0, 1.0)
    there = batch.size > 0
    known = torch.outer(there, there).fill_diagonal_(False) & scores.isfinite().all()
    return matrix.masked_fill_(~known, torch.nan)
