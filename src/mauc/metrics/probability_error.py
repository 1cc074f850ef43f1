"""Brier score and log-loss of probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mauc._validation import check_choice, invalid
from mauc.metrics.any_measure import Scored, Value

__all__ = ["ProbabilityError"]

Kind = Literal["brier", "log_loss"]


@dataclass(frozen=True)
class ProbabilityError:
    r"""Mean error of the probabilities of all classes; smaller is better.

    .. math:: \text{brier} = \operatorname{mean}_n \sum_k (p_{nk} - [y_n = k])^2 ,
        \qquad \text{log\_loss} = -\operatorname{mean}_n \log p_{n y_n}

    The Brier score is between 0 and 2, as Brier defined it; for two classes, scikit-learn returns half of it. The
    influence of a row is its own term minus the mean.

    Examples
    --------
    >>> from mauc.metrics import ProbabilityError, measure_interval
    >>> y, p = ["a", "b", "c", "c"], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.1, 0.8], [0.4, 0.4, 0.2]]
    >>> round(measure_interval(ProbabilityError(), y, p).score, 3)
    0.41
    """

    kind: Kind = "brier"

    def evaluate(self, scored: Scored) -> Value:
        """Return the error."""
        kind = check_choice("kind", self.kind, get_args(Kind))
        p, codes = scored.probabilities(), scored.partition.codes
        own = p[np.arange(len(codes)), codes]
        if kind == "log_loss":
            if own.min() <= 0.0:
                came = f"0 in row {int(own.argmin())}"
                raise invalid("y_score", "must be above 0 for the class of each row", came, "clip the probabilities")
            loss = -np.log(own)
        else:
            loss = np.square(p).sum(axis=1) + 1.0 - 2.0 * own
        value = float(scored.shares @ loss)
        return Value(value, loss - value)
