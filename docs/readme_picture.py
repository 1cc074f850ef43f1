"""Draw the picture of the index page: the first figure of the gallery's pair matrix.

Run with ``python docs/readme_picture.py``; it writes ``docs/_static/pair-matrix.png``.
"""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent

runpy.run_path(str(HERE.parent / "examples" / "gallery" / "plot_pair_matrix.py"))
target = HERE / "_static" / "pair-matrix.png"
plt.figure(1).savefig(target, dpi=110, bbox_inches="tight", metadata={"Software": None})
print(f"{target}: {target.stat().st_size / 1000:.0f} kB")
