"""Parts that all reports share: Markdown tables, figures, the description of the machine."""

import os
import platform
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from mauc._io import write_whole
from mauc._typing import Floats

__all__ = ["folded", "machine", "machines", "markdown_table", "save_figure", "spread"]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def folded(summary: str, markdown: str) -> str:
    """Fold a part of a page; GitHub and Sphinx both render the element."""
    return f"<details><summary>{summary}</summary>\n\n{markdown}\n\n</details>"


def spread(values: Floats) -> str:
    """Format mean ± standard deviation of some runs; a dash where there is none."""
    if not len(values):
        return "–"
    return f"{values.mean():.2f} ± {values.std():.2f}" if len(values) > 1 else f"{values.mean():.2f}"


def machine(accelerator: str | None = None) -> str:
    """Describe this machine."""
    import sklearn

    cpu = platform.processor() or platform.machine()
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    device = f"one {accelerator} and " if accelerator else ""
    return (
        f"Measured on {device}{os.cpu_count()} cores of {cpu}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, scikit-learn {sklearn.__version__}."
    )


def machines(runs: Iterable[dict[str, Any]]) -> str:
    """Describe the machines of the results: a report may be written elsewhere."""
    return " ".join(sorted({run["machine"] for run in runs if "machine" in run}))


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def save_figure(figure: Any, path: Path) -> Path:
    """Write a matplotlib figure whole or not at all."""
    picture = BytesIO()
    figure.savefig(picture, dpi=150, format=path.suffix[1:])
    write_whole(path, picture.getvalue())
    return path
