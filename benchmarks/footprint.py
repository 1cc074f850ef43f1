"""``python -m benchmarks.footprint``: the size of the library, and how much of it common calls run through.

It prints the lines of each package, and, for each call, how many modules and functions of ``mauc`` were executed.
"""

import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

import mauc

__all__ = ["executed", "lines_by_package"]

SOURCE = Path(mauc.__file__).parent


def lines_by_package(source: Path = SOURCE) -> dict[str, int]:
    """Return the lines of Python in each package; ``*.py`` stands for the modules beside the packages."""
    lines: dict[str, int] = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).parts
        name = parts[0] + "/" if len(parts) > 1 else "*.py"
        lines[name] = lines.get(name, 0) + path.read_text(encoding="utf-8").count("\n")
    return lines


def executed(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many modules and functions of ``mauc`` the call runs through in this process and thread.

    What a first call imports does not count where the caller has called it before.
    """
    seen: set[tuple[str, int]] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # Bodies of modules and classes run when they are imported; only functions are optimised code.
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(str(SOURCE)):
            seen.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len({file for file, _ in seen}), len(seen)


def main() -> None:
    """Print both tables."""
    import torch

    from mauc._cli import main as command
    from mauc.nn import MAUCLoss

    X, y = load_wine(return_X_y=True)
    scores = np.random.default_rng(0).random((len(y), 3))
    logits, target = torch.randn(64, 3, requires_grad=True), torch.arange(64) % 3
    loss = MAUCLoss(torch.bincount(target))
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "wine.csv"
        load_wine(as_frame=True).frame.to_csv(table, index=False)
        options = ["--out", f"{folder}/m.skops", "--report", f"{folder}/r.html"]

        def fit() -> None:
            sys.argv = ["mauc", "fit", str(table), "--target", "target", *options]
            try:
                command()
            except SystemExit as end:
                if end.code:
                    raise

        calls: dict[str, Callable[[], object]] = {
            "mauc_score(y, scores)": lambda: mauc.mauc_score(y, scores),
            "MAUCClassifier().fit(X, y)": lambda: mauc.MAUCClassifier().fit(X, y),
            "MAUCLoss(class_counts) on a CPU, both ways": lambda: loss(logits, target).backward(),
            "mauc fit wine.csv": fit,
        }
        for name in list(calls)[:3]:
            calls[name]()  # imports are done
        counts = {name: executed(call) for name, call in calls.items()}
    print("| package | lines |\n|---|---:|")
    sizes = lines_by_package()
    for name, n_lines in [*sizes.items(), ("all", sum(sizes.values()))]:
        print(f"| {name} | {n_lines:,} |")
    print("\n| call | modules | functions |\n|---|---:|---:|")
    for name, (modules, functions) in counts.items():
        print(f"| `{name}` | {modules} | {functions} |")


if __name__ == "__main__":
    main()
