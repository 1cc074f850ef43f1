"""No test reads the net or the user's own folders."""

import pytest
from sklearn import datasets as sklearn_datasets


@pytest.fixture(autouse=True)
def _off_line(monkeypatch, tmp_path):
    def refused(*args, **kwargs):
        raise AssertionError("a test tried to download")

    monkeypatch.setattr(sklearn_datasets, "fetch_kddcup99", refused)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "scikit_learn_data"))
    monkeypatch.delenv("MAUC_DATA_HOME", raising=False)
