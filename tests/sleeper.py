"""A classifier that never ends, for children that must be ended: importable by its name."""

import time

from sklearn.base import BaseEstimator, ClassifierMixin


class Sleeper(ClassifierMixin, BaseEstimator):
    """Sleeps in compiled code."""

    def fit(self, X, y):
        time.sleep(10_000)


class Breaker(ClassifierMixin, BaseEstimator):
    """Fails at once."""

    def fit(self, X, y):
        raise MemoryError("no room")
