"""A search: chosen on validation alone, resumed, stopped in time, told on its pages; computed by torch alone."""

import numpy as np
import pytest

from experiments.deep import search as deep_search
from experiments.deep.report import REFERENCE, paired
from experiments.deep.results import read_results, search_size
from experiments.deep.search import searched_methods
from experiments.deep.summary import write_all
from experiments.store import Store, run_cells

OURS = "adjusted CE + exponential, sigmoid"


def search(methods=("CE",), settings=3, tuning_seeds=2, seeds=4, dataset="simulated-small"):
    options = {"settings": settings, "tuning_seeds": tuning_seeds, "seeds": seeds, "device": "cpu", "quick": True}
    return deep_search.search(dataset, None, None, list(methods), **options)


def invented(store, scores, prefix=("tuned", "ham10000-part", "cpu")):
    """Results of ``{method: {setting: [(validation, test) of each seed]}}``."""
    for method, settings in scores.items():
        for setting, runs in settings.items():
            for seed, (validation, test) in enumerate(runs):
                result = {
                    "validation": validation,
                    "test": test,
                    "epoch": 1,
                    "epochs": 2,
                    "diverged": None,
                    "params": {"learning_rate": float(setting)},
                    "fit_seconds": 0.1,
                    "sample_seconds": 0.0,
                    "train_rows": 8,
                    "machine": "Measured here.",
                    "notes": ["Invented."],
                    "rare_pairs": [["a", "b", 0.75, 0.9, 0.6]],
                    "shares": [0.5] * 5,
                    "large": {"test": test, "rare_pairs": [["a", "b", 0.65, 0.8, 0.5]], "shares": [0.5] * 5},
                }
                store.write((*prefix, method, setting, f"{seed:02d}"), result)


def test_validation_chooses(tmp_path):
    """The mean over the seeds that have all settings; the test part, here the other way round, has no say."""
    store = Store(tmp_path / "cells")
    invented(store, {"CE": {"1": [(0.9, 0.1), (0.5, 0.1)], "2": [(0.8, 0.2), (0.7, 0.2), (None, 0.2)]}})
    invented(store, {"FOCAL": {"1": [(0.9, 0.9), (0.9, 0.9)]}})
    results = read_results(store, "ham10000-part", "cpu", tuned=True)
    assert list(results) == ["CE"], "the other's search is not complete"
    assert [run["test"] for run in results["CE"]] == [0.2, 0.2, 0.2]
    assert search_size(store, "ham10000-part", "cpu") == (2, 2)


def test_equal_settings_are_those_that_were_judged(tmp_path):
    store = Store(tmp_path / "cells")
    invented(store, {"CE": {"1": [(1.0, 0.1)], "2": [(1.0, 0.2), (1.0, 0.3)]}})
    assert len(read_results(store, "ham10000-part", "cpu", tuned=True)["CE"]) == 2


def test_a_search_runs_and_resumes(tmp_path):
    store, (first, others) = Store(tmp_path / "cells"), search(["CE", OURS], settings=2, tuning_seeds=1, seeds=2)
    assert len({cell.key for cell in first}) == len(first) == 4
    assert others(store) == [], "nothing is chosen yet"
    run_cells(first[:3], store)
    assert {cell.key[3] for cell in others(store)} == {"CE"}
    assert run_cells(first, store) == 1
    then = others(store)
    assert [(cell.key[3], cell.key[5]) for cell in then] == [("CE", "01"), (OURS, "01")]
    run_cells(then, store)
    results = read_results(store, "simulated-small", "cpu", quick=True, tuned=True)
    for method, runs in results.items():
        tried = [store.read(cell.key) for cell in first if cell.key[3] == method]
        best = max(tried, key=lambda run: run["validation"])
        assert runs[0] == best
        assert [run["params"] for run in runs] == [best["params"]] * 2
    assert "losses" not in results["CE"][0], "small files"


def test_what_is_searched_if_none_is_named():
    images, table = searched_methods("ham10000-part"), searched_methods("kddcup99")
    assert {"CE", REFERENCE, OURS, "LDAM", "LDAM-DRW", "DeepAUC"} < set(images) < set(table)
    assert not {"BM", "MM", "IHT", "NM", "TL"} & set(table)
    assert f"{OURS}, covered" in table
    with pytest.raises(ValueError, match="tuning_seeds must be a whole number from 1 to 2, got 3"):
        search(tuning_seeds=3, seeds=2)


@pytest.mark.usefixtures("undrawn")
def test_pages(tmp_path):
    """One for each set and one over all, on whichever device they were computed; ours is .01 above on every seed."""
    store = Store(tmp_path / "cells")
    rng = np.random.default_rng(0)
    for name, device in (("cifar100-imb", "cuda"), ("ham10000-part", "cpu"), ("caltech101", "cuda")):
        level = rng.uniform(0.8, 0.9, 10)
        scores = {
            "CE": level - 0.02,
            REFERENCE: level,
            OURS: level + 0.01 + rng.uniform(0, 4e-5, 10),
        }
        made = {m: {"1": [(0.5, x) for x in v], "2": [(0.4, 0.1)] * 2} for m, v in scores.items()}
        invented(store, made, ("tuned", name, device))
    files = {file.name: file for file in write_all(store, tmp_path)}
    page, summary = files["deep-cifar100-imb-tuned.md"].read_text(), files["deep-summary-tuned.md"].read_text()
    assert "Each method has 2 settings. The highest mean MAUC on the validation parts of 2 of the seeds" in page
    assert f"| {OURS} | +1.00 | 10 of 10 | 0.004 | 0.000 |" in page
    assert f"| {OURS} | +1.00 | 10 of 10 | 0.004 |\n" in page, "on the large test part"
    ce = "| CE | 90.00 ± 0.00 | 60.00 ± 0.00 | 48.82 | 53.28 | 50.74 | 58.44 | 56.17 |"
    assert ce in page, "each direction, and the paper's"
    assert "| CE | 80.00 ± 0.00 | 50.00 ± 0.00 |" in page, "on the large test part"
    assert "| paper |" not in files["deep-ham10000-part-tuned.md"].read_text()
    ranks = [line.split("|")[-3].strip() for line in summary.splitlines() if line.startswith("| ")][1:4]
    assert ranks == ["1.0", "2.0", "3.0"]
    assert summary.count("+1.00 (10 of 10; 0.004, 0.000)") == 3
    results = read_results(store, "caltech101", "cuda", tuned=True)
    assert paired({m: runs[:2] for m, runs in results.items()}, "cifar100-imb") == {}, "too few seeds to test"
