"""Write and read model files: skops, never pickle. Loading runs only code of listed types, unless the user trusts it.

A file is read once, its archive checked and unpacked within bounds (:mod:`mauc._archive`), and its tree compared with
the list (:mod:`mauc._tables.model_schema`). skops then loads an archive made anew from the parts that were checked.
"""

import io
import json
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mauc._archive import GB, MAX_SIZE, Refused, TooLarge, check_header, open_archive, printable, read_member
from mauc._io import write_whole
from mauc._tables.errors import Failure, in_python, option_name
from mauc._tables.model_schema import ALLOWED, Malformed, foreign_parts
from mauc._tables.text import COMMAS

FORMAT = "mauc model 6"
SCHEMA = "schema.json"
CLASS_TYPES: dict[str, Any] = {"text": str, "int": int, "float": float, "bool": lambda name: name == "True"}
"""How to read a class again whose column holds such values."""
REAL = (ImportError, MemoryError, OSError)
"""Errors whose cause is not the content of the file: they are raised unchanged."""
SCHEMA_SHARE = 0.25  # of the size allowed: as Python objects the tree takes several times its length


@dataclass(frozen=True, repr=False)
class TableModel:
    """A model of a table, as a file holds it: a fitted stack, and the columns that it takes."""

    classifier: Any
    """A :class:`mauc.ensemble.MAUCStackingClassifier` of tables."""
    kinds: dict[str, str]
    target: str
    about: str
    decision: dict[str, Any]
    """How to decide by the scores (:mod:`mauc._tables.decide`)."""
    trained: Any
    """Hashes of the training rows that occur once (:func:`mauc._tables.saved_scores.row_hashes`)."""
    class_type: str = "text"
    """Type of the classes in :meth:`predict` and :meth:`predict_proba`: a key of :data:`CLASS_TYPES`."""
    missing: tuple[str, ...] = ()
    commas: str = ""
    pointed: tuple[str, ...] = ()
    """How the training table was read, and new ones are: see :class:`mauc._tables.text.Reading`."""

    def __repr__(self) -> str:
        return f"<TableModel of {self.target!r}: {self.about}; {len(self.classes)} classes, {len(self.kinds)} columns>"

    def predict_proba(self, table: Any) -> Any:
        """Return a data frame of probabilities, which sum to 1 in each row; the classes are sorted.

        The table needs the columns of the training table. To rank rows use :meth:`decision_function`: a probability
        among all classes favours the frequent ones, and its multiclass AUC is lower where classes overlap.
        """
        scores = self.decision_function(table)
        return scores.div(scores.sum(axis=1), axis=0)

    def decision_function(self, table: Any) -> Any:
        """Return a data frame of the scores that ``mauc fit`` tests and ``mauc predict`` writes; classes are sorted.

        The score of a class is its calibrated probability against all others, so rows need not sum to 1; or that among
        all classes, if it ranked the validation rows better.
        """
        import pandas as pd

        classes, (scores, index) = self._typed_classes(), self._scores_of(table)
        order = sorted(range(len(classes)), key=classes.__getitem__)  # 2 before 10
        return pd.DataFrame(scores[:, order], columns=[classes[k] for k in order], index=index)

    def predict(self, table: Any) -> Any:
        """Return a series of the predicted classes, one for each row: of equally good ones the first in the model."""
        import pandas as pd

        classes, (scores, index) = self._typed_classes(), self._scores_of(table)
        return pd.Series([classes[k] for k in self.decided(scores)], index=index, name=self.target)

    def _scores_of(self, table: Any) -> tuple[Any, Any]:
        """Return the ``(N, C)`` scores of a user's data frame, and its index."""
        from mauc._tables.columns import same_columns
        from mauc._tables.read import as_frame, as_read

        table = as_frame(table)
        with in_python():
            known, _ = same_columns(as_read(table, self.missing), self, Path("the table"))
            scores = self.scores(known)
        return scores, table.index

    def _typed_classes(self) -> list[Any]:
        return [CLASS_TYPES[self.class_type](name) for name in self.classes]

    def scores(self, table: Any, path: Path = Path("the table")) -> Any:
        """Return ``(N, C)`` finite scores, columns in the order of ``classifier.classes_``."""
        scores = np.asarray(self.classifier.predict_proba(table), dtype=np.float64)
        if not np.isfinite(scores).all():
            raise Failure(f"the model gives no finite score for some rows of {path}: look for huge numbers in it")
        return scores

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of the scores."""
        return [str(c) for c in self.classifier.classes_]

    @property
    def columns(self) -> Any:
        """The fitted :class:`mauc.ensemble.TableColumns`."""
        return self.classifier.columns_

    def decided(self, scores: Any) -> Any:
        """Return ``(N,)`` index of the predicted class in ``classifier.classes_``."""
        from mauc._tables.decide import decisions_of

        return decisions_of(scores, self.decision)


def load_skops() -> Any:
    """Import skops without torch and other array libraries.

    skops imports all of scikit-learn to list its classes, and that imports every installed array library, and pytest.
    These are hidden from this thread during the import, which then takes 0.2 s instead of 1.3 s or more.
    """
    hidden = _NoArrayLibraries()
    sys.meta_path.insert(0, hidden)
    try:
        import skops.io
    finally:
        sys.meta_path.remove(hidden)
    return skops


class _NoArrayLibraries:
    """An import finder that hides array libraries from the thread that made it, unless they are imported already."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, *_: Any) -> None:
        """Raise ModuleNotFoundError for a hidden library; leave all others to the next finder."""
        if name in ("torch", "dask", "cupy", "pytest") and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


