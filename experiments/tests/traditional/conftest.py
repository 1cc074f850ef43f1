"""No table that another test read."""

import pytest


@pytest.fixture(autouse=True)
def _fresh():
    from experiments.traditional import run

    run._load.cache_clear()
