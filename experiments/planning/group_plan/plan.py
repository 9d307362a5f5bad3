"""Plan the moves of one group. All searches of the plan share its limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from kassay.experiments.comparison.optimum import LIMITS, CaseLimits, keep_owners
from kassay.experiments.planning.group_plan.actions import (
    AssignorOutcome,
    assignment_metrics,
    assignor_outcomes,
    effective_actions,
)
from kassay.experiments.planning.group_plan.plan_result import (
    GrowthSizing,
    Plan,
    plan_options,
    scheduled_measure,
)
from kassay.experiments.planning.group_plan.rack_locality import compare_racks, minimum_cross_rack
from kassay.experiments.planning.moves.explain_moves import move_steps
from kassay.experiments.planning.moves.move_schedule import (
    after_batches,
    moves_between,
    schedule_moves,
)
from kassay.experiments.planning.preparation.identify_assignor import client_assignors
from kassay.experiments.planning.preparation.plan_verdict import other_verdict
from kassay.experiments.planning.preparation.planning_levels import makespan_of, planning_levels
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import Measure, participants
from kassay.reference.model.ownership import NO_OWNER, ownership, rejoin
from kassay.solver.constraints import Constraint, MaxMoves, group_constraints
from kassay.solver.frontier.frontier import frontier
from kassay.solver.frontier.frontier_points import Frontier, frontier_point
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import (
    Imbalance,
    Level,
    Movement,
    MovementCost,
    default_measure,
    requested_levels,
)
from kassay.solver.sizing.limiting_partition import limiting_partition
from kassay.solver.sizing.member_loss import MemberLosses, member_loss
from kassay.solver.sizing.members_needed import members_needed
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

GROWTH = (Fraction(1), Fraction(5, 4), Fraction(3, 2), Fraction(2))
"""Default traffic growth factors for which the plan computes the number of members."""
_MAX_POINTS = 60
"""Maximum number of points of the frontier."""
_FURTHER_WORK = 3.0
"""Minimum work for the parts of a plan after the planned assignment. They have at most as much work
as the search for this assignment, and at most half of its limit."""
_CONTENT_SECONDS = 1.2e-4
"""Time per partition for the content of a plan, after its searches."""
Progress = Callable[[str], None]
"""Function that is called with the name of each part of the plan when the part starts."""


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

    The planned assignment is that of `solve` with the same levels and constraints.

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
        Limits of the search for the planned assignment. The further parts of the plan have at most
        half as much work, and share the safety limit.
    progress
        Function that receives the name of each part of the plan when the part starts.
    client
        Installed client library ``LIBRARY[@VERSION]``, whose own assignors are run.
    first
        Function that receives a first plan before the searches for alternatives, if weights
        differ. This plan has no alternatives, results of assignors, numbers and losses of members.

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
    planner = _Planner(
        group=group,
        levels=levels,
        constraints=tuple(constraints),
        batch_size=batch_size,
        growth=tuple(growth),
        client_assignors=() if client is None else client_assignors(client),
        budget=SearchBudget.start(_search_limits(group, CaseLimits.of(limits)), seed),
        progress=progress,
    )
    found = planner.first_plan()
    if first is not None and group.is_weighted and not planner.is_stopped:
        first(found)
    # The planned assignment is that of `solve` with all work, so the further parts have their own.
    spent = planner.budget.counter.spent
    further = max(_FURTHER_WORK, min(spent, planner.budget.limits.work / 2))
    budget = replace(planner.budget, deadline=spent + further)
    return replace(planner, budget=budget).complete(found)


def _search_limits(group: Group, limits: CaseLimits) -> CaseLimits:
    """Return the limits of the searches, whose safety limit leaves time for the content."""
    if limits.time is None:
        return limits
    content = min(_CONTENT_SECONDS * group.partition_count, limits.time / 2)
    return replace(limits, time=limits.time - content)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planner:
    """Planner of one group: the assignment, then alternatives and the results of assignors."""

    group: Group
    levels: tuple[Level, ...]
    constraints: tuple[Constraint, ...]
    batch_size: int
    growth: tuple[Fraction, ...]
    client_assignors: tuple[str, ...]
    budget: SearchBudget
    progress: Progress | None

    @property
    def is_stopped(self) -> bool:
        """Return whether the caller stopped the searches. A reached limit does not count."""
        return self.budget.limits.is_stopped

    def first_plan(self) -> Plan:
        """Find the planned assignment, and create the plan without the parts of `complete`."""
        group = self.group
        solution = self._solve(self.levels, self.constraints, "fewest moves", 1.0)
        assignment, current = solution.assignment, keep_owners(group)
        if assignment is None:
            raise LookupError(
                "; ".join(solution.conflict) or "no assignment found within the limits"
            )
        consuming = participants(group)
        measure = Measure(solution.imbalance.name)
        points = (frontier_point(solution),) if self._counts_moves else ()
        known = Frontier(measure, points, complete=False)
        batches = schedule_moves(
            group, assignment, batch_size=self.batch_size, measure=scheduled_measure(measure)
        )
        return Plan(
            group=group,
            current=assignment_metrics(group, current),
            unowned=tuple(_unowned(group)),
            idle=tuple(member.id for member in group.members if member.id not in consuming),
            racks=compare_racks(group, current, assignment),
            levels=self.levels,
            constraints=self.constraints,
            solution=solution,
            optimum=solution,
            planned=assignment_metrics(group, assignment),
            makespan=makespan_of(group, solution, self.constraints) or LevelValue("makespan", 0, 0),
            moves=moves_between(group, assignment),
            batches=batches,
            steps=move_steps(group, batches),
            options=plan_options(group, solution, solution, known),
            frontier=known,
            client=next((name.partition(":")[0] for name in self.client_assignors), None),
            interrupted=self.budget.counter.is_interrupted,
        )

    def complete(self, first: Plan) -> Plan:
        """Add alternatives, results of assignors, and numbers and losses of members to a plan."""
        group, solution, rules = self.group, first.solution, self._rules
        optimum = self._optimum(solution)
        curve = frontier(
            group,
            measure=Measure(solution.imbalance.name),
            constraints=without_move_limit(self.constraints),
            max_points=_MAX_POINTS,
            optimum=optimum,
            known=self._known(first),
            limits=self._part("loads by number of moves", 0.3),
            seed=self.budget.seed,
        )
        optimum = _lowest(optimum, curve)
        other = other_verdict(
            group,
            self.levels,
            self.constraints,
            limits=self._part("other subscriptions", 0.3),
            seed=self.budget.seed,
        )
        outcomes = self._assignor_outcomes(optimum)
        found = replace(
            first,
            optimum=optimum,
            frontier=curve,
            options=plan_options(group, solution, optimum, curve),
            other_reading=other,
            racks=compare_racks(
                group,
                keep_owners(group),
                first.assignment,
                minimum=self._minimum_cross_rack(solution, optimum),
            ),
            assignor_outcomes=outcomes,
            growth_sizings=self._growth_sizings(first.planned.makespan),
            limiting_partition=limiting_partition(
                group, limits=self._part("split of a partition", 0.2), seed=self.budget.seed
            ),
            member_losses=self._member_losses(first.assignment),
            is_first=False,
        )
        if not self.is_stopped:
            actions = effective_actions(
                group,
                current=first.current,
                planned=first.planned,
                makespan=first.makespan,
                outcomes=outcomes,
                levels=self.levels,
                rules=rules,
            )
            found = replace(found, actions=actions)
        return replace(found, interrupted=self.budget.counter.is_interrupted)

    def _solve(
        self, levels: Sequence[Level], constraints: Sequence[Constraint], name: str, share: float
    ) -> Solution:
        return solve(
            self.group,
            levels=levels,
            constraints=constraints,
            limits=self._part(name, share),
            seed=self.budget.seed,
        )

    def _part(self, name: str, share: float) -> CaseLimits:
        """Report that a part of the planning starts, and return the limits for its searches."""
        if self.progress is not None and not self.is_stopped:
            self.progress(name)
        return CaseLimits.of(self.budget.part(share).rest())

    @property
    def _counts_moves(self) -> bool:
        """Whether each move has cost 1, so that the planned solution is a point of the frontier."""
        moves = [level for level in self.levels if isinstance(level, Movement)]
        return all(level.cost is MovementCost.COUNT for level in moves)

    def _known(self, first: Plan) -> list[Assignment]:
        """Return the planned assignment, and the assignments after each of its first moves."""
        if not self._counts_moves:
            return []
        prefixes = islice(after_batches(self.group, first.batches), _MAX_POINTS)
        return [first.assignment, *prefixes]

    @property
    def _rules(self) -> tuple[Constraint, ...]:
        """Constraints of the plan, with the capacities."""
        return (*group_constraints(self.group), *self.constraints)

    @property
    def _is_exact(self) -> bool:
        """Whether the plan has the minimum imbalance without tolerance and limit on moves."""
        is_unlimited = without_move_limit(self.constraints) == self.constraints
        return is_unlimited and self.levels[:2] == _exact_levels(self.group, self.levels)

    def _optimum(self, solution: Solution) -> Solution:
        """Find the minimum imbalance without tolerance and limit on moves."""
        if self._is_exact:
            return solution
        rules = without_move_limit(self.constraints)
        levels = _exact_levels(self.group, self.levels)
        found = self._solve(levels, rules, "minimum imbalance", 0.4)
        return solution if found.assignment is None else found

    def _minimum_cross_rack(self, solution: Solution, optimum: Solution) -> LevelValue | None:
        return minimum_cross_rack(
            self.group,
            solution,
            optimum=optimum.imbalance,
            constraints=without_move_limit(self.constraints),
            limits=self._part("reads across racks", 0.05),
            seed=self.budget.seed,
        )

    def _assignor_outcomes(self, optimum: Solution) -> tuple[AssignorOutcome, ...]:
        limits = self._part("results of Kafka's assignors", 0.2 / 8)
        client = self.client_assignors
        return tuple(
            assignor_outcomes(self.group, optimum, limits, client=client, rules=self._rules)
        )

    def _growth_sizings(self, makespan: int) -> tuple[GrowthSizing, ...]:
        group, factors = self.group, self.growth
        if group.weight_source is WeightSource.LAG or not group.has_equal_speeds:
            return ()
        limits = self._part("members for growing traffic", 0.6 / max(1, len(factors)))
        # The number of members does not depend on the owners. Without owners, no search for few
        # moves is necessary.
        unowned, seed = rejoin(group, Assignment({})), self.budget.seed
        found = []
        for growth in factors:
            if self.is_stopped:
                break
            target = int(makespan / growth)
            sizing = members_needed(unowned, makespan=target, sweep=(), limits=limits, seed=seed)
            found.append(GrowthSizing(growth=growth, makespan=target, sizing=sizing))
        return tuple(found)

    def _member_losses(self, assignment: Assignment) -> MemberLosses:
        limits = self._part("loss of a member", 0.1)
        losses = member_loss(self.group, assignment, limits=limits, seed=self.budget.seed)
        return MemberLosses(()) if self.is_stopped else losses


def without_move_limit(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Remove limits on the number of moves from the constraints."""
    return tuple(rule for rule in constraints if not isinstance(rule, MaxMoves))


def _exact_levels(group: Group, levels: Sequence[Level]) -> tuple[Level, ...]:
    """Return two levels: imbalance without tolerance, then movement."""
    measures = [level.measure for level in levels if isinstance(level, Imbalance)]
    return (Imbalance(measures[0] if measures else default_measure(group)), Movement())


def _lowest(optimum: Solution, curve: Frontier) -> Solution:
    """Return the optimum, or the last point of the frontier if that is better."""
    if not curve.points or optimum.is_optimal:
        return optimum
    last = curve.points[-1]
    values = (optimum.imbalance.value, optimum.movement.value)
    if (last.imbalance.value, last.movement.value) >= values:
        return optimum
    levels = (last.imbalance, last.movement)
    return replace(optimum, assignment=last.assignment, levels=levels, certificate=None)


def _unowned(group: Group) -> Iterator[str]:
    subscribers = group.subscribers()
    for topic, owners in ownership(group).owners.items():
        if subscribers[topic]:
            for number in (owners == NO_OWNER).nonzero()[0].tolist():
                yield f"{topic}-{number}"
