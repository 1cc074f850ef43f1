"""Turn tables with texts, categories and dates into numbers, and adapt the models of a stack to sparse matrices.

Columns are encoded once, from all training rows and without their classes.
"""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from mauc._lazy import needing
from mauc._typing import Floats, Ints
from mauc._validation import invalid, is_sparse
from mauc.ensemble.tree_columns import TreeColumns

NUMBERS = "iufb"
MISSING_TEXTS = frozenset(
    {*("", "?", "...", "na", "#na", "n/a", "#n/a", "#n/a n/a", "<na>", "nan", "-nan", "null", "none")}
    | {"1.#qnan", "-1.#qnan", "1.#ind", "-1.#ind"}
)
"""Texts that are missing values, in small letters, as for pandas and skrub."""


def medians(numbers: Floats) -> Floats:
    """Return the ``(columns,)`` median of each column; 0 for a column without a number.

    Forests cast to float32, which has seven digits: 1e9 + 0.3 becomes 1e9 unless 1e9 is subtracted first. A median is
    a value of the column or the middle of two, so that integers stay exact.
    """
    empty = np.isnan(numbers).all(axis=0)
    return np.asarray(np.nanmedian(np.where(empty, 0.0, numbers), axis=0)) if len(numbers) else np.zeros(empty.shape)


def outlier_limits(numbers: Floats, ratio: float = 1e6) -> Floats:
    """Return ``(columns,)`` limits for centred numbers: ten times the 90 % quantile, infinite without an outlier.

    A number beyond ``ratio`` times that quantile is taken for a mistake. Extra trees draw thresholds between the
    smallest and the largest number: a single 1e30 would hide all others from them.
    """
    limits = np.full(numbers.shape[1], np.inf)
    sizes = np.abs(numbers)
    for k in np.flatnonzero(np.nanmax(sizes, axis=0, initial=0.0) > ratio):
        usual = float(np.nanquantile(sizes[:, k], 0.9))
        if 0.0 < ratio * usual < np.nanmax(sizes[:, k]):
            limits[k] = 10.0 * usual
    return limits


