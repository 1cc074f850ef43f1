"""``mauc predict``: a model file and a table → the scores of every row.

A table in parts is scored part by part, so that a run that was stopped can continue.
"""

import csv
import hashlib
import io
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mauc._archive import MAX_SIZE
from mauc._cli.app import TABLE, Encoding, Header, MaxSize, Missing, Separator, Sheet
from mauc._cli.files import check_ending, check_folder, check_writable
from mauc._cli.output import current
from mauc._io import write_whole
from mauc._tables.errors import Failure, Usage
from mauc._text import as_cell, visible

SCORES = Path("scores.csv")
STDOUT = Path("-")


def predict(
    model: Annotated[Path, typer.Argument(readable=False, help="Model file that mauc fit wrote.", show_default=False)],
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLE...",
            readable=False,
            help=f"{TABLE} Or the parts of a table, or their folder. It needs the columns of the training table; extra "
            "columns are ignored.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            readable=False, help="CSV file to write; - is standard output. For a table in parts, a folder of parts."
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
    """Score the rows of a table by a model of mauc fit.

    Writes the predicted class and one column of scores per class, and the target if the table has it, so that mauc
    evaluate can read the file. Text that a spreadsheet would run as a formula (=, +, -, @ first) is quoted.
    """
    from mauc._tables.columns import text_columns
    from mauc._tables.model_file import is_model, read_model
    from mauc._tables.parts import find_parts
    from mauc._tables.read import read_table
    from mauc._tables.saved_scores import TRAINED_ON
    from mauc._tables.text import Reading, check_separator, display_path

    output, keep = current(), keep or []
    if is_model(tables[0]) and not is_model(model):
        raise Usage(f"the model comes first: mauc predict {tables[0]} {model}")
    to_stdout = out == STDOUT
    if to_stdout and output.as_json:
        raise Usage("--out - and --json both write to standard output: leave one of them out")
    how = Reading(tuple(missing or ()), encoding, sheet, check_separator(separator), header)
    parts, table = find_parts(tables, "TABLE"), display_path(tables[0])
    in_parts = parts.several or out.is_dir()
    if in_parts and how != Reading():
        raise Usage(
            f"{parts.display} is read in parts, where --missing, --encoding, --separator, --header and --sheet "
            "have no effect: leave them out, or name one file and a file to write"
        )
    if not in_parts and not to_stdout:
        check_writable(out, "--out", (model, *parts.paths))
        check_ending(out, "--out", "CSV", "csv", "txt")
    if not in_parts and not parts.fits():
        output.note(f"{table} may not fit in memory: to score it in parts, name an existing folder by --out")
    with output.working(f"scoring {parts.display}"):
        loaded = read_model(model, trust=trust, max_size=max_size)
        if in_parts:
            counts, extra = predict_parts(model, loaded, parts, out, keep, raw_cells=raw_cells)
        else:
            names = [loaded.target, *keep]
            rows = read_table(tables[0], text_columns(loaded.kinds), max_size=max_size, names=names, how=how)
            _note_new_values(rows, loaded.columns, table)
            scored = score_rows(rows, loaded, keep, table)
            if not scored.n_trained:
                scored.results.pop(TRAINED_ON, None)  # a column of "no" alone is useless
            text, n_quoted = _as_csv(scored, raw_cells)
            counts = Counter(rows=len(rows), trained=scored.n_trained, quoted=n_quoted)
            extra = scored.extra
    _print_notes(extra, counts)
    if to_stdout:
        sys.stdout.write(text)
        return
    if not in_parts:
        write_whole(out, text)
    output.say(
        f"{loaded.about}: {counts['rows']} rows scored for {len(loaded.classes)} classes",
        f"wrote {counts['files']} files to {visible(out)}" if in_parts else f"wrote {visible(out)}",
    )
    n_files = {"parts": counts["files"]} if in_parts else {}
    found = {"model": loaded.about, "rows": counts["rows"], "classes": loaded.classes, **n_files}
    output.result({**found, "files": {"scores": out}})


@dataclass(frozen=True, eq=False)
class Scored:
    """The columns that ``mauc predict`` writes."""

    copied: dict[str, Any]
    results: dict[str, Any]
    extra: list[str]
    """Names of columns that the model does not use."""
    n_trained: int
    """Rows that the model was trained on."""


def score_rows(rows: Any, loaded: Any, keep: list[str], table: Path) -> Scored:
    """Score the rows of a table, or of a part."""
    import numpy as np
    import pandas as pd

    from mauc._tables.columns import check_finite, check_single, same_columns, warn_of_other_dates
    from mauc._tables.read import get_column
    from mauc._tables.saved_scores import TRAINED_ON, were_trained_on
    from mauc._tables.text import PREFIX

    copied = {name: get_column(rows, name, "--keep", table) for name in keep}
    check_single(pd.DataFrame(copied), table, "do not keep it")
    known, unknown = same_columns(rows, loaded.kinds, table)
    check_single(known, table)
    check_finite(known, table)
    warn_of_other_dates(known, loaded.columns, table)
    scores = loaded.scores(known)
    if not np.isfinite(scores).all():
        raise Failure(f"the model gives no finite score for some rows of {table}: check its numbers for huge values")
    extra = [name for name in unknown if name != loaded.target and name not in copied]
    if loaded.target in rows.columns:
        copied[loaded.target] = rows[loaded.target]
    results, n_trained = {}, 0
    if loaded.trained is not None:
        trained = were_trained_on(known, loaded.trained)
        results[TRAINED_ON] = np.where(trained, "yes", "no").astype(object)
        n_trained = int(trained.sum())
    name = "predicted" if "predicted" not in copied else "mauc:predicted"
    results[name] = np.asarray(loaded.classes, dtype=object)[loaded.decided(scores)]
    results |= {f"{PREFIX}{label}": scores[:, k] for k, label in enumerate(loaded.classes)}
    for name in set(copied) & set(results):
        is_target = name == loaded.target
        raise Failure(
            f"{'the target' if is_target else '--keep'} {name!r} of {table} has the name of a column that mauc predict "
            f"writes: rename it in the table{'' if is_target else ', or do not keep it'}"
        )
    return Scored(copied, results, extra, n_trained)


def _note_new_values(rows: Any, columns: Any, table: Path) -> None:
    """Print which columns hold categories that training did not have."""
    import pandas as pd

    from mauc._tables.read import count_of

    for name, categories in columns.known_categories().items():
        if name not in rows.columns:
            continue
        values = rows[name].dropna()
        new = values[~values.astype(str).isin([str(c) for c in categories if not pd.isna(c)])]
        if len(new):
            current().note(
                f"column {name!r} of {table} holds values that the training rows do not have, such as {new.iloc[0]!r} "
                f"({count_of(len(new))}): these are treated as unknown"
            )


def _print_notes(extra: list[str], counts: Counter[str]) -> None:
    from mauc._tables.read import first_names
    from mauc._tables.saved_scores import trained_note

    output = current()
    if extra:
        output.note(f"extra columns are ignored: {first_names(extra, 5)}")
    if counts["trained"]:
        output.note(trained_note(counts["trained"], counts["rows"]))
    if counts["quoted"]:
        output.note(
            f"{counts['quoted']} cells or column names that a spreadsheet would run as formulas are quoted by ', which "
            "mauc evaluate understands; to leave them unquoted use --raw-cells"
        )
    if counts["reused"]:
        output.note(f"{counts['reused']} of the {counts['files']} files existed already and were not scored again")


def _as_csv(scored: Scored, raw_cells: bool) -> tuple[str, int]:
    """Return the text of a CSV file, and how many cells and names were quoted against formulas."""
    import pandas as pd

    frame = pd.DataFrame({**scored.copied, **scored.results})
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


def predict_parts(
    model: Path, loaded: Any, parts: Any, out: Path, keep: list[str], *, raw_cells: bool, part_rows: int = 1 << 17
) -> tuple[Counter[str], list[str]]:
    """Write ``out/NAME-00000.parquet`` (or .csv, as the table is) and so on; return counts and extra columns.

    Each file is written whole or not at all, and an existing one is not made again. The manifest says which model and
    table the scores are of, and whether they are complete: scores of another run are refused, and incomplete ones are
    refused by ``mauc evaluate``. A file holds ``part_rows`` rows, the most that are in memory at a time.
    """
    from mauc._tables.columns import same_columns, text_columns
    from mauc._tables.parts import MANIFEST, table_chunks
    from mauc._tables.saved_scores import were_trained_on

    check_folder(out, "--out")
    manifest = {
        "model": hashlib.sha256(model.read_bytes()).hexdigest(),
        "tables": [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in parts.paths],
        "keep": keep,
        "raw_cells": raw_cells,
        "part_rows": part_rows,
    }
    _check_output_folder(out, parts, manifest)
    names = parts.names  # compares the headers of all parts
    write_whole(out / MANIFEST, json.dumps({**manifest, "complete": False}))
    counts: Counter[str] = Counter()
    text = [*text_columns(loaded.kinds), loaded.target, *keep]
    for path in parts.paths:
        n_before = 0
        for k, (chunk, batch) in enumerate(table_chunks(parts, path, part_rows, text)):
            suffix = "csv" if batch is None else "parquet"
            file = out / f"{path.name.partition('.')[0]}-{k:05d}.{suffix}"
            place = Path(f"{path} (rows {n_before + 1} to {n_before + len(chunk)})")
            n_before += len(chunk)
            counts.update(rows=len(chunk), files=1)
            if file.exists():
                known, _ = same_columns(chunk, loaded.kinds, place)
                n_trained = 0 if loaded.trained is None else int(were_trained_on(known, loaded.trained).sum())
                counts.update(reused=1, trained=n_trained)
                continue
            scored = score_rows(chunk, loaded, keep, place)
            counts["trained"] += scored.n_trained
            if batch is not None:
                write_whole(file, _as_parquet(batch, scored))
                continue
            written, n_quoted = _as_csv(scored, raw_cells)
            write_whole(file, written)
            counts["quoted"] += n_quoted
    if not counts["rows"]:
        raise Failure(f"{parts.display} has no rows: check that it is the right table")
    write_whole(out / MANIFEST, json.dumps({**manifest, "complete": True}))
    used = {*loaded.kinds, loaded.target, *keep}
    return counts, [name for name in names if name not in used]


def _check_output_folder(out: Path, parts: Any, manifest: dict[str, Any]) -> None:
    """Check that the folder is empty, or holds scores of the same model and table."""
    from mauc._tables.parts import MANIFEST, format_of

    if out.resolve() in {path.resolve().parent for path in parts.paths}:
        raise Failure(f"--out {out} is the folder of the table itself: choose another one")
    stems = Counter(path.name.partition(".")[0] for path in parts.paths)
    for stem in (stem for stem, times in stems.items() if times > 1):
        raise Failure(f"two parts are named {stem!r}, and so would their scores be: rename one of them")
    old = out / MANIFEST
    if old.is_file():
        found = json.loads(old.read_text(encoding="utf-8"))
        different = [key for key, value in manifest.items() if found.get(key) != value]
        if different:
            what = {"model": "another model", "tables": "another table, or one that has changed"}
            raise Failure(
                f"--out {out} holds scores of {what.get(different[0], 'a run with other options')}: choose another "
                "folder, or remove it"
            )
    elif out.is_dir() and any(format_of(path) for path in out.iterdir()):
        raise Failure(f"--out {out} holds other tables: choose another folder, or a new one")


def _as_parquet(batch: Any, scored: Scored) -> bytes:
    """Return a Parquet file; copied columns keep the type they have in the table, the same in all parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = dict(zip(map(str, batch.schema.names), batch.columns, strict=True))
    columns = {name: names[name] for name in scored.copied}
    columns |= {name: pa.array(values) for name, values in scored.results.items()}
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()
