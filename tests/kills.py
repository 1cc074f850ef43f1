"""Kill commands at random moments, and look at what they leave on the disk.

``python tests/kills.py [KILLS [SEED]]``, or ``make kills``. Each kill is a SIGKILL of a real process of ``mauc fit``,
``predict`` or ``evaluate --report``, every other one at a moment drawn from the time that the command takes,
the rest when it is next seen writing. After each, under the final names there is the old file or the complete new one,
and the inputs are as they were; then the command runs again, comes to the same end as one that was never killed, and
sweeps what the dead one left a day before. The first fault stops the campaign with its seed and keeps its folder.
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

MAUC = (sys.executable, "-c", "from mauc._cli import main; main()")
OLD = b"what an earlier run wrote\n"
SECONDS = re.compile(rb"(?<=<dt>seconds</dt>)<dd>[^<]*</dd>")
N_ROWS = 4000


@dataclass(frozen=True)
class Command:
    """What is run, in a folder with these inputs, and what it writes there."""

    arguments: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """All that is there afterwards."""


COMMANDS = {
    "fit": Command(
        # A limit below 10 seconds trains one small forest, which is the same each time.
        ("fit", "table.csv", "--target", "species", "--time-limit", "9", "--no-importance", "--report", "fit.html"),
        ("table.csv",),
        ("model.skops", "model.scores.npz", "fit.html"),
    ),
    "predict": Command(("predict", "model.skops", "table.csv"), ("model.skops", "table.csv"), ("scores.csv",)),
    "evaluate": Command(
        ("evaluate", "scores.csv", "--target", "species", "--report", "judged.html"), ("scores.csv",), ("judged.html",)
    ),
}


class Fault(AssertionError):
    """Something was half-written, lost or left behind."""


def campaign(kills: int, seed: int, names: tuple[str, ...] = tuple(COMMANDS)) -> Iterator[str]:
    """Kill the commands in turn; one line for each kill, and :class:`Fault` at the first fault."""
    rng = random.Random(seed)
    place = Path(tempfile.mkdtemp(prefix="mauc-kills-"))
    never_killed = place / "never-killed"
    never_killed.mkdir()
    write_table(never_killed / "table.csv")
    seconds = {}
    for name, command in COMMANDS.items():
        start = time.monotonic()
        run(command, never_killed)
        seconds[name] = time.monotonic() - start
    k = 0
    while k < kills:
        # Every command is killed both ways.
        name, aimed = names[k % len(names)], k // len(names) % 2 == 1
        moment = rng.uniform(0.0, (0.5 if aimed else 1.05) * seconds[name])
        folder = place / f"{k:03d}-{name}"
        try:
            killed, found = kill_once(COMMANDS[name], folder, never_killed, moment, aimed=aimed)
        except Fault as fault:
            raise Fault(f"{fault} (seed {seed}, kill {k}: {name} after {moment:.3f} s, see {folder})") from None
        when = f"after {moment:.2f} s" + (", writing" if aimed else "")
        shutil.rmtree(folder)
        if killed:  # else it came to its end before, and the same command is killed at another moment
            k += 1
            yield f"{k:3d} {name:8s} {when:22s} {found}"
    shutil.rmtree(place)


def write_table(path: Path) -> None:
    """Features of every kind; enough rows for the files to take a while to write."""
    rng = np.random.default_rng(0)
    code = rng.choice(4, N_ROWS, p=[0.6, 0.25, 0.1, 0.05])
    table = pd.DataFrame(
        {
            "height": rng.normal(code, 1.0),
            "girth": rng.normal(code % 2, 1.0),
            "soil": np.where(rng.random(N_ROWS) < 0.3, "clay", np.where(code % 2, "sand", "loam")),
            "species": np.array(["oak", "elm", "yew", "ash"])[code],
        }
    )
    table.to_csv(path, index=False)


def run(command: Command, folder: Path) -> None:
    """To its end."""
    done = subprocess.run([*MAUC, *command.arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Fault(f"mauc {' '.join(command.arguments)} failed: {done.stderr.strip()}")


def kill_once(command: Command, folder: Path, never_killed: Path, moment: float, *, aimed: bool) -> tuple[bool, str]:
    """One kill and all that is checked after it; returns whether there was one, and what was found, in words."""
    folder.mkdir()
    for name in command.inputs:
        shutil.copy(never_killed / name, folder / name)
    for name in command.outputs:
        (folder / name).write_bytes(OLD)
    before = {name: (folder / name).read_bytes() for name in command.inputs}
    killed = start_and_kill(command, folder, (lambda: temporaries(folder)) if aimed else None, moment)
    left = len(temporaries(folder))
    new = check_outputs(command, folder, never_killed, complete=False)
    for path in temporaries(folder):
        os.utime(path, (0, 0))  # as if a day had passed
    run(command, folder)
    check_outputs(command, folder, never_killed, complete=True)
    if temporaries(folder):
        raise Fault(f"{temporaries(folder)[0].name} was not swept")
    changed = [name for name in before if (folder / name).read_bytes() != before[name]]
    if changed:
        raise Fault(f"the input {changed[0]} has changed")
    return killed, f"{new} new files, {left} swept by the next run"


def start_and_kill(command: Command, folder: Path, seen: Callable[[], object] | None, moment: float) -> bool:
    """Kill the command at the moment, or when next something is seen; False if it came to its end before."""
    process = subprocess.Popen(
        [*MAUC, *command.arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    start = time.monotonic()
    try:
        while process.poll() is None and (time.monotonic() - start < moment or (seen and not seen())):
            time.sleep(0.001)
        killed = process.poll() is None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return killed


def temporaries(folder: Path) -> list[Path]:
    """Files that are being written, or were when their writer was killed."""
    return list(folder.rglob(".part-*"))


def check_outputs(command: Command, folder: Path, never_killed: Path, *, complete: bool) -> int:
    """Every file is the old or the complete new one, and after a run to the end all are new; returns how many are."""
    expected = set(map(Path, command.outputs))
    there = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()} - {
        *map(Path, command.inputs),
        *(p.relative_to(folder) for p in temporaries(folder)),
    }
    odd = there - expected
    if odd:
        raise Fault(f"{min(odd)} should not be there")
    new = {name for name in there if not is_old(folder / name)}
    for name in new:
        if not same(folder / name, never_killed / name):
            raise Fault(f"{name} is half-written")
    if complete and new != expected:
        raise Fault(f"{min(expected - new)} was lost")
    return len(new)


def is_old(path: Path) -> bool:
    """What was there before the command."""
    return path.read_bytes() == OLD


def same(path: Path, other: Path) -> bool:
    """Commands are deterministic but for the seconds in a report, a model's time of writing and its digest."""
    if path.suffix == ".npz":
        with np.load(path) as a, np.load(other) as b:
            return a.files == b.files and all(np.array_equal(a[name], b[name]) for name in a.files if name != "model")
    if path.suffix == ".html":
        return SECONDS.sub(b"", path.read_bytes()) == SECONDS.sub(b"", other.read_bytes())
    if path.suffix != ".skops":
        return path.read_bytes() == other.read_bytes()
    from mauc._tables.errors import Failure
    from mauc._tables.model_file import read_model

    table = pd.read_csv(other.parent / "table.csv")
    try:
        found, expected = read_model(path), read_model(other)
    except Failure:
        return False
    return np.array_equal(found.scores(table[list(found.kinds)]), expected.scores(table[list(expected.kinds)]))


def main() -> None:
    """Entry point."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"{kills} kills, seed {seed}", flush=True)
    start = time.monotonic()
    for line in campaign(kills, seed):
        print(line, flush=True)
    print(f"nothing half-written, nothing lost, nothing left behind: {kills} kills in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(f"FAULT: {fault}")
