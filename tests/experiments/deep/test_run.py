"""The deep experiments: data, fits, resuming, divergence, and the tables."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra mauc[torch]")
pytest.importorskip("lightning", reason="needs the extra mauc[torch]")
pytest.importorskip("imblearn", reason="needs the extra mauc[bench]")
pytest.importorskip("matplotlib", reason="needs the extra mauc[plot]")
pytest.importorskip("rich", reason="needs the extra mauc[cli]")

import torch
from scipy import sparse
from sklearn.utils import Bunch
from torch import nn

from mauc import mauc_score
from mauc.experiments.deep import data as deep_data
from mauc.experiments.deep import run as deep
from mauc.experiments.deep.data import DATASETS, PAPER_SETS, capped, load, parts_of, resolve
from mauc.experiments.deep.fit import Batches, Features, InOrder, Schedule, Shuffled, fit
from mauc.experiments.deep.methods import METHODS, PAPER, RECIPES, method_names, recipe_of
from mauc.experiments.deep.networks import network, ranking_scores
from mauc.experiments.deep.report import read_results, write_report
from mauc.experiments.deep.run import BAYES, cells, judge, run
from mauc.experiments.store import Store, run_cells
from mauc.nn import ClassCoverageBatchSampler
from mauc.plugin import balanced_posterior

PNG = b"\x89PNG"
CLOCK = ("fit_seconds", "search_seconds", "sample_seconds")


@pytest.fixture(autouse=True)
def _fresh():
    torch.set_num_threads(1)
    yield
    load.cache_clear()
    deep._prepared.cache_clear()


def small(method="CE", seed=0, quick=True):
    return run("simulated-small", None, None, method, seed, "cpu", quick)


def without_clock(result):
    return {key: value for key, value in result.items() if key not in CLOCK}


@pytest.fixture
def features(tmp_path):
    """Blobs of named classes, one of them with too few rows."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["ant", "bee", "cat", "dog"], [60, 25, 12, 4]))
    X = rng.normal(size=(len(y), 6)) + 2 * np.eye(4, 6)[np.unique(y, return_inverse=True)[1]]
    np.savez(tmp_path / "blobs.npz", X=X, y=y)
    return tmp_path / "blobs.npz"


def test_methods():
    names = method_names()
    assert len(set(names)) == len(names) == 19
    assert set(PAPER) < set(names), "every row of the paper's table"
    assert {"CE-balanced", "plug-in on CE", "squared, covered", "exponential, covered", "hinge, covered"} < set(names)
    assert {m.sampler for m in METHODS.values()} - {None} == {"BM", "MM", "IHT", "NM", "TL"}
    counts = np.array([50, 20, 0, 4])
    for method in METHODS.values():
        for choice in method.grid:
            options = {key: value for key, value in choice.items() if key != "learning_rate"}
            if method.surrogate:
                options = {"surrogate": method.surrogate, "alpha": 1.0}
            loss = method.loss(counts, 10, **options)
            assert loss(torch.zeros(3, 4), torch.tensor([0, 1, 3])).isfinite(), method.name


def test_the_papers_settings():
    cifar, user, large = (RECIPES[name] for name in PAPER_SETS)
    assert cifar.hidden == (1024, 256)
    assert cifar.ours["squared"] == (Schedule("adam", 0.0012, 5e-6, 0.97, 5, 1000, 50), 1.0)
    assert cifar.ours["exponential"] == (Schedule("adam", 0.001, 1e-6, 0.99, 5, 1000, 48), 4.0)
    assert cifar.ours["hinge"] == (Schedule("adam", 0.001, 5e-5, 0.99, 3, 1000, 50), 4.0)
    assert user.hidden == (128, 64)
    assert [alpha for _, alpha in user.ours.values()] == [0.5, 2.0, 2.0]
    assert replace(user.plain, epochs=0) == Schedule("sgd", 0.005, 1e-4, 0.97, 1, 32, 0)
    assert (large.plain.batch_size, large.plain.learning_rate) == (8196, 1e-5)
    quick = recipe_of("simulated-cifar100-imb", quick=True)
    assert {s.epochs for s, _ in quick.ours.values()} == {quick.plain.epochs} == {10}


