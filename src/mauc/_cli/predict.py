"""``mauc predict``: a model file and a table → the scores of every row, in one CSV file."""

import csv
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import TABLE, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.files import check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._tables.text import PREDICTED, PREFIX, Reading, display_path
from mauc._text import as_cell, visible

SCORES = Path("scores.csv")
STDOUT = Path("-")


def predict(
    model: Annotated[Path, typer.Argument(readable=False, help="Model file that mauc fit wrote.", show_default=False)],
    table: Annotated[
        Path,
        typer.Argument(
            readable=False,
            help=f"{TABLE} It needs the columns of the training table; extra columns are ignored. Or a folder of "
            "Parquet files, which are scored one by one.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            readable=False,
            help="CSV file to write; - is standard output. For a folder, the folder of Parquet files to write.",
        ),
    ] = SCORES,
    keep: Annotated[
        list[str] | None, typer.Option(help="Copy this column to the scores, such as an ID; can be repeated.")
    ] = None,
    raw_cells: Annotated[
        bool, typer.Option("--raw-cells", help="Do not quote cells that a spreadsheet would run as formulas.")
    ] = False,
    missing: Missing = None,
    encoding: Encoding = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Load a model with types that mauc does not know, which may run code.")
    ] = False,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Score the rows of a table with a model of mauc fit.

    Writes the predicted class and one column of scores per class, and the target if the table has it, so that mauc
    evaluate can read the file. Text that begins with =, +, - or @, which a spreadsheet would run, is quoted.

    From a folder, each file is read in batches and written whole or not at all. The same command continues a run that
    was stopped: it skips the files that this model has scored.
    """
    from mauc._tables.model_file import is_model, read_model
    from mauc._tables.parts import check_fits
    from mauc._tables.read import check_single, count_of, get_column, read_with_copies
    from mauc._tables.saved_scores import trained_note
    from mauc._validation import listing

    output, keep, shown = current(), keep or [], display_path(table)
    if is_model(table) and not is_model(model):
        raise Usage(f"the model comes first: mauc predict {table} {model}")
    if table.is_dir():
        from mauc._cli.predict_parts import predict_parts

        predict_parts(model, table, Path("scores") if out == SCORES else out, keep, missing or (), trust, max_size)
        return
    to_stdout = out == STDOUT
    if to_stdout and output.as_json:
        raise Usage("--out - and --json both write to standard output: leave one of them out")
    if not to_stdout:
        check_writable(out, "--out", "CSV", ["csv", "txt"], [model, table])
    check_fits(table, "save it as Parquet in a folder, and name the folder")
    with output.working(f"scoring {shown}"):
        loaded = read_model(model, trust=trust, max_size=max_size)
        texts = (*loaded.missing, *(missing or ()))
        how = Reading(texts, encoding, sheet, separator, header, loaded.commas, loaded.pointed)
        # A code such as 01 must not become the number 1.
        text = [name for name, kind in loaded.kinds.items() if kind != "number"]
        target, wanted = loaded.target, {*keep, loaded.target}
        rows, copies = read_with_copies(table, wanted, text, max_size=max_size, names=[target], how=how)
        for name in keep:
            get_column(rows, name, "--keep", shown)
        check_single(rows[list(dict.fromkeys(keep))], shown, "do not keep it")
        copied = {name: copies[name] for name in keep}
        if target in rows.columns:
            copied[target] = copies[target].where(rows[target].notna())
        results, unknown, n_trained = score_rows(rows, loaded, shown)
        check_new(copied, results, loaded.target, shown)
        content, n_quoted = _as_csv({**copied, **results}, raw_cells)
    extra = [name for name in unknown if name not in copied]
    if extra:
        output.note(f"extra columns are ignored: {listing(extra, 5)}")
    if n_trained:
        output.note(trained_note(n_trained, len(rows)))
    if n_quoted:
        output.note(
            f"{n_quoted} cells or column names that a spreadsheet would run as formulas are quoted with ', which "
            "mauc evaluate understands; to leave them unquoted use --raw-cells"
        )
    if to_stdout:
        # Bytes: the encoding of the terminal may lack letters of the table.
        sys.stdout.buffer.write(content.encode())
        return
    write_whole(out, content)
    output.say(
        f"{count_of(len(rows))} scored for {len(loaded.classes)} classes of {loaded.target!r}",
        f"wrote {visible(out)}",
    )
    found = {"model": loaded.about, "rows": len(rows), "classes": loaded.classes}
    output.result({**found, "files": {"scores": out}})


def score_rows(rows: Any, loaded: Any, table: Path) -> tuple[dict[str, Any], list[str], int]:
    """Return the columns of results, the names of columns that the model does not use, and the count of training rows.

    The column ``trained_on`` is there only if the table has training rows.
    """
    from mauc._tables.columns import same_columns
    from mauc._tables.saved_scores import TRAINED_ON, cell_hashes, row_hashes

    known, unknown = same_columns(rows, loaded, table)
    scores = loaded.scores(known, table)
    results: dict[str, Any] = {}
    used = known.drop(columns=loaded.columns.empty_)
    trained = np.isin(row_hashes(cell_hashes(used)), loaded.trained)
    if trained.any():
        results[TRAINED_ON] = np.where(trained, "yes", "no").astype(object)
    results[PREDICTED] = np.asarray(loaded.classes, dtype=object)[loaded.decided(scores)]
    results |= {f"{PREFIX}{label}": scores[:, k] for k, label in enumerate(loaded.classes)}
    return results, unknown, int(trained.sum())


def check_new(copied: Collection[str], results: Collection[str], target: str, shown: Path) -> None:
    """Refuse columns to copy that have the names of results."""
    for name in set(copied) & set(results):
        is_target = name == target
        raise Failure(
            f"{'the target' if is_target else '--keep'} {name!r} of {shown} has the name of a column that mauc "
            f"predict writes: rename it in the table{'' if is_target else ', or do not keep it'}"
        )


def _as_csv(columns: dict[str, Any], raw_cells: bool) -> tuple[str, int]:
    """Return the text of a CSV file, and how many cells and names were quoted against formulas."""
    import pandas as pd

    frame = pd.DataFrame(columns)
    n_quoted = 0
    if not raw_cells:
        text = frame.select_dtypes(exclude=["number", "bool"])
        safe = text.map(as_cell)
        names = {name: as_cell(name) for name in frame.columns}
        n_quoted = int((safe.ne(text) & text.notna()).to_numpy().sum())
        n_quoted += sum(name != safe_name for name, safe_name in names.items())
        frame[text.columns] = safe
        frame = frame.rename(columns=names)
    written = str(frame.to_csv(index=False))
    # The csv module does not quote a lone carriage return, which readers take for the end of a row.
    return str(frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)) if "\r" in written else written, n_quoted
