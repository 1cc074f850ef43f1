"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["MaxSize"]

MaxSize = Annotated[
    float, typer.Option(min=0.0, help="GB that unpacking a model file or an NPZ may add to the size of the file.")
]
