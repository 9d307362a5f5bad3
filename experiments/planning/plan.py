"""Plan for one group: current state, planned assignment, moves and alternatives."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from kassay.experiments.compare import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning.actions import RecommendedAction, effective_actions
from kassay.experiments.planning.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
    assignment_metrics,
    assignor_outcomes,
)
from kassay.experiments.planning.explained_steps import MoveStep, move_steps
from kassay.experiments.planning.move_schedule import Move, MoveBatch, moves_between, schedule_moves
from kassay.experiments.planning.plan_options import PlanOption, plan_options, scheduled_measure
from kassay.experiments.planning.planning_levels import (
    exact_levels,
    planning_levels,
    without_move_limit,
)
from kassay.experiments.planning.rack_locality import RackLocality, compare_racks
from kassay.experiments.planning.time_shares import Progress, TimeShares
from kassay.experiments.planning.what_if import makespan_of
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, require_group
from kassay.reference.model.metrics import Measure, participants
from kassay.reference.model.ownership import NO_OWNER, ownership
from kassay.reference.model.weight_source import WeightSource
from kassay.solver.constraints import Constraint
from kassay.solver.frontier.frontier import frontier
from kassay.solver.frontier.frontier_points import Frontier
from kassay.solver.objective import Level
from kassay.solver.sizing.member_loss import MemberLosses, member_loss
from kassay.solver.sizing.members_needed import Sizing, members_needed
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
"""Default factors of traffic growth."""
_SOLVES_PER_GROWTH = 8
"""Number of searches that share the time of one growth factor; a sizing makes about as many."""


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
    levels, constraints
        Objective of the plan.
    solution
        Planned assignment, with value and bound per level.
    optimum
        Assignment with minimum imbalance without tolerance and limit on moves.
    makespan
        Maximum load of the planned assignment, and a lower bound on the maximum load.
    growth_sizings
        Empty if the weights are lag, which is a backlog and not a load.
    steps
        The moves in order, as steps that lower the loads.
    options
        The planned assignment and the alternatives to it.
    actions
        Effective actions instead of the list of moves, those with the fewest moves first.
    interrupted
        Whether the event ``stop`` of the limits ended the searches. The plan is the best one
        found until then; alternatives, assignors, sizings and losses may be missing.
    """

    group: Group
    current: AssignmentMetrics
    unowned: tuple[str, ...]
    idle: tuple[str, ...]
    racks: RackLocality | None
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    solution: Solution = field(repr=False)
    optimum: Solution = field(repr=False)
    planned: AssignmentMetrics
    makespan: LevelValue
    moves: tuple[Move, ...]
    batches: tuple[MoveBatch, ...]
    steps: tuple[MoveStep, ...]
    options: tuple[PlanOption, ...]
    frontier: Frontier
    assignor_outcomes: tuple[AssignorOutcome, ...]
    actions: tuple[RecommendedAction, ...]
    growth_sizings: tuple[GrowthSizing, ...]
    member_losses: MemberLosses
    interrupted: bool

    @property
    def assignment(self) -> Assignment:
        """Planned assignment."""
        if self.solution.assignment is None:
            raise LookupError("the plan has no assignment")
        return self.solution.assignment

    @property
    def movement(self) -> int:
        """Number of owned partitions that move."""
        return sum(1 for move in self.moves if move.source is not None)


