"""Benchmark typical weighted groups: fewest moves within 2 % of the minimum makespan.

Run it with ``python -m benchmarks.typical_weights [--groups N] [--seconds S]``. Each group is
solved by kassay, and by a plain CP-SAT model with variables for moves. The plain model receives the
load limit from kassay's bound on the makespan, so that it solves only the second level. Both use
one worker. Times are processor seconds.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.plain_cpsat_model import FewestMoves, plain_fewest_moves
from benchmarks.timing import KASSAY, Timing
from benchmarks.weighted_groups import weighted_group
from kassay.reference.documents.json_codec import parse_group
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import WEIGHTED_TOLERANCE, default_levels
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

LIVE_RATES = Path(__file__).with_name("live_rates.json")
"""Group with measured rates: 400 partitions, 12 members."""

# kassay may take this many times as long as the plain model, plus some seconds.
_RATIO, _EXTRA = 1.5, 0.3
_GROUPS_IN_BENCH = 12


@dataclass(frozen=True, slots=True)
class Comparison:
    """Results and processor seconds of kassay and of the plain model on one group."""

    case: str
    solution: Solution
    seconds: float
    plain: FewestMoves
    plain_seconds: float

    @property
    def is_worse(self) -> bool:
        """Return whether kassay's moves or bound are worse than those of the plain model."""
        moves = self.solution.movement
        found = self.plain.moves
        return (found is not None and found < moves.value) or self.plain.bound > moves.bound

    @property
    def is_slow(self) -> bool:
        """Return whether kassay exceeds 1.5 times the time of the plain model plus 0.3 s."""
        return self.seconds > _RATIO * self.plain_seconds + _EXTRA

    def __str__(self) -> str:
        """Format the comparison as a row of a Markdown table."""
        moves, found = self.solution.movement, self.plain.moves
        return (
            f"| {self.case} | {'–' if found is None else found}/{self.plain.bound} "
            f"| {self.plain_seconds:.2f} | {moves.value}/{moves.bound} | {self.seconds:.2f} |"
        )


def zipf_group(rng: random.Random, partitions: int, members: int, exponent: float) -> Group:
    """Build a group with Zipf weights in random order, and random owners.

    Examples
    --------
    >>> group = zipf_group(random.Random(1), 6, 2, 1.0)
    >>> sorted(group.topics[0].weights)
    [166666, 200000, 250000, 333333, 500000, 1000000]
    """
    weights = [max(1, int(1_000_000 / rank**exponent)) for rank in range(1, partitions + 1)]
    rng.shuffle(weights)
    return _owned(rng, weights, members)


def log_normal_group(rng: random.Random, partitions: int, members: int) -> Group:
    """Build a group with log-normal weights (sigma 1), and random owners."""
    weights = [max(1, round(1000 * rng.lognormvariate(0, 1))) for _ in range(partitions)]
    return _owned(rng, weights, members)


def _owned(rng: random.Random, weights: list[int], members: int, *, ranges: bool = False) -> Group:
    count = len(weights)
    owners = [at * members // count if ranges else rng.randrange(members) for at in range(count)]
    return weighted_group(weights, owners, members)


def named_groups() -> Iterator[Group]:
    """Yield the groups of the table in docs/results/performance.md."""
    sizes = ((60, 12, 1.0), (400, 12, 0.6), (400, 20, 1.0), (3_000, 60, 1.0))
    for partitions, members, exponent in sizes:
        group = zipf_group(random.Random(0), partitions, members, exponent)
        yield replace(group, id=f"{partitions:,} x {members}, Zipf {exponent}")
    yield replace(parse_group(json.loads(LIVE_RATES.read_text())), id="400 x 12, live rates")
    for partitions, members in ((200, 20), (1_000, 30)):
        group = log_normal_group(random.Random(0), partitions, members)
        yield replace(group, id=f"{partitions:,} x {members}, log-normal")


def random_groups(count: int) -> Iterator[Group]:
    """Yield seeded groups of up to 400 partitions and 20 members, with random or range owners."""
    for seed in range(count):
        rng = random.Random(seed)
        partitions, members = rng.choice((60, 100, 200, 300, 400)), rng.choice((5, 8, 12, 20))
        exponent = rng.choice((0.6, 0.8, 1.0, 1.2, None))
        if exponent is None:
            group, kind = log_normal_group(rng, partitions, members), "log-normal"
        else:
            group, kind = zipf_group(rng, partitions, members, exponent), f"Zipf {exponent}"
        ranges = rng.random() < 0.5
        if ranges:
            group = _owned(rng, list(group.topics[0].weights or ()), members, ranges=True)
        owners = "range" if ranges else "random"
        yield replace(group, id=f"{partitions} x {members}, {kind}, {owners} owners, seed {seed}")


def compare(group: Group, *, seconds: float) -> Comparison:
    """Solve a group by kassay and by the plain model, with the same limit and one worker."""
    levels = default_levels(group, measure=Measure.MAKESPAN, tolerance=WEIGHTED_TOLERANCE)
    start = time.process_time()
    solution = solve(group, levels=levels, limits=SearchLimits(time=seconds))
    solved = time.process_time()
    max_load = WEIGHTED_TOLERANCE.limit(solution.imbalance.bound)
    plain = plain_fewest_moves(build_problem(group), max_load, seconds=seconds)
    end = time.process_time()
    return Comparison(group.id or "", solution, solved - start, plain, end - solved)


def _load_libraries() -> None:
    """Load the libraries of both contestants, so that the first one does not pay for it."""
    compare(zipf_group(random.Random(0), 60, 12, 1.0), seconds=5)


def timings() -> Iterator[Timing]:
    """Compare kassay and the plain model on the named groups and some random groups."""
    _load_libraries()
    for group in (*named_groups(), *random_groups(_GROUPS_IN_BENCH)):
        found = compare(group, seconds=60)
        moves = found.solution.movement
        for name, seconds, value, bound in (
            (KASSAY, found.seconds, moves.value, moves.bound),
            ("plain CP-SAT", found.plain_seconds, found.plain.moves, found.plain.bound),
        ):
            note = f"{value} moves of at least {bound}"
            yield Timing(
                benchmark="typical-weights",
                case=found.case,
                implementation=name,
                seconds=seconds,
                note=note,
            )


def main() -> None:
    """Compare kassay and the plain model on the command line; print a table and a summary."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.typical_weights")
    parser.add_argument("--groups", type=int, default=200, help="random groups (default 200)")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit per run (default 20)")
    parser.add_argument("--named", action="store_true", help="add the groups of the documentation")
    chosen = parser.parse_args()
    _load_libraries()
    print("| group | plain CP-SAT | seconds | kassay | seconds |")
    print("|---|--:|--:|--:|--:|")
    rows = []
    for group in (*(named_groups() if chosen.named else ()), *random_groups(chosen.groups)):
        rows.append(compare(group, seconds=chosen.seconds))
        print(rows[-1], flush=True)
    proven = sum(row.solution.is_optimal for row in rows)
    plain_proven = sum(row.plain.moves == row.plain.bound for row in rows)
    print(
        f"\n{len(rows)} groups: kassay proves {proven} in "
        f"{sum(row.seconds for row in rows):.1f} s, the plain model {plain_proven} in "
        f"{sum(row.plain_seconds for row in rows):.1f} s; kassay is worse on "
        f"{sum(row.is_worse for row in rows)}, and exceeds {_RATIO} times the plain model's time "
        f"plus {_EXTRA} s on {sum(row.is_slow for row in rows)}"
    )


if __name__ == "__main__":
    main()
