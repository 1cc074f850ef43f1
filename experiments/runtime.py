"""The paper's running times: seconds per epoch of the exact losses, of loops over class pairs, and of plain loops."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.acceleration import pairs_of_samples
from experiments.datasets.simulated import PRESETS
from experiments.deep.data import split_sizes
from experiments.deep.methods import LOSSES, RECIPES, Recipe
from experiments.deep.networks import network
from experiments.device import check_device, machine_with
from experiments.plots import COLORS, OTHERS, OURS
from experiments.registry import Experiment
from experiments.report_parts import machines, markdown_table, save_figure
from experiments.store import Cell, Store, write_whole
from mauc._validation import check_choice
from mauc.nn.modules import MAUCLoss

__all__ = ["cells", "experiment", "measure", "naive_terms", "selected_terms", "write_report"]

CROSS_ENTROPY = "cross-entropy"
WAYS = ("accelerated", "selected", "naive")
SETS: dict[str, int] = {"cifar100-imb": 23_350, "user-imb": 24_400, "inaturalist": 675_170}
"""Samples, as the paper's table of data sets has them; an epoch is the training part of them."""
BUDGET_SECONDS = 20.0
"""A measurement stops after so long, and the epoch is worked out from the part that was timed."""
POOL = 4
"""Batches of random data that steps take in turn."""
AT_LEAST = 3

PAPER: dict[str, dict[str, tuple[str, ...]]] = {
    "cifar100-imb": {
        "accelerated": ("0.95", "0.97", "0.83"),
        "selected": ("3111", "2393", "2703"),
        "naive": ("51747", "56138", "51302"),
    },
    "user-imb": {
        "accelerated": ("8.59", "9.41", "8.42"),
        "selected": ("89.4", "72.3", "75.2"),
        "naive": ("360", "353", "352"),
    },
    "inaturalist": {
        "accelerated": ("121.8", "117.4", "115.5"),
        "selected": ("–", "–", "–"),
        "naive": ("–", "–", "–"),
    },
}
"""Seconds per epoch on a TITAN RTX, of the squared, exponential and hinge loss; loops over iNaturalist it has not."""

Elementwise = Callable[[Tensor], Tensor]
Results = dict[tuple[str, str, str], dict[str, Any]]
"""Measurements by set, loss and way."""


def experiment(*, dataset: Sequence[str] | None = None, device: str = "auto", quick: bool = False) -> Experiment:
    """Plan the experiment."""
    place = check_device(device).type
    return Experiment(cells(sets=dataset, device=place, quick=quick), partial(write_report, device=place, quick=quick))


def elementwise(loss: str, alpha: float) -> Elementwise:
    """Return the surrogate of a tensor of differences, as one would write it."""
    if loss == "squared":
        return lambda t: (alpha - t) ** 2
    if loss == "exponential":
        return lambda t: torch.exp(-alpha * t)
    return lambda t: torch.relu(alpha - t)


def selected_terms(scores: Tensor, target: Tensor, loss: Elementwise) -> Iterator[Tensor]:
    """Yield the term of each ordered pair of classes in the risk: all differences of its samples at once."""
    column = scores.unbind(1)  # the gradient of an entry is then as long as its column only
    rows = {c: (target == c).nonzero()[:, 0] for c in torch.bincount(target).nonzero()[:, 0].tolist()}
    weight = 1.0 / max(1, len(rows) * (len(rows) - 1))
    for i, positive in rows.items():
        for j, negative in rows.items():
            if i != j:
                differences = column[i][positive][:, None] - column[i][negative][None, :]
                yield weight * loss(differences).mean()


def naive_terms(scores: Tensor, target: Tensor, loss: Elementwise) -> Iterator[Tensor]:
    """Yield the term of each pair of samples in the risk."""
    column = scores.unbind(1)
    for m, n, i, weight in pairs_of_samples(target.cpu().numpy()):
        yield weight * loss(column[i][m] - column[i][n])


def n_terms(way: str, target: Tensor) -> int:
    """Count the terms of the loops on a batch."""
    counts = torch.bincount(target.cpu()).double()
    counts = counts[counts > 0]
    if way == "selected":
        return len(counts) * (len(counts) - 1)
    return int(counts.sum() ** 2 - (counts**2).sum())


