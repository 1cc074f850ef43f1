"""The parameters of the loss: their meaning, the defaults of the recommended loss, and a call with them."""

from typing import Any, Literal

from numpy.typing import ArrayLike
from torch import Tensor

from mauc._validation import check_choice, check_not_negative, check_pair_name, check_real, invalid
from mauc.activations import ACTIVATIONS
from mauc.nn._loss.batch import Batch, Loss
from mauc.nn._loss.checks import check_input, count_vector, pair_matrix
from mauc.nn._loss.evaluate import attach
from mauc.nn._loss.plain import class_ratios
from mauc.nn._loss.processes import process_group_for
from mauc.surrogates import SURROGATES, get_surrogate

Pairs = Literal["ovo", "ova", "ovr"] | ArrayLike | Tensor
LOG_LOSS = 1.0
"""Default weight of the log-loss."""
ALPHA = 4.0
"""Default rate of the exponential with ``log1p``; ``docs/results/longtail.md`` compares others."""


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
) -> Loss:
    """Check the parameters of a loss, and fill in the defaults that depend on others."""
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
    return Loss(chosen, activation, kind, ignore_index, share, bool(log1p), limit if share else None)


def _is_exponential(surrogate: Any) -> bool:
    form = getattr(surrogate, "closed_form", None)
    return form is not None and form.kind == "exponential"


def loss_of(
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    loss: Loss,
    pairs: Any,
    class_counts: Any,
    sync: bool,
    process_group: Any,
    ratios: Tensor | None = None,
) -> Tensor:
    """Return the loss of a batch; ``ratios`` are the r of the log-loss if they are known before the batch."""
    of_module = isinstance(class_counts, Tensor) and isinstance(logits, Tensor) and logits.ndim == 2
    if of_module and class_counts.shape != logits.shape[1:]:
        count_vector(class_counts, logits.shape[1])  # raises an error; that of the target would mislead
    none_ignored = check_input(logits, target, weight, loss.ignore_index)
    n_classes, device = logits.shape[1], logits.device
    matrix = pair_matrix(pairs, n_classes).to(device) if loss.pairs == "matrix" else None
    sizes = None
    if class_counts is not None and (ratios is None or loss.pairs == "ova" or ratios.shape[0] != n_classes):
        sizes = count_vector(class_counts, n_classes).to(device)
    if loss.log_loss and ratios is None:
        assert sizes is not None  # read_settings has checked it
        ratios = class_ratios(loss.pairs if matrix is None else matrix, sizes)
    if none_ignored and not sync:
        loss = loss._replace(ignore_index=None)
    ratios = ratios if ratios is None or ratios.device == device else ratios.to(device)
    batch = Batch(logits, target, weight, sizes if loss.pairs == "ova" else None, ratios, matrix)
    return attach(batch, loss, process_group_for(process_group) if sync else None)
