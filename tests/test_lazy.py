"""The age of a process, from which the time limit of a command counts."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import time; time.sleep(0.3); from mauc._lazy import process_age; print(process_age(), time.process_time())"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process started")
def test_the_age_of_a_process_counts_its_waiting():
    told = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    age, used = map(float, told.stdout.split())
    assert age >= 0.28, "a clock tick is a hundredth of a second"
    assert age >= used - 0.02
