"""``mauc predict`` of a folder of Parquet files: one file of scores for each, in bounded memory, resumable."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mauc._cli.output import current
from mauc._cli.predict import STDOUT, check_new, score_rows
from mauc._io import destination, is_at_root, named, open_whole
from mauc._tables.errors import Failure, Usage
from mauc._tables.saved_scores import TRAINED_ON, trained_note
from mauc._tables.text import Reading, display_path
from mauc._text import visible

MADE_BY = b"mauc"
"""Key of the metadata of a file of scores that says what it was made from."""


class Scored(NamedTuple):
    """What one part had."""

    n_rows: int
    n_trained: int
    unknown: list[str]


def predict_parts(
    model: Path, folder: Path, out: Path, keep: Sequence[str], missing: Sequence[str], trust: bool, max_size: float
) -> None:
    """Score the files of a folder, and write one file each into the folder ``out``."""
    from mauc._tables.model_file import read_model
    from mauc._tables.parts import PartsTable, find_files
    from mauc._tables.read import PARQUET, check_column, count_of
    from mauc._tables.text import kind_of
    from mauc._validation import listing

    output, shown = current(), display_path(folder)
    files = find_files([folder], "TABLE")
    for path in files.paths:
        if kind_of(path) not in PARQUET:
            raise Failure(f"{path} is not Parquet, and the files of a folder must be: save it as Parquet")
    _check_out(out, folder)
    with output.working(f"scoring {shown}") as tell:
        loaded = read_model(model, trust=trust, max_size=max_size)
        how = Reading((*loaded.missing, *missing), commas=loaded.commas, pointed=loaded.pointed)
        table = PartsTable(files, Reading(how.missing))
        for name in keep:
            check_column(table.names, name, "--keep", str(shown))
        copied = list(dict.fromkeys([*keep, *([loaded.target] if loaded.target in table.names else [])]))
        made = {"model": hashlib.sha256(model.read_bytes()).hexdigest(), "columns": copied, "missing": list(missing)}
        found, n_before = [], 0
        for number, path in enumerate(files.paths, 1):
            target, size = out / path.name, path.stat()
            mark = json.dumps({**made, "part": [size.st_size, size.st_mtime_ns]}, sort_keys=True).encode()
            place = f"part {number} of {len(files.paths)}"
            if not table.rows_of(number - 1):
                continue  # Spark writes such parts
            if _is_done(target, mark):
                n_before += 1
                continue
            batches = _batches(path, table.fields, place, tell)
            scored = _score_part(batches, target, mark, loaded, copied, how, path)
            output.progress(f"{place}: {path.name}, {count_of(scored.n_rows)}")
            found.append(scored)
    n_rows, n_trained = (sum(getattr(each, name) for each in found) for name in ("n_rows", "n_trained"))
    extra = [name for name in (found[0].unknown if found else ()) if name not in copied]
    if extra:
        output.note(f"extra columns are ignored: {listing(extra, 5)}")
    if n_trained:
        output.note(trained_note(n_trained, n_rows))
    if n_before:
        output.note(
            f"{n_before} of {len(files.paths)} files were scored before by this model, and are left as they are"
        )
    output.say(
        f"{count_of(n_rows)} scored for {len(loaded.classes)} classes of {loaded.target!r}", f"wrote {visible(out)}"
    )
    parts = {"parts": len(files.paths), "scored_before": n_before}
    output.result({"model": loaded.about, "rows": n_rows, "classes": loaded.classes, **parts, "files": {"scores": out}})


def _check_out(out: Path, folder: Path) -> None:
    """Check that the results can be a folder, and not that of the table."""
    if out == STDOUT:
        raise Usage("--out - cannot take the scores of a folder: name a folder")
    if out.suffix.lower() in (".csv", ".txt", ".parquet", ".pq") or (out.exists() and not out.is_dir()):
        raise Usage(f"--out must be a folder for the scores of a folder, got the file {out}: name a folder")
    if destination(out) == destination(folder):
        raise Failure(f"--out {out} is the folder of the table: choose another one")
    if is_at_root(out / "part"):
        raise Failure(f"--out {out} is a new folder at the root: check the name, or make the folder first")


def _is_done(target: Path, mark: bytes) -> bool:
    """Return whether a part is there; refuse to write over what was made from something else."""
    from mauc._tables.parts import open_parquet

    if not target.exists():
        return False
    there = (open_parquet(target).schema_arrow.metadata or {}).get(MADE_BY)
    if there != mark:
        what = "of another model, other options or another version of the part" if there else "not of mauc predict"
        raise Failure(f"{target} is there already and is {what}: remove it, or choose another --out")
    return True


def batch_rows(n_columns: int) -> int:
    """Return how many rows are scored at a time."""
    return max(1_000, min(100_000, 4_000_000 // n_columns))


def _batches(path: Path, fields: dict[str, Any], place: str, tell: Any) -> Iterator[Any]:
    """Yield tables of pyarrow with all columns, of the common types of the parts."""
    import pyarrow as pa

    from mauc._tables.parts import open_parquet
    from mauc._tables.read import parquet_errors

    with parquet_errors(path):
        file = open_parquet(path)
        n_read = 0
        for batch in file.iter_batches(batch_rows(len(fields)), columns=list(fields)):
            tell(f"scoring {place}, {path.name}: {n_read / file.metadata.num_rows:.0%}")
            n_read += batch.num_rows
            yield pa.table({name: batch[name].cast(kind) for name, kind in fields.items()})


def _score_part(
    batches: Iterator[Any], target: Path, mark: bytes, loaded: Any, copied: Sequence[str], how: Reading, path: Path
) -> Scored:
    """Write the scores of one part."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from mauc._tables.read import check_single, frames_of_arrow

    shown, n_rows, n_trained = display_path(path), 0, 0
    unknown: list[str] = []
    writer: Any = None
    with open_whole(target) as file:
        for batch in batches:
            rows, _ = frames_of_arrow(batch, (), how, shown)
            check_single(rows[list(copied)], shown, "do not keep it")
            results, unknown, trained = score_rows(rows, loaded, shown)
            # All parts have the same columns.
            results = {TRAINED_ON: np.full(len(rows), "no", dtype=object), **results}
            check_new(copied, results, loaded.target, shown)
            columns = {name: batch[name] for name in copied}
            if loaded.target in columns:
                known = pa.array(rows[loaded.target].notna())
                columns[loaded.target] = pc.if_else(known, columns[loaded.target], None)
            scores = pa.table({**columns, **{name: pa.array(values) for name, values in results.items()}})
            scores = scores.replace_schema_metadata({MADE_BY: mark})
            with named(target):
                writer = writer or pq.ParquetWriter(file, scores.schema, write_page_checksum=True)
                writer.write_table(scores)
            n_rows += len(rows)
            n_trained += trained
        with named(target):
            writer.close()
    return Scored(n_rows, n_trained, unknown)
