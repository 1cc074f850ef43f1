"""Model files from strangers: each forgery is refused by name, and nothing that it names is called."""

import io
import itertools
import json
import os
import pickle
import re
import struct
import subprocess
import sys
import time
import zipfile
from contextlib import nullcontext, suppress
from dataclasses import replace
from tempfile import TemporaryDirectory

import numpy as np
import pytest

pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
pytest.importorskip("skops", reason="needs the extra mauc[cli]")

import pandas as pd
import skops.io
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from mauc._archive import Refused, TooLarge, read_arrays
from mauc._cli import app
from mauc._tables.columns import read_kinds
from mauc._tables.errors import Failure
from mauc._tables.model_file import TableModel, packed_trees, read_model, unpack_trees, write_model
from mauc._tables.model_schema import ALLOWED, foreign_parts, is_itself
from mauc.ensemble import MAUCStackingClassifier, TableColumns

NUMBER = itertools.count(1)
TABLE = pd.DataFrame({"x": np.linspace(0, 1, 30), "y": np.tile([0.0, 1.0, 2.0], 10)})


def node(loader, name, **fields):
    module, _, attribute = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": attribute, "__id__": next(NUMBER), **fields}


def as_json(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def as_dict(name="builtins.dict", /, **values):
    types = [node("TypeNode", "builtins.str") for _ in values]
    return node("DictNode", name, content=values, key_types=node("ListNode", "builtins.list", content=types))


def as_tuple(*values):
    return node("TupleNode", "builtins.tuple", content=list(values))


def as_object(name, /, **attributes):
    return node("ObjectNode", name, content=as_dict(**attributes))


def as_partial(function, *args, name="functools.partial"):
    parts = {"func": function, "args": as_tuple(*args), "kwds": as_dict(), "namespace": as_json(None)}
    return node("PartialNode", name, content=parts)


@pytest.fixture(scope="module")
def genuine(tmp_path_factory):
    """The members of a small model file."""
    path = tmp_path_factory.mktemp("model") / "model.skops"
    classifier = MAUCStackingClassifier([("lr", LogisticRegression())], cv=2, columns=TableColumns())
    classifier.fit(TABLE, np.repeat(["a", "b", "c"], 10))
    decision = {"scale": 1.0, "offsets": np.zeros(3), "lowest": np.full(3, 1e-12), "costs": None}
    hashes = np.arange(30, dtype=np.uint64)
    write_model(path, TableModel(classifier, read_kinds(TABLE), "class", "a model", decision, hashes))
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def forge(genuine, tmp_path):
    """A model file with another classifier, or with other members."""

    def write(classifier=None, **members):
        schema = json.loads(genuine["schema.json"])
        if classifier is not None:
            schema["content"]["classifier"] = classifier
        path = tmp_path / "forged.skops"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {**genuine, "schema.json": json.dumps(schema), **members}.items():
                archive.writestr(name, data)
        return path

    return write


@pytest.fixture
def refused(monkeypatch):
    """The words of a refusal; skops was never asked to load anything, and nothing was imported for it."""

    def never(*_, **__):
        raise AssertionError("skops was asked to load it")

    def call(path, **options):
        modules = set(sys.modules)
        with monkeypatch.context() as patch:
            patch.setattr(skops.io, "loads", never)
            with pytest.raises(Failure) as caught:
                read_model(path, **options)
        known = ("skops", "sklearn", "skrub", "mauc._tables", "scipy")
        assert not {name for name in set(sys.modules) - modules if not name.startswith(known)}
        assert str(caught.value).startswith(str(path))
        return str(caught.value)

    return call


def test_the_genuine_file_loads(forge):
    scores = read_model(forge()).scores(TABLE)
    assert scores.shape == (30, 3)
    assert np.isfinite(scores).all()


def test_scores_that_are_not_finite_are_refused(forge):
    model = read_model(forge())
    combination = model.classifier._combination
    model.classifier._combination = replace(combination, floors=combination.floors * np.nan)
    with pytest.raises(Failure, match="gives no finite score for some rows of the table: look for huge numbers"):
        model.scores(TABLE)
    with pytest.raises(ValueError, match="gives no finite score for some rows of the table"):
        model.predict(TABLE)


def deletes(folder):
    """A classifier whose scores delete a folder: of standard classes, under names that modules of mauc import."""
    finalizer = as_dict("experiments.datasets.bundled.Bunch", detach=node("TypeNode", "builtins.str"))
    attributes = {"name": as_json(str(folder)), "_finalizer": finalizer, "_ignore_cleanup_errors": as_json(True)}
    lock = as_object("mauc._io.TemporaryDirectory", **attributes)
    parallel = as_object("experiments.store.Parallel", _lock=lock, _calling=as_json(False))
    classes = node("NdArrayNode", "numpy.ndarray", type="json", content=[as_json("a")], shape=as_tuple(as_json(1)))
    columns = as_object("mauc.ensemble.columns.TableColumns")
    stack = "mauc.ensemble.classifier.MAUCStackingClassifier"
    return as_object(stack, classes_=classes, columns_=columns, predict_proba=parallel)


def test_classes_that_our_modules_import_are_not_ours(forge, refused, tmp_path, monkeypatch):
    monkeypatch.setattr("mauc._io.TemporaryDirectory", TemporaryDirectory, raising=False)
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "file").write_text("kept")
    path = forge(deletes(folder))
    with pytest.raises(Failure, match=r"mauc\._io\.TemporaryDirectory") as caught:
        read_model(path).scores(TABLE)
    assert (folder / "file").read_text() == "kept"
    assert "experiments.store.Parallel" in str(caught.value)
    assert "experiments.datasets.bundled.Bunch (DictNode)" in str(caught.value)
    refused(path)

    with suppress(AttributeError):
        read_model(path, trust=True).scores(TABLE)
    assert not folder.exists(), "the forgery would have worked"


