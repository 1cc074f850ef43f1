"""List the types that ``mauc fit`` writes to a model file, and find anything else in one.

A skops file is a tree of nodes in ``schema.json``. Each names a loader, which decides what skops does with the node,
and a type, which is imported. skops trusts all of scikit-learn, and any type its user adds, whichever loader asks for
it. Here a type is allowed with its own loader only, and a loader only with the fields that ``mauc fit`` writes. No
loader that calls what a file names (partials, bound methods, operators) is on the list.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Any

NUMPY_SCALARS = (
    *("bool", "bool_", "str_", "float16", "float32", "float64", "longlong", "ulonglong"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)
LOSSES = ("sklearn._loss._loss.CyHalfBinomialLoss", "sklearn._loss._loss.CyHalfMultinomialLoss")
ALLOWED: Mapping[str, frozenset[str]] = {
    "DictNode": frozenset({"builtins.dict"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "JsonNode": frozenset({"builtins.str"}),
    "NdArrayNode": frozenset({"numpy.ndarray", *(f"numpy.{name}" for name in NUMPY_SCALARS)}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "TypeNode": frozenset(
        {
            "builtins.bool",
            "builtins.float",
            "builtins.int",
            "builtins.str",
            *(f"numpy.{name}" for name in NUMPY_SCALARS),
        }
    ),
    "ConstructorFromReduceNode": frozenset({"datetime.timedelta", "datetime.timezone"}),
    "LossNode": frozenset(LOSSES),
    # No tree of scikit-learn: compiled code walks its nodes and checks no index. A file holds the nodes as arrays, and
    # mauc._tables.model_file checks them when it makes the trees.
    "ObjectNode": frozenset(
        {
            "mauc.ensemble.bases.BoostedTrees",
            "mauc.ensemble.bases.KernelColumns",
            "mauc.ensemble.calibration.Calibration",
            "mauc.ensemble.classifier.MAUCStackingClassifier",
            "mauc.ensemble.columns.DateColumn",
            "mauc.ensemble.columns.TableColumns",
            "mauc.ensemble.columns.TextColumn",
            "mauc.ensemble.columns.TextPlace",
            "mauc.ensemble.combination.Combination",
            "mauc.ensemble.fitting.FoldAverage",
            "mauc.ensemble.odds.ProportionalOdds",
            "mauc.ensemble.perceptron.BalancedPerceptron",
            "mauc.ensemble.tree_columns.TreeColumns",
            "mauc.linear.classifier.MAUCClassifier",
            # Dates with an offset from UTC: pandas 3 names the public module, pandas 2 the one that defines it.
            "pandas.DatetimeTZDtype",
            "pandas.core.dtypes.dtypes.DatetimeTZDtype",
            *LOSSES,
            "sklearn._loss.link.Interval",
            "sklearn._loss.link.LogitLink",
            "sklearn._loss.link.MultinomialLogit",
            "sklearn._loss.loss.HalfBinomialLoss",
            "sklearn._loss.loss.HalfMultinomialLoss",
            "sklearn.decomposition._truncated_svd.TruncatedSVD",
            "sklearn.ensemble._forest.ExtraTreesClassifier",
            "sklearn.ensemble._forest.RandomForestClassifier",
            "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
            "sklearn.feature_extraction.text.HashingVectorizer",
            "sklearn.feature_extraction.text.TfidfTransformer",
            "sklearn.impute._base.SimpleImputer",
            "sklearn.kernel_approximation.Nystroem",
            "sklearn.linear_model._logistic.LogisticRegression",
            "sklearn.pipeline.Pipeline",
            "sklearn.preprocessing._data.StandardScaler",
            "sklearn.preprocessing._encoders.OneHotEncoder",
            "sklearn.preprocessing._label.LabelEncoder",
            "sklearn.tree._classes.DecisionTreeClassifier",
            "sklearn.tree._classes.ExtraTreeClassifier",
            "skrub._clean_null_strings.CleanNullStrings",
            "skrub._drop_uninformative.DropUninformative",
            "skrub._to_datetime.ToDatetime",
            "skrub._to_str.ToStr",
        }
    ),
}
# The only value allowed for attributes that could make a listed class read or write files, or start processes.
FIXED = {
    "decode_error": '"strict"',
    "encoding": '"utf-8"',
    "input": '"content"',
    "memory": "null",
    "n_jobs": "null",
}
# A setting that is text must be a plain word. A file name, a data type such as "datetime64[ns, ZONE]" or a format
# string is not one, so it does not matter what pandas or scikit-learn would do with it.
WORD = re.compile(r"[\w.+-]*", re.ASCII)
ZONE = re.compile(r"(?!dateutil/)[A-Za-z][\w+:-]*(/[A-Za-z][\w+-]*){0,2}", re.ASCII)
ANY = re.compile(r".*", re.DOTALL)
TEXTS = {
    "format_": ANY,  # of dates, used by strptime only
    "input_name_": ANY,  # of a column
    # pandas opens the file that is named after "dateutil/".
    "output_time_zone_": ZONE,
    "tz": ZONE,
    "token_pattern": ANY,  # may be slow, like anything in a forged model
}
BIT_GENERATORS = frozenset(f'"{name}"' for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"))

Node = dict[str, Any]
COMMON = frozenset({"__class__", "__module__", "__loader__", "__id__"})
# The other fields of a node; those of loaders that are not here are the content alone.
FIELDS: Mapping[str, tuple[Collection[str], ...]] = {
    "DictNode": ({"key_types", "content"},),
    "JsonNode": ({"content", "is_json"},),
    "NdArrayNode": ({"type", "file"}, {"type", "content", "shape"}),
    "ObjectNode": ({"content"}, set()),
    "LossNode": ({"__reduce__", "content"},),
    "TypeNode": (set(),),
}
ARRAY_FILE = re.compile(r"[0-9]+\.npy", re.ASCII)


class Malformed(ValueError):
    """The tree is not one that skops writes."""


def foreign_parts(schema: Any, files: Collection[str] = ()) -> list[str]:
    """Return the names of all parts of a model file that ``mauc fit`` does not write; import only listed modules.

    ``files`` are the array files in the archive. Raises :class:`Malformed` where the tree itself is forged.
    """
    if not isinstance(schema, dict):
        raise Malformed("no tree")
    listed: list[Node] = []
    found: set[str] = set()
    alike: dict[int, Any] = {}
    waiting = [{key: value for key, value in schema.items() if key not in ("protocol", "_skops_version")}]
    while waiting:
        node = waiting.pop()
        _check_common(node)
        loader, name = node["__loader__"], _name(node)
        if name in ALLOWED.get(loader, ()) and "." not in node["__class__"]:
            waiting.extend(_children(node, files))
            listed.append(node)
            # skops replaces a node by an earlier one of the same number, whatever it holds.
            if alike.setdefault(node["__id__"], _identity(node)) != _identity(node):
                raise Malformed("two different nodes of one number")
        else:
            found.add(name if loader == "ObjectNode" else f"{name} ({loader})")
            waiting.extend(_nodes_within([value for key, value in node.items() if key not in COMMON]))
    if not found:
        found.update(name for name in set(map(_name, listed)) if not is_itself(name))
        found.update(harmful for node in listed for harmful in _harmful_attributes(node))
    return sorted(found)


def is_itself(name: str) -> bool:
    """Return whether a listed name leads to something that was defined under this name; import its module."""
    module, _, attribute = name.rpartition(".")
    if module in ("builtins", "numpy", "datetime"):
        return True
    try:
        thing = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        if isinstance(error, ImportError) and error.name == module.partition(".")[0]:
            raise  # the library is not installed
        return False
    return f"{thing.__module__}.{thing.__qualname__}" == name


def _name(node: Node) -> str:
    return f"{node['__module__']}.{node['__class__']}"


def _check_common(node: Any) -> None:
    if not isinstance(node, dict) or not node.keys() >= COMMON:
        raise Malformed("a node that lacks its type")
    if not all(isinstance(node[key], str) for key in ("__class__", "__module__", "__loader__")):
        raise Malformed("a type that is no text")
    if type(node["__id__"]) is not int:
        raise Malformed("a node without a number")


def _children(node: Node, files: Collection[str]) -> list[Node]:
    """Return the child nodes; raise Malformed unless the node has the fields of its loader, and they hold nodes."""
    loader, fields = node["__loader__"], node.keys() - COMMON
    if fields not in FIELDS.get(loader, ({"content"},)):
        raise Malformed(f"other fields than those of a {loader}")
    if loader == "JsonNode":
        if not isinstance(node["content"], str):
            raise Malformed("the content of a JsonNode")
        return []
    if "file" in fields:
        file = node["file"]
        if not (isinstance(file, str) and ARRAY_FILE.fullmatch(file) and file in files):
            raise Malformed(f"the file {file!r}")
        return []
    return list(_nodes_within([node[field] for field in fields - {"type"}], nothing_else=True))


def _nodes_within(values: list[Any], *, nothing_else: bool = False) -> Iterator[Node]:
    """Yield the nodes in nested dicts and lists, which may have to hold ``nothing_else``."""
    while values:
        value = values.pop()
        if isinstance(value, dict) and value.keys() >= COMMON:
            yield value
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)
        elif nothing_else:
            raise Malformed("a value that is no node")


def _identity(node: Node) -> Any:
    """Return what nodes of one number must have in common: the type, and what the check of attributes looks at.

    The attributes of an object may have other numbers each time that it is saved; they are checked each time.
    """
    content = _json_of(node)
    if node["__loader__"] == "DictNode" and isinstance(node["content"], dict):
        content = {key: isinstance(child, dict) and child.get("__id__") for key, child in node["content"].items()}
    return node["__loader__"], _name(node), content, node.get("file")


def _harmful_attributes(node: Node) -> Iterator[str]:
    """Yield the attributes of a listed type that would make it do more than predict."""
    loader: str = node["__loader__"]
    content: Any = node.get("content")
    if loader == "RandomGeneratorNode":
        state = content["bit_generator"]
        kind = state["content"].get("bit_generator") if state["__loader__"] == "DictNode" else None
        if kind is None or _json_of(kind) not in BIT_GENERATORS:
            yield "numpy.random._generator.Generator of an unknown kind"
    if loader != "ObjectNode" or content is None or _json_of(content) == "null":
        return
    if content["__loader__"] != "DictNode":
        yield f"{node['__class__']} with attributes that are no dict"
        return
    for key, value in content["content"].items():
        # From an attribute whose name begins with __ NumPy would take an address in memory.
        harmful = key.startswith("__") or (key in FIXED and _json_of(value) != FIXED[key])
        text = None if key in FIXED else _text_of(value)
        if harmful or (text is not None and not TEXTS.get(key, WORD).fullmatch(text)):
            yield f"{node['__class__']}.{key}"


def _json_of(node: Node) -> Any:
    return node["content"] if node["__loader__"] == "JsonNode" else None


def _text_of(node: Node) -> str | None:
    """Return the text that skops makes of a node; None if it makes something else."""
    if node["__loader__"] == "NdArrayNode" and node["__class__"] == "str_":
        return "\0"  # mauc fit writes none; matches no pattern
    try:
        value = None if _json_of(node) is None else json.loads(_json_of(node))
    except ValueError:
        raise Malformed("the content of a JsonNode") from None
    return value if isinstance(value, str) else None
