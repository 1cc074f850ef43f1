"""What ``mauc demo`` shows: a stack of models, logistic regression and the MAUC losses on digits made imbalanced."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import datasets
from mauc.datasets.bundled import BUNDLED
from mauc.ensemble import MAUCStackingClassifier
from mauc.linear import MAUCClassifierCV
from mauc.model_selection import RareClassKFold, mauc_scorer
from mauc.report import Judgement, judge

__all__ = ["CLASS_SIZES", "Demo", "imbalanced_digits", "run_demo"]

CLASS_SIZES = BUNDLED["digits-imb"]
FOLDS = 3
# The first is the library's default, chosen before looking at any result.
ALPHAS = {"exponential": (1.0, 4.0), "squared": (0.5, 1.0), "hinge": (0.5, 1.0)}
L2S = (1e-1, 1e-2, 1e-3, 1e-4)
CS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration found."""

    judgement: Judgement
    n_train: int
    details: list[tuple[str, str]]


def imbalanced_digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The bundled digits, with fewer samples of each digit than of the one before."""
    bunch = datasets.load("digits-imb")
    return bunch.X, bunch.y


def models() -> dict[str, Any]:
    """A stack of seven models at its defaults, and five linear ones, each tuned by cross-validated multiclass AUC on
    the same folds.
    """
    tuned: dict[str, Any] = {"MAUC stacking": MAUCStackingClassifier()}
    tuned |= {
        f"MAUC {surrogate}": MAUCClassifierCV(
            (surrogate,), alphas=alphas, log_losses=(0.0,), l2s=L2S, cv=RareClassKFold(FOLDS)
        )
        for surrogate, alphas in ALPHAS.items()
    }
    for name, weight in (("LR", None), ("LR balanced", "balanced")):
        regression = LogisticRegression(max_iter=1000, class_weight=weight)
        tuned[name] = GridSearchCV(regression, {"C": CS}, scoring=mauc_scorer, cv=RareClassKFold(FOLDS))
    return tuned


def run_demo() -> Demo:
    """Train all models on half of the digits and judge them on the other half."""
    X, y = imbalanced_digits()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
    scores = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name, model in models().items():
            fitted = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
            scores[name] = fitted.predict_proba(X_test)
    details = [
        ("data", f"scikit-learn's digits, {CLASS_SIZES[0]} of the first to {CLASS_SIZES[-1]} of the last"),
        ("MAUC stacking", "seven models, combined to rank by multiclass AUC"),
        ("other models", f"linear, each tuned by {FOLDS}-fold cross-validated multiclass AUC"),
        ("training rows", str(len(y_train))),
        ("rows judged by", str(len(y_test))),
    ]
    return Demo(judge(y_test, scores, y_train=y_train), len(y_train), details)
