"""The nine tables of the paper: their classes and sources."""

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

    @property
    def target_names(self) -> list[str]:
        return list(self.classes)

    @property
    def class_sizes(self) -> list[int]:
        return list(self.classes.values())

    def describe(self) -> str:
        """Return source and licence, in two lines."""
        return f"Source: {self.origin}; as released by the paper's authors ({RELEASE}).\nLicence: {self.licence}."


TABLES = {
    "balance": Table(
        "UCI Balance Scale",
        4,
        {"balanced": 49, "left": 288, "right": 288},
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
    ),
    "ecoli": Table(
        "UCI Ecoli",
        7,
        {"cp": 143, "im": 77, "imL": 2, "imS": 2, "imU": 35, "om": 20, "omL": 5, "pp": 52},
    ),
    "new-thyroid": Table(
        "UCI Thyroid Disease, new-thyroid",
        5,
        {"hyper": 35, "hypo": 30, "normal": 150},
    ),
    "pageblocks": Table(
        "UCI Page Blocks Classification, KEEL's sample of 548 rows",
        10,
        {"text": 492, "horizontal line": 33, "graphic": 3, "vertical line": 8, "picture": 12},
    ),
    "segment-imb": Table(
        "LIBSVM segment (UCI Statlog Image Segmentation), subsampled by the paper's authors",
        19,
        {"brickface": 17, "sky": 33, "foliage": 26, "cement": 13, "window": 264, "path": 231, "grass": 165},
    ),
    "shuttle": Table(
        "UCI Statlog Shuttle, KEEL's sample of 2175 rows",
        9,
        {"Rad Flow": 1706, "Fpv Close": 2, "Fpv Open": 6, "High": 338, "Bypass": 123},
    ),
    "svmguide2": Table(
        "LIBSVM svmguide2 (www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html)",
        20,
        {"1": 221, "2": 117, "3": 53},
        licence="none stated by LIBSVM; the authors' release with its splits: MIT",
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
    ),
}
