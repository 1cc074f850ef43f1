"""MWMOTE: over-sampling inside clusters of the minority, from its samples that are hardest to learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from imblearn.over_sampling.base import BaseOverSampler
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state, gen_batches

from mauc._typing import Floats

__all__ = ["MWMOTE", "MinorityAnalysis", "analyse_minority"]

Indices = NDArray[np.int64]

# Number of distances between borderline majority and minority samples in memory at a time (32 MB).
_PAIRS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class MinorityAnalysis:
    """Result of :func:`analyse_minority` for a class of ``n`` samples."""

    members: Indices
    """``(n,)`` rows of X: S_min, the class."""
    filtered: NDArray[np.bool_]
    """``(n,)`` in S_minf: the members that are not noise; all, if the filter would leave none."""
    borderline: Indices
    """Rows of X: S_bmaj, the borderline majority."""
    probability: Floats
    """``(n,)`` S_p, the chance to be the seed of a synthetic sample; 0 outside S_imin, the informative minority."""
    cluster: Indices
    """``(n,)`` number of the cluster of each member."""


class MWMOTE(BaseOverSampler):  # type: ignore[misc]
    r"""Majority Weighted Minority Oversampling TEchnique, of Barua, Islam, Yao and Murase.

    Every class that ``sampling_strategy`` names is over-sampled against all the others together ("the majority").
    For a class :math:`S_{min}`, with Euclidean distances :math:`d`, the paper's steps are

    1. :math:`S_{minf}`, the filtered minority: the members with another member among their ``k1`` nearest samples.
    2. :math:`S_{bmaj} = \bigcup_{x \in S_{minf}} N_{maj}(x)`, the borderline majority: the ``k2`` nearest majority
       samples of each.
    3. :math:`S_{imin} = \bigcup_{y \in S_{bmaj}} N_{min}(y)`, the informative minority: the ``k3`` nearest members of
       each.
    4. The information weight :math:`I_w(y, x) = C_f(y, x) \, D_f(y, x)` of a member x for a borderline y, from

       - closeness, for features of dimension l and :math:`d_n = d(y, x) / l`:
         :math:`C_f(y, x) = \frac{f(1 / d_n)}{C_f(th)} \, CMAX` if :math:`x \in N_{min}(y)`, else 0,
         with the cut-off :math:`f(t) = \min(t, C_f(th))`;
       - density: :math:`D_f(y, x) = C_f(y, x) / \sum_{q \in S_{imin}} C_f(y, q)`: where members are sparse, each
         counts more.
    5. Selection weight :math:`S_w(x) = \sum_{y \in S_{bmaj}} I_w(y, x)` and probability
       :math:`S_p(x) = S_w(x) / \sum_{z \in S_{imin}} S_w(z)`.
    6. Clusters of :math:`S_{min}`: agglomerative, average linkage, merged up to the distance
       :math:`T_h = C_p \, d_{avg}`, where :math:`d_{avg}` is the mean over :math:`S_{minf}` of the distance to the
       nearest other member of it.
    7. Each synthetic sample is :math:`s = x + \alpha (z - x)`: x drawn by :math:`S_p`, z another member of its
       cluster, drawn uniformly, :math:`\alpha` uniform in [0, 1).

    Parameters
    ----------
    sampling_strategy : float, str, dict or callable, default="auto"
        As in imbalanced-learn's over-samplers; ``"auto"`` brings every class to the size of the largest.
    random_state : int, RandomState or None, default=None

    Notes
    -----
    Where the paper is not specific:

    - Class of one sample: copies of it. Classes of two or three: the steps as they are, so points between the samples
      that share a cluster, else copies. A cluster of one always gives copies.
    - No member passes the filter (always so for a class of one): all are kept. Fewer than two pass: :math:`d_{avg}` is
      taken over the whole class.
    - Equal samples: d = 0 has the closeness CMAX, and the nearest *different* member counts in :math:`d_{avg}`, else
      a class whose samples all come twice would only be copied. If all members are equal they are one cluster.
    - Steps 3 and 6 use the whole class, as printed; noise is kept out of steps 1, 2 and :math:`d_{avg}` only.

    Sparse X stays sparse. Integer X becomes float. Time O(\|S_min\|·N·d) for the neighbours, O(\|S_bmaj\|·\|S_min\|·d)
    for the weights and O(\|S_min\|²·d) for the clusters; memory O(min(\|S_min\|, max_clustered)²).

    References
    ----------
    Barua, Islam, Yao, Murase: MWMOTE—Majority Weighted Minority Oversampling Technique for Imbalanced Data Set
    Learning. IEEE Transactions on Knowledge and Data Engineering 26(2), 2014.
    """

    def __init__(
        self,
        *,
        sampling_strategy: float | str | Mapping[Any, int] | Callable[..., Any] = "auto",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(sampling_strategy=sampling_strategy)
        self.random_state = random_state

    def _fit_resample(self, X: Any, y: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        rng = check_random_state(self.random_state)
        if X.dtype.kind != "f":
            X = X.astype(np.float64)
        format_ = getattr(X, "format", None)
        X = X.tocsr() if format_ else X
        parts, labels = [X], [y]
        for label, n_new in self.sampling_strategy_.items():
            if n_new > 0:
                analysis = analyse_minority(X, np.flatnonzero(y == label), rng)
                parts.append(_synthetic(X, analysis, n_new, rng))
                labels.append(np.full(n_new, label, dtype=y.dtype))
        stacked = sp.vstack(parts, format=format_) if format_ else np.vstack(parts)
        return stacked.astype(X.dtype, copy=False), np.concatenate(labels)


def analyse_minority(
    X: Any,
    members: Indices,
    rng: np.random.RandomState,
    *,
    k1: int = 5,
    k2: int = 3,
    k3: int | None = None,
    cf_th: float = 5.0,
    cmax: float = 2.0,
    cp: float = 3.0,
    max_clustered: int = 5000,
) -> MinorityAnalysis:
    """Take steps 1 to 6 of :class:`MWMOTE` for the class whose rows of X are ``members``.

    ``k3`` is half the members, rounded up, by default, as in the paper's experiments. CMAX is common to all weights and
    cancels in step 5. Step 6 needs all distances within the class: a class with more than ``max_clustered`` members is
    clustered on a random subset of this size, and the others join the cluster of the nearest in it, which is not in
    the paper.
    """
    minority = X[members]
    others = np.setdiff1d(np.arange(X.shape[0]), members, assume_unique=True)
    filtered = _has_own_neighbour(X, members, k1)
    if not filtered.any():
        filtered = np.ones(len(members), dtype=bool)
    search = NearestNeighbors(n_neighbors=min(k2, len(others))).fit(X[others])
    borderline = others[np.unique(search.kneighbors(minority[filtered], return_distance=False))]
    k3 = min(k3 or -(-len(members) // 2), len(members))
    weight = _selection_weights(X[borderline], minority, k3, cf_th, cmax)
    cluster = _clusters(minority, filtered, cp, max_clustered, rng)
    return MinorityAnalysis(members, filtered, borderline, weight / weight.sum(), cluster)


def _has_own_neighbour(X: Any, members: Indices, k1: int) -> NDArray[np.bool_]:
    """Return step 1: whether one of the other k1 nearest samples is a member too."""
    k1 = min(k1, X.shape[0] - 1)
    near = NearestNeighbors(n_neighbors=k1 + 1).fit(X).kneighbors(X[members], return_distance=False)
    # Among more than k1 equal samples a sample may be missing from its own list; then one more of them is looked at.
    return (np.isin(near, members) & (near != members[:, None])).any(axis=1)


def _selection_weights(borderline: Any, minority: Any, k3: int, cf_th: float, cmax: float) -> Floats:
    """Return steps 3 to 5: ``S_w(x) = Σ_y C_f(y, x)² / Σ_q C_f(y, q)`` of each member, 0 for those in no N_min(y)."""
    n, n_features = minority.shape
    weight = np.zeros(n)
    for rows in gen_batches(borderline.shape[0], max(1, _PAIRS_AT_ONCE // n)):
        distance = _distances(borderline[rows], minority)
        nearest = np.argpartition(distance, k3 - 1, axis=1)[:, :k3]
        distance = np.take_along_axis(distance, nearest, axis=1)
        # f(1 / d_n) / C_f(th) = min(1, l / (d C_f(th))), which is 1 at d = 0.
        closeness = cmax * n_features / np.maximum(n_features, distance * cf_th)
        information = closeness * (closeness / closeness.sum(axis=1, keepdims=True))
        weight += np.bincount(nearest.ravel(), information.ravel(), minlength=n)
    return weight


def _clusters(
    minority: Any, filtered: NDArray[np.bool_], cp: float, max_clustered: int, rng: np.random.RandomState
) -> Indices:
    """Return step 6: the number of the cluster of each member."""
    n = minority.shape[0]
    if n == 1:
        return np.zeros(1, dtype=np.int64)
    if n > max_clustered:
        subset = np.sort(rng.choice(n, max_clustered, replace=False))
        found = _clusters(minority[subset], filtered[subset], cp, max_clustered, rng)
        search = NearestNeighbors(n_neighbors=1).fit(minority[subset])
        return found[search.kneighbors(minority, return_distance=False)[:, 0]]
    condensed = _sparse_pdist(minority) if sp.issparse(minority) else pdist(minority)
    kept = filtered if filtered.sum() > 1 else np.ones(n, dtype=bool)
    between = squareform(condensed)[np.ix_(kept, kept)]
    between[between == 0] = np.inf
    nearest = between.min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    threshold = cp * nearest.mean() if len(nearest) else 0.0
    return fcluster(linkage(condensed, method="average"), threshold, criterion="distance").astype(np.int64) - 1


def _sparse_pdist(rows: Any) -> Floats:
    """Compute ``pdist`` for sparse rows from their products; distances of rounding are set to 0."""
    distance = _distances(rows, rows)
    rounding = 1e-7 * np.sqrt(rows.multiply(rows).sum(axis=1).max())
    distance[distance < rounding] = 0
    return squareform(distance, checks=False)


def _distances(a: Any, b: Any) -> Floats:
    return euclidean_distances(a, b).astype(np.float64) if sp.issparse(a) else cdist(a, b)


def _synthetic(X: Any, analysis: MinorityAnalysis, n_new: int, rng: np.random.RandomState) -> Any:
    """Return step 7: ``n_new`` rows on segments between members of one cluster."""
    seed = rng.choice(len(analysis.members), size=n_new, p=analysis.probability)
    other = _another_of_cluster(analysis.cluster, seed, rng)
    first, second = X[analysis.members[seed]], X[analysis.members[other]]
    # A diagonal matrix scales rows of dense and sparse arrays alike.
    return first + sp.diags(rng.uniform(size=n_new).astype(X.dtype)) @ (second - first)


def _another_of_cluster(cluster: Indices, seed: Indices, rng: np.random.RandomState) -> Indices:
    """Draw for each seed another member of its cluster, uniformly; the seed itself where it is alone."""
    order = np.argsort(cluster, kind="stable")
    size = np.bincount(cluster)
    start = np.cumsum(size) - size
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - start[cluster[order]]
    mine = cluster[seed]
    step = 1 + np.floor(rng.uniform(size=len(seed)) * (size[mine] - 1)).astype(np.int64)
    return order[start[mine] + (place[seed] + step) % size[mine]]