def check_clock() -> None:
    """Refuse a clock that shows a year which the archive of a model file cannot hold."""
    year = time.localtime().tm_year
    if not 1980 <= year <= 2107:
        raise Failure(f"the clock must show a year from 1980 to 2107 to write a model file, got {year}: set the clock")


def write_model(path: Path, model: TableModel) -> None:
    """Write the file in one step: a run that is killed leaves the old file, or none."""
    check_clock()
    skops = load_skops()
    parts = {name: getattr(model, name) for name in TableModel.__dataclass_fields__}
    with packed_trees(parts):
        data = skops.io.dumps({"format": FORMAT, **parts})
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member.filename: archive.read(member) for member in archive.infolist()}
    # skops indents its tree, which makes it five times longer.
    members[SCHEMA] = json.dumps(json.loads(members[SCHEMA]), separators=(",", ":")).encode()
    # Level 1 takes a third of the time of level 6, and the file is a quarter larger.
    write_whole(path, _packed(members, zipfile.ZIP_DEFLATED, level=1))


def is_model(path: Path) -> bool:
    """Return whether a file looks like a model file, by the directory of its archive alone."""
    try:
        with zipfile.ZipFile(path) as archive:
            return SCHEMA in archive.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


def load_model(path: str | Path, *, trust: bool = False, max_size: float = MAX_SIZE) -> TableModel:
    """Load a model that ``mauc fit`` or ``FittedTable.save`` wrote.

    The model has ``decision_function(frame)``, ``predict_proba(frame)`` and ``predict(frame)``. Loading runs only code
    of listed types: a file with other types is refused.

    Parameters
    ----------
    path : str or Path
        A model file, such as ``model.skops``.
    trust : bool, default=False
        Load types that mauc does not know, which may run code.
    max_size : float
        How many GB unpacking may add to the size of the file.

    Examples
    --------
    >>> from mauc import load_model
    >>> model = load_model("model.skops")  # doctest: +SKIP
    >>> model.predict_proba(frame)  # doctest: +SKIP
    """
    with in_python("trust", "max_size"):
        return read_model(Path(path), trust=trust, max_size=max_size)


