"""The loss as a module."""

import pickle
import warnings
from typing import Any

import torch
from torch import Tensor

from mauc._validation import PAIRS, check_choice
from mauc.activations import ACTIVATIONS
from mauc.nn._loss.batch import is_free
from mauc.nn._loss.buffers import ExactBuffers
from mauc.nn._loss.checks import count_vector, pair_matrix
from mauc.nn._loss.plain import class_ratios
from mauc.nn._loss.settings import LOG_LOSS, loss_of, read_settings

__all__ = ["MAUCLoss"]


class MAUCLoss(ExactBuffers):
    r"""Trains a network to rank: a pair loss for multiclass AUC beside cross-entropy.

    Put it where :class:`torch.nn.CrossEntropyLoss` stands. ``MAUCLoss(class_counts)`` is the recommended loss,

    .. math:: L = \frac{1}{C} \sum_i \log(1 + R_i) + \tfrac12 \operatorname{mean}_n
        \left[-\log \operatorname{softmax}(z_n + \log p)_{y_n}\right], \qquad
        R_i = \operatorname{mean}_{j \ne i} \operatorname{mean}_{m \in N_i,\, n \in N_j} e^{-8 (F_{mi} - F_{ni})},

    with F = softmax(z) and the class frequencies p. The second term is cross-entropy adjusted to the class
    frequencies, as in :class:`LogitAdjustedLoss`. The first counts pairs that are ranked wrongly, every pair of
    classes alike; the logarithm bounds what one class can add, so that training does not diverge.
    ``MAUCLoss(surrogate="exponential", alpha=1.0, log_loss=0.0)`` is the paper's loss.

    Parameters
    ----------
    class_counts : (C,) tensor or sequence
        Size of each class in the training set: ``torch.bincount(labels, minlength=C)``. Needed unless
        ``log_loss=0``.
    surrogate : str or object, default="exponential"
        The pair loss ℓ: ``"squared"``, ``"exponential"``, ``"hinge"``, ``"q_hinge"``, ``"generalized_hinge"``,
        ``"logistic"``, ``"distance_weighted"``, or an object with ``loss(t)`` and ``derivative(t)``.
    alpha : float, optional
        Margin or rate α of the surrogate. Default: 8 for the exponential with ``log1p``, else the surrogate's own.
    log_loss : float, default=0.5
        Weight λ of the adjusted cross-entropy. 0 is the pair loss alone, which trains networks worse than
        cross-entropy does.
    log1p : bool, optional
        Take log(1 + R_i) in place of the risk R_i of each class. Default: for the exponential surrogate beside a
        log-loss. Without it the slope of the exponential is unbounded, and SGD at a rate of 0.1 diverges.
    activation : {"softmax", "sigmoid", "identity", "log_odds"}, default="softmax"
        What makes scores F of logits. ``"log_odds"`` is log(p / (1 − p)) of the softmax p: with it the exponential
        loss (α = ½), the logistic loss (α = 1) and their sums with the log-loss are consistent for any number of
        classes; in training it is level with adjusted cross-entropy.
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
        Weights of the class pairs, that of column i against class j at ``[i, j]``.
    ignore_index : int, default=-100
        Samples of this target count nowhere and get gradient 0.
    sync : bool, default=False
        Take the batches of all ranks of ``process_group`` as one.
    process_group : optional
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.

    Notes
    -----
    :func:`mauc.nn.functional.mauc_loss` is the same as a function, and has the details. A batch of one class has no
    pairs; with ``log_loss=0`` its loss is 0, and on the CPU the first such batch in training gives a warning.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn import MAUCLoss
    >>> labels = torch.tensor([0, 0, 0, 1, 2])
    >>> loss = MAUCLoss(torch.bincount(labels))
    >>> logits = torch.zeros(5, 3, requires_grad=True)
    >>> round(loss(logits, labels).item(), 4)  # log 2, and half the entropy of the classes
    1.1683
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
        activation: str = "softmax",
        pairs: Any = "ovo",
        ignore_index: int = -100,
        sync: bool = False,
        process_group: Any = None,
        **options: float,
    ) -> None:
        super().__init__()
        self.surrogate, self.log_loss, self.log1p = read_settings(
            surrogate, alpha, log_loss, log1p, class_counts, pairs, activation, options
        )
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.ignore_index = ignore_index
        self.sync = sync
        self.process_group = process_group
        self._warned, self._lone = False, False
        if isinstance(pairs, str):
            self.pairs, matrix = check_choice("pairs", pairs, PAIRS), None
        else:
            self.pairs, matrix = "matrix", pair_matrix(pairs, len(pairs)).to(torch.float64)
        counts = exact = None
        if class_counts is not None:
            counts = count_vector(class_counts, len(class_counts)).to(torch.float64)
        if self.log_loss and counts is not None:
            exact = class_ratios(self.pairs if matrix is None else matrix, counts)
        # Buffers, so that they follow the module to its device; settings, so not part of its state.
        self.register_buffer("pair_matrix", matrix, persistent=False)
        self.register_buffer("class_counts", counts, persistent=False)
        self.register_buffer("exact_ratios", exact, persistent=False)
        self.register_buffer("ratios", None if exact is None else exact.to(torch.float32), persistent=False)

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """The loss of ``(N, C)`` logits, ``(N,)`` classes and, optionally, ``(N,)`` sample weights."""
        loss = loss_of(
            logits,
            target,
            self.surrogate,
            log_loss=self.log_loss,
            log1p=self.log1p,
            ratios=self.exact_ratios if logits.dtype == torch.float64 else self.ratios,
            activation=self.activation,
            pairs=self.pairs if self.pair_matrix is None else self.pair_matrix,
            weight=weight,
            class_counts=self.class_counts,
            ignore_index=self.ignore_index,
            sync=self.sync,
            process_group=self.process_group,
        )
        if loss.requires_grad and not self.log_loss and not self._warned and not self.sync and is_free(loss.device):
            self._warn_of_one_class(loss, target)
        return loss

    def _warn_of_one_class(self, loss: Tensor, target: Tensor) -> None:
        """Once, of a batch that teaches nothing; on a device a look at it would wait.

        A batch of one sample counts only after another such: the last batch of an epoch may be so small.
        """
        after_lone, self._lone = self._lone, len(target) == 1
        if len(target) == 0 or (self._lone and not after_lone) or loss.item() != 0.0:
            return
        counted = target[target != self.ignore_index]
        if len(counted) and bool((counted == counted[0]).all()):
            self._warned = True
            warnings.warn(
                "a batch held samples of one class only: no pair of classes meets in it, its loss is 0 and it teaches "
                "nothing. Shuffle the data, or pass "
                "DataLoader(batch_sampler=mauc.nn.ClassCoverageBatchSampler(labels, batch_size))",
                stacklevel=5,
            )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Refuse a module pickled by another version, whose state has other names."""
        missing = {"_warned", "log1p", "surrogate"} - state.keys()
        if missing:
            what = f"this MAUCLoss was pickled by another version of mauc: it lacks {', '.join(sorted(missing))}"
            raise pickle.UnpicklingError(f"{what}. Make the loss anew: its settings are the arguments of MAUCLoss")
        super().__setstate__(state)  # type: ignore[no-untyped-call]

    def extra_repr(self) -> str:
        """The settings."""
        logs = f", log_loss={self.log_loss:g}" + (", log1p=True" if self.log1p else "")
        shown = f"{self.surrogate!r}{logs}, activation={self.activation!r}, pairs={self.pairs!r}"
        return shown + (", sync=True" if self.sync else "")
