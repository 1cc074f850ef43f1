"""Minibatches in which every class is present."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, distributed
from torch.utils.data import Sampler

from mauc._typing import Floats, Ints
from mauc._validation import check_real, check_whole, invalid

__all__ = ["ClassCoverageBatchSampler"]

GOLDEN = 0.6180339887498949


class Epoch(NamedTuple):
    """The batches of an epoch over all ranks."""

    n_batches: int
    turns: Ints
    """``(C,)`` number of batches ``a_c`` that cover class c; their sum is ``m · n_batches``."""
    n_left: int
    """Samples that no turn visits: they fill the batches."""


class ClassCoverageBatchSampler(Sampler[list[int]]):
    r"""Draw batches that hold every class, however rare: the pair loss learns only from classes that meet in a batch.

    Every batch holds at least ``min_per_class`` samples of every class. If these do not fit in ``batch_size``, every
    batch holds ``min_per_class`` samples of as many classes as fit, and the classes take turns. An epoch visits every
    sample.

    Parameters
    ----------
    labels : (N,) classes of the samples
        Integers, strings, or a tensor.
    batch_size : int
        The largest size of a batch. All batches have the same size up to one sample.
    min_per_class : int, default=1
        Number k of samples of a class in each batch that covers the class.
    cover_share : float, default=1.0
        The share of a batch, above 0 and at most 1, that may go to covering classes. Lower it if an epoch is too long;
        see the notes.
    seed : int, default=0
        Fixes the order, together with the number of the epoch.
    shuffle : bool, default=True
        Use a new order in each epoch. If False, samples of a class keep their order.
    drop_last : bool, default=False
        Leave out the samples that would make the batches of an epoch smaller than ``batch_size``: at most one batch per
        rank, and different samples in each epoch.
    rank, num_replicas : int, optional
        This process and the number of processes. Default: those of ``torch.distributed`` if it is initialised, else one
        process.

    Notes
    -----
    *Visits.* A class that :math:`a_c` batches cover has :math:`k a_c` places there, which its samples take in turn. If
    it has fewer samples than places, samples repeat, but never in one batch. If it has more, each is visited once, and
    those without a place fill the batches. An epoch has as few batches B as that allows. Each covers m classes, as many
    as fit in ``cover_share`` of it:

    - If all classes fit, every batch covers every class, and B is the smallest number with
      :math:`\sum_c (n_c - k B)_+ \le B \, (\text{batch\_size} - k C)`.
    - Else a class gets the turns that its samples need, and at least half an equal share; the rest goes to the classes
      with fewest turns. The turns of a class are spread evenly: it returns within :math:`3 B / a_c + 1` batches.

    A batch full of coverage holds k samples of the largest class, so an epoch of such batches is
    :math:`\max_c n_c / k` long. With ``cover_share=0.5`` it has about :math:`2 N / \text{batch\_size}` batches at most.

    *Ranks.* The epoch is planned once for all ranks, and its batches are dealt out in turn: every rank has the same
    number of batches, and every batch on every rank covers the classes. Ranks that may have begun different numbers of
    epochs must call :meth:`set_epoch` before each epoch; Lightning does it (pass it ``use_distributed_sampler=False``).

    *Resuming.* To continue a run, pass the number of the next epoch, ``epoch``, to :meth:`set_epoch`.

    Repeating rare classes changes the class shares that a loss sees (:attr:`class_visits`). Multiclass AUC with
    ``pairs="ovo"`` does not depend on them. An epoch takes O(N) time and memory.

    Examples
    --------
    >>> import numpy as np
    >>> from mauc.nn.samplers import ClassCoverageBatchSampler
    >>> y = np.repeat([0, 1, 2], [7, 4, 1])
    >>> sampler = ClassCoverageBatchSampler(y, batch_size=5)
    >>> len(sampler)
    3
    >>> [np.bincount(y[batch]).tolist() for batch in sampler]
    [[3, 1, 1], [2, 2, 1], [2, 1, 1]]

    With a ``DataLoader``, as ``DataLoader(dataset, batch_sampler=sampler)``.
    """

    def __init__(
        self,
        labels: Any,
        batch_size: int,
        *,
        min_per_class: int = 1,
        cover_share: float = 1.0,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        self.min_per_class = check_whole("min_per_class", min_per_class, least=1)
        self.batch_size = check_whole("batch_size", batch_size, least=1)
        self.seed = check_whole("seed", seed, least=0)
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        self.rank, self.num_replicas = _process(rank, num_replicas)
        self.epoch = 0
        names, self._codes = _encode(labels)
        counts = np.bincount(self._codes)
        few = np.flatnonzero(counts < self.min_per_class)
        if len(few):
            came = f"{counts[few[0]]} of class {names[few[0]]}"
            advice = "lower min_per_class, or drop or merge that class"
            raise invalid("labels", f"must hold at least min_per_class={min_per_class} of every class", came, advice)
        share = check_real("cover_share", cover_share, low=0, high=1, closed="right")
        n_covered = min(len(counts), int(share * self.batch_size) // self.min_per_class)
        if n_covered < 2:
            requirement = f"must have room for two classes of min_per_class={min_per_class} samples"
            advice = "raise it or lower min_per_class: classes must meet in a batch"
            raise invalid(f"batch_size (times cover_share={cover_share:g})", requirement, batch_size, advice)
        self.cover_share = cover_share
        self._counts = counts
        self._n_covered = n_covered
        self._plan = plan_epoch(
            counts, self.batch_size, self.min_per_class, n_covered, self.num_replicas, drop_last=self.drop_last
        )

    @property
    def sampler(self) -> ClassCoverageBatchSampler:
        """Return itself: Lightning calls ``set_epoch`` of the sampler in a batch sampler."""
        return self

    @property
    def class_visits(self) -> Floats:
        """Return how often an epoch visits samples of each class, over all ranks: the class shares that a loss sees."""
        covered = self.min_per_class * self._plan.turns
        left = np.maximum(self._counts - covered, 0)
        return np.asarray(covered + left * (self._plan.n_left / max(1, left.sum())), dtype=np.float64)

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch; later ones count on from there."""
        self.epoch = check_whole("epoch", epoch, least=0)

    def __len__(self) -> int:
        """Return the number of batches of this rank in an epoch; it is the same in every epoch and on every rank."""
        return self._plan.n_batches // self.num_replicas

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the next epoch.

        The epoch counts as begun when its first batch is drawn, not before: a ``DataLoader`` with workers makes two
        iterators per epoch and draws from one.
        """
        # Lay the turns of all classes on a line, those of a class side by side: m·B of them. The batch that starts at s
        # takes the turns s, s + B, s + 2B, …, and every s < B starts one batch: each turn is taken once. No class has
        # more than B turns, so those of one batch are of m different classes.
        epoch, self.epoch = self.epoch, self.epoch + 1
        members, left, rotation = self._deal(epoch)
        n_batches, k, counts = self._plan.n_batches, self.min_per_class, self._counts
        turns = self._plan.turns[rotation]
        line_end = np.cumsum(turns)
        line_start = line_end - turns
        member_start = np.cumsum(counts) - counts
        start_of_batch = even_order(n_batches, self.num_replicas)
        steps = n_batches * np.arange(self._n_covered)
        for batch in range(self.rank, n_batches, self.num_replicas):
            taken = start_of_batch[batch] + steps  # (m,) points of the line
            place = np.searchsorted(line_end, taken, side="right")  # whose turn: a place in the rotation
            turn = taken - line_start[place]
            c = rotation[place][:, None]
            # Turn t of a class shows its members t·k … t·k + k − 1, and begins again after the last.
            member = (turn[:, None] * k + np.arange(k)) % counts[c]
            yield members[member_start[c] + member].ravel().tolist() + left[batch::n_batches].tolist()

    def _deal(self, epoch: int) -> tuple[Ints, Ints, Ints]:
        """Return samples grouped by class, those that no turn reaches, and the order in which classes take turns."""
        codes, plan = self._codes, self._plan
        narrow = codes.astype(np.int16) if len(self._counts) < 2**15 else codes  # NumPy sorts these by radix
        rotation = np.arange(len(self._counts))
        if self.shuffle:
            rng = np.random.default_rng([self.seed, epoch])
            shuffled = rng.permutation(len(codes))
            members = shuffled[np.argsort(narrow[shuffled], kind="stable")]
            rng.shuffle(rotation)
        else:
            members = np.argsort(narrow, kind="stable")
        first = np.cumsum(self._counts) - self._counts
        place = np.arange(len(codes)) - np.repeat(first, self._counts)
        left = members[place >= np.repeat(self.min_per_class * plan.turns, self._counts)]
        if plan.n_left < len(left):
            left = left[np.arange(plan.n_left) * len(left) // plan.n_left] if plan.n_left else left[:0]
        return members, left, rotation


def plan_epoch(
    counts: Ints, batch_size: int, k: int, n_covered: int, n_ranks: int, *, drop_last: bool = False
) -> Epoch:
    """Plan the shortest epoch that visits every sample, in a multiple of ``n_ranks`` batches.

    With ``drop_last`` the last batch on each rank is dropped if that makes the others full; one batch stays.
    """
    needed, n_classes, room = -(-counts // k), len(counts), batch_size - k * n_covered

    def plan(n_batches: int) -> Epoch:
        fair = n_batches if n_covered == n_classes else n_batches * n_covered // (2 * n_classes)
        turns = _level(np.clip(needed, fair, n_batches), n_covered * n_batches, n_batches)
        return Epoch(n_batches, turns, int(np.maximum(counts - k * turns, 0).sum()))

    # So many are enough: each class has all the turns it needs, and they take up half of all turns at most.
    most = max(int(needed.max()), -(-2 * int(needed.sum()) // n_covered))
    low, high = 0, -(-most // n_ranks)
    while high - low > 1:
        middle = (low + high) // 2
        enough = plan(middle * n_ranks).n_left <= room * middle * n_ranks
        low, high = (low, middle) if enough else (middle, high)
    epoch = plan(high * n_ranks)
    if drop_last and epoch.n_left < room * epoch.n_batches and high > 1:
        epoch = plan((high - 1) * n_ranks)
    if drop_last:
        epoch = epoch._replace(n_left=min(epoch.n_left, room * epoch.n_batches))
    return epoch


def _level(turns: Ints, total: int, most: int) -> Ints:
    """Raise the lowest turns to a common level, up to ``most``, so that all sum to ``total``; or lower the highest."""
    if turns.sum() > total:
        return most - _level(most - turns, most * len(turns) - total, most)
    low, high = 0, most
    while low < high:
        level = (low + high + 1) // 2
        low, high = (level, high) if np.maximum(turns, level).sum() <= total else (low, level - 1)
    raised = np.maximum(turns, low)
    lowest = np.flatnonzero((raised == low) & (raised < most))
    raised[lowest[: total - int(raised.sum())]] += 1
    return raised


def even_order(n_batches: int, n_ranks: int) -> Ints:
    """Return a permutation of ``0..B-1`` that visits any range of these numbers at even intervals.

    It orders ``i·g + r/R mod 1`` for step i of rank r, with the golden section g. The values of each rank are evenly
    spread over time, and so are the values of all ranks at one step. (Multiples of a stride modulo B are uneven for a B
    such as 720, where no stride near the golden section is coprime.)
    """
    step, rank = np.divmod(np.arange(n_batches), n_ranks)
    phase = (step * GOLDEN + rank / n_ranks) % 1.0
    order = np.empty(n_batches, dtype=np.int64)
    order[np.argsort(phase, kind="stable")] = np.arange(n_batches)
    return order


def _encode(labels: Any) -> tuple[Any, Ints]:
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.ndim != 1 or len(array) == 0:
        advice = "pass the class of each sample of the data set"
        raise invalid("labels", "must be one class per sample, of shape (n_samples,)", f"shape {array.shape}", advice)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise invalid("labels", "must be finite", "NaN or infinity", "drop those samples")
    names, codes = np.unique(array, return_inverse=True)
    if len(names) < 2:
        advice = "multiclass AUC compares classes; check the split"
        raise invalid("labels", "must hold two classes or more", f"only the class {names[0]}", advice)
    return names, codes.astype(np.int64, copy=False)


def _process(rank: int | None, num_replicas: int | None) -> tuple[int, int]:
    running = distributed.is_available() and distributed.is_initialized()
    if num_replicas is None:
        num_replicas = distributed.get_world_size() if running else 1
    if rank is None:
        rank = distributed.get_rank() if running else 0
    num_replicas = check_whole("num_replicas", num_replicas, least=1)
    if check_whole("rank", rank, least=0) >= num_replicas:
        advice = "pass rank and num_replicas together, or neither where torch.distributed is initialised"
        raise invalid("rank", f"must be below num_replicas={num_replicas}", rank, advice)
    return rank, num_replicas
