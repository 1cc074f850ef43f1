"""``mauc demo``: the whole way, from data to report, with nothing to prepare."""

from pathlib import Path
from typing import Annotated

import typer

from mauc._cli.files import REPORTS, check_ending, check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._text import visible

__all__ = ["demo"]

REPORT = REPORTS / "demo.html"


def demo(
    out: Annotated[Path, typer.Option(readable=False, help="Report to write.")] = REPORT,
) -> None:
    """Compare six models on imbalanced digits: under a minute, off line.

    A stack of models, logistic regression, plain and balanced, and three losses of multiclass AUC. They learn from the
    digits that come with scikit-learn, of which 5 to 9 are rare, and are judged by rows that have all digits alike.
    """
    from mauc._cli.digits import run_demo
    from mauc._cli.summary import as_json, comparison, headline, worst_pairs
    from mauc.report import render

    output = current()
    check_writable(out, "--out")
    check_ending(out, "--out", "a page", "html")
    with output.working("training six models"):
        shown = run_demo()
    write_whole(out, render(shown.judgement, title="Digits made imbalanced", details=shown.details))
    output.say(
        f"Digits made imbalanced: {shown.train_counts.sum()} training rows, {len(shown.judgement.codes)} test rows",
        "Training rows of each digit: " + ", ".join(f"{d}: {n}" for d, n in enumerate(shown.train_counts)),
        f"Each digit has at least {shown.judgement.counts.min()} test rows.",
        "",
        comparison(shown.judgement),
        f"\n{shown.judgement.headline.name}, in full:",
        *headline(shown.judgement),
        "",
        worst_pairs(shown.judgement),
        f"wrote {visible(out)}: open it in a browser",
    )
    output.result({**as_json(shown.judgement), "files": {"report": out}})
