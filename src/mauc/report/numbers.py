"""Write a judgement as JSON and as tables."""

from typing import Any

from mauc.report.further import tenths
from mauc.report.judgement import Judgement, PairScore


def as_json(judgement: Judgement) -> dict[str, Any]:
    """Return all numbers by name."""
    further = judgement.further
    tables = tables_of(judgement)
    return {
        "rows": judgement.n_rows,
        "level": judgement.level,
        "models": [
            {
                "name": model.name,
                "mauc": vars(model.mauc),
                "ova": vars(model.ova),
                "accuracy": model.accuracy,
                "balanced_accuracy": model.balanced_accuracy,
            }
            for model in judgement.models
        ],
        "tests": [
            {
                "model": test.a,
                "against": test.b,
                **{name: getattr(test, name) for name in ("difference", "low", "high", "stderr", "pvalue")},
                "pvalue_holm": test.holm,
            }
            for test in judgement.tests
        ],
        "classes": tables["classes"],
        "worst_pairs": tables["worst_pairs"],
        "rarest_pairs": tables["rarest_pairs"],
        "decisions": [
            {
                "decision": each.name,
                "predicted": each.words,
                "accuracy": vars(each.accuracy),
                "balanced_accuracy": vars(each.balanced_accuracy),
            }
            for each in (further.decisions if further else ())
        ],
        "guess": vars(judgement.guess),
        "mistakes": tables.get("mistakes", []),
        "calibration": None
        if further is None or further.calibration is None
        else {"error": further.calibration.error, "bins": tables["calibration"]},
        "subgroups": tables.get("subgroups", []),
        "absent": list(judgement.absent),
        "notes": list(judgement.notes),
    }


def tables_of(judgement: Judgement) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of the page, each a list of rows."""
    labels, further = judgement.labels, judgement.further
    tests = {test.a: test for test in judgement.tests}
    found: dict[str, list[dict[str, Any]]] = {
        "models": [
            {
                "model": model.name,
                **_named("mauc", model.mauc),
                **_named("ova", model.ova),
                "accuracy": model.accuracy,
                "balanced_accuracy": model.balanced_accuracy,
                "difference": tests[model.name].difference if model.name in tests else None,
                "pvalue_holm": tests[model.name].holm if model.name in tests else None,
            }
            for model in judgement.models
        ],
        "classes": [
            {"class": label, "rows": int(n), "mean_auc": float(auc)}
            for label, n, auc in zip(labels, judgement.counts, judgement.class_auc, strict=True)
        ],
        "rarest_pairs": [_pair_row(judgement, pair) for pair in judgement.rarest],
        "worst_pairs": [_pair_row(judgement, pair) for pair in judgement.worst],
    }
    if judgement.subgroups:
        found["subgroups"] = [
            {
                "level": one.level,
                "rows": one.rows,
                **_named("mauc", one.mauc),
                "difference": one.difference.difference,
                "difference_low": one.difference.low,
                "difference_high": one.difference.high,
                "pvalue": one.difference.pvalue,
                "pvalue_holm": one.holm,
                "absent": list(one.absent),
            }
            for one in judgement.subgroups
        ]
    if further is None:
        return found
    for row, each in zip(found["classes"], further.classes, strict=True):
        row |= {"mean_auc_low": each.auc.low, "mean_auc_high": each.auc.high, **_named("recall", each.recall)}
        row |= {**_named("precision", each.precision), "average_precision": each.average_precision}
    found["mistakes"] = [
        {"class": labels[m.i], "predicted": labels[m.j], "rows": tenths(m.rows), **_named("share", m.of_class)}
        for m in further.mistakes
    ]
    if further.calibration is not None:
        found["calibration"] = [
            {"rows": b.rows, "mean_score": b.mean, **_named("right", b.right)} for b in further.calibration.bins
        ]
    return found


def _named(name: str, part: Any) -> dict[str, float]:
    return {name: part.score, f"{name}_low": part.low, f"{name}_high": part.high}


def _pair_row(judgement: Judgement, pair: PairScore) -> dict[str, Any]:
    return {
        "class_i": judgement.labels[pair.i],
        "rows_i": int(judgement.counts[pair.i]),
        "class_j": judgement.labels[pair.j],
        "rows_j": int(judgement.counts[pair.j]),
        "auc_ij": pair.auc_ij,
        "auc_ji": pair.auc_ji,
        **_named("mean", pair.interval),
    }
