"""Hypothesis strategies: small problems full of ties, singletons and absent classes, at any scale and precision."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

REPEATED, EXPLORED = 20, 500
"""Default number of examples per test: the same on every run, and new ones under ``make fuzz``."""


def examples(n: int) -> settings:
    """Return settings with ``n`` examples, more by the profile's factor when it explores."""
    return settings(max_examples=n * settings().max_examples // REPEATED)


class Sample(NamedTuple):
    y: np.ndarray
    scores: np.ndarray
    weight: np.ndarray | None
    pairs: Any


@st.composite
def samples(draw: st.DrawFn, scales: tuple[float, ...] = (1.0,), min_present: int = 1, max_samples: int = 16) -> Sample:
    """Draw scores that are multiples of ⅛ in [−2, 2] times a scale: few values, so most of them tie."""
    n_classes = draw(st.integers(2, 5))
    n_samples = draw(st.integers(min_present, max_samples))
    y = draw(hnp.arrays(np.int64, n_samples, elements=st.integers(0, n_classes - 1)))
    y[:min_present] = np.arange(min_present)
    grid = draw(hnp.arrays(np.int64, (n_samples, n_classes), elements=st.integers(-16, 16)))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    scores = (grid / 8.0 * draw(st.sampled_from(scales))).astype(dtype)
    weight = None
    if draw(st.booleans()):
        weight = draw(hnp.arrays(np.float64, n_samples, elements=st.sampled_from([0.0, 0.5, 1.0, 3.0])))
        weight[np.unique(y, return_index=True)[1]] = 1.0
    matrix = hnp.arrays(np.float64, (n_classes, n_classes), elements=st.sampled_from([0.0, 1.0, 2.5]))
    positive = matrix.map(lambda m: m + np.eye(n_classes, k=1))
    return Sample(y, scores, weight, draw(st.sampled_from(["ovo", "ova"]) | positive))


def distinct_and_tied_floats(max_size: int) -> st.SearchStrategy[list[float]]:
    """Draw any finite floats, most of them close to others or equal."""
    anywhere = st.floats(allow_nan=False, allow_infinity=False)
    few = st.sampled_from([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), 5e-324, -5e-324, 1e308, -1e308, 1e-300])
    return st.lists(anywhere | few, max_size=max_size)