SYSTEM = node("FunctionNode", "os.system")
OURS = node("FunctionNode", "mauc._io.write_whole")
SKLEARN = "sklearn.preprocessing._function_transformer"
TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
TOKENS = as_object("sklearn.feature_extraction.text.HashingVectorizer", input=as_json("filename"))
VECTORIZER = "sklearn.feature_extraction.text.HashingVectorizer"
DATES = "skrub._to_datetime.ToDatetime"
ZONED = next(name for name in sorted(ALLOWED["ObjectNode"]) if name.endswith("DatetimeTZDtype") and is_itself(name))
POINTER = as_dict(data=as_tuple(as_json(64), as_json(False)), shape=as_tuple(as_json(9)), typestr=as_json("<f8"))


@pytest.mark.parametrize(
    ("classifier", "words"),
    [
        (SYSTEM, "os.system (FunctionNode)"),
        (OURS, "mauc._io.write_whole (FunctionNode)"),
        (as_partial(SYSTEM, as_json("true")), "functools.partial (PartialNode), os.system (FunctionNode)"),
        (as_partial(SYSTEM, as_json("true"), name=TREE), f"{TREE} (PartialNode)"),
        (as_object(f"{SKLEARN}.FunctionTransformer", func=OURS), f"{SKLEARN}.FunctionTransformer"),
        (node("MethodNode", TREE, content={"func": "predict", "obj": as_object(TREE)}), f"{TREE} (MethodNode)"),
        (node("OperatorFuncNode", "operator.methodcaller", attrs=as_tuple(as_json("f"))), "operator.methodcaller"),
        (node("TypeNode", "builtins.map"), "builtins.map (TypeNode)"),
        (node("TypeNode", "mauc.ensemble.perceptron.BalancedPerceptron"), "BalancedPerceptron (TypeNode)"),
        (node("LossNode", TREE, __reduce__={"args": as_tuple()}, content=as_dict()), "TreePredictor (LossNode)"),
        (as_object("sklearn.svm._classes.SVC"), "sklearn.svm._classes.SVC"),
        (as_object("antigravity.Flight"), "antigravity.Flight"),
        (
            as_object("mauc.ensemble.perceptron.BalancedPerceptron", __array_interface__=POINTER),
            "BalancedPerceptron.__array_interface__",
        ),
        (as_object("sklearn.pipeline.Pipeline", memory=as_json("/tmp")), "Pipeline.memory"),
        (as_object("sklearn.kernel_approximation.Nystroem", n_jobs=as_json(10**6)), "Nystroem.n_jobs"),
        (TOKENS, "HashingVectorizer.input"),
        (as_object(VECTORIZER, encoding=as_json("idna")), "HashingVectorizer.encoding"),
        (as_object(DATES, output_time_zone_=as_json("dateutil//etc/passwd")), "ToDatetime.output_time_zone_"),
        (as_object(DATES, output_time_zone_=as_json("dateutil/passwd")), "ToDatetime.output_time_zone_"),
        (as_object(DATES, output_time_zone_=as_json("/etc/passwd")), "ToDatetime.output_time_zone_"),
        (as_object(DATES, output_dtype_=as_json("datetime64[ns, dateutil//etc/passwd]")), "ToDatetime.output_dtype_"),
        (
            as_object(
                DATES, output_dtype_=node("NdArrayNode", "numpy.str_", type="json", content=[], shape=as_tuple())
            ),
            "ToDatetime.output_dtype_",
        ),
        (as_object(ZONED, tz=as_json("dateutil//etc/passwd"), unit=as_json("ns")), "DatetimeTZDtype.tz"),
        (node("ObjectNode", "sklearn.pipeline.Pipeline", content=as_json({"memory": "/tmp"})), "that are no dict"),
        (
            node(
                "RandomGeneratorNode",
                "numpy.random._generator.Generator",
                content={"bit_generator": as_dict(bit_generator=as_json("test")), "seed_seq": as_dict()},
            ),
            "Generator of an unknown kind",
        ),
        (as_object("os.\x1b]0;title\x07"), r"os.\x1b]0;title\x07"),
    ],
)
def test_parts_that_fit_does_not_write(forge, refused, classifier, words):
    told = refused(forge(classifier))
    assert words in told
    assert "pass --trust if you know where the file comes from" in told
    assert told.replace("\n", "").isprintable()


