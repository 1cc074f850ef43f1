"""List the types that ``mauc fit`` writes to a model file, and find anything else in one.

A skops file is a tree of nodes in ``schema.json``. Each names a loader, which decides what skops does with the node,
and a type, which is imported. skops trusts all of scikit-learn, and any type its user adds, whichever loader asks for
it. Here a type is allowed with its own loader only, and a loader only with the fields that ``mauc fit`` writes. No
loader that calls what a file names (partials, bound methods, operators) is on the list.
"""

import json
import re
from collections import defaultdict
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
    # Trees are arrays that compiled code walks: a forged one may crash the process, but cannot run code.
    "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
    "ObjectNode": frozenset(
        {
            "mauc.ensemble.bases.BoostedTrees",
            "mauc.ensemble.bases.KernelColumns",
            "mauc.ensemble.calibration.Calibration",
            "mauc.ensemble.classifier.MAUCStackingClassifier",
            "mauc.ensemble.columns.TableColumns",
            "mauc.ensemble.columns.TextColumn",
            "mauc.ensemble.columns.TextPlace",
            "mauc.ensemble.combination.Combination",
            "mauc.ensemble.fitting.FoldAverage",
            "mauc.ensemble.odds.ProportionalOdds",
            "mauc.ensemble.perceptron.BalancedPerceptron",
            "mauc.ensemble.tree_columns.TreeColumns",
            "mauc.linear.classifier.MAUCClassifier",
            "mauc.linear.search.MAUCClassifierCV",
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
            "skrub._datetime_encoder.DatetimeEncoder",
            "skrub._drop_uninformative.DropUninformative",
            "skrub._duration_to_float.DurationToFloat",
            "skrub._table_vectorizer.PassThrough",
            "skrub._to_datetime.ToDatetime",
            "skrub._to_float.ToFloat",
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
    "_thousand": re.compile(r".?"),  # between thousands, in numbers
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
FIELDS = {
    "DictNode": {"key_types", "content"},
    "JsonNode": {"content", "is_json"},
    "TreeNode": {"__reduce__", "content"},
    "LossNode": {"__reduce__", "content"},
    "TypeNode": set(),
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
    # skops replaces a node by an earlier one of the same number, whatever it holds: check nodes of a number together.
    by_id: dict[int, list[Node]] = defaultdict(list)
    found: set[str] = set()
    waiting = [{key: value for key, value in schema.items() if key not in ("protocol", "_skops_version")}]
    while waiting:
        node = waiting.pop()
        _check_common(node)
        by_id[node["__id__"]].append(node)
        loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
        if name in ALLOWED.get(loader, ()) and "." not in node["__class__"]:
            waiting.extend(_children(node, files))
        else:
            found.add(name if loader == "ObjectNode" else f"{name} ({loader})")
            waiting.extend(_nodes_within([value for key, value in node.items() if key not in COMMON]))
    names = {f"{n['__module__']}.{n['__class__']}" for same in by_id.values() for n in same}
    if not found:
        found.update(name for name in names if not is_itself(name))
        found.update(_harmful_attributes(by_id))
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


def _check_common(node: Any) -> None:
    if not isinstance(node, dict) or not node.keys() >= COMMON:
        raise Malformed("a node that lacks its type")
    if not all(isinstance(node[key], str) for key in ("__class__", "__module__", "__loader__")):
        raise Malformed("a type that is no text")
    if type(node["__id__"]) is not int:
        raise Malformed("a node without a number")


def _children(node: Node, files: Collection[str]) -> list[Node]:
    """Return the child nodes; raise Malformed unless the node has the fields of its loader, each of its kind."""
    loader, content = node["__loader__"], node.get("content")
    fields = node.keys() - COMMON
    if loader == "ObjectNode" and not fields:
        return []
    if loader == "NdArrayNode":
        return _children_of_array(node, fields, files)
    if fields != FIELDS.get(loader, {"content"}):
        raise Malformed(f"other fields than those of a {loader}")
    if loader == "TypeNode":
        return []
    if loader == "JsonNode" and isinstance(content, str):
        return []
    if loader == "DictNode" and isinstance(content, dict):
        return [node["key_types"], *content.values()]
    if loader in ("ListNode", "TupleNode") and isinstance(content, list):
        return content
    if loader in ("ObjectNode", "DTypeNode", "ConstructorFromReduceNode") and isinstance(content, dict):
        return [content]
    if loader in ("TreeNode", "LossNode") and isinstance(content, dict):
        reduced = node["__reduce__"]
        if isinstance(reduced, dict) and reduced.keys() == {"args"}:
            return [content, reduced["args"]]
    if (
        loader == "RandomGeneratorNode"
        and isinstance(content, dict)
        and content.keys() == {"bit_generator", "seed_seq"}
    ):
        return [content["bit_generator"], content["seed_seq"]]
    raise Malformed(f"the content of a {loader}")


def _children_of_array(node: Node, fields: Collection[str], files: Collection[str]) -> list[Node]:
    if node.get("type") == "numpy" and fields == {"type", "file"}:
        file = node["file"]
        if isinstance(file, str) and ARRAY_FILE.fullmatch(file) and file in files:
            return []
        raise Malformed(f"the file {file!r}")
    if node.get("type") == "json" and fields == {"type", "content", "shape"} and isinstance(node["content"], list):
        return [*node["content"], node["shape"]]
    raise Malformed("the content of a NdArrayNode")


def _nodes_within(values: list[Any]) -> Iterator[Node]:
    """Yield whatever looks like a node within an unknown loader's node, so that a refusal can name it."""
    while values:
        value = values.pop()
        if isinstance(value, dict) and value.keys() >= COMMON:
            yield value
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, list):
            values.extend(value)


def _harmful_attributes(by_id: Mapping[int, list[Node]]) -> Iterator[str]:
    """Yield listed types whose attributes would make them do more than predict."""
    # Thousands of nodes may share one number: each number is checked once.
    contents: dict[int, set[str | None]] = {}
    texts: dict[int, set[str]] = {}

    def is_json(node: Node, allowed: Collection[str]) -> bool:
        number = node["__id__"]
        if number not in contents:
            contents[number] = {n["content"] if n["__loader__"] == "JsonNode" else None for n in by_id[number]}
        return all(content is not None and content in allowed for content in contents[number])

    def texts_of(number: int) -> set[str]:
        if number not in texts:
            texts[number] = {text for n in by_id[number] if (text := _text_of(n)) is not None}
        return texts[number]

    checked: set[tuple[str, int]] = set()
    for node in (node for same in by_id.values() for node in same):
        if node["__loader__"] == "RandomGeneratorNode":
            for state in by_id[node["content"]["bit_generator"]["__id__"]]:
                name = state["content"].get("bit_generator") if state["__loader__"] == "DictNode" else None
                if name is None or not is_json(name, BIT_GENERATORS):
                    yield "numpy.random._generator.Generator of an unknown kind"
        if node["__loader__"] != "ObjectNode" or "content" not in node:
            continue
        if (node["__class__"], node["content"]["__id__"]) in checked:
            continue
        checked.add((node["__class__"], node["content"]["__id__"]))
        for attributes in by_id[node["content"]["__id__"]]:
            if attributes["__loader__"] != "DictNode":
                if not is_json(attributes, ("null",)):
                    yield f"{node['__class__']} with attributes that are no dict"
                continue
            for key, value in attributes["content"].items():
                # From an attribute of such a name NumPy would take an address in memory.
                harmful = key.startswith("__") or (key in FIXED and not is_json(value, (FIXED[key],)))
                found = () if key in FIXED else texts_of(value["__id__"])
                if harmful or any(not TEXTS.get(key, WORD).fullmatch(text) for text in found):
                    yield f"{node['__class__']}.{key}"


def _text_of(node: Node) -> str | None:
    """Return the text that skops makes of a node; None if it makes something else."""
    if node["__loader__"] == "NdArrayNode" and node["__class__"] == "str_":
        return "\0"  # mauc fit writes none; matches no pattern
    if node["__loader__"] != "JsonNode":
        return None
    try:
        value = json.loads(node["content"])
    except ValueError:
        raise Malformed("the content of a JsonNode") from None
    return value if isinstance(value, str) else None
