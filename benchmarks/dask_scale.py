"""The metric and the linear fit in memory against Dask: time, peak memory per worker, bytes moved between workers.

Processor time is that of all processes together: on a machine that others use it is what can be compared.

``python -m benchmarks.dask_scale --rows 1e6 1e7 --fit-rows 2e6 --workers 1 2 4`` prints a table; ``--work`` chooses
rows of it. ``python -m benchmarks.dask_scale --partitions 16 64 256 1024`` prints the seconds of 64,000 rows in so many
partitions on two workers instead, and their slope in log-log. Rows are drawn by the
workers that keep them; every line is from a cluster of its own, so that its peak is its own. In memory, and on the
threaded scheduler, a fresh process takes the place of the cluster.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import mauc
import mauc.dask

N_CLASSES = 5
WEIGHTS = [64, 16, 8, 4, 2]
"""Rows of the classes, as often as needed."""
N_FEATURES = 20
ITERATIONS = 10
SMALLEST_PARTS = 8
MOST_ROWS = 1_000_000
"""Rows of a partition, where there are many."""


class Line(NamedTuple):
    """One measurement."""

    work: str
    engine: str
    seconds: float
    cpu: float
    """Seconds of processor time, of the client and all workers."""
    result: float
    peak: float
    """MiB of the process, or of the largest worker."""
    moved: float
    """MiB received by workers from one another."""


def rows_of(n: int) -> tuple[int, ...]:
    """Return the rows of each partition."""
    parts = max(SMALLEST_PARTS, -(-n // MOST_ROWS))
    edges = np.linspace(0, n, parts + 1).astype(int)
    return tuple(int(k) for k in np.diff(edges))


def drawn(n: int, seed: int, n_classes: int = N_CLASSES) -> tuple[np.ndarray, np.ndarray]:
    """Draw imbalanced classes with float32 softmax scores that favour them."""
    rng = np.random.default_rng(seed)
    weights = np.resize(WEIGHTS, n_classes)
    y = rng.choice(n_classes, n, p=weights / weights.sum()).astype(np.int8)
    scores = rng.standard_normal((n, n_classes), dtype=np.float32)
    scores[np.arange(n), y] += 1
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return y, scores


def table(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw classes with features that separate them a little."""
    rng = np.random.default_rng(seed)
    y = rng.choice(N_CLASSES, n, p=np.array(WEIGHTS) / sum(WEIGHTS)).astype(np.int8)
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    X[:, :N_CLASSES] += 0.5 * np.eye(N_CLASSES, dtype=np.float32)[y]
    return y, X


def lazily(make: Callable[[int, int], tuple[np.ndarray, np.ndarray]], n: int, width: int) -> tuple[da.Array, da.Array]:
    """Return the same rows, drawn by tasks."""
    rows = rows_of(n)
    pairs = [dask.delayed(make, pure=True)(k, seed) for seed, k in enumerate(rows)]
    y = [da.from_delayed(pair[0], (k,), np.int8) for pair, k in zip(pairs, rows, strict=True)]
    x = [da.from_delayed(pair[1], (k, width), np.float32) for pair, k in zip(pairs, rows, strict=True)]
    return da.concatenate(y), da.concatenate(x)


