"""Every competitor fits sets with classes of one sample and scores all classes."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")

from imblearn.base import is_sampler
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.preprocessing import normalize, scale

from experiments.baselines import BASELINES, baseline_names, make_baseline, make_sampler
from mauc import mauc_score

SETS = (
    "balance",
    "dermatology",
    "ecoli",
    "new-thyroid",
    "pageblocks",
    "segment-imb",
    "shuttle",
    "svmguide2",
    "yeast",
)
LOGISTIC = ("LR", "BM", "MM", "IHT", "NM", "TL", "LR-balanced")
PAPER = ("LR", "BM", "MM", "IHT", "NM", "TL")
# Small ensembles: what is tested does not depend on their size.
QUICK = {
    "IHT": {"sampler__sampler__estimator": RandomForestClassifier(10, random_state=0)},
    "HGB": {"max_iter": 10},
    "BRF": {"n_estimators": 20},
    "ET": {"n_estimators": 20},
}


def small_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c", "d", "e"], [60, 20, 3, 2, 1])
    shift = 2 * rng.normal(size=(5, 6))[np.unique(y, return_inverse=True)[1]]
    return scale(rng.normal(size=(len(y), 6)) + shift), y


def check_on_splits(folder, dataset, name, n_splits, **params):
    data = np.load(folder / "traditional" / f"{dataset}.npz")
    y = data["y"]
    for k, X in enumerate([normalize(data["X"]), scale(data["X"])]):
        for train, test in zip(data["train"][k:n_splits:2], data["test"][k:n_splits:2], strict=True):
            model = make_baseline(name, **params).fit(X[train], y[train])
            probability = model.predict_proba(X[test])
            np.testing.assert_array_equal(model.classes_, np.unique(y))
            np.testing.assert_allclose(probability.sum(axis=1), 1)
            assert mauc_score(y[test], probability) > 0.55


@pytest.mark.parametrize("name", baseline_names())
@pytest.mark.parametrize("dataset", ["ecoli", "pageblocks", "shuttle", "yeast"])  # those with the rarest classes
def test_sets_of_the_paper(real_data, dataset, name):
    check_on_splits(real_data, dataset, name, 2, **QUICK.get(name, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", baseline_names())
@pytest.mark.parametrize("dataset", SETS)
def test_sets_of_the_paper_in_full(real_data, dataset, name):
    check_on_splits(real_data, dataset, name, 15)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(LOGISTIC) - {"IHT"}))
@pytest.mark.parametrize("dataset", SETS)
def test_logistic_regression_converges_on_the_whole_grid(real_data, dataset, name):
    for combination in ParameterGrid(dict(BASELINES[name].grid)):
        check_on_splits(real_data, dataset, name, 2, **combination)


@pytest.mark.parametrize("name", baseline_names())
def test_classes_of_one_to_three_samples(name):
    X, y = small_classes()
    model = make_baseline(name, **QUICK.get(name, {})).fit(X, y)
    probability = model.predict_proba(X)
    assert model.classes_.tolist() == list("abcde")
    assert probability.shape == (len(y), 5)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert mauc_score(y, probability) > 0.8
    again = make_baseline(name, **QUICK.get(name, {})).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(again, probability)


@pytest.mark.parametrize("name", baseline_names())
def test_entries_are_complete(name):
    entry = BASELINES[name]
    assert entry.name == name
    assert entry.title
    assert entry.reference.endswith(".")
    assert len(ParameterGrid(dict(entry.grid))) > 1
    assert pickle.loads(pickle.dumps(entry)) == entry
    assert entry.in_paper == (name in PAPER)


@pytest.mark.parametrize("name", baseline_names())
def test_parameters_can_be_read_set_and_cloned(name):
    model = make_baseline(name, random_state=7)
    assert not hasattr(model, "classes_")
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert model.get_params()["classifier__random_state"] == 7
    for key, values in BASELINES[name].grid.items():
        assert copy.set_params(**{key: values[0]}).get_params()[key] == values[0]
        assert make_baseline(name, **{key: values[-1]}).get_params()[key] == values[-1]


@pytest.mark.parametrize("name", LOGISTIC)
def test_logistic_ones_take_c(name):
    assert make_baseline(name).get_params()["classifier__C"] == 1.0
    assert make_baseline(name, C=0.01).get_params()["classifier__C"] == 0.01
    assert "classifier__C" in BASELINES[name].grid


def test_grid_fits_a_search():
    X, y = small_classes()
    X, y = X[:80], y[:80]
    search = GridSearchCV(make_baseline("TL"), dict(BASELINES["TL"].grid), cv=2).fit(X, y)
    assert search.best_params_["classifier__C"] in BASELINES["TL"].grid["classifier__C"]


def test_sampler_is_called_once_for_all_c_with_memory(tmp_path):
    X, y = small_classes()
    cached = make_baseline("MM", memory=str(tmp_path), C=10).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(cached, make_baseline("MM", C=10).fit(X, y).predict_proba(X))


def test_names():
    assert baseline_names() == (*PAPER, "LR-balanced", "HGB", "BRF", "ET")
    assert baseline_names(in_paper=True) == PAPER
    assert baseline_names(in_paper=False) == ("LR-balanced", "HGB", "BRF", "ET")


def test_unknown_name_lists_the_valid_ones():
    with pytest.raises(ValueError, match=r"name must be one of 'LR', 'BM', .*'ET', got 'SMOTE'"):
        make_baseline("SMOTE")
    with pytest.raises(ValueError, match=r"name must be one of 'BM', 'MM', 'IHT', 'NM', 'TL', got 'LR'"):
        make_sampler("LR")


def test_unknown_parameter_lists_the_valid_ones():
    with pytest.raises(ValueError, match=r"params must be parameters of BM: C, .*sampler__sampler__.*, got gamma: "):
        make_baseline("BM", gamma=1)


@pytest.mark.parametrize("name", ["BM", "MM", "IHT", "NM", "TL"])
def test_samplers_stand_alone(name):
    X, y = small_classes()
    sampler = make_sampler(name, random_state=1)
    assert is_sampler(sampler)
    resampled = sampler.fit_resample(X, y)
    assert set(resampled[1]) == set(y)
    for one, other in zip(resampled, make_sampler(name, random_state=1, n_jobs=2).fit_resample(X, y), strict=True):
        np.testing.assert_array_equal(one, other)


def test_jobs_reach_the_samplers_that_take_them():
    taking = [
        n for n in ("BM", "MM", "IHT", "NM", "TL") if make_sampler(n, n_jobs=2).get_params().get("sampler__n_jobs")
    ]
    assert taking == ["IHT", "NM", "TL"]


def test_mauc_does_without_imbalanced_learn():
    code = """
import sys
import mauc
mauc.mauc_score
assert "imblearn" not in sys.modules
sys.modules["imblearn"] = None
for module in ("experiments.baselines", "experiments.baselines.mwmote"):
    try:
        __import__(module)
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    messages = done.stdout.splitlines()
    assert len(messages) == 2
    for message in messages:
        assert message.startswith("experiments.baselines needs imbalanced-learn, which is not installed")
        assert "pip install 'mauc[bench]'" in message
