"""Commands and links on the pages work, and every code block is valid Python.

``test_gallery.py`` runs the code with prompts, ``test_readme.py`` the code of the README.
"""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "auto_examples"} & set(page.parts)),
]
TEXTS = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LONGEST = 92  # what a page shows beside its two sidebars
COMMANDS = ("mauc", "make", "pip", "python", "pytest")


def blocks(text, language):
    return [code for kind, code in BLOCK.findall(text) if kind == language]


def shell_lines():
    """The lines of all blocks of commands, without their comments."""
    lines = [line for text in TEXTS.values() for block in blocks(text, "sh") for line in block.splitlines()]
    return [" ".join(shlex.split(line, comments=True)) for line in lines if line.strip()]


def inline_commands():
    """What stands between backticks and begins as a command; in prose, arguments may be left out."""
    found = [code for text in TEXTS.values() for code in re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))]
    return [" ".join(code.split()) for code in found if code.split(" ")[0] in COMMANDS and " " in code]


def write_patients(folder):
    """Numbers, categories, gaps, and a rare class."""
    rng = np.random.default_rng(0)
    for name, scale in (("patients.csv", 3), ("new-patients.csv", 1)):
        kinds = np.repeat(["healthy", "flu", "measles"], np.array([40, 14, 6]) * scale)
        fever = rng.normal(37 + (kinds != "healthy"), 0.7).round(3)
        rash = np.where(rng.random(len(kinds)) < np.where(kinds == "measles", 0.8, 0.1), "yes", "no")
        rows = [
            f"{f if k % 9 else ''},{r},{kind}" for k, (f, r, kind) in enumerate(zip(fever, rash, kinds, strict=True))
        ]
        (folder / name).write_text("fever,rash,diagnosis\n" + "\n".join(rows) + "\n", encoding="utf-8")


@pytest.mark.usefixtures("small_stack")
def test_commands_of_the_pages(tmp_path, monkeypatch):
    """In the order of a reader: a model, its scores, other scores of the same rows, the comparison."""
    testing = pytest.importorskip("typer.testing", reason="needs the extra mauc[cli]")
    pytest.importorskip("skrub", reason="needs the extra mauc[cli]")
    pytest.importorskip("pyarrow", reason="needs the extra mauc[parquet]")
    pandas = pytest.importorskip("pandas", reason="needs the extra mauc[cli]")
    from mauc._cli import app

    monkeypatch.chdir(tmp_path)
    write_patients(tmp_path)
    lines = list(dict.fromkeys(line for line in shell_lines() if line.startswith("mauc ")))
    order = ("fit", "predict", "evaluate", "compare")
    assert {line.split()[1] for line in lines} >= set(order[:3])
    for line in sorted((line for line in lines if line.split()[1] in order), key=lambda s: order.index(s.split()[1])):
        if "other-scores.csv" in line:
            (tmp_path / "other-scores.csv").write_bytes((tmp_path / "scores.csv").read_bytes())
        if "scores/" in line:
            (tmp_path / "scores").mkdir()
            pandas.read_csv("scores.csv").to_parquet(tmp_path / "scores" / "0.parquet")
        result = testing.CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"
    assert {path.name for path in tmp_path.iterdir()} >= {"model.skops", "scores.csv", "mauc-report"}


def test_other_commands_are_known():
    """Those that take minutes or install something: their parts are there."""
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    lines = [*shell_lines(), *inline_commands()]
    assert len(lines) > 30
    for line in lines:
        program, *words = line.split()
        if program == "make":
            assert words[0] in targets, line
        elif program == "pip":
            extras = [extra for some in re.findall(r"\[(.*?)\]", line) for extra in some.split(",")]
            assert set(extras) <= set(EXTRAS), line
        elif program == "python" and "-m" in words:
            assert importlib.util.find_spec(words[words.index("-m") + 1]), line
        elif program == "pytest":
            assert all((ROOT / word).exists() for word in words if "/" in word), line


def test_options_of_the_command_are_known():
    pytest.importorskip("typer", reason="needs the extra mauc[cli]")
    import typer.main

    from mauc._cli import app

    whole = typer.main.get_command(app)
    for line in [*shell_lines(), *inline_commands()]:
        command, words = whole, line.split()
        if words[0] != "mauc":
            continue
        for word in words[1:]:
            if hasattr(command, "commands") and word in command.commands:
                command = command.commands[word]
        assert command is not whole or words[1].startswith("-"), line
        if hasattr(command, "commands"):
            continue
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options | {"--help"}, line


def test_options_of_the_experiments_are_known():
    from experiments.__main__ import _parser

    commands = [*shell_lines(), *inline_commands()]
    lines = [shlex.split(line) for line in commands if line.startswith("python -m experiments ")]
    assert len(lines) > 10
    for _, _, _, *words in lines:
        if words not in (["NAME"], ["--help"]):
            _parser().parse_args(words)


@pytest.mark.parametrize("page", TEXTS)
def test_links_lead_somewhere(page):
    text = BLOCK.sub("", TEXTS[page])
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(<?([^)>\s]+)>?\)", text)
    for link in links:
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        if "auto_examples/" in path:
            name = Path(path).stem
            assert name == "index" or (ROOT / "examples" / "gallery" / f"{name}.py").is_file(), link
            continue
        target = (folder / path).resolve() if path else ROOT / page
        assert target.exists() or target.with_suffix(".md").exists(), link
        if anchor:
            headings = re.findall(r"^#+ +(.*)", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}, link


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if blocks(text, "python")])
def test_blocks_of_code_are_code(page):
    """Also those without prompts, which are shown and not run; no line is so long that a page would cut it."""
    for code in blocks(TEXTS[page], "python"):
        typed = [line for line in code.splitlines() if line.startswith((">>> ", "... "))]
        assert [line for line in typed if len(line) > LONGEST] == []
        if not code.startswith(">>> "):
            compile(code, page, "exec")


def test_the_index_of_the_results_lists_every_page():
    index = TEXTS["docs/results/index.md"]
    listed = index.split(":hidden:\n\n")[1].split("\n```")[0].split("\n")
    pages = [Path(page).stem for page in TEXTS if page.startswith("docs/results/")]
    assert sorted([*listed, "index"]) == sorted(pages)
    assert all(f"]({page}.md)" in index for page in listed)


FRAMEWORKS = {
    "skorch": ("skorch",),
    "Hugging Face Trainer": ("transformers", "accelerate"),
    "Lightning": ("lightning",),
    "Accelerate": ("accelerate",),
    "MONAI": ("monai", "ignite"),
    "Keras": ("keras",),
    "MLflow": ("mlflow",),
}


def test_every_framework_of_the_page_is_known():
    assert re.findall(r"^## (.*)", TEXTS["docs/guide/frameworks.md"], re.MULTILINE) == list(FRAMEWORKS)


@pytest.mark.slow
@pytest.mark.parametrize("section", FRAMEWORKS)
def test_frameworks(section, tmp_path):
    """Each block trains or logs after the first block, in a process of its own; skipped without its framework."""
    for package in ("torch", *FRAMEWORKS[section]):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    data, *sections = re.split(r"^## ", TEXTS["docs/guide/frameworks.md"], flags=re.MULTILINE)
    page = next(text for text in sections if text.startswith(f"{section}\n"))
    code = "\n".join(block for text in (data, page) for block in blocks(text, "python"))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert float(re.findall(r"^MAUC (\S+)", done.stdout, re.MULTILINE)[-1]) > 0.9
