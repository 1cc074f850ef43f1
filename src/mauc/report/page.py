"""Write a judgement as one HTML file that works offline."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

import mauc
from mauc.metrics.importance import Importance
from mauc.report.advice import advice, headline_sentence, verdict
from mauc.report.class_data import class_data
from mauc.report.further import tenths
from mauc.report.judgement import Judgement
from mauc.report.pairs import pair_data
from mauc.report.proportions import share

SCRIPTS = ("data.js", "plots.js", "heatmap.js", "pair.js", "classes.js", "tables.js", "csv.js", "page.js")


def render(
    judgement: Judgement,
    *,
    title: str = "Multiclass AUC report",
    details: Sequence[tuple[str, str]] = (),
    importance: Sequence[Importance] = (),
    how_shuffled: str = "",
) -> str:
    """Return a judgement as one self-contained HTML page: write it to a file and open it in any browser.

    Parameters
    ----------
    judgement : Judgement
    title : str
    details : sequence of (name, value)
        Listed at the end of the page: how the model was made, which test rows there are.
    importance : sequence of Importance
        Importance of the columns to the first model, from :func:`mauc.metrics.mauc_importance`.
    how_shuffled : str
        A sentence about the rows and shuffles of the importance.

    Returns
    -------
    str
        The page has a light and a dark theme, and fits phones and print. Its size grows with the square of the number
        of classes up to about 2.5 megabytes, and not with the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.report import judge, render
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> scores = rng.normal(size=(200, 3)) + 1.5 * (y[:, None] == ["elm", "oak", "yew"])
    >>> page = render(judge(y, scores), title="Trees")
    >>> page.startswith("<!doctype html>"), "<h1>Trees</h1>" in page
    (True, True)
    """
    folder = resources.files("mauc.report") / "templates"
    pairs = pair_data(judgement)
    headline = judgement.headline
    rows = judgement.n_rows if headline.rows is None else headline.rows
    page: str = template().render(
        title=title,
        details=details,
        judgement=judgement,
        headline=headline,
        further=judgement.further,
        accuracy=share(headline.accuracy * rows, rows, judgement.level),
        importance=_importance_tables(importance),
        how_shuffled=how_shuffled,
        sentence=headline_sentence(judgement),
        verdicts=[verdict(test, judgement) for test in judgement.tests],
        advice=advice(judgement),
        classes=_class_rows(judgement),
        axis_start=_axis_start(judgement),
        version=mauc.__version__,
        today=date.today().isoformat(),
        style=(folder / "report.css").read_text(encoding="utf-8"),
        script="\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS),
        # A class named "</script>" must not end the script.
        data=json.dumps(
            {**pairs, **class_data(judgement, pairs["left_out"])}, allow_nan=False, separators=(",", ":")
        ).replace("<", "\\u003c"),
    )
    return page


@cache
def template() -> Any:
    """Return the compiled template of the page, once."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("the report requires jinja2: install it with `pip install 'mauc[cli]'`") from error
    environment = Environment(
        loader=PackageLoader("mauc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "auc": _auc,
        "percent": _percent,
        "count": "{:,.0f}".format,
        "p": _pvalue,
        "signed": _signed,
        "cells": _cells,
        "tenths": tenths,
    }
    environment.tests["known"] = lambda value: not math.isnan(value)
    return environment.get_template("report.html.j2")


def _class_rows(judgement: Judgement) -> list[dict[str, Any]]:
    """Return name, rows, width of its bar and mean AUC of each class."""
    largest = judgement.counts.max()
    # Bars over four orders of magnitude say nothing on a linear scale.
    logarithmic = largest / judgement.counts.min() > 50
    size = np.log1p(judgement.counts) / np.log1p(largest) if logarithmic else judgement.counts / largest
    return [
        {
            "name": label,
            "count": int(count),
            "width": round(100 * float(width), 1),
            "auc": float(auc),
            "logarithmic": logarithmic,
        }
        for label, count, width, auc in zip(judgement.labels, judgement.counts, size, judgement.class_auc, strict=True)
    ]


def _importance_tables(importance: Sequence[Importance], most: int = 50) -> list[dict[str, Any]]:
    """Return a table over all pairs of classes, then one for each pair that was asked for, of ``most`` rows at most."""
    tables = []
    for k, pair in enumerate(dict.fromkeys(each.pair for each in importance)):
        found = sorted((each for each in importance if each.pair == pair), key=lambda each: -each.drop)
        largest = max(found[0].drop, 1e-12)
        rows = [{**vars(each), "width": round(100 * max(0.0, each.drop) / largest, 1)} for each in found[:most]]
        name = "importance" if k == 0 else f"importance-{k}"
        tables.append({"id": name, "pair": pair, "rows": rows, "left_out": len(found) - len(rows)})
    return tables


def _axis_start(judgement: Judgement) -> float:
    """Return where the axis of the interval bars starts: at a round number below all of them."""
    low = min(model.mauc.low for model in judgement.models)
    step = 0.1 if low < 0.8 else 0.05 if low < 0.92 else 0.01
    return max(0.0, math.floor((low - 0.02 * (1 - low)) / step) * step)


def _auc(value: float) -> str:
    # 0.9996 is not 1.
    text = f"{value:.3f}"
    return "> 0.999" if value < 1.0 and text == "1.000" else text


def _cells(of: Any) -> str:
    """Return a number with its interval, for the CSV file of a table."""
    return json.dumps([None if math.isnan(value) else value for value in (of.score, of.low, of.high)])


def _percent(value: float) -> str:
    digits = 1 if value >= 0.01 else 2
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def _pvalue(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _signed(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:+z.4f}".replace("-", "−")
