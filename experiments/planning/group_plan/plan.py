"""Plan the moves of one group. All searches of the plan share one time limit."""

from collections.abc import Callable, Iterable
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
from kassay.experiments.planning.group_plan.planned_solution import (
    PlannedSolution,
    PlanningTime,
    Progress,
)
from kassay.experiments.planning.group_plan.rack_locality import RackLocality, compare_racks
from kassay.experiments.planning.moves.explained_steps import move_steps
from kassay.experiments.planning.moves.move_schedule import moves_between, schedule_moves
from kassay.experiments.planning.preparation.identify_assignor import client_assignors
from kassay.experiments.planning.preparation.plan_verdict import Verdict, other_verdict
from kassay.experiments.planning.preparation.planning_levels import makespan_of, planning_levels
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import member_units, participants
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.solver.constraints import Constraint, group_constraints
from kassay.solver.frontier.moves_plan import without_move_limit
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Level, Movement, requested_levels
from kassay.solver.sizing.limiting_partition import LimitingPartition, limiting_partition
from kassay.solver.sizing.member_loss import MemberLosses, member_loss
from kassay.solver.sizing.members_needed import members_needed
from kassay.solver.solution import LevelValue

GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
"""Default traffic growth factors for which the plan computes the number of members."""
_CONTENT_WORK = 1.2e-4
"""Work per partition for the content of a plan, after its searches."""


