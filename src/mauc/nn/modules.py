"""The loss as a module."""

from typing import Any

import torch
from torch import Tensor

from mauc._validation import PAIRS, check_choice
from mauc.activations import ACTIVATIONS
from mauc.nn._engine.batch import is_traced
from mauc.nn._engine.buffers import ExactBuffers
from mauc.nn._engine.checks import count_vector, pair_matrix
from mauc.nn._engine.log_term import class_ratios, of_partners, read_log_loss
from mauc.nn._engine.loss import loss_of
from mauc.nn._engine.watch import OneClassWatch
from mauc.surrogates import get_surrogate

__all__ = ["MAUCLoss"]


class MAUCLoss(ExactBuffers):
    """The surrogate risk of the multiclass AUC in place of :class:`torch.nn.CrossEntropyLoss`.

    Parameters are those of :func:`mauc.nn.functional.mauc_loss`, and are checked here once. A batch of one class has
    loss 0 and gradient 0; the first such batch that is seen in training gives one warning. On CUDA the first batches
    and then one in 64 are looked at, without waiting for the device; none are with ``sync=True`` or under
    :func:`torch.compile`.

    Parameters
    ----------
    surrogate : str or object, default="exponential"
    alpha : float, optional
    log_loss : float or "only", default=0.0
    activation : {"softmax", "sigmoid", "identity"}, default="softmax"
    pairs : {"ovo", "ova"} or (C, C) array, default="ovo"
    class_counts : (C,) tensor or sequence, optional
    ignore_index : int, default=-100
    sync : bool, default=False
    process_group : optional
    **options
        Further parameters of the surrogate: ``q``, ``epsilon``.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn import MAUCLoss
    >>> loss = MAUCLoss("squared", alpha=1.0)
    >>> logits = torch.zeros(4, 3, requires_grad=True)
    >>> loss(logits, torch.tensor([0, 0, 1, 2])).item()
    1.0
    """

    pair_matrix: Tensor | None
    class_counts: Tensor | None
    ratios: Tensor | None

    def __init__(
        self,
        surrogate: Any = "exponential",
        *,
        alpha: float | None = None,
        log_loss: float | str = 0.0,
        activation: str = "softmax",
        pairs: Any = "ovo",
        class_counts: Any = None,
        ignore_index: int = -100,
        sync: bool = False,
        process_group: Any = None,
        **options: float,
    ) -> None:
        super().__init__()
        self.surrogate = get_surrogate(surrogate, alpha=alpha, **options)
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        self.ignore_index = ignore_index
        self.sync = sync
        self.process_group = process_group
        self._watch = OneClassWatch()
        if isinstance(pairs, str):
            self.pairs, matrix = check_choice("pairs", pairs, PAIRS), None
        else:
            self.pairs, matrix = "matrix", pair_matrix(pairs, len(pairs)).to(torch.float64)
        counts = None
        if class_counts is not None:
            counts = count_vector(class_counts, len(class_counts)).to(torch.float64)
        # Buffers, so that they follow the module to its device; settings, so not part of its state.
        self.register_buffer("pair_matrix", matrix, persistent=False)
        self.register_buffer("class_counts", counts, persistent=False)
        self.log_loss = log_loss
        share, _ = read_log_loss(log_loss)
        ratios = None
        if share and counts is not None:
            kind = self.pairs if matrix is None else matrix
            ratios = class_ratios(kind, of_partners(kind), counts)
            ratios = (ratios / ratios.max()).to(torch.float32)
        self.register_buffer("ratios", ratios, persistent=False)

    def forward(self, logits: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """The loss of ``(N, C)`` logits, ``(N,)`` classes and, optionally, ``(N,)`` sample weights."""
        buffers = self._buffers  # by name, past the module's slow way to attributes
        matrix = buffers["pair_matrix"]
        loss = loss_of(
            logits,
            target,
            self.surrogate,
            log_loss=self.log_loss,
            ratios=buffers["ratios"],
            activation=self.activation,
            pairs=self.pairs if matrix is None else matrix,
            weight=weight,
            class_counts=buffers["class_counts"],
            ignore_index=self.ignore_index,
            sync=self.sync,
            process_group=self.process_group,
            checked=True,
        )
        if loss.requires_grad and not self.log_loss and not self._watch.warned and not self.sync and not is_traced():
            self._watch.look(loss, target, self.ignore_index)
        return loss

    def extra_repr(self) -> str:
        """The settings."""
        logs = f", log_loss={self.log_loss!r}" if self.log_loss else ""
        shown = f"{self.surrogate!r}{logs}, activation={self.activation!r}, pairs={self.pairs!r}"
        return shown + (", sync=True" if self.sync else "")
