"""What a page of the deep experiments says beside its numbers: how it differs from the paper's tables, and why."""

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
    """Of the paper's tables, where the set is the paper's: its own name, or that with the hash of a file."""
    return next((k for k, known in enumerate(PAPER_SETS) if re.fullmatch(f"{known}(-[0-9a-f]{{8}})?", name)), None)


def recipe_for(name: str) -> Recipe:
    """The settings of the set that results are kept under ``name`` of."""
    paper = paper_column(name)
    return recipe_of(name if paper is None else PAPER_SETS[paper])


def after(table: int, name: str) -> str:
    """The table of the paper that a part shows, or is laid out after: not all of them have every set."""
    paper = paper_column(name)
    shown = paper is not None and (table == 2 or (table == 4) == (PAPER_SETS[paper] == "inaturalist"))
    return f"(Table {table})" if shown else f"(after Table {table})"


def opening(name: str, tuned: bool) -> str:
    """How the page differs from the paper's tables."""
    paper, settings = paper_column(name), "settings searched for every method" if tuned else "the paper's settings"
    if paper is not None:
        return (
            f"The paper's Tables 2 to 4 so far as they are of {TITLES[paper]}, its numbers beside ours: with "
            f"{settings}, features of our own, and rows for methods that it does not have."
        )
    simulated = name.removeprefix("simulated-")
    if simulated in PAPER_SETS:
        shape = TITLES[PAPER_SETS.index(simulated)]
        return (
            f"Laid out as the paper's Tables 2 to 4, with {settings}, on data simulated in the shape of its {shape}: "
            "its numbers are of other data and are not shown."
        )
    return f"Laid out as the paper's Tables 2 to 4, with {settings}, on data that the paper does not have."


def remarks(results: Results, name: str, tuned: bool) -> list[str]:
    """What a reader of the tables must know, a line each."""
    out = []
    if paper_column(name) == 0 and "CE" in results:
        reached = spread(100 * np.array([r["test"] for r in results["CE"] if r["test"] is not None]))
        out.append(
            f"The paper has {PAPER['CE'][0]:.1f} for CE and {max(row[0] for row in PAPER.values()):.1f} at best. Such "
            "numbers cannot be had from sound features of these images: here plain CE reaches "
            f"{reached}. Its column shows an order, not a level to compare with."
        )
    absent = [method for method in PAPER if method not in results]
    if paper_column(name) is not None and absent:
        out.append(f"Rows of the paper that were not run: {', '.join(absent)}.")
    ceiling = next((r for r in results.get(BAYES, []) if "ceiling" in r), None)
    if ceiling:
        value, error = 100 * ceiling["ceiling"], 100 * ceiling["ceiling_stderr"]
        out.append(
            f"No scores reach more than {value:.2f} ± {error:.2f}, the Bayes MAUC. The row “{BAYES}” is what the exact "
            "posteriors reach on these test parts."
        )
    for method, runs in results.items():
        bad = [f"seed {k} in epoch {r['diverged']}" for k, r in enumerate(runs) if r.get("diverged")]
        if bad:
            out.append(
                f"{method} diverged (loss or logits not finite): {', '.join(bad)}; what is shown is the best before."
            )
    if not name.endswith("user-imb"):
        out.append(f"Features are standardised by the training part and cut at ±{CLIP:g} deviations.")
    if "LDAM" in results or "LDAM-DRW" in results:
        width = recipe_for(name).hidden[-1]
        out.append(
            f"LDAM, as its authors have it, ends in the scaled cosines of its {width:,} features with a vector for "
            "each class, where the others have a linear layer with a bias. The paper speaks of the loss alone, which "
            "is the row LDAM; LDAM-DRW also weighs the classes anew in the last fifth of the epochs."
        )
    out += _remark_on_the_hinge(results, name, tuned)
    grids = {n: METHODS[n].grid for n in results if n in METHODS and len(METHODS[n].grid) > 1 and not tuned}
    for method, grid in grids.items():
        shown = "; ".join(", ".join(f"{k} {v}" for k, v in choice.items()) for choice in grid)
        out.append(f"{method} is the best on validation of: {shown}. Its seconds are those of the chosen fit.")
    return out


def _remark_on_the_hinge(results: Results, name: str, tuned: bool) -> list[str]:
    runs = next((results[m] for m in ("hinge", "hinge, covered") if m in results), None)
    if runs is None:
        return []
    why = "on differences of softmax scores, which lie in [−1, 1], a hinge with α ≥ 1 is a straight line"
    line = f"{why}. Its risk is least for scores of two levels, so it does not ask for a ranking"
    if not tuned:
        return [f"The hinge has α = {recipe_for(name).ours['hinge'][1]:g} as in the paper: {line}."]
    chosen = runs[0]["params"]["alpha"]
    straight = ", a straight line as well" if chosen >= 1 else ""
    return [
        f"The paper's deep hinge has α = 4, and 2 on User-Imb: {line}. Here the search chose α = {chosen:g}{straight}."
    ]
