"""The multiclass AUC risk of logits as a loss, and the multiclass AUC itself."""

from typing import Any

from torch import Tensor

from mauc.nn._loss.score import pairwise_of, score_of
from mauc.nn._loss.settings import LOG_LOSS, loss_of, read_settings

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
    activation: str = "softmax",
    pairs: Any = "ovo",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    sync: bool = False,
    process_group: Any = None,
    **options: float,
) -> Tensor:
    r"""The surrogate risk of the multiclass AUC, differentiable with respect to the logits.

    .. math:: R = \sum_i \sum_{j \ne i} v_{ij} \,
        \operatorname{mean}_{m \in N_i,\, n \in N_j} \ell(F_{mi} - F_{ni}), \qquad F = \text{activation}(\text{logits})

    With ``log_loss`` = λ > 0 the cross-entropy of logits Z that are shifted by the class frequencies is added,

    .. math:: L = R + \lambda \, \operatorname{mean}_n u_n \left[-\log \operatorname{softmax}(Z + \log p)_{y_n}\right] ,

    and with ``log1p`` the risk is bounded class by class: in place of :math:`R = \sum_i w_i R_i`, where R_i is the mean
    over the pairs of column i and :math:`w_i = \sum_j v_{ij}`, it is :math:`\sum_i w_i \log(1 + R_i)`.
    The defaults are those of :class:`mauc.nn.MAUCLoss`. Without ``log1p`` R is equal to :class:`mauc.SurrogateRisk`.

    Parameters
    ----------
    logits : (N, C) floating tensor
        float16 and bfloat16 are computed in float32. The loss has their dtype (float32 under autocast) and device.
    target : (N,) integer tensor
        Classes ``0..C-1``, or ``ignore_index``. Checked on the CPU; on other devices a class out of range is the
        device's own assertion, as with cross-entropy, because a check would wait for the device.
    surrogate : str or object
        ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``, ``"logistic"``,
        ``"distance_weighted"``, or an object with ``loss(t)`` and ``derivative(t)`` of NumPy arrays. What is smooth but
        no polynomial (logistic, 1/t, own ones) is approximated to the rounding of the logits; where that fails, all
        pairs are taken in blocks on the host, with a warning.
    alpha : float, optional
        Margin or rate α of the surrogate. Default: 8 for the exponential with ``log1p``, else the surrogate's own.
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.
    log_loss : float >= 0, default=0.5
        Weight λ of the log-loss. Alone it is :class:`mauc.nn.LogitAdjustedLoss`, which is consistent for the
        multiclass AUC by itself. p are the shares of ``class_counts``. With ``pairs="ova"`` nothing is shifted; with
        a matrix of the form :math:`a_i b_j` the shift is :math:`\log (p_j / b_j)`; another matrix is refused.
    log1p : bool, optional
        Default: for the exponential surrogate beside a log-loss. Only the exponential has it.
    activation : {"softmax", "sigmoid", "identity", "log_odds"}
        What makes scores of logits; :class:`mauc.nn.MAUCLoss` says more.
    pairs : {"ovo", "ova"} or (C, C) array
        Weights of the class pairs, :math:`v_{ij}` at ``[i, j]``.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0; no gradient flows into them. A class whose weights sum to 0 counts as absent.
    class_counts : (C,) tensor or sequence
        Size of each class in the training set (with sample weights: their sum). Needed unless ``log_loss=0``;
        ``pairs="ova"`` uses it too, see Notes.
    ignore_index : int
        Samples of this target count nowhere and get gradient 0.
    sync : bool
        Take the batches of all ranks of ``process_group`` as one, exactly: see Notes.

    Returns
    -------
    Tensor
        A scalar. Pairs of classes that the batch lacks drop out and the other weights are renormalised; with fewer
        than two classes the loss is 0 and so is its gradient. A logit that is not a number makes the loss so.

    Notes
    -----
    *Which weights are unbiased?* A batch in which the samples of each class are drawn evenly from that class, however
    many of each, has class means whose expectation is that of the training set, so the loss is an unbiased estimate
    as soon as :math:`v_{ij}` are the training set's. With ``"ovo"`` they do not depend on class sizes: nothing is
    needed under any class-aware sampling. With ``"ova"``, :math:`v_{ij} \propto p_j`: a sampler that evens out the
    classes evens out the batch's own :math:`p_j` too, and only ``class_counts`` brings the training set's back. Two
    more things are needed: every class in every batch (renormalising over the K pairs present is a ratio estimate,
    unbiased for ``"ovo"`` iff the mean of 1/K over the batches with a pair, times their share, is the same for all
    pairs), and no further reweighting of samples inside a class than the one you want to learn from.

    Squared, exponential and what is a line on the range of the scores, such as the hinge with ``alpha >= 1`` on softmax
    scores, cost O(N·C). So does what one polynomial follows, such as the logistic loss. The hinge family costs
    O(N·C·log n) for the largest class of n samples. On CUDA all of these run in fused kernels, of float32 and
    half-precision logits, which read the logits two or three times and never wait for the device. Elsewhere, and for
    1/t, own objects, float64 and ``torch.use_deterministic_algorithms``, the first kind runs in torch operations; the
    scores of the others go to the host, to the kernels of :class:`mauc.SurrogateRisk`.

    *Several processes.* With ``sync=True`` the sums that define the risk are those of all ranks; the ``(N, C)`` scores
    never leave theirs. Every rank returns the value of the whole, and its gradient times the number of ranks, because
    ``DistributedDataParallel`` averages over ranks; without it, sum the gradients and divide by that number.

    *Second derivatives* (``create_graph=True``) are exact, of every order, for squared, exponential and what is a line
    on the range of the scores, which serve :mod:`torch.func` in the same way. Of the others :mod:`torch.func` takes the
    first derivative. Their second derivatives, and all with ``sync=True`` or under :func:`torch.compile`, are refused.

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
    chosen, share, bounded = read_settings(surrogate, alpha, log_loss, log1p, class_counts, pairs, activation, options)
    return loss_of(
        logits,
        target,
        chosen,
        log_loss=share,
        log1p=bounded,
        activation=activation,
        pairs=pairs,
        weight=weight,
        class_counts=class_counts,
        ignore_index=ignore_index,
        sync=sync,
        process_group=process_group,
    )


def mauc_score(scores: Tensor, target: Tensor, *, pairs: Any = "ovo", weight: Tensor | None = None) -> Tensor:
    r"""The exact multiclass AUC on the device of the scores: :func:`mauc.mauc_score` with ``absent="ignore"``.

    .. math:: \mathrm{MAUC} = \sum_{i \ne j} v_{ij} \, \mathrm{AUC}_{i|j}, \qquad
        \mathrm{AUC}_{i|j} = \operatorname{mean}_{m \in N_i,\, n \in N_j}
        [F_{mi} > F_{ni}] + \tfrac12 [F_{mi} = F_{ni}]

    Parameters
    ----------
    scores : (N, C) floating tensor
        Used as they come: nothing applies a softmax.
    target : (N,) integer tensor
        Classes ``0..C-1``; a class without samples, or whose weights are all 0, drops out.
    pairs : {"ovo", "ova"} or (C, C) array
        Weights of the class pairs, :math:`v_{ij}` at ``[i, j]``.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0.

    Returns
    -------
    Tensor
        A float64 scalar on that device, without gradient; NaN where no pair of classes has samples. On the CPU a score
        that is not finite is an error; elsewhere, where looking at it would wait for the device, the result is NaN.

    Notes
    -----
    Each sample's score of its own class is sorted among its class's, once, and all scores of a column are searched
    among them: :math:`O(N C \log n)` for the largest class of n samples, and less than a gigabyte beside the scores,
    in blocks of columns. What comes to the host is n alone.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.functional import mauc_score
    >>> scores = torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    >>> mauc_score(scores, torch.tensor([0, 0, 1, 2])).item()
    0.875
    """
    return score_of(scores, target, pairs, weight)


def pairwise_auc(scores: Tensor, target: Tensor, *, weight: Tensor | None = None) -> Tensor:
    r"""The AUC of every ordered pair of classes on the device of the scores, as :func:`mauc.pairwise_auc` has it.

    Parameters
    ----------
    scores : (N, C) floating tensor
        Used as they come: nothing applies a softmax.
    target : (N,) integer tensor
        Classes ``0..C-1``.
    weight : (N,) tensor, optional
        Weights of the samples, >= 0.

    Returns
    -------
    (C, C) Tensor
        :math:`\mathrm{AUC}_{i|j}` at ``[i, j]``, float64, on that device, without gradient: how well column i ranks
        class i above class j. NaN on the diagonal and for classes without samples; all NaN where a score is not
        finite and looking at it would wait for the device.

    Notes
    -----
    The cost is that of :func:`mauc_score`.

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
    return pairwise_of(scores, target, weight)
