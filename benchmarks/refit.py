"""What the fit on all rows after the test gains: ``python -m benchmarks.refit --folder TABLES --page PAGE``.

Each large development table of ``benchmarks.fit_tables`` gives small tables for ``fit_table``, and thousands of other
rows, which score the model that was tested and the one fitted again.
"""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from rich.progress import track

from benchmarks.fit_tables.collect import read_index
from benchmarks.fit_tables.tables import DEVELOPMENT
from experiments.report_parts import machine, markdown_table
from mauc import fit_table, mauc_score

SIZES = (500, 2_000, 8_000)
MOST_OTHERS = 15_000
"""Largest number of other rows that score a model."""


def main(
    folder: Annotated[Path, typer.Option(envvar="MAUC_FIT_TABLES", help="Folder of the tables.")] = Path("tables"),
    out: Annotated[Path, typer.Option(help="Store of results; what it has is not run again.")] = Path("refit.jsonl"),
    seeds: Annotated[int, typer.Option(min=1, help="Number of draws of each size.")] = 4,
    page: Annotated[Path | None, typer.Option(help="Page to write.")] = None,
) -> None:
    """Measure, print and write."""
    index = read_index(folder)
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    names = [name for name in index if name in DEVELOPMENT and index[name]["large"]]
    cells = [(name, size, seed) for seed in range(seeds) for size in SIZES for name in names]
    known = {(each["table"], each["rows"], each["seed"]) for each in done}
    for name, size, seed in track([cell for cell in cells if cell not in known], description="fitting"):
        table = pd.read_parquet(folder / index[name]["file"])
        found = {"table": name, "rows": size, "seed": seed} | measured(table, index[name]["target"], size, seed)
        with out.open("a") as file:
            file.write(json.dumps(found) + "\n")
        done.append(found)
        print(f"{name}, {size} rows: {found['tested']:.2f}, fitted again {found['again']:.2f}", flush=True)
    if page:
        page.write_text(page_of(pd.DataFrame(done)), encoding="utf-8")


def measured(table: pd.DataFrame, target: str, size: int, seed: int) -> dict[str, Any]:
    """Return the MAUC × 100 on other rows, before and after the fit on all rows. Classes need four rows."""
    order = np.random.default_rng(seed).permutation(len(table))
    some, others = table.iloc[order[:size]], table.iloc[order[size : size + MOST_OTHERS]]
    counts = some[target].value_counts()
    kept = counts.index[counts >= 4]
    some, others = some[some[target].isin(kept)], others[others[target].isin(kept)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of leaks and dates, which change nothing here
        fitted = fit_table(some, target, time_limit=600, effort="normal", importance=False, refit=True, seed=seed)
        tested = replace(fitted.model, classifier=fitted.evaluation.probe.classifier)
        assert not fitted.cut
        scores = {"tested": tested.decision_function(others), "again": fitted.decision_function(others)}
    labels = others[target].to_numpy()
    found = {name: 100.0 * mauc_score(labels, each, absent="ignore") for name, each in scores.items()}
    return {"classes": len(kept), "smallest": int(counts[kept].min()), "others": len(others)} | found


def page_of(found: pd.DataFrame) -> str:
    """Return the page."""
    found = found.assign(gain=found["again"] - found["tested"])
    rows = []
    for (size, name), each in found.groupby(["rows", "table"], sort=True):
        gains = each["gain"]
        classes = f"{each['classes'].min()} to {each['classes'].max()}"
        means = [f"{each[column].mean():.2f}" for column in ("tested", "again")]
        spread = f"{gains.mean():+.2f} ({gains.min():+.2f} to {gains.max():+.2f})"
        rows.append([f"{size:,}", name, classes, str(each["smallest"].min()), *means, spread])
    head = ["rows", "table", "classes", "rows of the smallest class", "tested model", "fitted again", "gain"]
    by_size = found.groupby("rows")["gain"]
    errors = by_size.std(ddof=1) / np.sqrt(by_size.size())
    summary = "; ".join(f"{mean:+.2f} ± {errors[size]:.2f} with {size:,} rows" for size, mean in by_size.mean().items())
    won = int((found["gain"] > 0).sum())
    return f"""# What the fit on all rows gains

After its test, `mauc fit` fits the models of the stack again on training and test rows together, with the weights that
were learnt. Here it gets small tables, drawn from large ones, and up to {MOST_OTHERS:,} other rows score the model that
was tested and the one in the file. The tables are the large development tables of
[`mauc fit` against scikit-learn's defaults](fit-tables.md); we measured nothing else.
`python -m benchmarks.refit --page PAGE` wrote this page.

**Gain in MAUC × 100: {summary}** (mean ± standard error of the draws, which share tables). It is above 0 in {won} of
{len(found)} draws. So the score in the report is a little lower than that of the model in the file.

{markdown_table(head, rows)}

{machine()}
"""


if __name__ == "__main__":
    typer.run(main)