def test_names(features):
    assert {resolve(name) for name in PAPER_SETS} == {f"simulated-{name}" for name in PAPER_SETS}
    assert resolve("kddcup99") == "kddcup99"
    named = resolve("cifar100-imb", features)
    assert named.startswith("cifar100-imb-")
    assert resolve("cifar100-imb", features) == named
    np.savez(features, X=np.zeros((3, 2)), y=[0, 1, 2])
    assert resolve("cifar100-imb", features) != named, "another file, other results"


def test_cells():
    every = cells("cifar100-imb", device="cpu")
    assert len(every) == 3 * (1 + len(METHODS)), "with the Bayes scores"
    assert len({cell.key for cell in every}) == len(every)
    assert every[0].key == ("full", "simulated-cifar100-imb", "cpu", BAYES, "00")
    assert [cell.key[-1] for cell in every] == sorted(cell.key[-1] for cell in every), "seed by seed"
    some = cells("kddcup99", methods=["CE"], seeds=2, device="cpu", quick=True)
    assert [cell.key for cell in some] == [("quick", "kddcup99", "cpu", "CE", seed) for seed in ("00", "01")]


def test_features_of_a_file(features):
    data = load("cifar100-imb", features=str(features))
    assert data.is_papers
    assert data.names == ("ant", "bee", "cat")
    assert data.counts.tolist() == [60, 25, 12]
    assert data.X.dtype == np.float32
    notes = " ".join(data.notes)
    assert "Classes with fewer than 10 rows are dropped: dog (4)." in notes
    assert "97 rows, 6 features, 3 classes of 12 to 60." in notes
    parts = parts_of(data, 0)
    assert np.sort(np.concatenate([parts.train, parts.validation, parts.test])).tolist() == list(range(97))
    np.testing.assert_allclose(parts.X[parts.train].mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(parts.X[parts.train].std(axis=0), 1.0, atol=1e-6)
    assert not np.array_equal(parts.test, parts_of(data, 1).test)
    result = run("cifar100-imb", None, str(features), "CE", 0, "cpu", True)
    assert result["test"] > 0.5
    assert {name for pair in result["rare_pairs"] for name in pair[:2]} == {"ant", "bee", "cat"}


def test_sparse_features(tmp_path):
    y = np.arange(60) % 3
    X = sparse.csr_matrix(np.eye(3, 9)[y] * 5.0)
    np.savez(tmp_path / "s.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    data = load("user-imb", features=str(tmp_path / "s.npz"))
    assert sparse.issparse(data.X)
    assert (data.X != X).nnz == 0
    assert parts_of(data, 0).X is data.X
    for method in ("CE", "BM", "exponential, covered"):
        assert run("user-imb", None, str(tmp_path / "s.npz"), method, 0, "cpu", True)["test"] > 0.6


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((3, 2))}, r"features must hold the arrays X and y, got f.npz with X: make it with"),
        (
            {"X": np.zeros(3), "y": [0, 1, 1]},
            r"must have one row of X and one class in y a sample, got X of shape \(3,\)",
        ),
        ({"X": np.zeros((3, 2)), "y": [0, 1]}, r"y of shape \(2,\): save \(N, d\) and \(N,\)"),
        ({"X": [["a"], ["b"]], "y": [0, 1]}, "features must have numbers in X, got <U1: save float32"),
        ({"X": [[np.nan], [1.0]], "y": [0, 1]}, "features must be finite, got NaN or infinity in X"),
        ({"X": np.zeros((12, 1)), "y": [0] * 12}, "the data must have two classes of 10 rows or more, got 1"),
        ({"X": np.array([[None]]), "y": [0]}, r"features must be an .npz file of numbers, got f.npz \(Object"),
    ],
)
def test_files_that_do_not_fit(tmp_path, arrays, message):
    file = save(tmp_path / "f.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load("cifar100-imb", features=str(file))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resolve("mnist"), "dataset must be one of 'cifar100-imb', 'user-imb', 'inaturalist', 'kddcup99'"),
        (lambda: resolve("cifar100-imb", "none.npz"), "features must be an existing .npz file, got none.npz: make it"),
        (lambda: resolve("kddcup99", "f.npz"), "dataset must be one of cifar100-imb, user-imb, inaturalist where feat"),
        (lambda: cells("kddcup99", methods=["SVM"]), "method must be one of 'CE', 'CE-balanced'"),
        (lambda: cells("kddcup99", device="tpu"), "device must be one of 'auto', 'cpu', 'cuda', got 'tpu'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device must be one that this machine has, got 'cuda': pass 'cpu' or 'auto'"):
        deep.check_device("cuda")
    assert deep.check_device("auto").type == "cpu"


def test_kddcup99(monkeypatch):
    """Its rare classes are dropped, its common ones cut in a quick run, and outliers clipped."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [400, 80, 12, 5])
    X = rng.normal(size=(len(y), 3)).astype(np.float32)
    X[0, 0], X[:, 2] = 1e6, 0.1
    names = ["smurf", "normal", "imap", "spy"]
    monkeypatch.setattr(deep_data.datasets, "load", lambda *a, **k: Bunch(X=X, y=y, target_names=names))
    monkeypatch.setattr(deep_data, "QUICK_CAP", 100)
    assert load("kddcup99").counts.tolist() == [400, 80, 12]
    data = load("kddcup99", quick=True)
    assert data.counts.tolist() == [100, 80, 12]
    assert "spy (5)" in " ".join(data.notes)
    assert not data.is_papers
    parts = parts_of(load("kddcup99"), 0)
    assert np.abs(parts.X).max() <= 10
    np.testing.assert_allclose(parts.X[:, 2], 0.0, atol=1e-6)


def test_simulated_sets_have_a_ceiling():
    data = load("simulated-small")
    result = small(BAYES)
    assert 0.5 < result["ceiling"] < 1
    assert result["test"] == pytest.approx(mauc_score(data.y, data.bayes_scores(data.X)), abs=0.1)
    assert "ceiling" not in small(BAYES, seed=1), "known once"
    assert set(DATASETS) > {"simulated-small", "simulated-inaturalist"}


def test_capped():
    y = np.repeat([0, 1, 2], [50, 5, 9])
    rows = capped(y, 9, 0)
    assert np.bincount(y[rows]).tolist() == [9, 5, 9]
    assert (np.diff(rows) > 0).all()
    assert deep._cap(np.array([1000, 100, 10]), 60) == 25


def test_ranking_scores_are_the_softmax_without_its_ties():
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    y = np.arange(50) % 4
    scores = ranking_scores(logits)
    p = logits.softmax(1).numpy()
    np.testing.assert_allclose(scores, np.log(p / (1 - p)), rtol=1e-9)
    assert mauc_score(y, scores) == mauc_score(y, p)
    prior = np.array([0.7, 0.2, 0.06, 0.04])
    s = balanced_posterior(p, prior)
    np.testing.assert_allclose(ranking_scores(logits, torch.from_numpy(np.log(prior))), np.log(s / (1 - s)), rtol=1e-9)
    sure = ranking_scores(torch.tensor([[40.0, 0.0], [50.0, 0.0]]))
    assert sure[1, 0] > sure[0, 0], "softmax is 1 for both"


def test_networks():
    one, other = network(5, (8, 4), 3, seed=1), network(5, (8, 4), 3, seed=1)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert [type(layer).__name__ for layer in one][:3] == ["Linear", "BatchNorm1d", "ReLU"]
    cosine = network(5, (8,), 3, seed=1, cosine_scale=30.0)
    assert cosine(torch.randn(6, 5)).abs().max() <= 30.0 + 1e-4


def test_batches():
    """Every row before any is seen again; as many batches as asked for; the same for one seed."""
    X, y = Features(np.arange(20.0, dtype=np.float32)[:, None], torch.device("cpu")), torch.arange(20)
    rows = np.arange(3, 14)
    batches = Batches(X, y, rows, Shuffled(len(rows), 4, seed=7), 2)
    epochs = [[batch[1].tolist() for batch in batches] for _ in range(3)]
    assert [len(epoch) for epoch in epochs] == [2, 2, 2]
    seen = [label for epoch in epochs for batch in epoch for label in batch]
    assert sorted(seen[:11]) == list(range(3, 14))
    assert sorted(seen[11:22]) == list(range(3, 14))
    again = Batches(X, y, rows, Shuffled(len(rows), 4, seed=7), 2)
    assert [[batch[1].tolist() for batch in again] for _ in range(3)] == epochs
    covered = Batches(X, y, rows, ClassCoverageBatchSampler(rows % 3, 6, min_per_class=2), 4)
    assert all((np.bincount(batch[1].numpy() % 3, minlength=3) >= 2).all() for batch in covered)


@pytest.mark.parametrize("name", method_names())
def test_every_method_runs(name):
    result = small(name)
    assert result["diverged"] is None
    assert 0.4 < result["test"] <= 1
    assert len(result["validation_scores"]) == result["epochs"] == 2
    assert result["validation"] == max(result["validation_scores"])
    assert result["epoch"] == 1 + int(np.argmax(result["validation_scores"]))
    assert len(result["shares"]) == len(result["rare_pairs"]) == 5


@pytest.mark.parametrize("name", ["CE", "MM", "LDAM", "DeepAUC", "hinge, covered"])
def test_the_same_seed_gives_the_same_numbers(name):
    state = torch.get_rng_state()
    first = without_clock(small(name))
    assert torch.equal(torch.get_rng_state(), state), "without touching the global generator"
    torch.manual_seed(99)
    deep._prepared.cache_clear()
    assert without_clock(small(name)) == first
    assert without_clock(small(name, seed=1)) != first
    torch.set_rng_state(state)


def test_learns():
    result = small("exponential, covered", quick=False)
    assert result["validation_scores"][-1] > result["validation_scores"][0]
    assert result["losses"][-1] < result["losses"][0]


class Breaks(nn.Module):
    """Cross-entropy that is not a number after so many calls."""

    def __init__(self, after):
        super().__init__()
        self.calls, self.after = 0, after

    def forward(self, logits, y):
        self.calls += 1
        value = nn.functional.cross_entropy(logits, y)
        return value * torch.nan if self.calls > self.after else value


def test_a_run_that_diverges_is_told(monkeypatch, tmp_path):
    """At once: no score. Later: the best epoch before, and the epoch in which it happened."""
    monkeypatch.setitem(METHODS, "CE", replace(METHODS["CE"], loss=lambda counts, epochs: Breaks(0)))
    monkeypatch.setitem(METHODS, "FOCAL", replace(METHODS["FOCAL"], loss=lambda counts, epochs: Breaks(7)))
    store = Store(tmp_path / "cells")
    run_cells(cells("simulated-small", methods=["CE", "FOCAL", "TL"], seeds=1, device="cpu", quick=True), store)
    results = read_results(store, "simulated-small", "cpu", quick=True)
    at_once, later = results["CE"][0], results["FOCAL"][0]
    assert (at_once["diverged"], at_once["test"], at_once["epoch"]) == (1, None, None)
    assert (later["diverged"], later["epoch"], len(later["validation_scores"])) == (2, 1, 1)
    assert later["test"] > 0.4
    page, figure = write_report(store, tmp_path, "simulated-small", "cpu", quick=True)
    text = page.read_text()
    assert "CE diverged (loss or logits not finite): seed 0 in epoch 1" in text
    overall = next(line for line in text.splitlines() if line.startswith("| CE |"))
    assert overall.startswith("| CE | – | – | – of 2 |")
    assert overall.endswith("| 1 of 1 |")
    assert figure.read_bytes().startswith(PNG)


def test_a_better_choice_of_the_grid_is_taken(monkeypatch):
    grid = ({"priors": "batch", "learning_rate": 1e-9}, {"priors": "batch", "learning_rate": 0.01})
    monkeypatch.setitem(METHODS, "DeepAUC", replace(METHODS["DeepAUC"], grid=grid))
    result = small("DeepAUC")
    assert result["params"] == grid[1]
    assert result["search_seconds"] > result["fit_seconds"]


def test_logits_that_are_not_finite_end_a_fit():
    place = torch.device("cpu")
    X = Features(np.full((8, 2), np.inf, dtype=np.float32), place)
    y = torch.arange(8) % 2
    train = Batches(X, y, np.arange(8), Shuffled(8, 4, 0), 2)
    result = fit(
        network(2, (), 2, seed=0),
        nn.CrossEntropyLoss(),
        Schedule("sgd", 0.1, 0.0, 1.0, 1, 4, 3),
        train,
        InOrder(X, np.arange(8)),
        y.numpy(),
    )
    assert (result.diverged, result.scores, result.best_epoch) == (1, [], None)


def test_resumes(tmp_path, monkeypatch):
    """What is there is not computed again; what a kill left undone is."""
    store = Store(tmp_path / "cells")
    some = cells("simulated-small", methods=["CE", "squared"], seeds=2, device="cpu", quick=True)
    run_cells(some[:2], store)
    stamps = {path: path.stat().st_mtime_ns for path in store.folder.rglob("*.json")}
    assert len(stamps) == 2
    assert run_cells(some, store) == 4
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}
    monkeypatch.setattr(deep, "run", None)
    assert run_cells(some, store) == 0
    whole = Store(tmp_path / "other")
    run_cells(some, whole)
    assert all(without_clock(store.read(c.key)) == without_clock(whole.read(c.key)) for c in some)


def test_samplers_start_from_fewer_rows(monkeypatch):
    monkeypatch.setattr(deep, "SAMPLER_ROWS", 400)
    result = small("TL")
    assert result["train_rows"] <= 400
    assert "BM, MM, IHT, NM and TL start from at most" in result["notes"][-1]
    assert len(small("CE")["notes"]) == 1


def test_judge():
    rng = np.random.default_rng(0)
    counts = np.array([500, 300, 40, 20, 10, 5, 5])
    y = np.repeat(np.arange(7), [50, 30, 4, 2, 1, 1, 0])
    scores = rng.random((len(y), 7))
    result = judge(y, scores, counts, "abcdefg")
    assert result["test"] == mauc_score(y, scores, labels=np.arange(7), absent="ignore")
    assert [pair[:2] for pair in result["rare_pairs"]] == [["f", "g"], ["e", "f"], ["e", "g"], ["d", "f"], ["d", "g"]]
    assert [pair[2] is None for pair in result["rare_pairs"]] == [True, False, True, False, True], (
        "g is not in the test"
    )
    d, f = y == 3, y == 5
    auc = np.mean(scores[d, 3][:, None] > scores[f, 3]), np.mean(scores[f, 5][:, None] > scores[d, 5])
    assert result["rare_pairs"][3][2] == pytest.approx(np.mean(auc))
    assert len(result["shares"]) == 5


def test_report(tmp_path, features):
    store = Store(tmp_path / "cells")
    names = ["CE", "LDAM", "DeepAUC", "exponential"]
    every = cells("cifar100-imb", features=features, methods=names, seeds=2, device="cpu", quick=True)
    run_cells(every, store)
    name = every[0].key[1]
    files = write_report(store, tmp_path, name, "cpu", quick=True)
    assert [file.name for file in files] == [f"deep-{name}-quick.md", f"deep-{name}-quick.png"]
    text = files[0].read_text()
    head = next(line for line in text.splitlines() if line.startswith("| method | test"))
    assert head.endswith("| diverged | paper |")
    assert any(line.startswith("| exponential |") and line.endswith("| 62.08 |") for line in text.splitlines())
    tests = 100 * np.array([store.read(c.key)["test"] for c in every if c.key[3] == "CE"])
    assert f"{tests.mean():.2f} ± {tests.std():.2f}" in text
    for part in ("(Table 2)", "(Table 3)", "(Table 4)", "bee, cat", "LDAM has a last layer of cosines", "over 2 seeds"):
        assert part in text
    assert write_report(store, tmp_path, "kddcup99", "cpu") == []


def test_simulated_reports_have_the_ceiling_and_not_the_papers_numbers(tmp_path):
    store = Store(tmp_path / "cells")
    run_cells(cells("simulated-small", methods=["CE"], seeds=1, device="cpu", quick=True), store)
    page, _ = write_report(store, tmp_path, "simulated-small", "cpu", quick=True)
    text = page.read_text()
    assert "the Bayes MAUC" in text
    assert f"| {BAYES} |" in text
    assert "| paper |" not in text
