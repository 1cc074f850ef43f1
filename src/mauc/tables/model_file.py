"""Model files: skops, never pickle. Loading one runs no code but that of types known here, or trusted by the user."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mauc._io import write_whole
from mauc.tables.errors import Failure

__all__ = ["TableModel", "read_model", "write_model"]

FORMAT = "mauc model 1"
# What mauc fit writes beyond our own classes and the types that skops trusts by itself. By full name: a prefix would
# trust every function below it.
KNOWN = frozenset(
    {
        "numpy.dtype",
        # Trees are arrays that compiled code walks: a forged one may crash the process, but runs no code of its own.
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
        "skrub._apply_to_each_col.ApplyToEachCol",
        "skrub._check_input.CheckInputDataFrame",
        "skrub._clean_categories.CleanCategories",
        "skrub._clean_null_strings.CleanNullStrings",
        "skrub._dataframe._common.is_any_date",
        "skrub._dataframe._common.is_categorical",
        "skrub._dataframe._common.is_numeric",
        "skrub._datetime_encoder.DatetimeEncoder",
        "skrub._drop_uninformative.DropUninformative",
        "skrub._duration_to_float.DurationToFloat",
        "skrub._string_encoder.StringEncoder",
        "skrub._table_vectorizer.PassThrough",
        "skrub._table_vectorizer.ShortReprDict",
        "skrub._table_vectorizer.TableVectorizer",
        "skrub._table_vectorizer._created_by_predicate",
        "skrub._to_datetime.ToDatetime",
        "skrub._to_float.ToFloat",
        "skrub._to_str.ToStr",
        "skrub.selectors._base.All",
        "skrub.selectors._base.And",
        "skrub.selectors._base.Cols",
        "skrub.selectors._base.Filter",
        "skrub.selectors._base.Sub",
        "skrub.selectors._selectors._cardinality_below",
    }
)


@dataclass(frozen=True)
class TableModel:
    """A classifier with the columns it wants."""

    features: Any
    """From a table to numbers, fitted."""
    classifier: Any
    kinds: dict[str, str]
    target: str
    about: str

    def scores(self, table: Any) -> Any:
        """``(N, C)`` scores, columns in the order of ``classifier.classes_``."""
        return self.classifier.predict_proba(self.features.transform(table))


def write_model(path: Path, model: TableModel) -> None:
    """Write the file in one step: a run that is cut off leaves the old one, or none."""
    import zipfile

    import skops.io

    parts = {name: getattr(model, name) for name in TableModel.__dataclass_fields__}
    write_whole(path, skops.io.dumps({"format": FORMAT, **parts}, compression=zipfile.ZIP_DEFLATED))


def read_model(path: Path, *, trust: bool = False) -> TableModel:
    """The model in a file; types that are not ours are refused, unless trusted."""
    import skops.io

    if path.is_dir():
        raise Failure(f"{path} is a folder: name the model file that mauc fit wrote")
    # Read once: what is checked must be what is loaded.
    data = path.read_bytes()
    another = f"{path} is no model file of mauc fit: train one with mauc fit TABLE --target COLUMN --out {path.name}"
    try:
        needed = set(skops.io.get_untrusted_types(data=data))
    except Exception:
        raise Failure(another) from None
    unknown = sorted(name for name in needed if name not in KNOWN and not _is_our_class(name))
    if unknown and not trust:
        shown = ", ".join(unknown[:6]) + (f" and {len(unknown) - 6} more" if len(unknown) > 6 else "")
        raise Failure(
            f"{path} holds types that mauc does not know, and loading them could run their code: {shown}\n"
            "pass --trust if you know where the file comes from"
        )
    try:
        parts = skops.io.loads(data, trusted=sorted(needed))
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Failure(f"{path} cannot be loaded ({reason}): train it again with this version of mauc") from error
    if not _is_ours(parts):
        raise Failure(another)
    return TableModel(**{name: parts[name] for name in TableModel.__dataclass_fields__})


def _is_ours(parts: Any) -> bool:
    """All parts of a model are there, each of its kind."""
    from sklearn.pipeline import Pipeline

    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        return False
    kinds, classifier = parts.get("kinds"), parts.get("classifier")
    return (
        isinstance(parts.get("features"), Pipeline)
        and hasattr(classifier, "predict_proba")
        and hasattr(classifier, "classes_")
        and isinstance(kinds, dict)
        and all(isinstance(text, str) for text in (*kinds, *kinds.values(), parts.get("target"), parts.get("about")))
    )


def _is_our_class(name: str) -> bool:
    """A class of mauc; its functions are not trusted, because a forged file could have them called."""
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] != "mauc":
        return False
    try:
        return isinstance(getattr(import_module(module), attribute), type)
    except (ImportError, AttributeError):
        return False
