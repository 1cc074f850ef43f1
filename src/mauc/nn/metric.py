"""Multiclass AUC as a torchmetrics metric."""

from __future__ import annotations

import warnings
from collections.abc import Callable
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
from mauc.metrics.binned import BinnedMAUC
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
    bins : int or BinnedMAUC, optional
        None: store every score; the result is exact. A number: count in so many equal bins of [0, 1], for
        probabilities. A :class:`mauc.BinnedMAUC`: count in its bins; :meth:`mauc.BinnedMAUC.for_scores` chooses them
        for scores of any kind.
    ignore_index : int, optional
        Samples with this target are left out.
    absent : {"warn", "ignore", "raise"}, default="warn"
        What to do where a class has no sample, or weights that are all 0. Its pairs drop out, with one warning that
        names the class unless ``"ignore"``; or it is an error.
    softmax : bool, optional
        Apply a softmax to each row. Default: as in torchmetrics, if any value lies outside [0, 1], but never with
        bins of your own. False: rank by the scores as they are, such as log-odds.
    validate_args : bool, default=True
        Check the values of each batch; on a GPU that waits for the device.
    **kwargs
        Parameters of :class:`torchmetrics.Metric`, such as ``compute_on_cpu`` or ``process_group``.

    Notes
    -----
    A softmax changes the order within a column. The exact metric looks for values outside [0, 1] among all scores, the
    binned one batch by batch.

    *Binned.* Two samples in one bin count ½, whichever is higher; :meth:`error_bound` returns the most that this
    changes the result. :meth:`binned` returns the counts, which add up with those of other programs.

    *Cost.* Exact: ``4 N (C + 3)`` bytes for float32 scores; ``compute`` sorts once per class, on the GPU if the scores
    are there (:func:`mauc.nn.functional.mauc_score`). Binned: ``8 C² bins`` bytes, whatever N.

    *Distributed.* ``compute`` gathers the states of all ranks, or adds up the counts by one all-reduce; a rank may have
    seen no sample.

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

    preds: list[Tensor]
    target: list[Tensor]
    weight: list[Tensor]
    histogram: Tensor
    edges: Tensor | None

    def __init__(
        self,
        num_classes: int,
        *,
        pairs: Pairs = "ovo",
        average: Literal["macro", "none"] | None = "macro",
        bins: int | BinnedMAUC | None = None,
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
        if softmax is None and isinstance(bins, BinnedMAUC) and bins.edges is not None:
            self.softmax = False
        self.validate_args = bool(validate_args)
        if bins is None:
            self.counts: BinnedMAUC | None = None
            for name in ("preds", "target", "weight"):
                self.add_state(name, default=[], dist_reduce_fx="cat")
        else:
            self.counts = _empty_counts(bins, self.num_classes)
            edges = self.counts.edges
            self.register_buffer("edges", None if edges is None else torch.tensor(edges), persistent=False)
            shape = self.counts.counts.shape
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
        target = target.long()
        if self.counts is not None:
            preds = self._ranked(preds)
            n_bins = self.counts.bins
            if self.edges is None:
                if self.validate_args:
                    _check_range(preds)
                places = (preds * n_bins).long().clamp_(0, n_bins - 1)
            else:
                places = torch.searchsorted(self.edges, preds.double().T.contiguous(), right=True).T
            # [j, i, t]: the weight of class j in bin t of column i.
            columns = torch.arange(self.num_classes, device=preds.device)
            cell = (target[:, None] * self.num_classes + columns) * n_bins + places
            spread = weight.to(self.histogram.dtype)[:, None].expand(-1, self.num_classes)
            self.histogram.view(-1).scatter_add_(0, cell.flatten(), spread.flatten())
        else:
            self.preds.append(preds)
            self.target.append(target)
            self.weight.append(weight)

    def compute(self) -> Tensor:
        """Return the multiclass AUC of all batches so far."""
        if self.average == "macro" and self.counts is None and len(self.preds) > 0 and dim_zero_cat(self.preds).is_cuda:
            return self._on_device()
        matrix, v, sizes = self._exact() if self.counts is None else self._of_counts()
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

    def binned(self) -> BinnedMAUC:
        """Return the counts of all ranks, for their interval, or to add them to others.

        It has no rows, so its standard error is an upper bound.
        """
        if self.counts is None:
            raise invalid("bins", "must be given for counts", "None", "pass bins=65_536")
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self.sync_on_compute):
            return self.counts.copy().add_array(_numpy(self.histogram))

    def error_bound(self) -> Tensor:
        """Return the most by which the binned result can differ from the exact one; 0 for the exact metric."""
        bound = 0.0 if self.counts is None else self.binned().error_bound(self.pairs, absent="ignore")
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

    def _of_counts(self) -> tuple[Floats, Floats, Floats]:
        """Return what :meth:`_exact` does, from the counts."""
        assert self.counts is not None
        found = self.counts.copy().add_array(_numpy(self.histogram))
        matrix, sizes = np.nan_to_num(found.pairwise_auc()), _numpy(self.histogram.diagonal().sum(0))
        return matrix, found.partition().pair_weights(self.pairs), sizes

    def _sync_dist(self, dist_sync_fn: Callable[..., Any] = gather_all_tensors, process_group: Any = None) -> None:
        # torchmetrics gives a rank without a batch a 1-d float32 state, which cannot be gathered with the others'.
        if self.counts is None:
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


def _empty_counts(bins: Any, n_classes: int) -> BinnedMAUC:
    if not isinstance(bins, BinnedMAUC):
        advice = "pass None for the exact metric, a number of equal bins, or BinnedMAUC.for_scores(target, preds)"
        return BinnedMAUC(n_classes, check_whole("bins", bins, least=2, advice=advice))
    if bins.n_classes != n_classes:
        raise invalid(
            "bins", f"must have {n_classes} classes, as num_classes says", f"{bins.n_classes}", "use one state"
        )
    return bins.empty()


def _are_probabilities(preds: Tensor, rounding: float = 1e-6) -> bool:
    """Return whether all scores lie in [0, 1], up to rounding."""
    low, high = preds.aminmax()
    return bool((low >= -rounding) & (high <= 1.0 + rounding))


def _check_range(preds: Tensor) -> None:
    """Refuse scores outside of [0, 1], by more than rounding."""
    if len(preds) and not _are_probabilities(preds):
        low, high = (float(x) for x in preds.aminmax())
        advice = "pass probabilities, such as logits.softmax(1), or bins=BinnedMAUC.for_scores(target, preds)"
        raise invalid("preds", "must be from 0 to 1 for equal bins", f"{low:g} to {high:g}", advice)
