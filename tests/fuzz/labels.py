"""Labels of every type: the answer is that of whole numbers, or an error."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from mauc import mauc_interval, mauc_score, pairwise_auc
from mauc.report import judge

NUMBERS = (
    lambda k: k,
    float,
    str,
    lambda k: f"{k}.0",
    lambda k: str(k).encode(),
    Decimal,
    np.int8,
    np.float32,
    np.str_,
)
WORDS = (
    lambda k: "abcde"[k],
    lambda k: "abcde"[k].encode(),
    lambda k: np.str_("abcde"[k]),
)
DATES = (
    lambda k: datetime.date(2020, 1, 1 + k),
    lambda k: datetime.datetime(2020, 1, 1 + k),
    lambda k: pd.Timestamp(2020, 1, 1 + k),
    lambda k: f"2020-01-0{1 + k}",
    *(lambda k, unit=unit: np.datetime64(f"2020-01-0{1 + k}", unit) for unit in ("D", "h", "s", "ms", "us", "ns")),
)
# The text "True" is that of True, but not that of 1.
TRUTHS = ((bool, np.bool_, int, str, float), (bool, np.bool_, lambda k: str(bool(k))))
KINDS = (NUMBERS, WORDS, DATES)


def run(rng: np.random.Generator) -> None:
    """One problem, with labels of one kind written in several ways."""
    n_classes = int(rng.integers(2, 6))
    codes = rng.permutation(np.r_[np.arange(n_classes), rng.integers(0, n_classes, int(rng.integers(5, 30)))])
    scores = rng.integers(0, 5, (len(codes), n_classes)) / 4.0
    kinds = TRUTHS if n_classes == 2 and rng.random() < 0.3 else KINDS
    kind = kinds[int(rng.integers(len(kinds)))]
    write = [kind[int(k)] for k in rng.integers(0, len(kind), 4)]
    true, predicted, named, asked = (_Writer(rng, each, n_classes) for each in write)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        _scores(rng, codes, scores, true, named, asked)
        _predictions(rng, codes, scores, true, predicted)
        _members(rng, codes, scores)


class _Writer:
    """Labels of codes, written in one way and held in one container."""

    def __init__(self, rng, write, n_classes):
        self.labels, self.form = [write(k) for k in range(n_classes)], int(rng.integers(4))

    def __call__(self, codes):
        labels = [self.labels[k] for k in codes]
        if self.form == 0:
            return labels
        if self.form == 1:
            return np.array(labels)
        if self.form == 2:
            return pd.Series(labels)
        return np.array([*labels, None], dtype=object)[:-1]


def _scores(rng, codes, scores, true, named, asked):
    n_classes = scores.shape[1]
    everyone, expected = np.arange(n_classes), pairwise_auc(codes, scores)
    found = pairwise_auc(true(codes), scores, labels=asked(everyone))
    np.testing.assert_array_equal(found, expected, err_msg=f"{true.labels} with labels={asked.labels}")
    order, around = rng.permutation(n_classes), AROUND[int(rng.integers(len(AROUND)))]
    names = [named.labels[k] for k in order]
    names = [around.format(name) if isinstance(name, str) and around != "{}" else name for name in names]
    frame = pd.DataFrame(scores[:, order])
    frame.columns = pd.Index(names, dtype=object)
    given = {"labels": true(everyone)}
    if _are_default(frame.columns):
        frame = frame.iloc[:, np.argsort(order)]  # default names
        frame.columns = range(n_classes)
    found = pairwise_auc(true(codes), frame, **given)
    np.testing.assert_array_equal(found, expected, err_msg=f"{true.labels} with columns {names}")
    weights = rng.integers(0, 3, (n_classes, n_classes)) + 1.0
    pairs = pd.DataFrame(weights[order][:, order])
    if not _are_default(names):
        pairs.columns = pairs.index = pd.Index(names, dtype=object)
        found = mauc_score(true(codes), scores, pairs=pairs, **given)
        assert found == mauc_score(codes, scores, pairs=weights), f"{true.labels} with pairs of {names}"
    if rng.random() < 0.3:
        frame.columns = pd.Index([*frame.columns[:-1], "another"], dtype=object)
        _refused_or_equal(lambda: pairwise_auc(true(codes), frame, **given), None, f"columns {list(frame.columns)}")


def _are_default(names):
    return all(isinstance(name, int | np.integer) and name == k for k, name in enumerate(names)) and not any(
        isinstance(name, bool) for name in names
    )


AROUND = ("{}", "p_{}", "{}_prob", " {}", "P({})")


def _predictions(rng, codes, scores, true, predicted):
    chosen = np.where(rng.random(len(codes)) < 0.5, codes, rng.integers(0, scores.shape[1], len(codes)))
    expected = judge(codes, scores, y_pred=chosen)
    found = judge(true(codes), scores, labels=true(range(scores.shape[1])), y_pred=predicted(chosen))
    what = f"{true.labels} predicted as {predicted.labels}"
    assert found.headline.accuracy == np.mean(chosen == codes) == expected.headline.accuracy, what
    np.testing.assert_array_equal(
        found.further.decisions[0].confusion, expected.further.decisions[0].confusion, err_msg=what
    )


def _members(rng, codes, scores):
    """Groups in every type, some of which are missing."""
    groups = rng.integers(0, 4, len(codes))
    groups[:4] = range(4)
    kind = KINDS[int(rng.integers(len(KINDS)))]
    labels = [kind[int(rng.integers(len(kind)))](k) for k in range(4)]
    if rng.random() < 0.5:
        labels = list(map(kind[int(rng.integers(len(kind)))], range(4)))
    if rng.random() < 0.3:
        labels[int(rng.integers(4))] = [None, np.nan, pd.NA, pd.NaT][int(rng.integers(4))]
    missing = any(pd.isna(label) for label in labels)
    given = [labels[k] for k in groups]
    given = given if rng.random() < 0.5 else np.array([*given, None], dtype=object)[:-1]
    expected = None if missing else mauc_interval(codes, scores, groups=groups)
    _refused_or_equal(lambda: mauc_interval(codes, scores, groups=given), expected, f"groups {labels}")


def _refused_or_equal(call, expected, what):
    """Call, and compare the answer with the expected one; None: it must be refused."""
    try:
        found = call()
    except ValueError:
        return
    assert expected is not None, f"{what}: not refused"
    np.testing.assert_allclose(list(vars(found).values()), list(vars(expected).values()), rtol=1e-12, err_msg=what)