def test_zones_are_plain_names():
    for zone in (None, "UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+3", "UTC+01:00"):
        dates = as_object(DATES, output_time_zone_=as_json(zone), format_=as_json("%d/%m/%Y"))
        assert foreign_parts(dates) == [], zone


def test_a_node_that_stands_for_another(forge, refused):
    """skops takes a node for an earlier one of the same number: a harmless value must not hide a harmful one."""
    harmful, harmless = as_json("filename"), as_json("content")
    harmless["__id__"] = harmful["__id__"]
    tokens = as_object("sklearn.feature_extraction.text.HashingVectorizer", input=harmless)
    assert "two different nodes of one number" in refused(forge(as_tuple(harmful, tokens)))
    harmful, harmless = as_dict(input=as_json("filename")), as_dict(input=as_json("content"))
    harmless["__id__"] = harmful["__id__"]
    tokens = node("ObjectNode", VECTORIZER, content=harmless)
    assert "two different nodes of one number" in refused(forge(as_tuple(harmful, tokens)))
    one, other = (node("NdArrayNode", "numpy.ndarray", type="numpy", file=f"{k}1.npy") for k in (1, 2))
    other["__id__"] = one["__id__"]
    arrays = {name: as_npy(np.arange(3)) for name in ("11.npy", "21.npy")}
    assert "two different nodes of one number" in refused(forge(as_tuple(one, other), **arrays))


@pytest.mark.parametrize(
    "classifier",
    [
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="../secret.npy"),
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="/etc/passwd"),
        node("NdArrayNode", "numpy.ndarray", type="numpy", file="schema.json"),
        node("DictNode", "builtins.dict", content=as_dict(), key_types=as_json(None), more=1),
        {"__loader__": "JsonNode", "content": "1"},
        7,
    ],
)
def test_trees_that_skops_does_not_write(forge, refused, classifier):
    assert "is not loaded: its tree is not one that mauc fit writes" in refused(forge(classifier))


