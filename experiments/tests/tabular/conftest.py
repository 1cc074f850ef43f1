"""No set or split that another test made."""

import pytest


@pytest.fixture(autouse=True)
def _fresh():
    from experiments.tabular import data, run

    data.load_set.cache_clear()
    run.task_of.cache_clear()
