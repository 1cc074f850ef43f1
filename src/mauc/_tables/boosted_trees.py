"""The trees of histogram boosting as a few arrays: a file of thousands of small objects takes a minute to write.

``HistGradientBoostingClassifier`` keeps a list of objects with three arrays each. Here all trees of a model are one
array of nodes, one of where each tree ends, and two of categories. No public call gives or takes the trees, so this
reads ``_predictors``; ``tests/tables/test_model_file.py`` fails where a new scikit-learn renames it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

__all__ = ["packed_trees", "unpack_trees"]


@contextmanager
def packed_trees(model: Any) -> Iterator[None]:
    """While this lasts the boosted models within ``model`` hold their trees as arrays."""
    boosters = list(_boosters(model))
    kept = [booster._predictors for booster in boosters]
    try:
        for booster in boosters:
            booster._predictors = _packed(booster._predictors)
        yield
    finally:
        for booster, trees in zip(boosters, kept, strict=True):
            booster._predictors = trees


def unpack_trees(model: Any) -> None:
    """Make trees of the arrays again; a ValueError where a node leads out of its tree or names no column."""
    for booster in _boosters(model):
        if isinstance(booster._predictors, dict):
            booster._predictors = _unpacked(booster._predictors, int(booster._n_features))


def _boosters(model: Any) -> Iterator[Any]:
    """The boosted models within estimators, lists and dicts, each once."""
    from sklearn.base import BaseEstimator
    from sklearn.ensemble import HistGradientBoostingClassifier

    waiting, seen = [model], set()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, HistGradientBoostingClassifier):
            yield each
        elif isinstance(each, BaseEstimator):
            waiting.extend(vars(each).values())
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)


def _packed(trees: list[list[Any]]) -> dict[str, Any]:
    every = [tree for of_round in trees for tree in of_round]
    return {
        "nodes": np.concatenate([tree.nodes for tree in every]),
        "ends": np.cumsum([len(tree.nodes) for tree in every]),
        "binned": np.concatenate([tree.binned_left_cat_bitsets for tree in every]),
        "raw": np.concatenate([tree.raw_left_cat_bitsets for tree in every]),
        "category_ends": np.cumsum([len(tree.raw_left_cat_bitsets) for tree in every]),
        "per_round": len(trees[0]),
    }


def _unpacked(arrays: dict[str, Any], n_features: int) -> list[list[Any]]:
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    nodes = np.split(arrays["nodes"], arrays["ends"][:-1])
    binned, raw = (np.split(arrays[name], arrays["category_ends"][:-1]) for name in ("binned", "raw"))
    for tree, categories in zip(nodes, raw, strict=True):
        _check(tree, len(categories), n_features)
    trees = [TreePredictor(*each) for each in zip(nodes, binned, raw, strict=True)]
    step = int(arrays["per_round"])
    return [trees[k : k + step] for k in range(0, len(trees), step)]


def _check(tree: Any, n_categories: int, n_features: int) -> None:
    """Prediction follows the nodes without a look at their numbers."""
    places = np.flatnonzero(tree["is_leaf"] == 0)
    inner = tree[places]
    first, last = (which(inner["left"], inner["right"]) for which in (np.minimum, np.maximum))
    columns, sets = inner["feature_idx"], inner["bitset_idx"][inner["is_categorical"] != 0]
    if not len(tree) or (first <= places).any() or (last >= len(tree)).any():
        raise ValueError("a node of a boosted tree leads out of its tree")
    if (columns < 0).any() or (columns >= n_features).any() or (sets >= n_categories).any():
        raise ValueError("a node of a boosted tree names a column or categories that are not there")
