"""``mauc evaluate`` of one file and of the same rows in parts: the same words, numbers and page."""

import contextlib
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from mauc._cli import app

OF_PARTS = r"\brow \d+( of \w+\.parquet/part-\d+\.parquet)?|note: the files of .* in the order of their numbers: .*\n"
"""What is said of parts in other words."""
LABELS = (("oak", "elm", "yew"), ("1", "2", "10"), ("01", "1", "2"), ("True", "False"), ("a", "A", "b", "NA"))


def run(rng: np.random.Generator) -> None:
    """Write tables as files and as folders of parts, and compare what the command says of both."""
    tables, options = _drawn(rng)
    said = []
    with tempfile.TemporaryDirectory() as folder:
        for way in ("file", "parts"):
            place = Path(folder, way)
            place.mkdir()
            for name, table in tables.items():
                if way == "file":
                    table.to_parquet(place / f"{name}.parquet", index=False)
                else:
                    _write_parts(rng, table, place / f"{name}.parquet")
            with contextlib.chdir(place):
                done = CliRunner().invoke(app, ["evaluate", "s.parquet", *options])
                page = Path("mauc-report/evaluation.html")
                content = page.read_text(encoding="utf-8") if page.exists() else ""
            assert isinstance(done.exception, SystemExit | None), done.exception
            words = re.sub(OF_PARTS, "", done.stderr)
            said.append((done.exit_code, words, done.stdout, content))
    for one, parts in zip(*said, strict=True):
        assert one == parts, (options, one, parts)


def _drawn(rng):
    """Draw the tables of a call by name, and its options."""
    labels = np.array(LABELS[int(rng.integers(len(LABELS)))])
    n = int(rng.integers(12, 90))
    codes = np.r_[np.arange(len(labels)), rng.integers(0, len(labels), n - len(labels))]
    prefix = str(rng.choice(["score:", "p_", ""]))
    scores = _scores(rng, codes, prefix, labels)
    others = pd.DataFrame(
        {
            "id": rng.choice([10**17, 1, 0.5]) * (1 + np.arange(n)),
            "code": [f"x{k:03}" for k in rng.integers(0, n // 2, n)],
            "sex": rng.choice(["f", "m", "?"], n),
            "day": pd.date_range("2024-01-01", periods=n, freq=str(rng.choice(["D", "7h"]))),
            "count": rng.integers(0, 5, n),
            "predicted": labels[np.where(rng.random(n) < 0.2, 0, codes)],
            "trained_on": np.where(rng.random(n) < 0.2, "yes", "no"),
        }
    )
    some = others[[name for name in others if rng.random() < 0.6]].copy()
    for name in some:
        if rng.random() < 0.1:
            some[name] = some[name].mask(rng.random(n) < 0.2)
    truth = pd.Series(labels[codes], name="y")
    if rng.random() < 0.3:
        truth = truth.where(rng.random(n) < 0.9, rng.choice(["?", None]))
    tables = {"s": pd.concat([scores, some, truth], axis=1), "o": None, "t": None}
    options = ["--target", "y"]
    if rng.random() < 0.4:
        other = _scores(rng, codes, prefix, labels)
        tables["o"] = pd.concat([other, some, *([truth] if rng.random() < 0.7 else [])], axis=1)
        options += ["--compare", "o.parquet"]
    if rng.random() < 0.3:
        tables["t"] = pd.concat([some, truth], axis=1)
        tables["s"] = tables["s"].drop(columns="y") if rng.random() < 0.7 else tables["s"]
        options += ["--truth", "t.parquet"]
    for name in ("o", "t"):
        if tables[name] is not None and rng.random() < 0.2:
            tables[name] = tables[name].sample(frac=1.0, random_state=int(rng.integers(99))).reset_index(drop=True)
    for option, chance in (
        (["--group", str(rng.choice(["code", "sex", "id"]))], 0.25),
        (["--by", str(rng.choice(["sex", "count", "day"]))], 0.25),
        (["--drop-unlabelled"], 0.4),
        (["--missing", str(rng.choice(["?", "0", "x001"]))], 0.3),
        (["--prefix", prefix or "p_"], 0.2),
        (["--level", "0.8"], 0.2),
        (["--sheet", "x"], 0.03),
        (["--json"], 0.5),
        (["--no-report"], 0.5),
    ):
        if rng.random() < chance:
            options += option
    return {name: table for name, table in tables.items() if table is not None}, options


def _scores(rng, codes, prefix, labels):
    """Draw a score for every class, some of them tied, and at times one that is missing or a class without rows."""
    values = rng.normal(size=(len(codes), len(labels))) + np.eye(len(labels))[codes]
    values = np.round(values, int(rng.choice([0, 1, 15]))).astype(rng.choice(["float32", "float64"]))
    if rng.random() < 0.05:
        values[int(rng.integers(len(codes))), 0] = rng.choice([np.nan, np.inf])
    table = pd.DataFrame(values, columns=[prefix + label for label in labels])
    if prefix and rng.random() < 0.3:
        table[f"{prefix}fir"] = rng.choice([0.0, 0.5, np.nan])
    return table


def _write_parts(rng, table, folder):
    folder.mkdir()
    edges = np.sort(rng.integers(0, len(table) + 1, int(rng.integers(0, 12))))
    pieces = np.split(np.arange(len(table)), edges)
    for k, rows in enumerate(pieces):
        part = table.iloc[rows]
        # pandas would write a column without a value as another type.
        part.astype(table.dtypes).to_parquet(folder / f"part-{k}.parquet", index=False, row_group_size=7)
