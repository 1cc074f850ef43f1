"""The classifier: scikit-learn's checks, what it learns, and a run that is killed and resumed."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from pair_loss import PairLoss
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from mauc import mauc_score
from mauc.nn import MAUCMLPClassifier
from mauc.nn._training import hold_out
from mauc.surrogates import QHinge

SMALL = {"hidden_layer_sizes": (16,), "batch_size": 64, "learning_rate": 0.01, "accelerator": "cpu"}
REPEATS = "minibatches of repeated samples are not those of weighted samples, and batch normalisation is not weighted"


def expected_failures(estimator):
    checks = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
    return dict.fromkeys(checks, REPEATS)


@parametrize_with_checks(
    [MAUCMLPClassifier(**(SMALL | {"learning_rate": 0.05}), max_epochs=8, alpha=1.0)],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        400, 12, n_informative=6, n_classes=4, weights=[0.6, 0.25, 0.1], class_sep=1.5, random_state=0
    )
    return X, np.array(["ant", "bee", "cat", "dog"])[y]


def model(**parameters):
    return MAUCMLPClassifier(**{**SMALL, "max_epochs": 8, "random_state": 0, **parameters})


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch, capfd):
    """Nothing is printed, and nothing is left in the working directory."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    state = torch.get_rng_state()
    yield
    assert list(here.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"surrogate": "squared", "alpha": 1.0},
        {"surrogate": "hinge", "optimizer": "sgd", "learning_rate": 0.5, "momentum": 0.9},
        {"surrogate": QHinge(q=3.0), "pairs": "ova"},
        {"loss": nn.CrossEntropyLoss()},
        {"loss": PairLoss("logistic"), "hidden_layer_sizes": (8, 8), "lr_decay": 0.5, "lr_decay_every": 2},
        {"hidden_layer_sizes": ()},
    ],
    ids=str,
)
def test_learns_with_any_loss(problem, parameters):
    X, y = problem
    fitted = model(**parameters).fit(X, y)
    assert fitted.score(X, y) > 0.8
    assert fitted.loss_curve_[-1] < fitted.loss_curve_[0]
    assert (fitted.n_iter_, len(fitted.loss_curve_), fitted.validation_scores_, fitted.best_epoch_) == (8, 8, [], None)


def test_the_log_loss_is_shifted_by_the_class_shares_of_the_batches(problem, monkeypatch):
    """Each batch of 16 has a sample of the class of four, which has 1 % of the rows."""
    losses = []
    monkeypatch.setattr("mauc.nn.classifier.train", lambda network, loss, *rest: losses.append(loss) or 1 / 0)
    X, y = np.zeros((400, 2)), np.repeat([0, 1, 2], [300, 96, 4])
    weight = np.where(y == 1, 2.0, 1.0)
    for given in (None, 1e-4 * weight):
        with pytest.raises(ZeroDivisionError):
            model(batch_size=16, log_loss=1.0).fit(X, y, given)
    n_batches = 27
    expected = np.array([300.0, 96.0, n_batches])
    np.testing.assert_allclose(losses[0].class_counts, expected)
    np.testing.assert_allclose(losses[1].class_counts, expected * [1.0, 2.0, 1.0] / weight.mean())
    with pytest.raises(ZeroDivisionError):
        model(batch_size=16, log_loss=0.0).fit(X, y)
    assert losses[2].class_counts is None


def test_outputs(problem):
    X, y = problem
    fitted = model().fit(X, y)
    logits, scores = fitted.decision_function(X), fitted.predict_proba(X)
    assert logits.shape == scores.shape == (400, 4)
    np.testing.assert_allclose(scores, torch.tensor(logits).softmax(1), rtol=1e-5)
    assert (fitted.predict(X) == fitted.classes_[scores.argmax(1)]).all()
    assert fitted.score(X, y) == mauc_score(y, scores)
    binary = model().fit(X, y == "ant")
    assert binary.decision_function(X).shape == (400,)
    assert ((binary.decision_function(X) > 0) == binary.predict(X)).all()


