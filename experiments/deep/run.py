"""One fit of the deep experiments, from data to test scores."""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor

from experiments.deep import data as deep_data
from experiments.deep.data import Parts, capped, parts_of
from experiments.deep.fit import Batches, Features, Fit, InOrder, Schedule, Shuffled, fit, ranked
from experiments.deep.methods import METHODS, Method, Recipe, recipe_of
from experiments.deep.networks import network
from experiments.device import check_device, machine_with
from experiments.score_tables import pairs_by_rarity
from experiments.store import Cell
from mauc._typing import Floats, Ints
from mauc._validation import check_choice
from mauc.nn.functional import mauc_score, pairwise_auc
from mauc.nn.samplers import ClassCoverageBatchSampler

__all__ = ["BAYES", "cells", "judge", "run"]

BAYES = "Bayes scores"
"""The row of the exact posteriors, on simulated sets."""
SAMPLER_ROWS = 20_000
"""Largest number of rows for the samplers, whose neighbour searches grow with the square of the rows. In a larger
training part, the common classes are cut to one size."""
MANY_CLASSES = 500
"""With this many classes or more, IHT uses nearest neighbours: a forest stores a number for every class and node, a
gigabyte per tree with 5,089 classes."""
OF_THE_FIT = ("learning_rate", "weight_decay", "dropout")
"""Parameters of a setting that are not parameters of the loss."""
RARE_PAIRS = 5
SHARES = ((0, 5), (5, 10), (10, 15), (15, 20), (20, 25))
"""Shares of the class pairs, the rarest first, in percent."""


def cells(
    dataset: str,
    data_home: str | None = None,
    features: str | None = None,
    *,
    methods: Sequence[str] | None = None,
    seeds: int = 3,
    device: str = "auto",
    quick: bool = False,
) -> list[Cell]:
    """Return one cell for each seed and method, seed by seed, so that the table is complete early."""
    name = deep_data.resolve(dataset, features, data_home)
    chosen = [check_choice("method", m, tuple(METHODS)) for m in methods or METHODS]
    if name.startswith("simulated-"):
        chosen = [BAYES, *chosen]
    place = check_device(device).type
    depth = "quick" if quick else "full"
    return [
        Cell(
            (depth, name, place, method, f"{seed:02d}"), run, (dataset, data_home, features, method, seed, place, quick)
        )
        for seed in range(seeds)
        for method in chosen
    ]


@lru_cache(maxsize=1)
def _prepared(dataset: str, home: str | None, file: str | None, seed: int, place: str, quick: bool) -> tuple[Any, ...]:
    data = deep_data.load(dataset, home, file, quick)
    parts = parts_of(data, seed)
    where = torch.device(place)
    return data, parts, Features(parts.X, where), torch.from_numpy(parts.y).to(where)


