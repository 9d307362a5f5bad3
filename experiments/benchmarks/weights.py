"""Weighted groups: what is proven in which time, beside a plain CP-SAT model.

Run it with ``python -m experiments.benchmarks.weights [PART...]``; the parts are
``exact`` (random weights, two levels), ``makespan`` (identical machines with known
optima, read from a folder beside the repository where there is one) and ``moves``
(within 1 % of the best makespan, then fewest moves).
"""

import json
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reference.group import Group, Member, Topic
from reference.partitions import Partitions
from solver.objective import Imbalance, Level, Measure, Movement, Tolerance
from solver.plain import plain_solve
from solver.solve import solve

INSTANCES = Path(__file__).parents[2].parent / "shared" / "fixtures" / "weighted"


@dataclass(frozen=True, slots=True)
class Row:
    """One run, as a line of the table."""

    case: str
    solver: str
    imbalance: int
    imbalance_bound: int
    moves: int
    moves_bound: int
    seconds: float

    def __str__(self) -> str:
        """Write a line of a Markdown table."""
        gap = (self.moves - self.moves_bound) / self.moves if self.moves else 0.0
        return (
            f"| {self.case} | {self.solver} | {self.imbalance} | {self.imbalance_bound} "
            f"| {self.moves} | {self.moves_bound} | {gap:.1%} | {self.seconds:.2f} |"
        )


def weighted_group(weights: list[int], owners: list[int], members: int) -> Group:
    """One topic that all members consume; owner -1 for none."""
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
    """Weights up to 2**14, three quarters of the partitions owned at random."""
    rng = random.Random(seed)
    weights = [rng.randint(1, 2**14) for _ in range(partitions)]
    owners = [rng.randrange(members) if rng.random() < 0.75 else -1 for _ in range(partitions)]
    return weighted_group(weights, owners, members)


def log_normal(seed: int, partitions: int = 1_000, members: int = 50) -> Group:
    """Log-normal weights (sigma 1), dealt out in equal numbers before."""
    rng = random.Random(seed)
    weights = [max(1, round(1000 * rng.lognormvariate(0, 1))) for _ in range(partitions)]
    owners = [number % members for number in range(partitions)]
    rng.shuffle(owners)
    return weighted_group(weights, owners, members)


def identical_machines(path: Path) -> Group:
    """Read machines, jobs and the lengths of the jobs."""
    members, jobs, *lengths = map(int, path.read_text().split())
    return weighted_group(lengths[:jobs], [-1] * jobs, members)


@dataclass(frozen=True, slots=True)
class Bench:
    """How every group of a part is solved."""

    levels: tuple[Level, ...]
    limit: float = 60.0

    def run(self, case: str, group: Group, *, plain: bool = False) -> None:
        """Solve one group once and print its line."""
        start = time.perf_counter()
        if plain:
            solution = plain_solve(group, levels=self.levels, time_limit=self.limit)
        else:
            solution = solve(group, levels=self.levels, time_limit=self.limit)
        seconds = time.perf_counter() - start
        first, moved = solution.levels[0][1], solution.movement
        solver = "plain CP-SAT" if plain else "kassay"
        row = Row(case, solver, first.value, first.bound, moved.value, moved.bound, seconds)
        print(row, flush=True)


def exact() -> None:
    """Sum of squares, then moves: 20 partitions on 4 members and 40 on 6."""
    bench = Bench((Imbalance(Measure.SUM_OF_SQUARES), Movement()))
    for partitions, members in ((20, 4), (40, 6)):
        for seed in range(5):
            group = random_weights(seed, partitions, members)
            bench.run(f"{partitions}/{members} seed {seed}", group)


def makespan() -> None:
    """Identical machines with known optima."""
    if not INSTANCES.is_dir():
        print("no instances of identical machines beside this checkout", file=sys.stderr)
        return
    bench = Bench((Imbalance(Measure.MAKESPAN), Movement()))
    for name, facts in json.loads((INSTANCES / "optima.json").read_text()).items():
        best = facts.get("optimum", f"{facts.get('lower_bound')}-{facts.get('best_known')}")
        case = f"{name.removesuffix('.txt')} ({best})"
        bench.run(case, identical_machines(INSTANCES / name))


def moves() -> None:
    """Log-normal loads, 1,000 partitions on 50 members, beside a plain model."""
    bench = Bench((Imbalance(Measure.MAKESPAN, Tolerance(relative=0.01)), Movement()))
    for seed in range(5):
        for plain in (False, True):
            bench.run(f"1,000/50 seed {seed}", log_normal(seed), plain=plain)


PARTS: dict[str, Callable[[], None]] = {"exact": exact, "makespan": makespan, "moves": moves}


def main(names: list[str]) -> None:
    """Run some parts, all by default."""
    print("| case | solver | imbalance | bound | moves | bound | gap of moves | seconds |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for name in names or list(PARTS):
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