def test_many_foreign_types_are_counted(forge, refused):
    told = refused(forge(as_tuple(*(as_object(f"made.up.Type{k}") for k in range(9)))))
    assert "made.up.Type5 and 3 more" in told


def as_npy(array, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("member", "data", "words"),
    [
        ("../escape.py", b"", "holds the file '../escape.py'"),
        ("/etc/cron.d/x", b"", "holds the file '/etc/cron.d/x'"),
        ("1.npz", b"PK", "holds the file '1.npz'"),
        ("1.npy", as_npy(np.array([{}]), allow_pickle=True), "holds Python objects, which could run code, in '1.npy'"),
        ("1.npy", pickle.dumps([1]), "holds '1.npy', which is not an array"),
        ("1.npy", b"PK\x03\x04nested", "holds '1.npy', which is not an array"),
        ("1.npy", as_npy(np.ones(9))[:-8], "holds '1.npy', which is not as long as it says"),
    ],
)
def test_members_that_fit_does_not_write(forge, refused, member, data, words):
    assert words in refused(forge(**{member: data}))


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_files_that_are_no_archives(refused, tmp_path):
    made = tmp_path / "made"
    (tmp_path / "pickle.skops").write_bytes(pickle.dumps(Touch(made)))
    assert "is damaged or not a mauc model" in refused(tmp_path / "pickle.skops")
    (tmp_path / "cut.skops").write_bytes(b"PK\x03\x04 cut short")
    assert "is damaged or not a zip archive" in refused(tmp_path / "cut.skops")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    assert "is a folder" in refused(tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    assert "is not a regular file" in refused(tmp_path / "pipe")
    assert not made.exists()


def patched(path, find, offset, value):
    """The file with bytes changed in every header that begins with ``find``."""
    data = bytearray(path.read_bytes())
    at = data.find(find)
    while at >= 0:
        data[at + offset : at + offset + len(value)] = value
        at = data.find(find, at + 4)
    path.write_bytes(data)
    return path


CENTRAL = b"PK\x01\x02"


def test_archives_that_deceive(forge, refused, genuine, tmp_path):
    assert "encrypted member" in refused(patched(forge(), CENTRAL, 8, b"\x01\x00"))
    assert "a method other than deflate" in refused(patched(forge(), CENTRAL, 10, struct.pack("<H", 14)))
    path = forge()
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("schema.json", genuine["schema.json"])
    assert "holds two members named 'schema.json'" in refused(path)


def peak_of(call):
    import tracemalloc

    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bombs_are_refused_from_the_directory(forge, refused, tmp_path):
    path = forge(**{"1.npy": bytes(50_000_000)})
    assert path.stat().st_size < 200_000
    for trust in (False, True):
        told = refused(path, max_size=0.01, trust=trust)
        assert "unpacks from" in told
        assert re.search(r"to 0\.05\d* GB, and 0\.01 more are allowed: raise --max-size if you trust", told)
    assert "holds a tree of" in refused(forge(**{"schema.json": " " * 5_000_000 + "{}"}), max_size=0.01)
    assert "members, and" in refused(forge(), max_size=1e-5)
    assert peak_of(lambda: refused(path, max_size=0.01)) < 5_000_000

    table = tmp_path / "bomb.npz"
    np.savez_compressed(table, x=np.zeros(5_000_000))
    with pytest.raises(TooLarge, match=r"unpacks from .* to 0.04 GB, and 0.01 more are allowed"):
        read_arrays(table, max_size=0.01)
    np.savez(table, x=np.zeros(5_000_000))
    assert len(read_arrays(table, max_size=0.01)["x"]) == 5_000_000, "a large file is no bomb"


def test_bombs_that_hide_their_size(forge, refused, tmp_path):
    """The directory says 100 bytes, the data unpack to 50 MB: no more than a hundred are unpacked."""
    path = patched(forge(**{"1.npy": bytes(50_000_000)}), CENTRAL, 24, struct.pack("<I", 100))
    told = []
    assert peak_of(lambda: told.append(refused(path, max_size=0.01))) < 5_000_000
    assert "damaged" in told[0]
    table = tmp_path / "bomb.npz"
    np.savez_compressed(table, x=np.zeros(5_000_000))
    patched(table, CENTRAL, 24, struct.pack("<I", 200))

    def read():
        with pytest.raises(Refused, match=r"holds 'x\.npy', which is not"):
            read_arrays(table, max_size=0.01)

    assert peak_of(read) < 5_000_000


@pytest.mark.parametrize("shape", [(10**12,), (-1, -8), (2**61,)])
def test_arrays_that_promise_more_than_they_hold(tmp_path, shape):
    header = io.BytesIO()
    dtype = "|V0" if shape == (2**61,) else "<f8"
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(64))
    with pytest.raises(Refused, match=r"holds 'x\.npy', which is"):
        read_arrays(tmp_path / "t.npz")


