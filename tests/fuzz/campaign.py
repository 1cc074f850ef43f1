"""Cases of all parts over all cores, until the first failure."""

import argparse
import importlib
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice

import numpy as np

# How often each part is drawn: a fit or a file costs a hundred times a score.
SHARES = {
    "metric": 0.90,
    "risks": 0.08,
    "torch_parts": 0.015,
    "estimators": 0.005,
    "tables": 0.005,
    "parts": 0.003,
    "cells": 0.01,
    "columns": 0.005,
    "fits": 0.001,
    "forgeries": 0.001,
    "labels": 0.005,
}
CHUNK = 250


def run_cases(task: tuple[str, int, int, int]) -> tuple[str, int, float, str]:
    """Run cases ``first`` to ``last`` of a part; return their number, their time, and the first failure."""
    part, seed, first, last = task
    run = importlib.import_module(f"fuzz.{part}").run
    begin = time.perf_counter()
    for case in range(first, last):
        try:
            run(np.random.default_rng([seed, *part.encode(), case]))
        except Exception:
            reproduce = f"PYTHONPATH=tests python -m fuzz --part {part} --seed {seed} --only {case}"
            return part, case - first, time.perf_counter() - begin, f"{traceback.format_exc()}\n{reproduce}"
    return part, last - first, time.perf_counter() - begin, ""


def tasks(parts: dict[str, float], cases: int, seed: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield pieces of work of all parts, interleaved."""
    wanted = {part: round(cases * share / sum(parts.values())) for part, share in parts.items()}
    begun = dict.fromkeys(parts, 0)
    while any(begun[part] < wanted[part] for part in parts):
        for part in parts:
            if begun[part] < wanted[part]:
                step = max(1, round(CHUNK * SHARES[part] / max(SHARES.values())))
                last = min(wanted[part], begun[part] + step)
                yield part, seed, begun[part], last
                begun[part] = last


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances a progress bar; without rich, it prints a line for each twentieth."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        count = 0

        def report(more: int) -> None:
            nonlocal count
            if (count + more) * 20 // total > count * 20 // total:
                print(f"{count + more} of {total}", flush=True)
            count += more

        yield report
        return
    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("cases", total=total)
        yield lambda more: bar.update(task, advance=more)


def main() -> int:
    """Read the command line, run the cases, and print the result."""
    parser = argparse.ArgumentParser(prog="fuzz", description="the differential campaign")
    parser.add_argument("--cases", type=int, default=20_000, help="how many, over all parts")
    parser.add_argument("--seed", type=int, help="default: drawn anew, and printed")
    parser.add_argument("--part", choices=list(SHARES), action="append", help="this part alone; may be repeated")
    parser.add_argument("--only", type=int, help="this one case of --part")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    seed = int.from_bytes(os.urandom(4), "big") if given.seed is None else given.seed
    parts = {part: SHARES[part] for part in given.part or SHARES}
    if given.only is not None:
        *_, failure = run_cases((next(iter(parts)), seed, given.only, given.only + 1))
        print(failure or "passed")
        return int(bool(failure))
    print(f"seed {seed}, {given.cases} cases")
    done, spent, failure = dict.fromkeys(parts, 0), dict.fromkeys(parts, 0.0), ""
    begin = time.perf_counter()
    with (
        ProcessPoolExecutor(given.processes, multiprocessing.get_context("spawn")) as pool,
        progress(given.cases) as advance,
    ):
        waiting = tasks(parts, given.cases, seed)
        running = {pool.submit(run_cases, task) for task in islice(waiting, 2 * given.processes)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for part, count, seconds, complaint in (future.result() for future in ended):
                done[part] += count
                spent[part] += seconds
                failure = failure or complaint
                advance(count)
            if not failure:
                running |= {pool.submit(run_cases, task) for task in islice(waiting, len(ended))}
    wall = time.perf_counter() - begin
    for part in parts:
        rate = done[part] / spent[part] if spent[part] else 0.0
        print(f"{part:12} {done[part]:9} cases, {rate:7.0f} per second of a core")
    print(f"{sum(done.values())} cases in {wall:.0f} s, seed {seed}: {'FAILED' if failure else 'no failure'}")
    if failure:
        print(failure)
    return int(bool(failure))
