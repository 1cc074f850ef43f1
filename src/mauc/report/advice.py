"""Say in words what a multiclass AUC and a paired test mean, and what to do next."""

import numpy as np

from mauc.metrics.inference import ModelComparison
from mauc.report.further import tenths
from mauc.report.judgement import Judgement
from mauc.report.proportions import share


def headline_sentence(judgement: Judgement) -> str:
    """Say the multiclass AUC in one sentence."""
    percent = f"{100 * judgement.headline.mauc.score:.1f}\u00a0%"
    return (
        f"Pick two classes at random and one row from each; {percent} of the time the first class's row gets the "
        "higher score for that class (50\u00a0% would be chance)."
    )


def verdict(test: ModelComparison, judgement: Judgement) -> str:
    """Say the result of a paired test."""
    if test.stderr == 0.0:
        return "identical scores"
    if test.holm >= 1.0 - judgement.level:
        return "no clear difference"
    return "better" if test.difference > 0 else "worse"


def advice(judgement: Judgement, *, most: int = 3) -> list[str]:
    """Return what to do next about at most ``most`` weak classes; often nothing.

    A class is weak if its recall is below the balanced accuracy beyond chance, by Wilson's interval at the level of the
    judgement, corrected for the number of classes (Bonferroni). The lowest high end comes first. If the MAUC may be
    that of chance, no class is weak.
    """
    weak = [] if judgement.headline.mauc.low <= 0.5 else _weak_classes(judgement)
    said = [_weak_class(judgement, k) for k in weak[:most]]
    more = len(weak) - most
    if more > 0:
        said.append(f"{more} more class{' has' if more == 1 else 'es have'} a recall clearly below the average.")
    return said


def _weak_classes(judgement: Judgement) -> list[int]:
    """Return the classes whose recall is below average beyond chance, the worst first."""
    if judgement.further is None:
        return []
    decision = judgement.further.decisions[0]
    found = judgement.further.classes
    level = 1.0 - (1.0 - judgement.level) / len(found)
    high = np.array([share(each.recall.score * each.rows, each.rows, level).high for each in found])
    order = np.argsort(high, kind="stable")
    return [int(k) for k in order if high[k] < decision.balanced_accuracy.score]


def _weak_class(judgement: Judgement, k: int) -> str:
    """Say the recall of a class, what it is mistaken for, and what to do about it."""
    assert judgement.further is not None
    decision, classes = judgement.further.decisions[0], judgement.further.classes
    recall = classes[k].recall
    is_lowest = [each.recall.score for each in classes if each.recall.score <= recall.score] == [recall.score]
    labels, name = judgement.labels, judgement.labels[k]
    which = "has the lowest recall" if is_lowest else "has a low recall"
    said = f"Class {name} {which}: {recall}; the average over the classes is {decision.balanced_accuracy.score:.3f}."
    missed = decision.confusion[k].copy()
    missed[k] = 0
    j = int(np.argmax(missed))
    if missed[j]:
        said += f" {tenths(missed[j]):,} of its {_rows(int(judgement.counts[k]), 'test')} are predicted as {labels[j]}."
    training = judgement.training_counts
    if training is None or name not in training:
        return said
    rare = training[name] < 0.2 * sum(training.values()) / len(training)
    if rare:
        return f"{said} It has {_rows(training[name], 'training')} of {sum(training.values()):,}: collect more."
    other = labels[j] if missed[j] else "the others"
    return f"{said} It is not rare: look for columns that separate it from {other}."


def _rows(n: int, kind: str) -> str:
    return f"1 {kind} row" if n == 1 else f"{n:,} {kind} rows"
