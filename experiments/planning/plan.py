"""The planning report's content: one group, where it stands, where it could, how to go."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from kassay.experiments.compare import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning.assignor_outcomes import (
    AssignorOutcome,
    CurrentState,
    assignor_outcomes,
    current_state,
)
from kassay.experiments.planning.move_order import Move, MoveBatch, moves_between, schedule
from kassay.experiments.planning.rack_locality import RackLocality, compare_racks
from kassay.experiments.planning.what_if_scenarios import makespan_of
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
EXPLAINABLE = 2_000
"""Chains are looked for in groups with at most so many partitions: each costs a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOption:
    """How many members keep today's best greatest load when traffic grows.

    Parameters
    ----------
    growth
        Factor on every weight.
    makespan
        Greatest load allowed, in today's units: the wish over the growth.
    sizing
        The number of members, and what is proven of it.
    """

    growth: Fraction
    makespan: int
    sizing: Sizing


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that the planning report says.

    Parameters
    ----------
    group
        The group today.
    today
        How it stands: every owned partition with its owner, those without one with the
        least loaded subscriber.
    unowned
        Partitions that nobody owns.
    idle
        Members that subscribe to no partition.
    racks
        What is read across racks; None for a group without racks.
    optimum
        The least imbalance, then the fewest moves.
    then
        How the group stands with it.
    makespan
        Greatest load of the optimum, and what is proven of the least.
    moves, batches
        What changes hands, and in what order.
    frontier
        What each number of moves buys.
    reasons
        Chains of transfers from today to the optimum.
    alternatives
        What Kafka's assignors would do from here.
    needs
        Members needed at several rates of growth.
    resilience
        What the loss of any one member costs, once the plan is carried out.
    """

    group: Group
    today: CurrentState
    unowned: int
    idle: tuple[str, ...]
    racks: RackLocality | None
    optimum: Solution = field(repr=False)
    then: CurrentState
    makespan: LevelValue
    moves: tuple[Move, ...]
    batches: tuple[MoveBatch, ...]
    frontier: Frontier
    reasons: tuple[Explanation, ...]
    alternatives: tuple[AssignorOutcome, ...]
    needs: tuple[PlanOption, ...]
    resilience: MemberLosses

    @property
    def assignment(self) -> Assignment:
        """Where the plan leads."""
        if self.optimum.assignment is None:
            raise LookupError("there is no assignment")
        return self.optimum.assignment

    @property
    def moved(self) -> int:
        """Owned partitions that change hands."""
        return sum(1 for move in self.moves if move.giver is not None)


def plan(
    group: Group,
    *,
    batch: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    points: int = 25,
    limits: CaseLimits = LIMITS,
    seed: int = 0,
) -> Plan:
    """Plan the way from a group as it is to the best it can be.

    Parameters
    ----------
    group
        The group today.
    batch
        Partitions that may wait for their new consumer at a time.
    growth
        Rates of growth to size the group for.
    points
        Points of the frontier, at most.
    limits
        What each search may use up.
    seed
        Of the searches.

    Raises
    ------
    LookupError
        If there is no assignment: no members, or capacities that admit none.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> found = plan(NAMED_GROUPS["E"].group)
    >>> found.today.makespan, found.makespan, found.moved
    (11, LevelValue(name='makespan', value=10, bound=10, slack=0), 2)
    """
    optimum = solve(group, limits=limits, seed=seed)
    if optimum.assignment is None:
        raise LookupError("; ".join(optimum.conflict) or "no assignment was found in time")
    stayed = keep_owners(group)
    then = current_state(group, optimum.assignment)
    makespan = makespan_of(group, optimum)
    active = participants(group)
    return Plan(
        group=group,
        today=current_state(group, stayed),
        unowned=_unowned(group),
        idle=tuple(member.id for member in group.members if member.id not in active),
        racks=compare_racks(group, stayed, optimum, limits=limits, seed=seed),
        optimum=optimum,
        then=then,
        makespan=makespan or LevelValue("makespan", 0, 0),
        moves=moves_between(group, optimum.assignment),
        batches=schedule(group, optimum.assignment, most=batch),
        frontier=_frontier(group, points, limits, seed),
        reasons=explain(group, stayed) if group.partition_count <= EXPLAINABLE else (),
        alternatives=tuple(assignor_outcomes(group, optimum, limits)),
        needs=tuple(_needs(group, then.makespan, growth, limits, seed)),
        resilience=member_loss(
            group,
            optimum.assignment,
            limits=limits,
            seed=seed,
        ),
    )


def _unowned(group: Group) -> int:
    owners, subscribers = ownership(group).owners, group.subscribers()
    return sum(
        int((column == NO_OWNER).sum()) for topic, column in owners.items() if subscribers[topic]
    )


def _frontier(group: Group, points: int, limits: CaseLimits, seed: int) -> Frontier:
    return frontier(
        group,
        most_points=points,
        limits=limits,
        seed=seed,
    )


def _needs(
    group: Group, makespan: int, growth: Iterable[Fraction], limits: CaseLimits, seed: int
) -> Iterable[PlanOption]:
    for factor in growth:
        wish = int(makespan / factor)
        sizing = members_needed(
            group,
            makespan=wish,
            limits=limits,
            seed=seed,
        )
        yield PlanOption(growth=factor, makespan=wish, sizing=sizing)
