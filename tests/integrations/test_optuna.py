"""Studies of Optuna: what is reported, what is pruned, what is returned."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mauc import compare_mauc, mauc_interval, mauc_score
from mauc.integrations import optuna_objective
from mauc.model_selection import RareClassKFold

optuna = pytest.importorskip("optuna", reason="needs optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)


class Noisy(ClassifierMixin, BaseEstimator):
    """Its features are the scores, with noise that depends on the row alone, so that folds do not matter."""

    def __init__(self, noise=0.0, seed=0):
        self.noise = noise
        self.seed = seed

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.weight_ = sample_weight
        return self

    def predict_proba(self, X):
        rows = X[:, -1].astype(int)
        noise = np.random.default_rng(self.seed).normal(size=(rows.max() + 1, X.shape[1] - 1))
        return X[:, :-1] + self.noise * noise[rows]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [120, 40, 12])
    return np.column_stack([rng.normal(size=(172, 3)) + 1.5 * np.eye(3)[y], np.arange(172)]), y


def by_noise(trial):
    return {"noise": trial.suggest_float("noise", 0.0, 9.0), "seed": trial.suggest_int("seed", 0, 10**6)}


def run(objective, *params, pruner=None):
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0), pruner=pruner)
    for each in params:
        study.enqueue_trial(each)
    study.optimize(objective, n_trials=len(params))
    return study


def test_value_reports_and_interval(data):
    X, y = data
    study = run(optuna_objective(Noisy(), X, y, by_noise, cv=3), {"noise": 1.0, "seed": 1})
    (trial,) = study.trials
    scores = Noisy(1.0, 1).fit(X, y).predict_proba(X)
    expected = mauc_interval(y, scores)
    assert trial.value == pytest.approx(expected.score)
    assert trial.user_attrs == pytest.approx({k: getattr(expected, k) for k in ("low", "high", "stderr")})
    first = next(RareClassKFold(3).split(X, y))[1]
    assert trial.intermediate_values == pytest.approx({
        1: mauc_score(y[first], scores[first]),
        2: trial.intermediate_values[2],
        3: expected.score,
    })  # fmt: skip


def test_pruned_by_the_paired_interval(data):
    """Bad trials early, trials that differ by noise not at all, and never against a best of another study."""
    X, y = data
    objective = optuna_objective(Noisy(), X, y, by_noise, cv=5)
    good, like, bad = ({"noise": n, "seed": s} for n, s in ((0.3, 1), (0.3, 2), (6.0, 3)))
    study = run(objective, good, like, bad)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "PRUNED"]
    done = len(study.trials[2].intermediate_values)
    assert done < 5
    # The rule by hand, at the fold where it was pruned.
    parts = [test for _, test in RareClassKFold(5).split(X, y)]
    scores = {n: Noisy(**params).fit(X, y).predict_proba(X) for n, params in (("good", good), ("bad", bad))}
    for folds in range(1, done + 1):
        rows = np.sort(np.concatenate(parts[:folds]))
        seen = np.bincount(y[rows], minlength=3) / np.bincount(y)
        found = compare_mauc(y[rows], scores["bad"][rows], scores["good"][rows], level=1 - 0.05 / 4)
        upper = found.difference + (found.high - found.difference) * np.sqrt(1 - seen.min())
        assert (upper < 0 and np.bincount(y[rows]).min() > 1) == (folds == done)
    assert run(objective, bad).trials[0].state.name == "COMPLETE"


def test_the_pruner_of_the_study_where_there_is_no_level(data):
    X, y = data
    never, always = optuna.pruners.NopPruner(), optuna.pruners.ThresholdPruner(lower=1.1)
    trials = [{"noise": 0.3, "seed": 1}, {"noise": 6.0, "seed": 2}]
    objective = optuna_objective(Noisy(), X, y, by_noise, level=None)
    assert {t.state.name for t in run(objective, *trials, pruner=never).trials} == {"COMPLETE"}
    assert {t.state.name for t in run(objective, *trials, pruner=always).trials} == {"PRUNED"}


def test_the_best_estimator_and_weights(data):
    X, y = data
    names, weight = np.array(["x", "y", "z"])[y], np.linspace(0.0, 2.0, len(y))
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    objective = optuna_objective(
        pipeline, X, names, lambda t: {"logisticregression__C": t.suggest_float("C", 0.1, 1.0)}, sample_weight=weight
    )
    study = run(objective, {"C": 0.25})
    model = objective.build(study.best_trial)
    assert model[-1].C == 0.25
    assert not hasattr(model[-1], "coef_")
    held_out = np.zeros((len(y), 3))
    kept = np.flatnonzero(weight > 0)
    for a, b in RareClassKFold(5).split(kept, y[kept]):
        train, test = kept[a], kept[b]
        model.fit(X[train], names[train], logisticregression__sample_weight=weight[train])
        held_out[test] = model.predict_proba(X[test])
    assert study.best_value == pytest.approx(mauc_score(names[kept], held_out[kept], sample_weight=weight[kept]))


def test_errors(data):
    X, y = data
    objective = optuna_objective(Noisy(), X, y, by_noise)
    with pytest.raises(ValueError, match=r"study must maximise one value, got minimize: optuna.create_study\("):
        optuna.create_study(direction="minimize").optimize(objective, n_trials=1)
    with pytest.raises(ValueError, match=r"space must be a function of a trial, got \{'C': 1\}: pass e.g. lambda"):
        optuna_objective(Noisy(), X, y, {"C": 1})
    with pytest.raises(ValueError, match="y must have two samples of a class, got single ones: no sample"):
        optuna_objective(Noisy(), X[:2], [0, 1], by_noise)
    assert run(optuna_objective(Noisy(), X[118:122], y[118:122], by_noise), {"noise": 0.1, "seed": 0}).best_value >= 0
    with pytest.raises(ValueError, match="sample_weight needs models whose fit takes it"):
        optuna_objective(make_pipeline(NoWeights()), X, y, by_noise, sample_weight=np.ones(len(y)))


class NoWeights(DummyClassifier):
    def fit(self, X, y):
        return super().fit(X, y)