def test_objects_in_arrays_are_not_unpickled(tmp_path):
    np.savez(tmp_path / "t.npz", y=np.array([{}, None]))
    with pytest.raises(Refused, match="could run code"):
        read_arrays(tmp_path / "t.npz")


def every_kind_of_column(n=120):
    rng = np.random.default_rng(0)
    code = rng.permutation(np.arange(n) % 4)
    colours, trees = ("red", "green", "blue", "old", "new", "hot"), ("fig", "oak", "elm", "ash", "yew", "fir")
    table = pd.DataFrame(
        {
            "height": np.where(rng.random(n) < 0.1, np.nan, rng.normal(code)),
            "count": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.5,
            "soil": np.where(rng.random(n) < 0.3, None, np.where(code % 2, "sand", "loam")),
            "day": pd.date_range("2021-01-01", periods=n).astype(str),
            "zone": pd.date_range("2021-01-01", periods=n, freq="37min", tz="Etc/GMT-3").astype(str),
            "text": [f"{colours[k % 6]} {trees[k % 36 // 6]} {k}" for k in rng.integers(0, 72, n)],
            "written": [f"{k}.5" for k in range(n)],
            "time": pd.to_timedelta(np.arange(n), unit="s"),
            "empty": np.nan,
        }
    )
    return table, code


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["one kind", "all kinds"])
def test_all_that_fit_writes_is_listed_and_nothing_else(tmp_path, monkeypatch, every):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline

    import mauc._tables.fit  # noqa: F401  # a module first imported with the replacement would keep it
    from mauc.ensemble import planner
    from mauc.ensemble.combination import mean_or_best
    from mauc.ensemble.fitting import InProcess
    from mauc.ensemble.workers import Workers

    def planned(size, effort, seed, order, tree_columns):
        members = planner.plan_members(size, effort, seed, order, tree_columns).members
        for member in members:
            few = {"hgb": {"max_iter": 2}}.get(
                member.name, {"n_estimators": 2} if member.name in planner.FORESTS else {}
            )
            member.model.set_params(**few)
        narrow = make_pipeline(tree_columns, RandomForestClassifier(2))
        return planner.StackPlan((*members, planner.Member("rf_deep", narrow, size.rows)), 2)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mauc.ensemble.classifier.plan_members", planned)
    monkeypatch.setattr(
        "mauc.ensemble.workers.Workers",
        lambda n_workers=None: Workers(0) if n_workers == 0 else nullcontext(InProcess()),
    )
    # All have a say, so that all are written.
    monkeypatch.setattr(
        "mauc.ensemble.classifier.learn_combination", lambda data, pairs, random_state: mean_or_best(data, pairs)
    )
    monkeypatch.setattr("mauc.ensemble.combination.OutOfFold.best_model", lambda *_: 0)
    table, code = every_kind_of_column()
    numbers = table[["height", "count"]]
    kinds = {
        "two classes": (numbers, 2, []),
        "grades": (table, 4, []),
        "few seconds": (table, 4, ["--time-limit", "5"]),
    }
    if not every:
        kinds = {"grades": kinds["grades"]}
    quick = ["--no-importance", "--no-report", "--quiet"]
    seen = set()
    words = np.array(["poor", "fair", "good", "excellent"])
    for kind, (columns, n_classes, options) in kinds.items():
        graded = pd.Categorical(words[code], words, ordered=True)
        columns.assign(kind=graded if kind == "grades" else code % n_classes).to_parquet("t.parquet")
        result = CliRunner().invoke(app, ["fit", "t.parquet", "--target", "kind", *quick, *options])
        assert result.exit_code == 0, result.output
        result = CliRunner().invoke(app, ["predict", "model.skops", "t.parquet", "--quiet"])
        assert result.exit_code == 0, result.output
        with zipfile.ZipFile("model.skops") as archive:
            waiting = [json.loads(archive.read("schema.json"))]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict) and "__loader__" in part:
                seen.add((part["__loader__"], f"{part['__module__']}.{part['__class__']}"))
            waiting.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
    listed = {(loader, name) for loader, names in ALLOWED.items() for name in names}
    assert seen <= listed
    of_other_versions = ("numpy.", "builtins.", "sklearn._loss._loss.Cy", "pandas.", "datetime.")
    unseen = {name for _, name in listed - seen if not name.startswith(of_other_versions)}
    assert unseen == set() or not every, "what no model needs is not listed"


