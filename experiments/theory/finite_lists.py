"""MAUC Rademacher complexity (Definition 2) of a finite list of models, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from experiments.theory.linear_models import Complexity
from mauc._estimators import encode_classes
from mauc._typing import Floats, Ints
from mauc._validation import check_scores, check_whole, invalid
from mauc.surrogates import get_surrogate

__all__ = ["finite"]

BLOCK = 1 << 12


def finite(
    scores: Sequence[ArrayLike],
    y: ArrayLike,
    *,
    surrogate: Any = None,
    alpha: float | None = None,
    by_column: bool = False,
    exact_up_to: int = 18,
    n_draws: int = 4096,
    seed: int = 0,
    **options: float,
) -> Complexity:
    r"""Compute the complexity of a list of M models, given by their scores on the sample.

    The term of a model in Definition 2 is linear in the signs, :math:`\sum_k \sigma_k c_k(f)`, so the complexity is
    :math:`\mathbb E_\sigma \max_f \sigma \cdot c(f)`: the mean over all :math:`2^N` sign patterns for up to 18 samples,
    over random ones for more.

    Parameters
    ----------
    scores : M arrays of shape (N, C)
    y : (N,) classes
        As many different ones as columns.
    surrogate : str, object or None
        As in :class:`mauc.SurrogateRisk`; None for ℓ(t) = t.
    alpha, **options
        Parameters of a surrogate given by its name.
    by_column : bool, default=False
        Add up the maxima of the columns. The sum is not smaller, and Theorem 4 needs it if the columns of a model
        depend on each other; for a class of all combinations of columns the two are equal.
    exact_up_to : int, default=18
        Largest number of samples for which all sign patterns are tried.
    n_draws, seed : int
        Draws and seed of the simulation.

    Returns
    -------
    Complexity
        ``stderr`` is 0 if every sign pattern was tried; ``bound`` is Massart's,
        :math:`\max_f \lVert c(f) - \bar c \rVert_2 \sqrt{2 \log M}`, summed over the columns with ``by_column``.
        Time O(M (N² C + 2^N N)).

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.theory import finite
    >>> rng = np.random.default_rng(0)
    >>> y = [0, 0, 0, 1, 1, 2, 2]
    >>> found = finite(rng.random((5, 7, 3)), y, surrogate="exponential")
    >>> print(f"{found.value:.3f} <= {found.bound:.3f}, exact: {found.stderr == 0}")
    8.456 <= 20.554, exact: True
    """
    _, codes = encode_classes(y)
    n_classes = int(codes.max()) + 1
    models = [check_scores(np.asarray(model), "scores").astype(np.float64) for model in scores]
    if not models:
        raise invalid("scores", "must be a list of one array or more", "none", "pass the scores of each model")
    for model in models:
        if model.shape != (len(codes), n_classes):
            requirement = (
                f"must be arrays of shape {(len(codes), n_classes)}, one row per sample and one column per class"
            )
            raise invalid("scores", requirement, f"shape {model.shape}", "pass the scores on the sample of y")
    ell = None if surrogate is None else get_surrogate(surrogate, alpha=alpha, **options).loss
    # (M, C, N): the factors of the signs.
    parts = np.stack([_coefficients(model, codes, n_classes, ell) for model in models])
    parts = parts if by_column else parts.sum(axis=1, keepdims=True)
    if len(codes) <= exact_up_to:
        value, stderr = _over_all_signs(parts), 0.0
    else:
        rng = np.random.default_rng(check_whole("seed", seed, least=0))
        draws = check_whole("n_draws", n_draws, least=2)
        values = _largest(parts, rng.choice([-1.0, 1.0], (draws, len(codes))))
        value, stderr = float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws))
    lengths = np.linalg.norm(parts - parts.mean(axis=0), axis=2).max(axis=0)
    return Complexity(value, stderr, float(lengths.sum() * np.sqrt(2.0 * np.log(len(models)))))


def _coefficients(scores: Floats, codes: Ints, n_classes: int, loss: Any) -> Floats:
    """Return ``(C, N)``: half the weighted sum of ℓ over the pairs of column i that sample k is in."""
    counts = np.bincount(codes).astype(np.float64)
    out = np.zeros((n_classes, len(codes)))
    for i in range(n_classes):
        own = codes == i
        t = scores[own, i][:, None] - scores[~own, i]
        pairs = (t if loss is None else loss(t)) / (2.0 * counts[i] * counts[codes[~own]])
        out[i, own], out[i, ~own] = pairs.sum(axis=1), pairs.sum(axis=0)
    return out


def _largest(parts: Floats, signs: Floats) -> Floats:
    """Return the ``(S,)`` sum over the columns of the largest value of a model, for each row of signs."""
    return np.einsum("mcn,sn->mcs", parts, signs, optimize=True).max(axis=0).sum(axis=0)


def _over_all_signs(parts: Floats) -> float:
    n = parts.shape[2]
    total = 0.0
    for start in range(0, 1 << n, BLOCK):
        patterns = np.arange(start, min(start + BLOCK, 1 << n))
        signs: Floats = np.where((patterns[:, None] >> np.arange(n)) & 1, 1.0, -1.0)
        total += float(_largest(parts, signs).sum())
    return total / (1 << n)
