"""One thread per process: the suite runs two processes on two cores."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra mauc[torch]")

torch.set_num_threads(1)

from mauc.nn._engine import small  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def no_pairs():
    """The small batches of these tests go the ways of large ones, unless they ask for all pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "MOST_PAIRED", 0)
        yield


@pytest.fixture
def all_pairs(monkeypatch):
    """All pairs of a small batch, as they are taken without this file."""
    monkeypatch.setattr(small, "MOST_PAIRED", 128)
