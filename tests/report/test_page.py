"""The page as text: whole, without network, safe against hostile names."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="needs jinja2")

from mauc.metrics.importance import Importance
from mauc.report import judge, render
from mauc.report.advice import advice
from mauc.report.page import _auc, _pvalue

VOID = {"meta", "link"}


def page_of(y, scores, **options):
    """The page of these scores."""
    return render(judge(y, scores), **options)


class Tree(HTMLParser):
    """Checks that tags are closed in order, and collects ids and addresses."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.addresses = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("n_models", [1, 3])
def test_one_file_and_no_network(scored, n_models):
    y, models, _ = scored([60, 20, 5], models=n_models)
    page = page_of(y, models, title="Three")
    tree = Tree(page)
    assert page.startswith("<!doctype html>")
    assert len(tree.ids) == len(set(tree.ids))
    assert all(address.startswith(("#", "data:")) for address in tree.addresses)
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", page)
    assert ("Models compared" in page) == (n_models > 1)
    for words in (
        "10.1109/TPAMI.2021.3101125",
        "Weakest class pairs",
        "by always guessing class 000",
        "Every pair of classes",
        "prefers-color-scheme: dark",
        "@media print",
    ):
        assert words in page


def test_hostile_names_are_text():
    hostile = ["</script><script>alert(1)</script>", "<b>&\"'", "{{ 7 * 7 }}"]
    y = np.repeat(hostile, [20, 10, 5])
    scores = np.random.default_rng(0).normal(size=(35, 3))
    page = page_of(y, {"<i>m</i>": scores}, title="<u>t", details=[("<a>", "<p>")])
    Tree(page)
    assert "<script>alert" not in page
    assert "<b>&" not in page
    assert "<i>m" not in page
    assert "49" not in re.search(r"<title>.*?</title>", page)[0]
    assert page.count("<script") == 2


def test_importance_over_all_pairs_and_of_one(scored):
    y, models, _ = scored([60, 20, 5])
    found = [
        Importance("<b>soil", None, 0.1, 0.05, 0.15, 0.02),
        Importance("height", None, 0.2, 0.1, 0.3, 0.05),
        Importance("unused", None, 0.0, 0.0, 0.0, 0.0),
        Importance("height", ("oak", "elm"), -0.01, -0.03, 0.01, 0.01),
    ]
    page = page_of(y, models, importance=found, how_shuffled="each column shuffled twice")
    tree = Tree(page)
    assert {"importance", "importance-1"} <= set(tree.ids)
    assert page.index('<th scope="row">height') < page.index('<th scope="row">&lt;b&gt;soil'), "by falling drop"
    assert '<rect width="100.0" height="10"/>' in page.split('id="importance"')[1]
    assert "To tell oak from elm" in page
    assert "−0.0100" in page
    assert "0 to 0<" not in page
    assert "Here: each column shuffled twice." in page
    assert "Permutation importance (MAUC drop)" in page
    assert "Permutation importance" not in page_of(y, models)


def test_huge_scores_make_a_page(scored):
    y, models, _ = scored([60, 20, 5])
    Tree(page_of(y, np.sign(models["model a"]) * 1e308))


def test_identical_models_read_so(scored):
    y, models, _ = scored([60, 20, 5])
    (scores,) = models.values()
    page = page_of(y, {"a": scores, "b": scores.copy()})
    assert "identical scores" in page
    assert "0.0000" not in page


def test_constant_scores_have_no_interval(scored):
    y, models, _ = scored([60, 20, 5])
    page = page_of(y, {**models, "constant": np.ones((len(y), 3))})
    assert "0.500 to 0.500<" not in page
    assert page_of(y, {"constant": np.ones((len(y), 3))}).count("0.500 to 0.500<") == 1, "of the model itself"


def test_numbers_as_people_read_them():
    assert [_auc(v) for v in (1.0, 0.99999, 0.5)] == ["1.000", "> 0.999", "0.500"]
    assert [_pvalue(v) for v in (0.00001, 0.0312)] == ["< 0.001", "0.031"]


def decided(recalls, rows=100):
    """Scores by which so many of a hundred rows of each class are predicted right, the others as the next class."""
    names = np.array([f"class {k}" for k in range(len(recalls))])
    right = np.concatenate([np.arange(rows) < r for r in recalls])
    codes = np.repeat(np.arange(len(recalls)), rows)
    scores = np.eye(len(recalls))[np.where(right, codes, (codes + 1) % len(recalls))]
    return names[codes], scores + np.random.default_rng(0).uniform(0, 0.1, scores.shape), names


def test_advice_names_the_class_that_is_found_least():
    y, scores, names = decided([98, 99, 43, 97, 90])
    (said, *_) = advice(judge(y, scores, y_train=np.repeat(names, [900, 500, 30, 3, 700])))
    assert said.startswith(
        "Class class 2 has the lowest recall: 0.430 (0.337 to 0.528); the average over the classes is 0.854."
    )
    assert "57 of its 100 test rows are predicted as class 3." in said
    assert said.endswith("It has 30 training rows of 2,133: collect more.")
    (said, *_) = advice(judge(y, scores, y_train=np.repeat(names, 100)))
    assert said.endswith("It is not rare: look for columns that separate it from class 3.")
    (said, *_) = advice(judge(y, scores))
    assert said.endswith("are predicted as class 3."), "nothing is known of the training rows"


def test_advice_says_nothing_where_the_rows_say_nothing():
    y, scores, _ = decided([97, 98, 96, 99])
    assert advice(judge(y, scores)) == []
    y, scores, _ = decided([8, 10, 9], rows=10)
    assert advice(judge(y, scores)) == []
    streamed = replace(judge(y, scores), further=None)
    assert advice(streamed) == []


def test_advice_of_many_weak_classes_is_short():
    y, scores, names = decided([99] * 8 + [20] * 6)
    said = advice(judge(y, scores, labels=names))
    assert all("has a low recall: " in line for line in said[:3])
    assert said[3] == "3 more classes have a recall clearly below the average."


def test_a_page_of_two_classes_and_of_a_class_with_one_row(scored):
    for counts in ([30, 10], [30, 10, 1]):
        y, models, _ = scored(counts)
        page = page_of(y, models)
        Tree(page)
        assert f"{sum(counts)} test rows" in page
        assert f"{len(counts)} classes" in page