def batches_of_an_epoch(name: str, samples: int | None = None) -> int:
    """Count the batches of the training part of a set, with the paper's number of samples unless another is given."""
    return -(-int(split_sizes(name)[0] * (samples or SETS[name])) // RECIPES[name].plain.batch_size)


def cells(*, sets: Sequence[str] | None = None, device: str = "auto", quick: bool = False) -> list[Cell]:
    """Return one cell for each set, way and loss, and one of cross-entropy for each set."""
    place = check_device(device).type
    budget = BUDGET_SECONDS / 10 if quick else BUDGET_SECONDS
    depth = "quick" if quick else "full"
    out = []
    for name in sets or SETS:
        check_choice("dataset", name, tuple(SETS))
        for loss, way in ((CROSS_ENTROPY, "accelerated"), *((loss, way) for loss in LOSSES for way in WAYS)):
            out.append(Cell((depth, place, name, loss, way), measure, (name, loss, way, place, budget)))
    return out


def measure(
    name: str,
    loss: str,
    way: str,
    place: str,
    budget: float,
    samples: int | None = None,
    n_features: int | None = None,
) -> dict[str, Any]:
    """Measure the seconds per epoch, and which share of its work was timed.

    The accelerated losses and cross-entropy: whole training steps. The loops: as many of their terms on one batch as
    the budget allows, forward and backward to the scores, then all terms of an epoch in proportion, and the steps of
    the network (those of cross-entropy) on top. ``samples`` and ``n_features`` are the paper's unless given.
    """
    recipe, batches = _problem(name, place, n_features or PRESETS[name].n_features)
    n_batches = batches_of_an_epoch(name, samples)
    schedule, alpha = recipe.ours[loss] if loss in LOSSES else (recipe.plain, 0.0)
    function: nn.Module = (
        nn.CrossEntropyLoss()
        if loss == CROSS_ENTROPY or way != "accelerated"
        else MAUCLoss(surrogate=loss, alpha=alpha, log_loss=0.0)
    )
    model = network(batches[0][0].shape[1], recipe.hidden, len(PRESETS[name].class_counts), seed=0).to(place)
    kind = torch.optim.SGD if schedule.optimizer == "sgd" else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay)

    def step(k: int) -> None:
        x, y = batches[k % len(batches)]
        optimizer.zero_grad()
        function(model(x), y).backward()
        optimizer.step()

    seconds, steps = _timed(step, n_batches, budget, place)
    out: dict[str, Any] = {
        "batches": n_batches,
        "share": steps / n_batches,
        "seconds": seconds / steps * n_batches,
        "machine": machine_with(place),
    }
    if way == "accelerated":
        return out
    x, y = batches[0]
    with torch.no_grad():
        scores = model(x).softmax(1)
    terms = {"selected": selected_terms, "naive": naive_terms}[way]
    one, done = _loop_seconds(terms, scores, y, elementwise(loss, alpha), budget, place)
    share = done / n_terms(way, y)
    return out | {"share": share / n_batches, "seconds": out["seconds"] + one / share * n_batches}


def _loop_seconds(
    terms: Callable[..., Iterator[Tensor]], scores: Tensor, y: Tensor, loss: Elementwise, budget: float, place: str
) -> tuple[float, int]:
    """Time as many terms as fit into the budget, forward and backward; return the seconds and the terms."""
    many = 50
    while True:
        leaf = scores.clone().requires_grad_()
        _wait(place)
        begin = time.perf_counter()
        total, done = leaf.new_zeros(()), 0
        for term in islice(terms(leaf, y, loss), many):
            total = total + term
            done += 1
        torch.autograd.backward(total)
        _wait(place)
        seconds = time.perf_counter() - begin
        # The next attempt is ten times as long: its time must fit, too, and graphs of more terms fill the memory.
        if done < many or seconds * 11 > budget or many >= 50_000:
            return seconds, done
        many *= 10


def _timed(step: Callable[[int], None], n_batches: int, budget: float, place: str) -> tuple[float, int]:
    """Time an epoch's steps, or those that the budget allows, after one to warm up; return seconds and steps."""
    step(0)
    _wait(place)
    begin, k = time.perf_counter(), 0
    while k < n_batches:
        step(k)
        k += 1
        # A GPU runs behind: waiting for it at every step would slow the epoch that is measured.
        if k >= AT_LEAST and (place != "cuda" or k % 50 == 0) and time.perf_counter() - begin > budget:
            break
    _wait(place)
    return time.perf_counter() - begin, k


