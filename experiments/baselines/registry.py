"""The competitors by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from imblearn.ensemble import BalancedRandomForestClassifier
from imblearn.over_sampling import BorderlineSMOTE
from imblearn.pipeline import Pipeline
from imblearn.under_sampling import InstanceHardnessThreshold, NearMiss, TomekLinks
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from experiments.baselines.mwmote import MWMOTE
from experiments.baselines.safe import SafeSampler
from mauc._validation import check_choice, invalid

__all__ = ["BASELINES", "Baseline", "baseline_names", "make_baseline", "make_sampler"]

Grid = Mapping[str, tuple[Any, ...]]

# On the paper's nine sets the mean validation MAUC peaks between C = 0.1 (standardised) and 1e4 (unit rows).
_C = tuple(10.0**k for k in range(-3, 6))
# Ample: the hardest fit on those sets (yeast, unit rows, C = 1e6) takes 1,100 iterations.
_MAX_ITER = 10_000
# Many: a tree of the balanced forest sees as few samples of each class as the smallest class has.
_N_TREES = 300


@dataclass(frozen=True)
class Baseline:
    """A competitor: what it is, how to make it, what to tune."""

    name: str
    """Short, as in the tables of the paper."""
    title: str
    """What it does, for a legend."""
    reference: str
    """Where it was published."""
    classifier: Callable[[int | None], Any]
    """From a random state to the unfitted classifier."""
    grid: Grid
    """Parameters of the pipeline and the values that a fair search tries on validation data: ready for
    ``GridSearchCV``, and each combination for ``make_baseline(name, **combination)``."""
    sampler: Callable[[int | None], Any] | None = None
    """From a random state to the unfitted sampler, None without resampling."""
    in_paper: bool = True
    """Whether "Learning with Multiclass AUC" compares with it."""

    def make(self, random_state: int | None = 0, **params: Any) -> Pipeline:
        """The unfitted pipeline, of the steps ``sampler`` (if there is one) and ``classifier``.

        Parameters are named as in the pipeline (``classifier__C``) or, for those of the classifier, plainly (``C``).
        """
        steps = [] if self.sampler is None else [("sampler", self.sampler(random_state))]
        pipeline = Pipeline([*steps, ("classifier", self.classifier(random_state))])
        valid = pipeline.get_params()
        named = {key if key in valid else f"classifier__{key}": value for key, value in params.items()}
        unknown = [key for key in params if key not in valid and f"classifier__{key}" not in valid]
        if unknown:
            shown = sorted(key.removeprefix("classifier__") for key in valid if "__" in key)
            requirement = f"must be parameters of {self.name}: {', '.join(shown)}"
            raise invalid("params", requirement, ", ".join(unknown), "correct the name, or leave it out")
        return pipeline.set_params(**named)


def _logistic(random_state: int | None) -> LogisticRegression:
    return LogisticRegression(max_iter=_MAX_ITER, random_state=random_state)


def _balanced_logistic(random_state: int | None) -> LogisticRegression:
    return LogisticRegression(max_iter=_MAX_ITER, class_weight="balanced", random_state=random_state)


def _boosting(random_state: int | None) -> HistGradientBoostingClassifier:
    # Early stopping, which scikit-learn turns on above 10,000 samples, splits by class and refuses classes of one.
    return HistGradientBoostingClassifier(class_weight="balanced", early_stopping=False, random_state=random_state)


def _balanced_forest(random_state: int | None) -> BalancedRandomForestClassifier:
    return BalancedRandomForestClassifier(_N_TREES, random_state=random_state)


def _extra_trees(random_state: int | None) -> ExtraTreesClassifier:
    return ExtraTreesClassifier(_N_TREES, class_weight="balanced", random_state=random_state)


def _borderline_smote(random_state: int | None) -> SafeSampler:
    return SafeSampler(BorderlineSMOTE(random_state=random_state))


def _mwmote(random_state: int | None) -> MWMOTE:
    return MWMOTE(random_state=random_state)


def _instance_hardness(random_state: int | None) -> SafeSampler:
    return SafeSampler(InstanceHardnessThreshold(random_state=random_state))


def _near_miss(random_state: int | None) -> SafeSampler:
    return SafeSampler(NearMiss())


def _tomek_links(random_state: int | None) -> SafeSampler:
    return SafeSampler(TomekLinks())


_TUNE_C: Grid = {"classifier__C": _C}
_TUNE_TREES: Grid = {"classifier__min_samples_leaf": (1, 2, 5), "classifier__max_features": ("sqrt", 0.5, None)}
_TUNE_BOOSTING: Grid = {
    "classifier__learning_rate": (0.03, 0.1),
    "classifier__max_leaf_nodes": (5, 31),
    "classifier__min_samples_leaf": (2, 5, 20),
}

_ENTRIES = (
    Baseline(
        "LR",
        "logistic regression",
        "Cox: The regression analysis of binary sequences. JRSS B 20(2), 1958.",
        _logistic,
        _TUNE_C,
    ),
    Baseline(
        "BM",
        "Borderline-SMOTE, then logistic regression",
        "Han, Wang, Mao: Borderline-SMOTE: a new over-sampling method in imbalanced data sets learning. ICIC 2005.",
        _logistic,
        _TUNE_C,
        _borderline_smote,
    ),
    Baseline(
        "MM",
        "MWMOTE, then logistic regression",
        "Barua, Islam, Yao, Murase: MWMOTE—Majority Weighted Minority Oversampling Technique for Imbalanced Data Set "
        "Learning. IEEE TKDE 26(2), 2014.",
        _logistic,
        _TUNE_C,
        _mwmote,
    ),
    Baseline(
        "IHT",
        "instance hardness threshold, then logistic regression",
        "Smith, Martinez, Giraud-Carrier: An instance level analysis of data complexity. Machine Learning 95(2), 2014.",
        _logistic,
        _TUNE_C,
        _instance_hardness,
    ),
    Baseline(
        "NM",
        "NearMiss, then logistic regression",
        "Mani, Zhang: kNN approach to unbalanced data distributions: a case study involving information extraction. "
        "ICML workshop on learning from imbalanced datasets, 2003.",
        _logistic,
        _TUNE_C,
        _near_miss,
    ),
    Baseline(
        "TL",
        "Tomek links, then logistic regression",
        "Tomek: Two modifications of CNN. IEEE Transactions on Systems, Man, and Cybernetics 6(11), 1976.",
        _logistic,
        _TUNE_C,
        _tomek_links,
    ),
    Baseline(
        "LR-balanced",
        "logistic regression with balanced class weights",
        "King, Zeng: Logistic regression in rare events data. Political Analysis 9(2), 2001.",
        _balanced_logistic,
        _TUNE_C,
        in_paper=False,
    ),
    Baseline(
        "HGB",
        "histogram gradient boosting with balanced class weights",
        "Ke, Meng, Finley, Wang, Chen, Ma, Ye, Liu: LightGBM: a highly efficient gradient boosting decision tree. "
        "NeurIPS 2017.",
        _boosting,
        _TUNE_BOOSTING,
        in_paper=False,
    ),
    Baseline(
        "BRF",
        "balanced random forest",
        "Chen, Liaw, Breiman: Using random forest to learn imbalanced data. Technical report 666, UC Berkeley, 2004.",
        _balanced_forest,
        _TUNE_TREES,
        in_paper=False,
    ),
    Baseline(
        "ET",
        "extra trees with balanced class weights",
        "Geurts, Ernst, Wehenkel: Extremely randomized trees. Machine Learning 63(1), 2006.",
        _extra_trees,
        _TUNE_TREES,
        in_paper=False,
    ),
)

BASELINES: dict[str, Baseline] = {entry.name: entry for entry in _ENTRIES}
"""Every competitor by its name; the paper's first."""