def test_the_network_of_the_paper(problem):
    X, y = problem
    fitted = model(hidden_layer_sizes=(32, 8), max_epochs=1).fit(X, y)
    kinds = [type(layer).__name__ for layer in fitted.model_]
    assert kinds == ["Linear", "BatchNorm1d", "ReLU", "Linear", "BatchNorm1d", "ReLU", "Linear"]
    assert [layer.out_features for layer in fitted.model_ if isinstance(layer, nn.Linear)] == [32, 8, 4]


def test_random_state_fixes_the_result(problem):
    X, y = problem
    one = model(early_stopping=True).fit(X, y)
    two = clone(one).fit(X, y)
    other = clone(one).set_params(random_state=1).fit(X, y)
    assert (one.predict_proba(X) == two.predict_proba(X)).all()
    assert not np.allclose(one.predict_proba(X), other.predict_proba(X))


def test_sparse_rows_are_made_dense_by_the_batch(problem, monkeypatch):
    X, y = problem
    X = np.where(np.abs(X) > 1, X, 0)
    largest = []
    for kind in (sparse.csr_matrix, sparse.csr_array):
        original = kind.toarray
        monkeypatch.setattr(
            kind, "toarray", lambda self, *a, o=original, **k: largest.append(self.shape[0]) or o(self, *a, **k)
        )
    dense = model().fit(X, y)
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.coo_matrix):
        fitted = model().fit(kind(X), y)
        np.testing.assert_array_equal(fitted.predict_proba(X), dense.predict_proba(X))
        assert max(largest) <= 64
        np.testing.assert_allclose(fitted.predict_proba(kind(X)), dense.predict_proba(X), atol=1e-6)
        largest.clear()


def test_sample_weights(problem):
    X, y = problem
    weight = np.random.default_rng(0).integers(0, 3, 400).astype(float)
    plain = model().fit(X, y).predict_proba(X)
    for loss in (None, nn.CrossEntropyLoss()):
        ones = model(loss=loss).fit(X, y, np.ones(400)).predict_proba(X)
        # Weighted sums go another way to the same number, and training makes the last digit a larger one.
        np.testing.assert_allclose(ones, model(loss=loss).fit(X, y).predict_proba(X), atol=5e-3)
        weighted = model(loss=loss).fit(X, y, weight)
        kept = weight > 0
        np.testing.assert_array_equal(
            weighted.predict_proba(X), model(loss=loss).fit(X[kept], y[kept], weight[kept]).predict_proba(X)
        )
        assert not np.allclose(weighted.predict_proba(X), plain, atol=2e-2)


def test_early_stopping_keeps_the_best_epoch(problem):
    X, y = problem
    fitted = model(early_stopping=True, patience=3, max_epochs=60, learning_rate=0.05, random_state=0).fit(X, y)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    codes = np.unique(y, return_inverse=True)[1]
    _, held = hold_out(codes, np.arange(len(y)), 0.1, np.random.default_rng(seed))
    scores = fitted.validation_scores_
    assert fitted.n_iter_ < 60
    assert fitted.n_iter_ == fitted.best_epoch_ + 3
    assert fitted.best_epoch_ == int(np.argmax(scores)) + 1
    assert fitted.score(X[held], y[held]) == pytest.approx(fitted.best_validation_score_, abs=1e-6)
    assert fitted.best_validation_score_ == max(scores)


def test_hold_out_leaves_rare_classes_in_training():
    codes = np.repeat(np.arange(5), [100, 41, 4, 3, 1])
    rows = np.arange(5, len(codes))
    train, held = hold_out(codes, rows, 0.1, np.random.default_rng(0))
    assert sorted([*train, *held]) == rows.tolist()
    assert np.bincount(codes[held], minlength=5).tolist() == [10, 4, 1, 0, 0]
    other = hold_out(codes, rows, 0.1, np.random.default_rng(1))[1]
    assert held.tolist() != other.tolist()
    half = hold_out(codes, rows, 0.99, np.random.default_rng(0))[0]
    assert np.bincount(codes[half]).tolist() == [1, 1, 1, 3, 1]


