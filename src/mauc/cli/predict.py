"""``mauc predict``: a model file and a table → the scores of every row."""

from pathlib import Path
from typing import Annotated

import typer

from mauc._io import write_whole
from mauc.cli.files import check_writable
from mauc.cli.output import current
from mauc.tables.errors import Failure

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(readable=False, help="Model file that mauc fit wrote.", show_default=False)],
    table: Annotated[
        Path, typer.Argument(readable=False, help="CSV, TSV, Parquet or NPZ with the same columns.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(readable=False, help="CSV file to write.")] = Path("scores.csv"),
    keep: Annotated[list[str] | None, typer.Option(help="Copy this column too, such as a row number.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Load types that mauc does not know.")] = False,
) -> None:
    """Score the rows of a table by a model of mauc fit.

    Writes the predicted class and one column of scores per class, and the target where the table has it, so that mauc
    evaluate can read it.
    """
    import numpy as np
    import pandas as pd

    from mauc.tables.features import check_dates, check_finite, check_single, same_columns, text_columns
    from mauc.tables.model_file import read_model
    from mauc.tables.read import column, read_table
    from mauc.tables.scores import PREFIX

    output = current()
    check_writable(out, "--out", (model, table))
    with output.working(f"scoring {table}"):
        loaded = read_model(model, trust=trust)
        rows = read_table(table, text_columns(loaded.kinds), codes=[loaded.target, *(keep or [])])
        kept = {name: column(rows, name, "--keep", table) for name in keep or []}
        known, unknown = same_columns(rows, loaded.kinds, table)
        check_single(known, table)
        check_finite(known, table)
        check_dates(known, loaded.features, table)
        extra = [name for name in unknown if name != loaded.target and name not in kept]
        if extra:
            shown = ", ".join(extra[:5]) + (", …" if len(extra) > 5 else "")
            output.note(f"columns that the model does not know are not used: {shown}")
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
    columns[name] = np.asarray(classes, dtype=object)[scores.argmax(axis=1)]
    columns |= {f"{PREFIX}{name}": scores[:, k] for k, name in enumerate(classes)}
    write_whole(out, pd.DataFrame(columns).to_csv(index=False))
    output.say(f"{loaded.about}: {len(rows)} rows scored for {len(classes)} classes", f"wrote {out}")
    output.result({"model": loaded.about, "rows": len(rows), "classes": classes, "files": {"scores": out}})
