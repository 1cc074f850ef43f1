"""Scores in memory that are read as those in parts are, for the tests of what is streamed."""

import numpy as np


class ArrayRows:
    """Scores in memory that are handed out in batches; counts how often they are read."""

    def __init__(self, codes, scores, most_rows=70):
        self.codes, self.scores, self.most_rows = codes.astype(np.uint8), scores, most_rows
        self.counts = np.bincount(codes, minlength=scores.shape[1])
        self.readings = 0

    def scan(self, columns, n_rows):
        self.readings += 1
        step = min(n_rows, self.most_rows)
        for begin in range(0, len(self.codes), step):
            yield begin, [self.scores[begin : begin + step, k].copy() for k in columns]


def make_rows(seed, *, n=400, n_classes=5, ties=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    rare = 0.4 ** np.arange(n_classes)
    codes = np.r_[np.arange(n_classes), rng.choice(n_classes, n - n_classes, p=rare / rare.sum())]
    scores = rng.normal(size=(n, n_classes)) + np.eye(n_classes)[codes]
    return codes, (np.round(scores, 1) if ties else scores).astype(dtype)
