"""``mauc fit --engine dask``: the linear model on a table in parts; and what is said of tables that do not fit."""

import json

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")

import pandas as pd

from mauc._tables.data import stratified
from mauc._tables.errors import Failure
from mauc._tables.model_file import read_model

FIXED = ("--target", "species", "--alpha", 4, "--l2", 0.01, "--drop", "seen", "--no-report", "--json")


@pytest.fixture
def big(trees, tmp_path):
    """The trees in parts, one of them empty, of some groups of rows each."""
    (tmp_path / "big").mkdir()
    for k, rows in enumerate((slice(0, 90), slice(90, 90), slice(90, 160))):
        trees.iloc[rows].to_parquet(tmp_path / "big" / f"{k}.parquet", index=False, row_group_size=25)
    return trees


@pytest.fixture
def here():
    """Workers in this process."""
    pytest.importorskip("distributed", reason="needs the extra mauc[dask]")
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def test_all_parts_are_trained_on(run, here, big, tmp_path):
    result = run("fit", "big", *FIXED, "--engine", "dask", "--scheduler", here)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert "160 rows in 7 partitions" in result.stderr
    assert said["rows"] + sum(said["training_rows"].values()) == 160
    # The same features and rows in memory give the same coefficients.
    from mauc import MAUCClassifier

    model = read_model(tmp_path / "model.skops")
    _, codes = np.unique(big["species"], return_inverse=True)
    train = big.iloc[stratified(codes, 0.25, 0)[0]]
    assert said["training_rows"] == train["species"].value_counts().to_dict()
    X = model.classifier[:-1].transform(train[list(model.kinds)])
    expected = MAUCClassifier(alpha=4, l2=0.01).fit(np.asarray(X, dtype=np.float32), train["species"])
    np.testing.assert_allclose(model.classifier[-1].coef_, expected.coef_, atol=1e-4)
    assert run("predict", "model.skops", "big", "--out", "scores").exit_code == 0
    assert len(pd.concat([pd.read_parquet(p) for p in sorted((tmp_path / "scores").glob("*.parquet"))])) == 160


def test_what_does_not_fit_and_what_cannot_be_reached(run, fails, big, tmp_path, monkeypatch):
    assert "big stands for 3: join them, or train on all of them with --engine dask" in fails("fit", "big", *FIXED)
    monkeypatch.setattr("mauc._tables.parts.available_memory", lambda: 10_000.0)
    words = fails("fit", "trees.csv", *FIXED)
    assert "trees.csv does not fit in memory" in words
    assert "about 25 of its rows do" in words
    assert "got 'spark'" in fails("fit", "big", *FIXED, "--engine", "spark", code=2)
    words = fails("fit", "big", *FIXED, "--engine", "dask", "--group", "plot", code=2)
    assert "--engine dask does not support --group" in words
    words = fails("fit", "big", *FIXED, "--engine", "dask", "--surrogate", "hinge", code=2)
    assert "--engine dask trains the surrogates exponential and squared, got 'hinge'" in words
    pytest.importorskip("distributed", reason="needs the extra mauc[dask]")
    import dask

    from mauc._cli.fit_dask import connected

    with (
        pytest.raises(Failure, match=r"--scheduler tcp://127\.0\.0\.1:9 cannot be reached within 0\.5s"),
        connected("tcp://127.0.0.1:9", within="0.5s"),
    ):
        pass
    assert dask.config.get("scheduler", None) is None, "what comes after would ask for a client"
