"""``mauc demo``: a stack of models, logistic regression and the MAUC losses on imbalanced digits.

The rows are real, the imbalance is made. Of scikit-learn's digits, in the order of their file, the first half is for
training, with only every tenth row of the digits 5 to 9: the "step imbalance" of the literature. The second half,
mostly by other writers, is for testing, with about 90 rows of each digit, so that differences on the rare ones are
larger than the intervals. In a milder imbalance that was tried before, every (d + 1)-th row of digit d, all models
were within 0.002 of each other.
"""

import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mauc._cli.files import REPORTS, check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._text import visible

REPORT = REPORTS / "demo.html"
STEP = 10
FOLDS = 3
# The first is the library's default, chosen before looking at any result.
ALPHAS = {"exponential": (1.0, 4.0), "squared": (0.5, 1.0), "hinge": (0.5, 1.0)}
L2S = (1e-1, 1e-2, 1e-3, 1e-4)
CS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


def demo(
    out: Annotated[Path, typer.Option(readable=False, help="Report to write.")] = REPORT,
) -> None:
    """Compare six models on imbalanced digits.

    Takes about a minute and works offline. Uses scikit-learn's digits, and makes 5 to 9 rare in the training rows. The
    test rows have about the same number of each digit. Trains a stack of models, plain and balanced logistic
    regression, and linear models with three losses of multiclass AUC.
    """
    from mauc._cli.summary import as_json, comparison, headline, worst_pairs
    from mauc.report import render

    output = current()
    check_writable(out, "--out", "a page", ["html"])
    with output.working("training six models"):
        found, details = run_demo(models())
    write_whole(out, render(found, title="Imbalanced digits", details=details))
    counts = found.training_counts or {}
    output.say(
        f"Imbalanced digits: {sum(counts.values()):,} training rows, {found.n_rows:,} test rows",
        "Training rows of each digit: " + ", ".join(f"{d}: {counts[d]}" for d in sorted(counts)),
        f"Each digit has at least {found.counts.min()} test rows.",
        "",
        comparison(found),
        f"\n{found.headline.name}, in full:",
        *headline(found),
        "",
        worst_pairs(found),
        f"wrote {visible(out)}: open it in a browser",
    )
    output.result({**as_json(found), "files": {"report": out}})


def imbalanced_digits() -> tuple[Any, Any, Any, Any]:
    """Return features and classes of training rows, with every tenth row of the digits 5 to 9, and of test rows."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    half = len(y) // 2
    train = np.sort(np.concatenate([np.flatnonzero(y[:half] == d)[:: STEP if d >= 5 else 1] for d in range(10)]))
    return X[train], y[train], X[half:], y[half:]


def models() -> dict[str, Any]:
    """Return the default stack, and linear models tuned by cross-validated multiclass AUC on the same folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    from mauc.ensemble import MAUCStackingClassifier
    from mauc.linear import MAUCClassifierCV
    from mauc.model_selection import RareClassKFold, mauc_scorer

    tuned: dict[str, Any] = {"MAUC stacking": MAUCStackingClassifier()}
    for surrogate, alphas in ALPHAS.items():
        tuned[f"MAUC {surrogate}"] = MAUCClassifierCV(
            (surrogate,), alphas=alphas, log_losses=(0.0,), l2s=L2S, cv=RareClassKFold(FOLDS)
        )
    for name, weight in (("LR", None), ("LR balanced", "balanced")):
        regression = LogisticRegression(max_iter=1000, class_weight=weight)
        tuned[name] = GridSearchCV(regression, {"C": CS}, scoring=mauc_scorer, cv=RareClassKFold(FOLDS))
    return tuned


def run_demo(models: dict[str, Any]) -> tuple[Any, list[tuple[str, str]]]:
    """Train all models on the imbalanced half, and return their judgement on the other, and details for the report."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from mauc.report import judge

    X_train, y_train, X_test, y_test = imbalanced_digits()
    scores, fitted = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in models.items():
            fitted[name] = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
            scores[name] = fitted[name].predict_proba(X_test)
    counts = np.bincount(y_train)
    n_models = len(fitted["MAUC stacking"][-1].named_estimators_)
    details = [
        ("data", "scikit-learn's digits: training rows from the first half of the file, test rows from the second"),
        (
            "imbalance",
            f"only every {STEP}th training row of the digits 5 to 9 is used: {counts[0]} zeros, {counts[-1]} nines",
        ),
        ("MAUC stacking", f"{n_models} models, combined to rank by multiclass AUC"),
        ("other models", f"linear, each tuned by {FOLDS}-fold cross-validated multiclass AUC"),
        ("training rows", str(len(y_train))),
        ("test rows", str(len(y_test))),
    ]
    return judge(y_test, scores, y_train=y_train), details
