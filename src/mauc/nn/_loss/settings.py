"""The settings of the loss: their meaning, the defaults of the recommended loss, and their checks."""

import warnings
from typing import Any, Literal, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from mauc._validation import (
    check_choice,
    check_not_negative,
    check_pair_name,
    check_pairs,
    check_real,
    in_class_order,
    invalid,
    listing,
)
from mauc.activations import ACTIVATIONS, BOUNDED
from mauc.log_loss import partner_weights
from mauc.nn._loss.device import can_read, exact_dtype
from mauc.surrogates import SURROGATES, Surrogate, get_surrogate

Pairs = Literal["ovo", "ova", "ovr"] | ArrayLike | Tensor
LOG_LOSS = 1.0
"""Default weight of the log-loss."""
ALPHA = 4.0
"""Default rate of the exponential with ``log1p``; ``docs/results/longtail.md`` compares others."""


class Loss(NamedTuple):
    """The settings of a loss."""

    surrogate: Surrogate
    activation: str
    pairs: str
    """``"ovo"``, ``"ova"``, or ``"matrix"`` where the batch has one."""
    ignore_index: int | None
    """None if it is known that no sample is ignored."""
    log_loss: float
    """Weight of the log-loss."""
    log1p: bool
    """Whether the risk R_i of each class becomes log(1 + R_i)."""
    limit: float | None = None
    """Longest slope of the pair term, in slopes of the log-loss; None for the sum as it is."""
    unseen: tuple[int, ...] = ()
    """Classes of size 0, which no sample may have."""

    def pair_weight(self, n_classes: int) -> float:
        """Return the weight of the pair term; with ``log1p`` it is min(1, (C − 2) / 8), less what absent classes have.

        With two classes adjusted cross-entropy ranks optimally alone, and the pair term would only add noise.
        """
        return min(1.0, (n_classes - 2) / 8.0) if self.log1p else 1.0

    @property
    def pair_factor(self) -> float:
        """Return the factor of the pair risk in the value; that of the log-loss is this times ``log_loss``."""
        return 1.0 if self.limit is None else 1.0 / self.log_loss

    @property
    def bounded(self) -> bool:
        """Return whether scores lie in [0, 1]."""
        return self.activation in BOUNDED


def read_settings(
    surrogate: Any,
    alpha: float | None,
    log_loss: Any,
    log1p: bool | None,
    limit: float | None,
    class_counts: Any,
    pairs: Any,
    activation: str,
    ignore_index: int,
    options: dict[str, float],
) -> tuple[Loss, Tensor | None]:
    """Check the parameters of a loss, fill in the defaults that depend on others, and return the class sizes."""
    check_choice("activation", activation, ACTIVATIONS)
    kind = check_pair_name(pairs) if isinstance(pairs, str) else "matrix"
    share = check_not_negative("log_loss", log_loss, "0 is the pair loss alone")
    if class_counts is None and share:
        advice = "pass torch.bincount(labels)"
        raise invalid("class_counts", "must be the size of each class in the training set", "nothing", advice)
    if class_counts is not None and not share and kind == "ovo":
        advice = "leave it out, or pass log_loss=1.0"
        raise invalid("class_counts", "is only used by the log-loss and by pairs='ova'", "log_loss=0", advice)
    for name in (name for name in ("reduction", "weight", "label_smoothing") if name in options):
        advice = "leave it out; the loss is a mean over pairs, and sample weights go into its call"
        raise invalid(name, "is an option of CrossEntropyLoss, not of MAUCLoss", repr(options[name]), advice)
    on_log_odds = activation == "log_odds"
    if log1p is None:
        exponential = surrogate == "exponential" if isinstance(surrogate, str) else _is_exponential(surrogate)
        log1p = share > 0 and exponential and not on_log_odds
    default_alpha = None
    if isinstance(surrogate, str) and surrogate in SURROGATES:
        default_alpha = SURROGATES[surrogate].log_odds_alpha if on_log_odds else ALPHA if log1p else None
    chosen = get_surrogate(surrogate, alpha=alpha, default_alpha=default_alpha, **options)
    if log1p and not _is_exponential(chosen):
        requirement = "is for the exponential surrogate: all others have a bounded slope on softmax scores"
        raise invalid("log1p", requirement, f"the {chosen.name} surrogate", "leave it out")
    if limit is not None:
        limit = check_real("limit", limit, low=0, advice="None is the sum as it is")
    counts, unseen = (None, ()) if class_counts is None else count_vector(class_counts)
    loss = Loss(chosen, activation, kind, ignore_index, share, bool(log1p), limit if share else None, unseen)
    return loss, counts


