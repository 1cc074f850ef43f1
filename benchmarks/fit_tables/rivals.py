"""Fit one rival on the rows that ``mauc fit`` trains on: ``python -m benchmarks.fit_tables.rivals TASK``.

TASK is a JSON file with the rival, the table, its target, the seed and the output; for AutoGluon also its interpreter,
seconds and cores. Writes the held-out scores in the form of ``mauc fit``: arrays ``rows``, ``labels``, ``classes``,
``scores``.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.preprocessing import OrdinalEncoder

from mauc._tables.data import stratified

__all__ = ["default_split", "labels_of"]

MOST_CATEGORIES = 255
"""Largest number of categories that HistGradientBoostingClassifier takes."""


def labels_of(target: pd.Series) -> Any:
    """Return the classes as ``mauc fit`` reads them: texts without surrounding blanks."""
    return target.astype(str).str.strip().to_numpy(dtype=str)


def default_split(labels: Any, seed: int) -> tuple[Any, Any]:
    """Return the training and test rows of ``mauc fit --seed``."""
    return stratified(labels, 0.25, seed)


def forest(train: pd.DataFrame, y: Any, test: pd.DataFrame, task: dict[str, Any]) -> tuple[Any, Any]:
    """Fit the defaults; texts become ordinal codes."""
    encoder = _encoder(_texts(train))
    model = RandomForestClassifier(random_state=0).fit(encoder.fit_transform(train), y)
    return model.classes_, model.predict_proba(encoder.transform(test))


def boosting(train: pd.DataFrame, y: Any, test: pd.DataFrame, task: dict[str, Any]) -> tuple[Any, Any]:
    """Fit the defaults; texts are categories, or ordinal codes where there are too many categories."""
    many = [name for name in _texts(train) if train[name].nunique() > MOST_CATEGORIES]
    encoder = _encoder(many).set_output(transform="pandas")
    train, test = encoder.fit_transform(train), encoder.transform(test)
    for name in _texts(train):
        train[name] = train[name].astype("category")
        test[name] = test[name].astype(train[name].dtype)
    model = HistGradientBoostingClassifier(random_state=0).fit(train, y)
    return model.classes_, model.predict_proba(test)


def autogluon(train: pd.DataFrame, y: Any, test: pd.DataFrame, task: dict[str, Any]) -> tuple[Any, Any]:
    """Fit as in ``python -m experiments tabular --autogluon``."""
    from experiments.tabular.against import autogluon_scores

    classes, codes = np.unique(y, return_inverse=True)
    scores, details = autogluon_scores(
        task["python"], task["seconds"], train, codes, test, len(classes), cores=task["cores"]
    )
    task["details"] = details
    if scores is None:
        raise RuntimeError(details["failed"])
    return classes, scores


RIVALS = {"random forest": forest, "histogram boosting": boosting, "AutoGluon": autogluon}


def _texts(table: pd.DataFrame) -> list[str]:
    return [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]


def _encoder(columns: list[str]) -> Any:
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    return make_column_transformer((codes, columns), remainder="passthrough", verbose_feature_names_out=False)


def main(place: Path) -> None:
    """Read the task, run its rival, write the scores, and print the details."""
    task = json.loads(place.read_text(encoding="utf-8"))
    table = pd.read_parquet(task["table"])
    labels, features = labels_of(table[task["target"]]), table.drop(columns=task["target"])
    train, test = default_split(labels, task["seed"])
    began = time.perf_counter()
    classes, scores = RIVALS[task["rival"]](features.iloc[train], labels[train], features.iloc[test], task)
    seconds = time.perf_counter() - began
    np.savez(task["out"], rows=test, labels=labels[test], classes=classes, scores=scores)
    print(json.dumps({"fit_seconds": seconds, **task.get("details", {})}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
