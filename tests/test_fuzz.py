"""The first cases of the campaign, the same on every run; ``make fuzz`` explores."""

import importlib

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("part", "cases"),
    [
        ("metric", 150),
        ("risks", 60),
        ("torch_parts", 40),
        ("estimators", 8),
        ("labels", 40),
        ("tables", 15),
        ("parts", 8),
        ("cells", 40),
        ("columns", 20),
        ("forgeries", 25),
        pytest.param("fits", 6, marks=pytest.mark.slow),
    ],
)
def test_first_cases(part, cases):
    if part == "torch_parts":
        pytest.importorskip("torch", reason="needs the extra mauc[torch]")
    if part in ("labels", "tables", "parts", "cells", "columns", "fits", "forgeries"):
        for library in ("skrub", "skops", "openpyxl", "pyarrow"):
            pytest.importorskip(library, reason="needs the extras cli, excel and parquet")
    run = importlib.import_module(f"fuzz.{part}").run
    for case in range(cases):
        run(np.random.default_rng([0, *part.encode(), case]))
