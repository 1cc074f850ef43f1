"""Tables in every form that is read: no row and no cell is lost, whatever else the file says about itself."""

import re
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from mauc._tables.read import read_table
from mauc._tables.text import Reading

WORDS = ("oak", "a|b", "c;d", "e,f", 'g"h', "i'j", "yew\u2028", "Łódź", "k\tl", "=m", "{n}", "o%p", "été")
TAGS = ("A1", "A1:B2", "C9:D9", "A1:XFD1048576", "B2:A1", "A3:ZZ3")


def run(rng: np.random.Generator) -> None:
    """Write a table, read it, and compare every cell."""
    table = _drawn(rng)
    form = FORMS[int(rng.integers(len(FORMS)))]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the reader reports
        path, how = form(rng, table, Path(folder))
        found = read_table(path, how=how)
    assert found.shape == table.shape, form.__name__
    if how.header is not False:
        assert list(found.columns) == list(table.columns), form.__name__
    for name, other in zip(table.columns, found.columns, strict=True):
        expected, got = table[name], found[other]
        assert expected.isna().tolist() == got.isna().tolist(), (form.__name__, name)
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(got.astype(float), expected, rtol=1e-15, err_msg=form.__name__)
        else:
            assert got.dropna().tolist() == expected.dropna().tolist(), (form.__name__, name)


def _drawn(rng: np.random.Generator) -> pd.DataFrame:
    """Numbers and words with gaps, no row empty, and no column."""
    n = int(rng.integers(2, 40))
    columns = {}
    for k in range(int(rng.integers(1, 5))):
        columns[f"n{k}"] = np.round(rng.normal(size=n) * 10.0 ** rng.integers(-3, 6), int(rng.integers(0, 8)))
        columns[f"w{k} {rng.choice(['', 'x|y', 'u', '§'])}".strip()] = rng.choice(WORDS, n).astype(object)
    table = pd.DataFrame(columns)
    gaps = rng.random(table.shape) < 0.15
    gaps[0], gaps[:, 0] = False, False
    return table.mask(gaps)


def _text(rng, table, folder):
    separator = str(rng.choice([",", ";", "\t", "|"]))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16"]))
    header = bool(rng.random() < 0.7)
    path = folder / str(rng.choice(["t.csv", "t.tsv", "t.csv.gz"]))
    table.to_csv(path, sep=separator, encoding=encoding, header=header, index=False)
    return path, Reading(separator=separator, header=header, encoding=encoding if rng.random() < 0.5 else None)


def _excel(rng, table, folder):
    plain, path = folder / "plain.xlsx", folder / "t.xlsx"
    # A spreadsheet runs what begins with =.
    table.replace("=m", "m").to_excel(plain, index=False, startrow=int(rng.integers(3)), startcol=int(rng.integers(3)))
    table.replace("=m", "m", inplace=True)
    tag = str(rng.choice(TAGS))
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("sheet1.xml"):
                data = re.sub(rb'<dimension ref="[^"]*"', f'<dimension ref="{tag}"'.encode(), data)
            new.writestr(name, data)
    return path, Reading(header=True)


def _parquet(rng, table, folder):
    table.to_parquet(folder / "t.parquet")
    return folder / "t.parquet", Reading()


FORMS = (_text, _text, _excel, _parquet)
