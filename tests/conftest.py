"""Hypothesis: the same examples on every run and every machine; new ones each time under ``make fuzz``.

No deadline: a slow machine is not a bug. Data files are those of the folder that ``MAUC_DATA_HOME`` names.
"""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from strategies import EXPLORED, REPEATED

from mauc._lazy import spare_home
from mauc.ensemble import default_estimators
from mauc.ensemble.fitting import InProcess
from mauc.ensemble.planner import Member, StackPlan

spare_home()

# Campaigns, not tests: they have no doctests, and need every extra to be imported.
collect_ignore = ["fuzz", "kills.py"]

settings.register_profile(
    "mauc",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=REPEATED,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "explore",
    parent=settings.get_profile("mauc"),
    derandomize=False,
    max_examples=EXPLORED,
    print_blob=True,
)
settings.load_profile(os.environ.get("MAUC_HYPOTHESIS", "mauc"))

# Read now: the tests of the loader clear it, for they test its own default.
DATA_HOME = os.environ.get("MAUC_DATA_HOME")


@pytest.fixture(scope="session")
def real_data():
    """The folder of the authors' files and of KDD Cup 99."""
    if not DATA_HOME or not Path(DATA_HOME, "traditional", "ecoli.npz").is_file():
        pytest.skip("no data files: name their folder by MAUC_DATA_HOME")
    return Path(DATA_HOME)


@pytest.fixture(scope="session")
def use_small_stack():
    """Return a function by which ``mauc fit`` trains a stack of two quick models in this process."""
    pytest.importorskip("typer", reason="needs the extra mauc[cli]")
    pytest.importorskip("pandas", reason="needs the extra mauc[cli]")

    def planned(size, effort="normal", seed=0, order=None, tree_columns=None):
        models = default_estimators(seed, 3)[:2]
        return StackPlan(tuple(Member(name, model, size.rows) for name, model in models), 3)

    def use(patch):
        import mauc._tables.fit  # noqa: F401  # a module first imported with the replacement would keep it

        patch.setattr("mauc.ensemble.classifier.plan_members", planned)
        patch.setattr("mauc.ensemble.workers.Workers", lambda n_workers=None: nullcontext(InProcess()))

    return use


@pytest.fixture
def small_stack(monkeypatch, use_small_stack):
    """``mauc fit`` with the small stack."""
    use_small_stack(monkeypatch)