def read_model(path: Path, *, trust: bool = False, max_size: float = MAX_SIZE) -> TableModel:
    """Return the model in a file; refuse parts that ``mauc fit`` does not write, unless trusted.

    ``max_size`` is how many GB unpacking may add to the file's size, trusted or not.
    """
    skops = load_skops()
    if path.is_dir():
        raise Failure(f"{path} is a folder: name the model file that mauc fit wrote")
    if path.exists() and not path.is_file():
        raise Failure(f"{path} is not a regular file: name the model file that mauc fit wrote")
    # The advice does not name the given file: mauc fit would overwrite it, and it may hold the user's data.
    another = f"{path} is damaged or not a mauc model: mauc fit TABLE --target COLUMN writes one, model.skops"
    # Read once: what is checked must be what is loaded.
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        raise Failure(another)
    try:
        members = _members(data, max_size, trust=trust)
        schema = json.loads(members[SCHEMA])
        foreign = [] if trust else foreign_parts(schema, members.keys() - {SCHEMA})
        clean = _packed(members, zipfile.ZIP_STORED)
        # Without --trust, skops may load the types listed here; there is no need to ask it for types it would refuse.
        needed = skops.io.get_untrusted_types(data=clean) if trust else set().union(*ALLOWED.values())
    except TooLarge as error:
        raise Failure(f"{path} {error}: raise {option_name('max-size')} if you trust the file") from None
    except Refused as error:
        raise Failure(f"{path} is not loaded, because it {error}: mauc fit writes no such file") from None
    except Malformed as error:
        raise Failure(
            f"{path} is not loaded: its tree is not one that mauc fit writes ({printable(str(error))}), so the file is "
            "damaged or forged"
        ) from None
    except REAL:
        raise
    except Exception:
        raise Failure(another) from None
    if foreign:
        names = ", ".join(map(printable, foreign[:6])) + (f" and {len(foreign) - 6} more" if len(foreign) > 6 else "")
        raise Failure(
            f"{path} holds types that mauc does not know, and loading them could run their code: {names}\n"
            f"pass {option_name('trust')} if you know where the file comes from"
        )
    try:
        parts = skops.io.loads(clean, trusted=sorted(needed))
        unpack_trees(parts)
    except REAL:
        raise
    except Exception as error:
        reason = printable(str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise Failure(f"{path} cannot be loaded ({reason}): train it again with this version of mauc") from error
    model = _checked_model(parts)
    if model is None:
        raise Failure(another)
    return model


def _members(data: bytes, max_size: float, *, trust: bool) -> dict[str, bytes]:
    """Return the tree and the arrays by file name; refuse other files, unless trusted."""
    with open_archive(io.BytesIO(data), max_size) as archive:
        for member in archive.infolist():
            if member.filename == SCHEMA and member.file_size > max_size * SCHEMA_SHARE * GB:
                raise TooLarge(f"holds a tree of {member.file_size / GB:.2g} GB")
            if member.filename != SCHEMA and not member.filename.endswith(".npy") and not trust:
                raise Refused(f"holds the file {printable(member.filename)!r}")
        members = {member.filename: read_member(archive, member) for member in archive.infolist()}
    for name, content in members.items():
        if name.endswith(".npy"):
            check_header(io.BytesIO(content), len(content), name)
    return members


def _packed(members: Mapping[str, bytes], method: int, level: int | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression=method, compresslevel=level) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _checked_model(parts: Any) -> TableModel | None:
    """Return the model of these parts; None if one is missing or is not of the right type."""
    from mauc.ensemble import MAUCStackingClassifier, TableColumns

    types: dict[str, type] = dict.fromkeys(("target", "about", "class_type", "commas"), str)
    types |= dict.fromkeys(("kinds", "decision"), dict) | dict.fromkeys(("missing", "pointed"), tuple)
    types |= {"classifier": MAUCStackingClassifier, "trained": np.ndarray}
    if not isinstance(parts, dict) or parts.get("format") != FORMAT:
        return None
    if not all(isinstance(parts.get(name), kind) for name, kind in types.items()):
        return None
    model = TableModel(**{name: parts[name] for name in types})
    texts = (*model.kinds, *model.kinds.values(), *model.missing, *model.pointed)
    is_sound = (
        isinstance(getattr(model.classifier, "columns_", None), TableColumns)
        and hasattr(model.classifier, "classes_")
        and model.decision.keys() == {"scale", "offsets", "lowest", "costs"}
        and model.trained.dtype == np.uint64
        and model.trained.ndim == 1
        and all(isinstance(text, str) for text in texts)
        and model.commas in ("", *COMMAS)
        and model.class_type in CLASS_TYPES
        and _have_values(model)
    )
    return model if is_sound else None


def _have_values(model: TableModel) -> bool:
    """Return whether the names of the classes can be read as different values of their type."""
    try:
        return len(set(model._typed_classes())) == len(model.classes)
    except ValueError:
        return False


# Boosted trees and forests are lists of small objects, and a file of thousands of these takes seconds to write and to
# read: five forests in 55,000 objects took 2.5 s to load, as arrays 0.3 s. So in a file all trees of a model are one
# array of nodes, one of where each tree ends, and one or two more. scikit-learn has no public call for this: boosted
# trees are read from ``_predictors``, those of forests by their pickling methods. Tests fail if a new release differs.


@contextmanager
def packed_trees(model: Any) -> Iterator[None]:
    """Replace the trees of the boosted models and forests within ``model`` by arrays, inside the context."""
    found = list(_tree_models(model))
    before = [getattr(each, name) for each, name in found]
    try:
        for each, name in found:
            pack = _pack_boosted if name == "_predictors" else _pack_forest
            setattr(each, name, pack(getattr(each, name)))
        yield
    finally:
        for (each, name), trees in zip(found, before, strict=True):
            setattr(each, name, trees)


def unpack_trees(model: Any) -> None:
    """Turn the arrays into trees again; raise an error for other trees, or if a node leads nowhere."""
    for each, name in _tree_models(model):
        if name == "_predictors":
            each._predictors = _unpack_boosted(each._predictors, each)
        else:
            each.estimators_ = _unpack_forest(each.estimators_, int(each.n_features_in_), int(each.n_classes_))


def _tree_models(model: Any) -> Iterator[tuple[Any, str]]:
    """Yield each tree model within estimators, lists and dicts once, with the attribute that holds its trees."""
    from sklearn.base import BaseEstimator
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier

    waiting, seen = [model], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, HistGradientBoostingClassifier):
            yield each, "_predictors"
        elif isinstance(each, RandomForestClassifier | ExtraTreesClassifier):
            yield each, "estimators_"
        elif isinstance(each, BaseEstimator):
            waiting.extend(vars(each).values())
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)


