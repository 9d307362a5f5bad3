"""Benchmark weighted groups: bounds and times, compared with a plain CP-SAT model.

Run it with ``python -m benchmarks.weighted_groups [BENCHMARK...]``; the parts are
``exact`` (random weights, two levels), ``makespan`` (identical machines with known
optima, read from a folder beside the repository where there is one) and ``moves``
(within 1% of the best makespan, then fewest moves).
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.name_arguments import parse_with_names
from benchmarks.plain_cpsat_model import plain_solve
from benchmarks.timing import Timing
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.load_metrics import Measure
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Level, Movement, Tolerance
from kassay.solver.solve import solve

INSTANCES = Path(__file__).parents[2] / "shared" / "fixtures" / "weighted"


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """Result of one solver run on a weighted group; one row of the table."""

    case: str
    solver: str
    imbalance: int
    imbalance_bound: int
    moves: int
    moves_bound: int
    seconds: float
    processor: float

    @property
    def gap(self) -> float:
        """Return the relative optimality gap of the moves."""
        return (self.moves - self.moves_bound) / self.moves if self.moves else 0.0

    def __str__(self) -> str:
        """Format the result as a row of a Markdown table."""
        return (
            f"| {self.case} | {self.solver} | {self.imbalance} | {self.imbalance_bound} "
            f"| {self.moves} | {self.moves_bound} | {self.gap:.1%} | {self.seconds:.2f} "
            f"| {self.processor:.2f} |"
        )

    def timing(self) -> Timing:
        """Convert the result to a `Timing`; its note contains values and bounds."""
        return Timing(
            benchmark="weights",
            case=self.case,
            implementation=self.solver,
            seconds=self.seconds,
            note=f"imbalance {self.imbalance} of at least {self.imbalance_bound}, {self.moves} "
            f"moves of at least {self.moves_bound}; {self.processor:.2f} s of processor",
        )


def weighted_group(weights: Sequence[int], owners: Sequence[int], members: int) -> Group:
    """Build a group with one topic that all members consume; owner -1 means no owner."""
    return Group(
        topics=(Topic(name="t", partitions=len(weights), weights=tuple(weights)),),
        members=tuple(
            Member(
                id=f"c{member:03}",
                subscription=("t",),
                owned=Partitions.of(
                    ("t", at) for at, owner in enumerate(owners) if owner == member
                ),
                generation=1,
            )
            for member in range(members)
        ),
    )


def random_weights(seed: int, partitions: int, members: int) -> Group:
    """Build a group with random weights up to 2**14; three quarters have random owners."""
    rng = random.Random(seed)
    weights = [rng.randint(1, 2**14) for _ in range(partitions)]
    owners = [rng.randrange(members) if rng.random() < 0.75 else -1 for _ in range(partitions)]
    return weighted_group(weights, owners, members)


def log_normal(seed: int, partitions: int = 1_000, members: int = 50) -> Group:
    """Build a group with log-normal weights (sigma 1), owned in equal numbers."""
    rng = random.Random(seed)
    weights = [max(1, round(1000 * rng.lognormvariate(0, 1))) for _ in range(partitions)]
    owners = [number % members for number in range(partitions)]
    rng.shuffle(owners)
    return weighted_group(weights, owners, members)


def dealt_in_turn(seed: int, partitions: int, members: int) -> Group:
    """Build a group with log-normal weights; partition p belongs to member p modulo members.

    Examples
    --------
    >>> group = dealt_in_turn(1, 300, 20)
    >>> group.topics[0].weights[:3], -(-sum(group.topics[0].weights) // 20)
    ((3627, 4261, 1069), 26248)
    """
    rng = random.Random(seed)
    weights = [1 + int(1000 * math.exp(rng.gauss(0, 1))) for _ in range(partitions)]
    return weighted_group(weights, [at % members for at in range(partitions)], members)


def identical_machines(path: Path) -> Group:
    """Read an identical-machine instance from a file, as a group with a member per machine."""
    members, jobs, *lengths = map(int, path.read_text().split())
    return weighted_group(lengths[:jobs], [-1] * jobs, members)


@dataclass(frozen=True, slots=True)
class Bench:
    """Benchmark settings: levels of the objective, time limit and solver."""

    levels: tuple[Level, ...]
    limit: float = 60.0

    def run(self, case: str, group: Group, *, plain: bool = False) -> BenchmarkRow:
        """Solve a group and measure the wall-clock time and the processor time."""
        start, used = time.perf_counter(), time.process_time()
        if plain:
            solution = plain_solve(group, levels=self.levels, limits=SearchLimits(time=self.limit))
        else:
            solution = solve(group, levels=self.levels, limits=SearchLimits(time=self.limit))
        seconds, processor = time.perf_counter() - start, time.process_time() - used
        first, moved = solution.imbalance, solution.movement
        return BenchmarkRow(
            case=case,
            solver="plain CP-SAT" if plain else "kassay",
            imbalance=first.value,
            imbalance_bound=first.bound,
            moves=moved.value,
            moves_bound=moved.bound,
            seconds=seconds,
            processor=processor,
        )


def exact() -> Iterator[BenchmarkRow]:
    """Minimise the sum of squared loads, then moves, of small weighted groups."""
    bench = Bench((Imbalance(Measure.SUM_OF_SQUARES), Movement()))
    for partitions, members in ((20, 4), (40, 6)):
        for seed in range(5):
            group = random_weights(seed, partitions, members)
            yield bench.run(f"{partitions}/{members} seed {seed}", group)


def makespan() -> Iterator[BenchmarkRow]:
    """Minimise the makespan on identical-machine instances with known optima."""
    if not INSTANCES.is_dir():
        print("cannot find the instances of identical machines", file=sys.stderr)
        return
    bench = Bench((Imbalance(Measure.MAKESPAN), Movement()))
    for name, facts in json.loads((INSTANCES / "optima.json").read_text()).items():
        best = facts.get("optimum", f"{facts.get('lower_bound')}-{facts.get('best_known')}")
        case = f"{name.removesuffix('.txt')} ({best})"
        yield bench.run(case, identical_machines(INSTANCES / name))


def moves() -> Iterator[BenchmarkRow]:
    """Minimise moves of groups with 1,000 log-normal weights; compare with plain CP-SAT."""
    bench = Bench((Imbalance(Measure.MAKESPAN, Tolerance(relative=0.01)), Movement()))
    for seed in range(5):
        for plain in (False, True):
            yield bench.run(f"1,000/50 seed {seed}", log_normal(seed), plain=plain)


PARTS: dict[str, Callable[[], Iterator[BenchmarkRow]]] = {
    "exact": exact,
    "makespan": makespan,
    "moves": moves,
}


def timings() -> Iterator[Timing]:
    """Run all benchmarks of weighted groups, and return their timings."""
    for part in PARTS.values():
        for partition in part():
            yield partition.timing()


def main() -> None:
    """Run the named benchmarks of weighted groups; run all benchmarks by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = parse_with_names(parser, "benchmark", PARTS).names
    print(
        "| case | solver | imbalance | bound | moves | bound | gap of moves | seconds | processor |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        for partition in PARTS[name]():
            print(partition, flush=True)


if __name__ == "__main__":
    main()
