"""``mauc predict`` of a table in parts: scores written part by part, so that a run that was stopped goes on."""

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mauc._cli.files import check_folder
from mauc._cli.output import current
from mauc._cli.predict import as_csv, n_trained, note_quoted, note_trained, note_unused, score_rows, without_formulas
from mauc._io import write_whole
from mauc._tables.errors import Failure
from mauc._tables.parts import MANIFEST, Parts, kind_of, table_chunks
from mauc._text import visible

__all__ = ["predict_parts"]


def predict_parts(
    model: Path, loaded: Any, parts: Parts, out: Path, keep: list[str], *, raw_cells: bool, part_rows: int = 1 << 17
) -> None:
    """Write ``out/NAME-00000.parquet`` (or .csv, as the table is) and so on for each part of the table.

    A file is there complete or not at all, and what is there is not made again. The manifest says which model and table
    the scores are of, and whether all of them are there: scores of something else are refused, and incomplete ones are
    by ``mauc evaluate``. A file holds ``part_rows`` rows, the most that are in memory at a time.
    """
    output = current()
    check_folder(out, "--out")
    manifest = {
        "model": hashlib.sha256(model.read_bytes()).hexdigest(),
        "tables": [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in parts.paths],
        "keep": keep,
        "raw_cells": raw_cells,
        "part_rows": part_rows,
    }
    _check_free(out, parts, manifest)
    names = parts.names  # all headers are compared before the first part is scored
    write_whole(out / MANIFEST, json.dumps({**manifest, "complete": False}))
    n_rows = n_files = n_kept = n_quoted = n_scored = n_found = 0
    unused: list[str] = []
    for path, k, first, chunk, batch in _chunks(parts, part_rows, [loaded.target, *keep], loaded.kinds):
        file = out / f"{path.name.partition('.')[0]}-{k:05d}.{'parquet' if parts.kind == 'parquet' else 'csv'}"
        n_rows, n_files = n_rows + len(chunk), n_files + 1
        if file.exists():
            n_kept += 1
            continue
        shown = Path(f"{path} (rows {first + 1} to {first + len(chunk)})")
        copied, written, unused = score_rows(chunk, loaded, keep, shown)
        n_scored, n_found = n_scored + len(chunk), n_found + n_trained(written)
        if batch is not None:
            write_whole(file, _as_parquet(batch, copied, written))
            continue
        text, quoted = _as_text(copied, written, raw_cells)
        write_whole(file, text)
        n_quoted += quoted
    if not n_rows:
        raise Failure(f"{parts.shown} has no rows: check that it is the right table")
    write_whole(out / MANIFEST, json.dumps({**manifest, "complete": True}))
    note_unused([name for name in names if name in unused])
    note_trained(n_found, n_scored, loaded)
    note_quoted(n_quoted)
    if n_kept:
        output.note(f"{n_kept} of the {n_files} files were there already, of the same model and table, and are kept")
    classes = [str(c) for c in loaded.classifier.classes_]
    output.say(
        f"{loaded.about}: {n_rows} rows scored for {len(classes)} classes", f"wrote {n_files} files to {visible(out)}"
    )
    output.result(
        {"model": loaded.about, "rows": n_rows, "classes": classes, "parts": n_files, "files": {"scores": out}}
    )


def _chunks(
    parts: Parts, rows: int, written: list[str], kinds: dict[str, str]
) -> Iterator[tuple[Path, int, int, Any, Any]]:
    """Part, number and first row of each chunk in it, the chunk as a table and as a batch of pyarrow."""
    from mauc._tables.features import text_columns

    for path in parts.paths:
        first = 0
        for k, (chunk, batch) in enumerate(table_chunks(parts, path, rows, [*text_columns(kinds), *written])):
            yield path, k, first, chunk, batch
            first += len(chunk)


def _check_free(out: Path, parts: Parts, manifest: dict[str, Any]) -> None:
    """The folder is empty, or holds scores of the same model and table; and no two parts have one name in it."""
    if out.resolve() in {path.resolve().parent for path in parts.paths}:
        raise Failure(f"--out {out} is the folder of the table itself: choose another one")
    stems = [path.name.partition(".")[0] for path in parts.paths]
    twice = [stem for stem, times in Counter(stems).items() if times > 1]
    if twice:
        raise Failure(f"two parts are named {twice[0]!r}, and their scores would be too: rename one of them")
    there = out / MANIFEST
    if there.is_file():
        found = json.loads(there.read_text(encoding="utf-8"))
        different = [key for key, value in manifest.items() if found.get(key) != value]
        if different:
            what = {"model": "another model", "tables": "another table, or one that has changed"}
            raise Failure(
                f"--out {out} holds scores of {what.get(different[0], 'a run with other options')}: "
                "choose another folder, or remove it"
            )
    elif out.is_dir() and any(kind_of(path) for path in out.iterdir()):
        raise Failure(f"--out {out} holds other tables: choose another folder, or one that is not there yet")


def _as_text(copied: dict[str, Any], written: dict[str, Any], raw_cells: bool) -> tuple[str, int]:
    import pandas as pd

    frame = pd.DataFrame({**copied, **written})
    n_quoted = 0
    if not raw_cells:
        frame, n_quoted = without_formulas(frame)
    return as_csv(frame), n_quoted


def _as_parquet(batch: Any, copied: dict[str, Any], written: dict[str, Any]) -> bytes:
    """Columns that are copied keep the type they have in the table, which is the same in all parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = dict(zip(map(str, batch.schema.names), batch.columns, strict=True))
    columns = {**{name: names[name] for name in copied}, **{name: pa.array(values) for name, values in written.items()}}
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()
