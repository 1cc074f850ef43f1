"""The report as an object: for notebooks, as a file, as numbers."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from mauc._io import json_text, write_whole
from mauc._lazy import needing
from mauc.metrics.importance import Importance
from mauc.report.judgement import LISTED, Judgement, judge
from mauc.report.numbers import as_json, tables_of
from mauc.report.page import render


class Report:
    """Judge one model or several, and show it.

    Parameters
    ----------
    y_true : (N,) classes
    y_score : (N, C) array, or dict of name -> (N, C) array
        The report describes the first model and compares the others with it. Any real scores; probabilities also get a
        calibration curve.
    labels, y_train, y_pred, groups, subgroups, level, listed
        As in :func:`mauc.report.judge`.
    title : str
    details : sequence of (name, value)
        Shown at the end of the page, such as how the model was trained and on which rows it was tested.
    importance : sequence of Importance
        Importance of the columns to the first model, from :func:`mauc.metrics.mauc_importance`.

    Attributes
    ----------
    judgement : Judgement
        All numbers of the page.
    html : str
        The page, which needs Jinja2.

    Examples
    --------
    At the end of a notebook cell the report shows itself.

    >>> import numpy as np
    >>> from mauc.report import Report
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["oak", "elm", "yew"], [150, 40, 10])
    >>> truth = y[:, None] == ["elm", "oak", "yew"]
    >>> report = Report(y, {"a": rng.normal(size=(200, 3)) + 1.5 * truth, "b": rng.normal(size=(200, 3)) + truth})
    >>> report
    Report: a 0.877 (0.803 to 0.926), b 0.752 (0.676 to 0.814); 200 rows, 3 classes
    >>> report.save("trees.html")  # doctest: +SKIP
    """

    def __init__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        labels: ArrayLike | None = None,
        y_train: ArrayLike | None = None,
        y_pred: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        subgroups: ArrayLike | None = None,
        level: float = 0.95,
        listed: int = LISTED,
        title: str = "Multiclass AUC report",
        details: Sequence[tuple[str, str]] = (),
        importance: Sequence[Importance] = (),
    ) -> None:
        self.judgement: Judgement = judge(
            y_true,
            y_score,
            labels=labels,
            y_train=y_train,
            y_pred=y_pred,
            groups=groups,
            subgroups=subgroups,
            level=level,
            listed=listed,
        )
        self._page: dict[str, Any] = {"title": title, "details": details, "importance": importance}

    @classmethod
    def of(cls, judgement: Judgement, **page: Any) -> Self:
        """Return the report of a judgement; ``page`` has the parameters of :func:`mauc.report.render`."""
        report = cls.__new__(cls)
        report.judgement, report._page = judgement, page
        return report

    @cached_property
    def html(self) -> str:
        return render(self.judgement, **self._page)

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, complete or not at all; return its path."""
        write_whole(Path(path), self.html)
        return Path(path)

    def to_json(self) -> str:
        """Return all numbers as one JSON object, the one that ``mauc evaluate --json`` prints."""
        return json_text(as_json(self.judgement))

    def tables(self) -> dict[str, Any]:
        """Return the tables of the page as pandas data frames: ``models``, ``classes``, ``rarest_pairs``,
        ``worst_pairs``, ``mistakes``, ``calibration``, ``subgroups``."""
        with needing("cli", "Report.tables"):
            import pandas as pd
        return {name: pd.DataFrame(rows) for name, rows in tables_of(self.judgement).items()}

    def _repr_html_(self) -> str:
        """Return the page in a frame, which separates its style from the notebook's and limits its scripts to drawing
        and saving tables."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" title="'
            f'{html.escape(self._page["title"])}" style="width: 100%; height: 800px; border: 0"></iframe>'
        )

    def __repr__(self) -> str:
        found = self.judgement
        scores = ", ".join(f"{m.name} {m.mauc.score:.3f} ({m.mauc.low:.3f} to {m.mauc.high:.3f})" for m in found.models)
        return f"Report: {scores}; {found.n_rows} rows, {len(found.labels)} classes"