def test_pickle(problem):
    X, y = problem
    fitted = model(loss=nn.CrossEntropyLoss()).fit(X, y)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_progress_is_printed(problem, capfd):
    X, y = problem
    model(max_epochs=2, verbose=1, early_stopping=True).fit(X, y)
    out, err = capfd.readouterr()
    assert "Epoch 1" in out + err
    assert "val_mauc" in out + err


def weights(fitted):
    return [value.tolist() for value in fitted.model_.state_dict().values()]


@pytest.mark.parametrize("early_stopping", [False, True])
def test_resuming_gives_what_no_interruption_gives(problem, tmp_path, early_stopping):
    X, y = problem
    options = {"early_stopping": early_stopping, "patience": 20, "lr_decay": 0.5, "lr_decay_every": 2}
    straight = model(max_epochs=7, **options).fit(X, y)
    folder = tmp_path / "run"
    half = model(max_epochs=3, checkpoint_dir=folder, **options).fit(X, y)
    assert [path.name for path in folder.iterdir()] == ["last.ckpt"]
    resumed = model(max_epochs=7, checkpoint_dir=folder, resume=True, **options).fit(X, y)
    assert half.loss_curve_ == straight.loss_curve_[:3]
    assert resumed.loss_curve_ == straight.loss_curve_
    assert resumed.validation_scores_ == straight.validation_scores_
    assert weights(resumed) == weights(straight)
    # A finished run is read, not trained again.
    again = model(max_epochs=7, checkpoint_dir=folder, resume=True, **options).fit(X, y)
    assert again.loss_curve_ == straight.loss_curve_
    assert weights(again) == weights(straight)


def test_a_run_that_stopped_early_is_not_resumed(problem, tmp_path):
    X, y = problem
    options = {"early_stopping": True, "patience": 2, "max_epochs": 60, "learning_rate": 0.05}
    one = model(checkpoint_dir=tmp_path / "run", **options).fit(X, y)
    two = model(checkpoint_dir=tmp_path / "run", resume=True, **options).fit(X, y)
    assert one.n_iter_ == two.n_iter_ < 60
    assert weights(one) == weights(two)


def test_resuming_without_random_state_keeps_the_seed_of_the_run(problem, tmp_path):
    X, y = problem
    options = {"checkpoint_dir": tmp_path / "run", "random_state": None, "early_stopping": True, "max_epochs": 3}
    one = model(**options).fit(X, y)
    two = model(**options, resume=True).fit(X, y)
    assert weights(one) == weights(two)


def test_an_empty_folder_is_a_fresh_start_and_a_new_run_overwrites(problem, tmp_path):
    X, y = problem
    folder = tmp_path / "run"
    one = model(max_epochs=2, checkpoint_dir=folder, resume=True).fit(X, y)
    two = model(max_epochs=2, checkpoint_dir=folder, random_state=5).fit(X, y)
    assert weights(one) != weights(two)
    assert [path.name for path in folder.iterdir()] == ["last.ckpt"]


KILLED = """
import numpy as np
from mauc.nn import MAUCMLPClassifier
data = np.load({data!r})
MAUCMLPClassifier((16,), batch_size=64, learning_rate=0.01, accelerator="cpu", max_epochs=100_000, random_state=0,
                  checkpoint_dir={folder!r}).fit(data["X"], data["y"])
"""


