"""Small tables that are fitted: far offsets lose no digit, wide tables load, and a home that cannot be written is left.

Members are few and cheap: what is looked for lies in the columns, the model file and the command, not in the models.
"""

import os
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from mauc import MAUCStackingClassifier, fit_table, mauc_score
from mauc._tables.model_file import read_model
from mauc.ensemble import TableColumns

OFFSETS = (1e9, -4e8, 1.7e9, 5e6, -1e12)


def run(rng: np.random.Generator) -> None:
    """One table of one kind."""
    kind = rng.choice([_offset, _wide, _no_home], p=[0.6, 0.3, 0.1])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind(rng, Path(folder))


def _drawn(rng: np.random.Generator, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw numbers, of which the first column separates the classes, and the classes."""
    n_classes = int(rng.integers(2, 5))
    y = rng.permutation(np.arange(int(rng.integers(15, 40)) * n_classes) % n_classes)
    X = rng.normal(size=(len(y), width))
    X[:, 0] = rng.choice([-2.0, 2.0]) * y + 0.3 * X[:, 0]
    return X, y


def _offset(rng, folder):
    """Numbers counted from far away rank as those counted from near."""
    X, y = _drawn(rng, int(rng.integers(1, 4)))
    far = X + rng.choice(OFFSETS, X.shape[1])
    members = [("lr", LogisticRegression()), ("et", ExtraTreesClassifier(20, random_state=0))]
    stack = MAUCStackingClassifier(members, cv=3, n_jobs=1, columns=TableColumns())
    near_score, far_score = (mauc_score(y, stack.fit(x, y).predict_proba(x)) for x in (X, far))
    assert far_score > near_score - 0.02, f"{far_score:.3f} with an offset, {near_score:.3f} without"
    near_score, far_score = (_fitted(pd.DataFrame(x).add_prefix("x"), y).leaderboard()["mauc"][0] for x in (X, far))
    assert far_score > near_score - 0.02, f"table model: {far_score:.3f} with an offset, {near_score:.3f} without"


def _wide(rng, folder):
    """A model of many columns is written, small, and read, and scores the same."""
    X, y = _drawn(rng, int(rng.choice([50, 100, 300], p=[0.5, 0.4, 0.1])))
    table = pd.DataFrame(X * 10.0 ** rng.integers(-6, 7, X.shape[1])).add_prefix("c")
    if rng.random() < 0.5:
        table["text"] = rng.choice(["oak", "elm", "yew"], len(y))
    gaps = rng.random(table.shape) < 0.02
    gaps[0] = False
    fitted = _fitted(table.mask(gaps), y)
    path = fitted.save(folder / "wide.skops")
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("schema.json").file_size
    assert size < 1e6, f"{X.shape[1]} columns make a model of {size} bytes"
    again = np.asarray(read_model(path).scores(table))
    np.testing.assert_array_equal(again, fitted.decision_function(table), err_msg="the file scores otherwise")


def _no_home(rng, folder):
    """``mauc fit`` and ``mauc predict`` where a home cannot be made, is not set, or is read-only."""
    X, y = _drawn(rng, 2)
    pd.DataFrame(X, columns=["a", "b"]).assign(kind=y).to_csv(folder / "t.csv", index=False)
    (folder / "home").mkdir(mode=0o500)
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "SKB_DATA_DIRECTORY")}
    # The first cannot be made, by root neither.
    home = [{"HOME": str(folder / "t.csv" / "home")}, {}, {"HOME": str(folder / "home")}][int(rng.integers(3))]
    for command in (
        "fit t.csv --target kind --time-limit 9 --no-importance --no-report --quiet",
        "predict model.skops t.csv --quiet",
    ):
        call = [sys.executable, "-m", "mauc", *command.split()]
        ended = subprocess.run(call, cwd=folder, env={**environment, **home}, capture_output=True, text=True)
        assert ended.returncode == 0, f"{command} with {home}: {ended.stderr}"
    assert list((folder / "home").iterdir()) == [], "something is written to the home"
    assert len(pd.read_csv(folder / "scores.csv")) == len(y), "rows are lost"


def _fitted(table: pd.DataFrame, y: np.ndarray):
    names = np.array(["ash", "elm", "oak", "yew"])[y]
    # A limit below 10 seconds trains one small forest in this process.
    return fit_table(table.assign(kind=names), "kind", time_limit=9.0, importance=False)
