"""Scores of a few classes, or of many, with a known order of frequency."""

import numpy as np
import pytest


def make_scores(counts, *, models=1, seed=0, gain=1.5):
    """True classes, scores by name, and the classes of the columns (sorted, as the scores have them)."""
    rng = np.random.default_rng(seed)
    names = np.array([f"class {k:03d}" for k in range(len(counts))])
    y = np.repeat(names, counts)
    own = y[:, None] == names
    made = {f"model {chr(97 + m)}": rng.normal(size=own.shape) + gain * own / (m + 1) for m in range(models)}
    return y, made, names


@pytest.fixture(scope="session")
def scored():
    return make_scores
