"""Columns as the models of a stack take them: tables with texts, categories and dates, and sparse matrices.

What is learnt from columns, such as which categories there are, is learnt once, from all training rows and without a
look at their classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from mauc._lazy import needing
from mauc._typing import Floats, Ints
from mauc._validation import invalid, is_sparse
from mauc.ensemble.tree_columns import Layout

__all__ = ["CentredNumbers", "DenseColumns", "TableColumns", "TextColumn", "are_texts", "for_sparse", "transformer_for"]

NUMBERS = "iufb"


def centres_of(numbers: Floats) -> Floats:
    """``(columns,)`` median of each column, 0 where it holds no number.

    Forests cast what they get to float32, which has seven digits: 1e9 + 0.3 becomes 1e9 unless the 1e9 is taken off
    before. A median is one of the values or the middle of two, so that whole numbers stay whole or half.
    """
    empty = np.isnan(numbers).all(axis=0)
    return np.asarray(np.nanmedian(np.where(empty, 0.0, numbers), axis=0)) if len(numbers) else np.zeros(empty.shape)


class CentredNumbers(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers less the median of their column, in float64; gaps stay gaps.

    Examples
    --------
    >>> CentredNumbers().fit_transform([[1e9, 1.0], [1e9 + 0.25, float("nan")], [1e9 + 0.5, 3.0]])
    array([[-0.25, -1.  ],
           [ 0.  ,   nan],
           [ 0.25,  1.  ]])
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the medians."""
        self.centres_ = centres_of(self._numbers(X, reset=True))
        return self

    def transform(self, X: Any) -> Floats:
        """``(N, columns)`` float64"""
        check_is_fitted(self)
        return self._numbers(X, reset=False) - self.centres_

    def _numbers(self, X: Any, *, reset: bool) -> Floats:
        return np.asarray(validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"))


class TextColumn(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A column of texts as directions of their hashed character n-grams and, where texts repeat, the place of each
    among all in sorted order, by which a tree can tell single ones apart.

    Each different text is encoded once, however often it occurs, and at most ``most_fitted`` of them are learnt from.
    Hashed, because a vocabulary of n-grams, as skrub's ``StringEncoder`` has it, is slow to write to a model file.

    Parameters
    ----------
    n_components : int, default=30
    most_fitted : int, default=8_000
    n_hashes : int, default=16_384
    random_state : int, optional, default=0
    """

    __single_column_transformer__ = True

    def __init__(
        self,
        n_components: int = 30,
        most_fitted: int = 8_000,
        n_hashes: int = 16_384,
        random_state: int | None = 0,
    ) -> None:
        self.n_components = n_components
        self.most_fitted = most_fitted
        self.n_hashes = n_hashes
        self.random_state = random_state

    def fit(self, column: Any, y: Any = None) -> Self:
        """Learn the directions."""
        self.fit_transform(column)
        return self

    def fit_transform(self, column: Any, y: Any = None) -> Any:
        """Learn the directions; a data frame of numbers."""
        texts, places = _different(column)
        hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=self.n_hashes)
        hashed = hashing.transform(texts)
        some = hashed
        if len(texts) > self.most_fitted:
            drawn = np.random.default_rng(self.random_state).permutation(len(texts))[: self.most_fitted]
            some = hashed[np.sort(drawn)]
        n_directions = max(1, min(self.n_components, len(some.indptr) - 2))
        weights = TfidfTransformer().fit(some)
        directions = TruncatedSVD(n_directions, random_state=self.random_state).fit(weights.transform(some))
        self.encoder_ = make_pipeline(hashing, weights, directions)
        # An array is one file in a model file; a list has a node for each text.
        self.known_ = np.array(sorted(texts) if 2 * len(texts) <= len(column) else [], dtype=str)
        return self._frame(column, texts, places, directions.transform(weights.transform(hashed)))

    def transform(self, column: Any) -> Any:
        """A data frame of numbers; those of a missing text are missing."""
        texts, places = _different(column)
        return self._frame(column, texts, places, self.encoder_.transform(texts) if len(texts) else None)

    def _frame(self, column: Any, texts: Any, places: Ints, made: Floats | None) -> Any:
        import pandas as pd

        name = str(column.name)
        blocks = np.full((len(texts) + 1, len(self.encoder_[-1].components_)), np.nan)
        if made is not None:
            blocks[: len(texts)] = made
        columns = {f"{name}_{k}": values for k, values in enumerate(blocks[places].T)}
        if len(self.known_):
            place = {text: k for k, text in enumerate(self.known_.tolist())}
            codes = np.array([*(place.get(text, np.nan) for text in texts), np.nan], dtype=np.float64)
            columns[f"{name}_place"] = codes[places]
        self.all_outputs_ = list(columns)
        return pd.DataFrame(columns, index=column.index)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Of the last data frame."""
        return self.all_outputs_


def _different(column: Any) -> tuple[Any, NDArray[np.int64]]:
    """The different texts of a column, in the order they occur, and which of them each row has; -1 where none."""
    import pandas as pd

    codes, texts = pd.factorize(column)
    return pd.Series(np.asarray(texts, dtype=object), name=column.name, dtype="str"), codes


class TableColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A table as numbers: numbers and truth values less the median of their column, one column for each category,
    beside what skrub's ``TableVectorizer`` makes of all other columns.

    Categories of up to 40 values become one column each, a value that was not there in training none of them; texts
    of more values become 30 directions of their character n-grams, and where they repeat a code; dates year, month, day
    and seconds, as far as they vary. Missing numbers stay missing. A column without any value is left out, also where
    it has values later. No class is looked at.

    Parameters
    ----------
    random_state : int, optional, default=0
        Of the directions of texts.

    Attributes
    ----------
    empty_, numbers_, categories_, others_ : list
        Names of the columns of each kind.
    centres_ : (numbers,) array
        Median of each column of ``numbers_``.
    encoder_ : OneHotEncoder or None
        Fitted on ``categories_``; None where there are none.
    vectorizer_ : skrub.TableVectorizer or None
        Fitted on ``others_``; None where there are none.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Takes a data frame of pandas, any other that has ``to_pandas()``, an array, or one text per sample; a sparse matrix
    is returned as it is. Needs skrub, ``pip install 'mauc[cli]'``, as soon as there is a column of texts or dates.

    What a column holds after training that it did not hold then costs no other column: a text among numbers counts as
    missing, with a warning, and so does, without one, what is no date in a column of dates.

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

    def __init__(self, random_state: int | None = 0) -> None:
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn categories, texts and how dates are written."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn them, and return ``(N, columns)`` float64."""
        table = self._table(X, reset=True)
        if table is None:
            return X
        there = table.notna().any()
        self.empty_ = [name for name in table.columns if not there[name]]
        full = [name for name in table.columns if there[name]]
        self.numbers_ = [name for name in full if _is_number(table[name].dtype)]
        words = [name for name in full if name not in set(self.numbers_)]
        self.categories_ = [name for name in words if _is_category(table[name])]
        self.others_ = [name for name in words if name not in set(self.categories_)]
        self.encoder_ = _one_hot().fit(_values(table[self.categories_])) if self.categories_ else None
        self.vectorizer_ = _vectorizer(self.random_state, self.others_) if self.others_ else None
        numbers = self._numbers(table)
        self.centres_ = centres_of(numbers)
        others = None if self.vectorizer_ is None else self.vectorizer_.fit_transform(_by_text(table[self.others_]))
        return self._joined(table, numbers, others)

    def transform(self, X: Any) -> Any:
        """``(N, columns)`` float64"""
        check_is_fitted(self, "n_features_in_")
        table = self._table(X, reset=False)
        if table is None:
            return X
        for name in self.empty_:
            if table[name].notna().any():
                warnings.warn(f"column {name!r} was empty in training and is ignored", stacklevel=2)
        others = None if self.vectorizer_ is None else self.vectorizer_.transform(_by_text(table[self.others_]))
        return self._joined(table, self._numbers(table), others)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Of the columns that it makes."""
        check_is_fitted(self, "n_features_in_")
        words = [] if self.encoder_ is None else self.encoder_.get_feature_names_out(list(map(str, self.categories_)))
        others = [] if self.vectorizer_ is None else self.vectorizer_.get_feature_names_out()
        return np.array([*map(str, self.numbers_), *words, *others], dtype=object)

    def layout(self, coded: int = 3, free: int = 12) -> Layout:
        """Which columns trees get: of a text its ``free`` leading directions, or ``coded`` ones beside its code."""
        check_is_fitted(self, "n_features_in_")
        plain, words = list(range(len(self.numbers_))), list[tuple[int, int]]()
        place = len(plain)
        for categories in [] if self.encoder_ is None else self.encoder_.categories_:
            words.append((place, place + len(categories)))
            place += len(categories)
        made = {} if self.vectorizer_ is None else self.vectorizer_.input_to_outputs_
        transformers = {} if self.vectorizer_ is None else self.vectorizer_.transformers_
        for name, outputs in made.items():
            transformer, end = transformers[name], place + len(outputs)
            if isinstance(transformer, OneHotEncoder):
                words.append((place, end))
            elif isinstance(transformer, TextColumn):
                directions = len(transformer.encoder_[-1].components_)
                plain += range(place, place + min(directions, coded if len(transformer.known_) else free))
                plain += range(place + directions, end)
            else:
                plain += range(place, end)
            place = end
        return Layout(tuple(plain), tuple(words))

    def known_categories(self) -> dict[Any, list[Any]]:
        """The categories that each column had in training, by the column's name; missing ones are None or NaN.

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
        others = {} if self.vectorizer_ is None else self.vectorizer_.transformers_
        for name in self.others_:
            if hasattr(others.get(str(name)), "categories_"):
                found[name] = list(others[str(name)].categories_[0])
        return found

    def _table(self, X: Any, *, reset: bool) -> Any:
        """A data frame of pandas; None for a sparse matrix."""
        with needing("cli", "mauc.ensemble.TableColumns"):
            import pandas as pd

        if are_texts(X):
            X = pd.DataFrame({"text": list(X)})
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return (X if isinstance(X, pd.DataFrame) else X.to_pandas()).infer_objects()
        X = validate_data(self, X, reset=reset, accept_sparse=True, dtype=None, ensure_all_finite=False)
        return None if is_sparse(X) else pd.DataFrame(X).infer_objects()

    def _numbers(self, table: Any) -> Floats:
        """``(N, numbers)`` as one block, not column by column: a table may have thousands."""
        block = table[self.numbers_]
        if all(isinstance(kind, np.dtype) and kind.kind in NUMBERS for kind in block.dtypes):
            return np.asarray(block, dtype=np.float64)
        return np.column_stack([_as_numbers(block[name], name) for name in self.numbers_])

    def _joined(self, table: Any, numbers: Floats, others: Any) -> Floats:
        blocks: list[NDArray[Any]] = [numbers - self.centres_]
        if self.encoder_ is not None:
            blocks.append(self.encoder_.transform(_values(table[self.categories_])))
        if others is not None:
            blocks.append(np.asarray(others, dtype=np.float64))
        return np.hstack(blocks)


def _as_numbers(column: Any, name: Any) -> Floats:
    """float64, NaN where a value is missing or, with a warning, no number."""
    import pandas as pd

    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    odd = np.flatnonzero(np.isnan(numbers) & np.asarray(column.notna()))
    which = f"{column.iloc[odd[0]]!r} in row {odd[0] + 1}" if len(odd) else ""
    if len(odd):
        count = "a value that is no number" if len(odd) == 1 else f"{len(odd)} values that are no numbers"
        warnings.warn(
            f"column {name!r} held numbers in training and has {count}, such as {which}: taken as missing", stacklevel=5
        )
    return np.asarray(numbers)


def _vectorizer(random_state: int | None, names: Sequence[Any]) -> Any:
    shown = ", ".join(str(name) for name in names[:5]) + (", …" if len(names) > 5 else "")
    with needing("cli", f"a table with columns that hold no numbers ({shown})"):
        from skrub import TableVectorizer

    return TableVectorizer(low_cardinality=_one_hot(), high_cardinality=TextColumn(random_state=random_state))


def _one_hot() -> OneHotEncoder:
    """skrub's own drops one of two categories, and then an unknown one would be the one that was dropped."""
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)


def _is_category(column: Any, most: int = 40) -> bool:
    """Few different words without a digit: neither dates nor numbers in disguise, for which skrub looks at each column
    by itself. On 60 such columns it takes twenty times as long as one encoder for all.
    """
    values = column.dropna().unique()
    return len(values) <= most and all(isinstance(v, str) and not any(map(str.isdigit, v)) for v in values)


def _values(table: Any) -> NDArray[Any]:
    """As objects, whatever is missing as None, a category of its own."""
    values = table.astype(object)
    return np.asarray(values.where(values.notna(), None), dtype=object)


def _by_text(table: Any) -> Any:
    """With names of columns as text, which skrub wants."""
    return table.set_axis([str(name) for name in table.columns], axis=1)


class DenseColumns(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A sparse matrix as a dense one: as it is up to 200 columns, else its 100 leading directions (truncated SVD), gaps
    filled by means first.

    Parameters
    ----------
    n_components : int, default=100
    random_state : int, optional, default=0
    most_dense : int, default=200

    Examples
    --------
    >>> from scipy import sparse
    >>> DenseColumns().fit_transform(sparse.eye_array(2, format="csr"))
    array([[1., 0.],
           [0., 1.]])
    >>> DenseColumns(3).fit_transform(sparse.eye_array(400, format="csr")).shape
    (400, 3)
    """

    def __init__(self, n_components: int = 100, random_state: int | None = 0, most_dense: int = 200) -> None:
        self.n_components = n_components
        self.random_state = random_state
        self.most_dense = most_dense

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions, where there are many columns."""
        self.directions_ = None
        if X.shape[1] > self.most_dense:
            most = min(self.n_components, X.shape[0])
            self.directions_ = make_pipeline(_filled(), TruncatedSVD(most, random_state=self.random_state)).fit(X)
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """``(N, d)`` or ``(N, n_components)``"""
        check_is_fitted(self)
        if self.directions_ is not None:
            return np.asarray(self.directions_.transform(X))
        return np.asarray(X.toarray() if is_sparse(X) else X)


def for_sparse(model: Any) -> Any:
    """The same model for a sparse matrix, which is the same numbers in another layout.

    Standardising leaves the means in, since zeros would not stay zeros: the intercept of a linear model and the
    distances of a kernel make up for that, and both come out as on dense columns. A model that takes no sparse matrix,
    as its tags say, has :class:`DenseColumns` before it; a forest, which takes no gaps in one, an imputer.

    Standardised also where columns are words: on tf-idf of 700 docstrings in ten classes (1,381 columns, three folds)
    the three linear models have a MAUC × 100 of 93.5, 94.3 and 93.7 so, 93.8, 90.8 and 93.6 on columns scaled by their
    largest value, and the kernel 87.7 for 60.3, whose width is made for standardised columns.
    """
    adapted = clone(model)
    is_pipeline = isinstance(model, Pipeline)
    for _, step in adapted.steps if is_pipeline else []:
        if isinstance(step, StandardScaler):
            step.set_params(with_mean=False)
    if not get_tags(adapted).input_tags.sparse:
        return make_pipeline(DenseColumns(), clone(model))
    return adapted if is_pipeline else make_pipeline(_filled(), adapted)


def _filled() -> SimpleImputer:
    return SimpleImputer(keep_empty_features=True)


def transformer_for(columns: Any, X: Any, *, own_models: bool, random_state: int) -> Any:
    """What ``columns=`` of the stack asks for with this X: an unfitted transformer, or None for X as it is."""
    if isinstance(columns, str) and columns == "auto":
        if own_models or is_sparse(X):
            return None
        return CentredNumbers() if _are_numbers(X) else TableColumns(random_state)
    if columns is None:
        return None
    if isinstance(columns, type) or not hasattr(columns, "fit_transform") or not hasattr(columns, "transform"):
        advice = "pass e.g. mauc.ensemble.TableColumns()"
        raise invalid("columns", "must be 'auto', None or a transformer", repr(columns), advice)
    return columns


def _are_numbers(X: Any) -> bool:
    if are_texts(X):
        return False
    if hasattr(X, "columns"):
        # Numbers beside None are objects until pandas looks at them.
        kinds = X.infer_objects().dtypes if hasattr(X, "infer_objects") else X.dtypes
        return all(_is_number(kind) for kind in kinds)
    return X.dtype.kind in NUMBERS or (X.dtype == object and _can_be_numbers(X))


def _can_be_numbers(X: NDArray[Any]) -> bool:
    """Objects, none of them a text, that are numbers, None or NaN."""
    try:
        X.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return not any(isinstance(value, str) for value in X.flat)


def _is_number(kind: Any) -> bool:
    """The kind of a column; polars' have no code."""
    code = getattr(kind, "kind", None)
    return bool(kind.is_numeric() or str(kind) == "Boolean") if code is None else code in NUMBERS


def are_texts(X: Any) -> bool:
    """A list, series or array of one text per sample."""
    one_each = isinstance(X, list) or getattr(X, "ndim", 2) == 1
    return one_each and len(X) > 0 and isinstance(next(iter(X)), str)
