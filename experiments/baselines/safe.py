"""Samplers of imbalanced-learn on classes of one or two samples."""

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from imblearn.base import BaseSampler
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy
from imblearn.utils._tags import get_tags
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods

from mauc._validation import is_sparse

__all__ = ["SafeSampler"]

# What scikit-learn and imbalanced-learn say of small classes: fewer samples than folds, a class missing in a fold,
# fewer candidates than NearMiss-3 was to keep. The attributes tell it instead.
_WARNINGS = ("The least populated class in y", "Number of classes in ", "The number of the samples to be selected")


class SafeSampler(BaseSampler):  # type: ignore[misc]
    r"""A sampler of imbalanced-learn that takes classes of any size, and says what it changed.

    Where all classes are large enough the result is that of ``sampler`` itself, sample for sample. Otherwise:

    - **Over-samplers** are run for one class at a time, so that a small class does not take neighbours from the large
      ones. ``k_neighbors`` is at most the number of other samples in the class. A class of one has none and is left as
      it is, and so is a class from which the sampler makes nothing (BorderlineSMOTE, if no sample is "in danger").
    - **Under-samplers** and cleaning samplers: ``n_neighbors`` is at most the size of the smallest class, and ``cv`` at
      most that of the largest. In InstanceHardnessThreshold a sample whose class is in no other fold is as hard as can
      be. A class of which nothing would be left keeps all its samples.

    By default NearMiss and InstanceHardnessThreshold bring every class down towards the size of the smallest one. If
    that is a class of one or two samples, **so little is left that a classifier can hardly learn from it**. That is how
    these methods are defined and how they are commonly compared, so it is kept; ``starved_`` names the classes.

    Parameters
    ----------
    sampler : imbalanced-learn sampler
        Written for BorderlineSMOTE, NearMiss, TomekLinks and InstanceHardnessThreshold. Others work as far as their
        parameters have the same names.

    Attributes
    ----------
    skipped_ : dict of class to str
        The classes that were to be resampled and were left as they are, and why.
    n_neighbors_ : dict of class to int
        ``k_neighbors`` or ``n_neighbors`` used for each class that was resampled; empty for samplers without it.
    counts_ : dict of class to (int, int)
        Size of each class before and after.
    starved_ : list of classes
        Those that had three samples or more, and have only one or two now.
    sampling_strategy_ : dict
        As in the sampler: number of new samples (over-sampling) or of samples to keep, for each class.
    sample_indices_ : array
        Rows that were kept; only of under-samplers and cleaning samplers.

    Examples
    --------
    >>> import numpy as np
    >>> from imblearn.over_sampling import BorderlineSMOTE
    >>> from experiments.baselines import SafeSampler
    >>> X = np.random.default_rng(0).normal(size=(34, 2))
    >>> y = np.repeat(["common", "rare", "single"], [30, 3, 1])
    >>> sampler = SafeSampler(BorderlineSMOTE(random_state=0))
    >>> _, y_resampled = sampler.fit_resample(X, y)
    >>> for name, (before, after) in sampler.counts_.items():
    ...     print(name, before, after, sampler.skipped_.get(name, ""))
    common 30 30
    rare 3 30
    single 1 1 one sample: it has no neighbour of its class
    """

    # The strategy is the inner sampler's; the base class is told not to look for one here.
    _sampling_type = "bypass"
    _parameter_constraints: ClassVar[dict[str, Any]] = {"sampler": [HasMethods(["fit_resample"])]}

    def __init__(self, sampler: Any) -> None:
        super().__init__()
        self.sampler = sampler

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = get_tags(self.sampler).sampler_tags.sample_indices
        return tags

    def _fit_resample(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        kind = self.sampler._sampling_type
        self.sampling_strategy_ = check_sampling_strategy(self.sampler.sampling_strategy, y, kind)
        self.skipped_: dict[Any, str] = {}
        self.n_neighbors_: dict[Any, int] = {}
        # InstanceHardnessThreshold takes labels for column numbers: every sampler gets those.
        classes, codes = np.unique(y, return_inverse=True)
        targets = {int(np.searchsorted(classes, label)): n for label, n in self.sampling_strategy_.items()}
        resample = self._over_sample if isinstance(self.sampler, BaseOverSampler) else self._under_sample
        with warnings.catch_warnings():
            for message in _WARNINGS:
                warnings.filterwarnings("ignore", message)
            X_resampled, new_codes = resample(X, codes, classes.tolist(), targets)
        before, after = (np.bincount(c, minlength=len(classes)).tolist() for c in (codes, new_codes))
        self.counts_ = dict(zip(classes.tolist(), zip(before, after, strict=True), strict=True))
        self.starved_ = [label for label, (b, a) in self.counts_.items() if a < 3 <= b]
        return X_resampled, classes[new_codes]

    def _over_sample(
        self, X: Any, codes: NDArray[np.int64], names: list[Any], targets: dict[int, int]
    ) -> tuple[Any, NDArray[np.int64]]:
        sizes = np.bincount(codes)
        parts, labels = [X], [codes]
        for code, n_new in targets.items():
            if n_new == 0:
                continue
            if sizes[code] == 1:
                self.skipped_[names[code]] = "one sample: it has no neighbour of its class"
                continue
            limits = {"k_neighbors": sizes[code] - 1, "m_neighbors": len(codes) - 1, "n_neighbors": len(codes) - 1}
            inner = self._inner({code: int(sizes[code] + n_new)}, limits)
            rows, row_codes = inner.fit_resample(X, codes)
            if len(row_codes) == len(codes):
                self.skipped_[names[code]] = "the sampler chose no sample to start from"
                continue
            self._record_neighbors(inner, names[code])
            parts.append(rows[len(codes) :])
            labels.append(row_codes[len(codes) :])
        stacked = sp.vstack(parts, format=X.format) if is_sparse(X) else np.vstack(parts)
        return stacked, np.concatenate(labels)

    def _under_sample(
        self, X: Any, codes: NDArray[np.int64], names: list[Any], targets: dict[int, int]
    ) -> tuple[Any, NDArray[np.int64]]:
        sizes = np.bincount(codes)
        smallest, largest = int(sizes.min()), int(sizes.max())
        limits = {"n_neighbors": smallest, "n_neighbors_ver3": smallest, "cv": max(2, largest)}
        inner = self._inner(list(targets) if self.sampler._sampling_type == "clean-sampling" else targets, limits)
        inner.fit_resample(X, codes)
        kept = np.asarray(inner.sample_indices_)
        for code in np.setdiff1d(codes, codes[kept]).tolist():
            self.skipped_[names[code]] = "the sampler would have removed every sample"
            kept = np.concatenate([kept, np.flatnonzero(codes == code)])
        for code in targets:
            if names[code] not in self.skipped_:
                self._record_neighbors(inner, names[code])
        self.sample_indices_ = kept
        return X[kept], codes[kept]

    def _inner(self, strategy: Any, limits: dict[str, int]) -> Any:
        """A copy of the sampler for this strategy, with whole numbers cut down to the limits."""
        given = self.sampler.get_params(deep=False)
        cut = {
            name: min(given[name], int(limit))
            for name, limit in limits.items()
            if isinstance(given.get(name), int | np.integer)
        }
        # clone() copies a RandomState, which would then give the same draws at every call.
        shared = {"random_state": given["random_state"]} if "random_state" in given else {}
        return clone(self.sampler).set_params(sampling_strategy=strategy, **cut, **shared)

    def _record_neighbors(self, inner: Any, label: Any) -> None:
        for name in ("k_neighbors", "n_neighbors"):
            used = getattr(inner, name, None)
            if isinstance(used, int | np.integer):
                self.n_neighbors_[label] = int(used)