class CentredNumbers(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Subtract the median of each column, in float64; missing values stay missing. Needs no pandas.

    Examples
    --------
    >>> CentredNumbers().fit_transform([[1e9, 1.0], [1e9 + 0.25, float("nan")], [1e9 + 0.5, 3.0]])
    array([[-0.25, -1.  ],
           [ 0.  ,   nan],
           [ 0.25,  1.  ]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the medians."""
        self.centres_ = medians(self._numbers(X, reset=True))
        return self

    def transform(self, X: Any) -> Floats:
        """Return ``(N, columns)`` float64."""
        check_is_fitted(self)
        return self._numbers(X, reset=False) - self.centres_

    def _numbers(self, X: Any, *, reset: bool) -> Floats:
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"))


class TextColumn(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a column of texts by the 30 leading components of their hashed character n-grams.

    If texts repeat, a further column has the position of each text in sorted order, by which trees can split off single
    texts. Each different text is encoded once. N-grams are hashed, because a vocabulary, as in skrub's
    ``StringEncoder``, is slow to write to a model file.

    Parameters
    ----------
    random_state : int, optional, default=0
    """

    __single_column_transformer__ = True

    def __init__(self, random_state: int | None = 0) -> None:
        self.random_state = random_state

    def fit(self, column: Any, y: Any = None) -> Self:
        """Learn the components."""
        self.fit_transform(column)
        return self

    def fit_transform(self, column: Any, y: Any = None) -> Any:
        """Learn the components and return a data frame of numbers."""
        texts, codes = _different_texts(column)
        hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=16_384)
        hashed = hashing.transform(texts)
        drawn = np.random.default_rng(self.random_state).permutation(len(texts))[:8_000]
        sample = hashed[np.sort(drawn)]
        n_components = max(1, min(30, sample.shape[0] - 1))
        tfidf = TfidfTransformer().fit(sample)
        # Texts without a common n-gram, such as codes of two letters, have equal singular values, and then rounding,
        # which depends on the processor, chooses the components. Slightly different lengths fix them.
        lengths = 1.0 + 1e-6 * np.linspace(0.0, 1.0, sample.shape[0])
        svd = TruncatedSVD(n_components, random_state=self.random_state)
        svd.fit(sparse.diags_array(lengths) @ tfidf.transform(sample))
        n_sound = int((svd.singular_values_ > 1e-6 * svd.singular_values_[0]).sum())  # the others are rounding errors
        svd.components_ = svd.components_[: max(1, n_sound)]
        self.encoder_ = make_pipeline(hashing, tfidf, svd)
        # An array is one file in a model file; a list has a node for each text.
        self.known_ = np.array(sorted(texts) if 2 * len(texts) <= len(column) else [], dtype=str)
        return self._frame(column, texts, codes, svd.transform(tfidf.transform(hashed)))

    def transform(self, column: Any) -> Any:
        """Return a data frame of numbers; a missing text gives missing numbers."""
        texts, codes = _different_texts(column)
        return self._frame(column, texts, codes, self.encoder_.transform(texts) if len(texts) else None)

    def _frame(self, column: Any, texts: Any, codes: Ints, components: Floats | None) -> Any:
        import pandas as pd

        # The last row is for missing texts, whose code is -1.
        numbers = np.full((len(texts) + 1, len(self.encoder_[-1].components_)), np.nan)
        if components is not None:
            numbers[: len(texts)] = components
        columns = {f"{column.name}_{k}": values for k, values in enumerate(numbers[codes].T)}
        if len(self.known_):
            position = {text: k for k, text in enumerate(self.known_.tolist())}
            places = np.array([*(position.get(text, np.nan) for text in texts), np.nan], dtype=np.float64)
            columns[f"{column.name}_place"] = places[codes]
        self.all_outputs_ = list(columns)
        return pd.DataFrame(columns, index=column.index)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the column names of the last data frame."""
        return self.all_outputs_


class TextPlace(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Replace each text by its place among the sorted texts of training, for a table that must be ready soon.

    It takes a hundredth of the time of :class:`TextColumn`, and dates written like 2024-03-31 stay in order. A new text
    gets the place where it would be inserted.
    """

    def fit(self, column: Any, y: Any = None) -> Self:
        """Sort the texts."""
        texts = {str(text).replace("\0", "") for text in column.dropna().unique()}
        # One array of bytes: an array of texts would take the memory of the longest one for each, and a list is slow to
        # write to a model file.
        self.known_ = np.frombuffer("\0".join(sorted(texts)).encode(errors="surrogatepass"), dtype=np.uint8)
        return self

    def transform(self, column: Any) -> Floats:
        """Return ``(N, 1)`` places; a missing text gives a missing number."""
        texts, codes = _different_texts(column)
        known = self.known_.tobytes().decode(errors="surrogatepass").split("\0")
        places = [bisect_left(known, text.replace("\0", "")) for text in texts]
        return np.array([*places, np.nan])[codes, None]


class DateColumn(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode a column of dates by year, month, day, hour if a date has one, and the seconds since the median date.

    Seconds are computed in integers: skrub's ``DatetimeEncoder`` counts from 1970 in float32, which loses all below 128
    seconds.
    """

    __single_column_transformer__ = True

    def fit(self, column: Any, y: Any = None) -> Self:
        """Learn the median date."""
        microseconds, _ = self._instants(column.dropna())
        self.centre_ = int(np.sort(microseconds)[len(microseconds) // 2]) if len(microseconds) else 0
        self.has_time_ = bool((column.dropna().dt.normalize() != column.dropna()).any())
        return self

    def transform(self, column: Any) -> Any:
        """Return a data frame of float64; a missing date gives missing numbers."""
        import pandas as pd

        parts = ["year", "month", "day", "hour"] if self.has_time_ else ["year", "month", "day"]
        columns = {f"{column.name}_{part}": getattr(column.dt, part).astype("float64") for part in parts}
        microseconds, nanoseconds = self._instants(column)
        seconds = (microseconds - self.centre_) / 1e6 + nanoseconds / 1e9
        columns[f"{column.name}_total_seconds"] = np.where(column.isna(), np.nan, seconds)
        self.all_outputs_ = list(columns)
        return pd.DataFrame(columns, index=column.index)

    def _instants(self, column: Any) -> tuple[Ints, Ints]:
        """Return microseconds since 1970 in UTC, and the nanoseconds beyond them."""
        dates = column if column.dt.tz is None else column.dt.tz_convert("UTC").dt.tz_localize(None)
        exact = np.asarray(dates)
        whole = exact.astype("datetime64[us]")
        return whole.astype(np.int64), (exact - whole).astype("timedelta64[ns]").astype(np.int64)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the column names of the last data frame."""
        return self.all_outputs_


def _different_texts(column: Any) -> tuple[Any, NDArray[np.int64]]:
    """Return the different texts of a column in order of occurrence, and the code of each row's text; -1 if missing."""
    import pandas as pd

    codes, texts = pd.factorize(column)
    return pd.Series(np.asarray(texts, dtype=object), name=column.name, dtype="str"), codes


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column of texts or dates as numbers."""

    steps: list[Any]
    """Fitted transformers, which clean the column and encode it; none if it has no outputs."""
    outputs: NDArray[np.str_]
    """Names of the numbers."""
    rows: NDArray[np.floating]
    """``(N, outputs)``; float64 of dates, else float32."""
    others: tuple[NDArray[np.floating], ...] = ()
    """The same numbers of the rows of other tables."""


def encode_column(column: Any, random_state: int | None = 0, others: Sequence[Any] = ()) -> EncodedColumn:
    """Encode a column of texts or dates by skrub, and the same column of other tables.

    skrub's own vectorizer has every step several times, which makes a model file seven times as long to write.
    """
    with needing("cli", f"a table with columns of text or dates ({column.name})"):
        from skrub import TableVectorizer

    name = str(column.name)  # skrub needs texts as the names of columns
    vectorizer = TableVectorizer(
        low_cardinality=_one_hot(), high_cardinality=TextColumn(random_state=random_state), datetime=DateColumn()
    )
    found = vectorizer.fit_transform(column.rename(name).to_frame())
    outputs = np.array(vectorizer.input_to_outputs_[name], dtype=str)
    # The last step only casts to float32.
    steps = list(vectorizer.all_processing_steps_[name][:-1]) if len(outputs) else []
    applied = tuple(_apply(steps, each.rename(name)) for each in others if steps)
    are_dates = len(steps) > 0 and isinstance(steps[-1], DateColumn)
    rows = _apply(steps, column.rename(name)) if are_dates else np.asarray(found, dtype=np.float32)
    return EncodedColumn(steps, outputs, rows, applied)


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table into numbers, without its classes.

    The median of its column is subtracted from each number, duration and boolean, in float64; missing numbers stay
    missing. A column of numbers that are written as text, with ``?`` or the like where one is missing, is one of
    numbers. Categories of up to 40 values become one-hot columns; a new value has 0 in all of them. skrub's
    ``TableVectorizer`` encodes the other columns: texts of more values become 30 components of their character n-grams
    and, if they repeat, a code; dates become year, month, day, hour and seconds since the median date. A column that is
    empty in training is ignored.

    Parameters
    ----------
    random_state : int, optional, default=0
        Seed of the components of texts.
    quick : bool, default=False
        Replace each text, and each date as it is written, by its place in alphabetical order. Needs no skrub.

    Attributes
    ----------
    empty_, numbers_, categories_, others_ : list
        Names of the columns of each kind.
    centres_ : (numbers,) array
        Median of each column of ``numbers_``.
    limits_ : (numbers,) array
        Largest distance from the median; a number beyond it is clipped. Infinite unless the column has a mistake.
    encoder_ : OneHotEncoder or None
        Fitted on ``categories_``, if there are any.
    steps_ : dict of str to list of transformers
        The fitted steps of each column of ``others_`` that varies: they clean it, and encode it last.
    outputs_ : dict of str to array of str
        Names of the numbers that each of these columns becomes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Takes a pandas data frame, any other that has ``to_pandas()``, an array, or one text per sample; a sparse matrix is
    returned unchanged. Columns of texts or dates need skrub: ``pip install 'mauc[cli]'``.

    After training, a text in a column of numbers counts as missing, with a warning. A value that is no date in a column
    of dates counts as missing without one.

    Examples
    --------
    >>> import pandas as pd
    >>> from mauc.ensemble import TableColumns
    >>> table = pd.DataFrame({"age": [31.0, None, 54.0], "town": ["Ulm", "Kiel", "Ulm"]})
    >>> TableColumns().fit_transform(table)
    array([[-11.5,   0. ,   1. ],
           [  nan,   1. ,   0. ],
           [ 11.5,   0. ,   1. ]])
    """

    def __init__(self, random_state: int | None = 0, quick: bool = False) -> None:
        self.random_state = random_state
        self.quick = quick

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn categories, components of texts and date formats."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return ``(N, columns)`` float64."""
        return self._fit_encoded(X, {})

    def _fit_encoded(self, X: Any, encoded: Mapping[str, EncodedColumn]) -> Any:
        """Fit, and return ``(N, columns)`` float64. ``encoded`` has columns that are encoded already, by name."""
        table = self._table(X, reset=True)
        if table is None:
            return X
        self.empty_, self.numbers_, self.categories_, self.others_ = split_columns(table)
        self.encoder_ = _one_hot().fit(_objects(table[self.categories_])) if self.categories_ else None
        numbers = self._numbers(table)
        self.centres_ = medians(numbers)
        self.limits_ = outlier_limits(numbers - self.centres_)
        self.steps_: dict[str, list[Any]] = {}
        self.outputs_: dict[str, NDArray[np.str_]] = {}
        others = []
        for column in (table[name] for name in self.others_):
            name = str(column.name)
            found = encoded.get(name) or self._encode(column)
            if found.steps:
                self.steps_[name], self.outputs_[name] = found.steps, found.outputs
                others.append(found.rows)
        return self._joined(table, numbers, others)

    def transform(self, X: Any) -> Any:
        """Return ``(N, columns)`` float64."""
        return self._transform_encoded(X, {})

    def _transform_encoded(self, X: Any, encoded: Mapping[str, EncodedColumn], which: int = 0) -> Any:
        """Return ``(N, columns)`` float64 of one of the ``others`` of columns that are encoded already."""
        check_is_fitted(self, "n_features_in_")
        table = self._table(X, reset=False)
        if table is None:
            return X
        for name in self.empty_:
            if table[name].notna().any():
                warnings.warn(f"column {name!r} was empty in training and is ignored", stacklevel=2)
        columns = {str(name): table[name] for name in self.others_}
        others = [
            encoded[name].others[which] if name in encoded else _apply(steps, columns[name].rename(name))
            for name, steps in self.steps_.items()
        ]
        return self._joined(table, self._numbers(table), others)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of numbers."""
        check_is_fitted(self, "n_features_in_")
        words = [] if self.encoder_ is None else self.encoder_.get_feature_names_out(list(map(str, self.categories_)))
        others = [name for outputs in self.outputs_.values() for name in outputs]
        return np.array([*map(str, self.numbers_), *words, *others], dtype=object)

    def tree_columns(self, n_beside_code: int = 3, n_without_code: int = 12) -> TreeColumns:
        """Return the columns for trees; of a text its leading components, fewer if it has a code."""
        check_is_fitted(self, "n_features_in_")
        plain, words = list(range(len(self.numbers_))), list[tuple[int, int]]()
        start = len(plain)
        for categories in [] if self.encoder_ is None else self.encoder_.categories_:
            words.append((start, start + len(categories)))
            start += len(categories)
        for name, outputs in self.outputs_.items():
            transformer, end = self.steps_[name][-1], start + len(outputs)
            if isinstance(transformer, OneHotEncoder):
                words.append((start, end))
            elif isinstance(transformer, TextColumn):
                n_components = len(transformer.encoder_[-1].components_)
                n_leading = n_beside_code if len(transformer.known_) else n_without_code
                plain += range(start, start + min(n_components, n_leading))
                plain += range(start + n_components, end)
            else:
                plain += range(start, end)
            start = end
        return TreeColumns(plain, words)

    def known_categories(self) -> dict[Any, list[Any]]:
        """Return the categories of each column in training, by column name; missing ones are None or NaN.

        Examples
        --------
        >>> import pandas as pd
        >>> from mauc.ensemble import TableColumns
        >>> table = pd.DataFrame({"age": [31.0, 54.0], "town": ["Ulm", "Kiel"]})
        >>> TableColumns().fit(table).known_categories()
        {'town': ['Kiel', 'Ulm']}
        """
        check_is_fitted(self, "n_features_in_")
        encoded = [] if self.encoder_ is None else zip(self.categories_, self.encoder_.categories_, strict=True)
        found = {name: list(categories) for name, categories in encoded}
        for name in self.others_:
            steps = self.steps_.get(str(name))
            if steps and isinstance(steps[-1], OneHotEncoder):
                found[name] = list(steps[-1].categories_[0])
        return found

    def _table(self, X: Any, *, reset: bool) -> Any:
        """Return a pandas data frame; None for a sparse matrix."""
        with needing("cli", "mauc.ensemble.TableColumns"):
            import pandas as pd

        if are_texts(X):
            X = pd.DataFrame({"text": list(X)})
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return (X if isinstance(X, pd.DataFrame) else X.to_pandas()).infer_objects()
        X = validate_data(self, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite=False)
        # An array has the columns of the training table, of whose names scikit-learn warns.
        names = None if reset else getattr(self, "feature_names_in_", None)
        return None if is_sparse(X) else pd.DataFrame(X, columns=names).infer_objects()

    def _numbers(self, table: Any) -> Floats:
        """Return ``(N, numbers)`` as one block: column by column is slow for thousands of columns."""
        block = table[self.numbers_]
        if all(isinstance(kind, np.dtype) and kind.kind in NUMBERS for kind in block.dtypes):
            return np.asarray(block, dtype=np.float64)
        return np.column_stack([_as_numbers(block[name]) for name in self.numbers_])

    def _encode(self, column: Any) -> EncodedColumn:
        """Encode a column of texts or dates."""
        if not self.quick:
            return encode_column(column, self.random_state)
        steps = [TextPlace().fit(column)]
        return EncodedColumn(steps, np.array([f"{column.name}_place"]), _apply(steps, column))

    def _joined(self, table: Any, numbers: Floats, others: list[Any]) -> Floats:
        blocks: list[NDArray[Any]] = [np.clip(numbers - self.centres_, -self.limits_, self.limits_)]
        if self.encoder_ is not None:
            blocks.append(self.encoder_.transform(_objects(table[self.categories_])))
        return np.hstack([*blocks, *others])


def _apply(steps: list[Any], column: Any) -> NDArray[np.floating]:
    """Return the ``(N, outputs)`` numbers that fitted steps make of a column."""
    for step in steps:
        column = step.transform(column.to_frame() if isinstance(step, OneHotEncoder) else column)
    numbers: NDArray[np.floating] = np.asarray(column, np.float64 if isinstance(steps[-1], DateColumn) else np.float32)
    return numbers.reshape(len(column), -1)


def _are_booleans(column: Any) -> bool:
    """Return whether a column holds booleans and gaps."""
    from pandas.api.types import infer_dtype

    return bool(column.dtype == object and infer_dtype(column, skipna=True) == "boolean")


def _as_numbers(column: Any) -> Floats:
    """Return float64; NaN for missing values and, with a warning, for values that are not numbers."""
    if column.dtype.kind == "m":
        return np.asarray(column.dt.total_seconds(), dtype=np.float64)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError, OverflowError):
        numbers = _parsed(column)
    _warn_of_lost_cells(column, numbers)
    return numbers


def written_numbers(column: Any, n_first: int = 20) -> Floats | None:
    """Return a column of texts or objects as float64 if its cells are numbers or missing, else None.

    ``?``, ``NA`` and the like are missing.

    >>> import pandas as pd
    >>> written_numbers(pd.Series(["1.25", "?", None]))
    array([1.25,  nan,  nan])
    >>> written_numbers(pd.Series(["12", "12A"])) is None
    True
    """
    if column.dtype.kind not in "OSU" or str(column.dtype) == "category" or _are_booleans(column):
        return None
    numbers = np.zeros(0)
    for cells in (column.dropna().head(n_first), column):  # at once, for words
        numbers = _parsed(cells)
        if len(_lost_cells(cells, numbers)):
            return None
    known = column[np.isfinite(numbers)]
    return numbers if len(known) and any(map(str.isdigit, str(known.iloc[0]))) else None


def _parsed(column: Any) -> Floats:
    """Return :func:`as_number` of every cell."""
    import pandas as pd
    from pandas.api.types import infer_dtype

    numbers, left = np.full(len(column), np.nan), np.asarray(column.notna())
    if infer_dtype(column, skipna=True) == "string":  # a tenth of the time
        numbers = np.array(pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan))
        left = left & np.isnan(numbers)
    numbers[left] = [as_number(cell) for cell in column[left]]
    return numbers


def as_number(cell: Any) -> float:
    """Return a cell as a number, of a truth value 1 or 0; NaN if it is none.

    >>> as_number("1.5"), as_number("TRUE"), as_number("many")
    (1.5, 1.0, nan)
    """
    try:
        return float({"true": 1.0, "false": 0.0}.get(str(cell).strip().lower(), cell))
    except OverflowError:
        return np.inf  # an integer of hundreds of digits
    except (TypeError, ValueError):
        return np.nan


def _warn_of_lost_cells(column: Any, numbers: NDArray[np.floating]) -> None:
    """Warn of cells of a column of numbers that are not numbers."""
    odd = _lost_cells(column, numbers)
    if len(odd):
        count = "a value that is not a number" if len(odd) == 1 else f"{len(odd)} values that are not numbers"
        example = f"{column.iloc[odd[0]]!r} in row {odd[0] + 1}"
        warnings.warn(
            f"column {column.name!r} held numbers in training and has {count}, such as {example}: treated as missing",
            stacklevel=6,
        )


def _lost_cells(column: Any, numbers: NDArray[np.floating]) -> Ints:
    """Return the rows of the cells that are neither numbers nor missing."""
    odd = np.flatnonzero(np.isnan(numbers) & np.asarray(column.notna()))
    return odd[[str(column.iloc[k]).strip().lower() not in MISSING_TEXTS for k in odd]] if len(odd) else odd


def split_columns(table: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Return the names of empty columns, of numbers, of categories, and of others, which are texts and dates."""
    present = table.notna().any()
    empty = [name for name in table.columns if not present[name]]
    kinds = {name: kind.kind for name, kind in table.dtypes.items() if present[name]}
    numbers = [name for name, kind in kinds.items() if kind in NUMBERS + "m" or _are_numbers(table[name])]
    known = set(numbers)
    words = {name: _is_category(table[name]) for name in kinds if name not in known}
    categories = [name for name, is_category in words.items() if is_category]
    return empty, numbers, categories, [name for name, is_category in words.items() if not is_category]


def _are_numbers(column: Any) -> bool:
    return _are_booleans(column) or written_numbers(column) is not None


def _one_hot() -> OneHotEncoder:
    """Return an encoder that keeps both of two categories.

    skrub's own encoder drops one of them, and a new category would then look like the dropped one.
    """
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)


def _is_category(column: Any, max_categories: int = 40) -> bool:
    """Return whether a column has few different words without a digit, which are neither dates nor numbers.

    skrub encodes each column separately: on 60 such columns it takes twenty times as long as one encoder for all.
    """
    values = column.dropna().unique()
    return len(values) <= max_categories and all(isinstance(v, str) and not any(map(str.isdigit, v)) for v in values)


def _objects(table: Any) -> NDArray[Any]:
    """Return an array of objects in which missing values are None, a separate category."""
    values = table.astype(object)
    return np.asarray(values.where(values.notna(), None), dtype=object)


def for_sparse(model: Any, n_columns: int, random_state: int = 0, max_dense: int = 200) -> Any:
    """Return the same model for a sparse matrix.

    Scalers do not subtract the means, so that zeros stay zeros; the intercept of a linear model and the distances of a
    kernel make up for it. A model that takes no sparse matrix gets up to ``max_dense`` dense columns, and of more their
    100 leading components. A forest takes no missing values in a sparse matrix, so it gets an imputer.

    Columns are standardised even if they are words. On tf-idf of 700 docstrings in ten classes the kernel has a MAUC ×
    100 of 87.7, and 60.3 on columns scaled by their largest value; linear models are level.
    """
    if isinstance(model, Pipeline) and isinstance(model[0], TreeColumns):
        model = model[-1]  # it chooses among the columns, of which there will be few
    adapted, imputer = clone(model), SimpleImputer(keep_empty_features=True)
    is_pipeline = isinstance(model, Pipeline)
    for _, step in adapted.steps if is_pipeline else []:
        if isinstance(step, StandardScaler):
            step.set_params(with_mean=False)
    if get_tags(adapted).input_tags.sparse:
        return adapted if is_pipeline else make_pipeline(imputer, adapted)
    if n_columns <= max_dense:
        return make_pipeline(FunctionTransformer(_dense, accept_sparse=True), clone(model))
    return make_pipeline(imputer, TruncatedSVD(100, random_state=random_state), clone(model))


def _dense(X: Any) -> Any:
    return X.toarray() if is_sparse(X) else X


def transformer_for(columns: Any, X: Any, *, own_models: bool, random_state: int) -> Any:
    """Return the unfitted transformer that the stack's option ``columns`` selects for this X, or None."""
    if isinstance(columns, str) and columns == "auto":
        if own_models or is_sparse(X):
            return None
        is_number = getattr(getattr(X, "dtype", None), "kind", "O") in NUMBERS
        return CentredNumbers() if is_number else TableColumns(random_state)
    if columns is None:
        return None
    if isinstance(columns, type) or not hasattr(columns, "fit_transform") or not hasattr(columns, "transform"):
        advice = "pass e.g. mauc.ensemble.TableColumns()"
        raise invalid("columns", "must be 'auto', None or a transformer", repr(columns), advice)
    return columns


def has_long_texts(X: Any, have_seconds: bool = True, most: int = 300_000) -> bool:
    """Return whether a data frame has texts that take more than a second to encode, or any texts without seconds."""
    most = most if have_seconds else 0
    texts = [k for k, kind in enumerate(getattr(X, "dtypes", ())) if getattr(kind, "kind", "O") not in NUMBERS]
    if len(texts) * _num_samples(X) > most:
        return True
    return sum(int(X.iloc[:, k].dropna().astype(str).str.len().sum()) for k in texts) > most


def are_texts(X: Any) -> bool:
    """Return whether X is a list, series or array of one text per sample."""
    one_each = isinstance(X, list) or getattr(X, "ndim", 2) == 1
    return one_each and len(X) > 0 and isinstance(next(iter(X)), str)