def test_resume_after_a_kill(problem, tmp_path):
    X, y = problem
    folder = tmp_path / "run"
    np.savez(tmp_path / "data.npz", X=X, y=y)
    code = KILLED.format(data=str(tmp_path / "data.npz"), folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"})
    while process.poll() is None and not (folder / "last.ckpt").exists():
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    epochs = len(torch.load(folder / "last.ckpt")["losses"])
    resumed = model(max_epochs=epochs + 2, checkpoint_dir=folder, resume=True).fit(X, y)
    straight = model(max_epochs=epochs + 2).fit(X, y)
    assert resumed.n_iter_ == epochs + 2
    np.testing.assert_allclose(resumed.predict_proba(X), straight.predict_proba(X), atol=1e-6)


@pytest.mark.gpu
def test_on_a_gpu(problem, tmp_path):
    X, y = problem
    fitted = model(accelerator="auto", early_stopping=True, checkpoint_dir=tmp_path / "run").fit(X, y)
    assert {value.device.type for value in fitted.model_.state_dict().values()} == {"cpu"}
    on_cpu = clone(fitted).set_params(accelerator="cpu", checkpoint_dir=None).fit(X, y)
    # Rounding differs between the devices, and training makes the probabilities drift apart; the ranking stays.
    assert fitted.score(X, y) == pytest.approx(on_cpu.score(X, y), abs=0.02)
    resumed = clone(fitted).set_params(resume=True, max_epochs=10).fit(X, y)
    assert resumed.n_iter_ == 10


class NoWeights(nn.Module):
    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits, target)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "focal"}, "loss must be a torch.nn.Module, got 'focal': pass a module, such as"),
        ({"log_loss": -1}, "log_loss must be a finite number of at least 0, got -1: 0 is the pair loss alone"),
        ({"optimizer": "lamb"}, "optimizer must be one of 'adam', 'sgd', got 'lamb'"),
        ({"accelerator": "abacus"}, "accelerator must be one of 'auto', 'cpu'"),
        ({"hidden_layer_sizes": (8, 0)}, "each of hidden_layer_sizes must be a whole number of at least 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0, got 0.0"),
        ({"lr_decay": 1.5}, "lr_decay must be a finite number above 0 and at most 1, got 1.5: 1 keeps the rate"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2, got 1"),
        ({"resume": True}, "checkpoint_dir must be a folder where resume=True, got None: pass the checkpoint_dir"),
        ({"min_per_class": 50}, "labels must hold at least min_per_class=50 of every class"),
        ({"min_per_class": 5, "batch_size": 9}, "must have room for two classes of min_per_class=5 samples, got 9"),
    ],
)
def test_bad_parameters(problem, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model(**parameters).fit(*problem)


def test_bad_data(problem, tmp_path):
    X, y = problem
    with pytest.raises(ValueError, match="y must have two classes of 4 samples or more for the hold-out of early_stop"):
        model(early_stopping=True).fit(X[:9], [0, 0, 0, 0, 0, 1, 1, 2, 2])
    with pytest.raises(ValueError, match="loss must take sample weights where sample_weight is passed, got NoWeights"):
        model(loss=NoWeights()).fit(X, y, np.ones(400))
    with pytest.raises(ValueError, match=r"learning_rate must let the loss stay finite, got a loss of (nan|inf) in ep"):
        model(surrogate="squared", optimizer="sgd", learning_rate=1e30, batch_norm=False).fit(1e6 * X, y)
    model(max_epochs=1, checkpoint_dir=tmp_path / "run").fit(X, y)
    torch.save({"state_dict": {}}, tmp_path / "last.ckpt")
    with pytest.raises(ValueError, match=r"checkpoint_dir must hold a run with .*, got None: pass an empty folder"):
        model(checkpoint_dir=tmp_path, resume=True).fit(X, y)
    with pytest.raises(ValueError, match=r"checkpoint_dir must hold a run with {.*, got {'n_samples': 400"):
        model(max_epochs=2, checkpoint_dir=tmp_path / "run", resume=True).fit(X[:300], y[:300])