def plan(
    group: Group,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
    batch_size: int = 1,
    growth: Iterable[Fraction] = GROWTH,
    limits: SearchLimits | float = LIMITS,
    seed: int = 0,
    progress: Progress | None = None,
    client: str | None = None,
    first: Callable[[Plan], None] | None = None,
) -> Plan:
    """Plan the moves of a group from the current to a balanced assignment.

    Parameters
    ----------
    levels, constraints
        As in `solve`. The default levels are imbalance, then movement. If weights differ, the
        tolerance of the imbalance is 2 %, and the third level is the sum of squared loads.
    batch_size
        Maximum number of owned partitions without a consumer at any time.
    growth
        Growth factors of the traffic to size the group for.
    limits
        Time for the whole plan; its searches share it.
    progress
        Function that receives the name of each part of the plan when the part starts.
    client
        Installed client library ``LIBRARY[@VERSION]``, whose own assignors are run.
    first
        Function that receives a first plan after the fast searches, if weights differ. This plan
        has no results of assignors, no numbers of members, and no losses of members.

    Raises
    ------
    UsageError
        If the levels do not include movement, or partitions can have several members.
    LookupError
        If the group has no assignment: it has no members, or capacities are too small.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> result = plan(NAMED_GROUPS["E"].group)
    >>> result.current.makespan, result.makespan.value, result.movement
    (11, 10, 2)
    """
    require_group(group)
    require_single_copies(group)
    levels = planning_levels(group) if levels is None else requested_levels(group, levels)
    if not any(isinstance(level, Movement) for level in levels):
        names = ", ".join(level.name for level in levels)
        raise UsageError(f"the levels of a plan must include movement, got {names}")
    limits = CaseLimits.of(limits)
    assignors = () if client is None else client_assignors(client)
    content = _CONTENT_WORK * group.partition_count
    searched = replace(limits, work=limits.work - min(content, limits.work / 2))
    if limits.time is not None:
        searched = replace(searched, time=limits.time - min(content, limits.time / 2))
    budget = SearchBudget.start(searched, seed)
    clock = PlanningTime(budget.limits, budget, seed, progress, member_units(group))
    found = PlannedSolution(group, levels, tuple(constraints), clock)
    request = PlanRequest(batch_size=batch_size, growth=tuple(growth))
    planner = _Planner(found, request, assignors)
    found.find(None if first is None else lambda: first(planner.plan()))
    return planner.plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Settings of the content of a plan, as in `plan`."""

    batch_size: int
    growth: tuple[Fraction, ...]


@dataclass(slots=True)
class _Planner:
    """Planner that adds alternatives, results of assignors and sizes to a planned solution."""

    found: PlannedSolution
    request: PlanRequest
    client_assignors: tuple[str, ...]

    def plan(self) -> Plan:
        """Create the plan for the solution, with alternatives and the results of assignors."""
        group, solution, optimum = self.found.group, self.found.solution, self.found.optimum
        assignment, current = solution.assignment, keep_owners(group)
        if assignment is None:
            raise LookupError(
                "; ".join(solution.conflict) or "no assignment found within the time limit"
            )
        other = self._other_verdict()
        curve = self.found.frontier()
        measure = scheduled_measure(curve.measure)
        batches = schedule_moves(
            group, assignment, batch_size=self.request.batch_size, measure=measure
        )
        planned, consuming = assignment_metrics(group, assignment), participants(group)
        before = assignment_metrics(group, current)
        makespan = makespan_of(group, solution, self.found.constraints)
        makespan = makespan or LevelValue("makespan", 0, 0)
        outcomes = self._assignor_outcomes()
        is_brief = self.found.time.is_stopped or self.found.is_first
        return Plan(
            group=group,
            current=before,
            unowned=tuple(_unowned(group)),
            idle=tuple(member.id for member in group.members if member.id not in consuming),
            racks=self._racks(current),
            levels=self.found.planned_levels,
            constraints=self.found.constraints,
            solution=solution,
            optimum=optimum,
            planned=planned,
            makespan=makespan,
            moves=moves_between(group, assignment),
            batches=batches,
            steps=move_steps(group, batches),
            options=plan_options(group, solution, optimum, curve),
            frontier=curve,
            assignor_outcomes=outcomes,
            client=next((name.partition(":")[0] for name in self.client_assignors), None),
            actions=()
            if is_brief
            else effective_actions(
                group,
                current=before,
                planned=planned,
                makespan=makespan,
                outcomes=outcomes,
                levels=self.found.levels,
                rules=self._rules,
            ),
            growth_sizings=self._growth_sizings(planned.makespan),
            member_losses=self._member_losses(assignment),
            interrupted=self.found.time.is_interrupted,
            is_first=self.found.is_first,
            limiting_partition=self._limiting_partition(),
            other_reading=other,
        )

    def _racks(self, current: Assignment) -> RackLocality | None:
        if self.found.is_first:
            limits = replace(self.found.time.limits, work=0.0)
        else:
            limits = self.found.time.share("reads across racks", 0.05)
        return compare_racks(
            self.found.group,
            current,
            self.found.solution,
            optimum=self.found.optimum,
            constraints=without_move_limit(self.found.constraints),
            limits=limits,
            seed=self.found.time.seed,
        )

    def _assignor_outcomes(self) -> tuple[AssignorOutcome, ...]:
        if self.found.is_first:
            return ()
        limits = self.found.time.share("results of Kafka's assignors", 0.2, parts=8)
        client = self.client_assignors
        found, rules = self.found, self._rules
        return tuple(
            assignor_outcomes(found.group, found.optimum, limits, client=client, rules=rules)
        )

    @property
    def _rules(self) -> tuple[Constraint, ...]:
        """Constraints of the plan, with the capacities."""
        return (*group_constraints(self.found.group), *self.found.constraints)

    def _growth_sizings(self, makespan: int) -> tuple[GrowthSizing, ...]:
        group, factors = self.found.group, self.request.growth
        if (
            self.found.is_first
            or group.weight_source is WeightSource.LAG
            or not group.has_equal_speeds
        ):
            return ()
        clock, parts = self.found.time, max(1, len(factors))
        limits = clock.share("members for growing traffic", 0.6, parts=parts)
        return tuple(
            self._growth_sizing(one, int(makespan / one), limits)
            for one in factors
            if not self.found.time.is_stopped
        )

    def _growth_sizing(self, growth: Fraction, makespan: int, limits: CaseLimits) -> GrowthSizing:
        # The number of members does not depend on the owners. Without owners, no search for few
        # moves is necessary.
        found = self.found
        group = rejoin(found.group, Assignment({}))
        sizing = members_needed(
            group, makespan=makespan, sweep=(), limits=limits, seed=found.time.seed
        )
        return GrowthSizing(growth=growth, makespan=makespan, sizing=sizing)

    def _other_verdict(self) -> Verdict | None:
        found = self.found
        if found.is_first:
            return None
        return other_verdict(
            found.group,
            found.levels,
            found.constraints,
            limits=found.time.share("other subscriptions", 0.3),
            seed=found.time.seed,
        )

    def _limiting_partition(self) -> LimitingPartition | None:
        clock = self.found.time
        if self.found.is_first:
            limits = replace(clock.limits, work=0.0)
        else:
            limits = clock.share("split of a partition", 0.2)
        return limiting_partition(self.found.group, limits=limits, seed=clock.seed)

    def _member_losses(self, assignment: Assignment) -> MemberLosses:
        found = self.found
        if found.is_first:
            return MemberLosses(())
        limits = found.time.share("loss of a member", 0.1)
        losses = member_loss(found.group, assignment, limits=limits, seed=found.time.seed)
        return MemberLosses(()) if found.time.is_stopped else losses


def _unowned(group: Group) -> Iterable[str]:
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        if subscribers[topic]:
            for number in (owners == NO_OWNER).nonzero()[0].tolist():
                yield f"{topic}-{number}"
