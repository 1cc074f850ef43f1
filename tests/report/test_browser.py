"""The report in a real browser: no error in the console; hover, click, keys, sorting, themes; pictures to look at.

The pictures are left in ``build/artifacts``.
"""

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

pytest.importorskip("jinja2", reason="needs jinja2")

from mauc.report import Report, render

pytestmark = pytest.mark.browser
ARTIFACTS = Path(__file__).parents[2] / "build" / "artifacts"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        # In containers Chromium runs as root, where its sandbox cannot start; the page is ours.
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory, scored):
    folder = tmp_path_factory.mktemp("pages")
    few = scored([120, 60, 30, 12, 6, 4], models=3)
    many = scored(np.maximum(3, 600 // (np.arange(200) + 1)), models=2, gain=2.5)
    for name, (y, models, labels) in {"few": few, "many": many}.items():
        if name == "many":
            models = {key: softmax(scores, axis=1) for key, scores in models.items()}
        predicted = np.where(np.arange(len(y)) % 3, y, labels[0]) if name == "many" else None
        about = {"title": f"{len(labels)} classes", "details": [("data", "simulated")]}
        report = Report(y, models, labels=labels, y_pred=predicted, **about)
        report.save(folder / f"{name}.html")
        if name == "few":
            parts = replace(report.judgement, further=None)  # as scores that are read in parts leave it
            (folder / "parts.html").write_text(render(parts), encoding="utf-8")
            (folder / "notebook.html").write_text(f"<!doctype html><body>{report._repr_html_()}", encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser, pages):
    """Open a page; at the end no message may stand in its console, and nothing may have been asked of the network."""
    opened, troubles = [], []

    def go(name, *, width=1280, height=900, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(120_000)  # a busy machine is not a fault of the page
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda r: troubles.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        page.goto((pages / f"{name}.html").as_uri())
        return page

    yield go
    for context in opened:
        context.close()
    assert troubles == []


def cell(page, i, j, which="pairMap"):
    """Middle of a cell, from the corner of the canvas."""
    g = page.evaluate(f"{which}.geometry")
    return {"x": g["gutter"] + (j + 0.5) * g["cell"], "y": g["top"] + (i + 0.5) * g["cell"]}


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("few", 1280, "light"),
        ("few", 390, "dark"),
        ("many", 1280, "light"),
        ("parts", 390, "light"),
    ],
)
def test_opens_without_error_and_fits_the_width(visit, name, width, scheme):
    page = visit(name, width=width, scheme=scheme)
    page.wait_for_selector("#roc .curve", state="attached")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTIFACTS / f"report-{name}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("name", ["few", "many"])
def test_hover_and_click(visit, name):
    page = visit(name)
    page.hover("#map", position=cell(page, 2, 1))
    value = page.evaluate("number(aucOf(0, 2, 1))")
    assert f"AUC {value}" in page.inner_text("#tip")
    assert "against" in page.inner_text("#tip")
    page.click("#map", position=cell(page, 1, 3))
    assert page.evaluate("[STATE.i, STATE.j]") == [1, 3]
    assert page.inner_text("#pair-title").startswith(page.evaluate("`${DATA.classes[1]} against ${DATA.classes[3]}`"))
    assert page.locator("#histogram .up").count() > 0
    assert page.locator("#histogram .down").count() > 0
    before = page.get_attribute("#roc .curve", "points")
    page.click("#swap")
    assert page.evaluate("[STATE.i, STATE.j]") == [3, 1]
    assert page.get_attribute("#roc .curve", "points") != before
    page.click("#map", position=cell(page, 2, 2))
    assert page.evaluate("[STATE.i, STATE.j]") == [3, 1], "the diagonal is no pair"


def test_keyboard(visit):
    page = visit("few")
    page.focus("#map")
    page.evaluate("look({ i: 2, j: 0 })")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[STATE.i, STATE.j]") == [2, 1]
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[STATE.i, STATE.j]") == [2, 3], "over the diagonal"
    page.keyboard.press("End")
    assert page.evaluate("STATE.j") == 5
    assert "AUC" in page.inner_text("#said")
    page.keyboard.press("x")
    assert page.evaluate("[STATE.i, STATE.j]") == [5, 2]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    assert page.is_visible("#worst"), "the page opens on the weakest pairs"
    page.focus("#tab-worst")
    page.keyboard.press("ArrowRight")
    assert page.is_visible("#rarest")
    assert not page.is_visible("#worst")
    page.keyboard.press("ArrowLeft")
    # Everything that can be used can be reached by Tab.
    page.focus("#theme")
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"map", "pick-i", "pick-j", "swap", "tab-worst", "model"} <= reached


def test_one_class(visit):
    page = visit("many")
    assert "mean AUC" in page.inner_text("#class-title")
    worst = page.evaluate("Math.min(...DATA.by_class.map((found) => found.auc[2]))")
    assert page.evaluate("DATA.by_class[STATE.k].auc[2]") == worst, "opens at the class that is surely told worst"
    page.select_option("#pick-class", index=0)
    assert page.inner_text("#class-title").startswith(page.evaluate("DATA.classes[0]"))
    for plot in ("#class-roc .curve", "#class-pr .curve", "#class-cal .dot"):
        assert page.locator(plot).count() > 0
    page.locator("#classes button.show-class").nth(3).click()
    assert page.evaluate("[STATE.k, document.activeElement.id]") == [3, "class-view"]
    few = visit("few")
    assert few.inner_text("#class-cal-caption") == "No calibration curve: these scores are not probabilities."


