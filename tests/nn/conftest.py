"""One thread per process: the suite runs two processes on two cores."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra mauc[torch]")

torch.set_num_threads(1)
