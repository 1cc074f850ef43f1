"""Simulated sets of any size and imbalance whose ceiling is known, three of them in the shapes of the paper's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils import Bunch

from experiments.datasets.counts import CIFAR100_IMB, INATURALIST, USER_IMB, imbalanced_counts, shrunk
from experiments.datasets.gaussian import GaussianClasses, separated_means
from experiments.datasets.known import DATA, MODEL, KnownClasses, generator
from experiments.datasets.poisson import PoissonClasses, separated_rates
from mauc._validation import check_choice

__all__ = ["load_simulated"]


@dataclass(frozen=True)
class Preset:
    """The shape of one of the paper's large sets."""

    class_counts: tuple[int, ...]
    n_features: int
    separation: float
    kind: str
    shape_of: str


PRESETS = {
    "cifar100-imb": Preset(
        CIFAR100_IMB,
        2048,
        4.0,
        "gaussian",
        "CIFAR-100-Imb with ResNet-50 features, class sizes of the paper",
    ),
    "user-imb": Preset(USER_IMB, 21527, 2.0, "poisson", "User-Imb, class sizes of the paper"),
    "inaturalist": Preset(
        INATURALIST, 2048, 5.0, "gaussian", "iNaturalist 2017 with ResNet-50 features, class sizes by mauc"
    ),
}


def load_simulated(
    preset: str | None = None,
    *,
    class_counts: ArrayLike | None = None,
    n_samples: int = 1000,
    n_classes: int = 3,
    imbalance: float = 10.0,
    n_features: int | None = None,
    separation: float = 2.0,
    kind: str = "gaussian",
    dtype: DTypeLike = np.float64,
    max_samples: int | None = None,
    seed: int = 0,
) -> Bunch:
    r"""Return a simulated data set whose posteriors, Bayes-optimal scores and best possible multiclass AUC are known.

    Two kinds of classes. ``"gaussian"``: normal features with the same spherical covariance,

    .. math:: x \mid i \sim \mathcal N(\mu_i, I),

    dense. ``"poisson"``: independent counts with rates :math:`\lambda_{if}` so low that a row has at most some 75 of
    them above 0, as CSR matrix.

    Parameters
    ----------
    preset : {"cifar100-imb", "user-imb", "inaturalist"}, optional
        Class sizes and features of one of the paper's large sets: 16 550 × 2048 in 100 classes of 20 to 600 (136 MB);
        32 400 × 21 527, sparse, in 12 classes of 400 to 8000; 675 170 × 2048 in 5089 classes (5.5 GB). In the first
        two, the sizes are those that the paper lists; it also says that they sum to 23 350 and 24 400, which they do
        not. In the third they are ours, 14 to 3870 after Zipf and Mandelbrot: the paper has their ratio, 276.4, and no
        list. Only ``n_features``, ``max_samples`` and ``seed`` apply beside a preset.
    class_counts : (C,) array of int, optional
        Size of each class.
    n_samples, n_classes, imbalance : int, int, float, default=1000, 3, 10
        Instead of ``class_counts``: sizes that fall geometrically, the largest ``imbalance`` times the smallest.
    n_features : int, optional
        Default: that of the preset, or 10.
    separation : float, default=2
        Distance of two classes in units of the noise. Of Gaussian means: the same for every pair if there are no more
        than ``n_features + 1`` classes, else the root of the mean squared distance. Of Poisson rates:
        :math:`2 |\sqrt{\lambda_i} - \sqrt{\lambda_j}|`, in the root mean square.
    kind : {"gaussian", "poisson"}, default="gaussian"
    dtype : {float64, float32}, default=float64
        Type of X; float32 in the presets.
    max_samples : int, optional
        Take a smaller copy: class sizes in the same proportions, but at least 3 (or what the class has).
    seed : int, default=0
        Determines the classes and the samples.

    Returns
    -------
    sklearn.utils.Bunch
        - ``X`` : (N, d) array or CSR matrix; ``y`` : (N,) array of class codes, in random order.
        - ``class_counts``, ``priors`` : (C,) arrays; the priors are the shares of the classes.
        - ``posterior`` : function of X, (n, C) exact probabilities of the classes under the priors.
        - ``bayes_scores`` : function of X, (n, C) scores that no others beat in multiclass AUC (ovo), as logarithms.
        - ``sample(size, seed=0)`` : function, fresh ``(X, y)``; ``size`` is a number of samples, whose classes are
          drawn after the priors, or the number for each class. The draws of no seed are those of the data set.
        - ``bayes_mauc(n_per_class=None, seed=0)`` : function, the ceiling and its standard error, by simulation.
        - ``classes`` : the generator itself, with its means or rates.
        - ``name``, ``DESCR`` : str.

        The functions can be pickled.

    Examples
    --------
    >>> from experiments import datasets
    >>> data = datasets.load_simulated(n_samples=300, n_classes=3, imbalance=20, separation=2)
    >>> data.X.shape, data.class_counts
    ((300, 10), array([235,  53,  12]))
    >>> ceiling = data.bayes_mauc()
    >>> print(f"{ceiling.value:.3f} ± {ceiling.stderr:.3f}")
    0.897 ± 0.002
    """
    shape = None if preset is None else PRESETS[check_choice("preset", preset, tuple(PRESETS))]
    if shape is not None:
        n_features = n_features or shape.n_features
        separation, kind, dtype, class_counts = shape.separation, shape.kind, np.float32, shape.class_counts
    counts = (
        imbalanced_counts(n_samples, n_classes, imbalance)
        if class_counts is None
        else np.asarray(class_counts, dtype=np.int64)
    )
    if max_samples is not None:
        counts = shrunk(counts, max_samples)
    priors, n_features = counts / counts.sum(), n_features or 10
    known: KnownClasses
    if check_choice("kind", kind, ("gaussian", "poisson")) == "poisson":
        rates = separated_rates(len(counts), n_features, separation, generator(seed, MODEL))
        known = PoissonClasses(priors, np.dtype(dtype), rates)
    else:
        means = separated_means(len(counts), n_features, separation, generator(seed, MODEL))
        known = GaussianClasses(priors, np.dtype(dtype), means)
    rng = generator(seed, DATA)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    what = f"in the shape of {shape.shape_of}" if shape else "with known posteriors"
    return Bunch(
        X=known.draw(y, rng, known.dtype),
        y=y,
        class_counts=counts,
        priors=known.priors,
        posterior=known.posterior,
        bayes_scores=known.bayes_scores,
        sample=known.sample,
        bayes_mauc=known.bayes_mauc,
        classes=known,
        name=preset or "simulated",
        DESCR=f"Source: simulated by experiments.datasets.load_simulated, {what}.\nLicence: none needed.",
    )
