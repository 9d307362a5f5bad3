"""Optimum of a group, and fewest moves to an assignment within an imbalance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, cached
from kassay.reference.model.metrics import Measure, measures
from kassay.solver.constraints import Constraint
from kassay.solver.incumbent_pool import keep_owned
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import (
    EXACT,
    CrossRack,
    Imbalance,
    Level,
    Movement,
    Tolerance,
    default_levels,
)
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimits(SearchLimits):
    """Limits of each solver search and, in a study, of the whole evaluation of a group.

    Parameters
    ----------
    within_partitions
        Maximum number of partitions of groups for which ``movement_within`` is searched.
    group
        Wall-clock seconds per group in a study, after which its process is killed.
    memory
        Address space in MiB that the evaluation of a group in a study may allocate; None for
        the memory of a Spark executor divided by its number of cores.
    """

    within_partitions: int = 5_000
    group: float = 900.0
    memory: int | None = None


LIMITS = CaseLimits()


def solve_optimum(
    group: Group,
    *,
    levels: Sequence[Level] | None = None,
    constraints: Sequence[Constraint] = (),
    limits: SearchLimits = LIMITS,
) -> Solution:
    """Find the optimum; by default, minimum imbalance without tolerance, then the fewest moves.

    Capacities of members are ignored.
    """
    unlimited = without_capacities(group)
    if levels is None:
        levels = default_levels(group, tolerance=EXACT)[:2]
    return solve(unlimited, levels=levels, constraints=constraints, limits=limits)


@cached
def keep_owners(group: Group) -> Assignment:
    """Build an assignment without moves: keep owned partitions, and assign unowned partitions.

    Each unowned partition goes to the least loaded member that subscribes to its topic.
    """
    problem = build_problem(group)
    return problem.to_assignment(keep_owned(problem))


def fewest_moves_within(
    group: Group,
    imbalance: int,
    off_rack_reads: int | None = None,
    *,
    optimum: Solution,
    limits: CaseLimits = LIMITS,
    start: Assignment | None = None,
) -> int | None:
    """Return the minimum number of moves to an assignment of at most the given imbalance.

    The assignment also has at most the given off-rack reads; None means any number. ``optimum``
    is the group's `solve_optimum`; ``start`` is an assignment within both limits, if one is known.
    The result is None if a limit was reached before the proof.
    """
    measure = Measure(optimum.imbalance.name)
    if off_rack_reads is None:
        if imbalance <= optimum.imbalance.value or optimum.movement.value == 0:
            return optimum.movement.value if optimum.movement.gap == 0 else None
        if measures(group, keep_owners(group))[measure] <= imbalance:
            return 0
    if group.partition_count > limits.within_partitions:
        return None
    levels: list[Level] = [Imbalance(measure, Tolerance(up_to=imbalance))]
    if off_rack_reads is not None:
        levels.append(CrossRack(Tolerance(up_to=off_rack_reads)))
    solution = solve(
        without_capacities(group),
        levels=(*levels, Movement()),
        initial_assignment=start or optimum.assignment,
        limits=limits,
    )
    reached = zip(solution.levels, (imbalance, off_rack_reads), strict=False)
    is_within = all(limit is None or level.value <= limit for level, limit in reached)
    return solution.movement.value if is_within and solution.movement.gap == 0 else None


def without_capacities(group: Group) -> Group:
    """Return a copy of a group without capacities. Kafka's assignors ignore them."""
    if all(member.capacity is None for member in group.members):
        return group
    members = tuple(replace(member, capacity=None) for member in group.members)
    return replace(group, members=members)


def without_racks(group: Group) -> Group:
    """Return a copy of a group in which no member and no replica has a known rack."""
    topics = tuple(replace(topic, racks=None) for topic in group.topics)
    members = tuple(replace(member, rack=None) for member in group.members)
    return replace(group, topics=topics, members=members)
