"""Data frames of pandas and polars, for models that take numbers."""

from typing import Any

from mauc._validation import invalid

__all__ = ["check_numbers"]


def check_numbers(X: Any, whom: str) -> None:
    """Refuse a data frame with texts, categories or dates by the names of these columns."""
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        others = [str(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if not _numbers(X[name], kind)]
        if others:
            advice = "put skrub's TableVectorizer() before it in a pipeline"
            raise invalid("X", f"must have columns of numbers for {whom}", ", ".join(others[:5]), advice)


def _numbers(column: Any, kind: Any) -> bool:
    code = getattr(kind, "kind", None)
    if code is None:  # polars
        return bool(kind.is_numeric() or str(kind) == "Boolean")
    return not any(isinstance(value, str) for value in column) if code == "O" else code in "iufb"
