"""Training of one network; on a GPU each step is one recorded graph."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from experiments.longtail.data import Data
from experiments.longtail.losses import make
from experiments.longtail.networks import network_for
from mauc.nn.functional import pairwise_auc

__all__ = ["Recipe", "Run", "recipe_for"]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained; the rate rises over five epochs (a tenth at most) and falls by a cosine."""

    epochs: int
    batch: int
    optimizer: str
    rate: float
    decay: float
    blocks: int
    """Blocks in each stage of the ResNet; 0 for the perceptron of a table."""


def recipe_for(data: Data, **changes: Any) -> Recipe:
    """Return SGD as in the long-tail literature for images, Adam for tables."""
    if data.X.ndim == 4:
        settings = {"epochs": 200, "batch": 128, "optimizer": "sgd", "rate": 0.1, "decay": 5e-4, "blocks": 5}
    else:
        epochs = 15 if len(data.X) > 100_000 else 30
        batch = 1024 if len(data.X) > 100_000 else 128
        settings = {"epochs": epochs, "batch": batch, "optimizer": "adam", "rate": 1e-3, "decay": 1e-4, "blocks": 0}
    return Recipe(**{**settings, **{key: value for key, value in changes.items() if value is not None}})


class Run:
    """One network, one loss, one seed, on the device of the data."""

    def __init__(self, data: Data, method: str, recipe: Recipe, seed: int) -> None:
        self.data, self.method, self.recipe, self.seed, self.device = data, method, recipe, seed, data.X.device
        self.stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None  # type: ignore[no-untyped-call]

    def train(self) -> dict[str, Any]:
        """Train the network and return its scores on the test rows after the last epoch."""
        began = time.perf_counter()
        with torch.cuda.stream(self.stream):
            self._begin()
            take = self._record() if self.stream else self._step
            for epoch in range(self.recipe.epochs):
                self._begin_epoch(epoch)
                for _ in range(self.n_steps):
                    take()
            found = self._judge()
        return {**found, "seconds": time.perf_counter() - began}

    def _begin(self) -> None:
        data, recipe = self.data, self.recipe
        self.rng = torch.Generator(self.device).manual_seed(1000 + self.seed)
        self.loss = make(self.method, data.counts)
        torch.manual_seed(self.seed)
        shape = tuple(data.X.shape[1:])
        network = network_for(shape, data.n_classes, blocks=recipe.blocks, cosine=self.loss.cosine).to(self.device)
        self.images = data.X.ndim == 4
        self.network = network.to(memory_format=torch.channels_last) if self.images else network
        self.batch = min(recipe.batch, len(data.X))
        self.n_steps = len(data.X) // self.batch
        self.rate = torch.zeros((), device=self.device)
        fused = self.device.type == "cuda"
        if recipe.optimizer == "sgd":
            self.optimizer: Any = torch.optim.SGD(
                network.parameters(), lr=self.rate, momentum=0.9, weight_decay=recipe.decay, fused=fused
            )
        else:
            self.optimizer = torch.optim.Adam(
                network.parameters(), lr=self.rate, weight_decay=recipe.decay, fused=fused, capturable=fused
            )
        rows = self.n_steps * self.batch
        self.order = torch.zeros(rows, dtype=torch.long, device=self.device)
        self.moves = torch.zeros(rows, 2, dtype=torch.long, device=self.device)
        self.flips = torch.zeros(rows, dtype=torch.bool, device=self.device)
        self.cursor = torch.zeros((), dtype=torch.long, device=self.device)
        self.value = torch.zeros((), device=self.device)
        if self.images:
            self.X = nn.functional.pad(data.X, (4, 4, 4, 4))

    def _begin_epoch(self, epoch: int) -> None:
        recipe, n = self.recipe, len(self.data.X)
        warm = max(1, min(5, recipe.epochs // 10))
        up = min(1.0, (epoch + 1) / warm)
        down = 0.5 + 0.5 * torch.cos(torch.tensor(torch.pi * max(0, epoch - warm) / max(1, recipe.epochs - warm)))
        self.rate.fill_(recipe.rate * up * float(down))
        self.loss.begin_epoch(epoch / recipe.epochs)
        self.order.copy_(torch.randperm(n, generator=self.rng, device=self.device)[: len(self.order)])
        self.cursor.zero_()
        if self.images:
            self.moves.random_(0, 9, generator=self.rng)
            self.flips.copy_(torch.rand(len(self.flips), generator=self.rng, device=self.device) < 0.5)

    def _rows(self) -> tuple[Tensor, Tensor]:
        """Return the next batch: images moved by up to four pixels and turned over by chance."""
        place = self.cursor + torch.arange(self.batch, device=self.device)
        rows = self.order[place]
        if not self.images:
            return self.data.X[rows], self.data.y[rows]
        pixel = torch.arange(32, device=self.device)
        down = self.moves[place, 0][:, None] + pixel
        across = self.moves[place, 1][:, None] + torch.where(self.flips[place][:, None], 31 - pixel, pixel)
        colour = torch.arange(3, device=self.device)
        picked = self.X[rows[:, None, None, None], colour[:, None, None], down[:, None, :, None], across[:, None, None]]
        return picked.contiguous(memory_format=torch.channels_last), self.data.y[rows]

    def _backward(self) -> Tensor:
        x, y = self._rows()
        half = self.images and self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            z = self.network(x)
        value = self.loss(z.float(), y)
        value.backward()
        return value.detach()

    def _step(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)
        self.value.copy_(self._backward())
        self.optimizer.step()
        self.cursor.add_(self.batch)

    def _record(self) -> Any:
        """Record a step as a graph and undo the changes of the first steps."""
        state = {key: value.clone() for key, value in self.network.state_dict().items()}
        self._begin_epoch(0)
        self.rate.zero_()
        for _ in range(3):
            self._step()
        self.cursor.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self._step()
        self.network.load_state_dict(state)
        for each in self.optimizer.state.values():
            for value in each.values():
                if isinstance(value, Tensor):
                    value.zero_()
        return graph.replay

    @torch.no_grad()
    def _judge(self) -> dict[str, Any]:
        """Return MAUC and accuracy by the logits and by the logits less the log class frequencies."""
        self.network.eval()
        half = self.images and self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half):
            z = torch.cat([self.network(x).float() for x in self.data.X_test.split(2000)])
        if self.loss.cosine:
            z = self.loss.settings["scale"] * z
        y, finite = self.data.y_test, bool(z.isfinite().all())
        found: dict[str, Any] = {"loss": float(self.value), "finite": finite}
        if not finite:
            return found
        log_prior = self.loss.log_prior
        for name, scores in {
            "softmax": z.softmax(1), "adjusted": (z - log_prior).softmax(1), "sigmoid": z.sigmoid()
        }.items():  # fmt: skip
            found[f"mauc_{name}"] = by_group(pairwise_auc(scores, y), self.data.counts)
        for name, scores in {"softmax": z, "adjusted": z - log_prior}.items():
            right = (scores.argmax(1) == y).double()
            n = y.bincount(minlength=z.shape[1]).clamp_min(1)
            recall = torch.zeros(z.shape[1], dtype=torch.double, device=y.device).index_add_(0, y, right) / n
            found[f"accuracy_{name}"] = [float(right.mean()), *(float(recall[g].mean()) for g in thirds(log_prior))]
        return found


def thirds(sizes: Tensor) -> list[Tensor]:
    """Return the classes of the head, the middle and the tail: a third of the classes each, by training rows."""
    order = sizes.argsort(descending=True, stable=True)
    return list(order.tensor_split(3))


def by_group(auc: Tensor, counts: Tensor) -> list[float]:
    """Return the mean over all ordered pairs of classes, and over those with a class of the head, middle or tail."""
    each = torch.nanmean(torch.cat([auc, auc.t()], 1), 1)
    return [float(torch.nanmean(auc)), *(float(torch.nanmean(each[g])) for g in thirds(counts))]