def test_listed_names_are_those_of_the_things_themselves():
    names = {name for names in ALLOWED.values() for name in names if not name.startswith("pandas.")}
    assert {name for name in names if not is_itself(name)} == set()
    assert any(is_itself(name) for names in ALLOWED.values() for name in names if name.startswith("pandas."))
    for name in ("mauc._io.Path", "experiments.store.Parallel", "mauc.none.Such"):
        assert not is_itself(name)


def test_the_tree_is_walked_without_recursion():
    deep = as_json(1)
    for _ in range(5000):
        deep = as_tuple(deep)
    assert foreign_parts(deep) == []


def test_skops_is_imported_without_array_libraries_which_stay_importable():
    code = (
        "import sys; from mauc._tables.model_file import load_skops; before = list(sys.meta_path); load_skops(); "
        "assert 'torch' not in sys.modules and sys.meta_path == before; import importlib.util as u; "
        "print(u.find_spec('numpy') is not None)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


@pytest.fixture(params=[HistGradientBoostingClassifier, ExtraTreesClassifier])
def of_trees(request):
    """A model of trees within others, and its features."""
    X, y = load_wine(return_X_y=True)
    boosted = {"max_iter": 4, "min_samples_leaf": 5}
    model = request.param(**boosted if request.param is HistGradientBoostingClassifier else {"n_estimators": 7})
    return {"classifier": [make_pipeline(StandardScaler().set_output(transform="default"), model).fit(X, y)]}, X


def test_trees_predict_the_same_after_packing(of_trees):
    parts, X = of_trees
    (pipeline,) = parts["classifier"]
    name = "_predictors" if hasattr(pipeline[-1], "_predictors") else "estimators_"
    before, trees = pipeline.predict_proba(X), getattr(pipeline[-1], name)
    with packed_trees(parts):
        packed = getattr(pipeline[-1], name)
        assert len(packed["ends"]) == (12 if name == "_predictors" else 7)
    assert getattr(pipeline[-1], name) is trees
    with pytest.raises(TypeError):
        unpack_trees(parts)  # a forged file may hold trees that are not packed: they are not checked, so not loaded
    setattr(pipeline[-1], name, packed)
    unpack_trees(parts)
    np.testing.assert_array_equal(pipeline.predict_proba(X), before)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 2**31 - 1, "leads out of its tree"),
        ("right", 0, "leads out of its tree"),
        ("feature", 13, "names a column"),
        ("feature", -1, "names a column"),
    ],
)
def test_a_forged_node_of_a_tree_is_refused(of_trees, field, value, message):
    parts, _ = of_trees
    model = parts["classifier"][0][-1]
    name = "_predictors" if hasattr(model, "_predictors") else "estimators_"
    with packed_trees(parts):
        packed = getattr(model, name)
    packed["nodes"] = packed["nodes"].copy()
    packed["nodes"][0][next(each for each in packed["nodes"].dtype.names if each.startswith(field))] = value
    setattr(model, name, packed)
    with pytest.raises(ValueError, match=message):
        unpack_trees(parts)


