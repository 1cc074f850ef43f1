"""Multiclass AUC as a torchmetrics metric."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any, Literal

import numpy as np
import torch
from sklearn.exceptions import UndefinedMetricWarning
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities.data import dim_zero_cat
from torchmetrics.utilities.distributed import gather_all_tensors

from mauc._kernels.auc import auc_matrix
from mauc._typing import Floats, Ints
from mauc._validation import check_choice, check_pairs, check_whole, invalid, listing
from mauc.metrics.scores import weighted_mean
from mauc.nn._loss.batch import check_classes, check_finite, check_tensors, check_weight
from mauc.nn._loss.settings import Pairs
from mauc.nn.functional import mauc_score
from mauc.partition import ClassPartition

__all__ = ["MAUC"]


class MAUC(Metric):
    r"""Compute multiclass AUC over batches: exactly, or from histograms in constant memory.

    .. math:: \mathrm{MAUC} = \sum_{i \ne j} v_{ij} \, \mathrm{AUC}_{i|j}, \qquad
        \mathrm{AUC}_{i|j} = \operatorname{mean}_{m \in N_i,\, n \in N_j}
        [F_{mi} > F_{ni}] + \tfrac12 [F_{mi} = F_{ni}]

    as :func:`mauc.mauc_score`.

    Parameters
    ----------
    num_classes : int
    pairs : {"ovo", "ova", "ovr"} or (C, C) array, default="ovo"
        Weights of the class pairs. ``"ovo"``: all the same, the M of Hand and Till. ``"ova"``: each class against all
        others together. A matrix: the weight of column i on class i against class j at ``[i, j]``.
    average : {"macro", "none"} or None, default="macro"
        ``"macro"``: one number. None: ``(C,)``, for each class i the mean of :math:`\mathrm{AUC}_{i|j}` over the other
        classes, weighted by row i of the pair weights; NaN for classes without samples. Computed on the host.
    thresholds : int or (T,) increasing tensor, optional
        None: store every score; the result is exact. A number T: count scores in the bins between T thresholds from 0
        to 1, for probabilities. A tensor: count in the bins between these thresholds, for scores of any kind.
    ignore_index : int, optional
        Samples with this target are left out.
    absent : {"warn", "ignore", "raise"}, default="warn"
        What to do where a class has no sample, or weights that are all 0. Its pairs drop out, with one warning that
        names the class unless ``"ignore"``; or it is an error.
    softmax : bool, optional
        Apply a softmax to each row. Default: as in torchmetrics, if any value lies outside [0, 1], but never with
        thresholds of your own. False: rank by the scores as they are, such as log-odds.
    validate_args : bool, default=True
        Check the values of each batch; on a GPU that waits for the device.
    **kwargs
        Parameters of :class:`torchmetrics.Metric`, such as ``compute_on_cpu`` or ``process_group``.

    Notes
    -----
    A softmax changes the order within a column. The exact metric looks for values outside [0, 1] among all scores, the
    binned one batch by batch.

    *Binned.* Two samples in one bin count ½, whichever is higher, so with the share :math:`h_{ij}(t)` of class j in
    bin t of column i

    .. math:: \lvert \mathrm{binned} - \mathrm{exact} \rvert \le
        \tfrac12 \sum_{i \ne j} v_{ij} \sum_t h_{ii}(t) \, h_{ij}(t),

    which :meth:`error_bound` returns. It is small if the thresholds lie densely among the scores. Softmax scores of
    many classes are mostly near 0: space the thresholds logarithmically there.

    *Cost.* Exact: ``4 N (C + 3)`` bytes for float32 scores; ``compute`` sorts once per class, on the GPU if the scores
    are there (:func:`mauc.nn.functional.mauc_score`). Binned: ``8 C² (T + 1)`` bytes, whatever N.

    *Distributed.* ``compute`` gathers or sums the states of all ranks; a rank may have seen no sample.

    ``compute`` returns a scalar, or one number per class, in the default dtype; NaN, with ``UndefinedMetricWarning``,
    if no pair of classes has samples.

    Examples
    --------
    >>> import torch
    >>> from mauc.nn.metric import MAUC
    >>> metric = MAUC(num_classes=3)
    >>> metric.update(torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3]]), torch.tensor([0, 0]))
    >>> metric.update(torch.tensor([[0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]), torch.tensor([1, 2]))
    >>> metric.compute()
    tensor(0.8750)

    Class by class:

    >>> by_class = MAUC(num_classes=3, average=None)
    >>> by_class(torch.tensor([[0.8, 0.1, 0.1], [0.2, 0.5, 0.3], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]]),
    ...          torch.tensor([0, 0, 1, 2]))
    tensor([0.7500, 0.8750, 1.0000])
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0
    plot_legend_name = "Class"
    _checks_range = False

    preds: list[Tensor]
    target: list[Tensor]
    weight: list[Tensor]
    histogram: Tensor
    edges: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        pairs: Pairs = "ovo",
        average: Literal["macro", "none"] | None = "macro",
        thresholds: int | Tensor | None = None,
        ignore_index: int | None = None,
        absent: Literal["warn", "ignore", "raise"] = "warn",
        softmax: bool | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.num_classes = check_whole("num_classes", num_classes, least=2)
        self.pairs = check_pairs(_numpy(pairs) if isinstance(pairs, Tensor) else pairs, self.num_classes)
        self.average = check_choice("average", "none" if average is None else average, ("macro", "none"))
        self.ignore_index = ignore_index
        self.absent = check_choice("absent", absent, ("warn", "ignore", "raise"))
        self._names_absent = self.absent == "warn"
        self.softmax = softmax
        if softmax is None and thresholds is not None and not isinstance(thresholds, Integral):
            self.softmax = False
        self.validate_args = bool(validate_args)
        self.binned = thresholds is not None
        # Thresholds from 0 to 1 are for probabilities; warn once of other scores.
        self._checks_range = isinstance(thresholds, Integral) and softmax is False
        if thresholds is None:
            for name in ("preds", "target", "weight"):
                self.add_state(name, default=[], dist_reduce_fx="cat")
        else:
            self.register_buffer("edges", _edges(thresholds), persistent=False)
            shape = (self.num_classes, self.num_classes, len(self.edges) + 1)
            self.add_state("histogram", default=torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        preds : (N, C) or (N, C, …) floating-point scores
            Column i ranks "is class i". More dimensions, such as those of an image, are more samples.
        target : (N,) or (N, …) class numbers
        weight : (N,) or (N, …) weights >= 0, optional
        """
        check_tensors("preds", preds, target, weight, self.num_classes)
        if preds.ndim > 2:
            preds = preds.movedim(1, -1).reshape(-1, self.num_classes)
            target, weight = target.flatten(), None if weight is None else weight.flatten()
        preds, target = preds.detach(), target.detach()
        if preds.dtype in (torch.float16, torch.bfloat16):
            preds = preds.float()
        if weight is None:
            weight = torch.ones_like(target, dtype=preds.dtype)
        else:  # never narrower than it came: 1e-50 is 0 in float32
            weight = weight.detach().to(torch.promote_types(weight.dtype, preds.dtype))
        if self.ignore_index is not None:
            counted = target != self.ignore_index
            preds, target, weight = preds[counted], target[counted], weight[counted]
        if self.validate_args:
            check_finite("preds", preds)
            check_classes(target, self.num_classes)
            check_weight(weight)
            if self._checks_range and len(preds):
                self._checks_range = not _warn_of_range(preds)
        target = target.long()
        if self.binned:
            preds = self._ranked(preds)
            # [j, i, t]: the weight of class j in bin t of column i.
            bins = torch.bucketize(preds.contiguous(), self.edges.to(preds.dtype), right=True)
            columns = torch.arange(self.num_classes, device=preds.device)
            cell = (target[:, None] * self.num_classes + columns) * self.histogram.shape[2] + bins
            spread = weight.to(self.histogram.dtype)[:, None].expand(-1, self.num_classes)
            self.histogram.view(-1).scatter_add_(0, cell.flatten(), spread.flatten())
        else:
            self.preds.append(preds)
            self.target.append(target)
            self.weight.append(weight)

    def compute(self) -> Tensor:
        """Return the multiclass AUC of all batches so far."""
        if self.average == "macro" and not self.binned and len(self.preds) > 0 and dim_zero_cat(self.preds).is_cuda:
            return self._on_device()
        matrix, v, sizes = self._binned()[:3] if self.binned else self._exact()
        self._note_absent(sizes)
        if v.sum() == 0:
            _warn_undefined()
        rows = [(matrix, v)] if self.average == "macro" else zip(matrix, v, strict=True)
        means = [min(weighted_mean(aucs, weights), 1.0) if weights.any() else float("nan") for aucs, weights in rows]
        value = means[0] if self.average == "macro" else means
        return torch.tensor(value, dtype=torch.get_default_dtype(), device=self.device)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot ``val``, a value or a list of values of successive steps; default: ``compute()``."""
        return self._plot(val, ax)

    def error_bound(self) -> Tensor:
        """Return the most by which the binned result can differ from the exact one; 0 for the exact metric."""
        bound = 0.0
        if self.binned:
            with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
                _, v, _, tied = self._binned()
            if v.sum() == 0:
                _warn_undefined()
            bound = 0.5 * weighted_mean(tied, v) if v.any() else float("nan")
        return torch.tensor(bound, dtype=torch.get_default_dtype(), device=self.device)

    def _on_device(self) -> Tensor:
        """Compute the exact value on the device of the scores."""
        weight = dim_zero_cat(self.weight)
        target, scores = dim_zero_cat(self.target), self._ranked(dim_zero_cat(self.preds))
        self._note_absent(_numpy(weight.new_zeros(self.num_classes).index_add(0, target, weight)))
        value = mauc_score(scores, target, pairs=self.pairs, weight=None if bool((weight == 1).all()) else weight)
        if bool(value.isnan()):
            _warn_undefined()
        return value.to(torch.get_default_dtype())

    def _ranked(self, preds: Tensor) -> Tensor:
        """Return the scores that rank: a softmax of logits."""
        softmax = self.softmax
        if softmax is None:
            softmax = len(preds) > 0 and not _are_probabilities(preds)
        return preds.softmax(1) if softmax else preds

    def _note_absent(self, sizes: Floats) -> None:
        """Warn once of classes without samples, or raise, if two classes or more have some."""
        missing = np.flatnonzero(sizes == 0).tolist()
        if not missing or self.num_classes - len(missing) < 2 or self.absent == "ignore":
            return
        what = f"{'class' if len(missing) == 1 else 'classes'} {listing([str(c) for c in missing])}"
        if self.absent == "raise":
            advice = "add samples of it, or pass absent='ignore' to average over the other pairs"
            raise invalid("target", "must have samples of every class", f"none of {what}", advice)
        if self._names_absent:
            self._names_absent = False
            message = f"no sample of {what}: its pairs are left out of the multiclass AUC (absent='ignore' hides this)"
            warnings.warn(message, UndefinedMetricWarning, stacklevel=4)

    def _exact(self) -> tuple[Floats, Floats, Floats]:
        """Return the ``(C, C)`` AUCs, the weights of the pairs, all 0 if there is none, and those of the classes."""
        if len(self.preds) == 0:
            nothing = np.zeros((self.num_classes, self.num_classes))
            return nothing, nothing, nothing[0]
        scores, weight = _numpy(self._ranked(dim_zero_cat(self.preds))), _numpy(dim_zero_cat(self.weight))
        target: Ints = dim_zero_cat(self.target).cpu().numpy()
        counted = weight > 0
        if not counted.all():
            scores, target, weight = scores[counted], target[counted], weight[counted]
        weights = None if bool((weight == 1).all()) else weight.astype(np.float64)
        partition = ClassPartition(target, self.num_classes, weights)
        v = partition.pair_weights(self.pairs)
        sizes = np.bincount(target, minlength=self.num_classes).astype(np.float64)
        return (auc_matrix(partition.problem(scores, normalised=False)) if v.sum() else v), v, sizes

    def _binned(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the ``(C, C)`` AUCs, the weights of the pairs and of the classes, and the share of pairs tied."""
        sums = self.histogram.diagonal().sum(0)  # of any column; here each class in its own
        shares = self.histogram / torch.where(sums > 0, sums, 1.0)[:, None, None]
        own = shares.diagonal().movedim(-1, 0)  # [i, t]: class i in its own column
        above = own.flip(1).cumsum(1).flip(1) - 0.5 * own
        aucs = _numpy(torch.einsum("jit,it->ij", shares, above))
        tied = _numpy(torch.einsum("jit,it->ij", shares, own))
        sizes = _numpy(sums)
        return aucs, ClassPartition.of_sizes(sizes).pair_weights(self.pairs), sizes, tied

    def _sync_dist(self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None) -> None:
        # torchmetrics gives a rank without a batch a 1-d float32 state, which cannot be gathered with the others'.
        if not self.binned:
            preds = dim_zero_cat(self.preds) if self.preds else torch.empty(0, self.num_classes, device=self.device)
            target = dim_zero_cat(self.target) if self.target else torch.empty(0, dtype=torch.long, device=self.device)
            weight = dim_zero_cat(self.weight) if self.weight else torch.empty(0, device=self.device)
            sizes = torch.tensor([preds.element_size(), weight.element_size()], device=preds.device)
            largest = torch.stack(dist_sync_fn(sizes, group=process_group or self.process_group)).amax(0).tolist()
            of_preds, of_weight = (torch.float64 if size == 8 else torch.float32 for size in largest)
            self.preds, self.target, self.weight = [preds.to(of_preds)], [target], [weight.to(of_weight)]
        super()._sync_dist(dist_sync_fn, process_group)


def _warn_undefined() -> None:
    warnings.warn(
        "no pair of classes with positive weight has samples: multiclass AUC is undefined and returned as NaN",
        UndefinedMetricWarning,
        stacklevel=3,
    )


def _numpy(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().numpy()


def _edges(thresholds: Any) -> Tensor:
    advice = "pass None for the exact metric, a number of thresholds from 0 to 1, or the thresholds"
    if not isinstance(thresholds, Tensor | list | tuple | np.ndarray):
        return torch.linspace(0.0, 1.0, check_whole("thresholds", thresholds, least=2, advice=advice))
    edges = torch.as_tensor(thresholds)
    edges = edges if edges.is_floating_point() else edges.float()
    increasing = edges.ndim == 1 and len(edges) > 0 and bool(edges.isfinite().all() and (edges.diff() > 0).all())
    if not increasing:
        came = f"{thresholds!r}" if edges.numel() < 8 else f"shape {tuple(edges.shape)}"
        raise invalid("thresholds", "must be finite numbers in increasing order", came, advice)
    return edges.detach().clone()


def _are_probabilities(preds: Tensor, rounding: float = 1e-6) -> bool:
    """Return whether all scores lie in [0, 1], up to rounding."""
    low, high = preds.aminmax()
    return bool((low >= -rounding) & (high <= 1.0 + rounding))


def _warn_of_range(preds: Tensor) -> bool:
    """Warn of scores outside of [0, 1]; return whether there are any."""
    if _are_probabilities(preds):
        return False
    low, high = (float(x) for x in preds.aminmax())
    warnings.warn(
        f"preds from {low:g} to {high:g} for thresholds from 0 to 1: all scores outside share two bins and count as "
        "ties there. Pass probabilities, such as logits.softmax(1), or thresholds in the range of the scores; "
        "error_bound() returns how much may be lost",
        stacklevel=4,
    )
    return True
