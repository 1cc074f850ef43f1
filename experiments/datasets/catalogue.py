"""The nine tables of the paper: their classes, sources and copies on OpenML."""

from dataclasses import dataclass

__all__ = ["TABLES", "Table"]

RELEASE = "github.com/joshuaas/Learning-with-Multiclass-AUC-Theory-and-Algorithms"
UCI_LICENCE = "CC BY 4.0 (UCI); the authors' release with its splits: MIT"


@dataclass(frozen=True)
class Table:
    """One table, as the paper's authors released it."""

    origin: str
    n_features: int
    classes: dict[str, int]
    """Name and size of each class, in the order of the codes."""
    licence: str = UCI_LICENCE
    openml_id: int | None = None
    """The same data on OpenML; None where OpenML has other rows, or nothing."""
    openml_labels: tuple[str, ...] | None = None
    """The classes' labels on OpenML, in the order of the codes; None: their names here."""
    not_on_openml: str = ""
    """The reason why OpenML is no source."""
    extra_row: tuple[float, ...] | None = None
    """A complete row of the original data that the authors' release lacks."""

    @property
    def target_names(self) -> list[str]:
        return list(self.classes)

    @property
    def class_sizes(self) -> list[int]:
        return list(self.classes.values())

    def describe(self, source: str) -> str:
        """Return source and licence, in two lines."""
        return f"Source: {self.origin}; {source}.\nLicence: {self.licence}."


# fmt: off
# One of the 48 complete rows of pityriasis rosea; the other 357 rows come in the order of the original file.
DERMATOLOGY_EXTRA = (
    1, 1, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 35,
)
# fmt: on

TABLES = {
    "balance": Table(
        "UCI Balance Scale",
        4,
        {"balanced": 49, "left": 288, "right": 288},
        openml_id=11,
        openml_labels=("B", "L", "R"),
    ),
    "dermatology": Table(
        "UCI Dermatology, rows without missing values",
        34,
        {
            "psoriasis": 111,
            "seboreic dermatitis": 60,
            "lichen planus": 71,
            "pityriasis rosea": 47,
            "cronic dermatitis": 48,
            "pityriasis rubra pilaris": 20,
        },
        openml_id=35,
        openml_labels=("1", "2", "3", "4", "5", "6"),
        extra_row=DERMATOLOGY_EXTRA,
    ),
    "ecoli": Table(
        "UCI Ecoli",
        7,
        {"cp": 143, "im": 77, "imL": 2, "imS": 2, "imU": 35, "om": 20, "omL": 5, "pp": 52},
        openml_id=39,
    ),
    "new-thyroid": Table(
        "UCI Thyroid Disease, new-thyroid",
        5,
        {"hyper": 35, "hypo": 30, "normal": 150},
        openml_id=40682,
        openml_labels=("2", "3", "1"),
    ),
    "pageblocks": Table(
        "UCI Page Blocks Classification, KEEL's sample of 548 rows",
        10,
        {"text": 492, "horizontal line": 33, "graphic": 3, "vertical line": 8, "picture": 12},
        not_on_openml="OpenML's page-blocks is the full table of 5473 rows, this one KEEL's sample of 548",
    ),
    "segment-imb": Table(
        "LIBSVM segment (UCI Statlog Image Segmentation), subsampled by the paper's authors",
        19,
        {"brickface": 17, "sky": 33, "foliage": 26, "cement": 13, "window": 264, "path": 231, "grass": 165},
        not_on_openml="OpenML's segment is balanced, this one the authors' own subsample",
    ),
    "shuttle": Table(
        "UCI Statlog Shuttle, KEEL's sample of 2175 rows",
        9,
        {"Rad Flow": 1706, "Fpv Close": 2, "Fpv Open": 6, "High": 338, "Bypass": 123},
        not_on_openml="OpenML's shuttle is the full table of 58000 rows, this one KEEL's sample of 2175",
    ),
    "svmguide2": Table(
        "LIBSVM svmguide2 (www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html)",
        20,
        {"1": 221, "2": 117, "3": 53},
        licence="none stated by LIBSVM; the authors' release with its splits: MIT",
        not_on_openml="OpenML does not have it",
    ),
    "yeast": Table(
        "UCI Yeast",
        8,
        {
            "CYT": 463,
            "ERL": 5,
            "EXC": 35,
            "ME1": 44,
            "ME2": 51,
            "ME3": 163,
            "MIT": 244,
            "NUC": 429,
            "POX": 20,
            "VAC": 30,
        },
        openml_id=181,
    ),
}
