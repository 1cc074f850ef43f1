"""The models of a stack: a default list, fitting with weights, and scores on a common scale."""

from typing import Any, Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array, has_fit_parameter

from mauc._estimators import scores_by_code
from mauc._typing import Floats, Ints
from mauc._validation import invalid
from mauc.activations import activate
from mauc.ensemble.odds import ProportionalOdds
from mauc.ensemble.perceptron import BalancedPerceptron
from mauc.linear import MAUCClassifier

__all__ = [
    "BoostedTrees",
    "KernelColumns",
    "class_scores",
    "default_estimators",
    "fit_base",
    "on_columns",
    "ordinal_estimators",
    "weight_argument",
]


class KernelColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Columns whose products are a Gaussian kernel of standardised features (Nyström's approximation).

    :math:`k(x, x') = \exp(-\gamma \lVert x - x' \rVert^2 / d)` for d features: unlike scikit-learn's ``Nystroem`` it
    knows d when it is fitted, and takes fewer samples than columns without a warning.

    Parameters
    ----------
    gamma : float, default=0.3
    n_components : int, default=200
        Columns, at most one per sample.
    random_state : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> columns = KernelColumns().fit_transform(X)
    >>> columns.shape, bool(np.allclose((columns**2).sum(axis=1), 1.0))
    ((50, 50), True)
    """

    def __init__(self, gamma: float = 0.3, n_components: int = 200, random_state: int | None = 0) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the samples that span the columns."""
        n_samples, n_features = X.shape
        self.map_ = Nystroem(
            gamma=self.gamma / n_features,
            n_components=min(self.n_components, n_samples),
            random_state=self.random_state,
        ).fit(X)
        return self

    def transform(self, X: Any) -> Floats:
        """``(N, n_components)``"""
        return np.asarray(self.map_.transform(X))


class BoostedTrees(HistGradientBoostingClassifier):  # type: ignore[misc]
    """scikit-learn's histogram boosting, which also takes columns without a single number, as a fold may have: it says
    nothing by them, where scikit-learn 1.9 fails.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.arange(40.0), np.full(40, np.nan)])
    >>> BoostedTrees(min_samples_leaf=5).fit(X, X[:, 0] > 20).score(X, X[:, 0] > 20)
    1.0
    """

    def fit(self, X: Any, y: Any, sample_weight: Floats | None = None) -> Self:
        """Note which columns hold no number, and fit."""
        columns = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        self.empty_ = np.isnan(columns).all(axis=0)
        super().fit(np.where(self.empty_, 0.0, columns), y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """``(N, C)``"""
        columns = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        return np.asarray(super().predict_proba(np.where(self.empty_, 0.0, columns)))


def default_estimators(random_state: int | None = 0, n_trees: int = 300) -> list[tuple[str, Any]]:
    """Nine models that err in different ways, each balancing the classes; all take missing values.

    These are the models of a table of up to some thousand rows; :func:`mauc.ensemble.planner.plan_members` adapts them
    to larger ones.

    Parameters
    ----------
    random_state : int, optional, default=0
    n_trees : int, default=300
        Of extra trees and of the forest.

    Notes
    -----
    The first two give a good model soon: trees, and a linear model. What each is worth stands in
    :mod:`mauc.ensemble.combination`.

    Examples
    --------
    >>> from mauc.ensemble import default_estimators
    >>> [name for name, _ in default_estimators()]
    ['et', 'lr', 'hgb', 'rf', 'mauc', 'kernel', 'et_deep', 'mlp', 'lr_strong']
    """
    balanced: dict[str, Any] = {"class_weight": "balanced", "random_state": random_state}
    return [
        ("et", ExtraTreesClassifier(n_trees, min_samples_leaf=3, **balanced)),
        ("lr", on_columns(LogisticRegression(max_iter=2000, **balanced))),
        (
            "hgb",
            # Early stopping, which scikit-learn turns on above 10,000 samples, refuses classes of one sample.
            BoostedTrees(
                learning_rate=0.05,
                max_leaf_nodes=8,
                min_samples_leaf=5,
                l2_regularization=1.0,
                early_stopping=False,
                **balanced,
            ),
        ),
        ("rf", RandomForestClassifier(n_trees, min_samples_leaf=3, **balanced)),
        ("mauc", on_columns(_mauc(1e-3))),
        ("kernel", on_columns(KernelColumns(random_state=random_state), _mauc(1e-4))),
        ("et_deep", ExtraTreesClassifier(n_trees, **balanced)),
        ("mlp", on_columns(BalancedPerceptron(random_state=random_state))),
        ("lr_strong", on_columns(LogisticRegression(C=0.01, max_iter=2000, **balanced))),
    ]


def ordinal_estimators(order: list[int], random_state: int | None = 0) -> list[tuple[str, Any]]:
    """Proportional odds on the columns and on those of a Gaussian kernel, for classes that have an order.

    They cost little, the second a quarter of the kernel model. Measured on 19 tables with an order, none of them kept
    for judging: grades and ratings, and numbers cut into unequal ranges (at most 620 rows, two splits of 60 %, forests
    of 100 trees; mean test MAUC × 100, 73.74 without them): both +0.63 ± 0.22 (standard error), 27 won and 11 lost, by
    tables 15 and 4; the first alone +0.45, the second alone +0.42.

    Tried in place of them: extra trees on the grades, out-of-bag predictions turned into scores by proportional odds,
    +0.50, beside both +0.74, for the time of a forest; extra trees on all P(y > k) at once +0.10. A second layer on top
    of all, logistic regression on the logarithms of the scores: as one more model +0.09 ± 0.08 over these and the 13,
    averaged with the combination +0.24 ± 0.11, 29 won and 19 lost. Folds repeated three times, on 13 splits of tables
    of 51 to 311 rows: −0.27 ± 0.25, 5 won and 4 lost.

    Parameters
    ----------
    order : list of int
        Codes of the classes from the lowest to the highest.
    random_state : int, optional, default=0
    """
    kernel = KernelColumns(random_state=random_state)
    return [
        ("odds", on_columns(ProportionalOdds(order))),
        ("odds_kernel", on_columns(kernel, ProportionalOdds(order))),
    ]


def on_columns(*steps: Any) -> Pipeline:
    """On imputed and standardised columns."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), *steps)


def _mauc(l2: float) -> MAUCClassifier:
    return MAUCClassifier(alpha=4.0, log_loss=0.0, l2=l2, max_iter=2000, tol=1e-4)


def weight_argument(model: Any, weight: Floats | None) -> dict[str, Any]:
    """How ``fit`` of a model, or of the last step of a pipeline, is given the weights; nothing without weights."""
    if weight is None:
        return {}
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return {f"{name}__{key}": value for key, value in weight_argument(last, weight).items()}
    # A search passes what it is given to the model that it searches for.
    if isinstance(model, GridSearchCV | RandomizedSearchCV):
        return weight_argument(model.estimator, weight)
    if not has_fit_parameter(model, "sample_weight"):
        advice = "leave that model out, or pass no weights"
        raise invalid("sample_weight", "needs models whose fit takes it", type(model).__name__, advice)
    return {"sample_weight": weight}


def fit_base(model: Any, X: Any, y: Ints, weight: Floats | None) -> Any:
    """Fit in place, with weights where there are any."""
    given = weight_argument(model, weight)
    if not given:
        return model.fit(X, y)
    # With scikit-learn's metadata routing a pipeline would take weights only where each step asks for them.
    with config_context(enable_metadata_routing=False):
        return model.fit(X, y, **given)


def class_scores(model: Any, X: Any, n_classes: int) -> Floats:
    """``(N, C)`` probabilities of a model fitted on codes; 0 for a class that it does not know.

    Where a model has none, the softmax of its decision function.
    """
    scores = scores_by_code(model, X, n_classes)
    if not np.isfinite(scores).all():
        advice = "leave that model out, or give it what it needs, such as scaled or imputed features"
        raise invalid("estimators", "must give finite scores", f"NaN or infinity from {type(model).__name__}", advice)
    if not hasattr(model, "predict_proba"):
        known = np.asarray(model.classes_, dtype=np.int64)
        scores[:, known] = activate(scores[:, known], "softmax")
    return scores
