"""Benchmark makespan minimisation on a public collection of identical-machine instances.

Run it with ``python -m benchmarks.identical_machines FOLDER [--sample N] [--seconds S]``;
``make identical-machines`` fetches the collection of "Engineering optimal parallel task
scheduling" (arXiv 2405.15371) first. Each row is one class of instances: those that published
bounds solve, those that published searches solve, and the others.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from benchmarks.weighted_groups import weighted_group
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance
from kassay.solver.solve import solve

# Columns of the published results: name of the instance, seconds (0 if bounds suffice), makespan.
PUBLISHED = ("complete_cdsm_full.txt", "complete_hj.txt", "complete_ilp_original.txt")


@dataclass(frozen=True, slots=True)
class Collection:
    """Collection of instances: files by class, and known optima by file name."""

    files: Mapping[str, tuple[Path, ...]]
    optima: Mapping[str, int]


@dataclass
class ClassResult:
    """Result counts and solver times of one class of instances."""

    instances: int = 0
    proven: int = 0
    known: int = 0
    equal: int = 0
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        """Format the result as cells of a Markdown table row."""
        longest = max(self.seconds, default=0.0)
        return f"{self.instances} | {self.proven} | {self.known} | {self.equal} | {longest:.1f}"


def read_lengths(path: Path) -> tuple[int, list[int]]:
    """Read the number of machines and the job lengths from an instance file.

    The file has one of two formats.
    """
    words = path.read_text().split()
    if words[:2] == ["p", "p_cmax"]:
        jobs, machines, *lengths = map(int, words[2:])
    else:
        machines, jobs, *lengths = map(int, words)
    return machines, lengths[:jobs]


def read_collection(folder: Path) -> Collection:
    """Find the instances in a folder, and classify them by the published results."""
    optima, seconds = {}, {}
    for line in (folder / "results" / "all-exact-bounds.txt").read_text().splitlines():
        name, optimum = line.rsplit(maxsplit=1)
        optima[name] = int(optimum)
    for file in reversed(PUBLISHED):
        for line in (folder / "results" / file).read_text().splitlines():
            name, time_needed = line.split()[:2]
            seconds[name] = float(time_needed)
    files: dict[str, list[Path]] = {"bounds": [], "search": [], "open": []}
    for path in sorted((folder / "benchmarks").glob("*/*.txt")):
        needed = seconds.get(path.name)
        kind = "open" if needed is None else "bounds" if needed == 0 else "search"
        files[kind].append(path)
    return Collection({kind: tuple(paths) for kind, paths in files.items()}, optima)


def stratified_sample(paths: Sequence[Path], size: int) -> list[Path]:
    """Draw a seeded sample with equal numbers of instances per folder and class of jobs."""
    rng = random.Random(0)
    strata: dict[tuple[str, str], list[Path]] = {}
    for path in rng.sample(paths, len(paths)):
        kind = path.name.split("-")[1] if "-class" in path.name else ""
        strata.setdefault((path.parent.name, kind), []).append(path)
    turns = zip_longest(*(strata[key] for key in sorted(strata)))
    return [path for turn in turns for path in turn if path is not None][:size]


def measure(collection: Collection, *, sample: int, limit: float) -> Iterator[str]:
    """Solve a seeded sample of each class; yield one row of a Markdown table per class."""
    for kind, paths in collection.files.items():
        result = ClassResult()
        for path in stratified_sample(paths, sample):
            machines, lengths = read_lengths(path)
            group = weighted_group(lengths, [-1] * len(lengths), machines)
            start = time.process_time()
            solution = solve(group, levels=[Imbalance("makespan")], limits=SearchLimits(time=limit))
            result.seconds.append(time.process_time() - start)
            value, optimum = solution.imbalance.value, collection.optima.get(path.name)
            result.instances += 1
            result.proven += solution.imbalance.is_proven
            result.known += optimum is not None
            result.equal += value == optimum
            if optimum is not None and not solution.imbalance.bound <= optimum <= value:
                print(f"{path.name}: {solution.imbalance}, optimum {optimum}", file=sys.stderr)
        yield f"| {kind} | {result} |"


def main() -> int:
    """Run the benchmark on a folder of instances, and print a Markdown table.

    Report the reason if the folder has no instances.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.identical_machines")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=20, help="instances per class")
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit per instance")
    chosen = parser.parse_args()
    if not (chosen.folder / "results" / "all-exact-bounds.txt").is_file():
        print(f"skipped: {chosen.folder} has no instances; it was not fetched", file=sys.stderr)
        return 0
    print("| class | instances | proven | optimum known | value equal | longest processor time |")
    print("|---|---:|---:|---:|---:|---:|")
    collection = read_collection(chosen.folder)
    for row in measure(collection, sample=chosen.sample, limit=chosen.seconds):
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