def _pack_boosted(trees: list[list[Any]]) -> dict[str, Any]:
    every = [tree for of_round in trees for tree in of_round]
    return {
        "nodes": np.concatenate([tree.nodes for tree in every]),
        "ends": np.cumsum([len(tree.nodes) for tree in every]),
        "per_round": len(trees[0]),
    }


def _unpack_boosted(arrays: dict[str, Any], model: Any) -> list[list[Any]]:
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    nodes = np.split(arrays["nodes"], arrays["ends"][:-1])
    n_classes, step = len(model.classes_), arrays["per_round"]
    if not step == model.n_trees_per_iteration_ == (1 if n_classes <= 2 else n_classes) or len(nodes) % step:
        raise ValueError("the number of trees per round does not fit the classes")
    # Prediction compares its columns with n_features_in_, unless a preprocessor makes others of them.
    if model._preprocessor is not None or arrays["nodes"]["is_categorical"].any():
        raise ValueError("a boosted tree splits by categories, which mauc fit does not train")
    for tree in nodes:
        inner = np.flatnonzero(tree["is_leaf"] == 0)
        _check_nodes(tree, inner, "left", "right", "feature_idx", int(model.n_features_in_))
    no_categories = np.zeros((0, 8), dtype=np.uint32)
    trees = [TreePredictor(tree, no_categories, no_categories) for tree in nodes]
    return [trees[k : k + step] for k in range(0, len(trees), step)]


def _pack_forest(trees: list[Any]) -> dict[str, Any]:
    states = [tree.tree_.__getstate__() for tree in trees]
    first = copy(trees[0])
    del first.tree_  # a file holds no tree whose nodes are not checked
    return {
        "first": first,
        "nodes": np.concatenate([state["nodes"] for state in states]),
        "values": np.concatenate([state["values"] for state in states]),
        "ends": np.cumsum([state["node_count"] for state in states]),
        "depths": np.array([state["max_depth"] for state in states]),
    }


def _unpack_forest(arrays: dict[str, Any], n_features: int, n_classes: int) -> list[Any]:
    from sklearn.tree._tree import Tree

    trees = []
    parts = (np.split(arrays[name], arrays["ends"][:-1]) for name in ("nodes", "values"))
    for nodes, values, depth in zip(*parts, arrays["depths"], strict=True):
        inner = np.flatnonzero(nodes["left_child"] != -1)
        _check_nodes(nodes, inner, "left_child", "right_child", "feature", n_features)
        tree = copy(arrays["first"])
        tree.tree_ = Tree(n_features, np.array([n_classes], dtype=np.intp), 1)
        state = {"max_depth": int(depth), "node_count": len(nodes), "nodes": nodes, "values": values}
        tree.tree_.__setstate__(state)
        trees.append(tree)
    return trees


def _check_nodes(tree: Any, inner: Any, left: str, right: str, feature: str, n_features: int) -> None:
    """Refuse nodes by which prediction, which checks no index, would read outside of the arrays or never end."""
    nodes = tree[inner]
    first, last = (which(nodes[left], nodes[right]) for which in (np.minimum, np.maximum))
    if not len(tree) or (first <= inner).any() or (last >= len(tree)).any():
        raise ValueError("a node leads out of its tree")
    if (nodes[feature] < 0).any() or (nodes[feature] >= n_features).any():
        raise ValueError("a node of a tree names a column that does not exist")
