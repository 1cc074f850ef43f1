"""Columns of numbers and times, however they are written: no digit is lost, and a bad cell costs itself."""

import warnings
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from mauc._tables.columns import read_kinds, same_columns, with_iso_dates
from mauc._tables.flags import column_mauc
from mauc._tables.read import as_read
from mauc.ensemble import TableColumns

FORMS = {
    "%Y-%m-%d %H:%M:%S.%f": ("-", "unknown", "2024-02-31", "31/12/2024"),
    "%d/%m/%Y %H:%M:%S.%f": ("-", "unknown", "31/02/2024", "12/31/2024"),
    "%m/%d/%Y %H:%M:%S.%f": ("-", "unknown", "02/31/2024", "31/12/2024"),
}
"""Forms of dates, and cells that are no dates of this form."""
BAD_NUMBERS = ("inf", "1e39", "unknown", "-")
BAD_CELLS = {"dates": (None,), "durations": (None,)}
"""Those of other data types than text."""


def run(rng: np.random.Generator) -> None:
    """Draw times that tell the classes apart, write them, and look for them in what models and flags get."""
    n_classes = int(rng.integers(2, 5))
    codes = rng.permutation(np.arange(int(rng.integers(15, 40)) * n_classes) % n_classes)
    step = float(10.0 ** rng.integers(-2, 6))
    seconds = np.round(float(rng.integers(10**8, 2 * 10**9)) + step * (codes + rng.uniform(0.0, 0.9, len(codes))), 3)
    form = str(rng.choice(["numbers", "texts", "decimals", "dates", "durations", *FORMS]))
    cells, bad = _written(seconds, form), FORMS.get(form, BAD_CELLS.get(form, BAD_NUMBERS))
    if form in FORMS and (pd.to_datetime(seconds, unit="s").day <= 12).mean() > 0.5:
        bad = bad[:-1]  # the one date that can have only one order would decide
    odd = rng.random(len(cells)) < rng.choice([0.0, 0.05])
    odd[:2] = False
    order = "day-first" if form.startswith("%d") else "month-first"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the reader reports
        train = cells.astype(object).where(~odd, rng.choice(bad, len(cells)) if form in FORMS else None)
        table = as_read(pd.DataFrame({"t": train}))
        table, kinds = with_iso_dates(table, read_kinds(table), order, Path("t"))
        columns = TableColumns().fit(table)
        numbers = columns.transform(table)
        alone = column_mauc(table["t"], codes)
        model = SimpleNamespace(kinds=kinds, columns=columns)
        spoilt = rng.random(len(cells)) < 0.1
        new = cells.astype(object).where(~spoilt, rng.choice(bad, len(cells)))
        clean, found = (
            columns.transform(same_columns(as_read(pd.DataFrame({"t": each})), model, Path("t"))[0])
            for each in (cells, new)
        )
    assert any(_separates(column, codes, ~odd) for column in numbers.T), f"{form}, step {step:g}"
    assert alone > 0.75 - 2.0 * odd.mean(), f"{form}, step {step:g}: {alone:.3f}"
    np.testing.assert_array_equal(found[~spoilt], clean[~spoilt], err_msg=form)
    assert np.isnan(found[spoilt]).all(), form


def _written(seconds: np.ndarray, form: str) -> pd.Series:
    if form == "numbers":
        return pd.Series(seconds)
    if form == "texts":
        return pd.Series([str(each) for each in seconds])
    if form == "decimals":
        return pd.Series([f"{each:.3f}" for each in seconds])
    times = pd.Series(pd.to_datetime(np.rint(1000.0 * seconds).astype(np.int64), unit="ms"))
    if form == "dates":
        return times
    return times - pd.Timestamp(0) if form == "durations" else times.dt.strftime(form)


def _separates(numbers: np.ndarray, codes: np.ndarray, known: np.ndarray) -> bool:
    """Whether numbers, in float32, rise from class to class."""
    single = numbers.astype(np.float32)
    ends = [(single[known & (codes == k)].min(), single[known & (codes == k)].max()) for k in range(codes.max() + 1)]
    return all(low[1] < high[0] for low, high in pairwise(ends))