def _is_exponential(surrogate: Any) -> bool:
    form = getattr(surrogate, "closed_form", None)
    return form is not None and form.kind == "exponential"


def pair_matrix(pairs: Any, n_classes: int) -> Tensor:
    """Return a ``(C, C)`` matrix of pair weights as a tensor."""
    if isinstance(pairs, Tensor) and not can_read(pairs):
        if pairs.shape != (n_classes, n_classes):
            requirement = f"must be 'ovo', 'ova' or a ({n_classes}, {n_classes}) matrix of weights"
            raise invalid("pairs", requirement, f"shape {tuple(pairs.shape)}", "pass v_ij at [i, j]")
        return pairs.detach()
    values = pairs.detach().numpy() if isinstance(pairs, Tensor) else pairs
    return torch.as_tensor(check_pairs(values, n_classes))


def count_vector(class_counts: Any) -> tuple[Tensor, tuple[int, ...]]:
    """Return the ``(C,)`` class sizes as a tensor, and the classes of size 0, of which it warns."""
    advice = "pass the size of each class in the training set, e.g. torch.bincount(labels, minlength=C)"
    requirement = "must be two or more positive numbers"
    try:
        is_tensor = isinstance(class_counts, Tensor)
        counts = torch.as_tensor(class_counts, dtype=None if is_tensor else torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        raise invalid("class_counts", requirement, repr(class_counts), advice) from None
    if counts.ndim != 1 or len(counts) < 2 or counts.is_complex():
        raise invalid("class_counts", requirement, f"shape {tuple(counts.shape)}", advice)
    if not is_tensor:  # a series of pandas' value_counts() begins with the largest class
        counts = torch.as_tensor(in_class_order(class_counts, counts.numpy(), range(len(counts)), "class_counts"))
    if not can_read(counts):
        return counts, ()
    wrong = (~((counts >= 0) & (counts < torch.inf))).nonzero()
    if len(wrong) or not bool(counts.any()):
        where = int(wrong[0]) if len(wrong) else 0
        raise invalid("class_counts", requirement, f"{counts[where].item():g} at {where}", advice)
    if counts.is_floating_point() and counts.max() < 1.0 and not 0.95 < float(counts.sum()) < 1.05:
        came = f"{listing([f'{x:g}' for x in counts.tolist()])}, which are below 1 and do not sum to 1"
        raise invalid("class_counts", "must be sizes or shares of the classes, not weights", came, advice)
    unseen = tuple((counts == 0).nonzero()[:, 0].tolist())
    if unseen:
        what = f"class_counts is 0 for class {listing(list(map(str, unseen)))}"
        warnings.warn(f"{what}: without a sample, nothing teaches the network to score it", stacklevel=4)
    return counts, unseen


def fitting_counts(counts: Tensor, n_classes: int) -> Tensor:
    """Check the number of class sizes."""
    if len(counts) != n_classes:
        advice = "pass the size of each class in the training set, e.g. torch.bincount(labels, minlength=C)"
        requirement = f"must be {n_classes} positive numbers"
        raise invalid("class_counts", requirement, f"shape {tuple(counts.shape)}", advice)
    return counts


def class_ratios(pairs: str | Tensor, class_counts: Tensor) -> Tensor:
    """Return the ``(C,)`` r from the class sizes, the largest of them 1."""
    ratios = class_counts.to(exact_dtype(class_counts.device))
    if isinstance(pairs, str):
        ratios = ratios if pairs == "ovo" else ratios.sign()
    else:
        ratios = ratios / torch.as_tensor(partner_weights(pairs.detach().cpu().numpy())).to(ratios)
    return ratios / ratios.max()