def _wait(place: str) -> None:
    if place == "cuda":
        torch.cuda.synchronize()


@lru_cache(maxsize=1)
def _problem(name: str, place: str, n_features: int) -> tuple[Recipe, list[tuple[Tensor, Tensor]]]:
    """Return the recipe, and a few batches of random features whose classes are drawn by their shares."""
    recipe = RECIPES[name]
    rng = np.random.default_rng(0)
    counts = np.array(PRESETS[name].class_counts)
    batches = []
    for _ in range(POOL):
        y = rng.choice(len(counts), recipe.plain.batch_size, p=counts / counts.sum())
        x = rng.standard_normal((len(y), n_features), dtype=np.float32)
        batches.append((torch.from_numpy(x).to(place), torch.from_numpy(y).to(place)))
    return recipe, batches


def write_report(store: Store, folder: Path, device: str, *, quick: bool = False) -> list[Path]:
    """Write ``runtime-DEVICE.md`` and ``.png`` of what is on disk; return the files."""
    depth = "quick" if quick else "full"
    results: Results = {}
    for name in SETS:
        for loss in (CROSS_ENTROPY, *LOSSES):
            for way in WAYS:
                key = (depth, device, name, loss, way)
                if key in store:
                    results[name, loss, way] = store.read(key)
    if not results:
        return []
    page = folder / f"runtime-{device}.md"
    write_whole(page, _markdown(results))
    return [page, save_figure(_figure(results), folder / f"runtime-{device}.png")]


def _markdown(results: Results) -> str:
    head = ["set", "loss", *(f"{way}, {whose}" for way in WAYS for whose in ("here", "paper"))]
    head += ["accelerated / cross-entropy", "naive / accelerated"]
    rows = []
    for name in dict.fromkeys(key[0] for key in results):
        for k, loss in enumerate((CROSS_ENTROPY, *LOSSES)):
            found = [results.get((name, loss, way)) for way in WAYS]
            if not any(found):
                continue
            row = [name, loss]
            for way, result in zip(WAYS, found, strict=True):
                row += [_seconds(result), PAPER[name][way][k - 1] if loss != CROSS_ENTROPY else ""]
            row += [_ratio(found[0], results.get((name, CROSS_ENTROPY, "accelerated"))), _ratio(found[2], found[0])]
            rows.append(row)
    note = (
        "This page measures the seconds per epoch of the paper's running-time table; its numbers are beside ours. The "
        "network and the batches are the paper's. The features are random; there are as many rows as the paper's "
        "training samples (80 % of a set, of iNaturalist 70 %). “Accelerated” is the exact loss of this library. "
        "“Selected” loops over pairs of classes and computes all differences of a pair at once. “Naive” loops over "
        "pairs of samples. Both loops use autograd. “≈” marks numbers extrapolated from a part of the epoch, as for "
        "all loops. The paper used its own code on a TITAN RTX. " + machines(results.values())
    )
    return f"{note}\n\n{markdown_table(head, rows)}\n"


def _seconds(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    return f"{'' if result['share'] >= 1 else '≈ '}{result['seconds']:,.3g}".replace("e+0", "e")


def _ratio(over: dict[str, Any] | None, under: dict[str, Any] | None) -> str:
    return f"{over['seconds'] / under['seconds']:,.3g}x" if over and under else ""


def _figure(results: Results) -> Any:
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(key[0] for key in results))
    figure = Figure(figsize=(3.6 * len(names), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for shift, color, way in zip((-0.27, 0.0, 0.27), (OURS, COLORS[3], OTHERS), WAYS, strict=True):
            found = [(k, results[name, loss, way]) for k, loss in enumerate(LOSSES) if (name, loss, way) in results]
            axes.bar([k + shift for k, _ in found], [r["seconds"] for _, r in found], 0.25, color=color, label=way)
        axes.set(yscale="log", title=name, ylabel="seconds an epoch")
        axes.set_xticks(range(len(LOSSES)), LOSSES)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(WAYS), frameon=False)
    return figure
