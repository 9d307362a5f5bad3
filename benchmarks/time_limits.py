"""CPU time and wall-clock time of public functions beyond their time limit, on weighted groups.

Run it with ``python -m benchmarks.time_limits [--limit SECONDS] [--groups N] [FUNCTION...]``.
Weights are log-normal or Zipf, with up to 10,000 partitions and 200 members. `make bench` measures
limits of 1 s. Libraries are imported before the first measurement.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, product
from threading import Timer

from benchmarks.name_arguments import parse_with_names
from benchmarks.timing import Timing, run_alone
from benchmarks.typical_groups import zipf_group
from benchmarks.weighted_groups import log_normal
from kassay.experiments.comparison.compare import compare
from kassay.experiments.planning.change_forecast import optimum_record
from kassay.experiments.planning.plan import plan
from kassay.experiments.planning.survey import survey_group
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure
from kassay.solver.capacity_planning import Resizing, load_by_member_count, members_needed
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.frontier import frontier
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Level, Movement, Tolerance
from kassay.solver.solve import solve
from kassay.solver.trajectory.trajectory import optimal_trajectory

SIZES = ((300, 20), (1_000, 50), (3_000, 60), (10_000, 200))
"""Numbers of partitions and members."""
_GROUPS_IN_BENCH = 8

_Call = Callable[[Group, SearchLimits], object]


def _solve(*levels: Level, constraints: Iterable[Constraint] = ()) -> _Call:
    rules = tuple(constraints)
    return lambda group, limits: solve(
        group, levels=levels or None, constraints=rules, limits=limits
    )


def _target(group: Group) -> int:
    """Return a maximum load that needs about a tenth more members."""
    weights = [weight for topic in group.topics for weight in topic.weights or ()]
    return max(*weights, sum(weights) * 9 // (10 * len(group.members)))


def _stream(group: Group) -> list[Group]:
    """Return a sequence of rebalances with equal weights, in which two members leave."""
    members = group.members
    topics = tuple(replace(topic, weights=None) for topic in group.topics)
    return [
        Group(topics=topics, members=chosen)
        for chosen in (members, members[:-1], members[1:], members[:-1])
    ]


_MAKESPAN = Imbalance(Measure.MAKESPAN)
_LOOSE = Imbalance(Measure.MAKESPAN, Tolerance(relative=0.02))
_SQUARES = Imbalance(Measure.SUM_OF_SQUARES)

FUNCTIONS: dict[str, _Call] = {
    "solve": _solve(),
    "solve, tolerance 2%": _solve(_LOOSE, Movement()),
    "solve, sum of squares": _solve(_SQUARES, Movement()),
    "solve, at most 20 moves": _solve(_MAKESPAN, Movement(), constraints=[MaxMoves(20)]),
    "plan": lambda group, limits: plan(group, limits=limits),
    "compare": lambda group, limits: compare(group, "range", limits=limits),
    "survey": lambda group, limits: survey_group(group, limits=limits),
    "optimum_record": lambda group, limits: optimum_record("", group, limits=limits),
    "load_by_member_count": lambda group, limits: load_by_member_count(
        Resizing.of(group), range(1, 2 * len(group.members)), limits=limits
    ),
    "members_needed": lambda group, limits: members_needed(
        Resizing.of(group), makespan=_target(group), limits=limits
    ),
    "frontier": lambda group, limits: frontier(group, limits=limits),
    "optimal_trajectory": lambda group, limits: optimal_trajectory(_stream(group), limits=limits),
}
"""Calls of public functions with a group and limits."""


@dataclass(frozen=True, slots=True)
class LimitedCall:
    """CPU seconds and wall-clock seconds of a call with a time limit.

    ``late`` is the CPU time after the limit in wall-clock time has passed. Unlike the wall-clock
    time, it does not depend on other processes.
    """

    function: str
    case: str
    limit: float
    processor: float
    late: float
    seconds: float

    def __str__(self) -> str:
        """Format the result as a row of a Markdown table."""
        return (
            f"| {self.function} | {self.case} | {self.limit:g} | {self.processor:.2f} "
            f"| {self.late:.2f} | {self.seconds:.2f} |"
        )


def weighted_cases(count: int = _GROUPS_IN_BENCH) -> Iterator[tuple[str, Group]]:
    """Yield groups of all sizes in turn, with both kinds of weights."""
    kinds = list(product(SIZES, ("log-normal", "Zipf")))
    for number, ((partitions, members), kind) in zip(range(count), cycle(kinds), strict=False):
        seed = 1 + number // len(kinds)
        if kind == "Zipf":
            group = zipf_group(random.Random(seed), partitions, members, 1.0)
        else:
            group = log_normal(seed, partitions, members)
        yield f"{partitions:,} x {members}, {kind}, seed {seed}", group


def measure(function: str, limit: float, count: int = _GROUPS_IN_BENCH) -> list[LimitedCall]:
    """Call a function on a number of groups, after a first call that imports libraries."""
    call = FUNCTIONS[function]
    call(zipf_group(random.Random(2), 80, 6, 0.6), SearchLimits(time=1))
    results = []
    for case, group in weighted_cases(count):
        at_limit: list[float] = []
        timer = Timer(limit, lambda at=at_limit: at.append(time.process_time()))
        start, used = time.perf_counter(), time.process_time()
        timer.start()
        call(group, SearchLimits(time=limit))
        ended, seconds = time.process_time(), time.perf_counter() - start
        timer.cancel()
        late = ended - min([ended, *at_limit])
        results.append(LimitedCall(function, case, limit, ended - used, late, seconds))
    return results


def timings() -> Iterator[Timing]:
    """Measure each function with a limit of 1 s."""
    for function in FUNCTIONS:
        for one in measure(function, 1.0):
            yield Timing(
                benchmark="limits",
                case=f"{one.function}, {one.case}, limit {one.limit:g} s",
                seconds=one.processor,
                note=f"processor time, {one.late:.2f} s after the limit; {one.seconds:.2f} s",
            )


def main() -> None:
    """Measure the named functions, by default all functions; print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=1.0, help="seconds (default 1)")
    parser.add_argument("--groups", type=int, default=_GROUPS_IN_BENCH, help="number of groups")
    chosen = parse_with_names(parser, "function", FUNCTIONS)
    print("| function | group | limit | CPU seconds | after the limit | seconds |")
    print("|---|---|---:|---:|---:|---:|")
    for function in chosen.names:
        for one in run_alone(measure, function, chosen.limit, chosen.groups):
            print(one, flush=True)


if __name__ == "__main__":
    main()
