"""Numbers in words: what a multiclass AUC, a paired test and the class sizes mean for the reader."""

import math

import numpy as np

from mauc.report.judgement import Judgement, PairedTest
from mauc.theory import Imbalance

__all__ = ["advice", "gain_sentence", "headline_sentence", "verdict"]


def headline_sentence(judgement: Judgement) -> str:
    """The headline number in one sentence."""
    score = judgement.headline.mauc.score
    return (
        "Take one row of each of two different classes, every pair of classes equally likely: "
        f"the model's score of the first class is higher on the row of that class {100 * score:.1f}\u00a0% of the time "
        "(50\u00a0% would be chance)."
    )


def verdict(test: PairedTest, judgement: Judgement) -> str:
    """A paired test in words."""
    if test.holm >= 1.0 - judgement.level:
        return "no clear difference"
    return "better" if test.comparison.difference > 0 else "worse"


def gain_sentence(judgement: Judgement) -> str:
    """Which class leaves most doubt, and what twice as many rows would do."""
    if judgement.further is None or not judgement.further.gains:
        return ""
    gain = judgement.further.gains[0]
    name, rows = judgement.labels[gain.k], _rows(gain.rows)
    percent = {part: _percent(getattr(gain, part)) for part in ("part", "narrower", "low", "high")}
    said = (
        f"Class {name} ({rows} judged) makes {percent['part']}\u00a0% of the doubt about the MAUC. Twice as many would "
        f"make its interval {percent['narrower']}\u00a0% narrower ({percent['low']} to {percent['high']}\u00a0%); "
        "twice as many rows of every class, 29\u00a0%."
    )
    judged, total = len(judgement.codes), judgement.imbalance.n_samples + len(judgement.codes)
    if judgement.of_training and judgement.imbalance.n_samples != judged:
        said += f" At the present split, one new row in {total / judged:.2g} is judged by; the others are trained on."
    return said


def _percent(part: float) -> str:
    return f"{100 * part:.{0 if part >= 0.1 else 1}f}"


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{_grouped(n)} rows"


def advice(found: Imbalance) -> list[str]:
    """What the class sizes advise for training, in plain sentences, the most useful first."""
    n_classes = len(found.classes)
    rare, frequent = int(np.argmin(found.class_counts)), int(np.argmax(found.class_counts))
    if found.ratio == 1:
        return ["The classes have the same size: one more row is worth the same in each."]
    times = found.marginal_values[rare] / found.marginal_values[frequent]
    doubled = 1.0 - math.sqrt(1.0 - 0.5 * float(found.shares[rare]))
    digits = 0 if doubled > 0.1 else 1
    said = [
        f"Collect class {found.classes[rare]} first: for the error bounds, one more row of it is worth about "
        f"{_round(times)} more rows of class {found.classes[frequent]}.",
        f"Twice as many rows of it ({found.class_counts[rare]} more) would take {100 * doubled:.{digits}f}\u00a0% off "
        "the gap that the bounds allow between training and new data.",
        f"As they are, these {_grouped(found.n_samples)} rows are as good as "
        f"{found.effective_size_per_class:.1f} rows in every one of the {n_classes} classes.",
    ]
    order = np.argsort(found.class_counts, kind="stable")
    heavy = int(np.searchsorted(np.cumsum(found.shares[order]), 0.5)) + 1
    if n_classes > 5 and heavy <= n_classes // 3:
        names = ", ".join(str(found.classes[k]) for k in order[: min(heavy, 6)]) + (" and others" if heavy > 6 else "")
        said.append(f"{heavy} of {n_classes} classes make more than half of that gap, squared: {names}.")
    if found.class_counts[rare] < 5:
        said.append("Classes of fewer than five rows can hardly be learnt or judged: join them to others, or collect.")
    return said


def _round(value: float) -> str:
    """To two digits, as people say it."""
    if value < 10:
        return f"{value:.1f}"
    return _grouped(round(value, 1 - math.floor(math.log10(value))))


def _grouped(value: float) -> str:
    """Thousands apart, by a thin space."""
    return f"{value:,.0f}".replace(",", "\u202f")