def test_confusion_matrix(visit):
    page = visit("few")
    assert page.evaluate("STATE.ci !== STATE.cj"), "opens at a mistake"
    page.hover("#confusion", position=cell(page, 0, 0, "confusionMap"))
    found = page.evaluate("confusionOf(0, 0)")
    assert page.inner_text("#confusion-tip").startswith(f"{found} of 120 rows of class 000 are predicted right: ")
    page.focus("#confusion")
    page.evaluate("look({ ci: 1, cj: 0 })")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("[STATE.ci, STATE.cj]") == [1, 1], "the diagonal is of interest here"
    assert page.inner_text("#confusion-said") == page.inner_text("#said") + "."
    total = "DATA.classes.reduce((sum, _, i) => sum + DATA.classes.reduce((s, _, j) => s + confusionOf(i, j), 0), 0)"
    assert page.evaluate(total) == 232
    page = visit("many")
    assert "the one that the model predicts" in page.inner_text("#decision-text")
    page.select_option("#decision", index=1)
    assert "the one with the highest score" in page.inner_text("#decision-text")
    assert page.evaluate(total) == page.evaluate("DATA.rows")


def test_tables_are_saved_as_csv(visit):
    page = visit("few")
    ids = [button.get_attribute("data-of") for button in page.locator("button.csv").all()]
    assert {"models", "pairs", "rarest", "worst", "classes", "confusion", "mistakes"} == set(ids)
    tables = {}
    for name in ids:
        with page.expect_download() as caught:
            page.locator(f"button.csv[data-of={name}]").evaluate("button => button.click()")
        with open(caught.value.path(), encoding="utf-8-sig", newline="") as file:
            header, *tables[name] = csv.reader(file)
        assert all(len(row) == len(header) for row in tables[name]), name
    assert header == ["true class", "predicted class", "rows", "share of the class", "low", "high"]
    assert len(tables["pairs"]) == 30
    assert sum(int(row[2]) for row in tables["confusion"]) == 232
    for name, score, low, high, *_ in tables["models"]:
        assert float(low) < float(score) < float(high), name
    assert page.evaluate("quoted('=1+1') + quoted('a\"b') + quoted(-0.5)") == '"\'=1+1""a""b"-0.5'


def test_a_notebook_shows_it_in_a_frame(visit):
    page = visit("notebook", width=900)
    frame = page.frames[1]
    frame.wait_for_selector("#roc .curve", state="attached")
    with page.expect_download() as caught:
        frame.locator("button.csv[data-of=classes]").evaluate("button => button.click()")
    assert caught.value.suggested_filename == "classes.csv"


def test_sorting(visit):
    page = visit("few")
    column = "#worst tbody tr td:nth-child(7)"
    heading = page.locator("#worst thead th").nth(6)
    heading.locator("button").click()
    falling = [float(text.replace("> ", "")) for text in page.locator(column).all_inner_texts()]
    assert falling == sorted(falling, reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    rising = [float(text.replace("> ", "")) for text in page.locator(column).all_inner_texts()]
    assert rising == sorted(rising)
    assert heading.get_attribute("aria-sort") == "ascending"
    page.locator("#classes thead th").first.locator("button").click()
    names = page.locator("#classes tbody th").all_inner_texts()
    assert names == sorted(names)


def test_menus_and_table_buttons(visit):
    page = visit("many")
    page.select_option("#range", label="the 40 rarest")
    assert page.evaluate("STATE.to - STATE.from") == 40
    page.select_option("#model", index=1)
    page.select_option("#pick-i", index=7)
    assert page.evaluate("[STATE.model, STATE.i]") == [1, 7]
    page.click("#tab-rarest")
    page.locator("#rarest button.show").first.click()
    assert page.evaluate("document.activeElement.id") == "detail"
    assert page.evaluate("DATA.counts[STATE.i]") == 3


def test_themes_and_print(visit):
    page = visit("few", scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("#theme")
    assert page.evaluate(paper) != light
    page.emulate_media(media="print")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert page.is_visible("#worst")
    assert page.is_visible("#rarest")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(visit, scheme):
    """Text against its background, by the formula of WCAG 2: at least 4.5."""
    page = visit("few", scheme=scheme)
    colours = page.evaluate(
        """() => {
          const style = getComputedStyle(document.documentElement);
          const names = ["--ink", "--soft", "--accent", "--accent-ink", "--paper", "--surface", "--chosen", "--warn"];
          return Object.fromEntries(names.map((n) => [n, style.getPropertyValue(n).trim()]));
        }"""
    )

    def luminance(colour):
        channels = np.array([int(colours[colour][k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    pairs = [("--ink", b) for b in ("--paper", "--surface", "--chosen", "--warn")]
    pairs += [(t, b) for t in ("--soft", "--accent") for b in ("--paper", "--surface", "--chosen")]
    for text, back in [*pairs, ("--accent-ink", "--accent")]:
        dark, bright = sorted([luminance(text), luminance(back)])
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (text, back)
