"""Train networks by several losses and append one line for each to a file: ``python -m experiments.longtail``."""

import argparse
import json
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import torch

from experiments.longtail.data import SETS, load
from experiments.longtail.train import Run, recipe_for

KEY = ("set", "part", "method", "seed", "epochs", "batch", "optimizer", "rate", "decay")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and compute what the file lacks."""
    parser = argparse.ArgumentParser(prog="python -m experiments.longtail", description=__doc__)
    parser.add_argument("--set", dest="sets", action="append", choices=SETS, required=True)
    parser.add_argument("--part", choices=("validation", "test"), default="validation")
    parser.add_argument("--methods", required=True, help="file with one method per line, such as adjusted:tau=1")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--optimizer", choices=("sgd", "adam"))
    parser.add_argument("--lanes", type=int, default=4, help="networks trained side by side on the GPU")
    parser.add_argument("--share", default="0/1", help="k/n: do every n-th of the runs, from the k-th")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no run after so many")
    parser.add_argument("--data-home", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="file of JSON lines; runs that it has are skipped")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = {tuple(line[key] for key in KEY) for line in map(json.loads, lines)}
    changes = {key: getattr(options, key) for key in ("epochs", "batch", "rate", "optimizer")}
    methods = [line.strip() for line in Path(options.methods).read_text().splitlines() if line.strip()]

    @lru_cache(maxsize=4)
    def data_of(name: str, seed: int):  # type: ignore[no-untyped-def]
        split = seed if options.part == "validation" else 0
        return load(name, options.data_home, part=options.part, seed=split).to(device)

    jobs = []
    for name in options.sets:
        for seed in map(int, options.seeds.split(",")):
            data = data_of(name, seed if options.part == "validation" else 0)
            recipe = recipe_for(data, **changes)
            for method in methods:
                line = {"set": name, "part": options.part, "method": method, "seed": seed, **vars(recipe)}
                if tuple(line[key] for key in KEY) not in done:
                    jobs.append((line, recipe))
    k, n = map(int, options.share.split("/"))
    waiting = iter(jobs[k::n])
    running: list[tuple[dict, Run, object]] = []
    n_done = 0
    while True:
        if time.monotonic() - began < 60 * options.minutes:
            for line, recipe in islice(waiting, options.lanes - len(running)):
                data = data_of(line["set"], line["seed"] if options.part == "validation" else 0)
                run = Run(data, line["method"], recipe, line["seed"], device)
                running.append((line, run, iter(run)))
        if not running:
            break
        for entry in list(running):
            line, run, steps = entry
            if next(steps, self_done := object()) is self_done:
                running.remove(entry)
                n_done += 1
                with options.out.open("a") as file:
                    file.write(json.dumps({**line, **run.result}) + "\n")
                score = run.result.get("mauc_softmax", [float("nan")])[0]
                pace = f"{n_done} of {len(jobs[k::n])} in {time.monotonic() - began:.0f} s"
                print(f"{pace}: {line['set']} {line['method']} seed {line['seed']}: {100 * score:.2f}", flush=True)


if __name__ == "__main__":
    main()
