"""From scores to a paragraph one could print: the worked example of docs/results/lesions.md.

``python tests/lesion_study.py`` runs the code of the page and writes it with what the code prints. It needs
``features/ham10000-part.npz`` in the folder ``MAUC_DATA_HOME``.
"""

import io
import os
from contextlib import redirect_stdout
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "lesions.md"

BEGIN = """# A worked example: skin lesions

HAM10000 (Tschandl et al. 2018) has dermatoscopic photographs of seven kinds of skin lesions, several of one lesion.
This page goes from two models to a paragraph that a study could print. The features are the last pooling of a ResNet-50
for the first 7 017 photographs. `python tests/lesion_study.py` runs the code and writes the page.
"""

STEPS = [
    (
        "Photographs of one lesion stay in one part. Half of the lesions train two models, the other half test them.",
        """
import os
import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

data = np.load(os.path.join(os.environ["MAUC_DATA_HOME"], "features", "ham10000-part.npz"))
X = ((data["q"] / 255.0) ** 2 * data["scale"]).astype(np.float32)
y, lesion = data["class_names"][data["y"]], data["group"]
folds = StratifiedGroupKFold(2, shuffle=True, random_state=0)
train, test = next(folds.split(X, y, lesion))

linear = LogisticRegression(C=0.01, class_weight="balanced", max_iter=500)
forest = RandomForestClassifier(300, class_weight="balanced", random_state=0)
scores = {}
for name, last in {"linear": linear, "forest": forest}.items():
    model = make_pipeline(StandardScaler(), PCA(100, random_state=0), last)
    scores[name] = model.fit(X[train], y[train]).predict_proba(X[test])
y, lesion = y[test], lesion[test]
print(len(y), "photographs of", len(np.unique(lesion)), "lesions")
""",
    ),
    (
        "The report by class; `groups=` says which photographs belong together.",
        """
from mauc import multiclass_auc_report

print(multiclass_auc_report(y, scores["linear"], groups=lesion))
""",
    ),
    (
        "Without the groups, the interval would be too short:",
        """
from mauc import mauc_interval

for groups in (None, lesion):
    found = mauc_interval(y, scores["linear"], groups=groups)
    print(f"{found.score:.3f} [{found.low:.4f}, {found.high:.4f}]")
""",
    ),
    (
        "The two models on the same photographs:",
        """
from mauc import compare_mauc

found = compare_mauc(y, scores["linear"], scores["forest"], groups=lesion)
print(f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}], p = {found.pvalue:.2g}")
""",
    ),
    (
        "Is one class harder than the others? Simultaneous intervals of the seven classes (Šidák) say what is known:",
        """
together = multiclass_auc_report(y, scores["linear"], groups=lesion, level=0.95 ** (1 / 7), output_dict=True)
for name in sorted(np.unique(y), key=lambda name: together[name]["auc"])[:4]:
    print(f"{name}: {together[name]['auc']:.3f} [{together[name]['low']:.3f}, {together[name]['high']:.3f}]")
""",
    ),
    (
        "How many photographs would halve the interval, and of which class. `groups=` multiplies by the design effect "
        "of the lesions. `low` and `high` say how well these photographs know the number:",
        """
from mauc import mauc_sample_size

one = mauc_interval(y, scores["linear"], groups=lesion)
needed = mauc_sample_size(y, scores["linear"], width=(one.high - one.low) / 2, groups=lesion)
print(needed.rows, needed.class_counts)
print(f"{needed.low} to {needed.high} photographs; design effect {needed.design_effect:.2f}")
print({name: round(share, 2) for name, share in needed.uncertainty.items()})
""",
    ),
]

PARAGRAPH = """
interval = mauc_interval(y, scores["linear"], groups=lesion)
other = mauc_interval(y, scores["forest"], groups=lesion)
names, sizes = np.unique(y, return_counts=True)
rarest = names[np.argmin(sizes)]
of_class = multiclass_auc_report(y, scores["linear"], groups=lesion, output_dict=True)
lowest, next_one = sorted(names, key=lambda name: of_class[name]["auc"])[:2]
print(
    f"Both models were tested on {len(y):,} photographs of {len(np.unique(lesion)):,} lesions that neither was "
    f"trained on. The multiclass AUC (Hand and Till's M, every pair of the {len(names)} classes counting the same) of "
    f"the linear model was {interval.score:.3f} (95 % CI {interval.low:.3f} to {interval.high:.3f}), that of the "
    f"random forest {other.score:.3f} ({other.low:.3f} to {other.high:.3f}); the difference was "
    f"{found.difference:+.4f} ({found.low:+.4f} to {found.high:+.4f}, p = {found.pvalue:.2g}, two-sided paired test). "
    f"The class with the lowest AUC was {lowest} ({of_class[lowest]['auc']:.3f}), followed by {next_one} "
    f"({of_class[next_one]['auc']:.3f}); their simultaneous intervals, {together[lowest]['low']:.3f} to "
    f"{together[lowest]['high']:.3f} and {together[next_one]['low']:.3f} to {together[next_one]['high']:.3f}, overlap. "
    f"The rarest, {rarest}, had {sizes.min()} photographs. Intervals and tests take the photographs of one lesion as "
    "dependent: their variance is that of influence sums over lesions (DeLong's for independent rows)."
)
"""


def run(code: str, names: dict[str, object]) -> str:
    """Return what the code prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), names)
    return printed.getvalue().rstrip()


def main() -> None:
    """Run all steps and write the page."""
    assert "MAUC_DATA_HOME" in os.environ, "set MAUC_DATA_HOME to the folder of the data"
    names: dict[str, object] = {}
    parts = [BEGIN]
    for prose, code in STEPS:
        parts.append(f"{prose}\n\n```python\n{code.strip()}\n```\n\n```text\n{run(code, names)}\n```\n")
    parts.append(f"## The paragraph\n\n> {run(PARAGRAPH, names)}\n")
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
