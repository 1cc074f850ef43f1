"""What ``import mauc`` gives, and what it leaves alone."""

import inspect
import pkgutil
import subprocess
import sys
from importlib import import_module, metadata, resources

import pytest
from packaging.requirements import Requirement

import mauc

OPTIONAL = {
    *("dask", "lightgbm", "lightning", "matplotlib", "pandas", "rich", "skops", "skrub", "torch", "torchmetrics"),
    *("typer", "xgboost"),
}
PACKAGES = [
    "",
    ".boosting",
    ".dask",
    ".ensemble",
    ".metrics",
    ".nn",
    ".report",
    ".theory",
]
MEASURE = "by='column', min_sensitivity=None, min_specificity=None"
# scikit-learn loads these itself where they are installed.
BY_SKLEARN = {"pandas", "rich"}


def signature(function):
    """Its text, without annotations."""
    plain = inspect.signature(function)
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in plain.parameters.values()]
    return str(plain.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


USE = """
from importlib.util import find_spec
if find_spec('jinja2'):
    import mauc.report
    mauc.report.judge
    models = {'mauc.boosting', 'mauc.ensemble', 'mauc.linear', 'mauc.nn', 'mauc.plugin'}
    assert not models & set(sys.modules), 'a report imports no models'
from mauc import *
from mauc import boosting, theory
compare_mauc([0, 1] * 3, [3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8])
SurrogateRisk('hinge').value_and_gradient([0, 1], [[1, 0], [0, 1]])
boosting.lightgbm_metric([0, 1], [[1, 0], [0, 1]])
boosting.xgboost_objective()
X, y = [[0, 1], [1, 1], [1, 0], [0, 0]], [0, 0, 1, 1]
theory.bounds.for_estimator(MAUCClassifier(l2=1.0).fit(X, y), X, y)
"""


@pytest.mark.parametrize("use", [pytest.param("", id="import"), pytest.param(USE, id="use")])
def test_import_brings_no_extra(use):
    unwanted = OPTIONAL - BY_SKLEARN if use else OPTIONAL
    code = f"import sys, mauc\n{use}\nprint(*sorted({unwanted} & {{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_import_alone_loads_only_what_loads_the_rest():
    code = "import sys, mauc; print(*[m for m in sys.modules if m.startswith('mauc.')])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "mauc._lazy"


def test_the_command_starts_without_the_libraries_that_take_long():
    pytest.importorskip("typer", reason="needs the extra mauc[cli]")
    code = "import sys, mauc._cli; print(*{'pandas', 'scipy', 'skops', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_kernels_import_only_numpy():
    names = [f"mauc._kernels.{module.name}" for module in pkgutil.iter_modules(import_module("mauc._kernels").__path__)]
    unwanted = OPTIONAL | {"joblib", "scipy", "sklearn"}
    code = f"import sys, {', '.join(names)}; print(*{unwanted} & {{m.partition('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_names():
    assert len(set(mauc.__all__)) == len(mauc.__all__)
    assert mauc.__all__ == sorted(mauc.__all__)
    for name in mauc.__all__:
        thing = getattr(mauc, name)
        assert thing is getattr(import_module(mauc._HOME[name]), name)
        assert thing.__module__.startswith("mauc.")
        assert thing.__doc__
    assert set(mauc.__all__) <= set(dir(mauc))
    assert set(mauc.__all__) == set(mauc._HOME)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'mauc' has no attribute 'auc'"):
        mauc.auc  # noqa: B018
    assert not hasattr(mauc, "numpy")


@pytest.mark.parametrize(
    ("code", "missing", "extra"),
    [
        pytest.param("from mauc._cli import main; main()", "typer", "cli", id="command"),
        pytest.param("import mauc.dask", "dask", "dask", id="dask"),
        pytest.param("import mauc.nn", "torch", "torch", id="torch"),
        pytest.param("from mauc.nn.functional import mauc_score", "torch", "torch", id="module of torch"),
    ],
)
def test_a_missing_extra_is_told_in_one_line(code, missing, extra):
    start = f"import sys; sys.modules[{missing!r}] = None; {code}"
    done = subprocess.run([sys.executable, "-c", start, "--help"], capture_output=True, text=True, check=False)
    *trace, line = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.endswith(f" needs {missing}, which is not installed: pip install 'mauc[{extra}]'")
    assert bool(trace) == (extra != "cli")
    assert "another exception" not in done.stderr


def test_torch_alone_is_not_the_whole_extra(monkeypatch):
    nn = pytest.importorskip("mauc.nn", reason="needs the extra mauc[torch]", exc_type=ImportError)
    for module in list(sys.modules):
        if module.partition(".")[0] == "torchmetrics" or module == "mauc.nn.metric":
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    with pytest.raises(ImportError, match=r"MAUC.* needs torchmetrics, .*: pip install 'mauc\[torch\]'"):
        nn.MAUC(num_classes=2)


def test_version():
    assert mauc.__version__ == metadata.version("mauc")
    assert [part.isdigit() for part in mauc.__version__.split(".")[:2]] == [True, True]


def test_typed():
    assert resources.files("mauc").joinpath("py.typed").is_file()


def test_core_dependencies():
    requirements = [Requirement(line) for line in metadata.requires("mauc")]
    core = {r.name for r in requirements if r.marker is None or "extra" not in str(r.marker)}
    assert core == {"numpy", "scipy", "scikit-learn"}
    assert {"torch", "cli", "plot", "all"} <= set(metadata.metadata("mauc").get_all("Provides-Extra"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "mauc_score",
            f"(y_true, y_score, *, pairs='ovo', {MEASURE}, labels=None, sample_weight=None, absent='raise', "
            "n_jobs=None)",
        ),
        ("pairwise_auc", f"(y_true, y_score, *, {MEASURE}, labels=None, sample_weight=None)"),
        (
            "mauc_interval",
            f"(y_true, y_score, *, level=0.95, pairs='ovo', {MEASURE}, labels=None, sample_weight=None, "
            "absent='raise', groups=None, n_jobs=None)",
        ),
        (
            "compare_mauc",
            "(y_true, score_a, score_b=None, *, against='best', margin=None, level=0.95, "
            f"pairs='ovo', {MEASURE}, labels=None, sample_weight=None, "
            "absent='raise', groups=None, n_jobs=None)",
        ),
        ("Interval", "(score, low, high, stderr)"),
        ("Comparison", "(difference, low, high, stderr, pvalue)"),
    ],
)
def test_signatures(name, expected):
    assert signature(getattr(mauc, name)) == expected