def plan(
    group: Group,
    *,
    levels: Sequence[Level] | None = None,
    constraints: Iterable[Constraint] = (),
    batch_size: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    points: int = 25,
    limits: CaseLimits = LIMITS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Plan the moves from the current to a balanced assignment.

    Parameters
    ----------
    levels, constraints
        As in `solve`. The default levels are imbalance, with a tolerance of 2 % if weights
        differ, then movement.
    batch_size
        Maximum number of owned partitions without a consumer at any time.
    growth
        Growth factors of the traffic to size the group for.
    points
        Maximum number of points of the frontier.
    limits
        Time for the whole plan; its searches share it.
    progress
        Function that receives the name of each part of the plan when the part starts.

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
    require_group(group)
    levels = planning_levels(group) if levels is None else tuple(levels)
    clock = TimeShares(limits, progress)
    planner = _Planner(group, levels, tuple(constraints), clock, seed)
    solution, optimum = planner.solutions()
    return planner.plan(
        solution, optimum, batch_size=batch_size, growth=tuple(growth), points=points
    )


@dataclass(frozen=True, slots=True)
class _Planner:
    """Searches of one plan, which share its time."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    clock: TimeShares
    seed: int

    def solutions(self) -> tuple[Solution, Solution]:
        """Return the planned solution, and the optimum without tolerance and limit on moves.

        The optimum is the first search: the tolerance is relative to its imbalance.
        """
        exact, rules = exact_levels(self.levels), without_move_limit(self.constraints)
        is_exact = self.levels[:2] == exact and rules == self.constraints
        optimum = solve(
            self.group,
            levels=self.levels if is_exact else exact,
            constraints=rules,
            limits=self.clock.share("perfect balance", 0.5 if is_exact else 0.25),
            seed=self.seed,
        )
        if is_exact or optimum.assignment is None:
            return optimum, optimum
        solution = solve(
            self.group,
            levels=self.levels,
            constraints=self.constraints,
            initial_assignment=optimum.assignment,
            limits=self.clock.share("plan", 0.35),
            seed=self.seed,
        )
        return solution, optimum

    def plan(
        self,
        solution: Solution,
        optimum: Solution,
        *,
        batch_size: int,
        growth: tuple[Fraction, ...],
        points: int,
    ) -> Plan:
        """Return the plan that carries out a solution."""
        group, assignment, current = self.group, solution.assignment, keep_owners(self.group)
        if assignment is None:
            raise LookupError(
                "; ".join(solution.conflict) or "no assignment found within the time limit"
            )
        found = self._frontier(solution, optimum, points)
        measure = scheduled_measure(found.measure)
        batches = schedule_moves(group, assignment, batch_size=batch_size, measure=measure)
        planned, consuming = assignment_metrics(group, assignment), participants(group)
        before = assignment_metrics(group, current)
        makespan = makespan_of(group, solution) or LevelValue("makespan", 0, 0)
        outcomes = self._assignor_outcomes(optimum)
        return Plan(
            group=group,
            current=before,
            unowned=tuple(_unowned(group)),
            idle=tuple(member.id for member in group.members if member.id not in consuming),
            racks=self._racks(current, solution),
            levels=self.levels,
            constraints=self.constraints,
            solution=solution,
            optimum=optimum,
            planned=planned,
            makespan=makespan,
            moves=moves_between(group, assignment),
            batches=batches,
            steps=move_steps(group, batches),
            options=plan_options(group, solution, optimum, found),
            frontier=found,
            assignor_outcomes=outcomes,
            actions=()
            if self.is_stopped
            else effective_actions(
                group, current=before, planned=planned, makespan=makespan, outcomes=outcomes
            ),
            growth_sizings=self._growth_sizings(growth, planned.makespan),
            member_losses=self._member_losses(assignment, len(consuming)),
            interrupted=self.is_stopped,
        )

    @property
    def is_stopped(self) -> bool:
        """Whether the event of the limits stopped the searches."""
        return self.clock.limits.is_stopped

    def _frontier(self, solution: Solution, optimum: Solution, points: int) -> Frontier:
        return frontier(
            self.group,
            measure=Measure(solution.imbalance.name),
            constraints=without_move_limit(self.constraints),
            max_points=points,
            optimum=optimum,
            known=[solution],
            limits=self.clock.share("frontier", 0.5),
            seed=self.seed,
        )

    def _racks(self, current: Assignment, solution: Solution) -> RackLocality | None:
        limits = self.clock.share("racks", 0.2)
        return compare_racks(self.group, current, solution, limits=limits, seed=self.seed)

    def _assignor_outcomes(self, optimum: Solution) -> tuple[AssignorOutcome, ...]:
        limits = self.clock.share("assignors", 0.2, parts=8)
        return tuple(assignor_outcomes(self.group, optimum, limits))

    def _growth_sizings(
        self, factors: tuple[Fraction, ...], makespan: int
    ) -> tuple[GrowthSizing, ...]:
        if self.group.weight_source is WeightSource.LAG:
            return ()
        parts = _SOLVES_PER_GROWTH * max(1, len(factors))
        limits = self.clock.share("sizing", 0.6, parts=parts)
        return tuple(
            self._growth_sizing(one, int(makespan / one), limits)
            for one in factors
            if not self.is_stopped
        )

    def _growth_sizing(self, growth: Fraction, makespan: int, limits: CaseLimits) -> GrowthSizing:
        sizing = members_needed(self.group, makespan=makespan, limits=limits, seed=self.seed)
        return GrowthSizing(growth=growth, makespan=makespan, sizing=sizing)

    def _member_losses(self, assignment: Assignment, members: int) -> MemberLosses:
        limits = self.clock.share("loss of a member", 0.9, parts=max(1, members))
        losses = member_loss(self.group, assignment, limits=limits, seed=self.seed)
        return MemberLosses(()) if self.is_stopped else losses


def _unowned(group: Group) -> Iterable[str]:
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        if subscribers[topic]:
            for number in (owners == NO_OWNER).nonzero()[0].tolist():
                yield f"{topic}-{number}"
