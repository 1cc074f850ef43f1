"""The sentences of a page of the deep experiments: how it differs from the paper's tables."""

import re

import numpy as np

from experiments.deep.data import CLIP, PAPER_SETS
from experiments.deep.methods import METHODS, Recipe, recipe_of
from experiments.deep.paper import PAPER
from experiments.deep.results import Results
from experiments.deep.run import BAYES
from experiments.report_parts import spread

__all__ = ["after", "opening", "paper_column", "recipe_for", "remarks"]

TITLES = ("CIFAR-100-Imb", "User-Imb", "iNaturalist")
""":data:`PAPER_SETS` as the paper writes them."""


def paper_column(name: str) -> int | None:
    """Return the column of a set in the paper's tables: its own name, or that with the hash of a file."""
    return next((k for k, known in enumerate(PAPER_SETS) if re.fullmatch(f"{known}(-[0-9a-f]{{8}})?", name)), None)


def recipe_for(name: str) -> Recipe:
    """Return the settings of the set whose results are stored under ``name``."""
    paper = paper_column(name)
    return recipe_of(name if paper is None else PAPER_SETS[paper])


def after(table: int, name: str) -> str:
    """Name the table of the paper that a part shows, or whose layout it follows."""
    paper = paper_column(name)
    shown = paper is not None and (table == 2 or (table == 4) == (PAPER_SETS[paper] == "inaturalist"))
    return f"(Table {table})" if shown else f"(after Table {table})"


def opening(name: str, tuned: bool) -> str:
    """Say how the page differs from the paper's tables."""
    paper = paper_column(name)
    settings = "Every method has the best setting of a search" if tuned else "The settings are the paper's"
    if paper is not None:
        return (
            f"This page shows the paper's Tables 2 to 4 for {TITLES[paper]}, its numbers beside ours. {settings}. The "
            "features are our own, and some methods are not in the paper."
        )
    layout, simulated = (
        "This page follows the layout of the paper's Tables 2 to 4 on data",
        name.removeprefix("simulated-"),
    )
    if simulated in PAPER_SETS:
        shape = TITLES[PAPER_SETS.index(simulated)]
        return (
            f"{layout} simulated in the shape of its {shape}. {settings}; its numbers are of other data and are not "
            "shown."
        )
    return f"{layout} that the paper does not have. {settings}."


def remarks(results: Results, name: str, tuned: bool) -> list[str]:
    """Return what a reader of the tables must know, a line each."""
    out = []
    if paper_column(name) == 0 and "CE" in results:
        reached = spread(100 * np.array([r["test"] for r in results["CE"] if r["test"] is not None]))
        out.append(
            f"The paper reports {PAPER['CE'][0]:.1f} for CE and {max(row[0] for row in PAPER.values()):.1f} at best. "
            f"Features of these images reach far more: plain CE has {reached} here. Compare the order of the paper's "
            "column, not its level."
        )
    absent = [method for method in PAPER if method not in results]
    if paper_column(name) is not None and absent:
        out.append(f"Rows of the paper that we did not run: {', '.join(absent)}.")
    ceiling = next((r for r in results.get(BAYES, []) if "ceiling" in r), None)
    if ceiling:
        value, error = 100 * ceiling["ceiling"], 100 * ceiling["ceiling_stderr"]
        out.append(
            f"The Bayes MAUC, which no scores exceed, is {value:.2f} ± {error:.2f}. The row “{BAYES}” shows the exact "
            "posteriors on these test parts."
        )
    for method, runs in results.items():
        bad = [f"seed {k} in epoch {r['diverged']}" for k, r in enumerate(runs) if r.get("diverged")]
        if bad:
            out.append(
                f"{method} diverged (loss or logits not finite): {', '.join(bad)}; the table has the best epoch before."
            )
    if not name.endswith("user-imb"):
        out.append(f"Features are standardised by the training part and clipped at ±{CLIP:g} standard deviations.")
    if "LDAM" in results or "LDAM-DRW" in results:
        width = recipe_for(name).hidden[-1]
        out.append(
            f"LDAM ends in a cosine layer, as its authors prescribe: the scaled cosines of its {width:,} features with "
            "a vector for each class. The other methods have a linear layer with a bias. The row LDAM is the loss "
            "alone, as in the paper; LDAM-DRW also re-weights the classes in the last fifth of the epochs."
        )
    out += _remark_on_the_hinge(results, name, tuned)
    grids = {n: METHODS[n].grid for n in results if n in METHODS and len(METHODS[n].grid) > 1 and not tuned}
    for method, grid in grids.items():
        shown = "; ".join(", ".join(f"{k} {v}" for k, v in choice.items()) for choice in grid)
        out.append(f"For {method} the validation part chooses among: {shown}. Its seconds are those of the chosen fit.")
    return out


def _remark_on_the_hinge(results: Results, name: str, tuned: bool) -> list[str]:
    runs = next((results[m] for m in ("hinge", "hinge, covered") if m in results), None)
    if runs is None:
        return []
    line = (
        "Differences of softmax scores lie in [−1, 1], where a hinge with α ≥ 1 is a straight line. Scores of two "
        "levels minimise its risk, so it does not reward a ranking"
    )
    if not tuned:
        return [f"The hinge has α = {recipe_for(name).ours['hinge'][1]:g}, as in the paper. {line}."]
    chosen = runs[0]["params"]["alpha"]
    straight = ", a straight line as well" if chosen >= 1 else ""
    return [
        f"The paper's deep hinge has α = 4, and 2 on User-Imb. {line}. Here the search chose α = {chosen:g}{straight}."
    ]
