"""Forged model files: each is refused, or it loads and scores rows; none crashes the process or runs for ever."""

import io
import json
import tempfile
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from mauc import MAUCStackingClassifier
from mauc._tables.columns import read_kinds
from mauc._tables.errors import Failure
from mauc._tables.model_file import TableModel, read_model, write_model
from mauc.ensemble import TableColumns
from mauc.ensemble.bases import BoostedTrees

SCHEMA = "schema.json"
FAR = (-(2**31), -50_000, -2, -1, 0, 1, 2, 3, 7, 50_000, 2**31 - 1, 2**40, 2**62)
TABLE = pd.DataFrame({"a": np.tile(np.arange(10.0), 9), "b": np.repeat(np.arange(9.0), 10)})
CLASSES = np.repeat(["elm", "oak", "yew"], 30)


def run(rng: np.random.Generator) -> None:
    """Forge nodes of trees that the file holds, or put a tree of its own into the file."""
    members = dict(genuine())
    if rng.random() < 0.5:
        _forge_nodes(rng, members)
        _read(members)
    else:
        _plant_tree(rng, members)
        assert not _read(members), "a tree that nobody checks was loaded"


@cache
def genuine() -> dict[str, bytes]:
    """The members of a model file with a forest and boosted trees."""
    of_trees = [
        ("et", ExtraTreesClassifier(4, random_state=0)),
        ("hgb", BoostedTrees(max_iter=3, min_samples_leaf=5)),
    ]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        stack = MAUCStackingClassifier(of_trees, cv=2, columns=TableColumns()).fit(TABLE, CLASSES)
        stack.set_params(estimators=None)  # the unfitted models
        decision = {"scale": 1.0, "offsets": np.zeros(3), "lowest": np.full(3, 1e-12), "costs": None}
        hashes = np.zeros(0, dtype=np.uint64)
        path = Path(folder) / "model.skops"
        write_model(path, TableModel(stack, read_kinds(TABLE), "kind", "a model", decision, hashes))
        assert np.isfinite(read_model(path).scores(TABLE)).all()
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


def _forge_nodes(rng, members):
    """Change some fields of some nodes in one array of nodes."""
    arrays = {name: np.load(io.BytesIO(data)) for name, data in members.items() if name.endswith(".npy")}
    nodes = [name for name, array in arrays.items() if array.dtype.names]
    assert nodes, "the model holds no nodes"
    name = str(rng.choice(nodes))
    array = arrays[name].copy()
    for _ in range(int(rng.integers(1, 4))):
        field = str(rng.choice(array.dtype.names))
        if array.dtype[field].kind in "iu":
            value = np.array(int(rng.choice(FAR))).astype(array.dtype[field])
            array[field][int(rng.integers(len(array)))] = value
    buffer = io.BytesIO()
    np.save(buffer, array)
    members[name] = buffer.getvalue()


def _plant_tree(rng, members):
    """Replace a random part of the model by a tree whose nodes are forged."""
    kind = (DecisionTreeClassifier, ExtraTreeClassifier)[int(rng.integers(2))]
    tree = kind(random_state=0).fit(TABLE.to_numpy(), CLASSES)
    getattr(tree.tree_, str(rng.choice(["feature", "children_left", "children_right"])))[0] = rng.choice(FAR)
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(tree if rng.random() < 0.5 else tree.tree_))) as archive:
        planted = json.loads(archive.read(SCHEMA))
        members |= {f"9{name}": archive.read(name) for name in archive.namelist() if name.endswith(".npy")}
    planted = _renumbered({key: value for key, value in planted.items() if key not in ("protocol", "_skops_version")})
    schema = json.loads(members[SCHEMA])
    places, waiting = [], [schema["content"]]
    while waiting:
        part = waiting.pop()
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(value, dict | list):
                waiting.append(value)
            if isinstance(value, dict) and "__loader__" in value and key not in ("key_types", "content"):
                places.append((part, key))
    objects = [(part, key) for part, key in places if part[key]["__loader__"] == "ObjectNode"]
    chosen = objects if rng.random() < 0.8 else places
    part, key = chosen[int(rng.integers(len(chosen)))]
    part[key] = planted
    members[SCHEMA] = json.dumps(schema).encode()


def _renumbered(part):
    """Return a tree of nodes whose numbers and files are not those of the model."""
    if isinstance(part, list):
        return [_renumbered(each) for each in part]
    if not isinstance(part, dict):
        return part
    changed = {key: _renumbered(value) for key, value in part.items()}
    if "__id__" in changed:
        changed["__id__"] += 1
    if isinstance(changed.get("file"), str):
        changed["file"] = f"9{changed['file']}"
    return changed


def _read(members) -> bool:
    """Return whether the file loads and scores rows."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "forged.skops"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        try:
            scores = read_model(path).scores(TABLE)
        except Failure:
            return False
    assert np.isfinite(scores).all()
    return True