@pytest.mark.parametrize("name", ["mauc_score", "pairwise_auc", "mauc_interval", "compare_mauc"])
def test_namesakes_on_dask_take_the_same(name):
    """But for threads, of which the workers' schedulers decide, measures that sort more than own scores, several
    models, and the size of the sample of many rows."""
    pytest.importorskip("dask.array", reason="needs the extra mauc[dask]")
    namesake = getattr(pytest.importorskip("mauc.dask"), name)
    expected = signature(getattr(mauc, name))
    expected = expected.replace("score_b=None", "score_b")
    for only_here in (", n_jobs=None", f" {MEASURE},", " against='best', margin=None,"):
        expected = expected.replace(only_here, "")
    assert signature(namesake).replace(", most_rows=1000000", "") == expected


@pytest.mark.parametrize("package", PACKAGES)
def test_help_names_types_as_they_are_written(package):
    if package == ".dask":
        pytest.importorskip("dask.array", reason="needs the extra mauc[dask]")
    if package == ".nn":
        pytest.importorskip("torchmetrics", reason="needs the extra mauc[torch]")
    module = import_module(f"mauc{package}")
    for name in module.__all__:
        thing = getattr(module, name)
        methods = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else []
        for member, function in [(name, thing), *methods]:
            if callable(function) and function.__module__.startswith("mauc.") and not member.startswith("_"):
                text = str(inspect.signature(function))
                # What NumPy's aliases stand for fills half a page.
                assert "_NestedSequence" not in text, (name, member)
                assert "numpy.dtype" not in text, (name, member)
    assert len(str(inspect.signature(mauc.mauc_score))) < 340


def test_signature_of_the_risk():
    expected = "(surrogate='exponential', *, alpha=None, pairs='ovo', scheme='auto', n_jobs=None)"
    assert signature(mauc.SurrogateRisk) == expected
    for method in ("value", "value_and_gradient"):
        assert signature(getattr(mauc.SurrogateRisk, method)) == "(self, y, scores, sample_weight=None)"


@pytest.mark.parametrize("name", ["PairwiseAUCDisplay", "MinorityPairsDisplay", "MulticlassROCDisplay"])
def test_signatures_of_the_displays(name):
    display = getattr(mauc, name)
    # scikit-learn's convention: data by position, all else by name, ax=None, other options passed on.
    assert signature(display.from_predictions).startswith("(y_true, y_score, *, ")
    parameters = inspect.signature(display.from_predictions).parameters
    assert parameters["ax"].default is parameters["labels"].default is parameters["sample_weight"].default is None
    assert list(parameters)[-1] == "plot_kw"
    assert signature(display.from_estimator).startswith("(estimator, X, y, *")
    assert signature(display.from_estimator).endswith("**options)")
    assert signature(display.plot).startswith("(self, *, ")
    assert inspect.signature(display.plot).parameters["ax"].default is None


def test_defaults_of_minority_pairs():
    assert inspect.signature(mauc.MinorityPairsDisplay.from_predictions).parameters["k"].default == 5