def run(
    dataset: str,
    home: str | None,
    file: str | None,
    name: str,
    seed: int,
    place: str,
    quick: bool,
    choice: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit a method on one split and test it; ``choice`` is a setting of a search, which has no curves."""
    data, parts, X, y = _prepared(dataset, home, file, seed, place, quick)
    if name == BAYES:
        ceiling = data.bayes_mauc() if seed == 0 else None
        scores = torch.from_numpy(data.bayes_scores(data.X[parts.test])).to(place)
        known = {} if ceiling is None else {"ceiling": ceiling.value, "ceiling_stderr": ceiling.stderr}
        return {**judge(parts.y[parts.test], scores, data.counts, data.names), **known, "notes": list(data.notes)}
    method, recipe = METHODS[name], recipe_of(dataset, quick=quick)
    began = time.perf_counter()
    resampled, note = resample(method, parts, X, y, seed)
    sample_seconds = time.perf_counter() - began
    prior = torch.from_numpy(np.log(parts.counts / len(parts.train))).to(place) if method.plug_in else None
    held_out = InOrder(X, parts.validation)
    choices = method.grid if choice is None else (choice,)
    fits = [_fit(method, recipe, parts, *resampled, held_out, seed, each, prior) for each in choices]
    best = max(range(len(fits)), key=lambda k: max(fits[k].scores, default=-1.0))
    chosen = fits[best]
    out: dict[str, Any] = {
        "validation": max(chosen.scores, default=None),
        "epoch": chosen.best_epoch,
        "epochs": _schedule(method, recipe, choices[best]).max_epochs,
        "diverged": chosen.diverged,
        "params": dict(choices[best]),
        "fit_seconds": chosen.seconds,
        "search_seconds": sum(f.seconds for f in fits),
        "sample_seconds": sample_seconds,
        "train_rows": len(resampled[2]),
        "machine": machine_with(place),
        "notes": [*data.notes, *note],
    }
    if choice is None:
        out |= {"validation_scores": chosen.scores, "losses": chosen.losses}
    if not chosen.scores:
        return {**out, "test": None, "rare_pairs": None, "shares": None}
    for part, rows in (("large", parts.large), ("", parts.test)):
        if rows is not None:
            found = judge(parts.y[rows], ranked(chosen.network, InOrder(X, rows), prior), data.counts, data.names)
            out |= {part: found} if part else found
    return out


def _schedule(method: Method, recipe: Recipe, choice: Mapping[str, Any]) -> Schedule:
    """Return the paper's schedule of the loss; in a search, the common one with the searched settings."""
    searched = "weight_decay" in choice
    schedule = recipe.ours[method.surrogate][0] if method.surrogate and not searched else recipe.plain
    changes = {key: choice[key] for key in ("learning_rate", "weight_decay") if key in choice}
    return replace(schedule, optimizer=method.optimizer or schedule.optimizer, **changes)


def _fit(
    method: Method,
    recipe: Recipe,
    parts: Parts,
    X: Features,
    y: torch.Tensor,
    rows: Ints,
    held_out: InOrder,
    seed: int,
    choice: Mapping[str, Any],
    prior: torch.Tensor | None,
) -> Fit:
    schedule = _schedule(method, recipe, choice)
    codes = y.cpu().numpy()[rows]
    counts = np.bincount(codes, minlength=len(parts.counts))
    options = {key: value for key, value in choice.items() if key not in OF_THE_FIT}
    if method.surrogate:
        options = {"surrogate": method.surrogate, "alpha": recipe.ours[method.surrogate][1], **options}
    loss = method.loss(counts, schedule.max_epochs, **options)
    scale = method.cosine_scale and choice.get("scale", method.cosine_scale)
    dropout = choice.get("dropout", 0.0)
    model = network(X.n_features, recipe.hidden, len(counts), seed=seed, cosine_scale=scale, dropout=dropout)
    order: Shuffled | ClassCoverageBatchSampler = Shuffled(len(rows), schedule.batch_size, seed)
    if method.min_per_class is not None:
        least = min(method.min_per_class, int(counts[counts > 0].min()))
        order = ClassCoverageBatchSampler(codes, schedule.batch_size, min_per_class=least, seed=seed)
    n_batches = -(-len(parts.train) // schedule.batch_size)
    train = Batches(X, y, rows, order, n_batches)
    y_held = parts.y[parts.validation]
    return fit(model, loss, schedule, train, held_out, y_held, log_prior=prior, seed=seed)


def resample(
    method: Method,
    parts: Parts,
    X: Features,
    y: torch.Tensor,
    seed: int,
    *,
    most_rows: int = SAMPLER_ROWS,
    many_classes: int = MANY_CLASSES,
) -> tuple[tuple[Features, torch.Tensor, Ints], list[str]]:
    """Return features, classes and rows to train on, and notes on them."""
    if method.sampler is None:
        return (X, y, parts.train), []
    from experiments.baselines import (
        make_sampler,  # needs imbalanced-learn, which the other experiments with networks do not
    )

    rows, note = parts.train, []
    if len(rows) > most_rows:
        most = _cap(parts.counts, most_rows)
        rows = rows[capped(parts.y[rows], most, seed)]
        note = [
            f"BM, MM, IHT, NM and TL start from at most {most:,} training rows of each class, drawn at random, "
            f"{len(rows):,} in all: their neighbour searches grow with the square of the rows."
        ]
    sampler = make_sampler(method.sampler, random_state=seed, n_jobs=-1)
    if method.sampler == "IHT" and len(parts.counts) >= many_classes:
        sampler.set_params(sampler__estimator=KNeighborsClassifier(weights="distance", n_jobs=-1))
        note.append("IHT finds hard samples by their five nearest neighbours: a forest of so many classes is too big.")
    with warnings.catch_warnings():
        # scikit-learn warns that this many classes look like a regression.
        warnings.simplefilter("ignore", UserWarning)
        made, codes = sampler.fit_resample(parts.X[rows], parts.y[rows])
    classes = torch.from_numpy(codes.astype(np.int64)).to(y.device)
    return (Features(made.astype(np.float32), X.place), classes, np.arange(len(codes))), note


def _cap(counts: Ints, total: int) -> int:
    """Return the most rows of each class such that there are about ``total`` in all."""
    low, high = 1, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(counts, middle).sum() <= total else (low, middle - 1)
    return low


def judge(y: Ints, scores: Tensor, counts: Ints, names: Sequence[str]) -> dict[str, Any]:
    """Return test MAUC, the AUC of the rarest class pairs, and the mean AUC of the pairs by their rarity.

    Pairs are sorted by the product of their class sizes in the whole set, so every seed has the same pairs. The AUC of
    a pair is the mean over its two columns; the rarest pairs have both too.
    """
    there = torch.from_numpy(y).to(scores.device)
    matrix = pairwise_auc(scores, there).cpu().numpy()
    i, j, auc = pairs_by_rarity(matrix, counts)
    ends = [(round(len(auc) * low / 100), round(len(auc) * high / 100)) for low, high in SHARES]
    return {
        "test": mauc_score(scores, there).item(),
        "rare_pairs": [
            [names[i[k]], names[j[k]], *map(_number, (auc[k], matrix[i[k], j[k]], matrix[j[k], i[k]]))]
            for k in range(min(RARE_PAIRS, len(auc)))
        ],
        "shares": [_mean(auc[begin:end]) for begin, end in ends],
    }


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
