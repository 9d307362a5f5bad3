"""Plan the moves of one group. All searches of the plan share one time limit."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from kassay.experiments.comparison.optimum import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning.group_plan.actions import effective_actions
from kassay.experiments.planning.group_plan.assignor_outcomes import (
    AssignorOutcome,
    assignment_metrics,
    assignor_outcomes,
)
from kassay.experiments.planning.group_plan.plan_alternatives import plan_options, scheduled_measure
from kassay.experiments.planning.group_plan.plan_result import GrowthSizing, Plan
from kassay.experiments.planning.group_plan.rack_locality import RackLocality, compare_racks
from kassay.experiments.planning.moves.explained_steps import move_steps
from kassay.experiments.planning.moves.move_schedule import moves_between, schedule_moves
from kassay.experiments.planning.preparation.identify_assignor import client_assignors
from kassay.experiments.planning.preparation.planning_levels import makespan_of, planning_levels
from kassay.experiments.planning.preparation.verdict import other_verdict
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.group_checks import require_group
from kassay.reference.model.metrics import Measure, participants
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.solver.constraints import Constraint, MaxMoves
from kassay.solver.frontier.frontier import frontier
from kassay.solver.frontier.frontier_points import Frontier
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import (
    HostImbalance,
    Imbalance,
    Level,
    Movement,
    default_measure,
    requested_levels,
)
from kassay.solver.sizing.member_loss import MemberLosses, member_loss
from kassay.solver.sizing.members_needed import members_needed
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
"""Default traffic growth factors for which the plan computes the number of members."""
Progress = Callable[[str], None]
"""Function that is called with the name of each part of the plan when the part starts."""


def plan(
    group: Group,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
    batch_size: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    points: int = 25,
    limits: SearchLimits | float = LIMITS,
    seed: int = 0,
    progress: Progress | None = None,
    client: str | None = None,
) -> Plan:
    """Plan the moves of a group from the current to a balanced assignment.

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
    client
        Installed client library ``LIBRARY[@VERSION]``, whose own assignors are run.

    Raises
    ------
    LookupError
        If the group has no assignment: it has no members, or capacities are too small.

    Examples
    --------
    >>> from kassay.experiments.study.families.hand_written_groups import NAMED_GROUPS
    >>> result = plan(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.makespan.value, result.movement
    (11, 10, 2)
    """
    require_group(group)
    levels = planning_levels(group) if levels is None else requested_levels(group, levels)
    limits = CaseLimits.of(limits)
    assignors = () if client is None else client_assignors(client)
    deadline = time.monotonic() + limits.time
    planner = _Planner(
        group, levels, tuple(constraints), limits, deadline, seed, progress, assignors
    )
    solution, optimum = planner.solutions()
    return planner.plan(
        solution, optimum, batch_size=batch_size, growth=tuple(growth), points=points
    )


@dataclass(slots=True)
class _Planner:
    """Planner that runs all searches of one plan within a shared time limit."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    limits: CaseLimits
    deadline: float
    seed: int
    progress: Progress | None
    client_assignors: tuple[str, ...]

    def solutions(self) -> tuple[Solution, Solution]:
        """Find the planned solution, and the optimum without tolerance and move limit.

        The first search finds the optimum, because the tolerance is relative to its imbalance.
        """
        exact = _exact_levels(self.group, self.levels)
        rules = _without_move_limit(self.constraints)
        is_exact = self.levels[:2] == exact and rules == self.constraints
        optimum = solve(
            self.group,
            levels=self.levels if is_exact else exact,
            constraints=rules,
            limits=self._share("perfect balance", 0.5 if is_exact else 0.25),
            seed=self.seed,
        )
        if is_exact or optimum.assignment is None:
            return optimum, optimum
        solution = solve(
            self.group,
            levels=self.levels,
            constraints=self.constraints,
            initial_assignment=optimum.assignment,
            limits=self._share("plan", 0.35),
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
        """Create the plan for a solution, with alternatives and the results of assignors."""
        group, assignment, current = self.group, solution.assignment, keep_owners(self.group)
        if assignment is None:
            raise LookupError(
                "; ".join(solution.conflict) or "no assignment found within the time limit"
            )
        other = other_verdict(
            group,
            self.levels,
            self.constraints,
            limits=self._share("other subscriptions", 0.3),
            seed=self.seed,
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
            client=next((name.partition(":")[0] for name in self.client_assignors), None),
            actions=()
            if self.is_stopped
            else effective_actions(
                group,
                current=before,
                planned=planned,
                makespan=makespan,
                outcomes=outcomes,
                by_host=any(isinstance(one, HostImbalance) for one in self.levels),
            ),
            growth_sizings=self._growth_sizings(growth, planned.makespan),
            member_losses=self._member_losses(assignment),
            interrupted=self.is_stopped,
            other_reading=other,
        )

    def _share(self, name: str, share: float, *, parts: int = 1) -> CaseLimits:
        """Report that a part of the planning starts, and return the limits for its searches."""
        if self.progress is not None and not self.is_stopped:
            self.progress(name)
        left = max(0.0, self.deadline - time.monotonic())
        return replace(self.limits, time=left * share / parts)

    @property
    def is_stopped(self) -> bool:
        """Return whether the caller stopped the searches. A reached time limit does not count."""
        return self.limits.is_stopped

    def _frontier(self, solution: Solution, optimum: Solution, points: int) -> Frontier:
        return frontier(
            self.group,
            measure=Measure(solution.imbalance.name),
            constraints=_without_move_limit(self.constraints),
            max_points=points,
            optimum=optimum,
            known=[solution],
            limits=self._share("frontier", 0.5),
            seed=self.seed,
        )

    def _racks(self, current: Assignment, solution: Solution) -> RackLocality | None:
        limits = self._share("racks", 0.2)
        return compare_racks(self.group, current, solution, limits=limits, seed=self.seed)

    def _assignor_outcomes(self, optimum: Solution) -> tuple[AssignorOutcome, ...]:
        limits = self._share("assignors", 0.2, parts=8)
        client = self.client_assignors
        return tuple(assignor_outcomes(self.group, optimum, limits, client=client))

    def _growth_sizings(
        self, factors: tuple[Fraction, ...], makespan: int
    ) -> tuple[GrowthSizing, ...]:
        if self.group.weight_source is WeightSource.LAG or not self.group.has_equal_speeds:
            return ()
        limits = self._share("sizing", 0.6, parts=max(1, len(factors)))
        return tuple(
            self._growth_sizing(one, int(makespan / one), limits)
            for one in factors
            if not self.is_stopped
        )

    def _growth_sizing(self, growth: Fraction, makespan: int, limits: CaseLimits) -> GrowthSizing:
        # The number of members does not depend on the owners. Without owners, no search for few
        # moves is necessary.
        group = rejoin(self.group, Assignment({}))
        sizing = members_needed(group, makespan=makespan, sweep=(), limits=limits, seed=self.seed)
        return GrowthSizing(growth=growth, makespan=makespan, sizing=sizing)

    def _member_losses(self, assignment: Assignment) -> MemberLosses:
        limits = self._share("loss of a member", 0.9)
        losses = member_loss(self.group, assignment, limits=limits, seed=self.seed)
        return MemberLosses(()) if self.is_stopped else losses


def _unowned(group: Group) -> Iterable[str]:
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        if subscribers[topic]:
            for number in (owners == NO_OWNER).nonzero()[0].tolist():
                yield f"{topic}-{number}"


def _exact_levels(group: Group, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0] if measures else default_measure(group)), Movement())


def _without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))
