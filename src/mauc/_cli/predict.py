"""``mauc predict``: a model file and a table → the scores of every row."""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.files import check_ending, check_writable
from mauc._cli.options import TABLE, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._text import as_cell, visible

__all__ = [
    "as_csv",
    "n_trained",
    "note_quoted",
    "note_trained",
    "note_unused",
    "predict",
    "score_rows",
    "without_formulas",
]

SCORES = Path("scores.csv")
STDOUT = Path("-")


def predict(
    model: Annotated[Path, typer.Argument(readable=False, help="Model file that mauc fit wrote.", show_default=False)],
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            readable=False,
            help=f"The same columns in {TABLE} Or the parts of a table, or their folder.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            readable=False, help="CSV file to write; - is standard output. Of a table in parts, a folder of parts."
        ),
    ] = SCORES,
    keep: Annotated[list[str] | None, typer.Option(help="Copy this column too, such as a row number.")] = None,
    raw_cells: Annotated[
        bool, typer.Option("--raw-cells", help="Leave cells that a spreadsheet would run as formulas unquoted.")
    ] = False,
    missing: Missing = None,
    encoding: Encoding = None,
    separator: Separator = None,
    header: Header = None,
    sheet: Sheet = None,
    trust: Annotated[bool, typer.Option("--trust", help="Load types that mauc does not know.")] = False,
    max_size: MaxSize = MAX_SIZE,
) -> None:
    """Score the rows of a table by a model of mauc fit.

    Writes the predicted class and one column of scores per class, and the target where the table has it, so that mauc
    evaluate can read it. Text that a spreadsheet would run as a formula (=, +, -, @ first) gets a quote before it.
    """
    import pandas as pd

    from mauc._tables.features import text_columns
    from mauc._tables.layout import check_separator
    from mauc._tables.model_file import read_model
    from mauc._tables.parts import find_parts
    from mauc._tables.read import Reading, read_table
    from mauc._tables.row_hashes import TRAINED_ON
    from mauc._tables.source import shown

    output = current()
    _check_order(model, tables[0])
    to_stdout = out == STDOUT
    if to_stdout and output.as_json:
        raise Usage("--out - and --json both write to standard output: leave one of them out")
    how = Reading(tuple(missing or ()), encoding, sheet, check_separator(separator), header)
    parts = find_parts(tables, "TABLE")
    if parts.several or out.is_dir():
        if how != Reading():
            raise Usage(
                f"{parts.shown} is read in parts, where --missing, --encoding, --separator, --header and --sheet have "
                "no effect: leave them out, or name one file and a file to write"
            )
        from mauc._cli.predict_parts import predict_parts

        with output.working(f"scoring {parts.shown}"):
            loaded = read_model(model, trust=trust, max_size=max_size)
            predict_parts(model, loaded, parts, out, keep or [], raw_cells=raw_cells)
        return
    table = tables[0]
    if not to_stdout:
        check_writable(out, "--out", (model, table))
        check_ending(out, "--out", "CSV", "csv", "txt")
    if not parts.fits():
        output.note(f"{table} may not fit in memory: --out with the name of a folder that is there scores it in parts")
    with output.working(f"scoring {shown(table)}"):
        loaded = read_model(model, trust=trust, max_size=max_size)
        names = [loaded.target, *(keep or [])]
        rows = read_table(table, text_columns(loaded.kinds), max_size=max_size, names=names, how=how)
        _note_new_values(rows, loaded.features, shown(table))
        copied, written, extra = score_rows(rows, loaded, keep or [], shown(table))
        note_unused(extra)
        if not note_trained(n_trained(written), len(rows), loaded):
            written.pop(TRAINED_ON, None)  # a column of "no" alone says nothing
    classes = [str(c) for c in loaded.classifier.classes_]
    frame = pd.DataFrame({**copied, **written})
    if not raw_cells:
        frame, n_quoted = without_formulas(frame)
        note_quoted(n_quoted)
    if to_stdout:
        sys.stdout.write(as_csv(frame))
        return
    write_whole(out, as_csv(frame))
    output.say(f"{loaded.about}: {len(rows)} rows scored for {len(classes)} classes", f"wrote {visible(out)}")
    output.result({"model": loaded.about, "rows": len(rows), "classes": classes, "files": {"scores": out}})