def of_one_tree():
    """A tree whose first node leads to a column that does not exist."""
    X, y = load_wine(return_X_y=True)
    tree = DecisionTreeClassifier().fit(X, y)
    tree.tree_.feature[0] = 50_000
    return tree


@pytest.mark.parametrize(
    "place",
    [
        lambda tree: tree,
        lambda tree: {"key": [tree.tree_]},
        lambda tree: make_pipeline(tree),
        lambda tree: SimpleImputer().set_params(fill_value=(tree,)),
        lambda tree: np.array([tree], dtype=object),
    ],
    ids=["alone", "nodes", "pipeline", "parameter", "array"],
)
def test_a_tree_outside_of_the_checked_arrays_is_refused(forge, refused, genuine, tmp_path, place):
    """Its nodes would be walked unchecked, read outside of the arrays or never end."""
    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(place(of_one_tree())))) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if name.endswith(".npy")}
        classifier = json.loads(archive.read("schema.json"))
    classifier = {key: value for key, value in classifier.items() if key not in ("protocol", "_skops_version")}
    assert "sklearn.tree._tree.Tree (TreeNode)" in refused(forge(classifier, **members))


def test_a_written_forest_holds_no_tree(of_trees):
    parts, _ = of_trees
    with packed_trees(parts):
        data = skops.io.dumps(parts)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert b"TreeNode" not in archive.read("schema.json")


def forged_boosting(change, y=None, **options):
    """Boosted trees whose packed arrays are changed, and their features."""
    X, classes = load_wine(return_X_y=True)
    y = classes if y is None else y(classes)
    model = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, **options).fit(X, y)
    with packed_trees(model):
        packed = model._predictors
    packed["nodes"] = packed["nodes"].copy()
    model._predictors = packed
    change(model, packed)
    return model


def with_wide_nodes(model, packed):
    model._n_features = 4_000_000_000
    packed["nodes"]["feature_idx"] = 2_000_000_000


def with_categories(model, packed):
    packed["nodes"]["is_categorical"] = 1


def test_columns_are_compared_with_those_that_prediction_takes():
    """Not with a number of the file that prediction does not look at: such a node crashed the process."""
    with pytest.raises(ValueError, match="a node of a tree names a column that does not exist"):
        unpack_trees(forged_boosting(with_wide_nodes))


@pytest.mark.parametrize(("n_trees", "y"), [(-1, None), (2, None), (10**12, None), (3, lambda y: y > 0)])
def test_trees_per_round_fit_the_classes(n_trees, y):
    """With -1 a model would predict without its trees."""
    forged = forged_boosting(lambda model, packed: packed.update(per_round=n_trees), y)
    with pytest.raises(ValueError, match="the number of trees per round does not fit the classes"):
        unpack_trees(forged)
    both = forged_boosting(lambda model, packed: packed.update(per_round=n_trees), y)
    both.n_trees_per_iteration_ = n_trees
    with pytest.raises(ValueError, match="the number of trees per round does not fit the classes"):
        unpack_trees(both)


def test_a_last_round_lacks_no_tree():
    forged = forged_boosting(lambda model, packed: packed.update(ends=packed["ends"][:-1]))
    with pytest.raises(ValueError, match="the number of trees per round does not fit the classes"):
        unpack_trees(forged)


@pytest.mark.parametrize("options", [{}, {"categorical_features": [0]}])
def test_splits_by_categories_are_refused(options):
    """scikit-learn looks them up in arrays whose sizes no check here knows."""
    change = (lambda model, packed: None) if options else with_categories
    with pytest.raises(ValueError, match="splits by categories, which mauc fit does not train"):
        unpack_trees(forged_boosting(change, **options))


@pytest.mark.parametrize("year", [1970, 2108])
def test_a_clock_that_an_archive_cannot_hold_is_told(monkeypatch, tmp_path, year):
    monkeypatch.setattr("mauc._tables.model_file.time.localtime", lambda: time.struct_time((year, *[1] * 8)))
    with pytest.raises(Failure, match=f"a year from 1980 to 2107 to write a model file, got {year}: set the clock"):
        write_model(tmp_path / "m.skops", None)
