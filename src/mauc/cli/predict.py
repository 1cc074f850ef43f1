"""``mauc predict``: a model file and a table → the scores of every row."""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._io import write_whole
from mauc._text import as_cell, visible
from mauc.cli.files import check_writable
from mauc.cli.options import TABLE, Encoding, MaxSize, Missing, Sheet
from mauc.cli.output import current
from mauc.tables.errors import Failure, Usage

__all__ = ["predict"]

SCORES = Path("scores.csv")
STDOUT = Path("-")


def predict(
    model: Annotated[Path, typer.Argument(readable=False, help="Model file that mauc fit wrote.", show_default=False)],
    table: Annotated[Path, typer.Argument(readable=False, help=f"The same columns in {TABLE}", show_default=False)],
    out: Annotated[Path, typer.Option(readable=False, help="CSV file to write; - is standard output.")] = SCORES,
    keep: Annotated[list[str] | None, typer.Option(help="Copy this column too, such as a row number.")] = None,
    raw_cells: Annotated[
        bool, typer.Option("--raw-cells", help="Leave cells that a spreadsheet would run as formulas unquoted.")
    ] = False,
    missing: Missing = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    trust: Annotated[bool, typer.Option("--trust", help="Load types that mauc does not know.")] = False,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Score the rows of a table by a model of mauc fit.

    Writes the predicted class and one column of scores per class, and the target where the table has it, so that mauc
    evaluate can read it. Text that a spreadsheet would run as a formula (=, +, -, @ first) gets a quote before it.
    """
    import numpy as np
    import pandas as pd

    from mauc.tables.features import check_dates, check_finite, check_single, same_columns, text_columns
    from mauc.tables.model_file import read_model
    from mauc.tables.read import Reading, column, read_table
    from mauc.tables.scores import PREFIX
    from mauc.tables.source import shown

    output = current()
    _check_order(model, table)
    to_stdout = out == STDOUT
    if to_stdout and output.as_json:
        raise Usage("--out - and --json both write to standard output: leave one of them out")
    if not to_stdout:
        check_writable(out, "--out", (model, table))
    with output.working(f"scoring {shown(table)}"):
        loaded = read_model(model, trust=trust, max_size=max_size)
        how = Reading(tuple(missing or ()), encoding, sheet)
        names = [loaded.target, *(keep or [])]
        rows = read_table(table, text_columns(loaded.kinds), max_size=max_size, names=names, how=how)
        table = shown(table)
        kept = {name: column(rows, name, "--keep", table) for name in keep or []}
        check_single(pd.DataFrame(kept), table, "do not keep it")
        known, unknown = same_columns(rows, loaded.kinds, table)
        check_single(known, table)
        check_finite(known, table)
        check_dates(known, loaded.features, table)
        extra = [name for name in unknown if name != loaded.target and name not in kept]
        if extra:
            some = ", ".join(map(visible, extra[:5])) + (", …" if len(extra) > 5 else "")
            output.note(f"columns that the model does not know are not used: {some}")
        scores = np.asarray(loaded.scores(known), dtype=np.float64)
        if not np.isfinite(scores).all():
            raise Failure(
                f"the model gives no finite score for some rows of {table}: check its numbers for huge values"
            )
    classes = [str(c) for c in loaded.classifier.classes_]
    columns = dict(kept)
    if loaded.target in rows.columns:
        columns[loaded.target] = rows[loaded.target]
    name = "predicted" if "predicted" not in columns else "mauc:predicted"
    written = {name: np.asarray(classes, dtype=object)[scores.argmax(axis=1)]}
    written |= {f"{PREFIX}{label}": scores[:, k] for k, label in enumerate(classes)}
    _check_distinct(columns, written, loaded.target, table)
    frame = pd.DataFrame({**columns, **written})
    if not raw_cells:
        frame, n_quoted = _without_formulas(frame)
        if n_quoted:
            output.note(
                f"a spreadsheet would run {n_quoted} of the cells as formulas: they get a quote before them, "
                "which mauc evaluate reads past; --raw-cells leaves them as they are"
            )
    text = frame.to_csv(index=False)
    # The csv module does not quote a lone carriage return, which readers take for the end of a row.
    text = frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC) if "\r" in text else text
    if to_stdout:
        sys.stdout.write(text)
        return
    write_whole(out, text)
    output.say(f"{loaded.about}: {len(rows)} rows scored for {len(classes)} classes", f"wrote {visible(out)}")
    output.result({"model": loaded.about, "rows": len(rows), "classes": classes, "files": {"scores": out}})


def _check_order(model: Path, table: Path) -> None:
    """The model comes first."""
    from mauc.tables.model_file import is_model

    if is_model(table) and not is_model(model):
        raise Usage(f"the model comes first: mauc predict {table} {model}")


def _check_distinct(columns: Iterable[str], written: Iterable[str], target: str, path: Path) -> None:
    """Columns that are copied and columns of results have different names."""
    for name in set(columns) & set(written):
        what = "the target" if name == target else "--keep"
        raise Failure(
            f"{what} {name!r} of {path} has the name of the column {name!r} that mauc predict writes: "
            "rename it in the table" + ("" if name == target else ", or do not keep it")
        )


def _without_formulas(frame: Any) -> tuple[Any, int]:
    """The table with the cells and names quoted that a spreadsheet would run, and how many these are."""
    text = frame.select_dtypes(exclude=["number", "bool"])
    safe = text.map(as_cell)
    n_quoted = int((safe.ne(text) & text.notna()).to_numpy().sum())
    names = {name: as_cell(name) for name in frame.columns}
    n_quoted += sum(name != safe_name for name, safe_name in names.items())
    frame[text.columns] = safe
    return frame.rename(columns=names), n_quoted