def baseline_names(*, in_paper: bool | None = None) -> tuple[str, ...]:
    """Names of the competitors: all, only the paper's, or only the others.

    Examples
    --------
    >>> from experiments.baselines import baseline_names
    >>> baseline_names()
    ('LR', 'BM', 'MM', 'IHT', 'NM', 'TL', 'LR-balanced', 'HGB', 'BRF', 'ET')
    """
    return tuple(name for name, entry in BASELINES.items() if in_paper is None or entry.in_paper == in_paper)


def make_baseline(name: str, *, random_state: int | None = 0, **params: Any) -> Pipeline:
    """An unfitted competitor, as a pipeline that takes classes of any size.

    Parameters
    ----------
    name : str
        One of :func:`baseline_names`.
    random_state : int or None, default=0
        Of the sampler and the classifier.
    **params
        Parameters of the classifier (``C=10``), or of any step under its path (``classifier__C=10``,
        ``sampler__sampler__k_neighbors=3``, ``memory="cache"`` to resample once for all values of C).

    Returns
    -------
    imblearn.pipeline.Pipeline
        Steps ``sampler``, where the method has one, and ``classifier``. Resampling happens in ``fit`` only.

    Notes
    -----
    Features are taken as they are: standardise them, or scale the rows to unit length. The logistic regressions then
    converge with their ``max_iter``; ``C`` is scikit-learn's default of 1 unless given.

    Where the smallest class has one or two samples, NM and IHT leave about as few of every other class, and a tree of
    BRF is grown on as few: see :class:`SafeSampler`, whose attributes tell what happened. HGB never stops early.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.baselines import make_baseline
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> y = np.repeat([0, 1, 2], [20, 9, 1])
    >>> make_baseline("BM", C=10).fit(X, y).predict_proba(X).shape
    (30, 3)
    """
    return BASELINES[check_choice("name", name, baseline_names())].make(random_state, **params)


def make_sampler(name: str, *, random_state: int | None = 0, n_jobs: int | None = None) -> Any:
    """The unfitted sampler of a competitor, for use before another classifier.

    ``n_jobs`` reaches the samplers that take it: IHT, NM and TL. IHT grows 500 trees, which on 2048 features is minutes
    of one core. The result does not depend on it.

    Examples
    --------
    >>> from experiments.baselines import make_sampler
    >>> make_sampler("TL")
    SafeSampler(sampler=TomekLinks())
    """
    samplers = [key for key, entry in BASELINES.items() if entry.sampler is not None]
    sampler = BASELINES[check_choice("name", name, samplers)].sampler
    assert sampler is not None  # of the names just checked
    made = sampler(random_state)
    if "sampler__n_jobs" in made.get_params():
        made.set_params(sampler__n_jobs=n_jobs)
    return made