def at_once(make: Callable[[int, int], tuple[np.ndarray, np.ndarray]], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the same rows in memory, without a second copy."""
    rows = rows_of(n)
    first = make(1, 0)[1]
    y, x = np.empty(n, dtype=np.int8), np.empty((n, first.shape[1]), dtype=np.float32)
    begin = 0
    for seed, k in enumerate(rows):
        y[begin : begin + k], x[begin : begin + k] = make(k, seed)
        begin += k
    return y, x


WORK = {
    "mauc_score": (drawn, N_CLASSES, lambda module, y, x: module.mauc_score(y, x)),
    "mauc_score of 10 classes": (partial(drawn, n_classes=10), 10, lambda module, y, x: module.mauc_score(y, x)),
    "mauc_interval": (drawn, N_CLASSES, lambda module, y, x: module.mauc_interval(y, x).stderr),
    "fit": (table, N_FEATURES, lambda module, y, x: _fit(module, y, x)),
}


def _fit(module: Any, y: Any, x: Any) -> float:
    """Fit for a fixed number of iterations: the comparison is of time per iteration."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(module.MAUCClassifier(max_iter=ITERATIONS, tol=1e-12).fit(x, y).objective_)


def peak_mib() -> float:
    """Return the peak resident memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(work: str, n: int, scheduler: str | None, out: Any) -> None:
    """Measure in memory, or on the threaded scheduler, in a new process."""
    make, _, call = WORK[work]
    y, x = at_once(make, n)
    module: Any = mauc
    call(module, *at_once(make, 1000))
    if scheduler is not None:
        dask.config.set(scheduler=scheduler)
        rows = rows_of(n)
        y, x = (da.from_array(a, chunks=(rows, *a.shape[1:]), name=False) for a in (y, x))
        module = mauc.dask
    begin, spent = time.perf_counter(), time.process_time()
    result = call(module, y, x)
    out.put((time.perf_counter() - begin, time.process_time() - spent, result, peak_mib()))


def alone(work: str, n: int, scheduler: str | None) -> Line:
    """Return one line of :func:`in_process`."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=in_process, args=(work, n, scheduler, out))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"{work} with {n:,} rows failed in a process of its own")
    seconds, cpu, result, peak = out.get()
    return Line(f"{work}, N={n:,}", "in memory" if scheduler is None else scheduler, seconds, cpu, result, peak, 0.0)


@contextmanager
def workers(n: int) -> Iterator[Client]:
    """Start a cluster of ``n`` processes of one thread."""
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        yield client


def on_cluster(work: str, n: int, n_workers: int) -> Line:
    """Measure on workers that hold their rows and have imported the modules."""
    make, width, call = WORK[work]
    with workers(n_workers) as client:
        call(mauc.dask, *lazily(make, 1000, width))
        y, x = dask.persist(*lazily(make, n, width))
        wait([y, x])
        before = received(client)
        begin, spent = time.perf_counter(), processor_time(client)
        result = call(mauc.dask, y, x)
        seconds, cpu = time.perf_counter() - begin, processor_time(client) - spent
        peak = max(client.run(peak_mib).values())
        moved = (received(client) - before) / 2**20
    return Line(f"{work}, N={n:,}", f"{n_workers} workers", seconds, cpu, result, peak, moved)


def by_partitions(counts: list[int], n: int = 64_000) -> None:
    """Print the seconds of each work for the same rows in more and more partitions, without the drawing of the rows."""
    print("| partitions | `mauc_score` | `mauc_interval` | `binned_mauc` | fit, reading | fit, an evaluation |")
    print("|---|---|---|---|---|---|")
    found = []
    with workers(2):
        for parts in counts:
            cut = {"chunks": n // parts}
            y, x = (da.from_array(a, **cut).rechunk({1: -1} if a.ndim == 2 else {}).persist() for a in drawn(n, 0))
            target, X = (da.from_array(a, **cut).rechunk({1: -1} if a.ndim == 2 else {}).persist() for a in table(n, 0))
            wait([y, x, target, X])
            like, seconds = mauc.BinnedMAUC(N_CLASSES, 4096), []
            for call in (
                lambda: mauc.dask.mauc_score(y, x),  # noqa: B023
                lambda: mauc.dask.mauc_interval(y, x),  # noqa: B023
                lambda: mauc.dask.binned_mauc(y, x, like),  # noqa: B023
            ):
                begin = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - begin)
            found.append([*seconds, *fit_seconds(X, target)])
            print(f"| {parts} | " + " | ".join(f"{each:.2f} s" for each in found[-1]) + " |", flush=True)
    slopes = np.log(np.array(found[-1]) / found[0]) / np.log(counts[-1] / counts[0])
    print("| slope | " + " | ".join(f"{each:.2f}" for each in slopes) + " |")


def fit_seconds(X: da.Array, y: da.Array) -> tuple[float, float]:
    """Return the seconds of a fit of one iteration, and of each of nine more, about one evaluation."""
    import warnings

    seconds = []
    for n_iterations in (1, 10):
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = mauc.dask.MAUCClassifier(max_iter=n_iterations, tol=1e-12).fit(X, y)
        seconds.append(time.perf_counter() - begin)
    assert model.n_iter_ == n_iterations
    return seconds[0], max(0.0, seconds[1] - seconds[0]) / 9


def processor_time(client: Client) -> float:
    """Return the processor seconds of this process, which runs the scheduler too, and of its workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def received(client: Client) -> int:
    """Return the bytes that workers have received from one another."""

    def of_worker(dask_worker: Any) -> int:
        return sum(each["total"] for each in dask_worker.transfer_incoming_log)

    return sum(client.run(of_worker).values())


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--fit-rows", type=float, nargs="*", default=[2e6])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--work", nargs="*", default=list(WORK), choices=list(WORK))
    parser.add_argument("--partitions", type=int, nargs="*", default=[])
    asked = parser.parse_args()
    if asked.partitions:
        by_partitions(asked.partitions)
        return
    print(
        "| work | engine | time | ratio | processor time | ratio | error | peak per process | moved between workers |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for work in asked.work:
        for n in map(int, asked.fit_rows if work == "fit" else asked.rows):
            first = alone(work, n, None)
            show(first, first)
            show(alone(work, n, "threads"), first)
            for n_workers in asked.workers:
                show(on_cluster(work, n, n_workers), first)


def show(line: Line, first: Line) -> None:
    """Print one row of the table."""
    time_ratio, cpu_ratio = line.seconds / first.seconds, line.cpu / first.cpu
    print(
        f"| {line.work} | {line.engine} | {line.seconds:.1f} s | {time_ratio:.2f} | {line.cpu:.1f} s | {cpu_ratio:.2f} "
        f"| {abs(line.result - first.result):.1e} | {line.peak:.0f} MiB | {line.moved:.1f} MiB |",
        flush=True,
    )


if __name__ == "__main__":
    main()