def score_rows(
    rows: Any, loaded: Any, keep: list[str], table: Path
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Columns that are copied, columns of results, and the names of columns that the model does not know."""
    import numpy as np
    import pandas as pd

    from mauc._tables.features import check_dates, check_finite, check_single, same_columns
    from mauc._tables.read import column
    from mauc._tables.row_hashes import TRAINED_ON, are_known
    from mauc._tables.scores import PREFIX

    columns = {name: column(rows, name, "--keep", table) for name in keep}
    check_single(pd.DataFrame(columns), table, "do not keep it")
    known, unknown = same_columns(rows, loaded.kinds, table)
    check_single(known, table)
    check_finite(known, table)
    check_dates(known, loaded.features, table)
    scores = np.asarray(loaded.scores(known), dtype=np.float64)
    if not np.isfinite(scores).all():
        raise Failure(f"the model gives no finite score for some rows of {table}: check its numbers for huge values")
    extra = [name for name in unknown if name != loaded.target and name not in columns]
    if loaded.target in rows.columns:
        columns[loaded.target] = rows[loaded.target]
    classes = [str(c) for c in loaded.classifier.classes_]
    name = "predicted" if "predicted" not in columns else "mauc:predicted"
    written = {}
    if loaded.trained is not None:
        written[TRAINED_ON] = np.where(are_known(known, loaded.trained, list(loaded.kinds)), "yes", "no").astype(object)
    written |= {name: np.asarray(classes, dtype=object)[loaded.decided(scores)]}
    written |= {f"{PREFIX}{label}": scores[:, k] for k, label in enumerate(classes)}
    _check_distinct(columns, written, loaded.target, table)
    return columns, written, extra


def n_trained(written: dict[str, Any]) -> int:
    """How many rows are marked as trained on."""
    from mauc._tables.row_hashes import TRAINED_ON

    return int((written[TRAINED_ON] == "yes").sum()) if TRAINED_ON in written else 0


def note_trained(n_found: int, n_rows: int, loaded: Any) -> bool:
    """How many of the rows the model was trained on; returns whether there are any."""
    from mauc._tables.row_hashes import estimated, known_note

    if not n_found:
        return False
    n_known, exact = estimated(n_found, n_rows, loaded.trained)
    current().note(known_note(n_known, n_rows, exact=exact))
    return True


def _note_new_values(rows: Any, features: Any, table: Path) -> None:
    """Which columns hold categories that training did not have."""
    import pandas as pd

    columns = features[0] if hasattr(features, "steps") else features
    for name, categories in columns.known_categories().items():
        if name not in rows.columns:
            continue
        values = rows[name].dropna()
        new = values[~values.astype(str).isin([str(c) for c in categories if not pd.isna(c)])]
        if len(new):
            rows_of = "1 row" if len(new) == 1 else f"{len(new)} rows"
            current().note(
                f"column {name!r} of {table} holds values that training did not have, such as {new.iloc[0]!r} "
                f"({rows_of}): these count as none of the known ones"
            )


def note_unused(names: list[str]) -> None:
    """What the table has and the model does not know."""
    if names:
        shown = ", ".join(map(visible, names[:5])) + (", …" if len(names) > 5 else "")
        current().note(f"columns that the model does not know are not used: {shown}")


def note_quoted(n_quoted: int) -> None:
    """How many cells were changed for spreadsheets."""
    if n_quoted:
        current().note(
            f"a spreadsheet would run {n_quoted} of the cells as formulas: they get a quote before them, "
            "which mauc evaluate reads past; --raw-cells leaves them as they are"
        )


def as_csv(frame: Any) -> str:
    """The text of a CSV file."""
    text = str(frame.to_csv(index=False))
    # The csv module does not quote a lone carriage return, which readers take for the end of a row.
    return str(frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC)) if "\r" in text else text


def _check_order(model: Path, table: Path) -> None:
    """The model comes first."""
    from mauc._tables.model_file import is_model

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


def without_formulas(frame: Any) -> tuple[Any, int]:
    """The table with the cells and names quoted that a spreadsheet would run, and how many these are."""
    text = frame.select_dtypes(exclude=["number", "bool"])
    safe = text.map(as_cell)
    n_quoted = int((safe.ne(text) & text.notna()).to_numpy().sum())
    names = {name: as_cell(name) for name in frame.columns}
    n_quoted += sum(name != safe_name for name, safe_name in names.items())
    frame[text.columns] = safe
    return frame.rename(columns=names), n_quoted
