"""Results of the deep experiments on disk."""

from collections.abc import Sequence
from typing import Any

from experiments.deep.methods import METHODS
from experiments.deep.run import BAYES
from experiments.deep.search import best_of
from experiments.score_tables import done
from experiments.store import Store

__all__ = ["DEPTHS", "Results", "depth_of", "found", "read_results", "search_size"]

Results = dict[str, list[dict[str, Any]]]
"""Runs by method, one per seed."""
DEPTHS = ("full", "quick", "tuned", "tuned-quick")


def depth_of(*, quick: bool, tuned: bool) -> str:
    """Return the first part of the keys."""
    return "-".join(name for name, here in (("tuned", tuned), ("quick", quick)) if here) or "full"


def found(store: Store) -> list[tuple[str, str, str]]:
    """Return depth, name of the set and device of all results on disk."""
    folders = sorted(path for depth in DEPTHS for path in store.folder.glob(f"{depth}/*/*") if path.is_dir())
    return [(path.parent.parent.name, path.parent.name, path.name) for path in folders]


def read_results(store: Store, name: str, device: str, *, quick: bool = False, tuned: bool = False) -> Results:
    """Return results by method, in the order of the tables, for the seeds that all of them have.

    Of a search, return those of the setting that is best on validation, without methods whose search is incomplete.
    """
    prefix = (depth_of(quick=quick, tuned=tuned), name, device)
    places = _chosen(store, prefix) if tuned else {m: (*prefix, m) for m in (BAYES, *METHODS)}
    seeds = {m: set(done(store, place)) for m, place in places.items()}
    seeds = {m: some for m, some in seeds.items() if some}
    common = sorted(set.intersection(*seeds.values())) if seeds else []
    return {m: [store.read((*places[m], seed)) for seed in common] for m in seeds if common}


def search_size(store: Store, name: str, device: str, *, quick: bool = False) -> tuple[int, int]:
    """Return how many settings a search tried of each method, and on how many seeds it tried all of them."""
    by_method = _tried(store, (depth_of(quick=quick, tuned=True), name, device))
    number = max(map(len, by_method.values()))
    seeds = (min(map(len, by_setting.values())) for by_setting in by_method.values() if len(by_setting) == number)
    return number, max(seeds, default=0)


def _tried(store: Store, prefix: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the seeds that have a result, by method and setting."""
    tried: dict[str, dict[str, list[str]]] = {}
    for method in METHODS:
        folder = store.path((*prefix, method, "any")).parent
        seeds = {path.name: done(store, (*prefix, method, path.name)) for path in sorted(folder.glob("*"))}
        tried[method] = {setting: some for setting, some in seeds.items() if some}
    return tried


def _chosen(store: Store, prefix: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the keys of each method's best setting, without their seeds."""
    tried = _tried(store, prefix)
    number = max(map(len, tried.values()))
    out: dict[str, tuple[str, ...]] = {}
    for method, seeds in tried.items():
        # The most seeds first: of settings that are equal on validation, take the one that was tested.
        settings = sorted(seeds, key=lambda setting, seeds=seeds: -len(seeds[setting]))  # type: ignore[misc]
        common = sorted(set.intersection(*map(set, seeds.values()))) if seeds else []
        if len(settings) == number and common:
            runs = [[store.read((*prefix, method, setting, seed)) for seed in common] for setting in settings]
            out[method] = (*prefix, method, settings[best_of(runs)])
    return out
