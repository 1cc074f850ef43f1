"""A search as cells: every setting of every method on the first seeds, then the best of each on the others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiments.datasets.images import IMAGES
from experiments.deep import data as deep_data
from experiments.deep.methods import METHODS, method_names, recipe_of
from experiments.deep.run import run
from experiments.deep.search import best_of, label, settings_of
from experiments.device import check_device
from experiments.store import Cell, Store
from mauc._validation import check_choice, check_whole

__all__ = ["Search", "searched_methods"]


@dataclass(frozen=True)
class Search:
    """Every method with the setting that is best on validation: which cells that takes."""

    dataset: str
    data_home: str | None
    features: str | None
    methods: tuple[str, ...]
    settings: int
    """That are tried of each method."""
    tuning_seeds: int
    """Over whose validation parts the mean chooses."""
    seeds: int
    """That the chosen setting is judged on; the first are those that chose."""
    place: str
    quick: bool

    @classmethod
    def of(
        cls,
        dataset: str,
        data_home: str | None,
        features: str | None,
        methods: Sequence[str] | None,
        settings: int,
        tuning_seeds: int,
        *,
        seeds: int,
        device: str,
        quick: bool,
    ) -> "Search":
        """A search whose options are checked; all methods of :func:`searched_methods` if none are named."""
        check_choice("dataset", dataset, deep_data.DATASETS)
        check_whole("tuning_seeds", tuning_seeds, least=1, most=seeds, advice="--seeds are at least as many")
        names = tuple(check_choice("method", m, method_names()) for m in methods or searched_methods(dataset))
        place = check_device(device).type
        return cls(dataset, data_home, features, names, settings, tuning_seeds, seeds, place, quick)

    @property
    def prefix(self) -> tuple[str, str, str]:
        """First parts of the keys."""
        name = deep_data.resolve(self.dataset, self.features, self.data_home)
        return ("tuned-quick" if self.quick else "tuned", name, self.place)

    def choices(self, method: str) -> list[dict[str, Any]]:
        """Settings of a method."""
        return settings_of(METHODS[method], recipe_of(self.dataset, quick=self.quick), self.settings)

    def first(self) -> list[Cell]:
        """All settings on the seeds that choose."""
        return [
            self._cell(method, choice, seed)
            for seed in range(self.tuning_seeds)
            for method in self.methods
            for choice in self.choices(method)
        ]

    def then(self, store: Store) -> list[Cell]:
        """The chosen setting of each method whose search is complete, on the other seeds."""
        chosen = {m: self._chosen(store, m) for m in self.methods}
        return [
            self._cell(method, choice, seed)
            for seed in range(self.tuning_seeds, self.seeds)
            for method, choice in chosen.items()
            if choice is not None
        ]

    def _chosen(self, store: Store, method: str) -> dict[str, Any] | None:
        choices, seeds = self.choices(method), [f"{seed:02d}" for seed in range(self.tuning_seeds)]
        keys = [[(*self.prefix, method, label(choice), seed) for seed in seeds] for choice in choices]
        if not all(key in store for each in keys for key in each):
            return None
        return choices[best_of([[store.read(key) for key in each] for each in keys])]

    def _cell(self, method: str, choice: dict[str, Any], seed: int) -> Cell:
        arguments = (self.dataset, self.data_home, self.features, method, seed, self.place, self.quick, choice)
        together = (method, seed) if seed < self.tuning_seeds else ("judge", seed)
        return Cell((*self.prefix, method, label(choice), f"{seed:02d}"), run, arguments, together)


def searched_methods(dataset: str) -> tuple[str, ...]:
    """Those that a search takes if none are named: without the samplers, whose neighbour searches run on the host for
    minutes in each of thousands of fits, and on images, whose classes all fit into a batch, without covered batches.
    """
    covered = dataset not in IMAGES
    return tuple(m.name for m in METHODS.values() if m.sampler is None and (covered or m.min_per_class is None))
