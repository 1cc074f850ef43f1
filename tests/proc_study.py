"""Agreement with R's pROC: the figures of tests/proc.json and the table of docs/results/proc.md.

``python tests/proc_study.py`` writes both, with ``Rscript`` and the package pROC (Debian: ``r-cran-proc``).
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from interval_study import write_between_marks
from scipy import special

from mauc import compare_mauc, mauc_interval, mauc_score
from mauc._kernels.auc import auc_influence
from mauc.partition import ClassPartition

FIGURES = Path(__file__).with_name("proc.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "proc.md"
SIZES = {"few rows, with ties": (40, 25, 15), "many rows": (1500, 900, 400)}

SCRIPT = """
suppressMessages(library(pROC))
found <- list()
for (name in c({names})) {{
  d <- read.csv(paste0(name, ".csv"))
  two <- d[d$y < 2, ]
  a <- roc(two$y, two$a1, direction = "<", levels = c(0, 1), quiet = TRUE)
  b <- roc(two$y, two$b1, direction = "<", levels = c(0, 1), quiet = TRUE)
  ends <- ci.auc(a, method = "delong")
  test <- roc.test(a, b, paired = TRUE, method = "delong")
  scores <- as.matrix(d[, c("a0", "a1", "a2")])
  colnames(scores) <- c("0", "1", "2")
  many <- suppressMessages(multiclass.roc(factor(d$y), scores))
  values <- c(auc = as.numeric(a$auc), variance = var(a, method = "delong"), low = ends[1], high = ends[3],
              difference = as.numeric(a$auc) - as.numeric(b$auc), statistic = as.numeric(test$statistic),
              pvalue = test$p.value, multiclass = as.numeric(many$auc))
  found[[name]] <- paste0("\\"", name, "\\": {{", paste0("\\"", names(values), "\\": ",
                          formatC(values, digits = 17, format = "g"), collapse = ", "), "}}")
}}
version <- as.character(packageVersion("pROC"))
cat("{{\\"version\\": \\"", version, "\\", ", paste(found, collapse = ", "), "}}\\n", sep = "")
"""


def drawn(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes and the scores of two models; sums of uniform numbers, whose stream is the same in every NumPy."""
    counts = SIZES[name]
    rng = np.random.default_rng(len(name))
    y = np.repeat(np.arange(3), counts)
    shared = rng.random((len(y), 3, 6)).sum(axis=2) + np.eye(3)[y]
    a, b = (shared + size * rng.random((len(y), 3, 4)).sum(axis=2) for size in (0.4, 0.8))
    decimals = 1 if "ties" in name else 6
    return y, np.round(a, decimals), np.round(b, decimals)


def delong(y: np.ndarray, *scores: np.ndarray) -> float:
    """DeLong's variance of the AUC of one column for two classes, or of the difference of two, from our influences."""
    partition = ClassPartition(y, 2)
    v = np.array([[0.0, 0.0], [1.0, 0.0]])
    influence = [auc_influence(partition.problem(np.column_stack([-s, s]), v)) for s in scores]
    of = influence[0] if len(scores) == 1 else influence[0] - influence[1]
    return float(sum(np.var(of[y == k], ddof=1) / np.sum(y == k) for k in (0, 1)))


def ours(name: str) -> dict[str, float]:
    """The same figures by this library: those of DeLong's formulas, and our interval and test."""
    y, a, b = drawn(name)
    two = y < 2
    s, t = a[two, 1], b[two, 1]
    variance = delong(y[two], s)
    found, test = mauc_interval(y[two], s), compare_mauc(y[two], s, t)
    reach = special.ndtri(0.975) * np.sqrt(variance)
    statistic = test.difference / np.sqrt(delong(y[two], s, t))
    return {
        "auc": found.score,
        "variance": variance,
        "low": found.score - reach,
        "high": min(1.0, found.score + reach),
        "difference": test.difference,
        "statistic": statistic,
        "pvalue": float(2 * special.ndtr(-abs(statistic))),
        "multiclass": mauc_score(y, a),
        "our variance": found.stderr**2,
        "our low": found.low,
        "our high": found.high,
        "our pvalue": test.pvalue,
    }


def run_r() -> dict[str, dict[str, float]]:
    """The figures of pROC."""
    with tempfile.TemporaryDirectory() as folder:
        for name in SIZES:
            y, a, b = drawn(name)
            header = ",".join(["y", *(f"{model}{k}" for model in "ab" for k in range(3))])
            np.savetxt(f"{folder}/{name}.csv", np.column_stack([y, a, b]), "%.12g", ",", header=header, comments="")
        script = SCRIPT.format(names=", ".join(f'"{name}"' for name in SIZES))
        Path(folder, "run.R").write_text(script, encoding="utf-8")
        said = subprocess.run(["Rscript", "run.R"], cwd=folder, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(said))


WORDS = {
    "auc": "AUC, two classes",
    "variance": "DeLong's variance",
    "low": "95 % interval, low end",
    "high": "95 % interval, high end",
    "difference": "difference of two models",
    "statistic": "paired test, z",
    "pvalue": "paired test, p",
    "multiclass": "`multiclass.roc`, three classes",
}


def table(figures: dict[str, dict[str, float]]) -> str:
    """The page's tables: pROC, the same formula by this library, and what this library reports."""
    parts = [f"pROC {figures['version']}."]
    for name, counts in SIZES.items():
        mine, theirs = ours(name), figures[name]
        lines = [f"## {name[0].upper()}{name[1:]}: {', '.join(map(str, counts))}", ""]
        lines += ["| figure | pROC | the same formula here | differ by | reported here |", "|---|---|---|---|---|"]
        for key, words in WORDS.items():
            reported = mine.get(f"our {key}", mine[key])
            apart = abs(mine[key] - theirs[key])
            lines.append(f"| {words} | {theirs[key]:.6g} | {mine[key]:.6g} | {apart:.0e} | {reported:.6g} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


if __name__ == "__main__":
    figures = run_r()
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    write_between_marks(PAGE, "tests/proc_study.py", table(figures))
