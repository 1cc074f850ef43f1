"""The default models of a stack, and how a model is fitted with weights and scored."""

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


class KernelColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Map standardised features to columns whose products approximate a Gaussian kernel (Nyström).

    :math:`k(x, x') = \exp(-\gamma \lVert x - x' \rVert^2 / d)` for d features. scikit-learn's ``Nystroem`` does not
    scale γ by d, and warns of fewer samples than columns.

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
        n_components = min(self.n_components, n_samples)
        gamma = self.gamma / n_features
        self.map_ = Nystroem(gamma=gamma, n_components=n_components, random_state=self.random_state).fit(X)
        return self

    def transform(self, X: Any) -> Floats:
        """Return ``(N, n_components)``."""
        return np.asarray(self.map_.transform(X))


class BoostedTrees(HistGradientBoostingClassifier):  # type: ignore[misc]
    """Histogram boosting that also takes columns without any number, on which scikit-learn 1.9 fails.

    A fold may have such a column. This class replaces it by zeros.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.column_stack([np.arange(40.0), np.full(40, np.nan)])
    >>> BoostedTrees(min_samples_leaf=5).fit(X, X[:, 0] > 20).score(X, X[:, 0] > 20)
    1.0
    """

    def fit(self, X: Any, y: Any, sample_weight: Floats | None = None) -> Self:
        """Find the columns without any number, and fit."""
        columns = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        self.empty_ = np.isnan(columns).all(axis=0)
        super().fit(np.where(self.empty_, 0.0, columns), y, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return ``(N, C)`` probabilities."""
        columns = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        return np.asarray(super().predict_proba(np.where(self.empty_, 0.0, columns)))


def default_estimators(random_state: int | None = 0, n_trees: int = 300) -> list[tuple[str, Any]]:
    """Return nine classifiers that make different mistakes. Each balances the classes and takes missing values.

    A stack uses them on tables of up to 3,500 rows; :func:`mauc.ensemble.planner.plan_members` adapts them to larger
    tables. The first two, a forest and a linear model, already make a good combination.

    Parameters
    ----------
    random_state : int, optional, default=0
    n_trees : int, default=300
        Number of trees in each forest.

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
            # scikit-learn stops early above 10,000 samples, which fails with a class of one sample.
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


ODDS = ("odds", "odds_kernel")
"""Names of the models of ordered classes."""


def ordinal_estimators(order: list[int], random_state: int | None = 0) -> list[tuple[str, Any]]:
    """Return proportional odds on the columns and on those of a Gaussian kernel, for ordered classes.

    Parameters
    ----------
    order : list of int
        Codes of the classes from the lowest to the highest.
    random_state : int, optional, default=0
    """
    kernel = KernelColumns(random_state=random_state)
    models = on_columns(ProportionalOdds(order)), on_columns(kernel, ProportionalOdds(order))
    return list(zip(ODDS, models, strict=True))


def on_columns(*steps: Any) -> Pipeline:
    """Return a pipeline that imputes and standardises first."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), *steps)


def _mauc(l2: float) -> MAUCClassifier:
    return MAUCClassifier(alpha=4.0, log_loss=0.0, l2=l2, max_iter=2000, tol=1e-4)


def weight_argument(model: Any, weight: Floats | None) -> dict[str, Any]:
    """Return the argument by which ``fit`` of a model, or of a pipeline's last step, takes the weights."""
    if weight is None:
        return {}
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return {f"{name}__{key}": value for key, value in weight_argument(last, weight).items()}
    # A search passes its arguments on to its model.
    if isinstance(model, GridSearchCV | RandomizedSearchCV):
        return weight_argument(model.estimator, weight)
    if not has_fit_parameter(model, "sample_weight"):
        advice = "leave that model out, or pass no weights"
        raise invalid("sample_weight", "needs models whose fit takes it", type(model).__name__, advice)
    return {"sample_weight": weight}


def fit_base(model: Any, X: Any, y: Ints, weight: Floats | None) -> Any:
    """Fit a model in place, with weights if there are any."""
    given = weight_argument(model, weight)
    if not given:
        return model.fit(X, y)
    # With scikit-learn's metadata routing a pipeline takes weights only if each step requests them.
    with config_context(enable_metadata_routing=False):
        return model.fit(X, y, **given)


def class_scores(model: Any, X: Any, n_classes: int) -> Floats:
    """Return ``(N, C)`` probabilities of a model fitted on codes, or else the softmax of its decision function.

    A class that the model does not know has the score 0.
    """
    scores = scores_by_code(model, X, n_classes)
    if not np.isfinite(scores).all():
        advice = "leave that model out, or give it what it needs, such as scaled or imputed features"
        raise invalid("estimators", "must give finite scores", f"NaN or infinity from {type(model).__name__}", advice)
    if not hasattr(model, "predict_proba"):
        known = np.asarray(model.classes_, dtype=np.int64)
        scores[:, known] = activate(scores[:, known], "softmax")
    return scores
