"""Samplers of imbalanced-learn on classes of one or two samples."""

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from imblearn.base import BaseSampler
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.utils import check_sampling_strategy
from numpy.typing import NDArray
from sklearn.base import clone

from mauc._validation import is_sparse

__all__ = ["SafeSampler"]

# What scikit-learn and imbalanced-learn say of small classes: fewer samples than folds, a class missing in a fold.
_WARNINGS = ("The least populated class in y", "Number of classes in ")
Codes = NDArray[np.int64]


class SafeSampler(BaseSampler):  # type: ignore[misc]
    r"""A sampler of imbalanced-learn that takes classes of any size.

    Where all classes are large enough the result is that of ``sampler`` itself, sample for sample. Otherwise:

    - **Over-samplers** are run for one class at a time, so that a small class does not take neighbours from the large
      ones. ``k_neighbors`` is at most the number of other samples in the class. A class of one is left as it is, and so
      is a class from which the sampler makes nothing (BorderlineSMOTE, if no sample is "in danger").
    - **Under-samplers** and cleaning samplers: ``n_neighbors`` is at most the size of the smallest class, and ``cv`` at
      most that of the largest. A class of which nothing would be left keeps all its samples.

    NearMiss and InstanceHardnessThreshold bring every class down towards the size of the smallest one. If that is a
    class of one or two samples, so little is left that a classifier can hardly learn from it. That is how these methods
    are defined and how they are commonly compared, so it stays.

    Parameters
    ----------
    sampler : BorderlineSMOTE, NearMiss, TomekLinks or InstanceHardnessThreshold
    """

    # The strategy is the inner sampler's; the base class must not look for one here.
    _sampling_type = "bypass"
    _parameter_constraints: ClassVar[dict[str, Any]] = {"sampler": "no_validation"}

    def __init__(self, sampler: Any) -> None:
        super().__init__()
        self.sampler = sampler

    def _fit_resample(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        strategy = check_sampling_strategy(self.sampler.sampling_strategy, y, self.sampler._sampling_type)
        # InstanceHardnessThreshold takes labels for column numbers: every sampler gets those.
        classes, codes = np.unique(y, return_inverse=True)
        targets = {int(np.searchsorted(classes, label)): n for label, n in strategy.items()}
        resample = self._over_sample if isinstance(self.sampler, BaseOverSampler) else self._under_sample
        with warnings.catch_warnings():
            for message in _WARNINGS:
                warnings.filterwarnings("ignore", message)
            X_resampled, new_codes = resample(X, codes, targets)
        return X_resampled, classes[new_codes]

    def _over_sample(self, X: Any, codes: Codes, targets: dict[int, int]) -> tuple[Any, Codes]:
        sizes = np.bincount(codes)
        parts, labels = [X], [codes]
        for code, n_new in targets.items():
            if n_new > 0 and sizes[code] > 1:
                limits = {"k_neighbors": sizes[code] - 1, "m_neighbors": len(codes) - 1}
                rows, row_codes = self._inner({code: int(sizes[code] + n_new)}, limits).fit_resample(X, codes)
                parts.append(rows[len(codes) :])
                labels.append(row_codes[len(codes) :])
        stacked = sp.vstack(parts, format=X.format) if is_sparse(X) else np.vstack(parts)
        return stacked, np.concatenate(labels)

    def _under_sample(self, X: Any, codes: Codes, targets: dict[int, int]) -> tuple[Any, Codes]:
        sizes = np.bincount(codes)
        limits = {"n_neighbors": int(sizes.min()), "cv": max(2, int(sizes.max()))}
        inner = self._inner(list(targets) if self.sampler._sampling_type == "clean-sampling" else targets, limits)
        inner.fit_resample(X, codes)
        kept = np.asarray(inner.sample_indices_)
        removed = np.setdiff1d(codes, codes[kept])
        kept = np.concatenate([kept, *(np.flatnonzero(codes == code) for code in removed)])
        return X[kept], codes[kept]

    def _inner(self, strategy: Any, limits: dict[str, int]) -> Any:
        """Return a copy of the sampler for this strategy, with whole numbers cut down to the limits."""
        given = self.sampler.get_params(deep=False)
        cut = {name: min(given[name], int(limit)) for name, limit in limits.items() if isinstance(given.get(name), int)}
        return clone(self.sampler).set_params(sampling_strategy=strategy, **cut)
