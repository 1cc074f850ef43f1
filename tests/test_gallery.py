"""The gallery's examples run, without a warning; the code on the pages of ``docs/`` prints what the pages say."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if ">>> " in page.read_text(encoding="utf-8"))
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# They train for seconds; ``make docs`` runs them too.
SLOW = ("plot_batch_coverage", "plot_dask", "plot_more_data", "plot_stacking", "plot_torch_loop")


def test_there_are_examples():
    assert len(EXAMPLES) >= 8


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else []) for path in EXAMPLES],
)
def test_example(path, monkeypatch, tmp_path, capsys):
    pyplot = _agg()
    text = path.read_text(encoding="utf-8")
    if "torch" in text:
        pytest.importorskip("torch")
    if "import dask" in text:
        pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    try:
        exec(compile(text, str(path), "exec"), {"__name__": "__main__"})
        assert pyplot.get_fignums(), "an example of the gallery shows a figure"
    finally:
        pyplot.close("all")
    assert capsys.readouterr().out, "an example of the gallery prints its numbers"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path, monkeypatch, tmp_path):
    """All blocks of a page in one namespace, as a reader would type them."""
    pyplot = _agg()
    text = path.read_text(encoding="utf-8")
    for library in ("torch", "lightgbm", "xgboost", "dask"):
        if f"import {library}" in text or (library == "torch" and library in text):
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(>>> .*?)^```", text, re.MULTILINE | re.DOTALL)
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {"__name__": "__main__"}, path.stem, str(path), 0)
    report: list[str] = []
    try:
        failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append).failed
    finally:
        pyplot.close("all")
    assert not failed, "".join(report)


def _agg():
    pytest.importorskip("matplotlib").use("Agg", force=True)
    from matplotlib import pyplot

    return pyplot
