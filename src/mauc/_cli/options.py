"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["TABLE", "Dates", "DropUnlabelled", "Encoding", "Header", "MaxSize", "Missing", "Separator", "Sheet"]

TABLE = "CSV, TSV, Excel, ARFF, Parquet or NPZ; - is standard input."
MaxSize = Annotated[
    float,
    typer.Option(min=0.0, help="GB that unpacking a model file, Excel, NPZ or .gz may add to the size of the file."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Text that counts as missing, in the target too; may be repeated. Empty cells always do; NA, null and the "
        "like do in all columns but the target.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of a text file, such as cp1250 (default: detected).", show_default=False)
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="Between columns of a text file: comma, semicolon, tab or bar; default: found.", show_default=False
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", help="Whether the first line names the columns; default: found.", show_default=False
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Sheet of an Excel file (default: the first).", show_default=False)]
Dates = Annotated[
    str | None,
    typer.Option(help="day-first or month-first, where 01/02/2024 or 01.02.2024 could be either.", show_default=False),
]
DropUnlabelled = Annotated[bool, typer.Option("--drop-unlabelled", help="Leave out rows without a class.")]
