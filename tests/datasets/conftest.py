"""No test reads the net or the user's own folders; the real files are found beside the checkout, or named."""

import os
from pathlib import Path

import pytest
from sklearn import datasets as sklearn_datasets

NAMED = os.environ.get("MAUC_DATA_HOME")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _off_line(monkeypatch, tmp_path):
    def refused(*args, **kwargs):
        raise AssertionError("a test tried to download")

    monkeypatch.setattr(sklearn_datasets, "fetch_openml", refused)
    monkeypatch.setattr(sklearn_datasets, "fetch_kddcup99", refused)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit_learn_data"))
    monkeypatch.delenv("MAUC_DATA_HOME", raising=False)


@pytest.fixture
def real_data():
    """The folder of the authors' files and of KDD Cup 99."""
    folder = Path(NAMED) if NAMED else ROOT.parent / "shared" / "data"
    if not (folder / "traditional" / "ecoli.npz").is_file():
        pytest.skip(f"no data files in {folder}; name their folder by MAUC_DATA_HOME")
    return folder
