"""The competitors by name, as pipelines of a sampler and a classifier."""

from collections.abc import Callable
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

__all__ = ["BASELINES", "Baseline", "make_sampler"]

Maker = Callable[[int], Any]
"""From a random state to an unfitted classifier or sampler."""


@dataclass(frozen=True)
class Baseline:
    """A competitor; its sampler, if it has one, runs in ``fit`` only."""

    classifier: Maker
    sampler: Maker | None = None
    in_paper: bool = True
    """Whether "Learning with Multiclass AUC" compares with it."""

    @property
    def is_logistic(self) -> bool:
        """Return whether the classifier has a penalty C to tune."""
        return self.classifier in (_logistic, _balanced_logistic)

    def make(self, **params: Any) -> Pipeline:
        """Return the unfitted pipeline with these parameters of the classifier."""
        steps = [] if self.sampler is None else [("sampler", self.sampler(0))]
        pipeline = Pipeline([*steps, ("classifier", self.classifier(0))])
        return pipeline.set_params(**{f"classifier__{key}": value for key, value in params.items()})


# Ample: the hardest fit on the paper's sets (yeast, unit rows, C = 1e6) takes 1,100 iterations.
def _logistic(seed: int) -> LogisticRegression:
    return LogisticRegression(max_iter=10_000, random_state=seed)


def _balanced_logistic(seed: int) -> LogisticRegression:
    return LogisticRegression(max_iter=10_000, class_weight="balanced", random_state=seed)


def _boosting(seed: int) -> HistGradientBoostingClassifier:
    # Early stopping, which scikit-learn turns on above 10,000 samples, splits by class and refuses classes of one.
    return HistGradientBoostingClassifier(class_weight="balanced", early_stopping=False, random_state=seed)


def _balanced_forest(seed: int) -> BalancedRandomForestClassifier:
    # Many trees: each sees as few samples of each class as the smallest class has.
    return BalancedRandomForestClassifier(300, random_state=seed)


def _extra_trees(seed: int) -> ExtraTreesClassifier:
    return ExtraTreesClassifier(300, class_weight="balanced", random_state=seed)


BASELINES: dict[str, Baseline] = {
    # Logistic regression, alone.
    "LR": Baseline(_logistic),
    # Han, Wang, Mao: Borderline-SMOTE. ICIC 2005.
    "BM": Baseline(_logistic, lambda seed: SafeSampler(BorderlineSMOTE(random_state=seed))),
    # Barua, Islam, Yao, Murase: MWMOTE. IEEE TKDE 26(2), 2014.
    "MM": Baseline(_logistic, lambda seed: MWMOTE(random_state=seed)),
    # Smith, Martinez, Giraud-Carrier: An instance level analysis of data complexity. Machine Learning 95(2), 2014.
    "IHT": Baseline(_logistic, lambda seed: SafeSampler(InstanceHardnessThreshold(random_state=seed))),
    # Mani, Zhang: kNN approach to unbalanced data distributions. ICML workshop, 2003.
    "NM": Baseline(_logistic, lambda seed: SafeSampler(NearMiss())),
    # Tomek: Two modifications of CNN. IEEE Transactions on Systems, Man, and Cybernetics 6(11), 1976.
    "TL": Baseline(_logistic, lambda seed: SafeSampler(TomekLinks())),
    # King, Zeng: Logistic regression in rare events data. Political Analysis 9(2), 2001.
    "LR-balanced": Baseline(_balanced_logistic, in_paper=False),
    # Ke et al.: LightGBM. NeurIPS 2017.
    "HGB": Baseline(_boosting, in_paper=False),
    # Chen, Liaw, Breiman: Using random forest to learn imbalanced data. Technical report 666, UC Berkeley, 2004.
    "BRF": Baseline(_balanced_forest, in_paper=False),
    # Geurts, Ernst, Wehenkel: Extremely randomized trees. Machine Learning 63(1), 2006.
    "ET": Baseline(_extra_trees, in_paper=False),
}
"""Every competitor by its name; the paper's first."""


def make_sampler(name: str, *, random_state: int, n_jobs: int | None = None) -> Any:
    """Return the unfitted sampler of a competitor.

    ``n_jobs`` reaches the samplers that take it, IHT, NM and TL, and does not change the result. IHT grows 500 trees,
    which on 2,048 features is minutes of one core.
    """
    maker = BASELINES[name].sampler
    assert maker is not None  # the caller names a sampler
    sampler = maker(random_state)
    if "sampler__n_jobs" in sampler.get_params():
        sampler.set_params(sampler__n_jobs=n_jobs)
    return sampler
