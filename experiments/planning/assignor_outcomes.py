"""Compute metrics of assignments, and run assignors until their results are stable."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kassay.experiments.comparison.compare import CaseLimits, fewest_moves_within
from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.reference import assignors
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import (
    Measure,
    has_racks,
    host_units,
    loads,
    measures,
    off_rack,
    unit_loads,
)
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import violated
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution

_SECONDARY_WORK = 5.0
"""Maximum work of a search for the minimum of one secondary value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentMetrics:
    """Loads, and measures of imbalance, of an assignment.

    ``loads`` has the members with a consumed topic. ``cross_rack`` is the number of off-rack
    reads, or None for a group without racks. ``host_makespan``
    is the maximum relative load of the hosts. ``topic_spread`` is the sum of the squared numbers
    of partitions per topic and member. ``assigned`` is the number of partitions with a member.
    """

    loads: dict[str, int]
    measures: dict[str, int]
    cross_rack: int | None
    host_makespan: int
    topic_spread: int
    assigned: int

    @property
    def makespan(self) -> int:
        """Return the maximum relative load of the members."""
        return self.measures[Measure.MAKESPAN]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorOutcome:
    """Result of repeated rebalances with one of Kafka's assignors.

    ``detail`` is the error message of a failed assignor. A failed assignor has no ``metrics``.
    ``minimum_movement`` is the number of necessary moves, or None if it is not proven.
    ``is_permitted`` states whether the result meets the constraints of the plan.
    """

    assignor: str
    ending: str
    detail: str | None
    rebalances: int
    metrics: AssignmentMetrics | None = None
    movement: int | None = None
    minimum_movement: int | None = None
    is_permitted: bool = True


def assignment_metrics(group: Group, assignment: Assignment) -> AssignmentMetrics:
    """Compute the loads, and the measures of imbalance, of an assignment."""
    hosts = host_units(group)
    host_loads = unit_loads(group, assignment, hosts)
    return AssignmentMetrics(
        loads=loads(group, assignment),
        measures={str(name): value for name, value in measures(group, assignment).items()},
        cross_rack=off_rack(group, assignment) if has_racks(group) else None,
        host_makespan=max(hosts.relative_loads(host_loads), default=0),
        topic_spread=sum(
            int((np.bincount(partitions.codes) ** 2).sum())
            for partitions in assignment.values()
            if len(partitions)
        ),
        assigned=sum(assignment.counts().values()),
    )


def rebalance(group: Group, assignor: str, *, rules: Sequence[Constraint] = ()) -> AssignorOutcome:
    """Rebalance a group with an assignor until the assignment is stable.

    ``rules`` are the constraints and capacities with which `is_permitted` checks the result.
    """
    stable = run_until_stable(group, assignor)
    outcome = AssignorOutcome(
        assignor=assignor, ending=str(stable.ending), detail=stable.detail, rebalances=stable.rounds
    )
    assignment = stable.assignment
    if assignment is None or stable.ending is not Ending.OK:
        return outcome
    return replace(
        outcome,
        metrics=assignment_metrics(group, assignment),
        movement=movement(group, assignment),
        is_permitted=is_permitted(group, assignment, rules),
    )


def assignor_outcomes(
    group: Group,
    optimum: Solution,
    limits: CaseLimits,
    *,
    client: Sequence[str] = (),
    rules: Sequence[Constraint] = (),
) -> Iterator[AssignorOutcome]:
    """Run assignors on a group, and yield their results.

    Assignors of the old ZooKeeper consumer, and assignors that no release of Kafka contains, are
    skipped. ``rules`` are those of `rebalance`. After a stop of the search, no further port runs.
    """
    for assignor in (*client, *assignors.DEFAULT_ASSIGNORS):
        if limits.is_stopped:
            return
        outcome = rebalance(group, assignor, rules=rules)
        if outcome.metrics is not None and not rules:
            fewest = _minimum_movement(group, outcome.metrics, optimum, limits)
            outcome = replace(outcome, minimum_movement=fewest)
        yield outcome


def is_permitted(group: Group, assignment: Assignment, rules: Sequence[Constraint]) -> bool:
    """Return whether an assignment contains all partitions and meets the constraints."""
    if not rules:
        return True
    problem = build_problem(group)
    placement = problem.to_placement(assignment)
    return placement is not None and not any(violated(problem, rules, placement))


def _minimum_movement(
    group: Group, metrics: AssignmentMetrics, optimum: Solution, limits: CaseLimits
) -> int | None:
    is_measured = optimum.imbalance.name in metrics.measures
    if optimum.imbalance.gap or optimum.movement.gap or not is_measured:
        return None
    imbalance = metrics.measures[optimum.imbalance.name]
    brief = replace(limits, work=min(limits.work, _SECONDARY_WORK))
    return fewest_moves_within(group, imbalance, optimum=optimum, limits=brief)
