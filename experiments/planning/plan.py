"""Plan for one group: current state, optimal assignment, moves and alternatives."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from kassay.experiments.compare import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
    assignment_metrics,
    assignor_outcomes,
)
from kassay.experiments.planning.move_schedule import Move, MoveBatch, moves_between, schedule_moves
from kassay.experiments.planning.rack_locality import RackLocality, compare_racks
from kassay.experiments.planning.what_if import makespan_of
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import participants
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.solver.frontier import Frontier, frontier
from kassay.solver.improvement.explanation import Explanation, explain
from kassay.solver.sizing.member_loss import MemberLosses, member_loss
from kassay.solver.sizing.members_needed import Sizing, members_needed
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
"""Default factors of traffic growth."""
_MAX_EXPLAINED_PARTITIONS = 2_000
"""Maximum size of a group for improving chains; each chain requires a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSizing:
    """Number of members that keep the planned maximum load when traffic grows.

    ``makespan`` is in current units: the planned maximum load divided by the growth factor.
    """

    growth: Fraction
    makespan: int
    sizing: Sizing


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Content of the planning report of one group.

    Parameters
    ----------
    current
        Owned partitions count with their owners, the others with their least loaded subscriber.
    unowned
        Consumed partitions without an owner, as ``topic-number``.
    idle
        Members without a consumed topic.
    racks
        None for a group without racks.
    makespan
        Maximum load of the optimal assignment and its lower bound.
    """

    group: Group
    current: AssignmentMetrics
    unowned: tuple[str, ...]
    idle: tuple[str, ...]
    racks: RackLocality | None
    optimum: Solution = field(repr=False)
    planned: AssignmentMetrics
    makespan: LevelValue
    moves: tuple[Move, ...]
    batches: tuple[MoveBatch, ...]
    frontier: Frontier
    improving_chains: tuple[Explanation, ...]
    assignor_outcomes: tuple[AssignorOutcome, ...]
    growth_sizings: tuple[GrowthSizing, ...]
    member_losses: MemberLosses

    @property
    def assignment(self) -> Assignment:
        """Planned assignment."""
        if self.optimum.assignment is None:
            raise LookupError("the plan has no assignment")
        return self.optimum.assignment

    @property
    def movement(self) -> int:
        """Number of owned partitions that move."""
        return sum(1 for move in self.moves if move.source is not None)


def plan(
    group: Group,
    *,
    batch_size: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    points: int = 25,
    limits: CaseLimits = LIMITS,
    seed: int = 0,
) -> Plan:
    """Plan the moves from the current to the optimal assignment.

    Parameters
    ----------
    batch_size
        Maximum number of owned partitions without a consumer at any time.
    growth
        Growth factors of the traffic to size the group for.
    points
        Maximum number of points of the frontier.

    Raises
    ------
    LookupError
        If the group has no assignment: it has no members, or capacities are too small.

    Examples
    --------
    >>> from kassay.experiments.study.families.hand_picked_groups import NAMED_GROUPS
    >>> result = plan(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.makespan.value, result.movement
    (11, 10, 2)
    """
    optimum = solve(group, limits=limits, seed=seed)
    assignment, current = optimum.assignment, keep_owners(group)
    if assignment is None:
        raise LookupError(
            "; ".join(optimum.conflict) or "no assignment found within the time limit"
        )
    planned, consuming = assignment_metrics(group, assignment), participants(group)
    is_explained = group.partition_count <= _MAX_EXPLAINED_PARTITIONS
    return Plan(
        group=group,
        current=assignment_metrics(group, current),
        unowned=tuple(_unowned(group)),
        idle=tuple(member.id for member in group.members if member.id not in consuming),
        racks=compare_racks(group, current, optimum, limits=limits, seed=seed),
        optimum=optimum,
        planned=planned,
        makespan=makespan_of(group, optimum) or LevelValue("makespan", 0, 0),
        moves=moves_between(group, assignment),
        batches=schedule_moves(group, assignment, batch_size=batch_size),
        frontier=frontier(group, max_points=points, limits=limits, seed=seed),
        improving_chains=explain(group, current) if is_explained else (),
        assignor_outcomes=tuple(assignor_outcomes(group, optimum, limits)),
        growth_sizings=tuple(
            _growth_sizing(group, factor, int(planned.makespan / factor), limits, seed)
            for factor in growth
        ),
        member_losses=member_loss(group, assignment, limits=limits, seed=seed),
    )


def _growth_sizing(
    group: Group, growth: Fraction, makespan: int, limits: CaseLimits, seed: int
) -> GrowthSizing:
    sizing = members_needed(group, makespan=makespan, limits=limits, seed=seed)
    return GrowthSizing(growth=growth, makespan=makespan, sizing=sizing)


def _unowned(group: Group) -> Iterable[str]:
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        if subscribers[topic]:
            for number in (owners == NO_OWNER).nonzero()[0].tolist():
                yield f"{topic}-{number}"
