"""Assignments that Kafka's assignors produce for a group, with loads and moves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kassay.experiments.comparison.optimum import CaseLimits, fewest_moves_within
from kassay.experiments.implementations.runner import Ending, run_until_stable
from kassay.experiments.planning.group_plan.rack_locality import (
    SECONDARY_WORK,
    cross_rack_partitions,
)
from kassay.reference.assignors import ASSIGNORS, Release
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.assignment import movement as count_moves
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, host_units, load_vector, loads, measures
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import violated
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentMetrics:
    """Loads and imbalance metrics of one assignment.

    ``loads`` has the members with a consumed topic. ``cross_rack`` is the number of partitions
    consumed across racks, None for a group without racks. ``host_makespan`` is the maximum
    relative load of the hosts.
    """

    loads: dict[str, int]
    measures: dict[str, int]
    cross_rack: int | None
    host_makespan: int

    @property
    def makespan(self) -> int:
        """Return the maximum relative load of the members."""
        return self.measures[Measure.MAKESPAN]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorOutcome:
    """Result of rebalancing repeatedly with one of Kafka's assignors until nothing changes.

    ``detail`` is the error message of an assignor that failed; it has no metrics.
    ``minimum_movement`` is the minimum for an equal or lower imbalance, None if not proven.
    ``is_permitted`` states whether the result meets the constraints of the plan.
    """

    assignor: str
    ending: str
    detail: str | None
    rebalances: int
    metrics: AssignmentMetrics | None
    movement: int | None
    minimum_movement: int | None
    is_permitted: bool = True

    def record(self) -> dict[str, object]:
        """Return the outcome as a JSON object."""
        metrics = self.metrics
        crossing = None if metrics is None else metrics.cross_rack
        return {
            "assignor": self.assignor,
            "ending": self.ending,
            "detail": self.detail,
            "rebalances": self.rebalances,
            "measures": None if metrics is None else metrics.measures,
            "movement": self.movement,
            "minimum_movement": self.minimum_movement,
            **({} if crossing is None else {"cross_rack_partitions": crossing}),
        }


def assignment_metrics(group: Group, assignment: Assignment) -> AssignmentMetrics:
    """Compute the loads and imbalance metrics of an assignment."""
    hosts = host_units(group)
    host_loads = hosts.loads(load_vector(group, assignment))
    return AssignmentMetrics(
        loads=loads(group, assignment),
        measures={str(name): value for name, value in measures(group, assignment).items()},
        cross_rack=cross_rack_partitions(group, assignment),
        host_makespan=max(hosts.relative_loads(host_loads), default=0),
    )


def assignor_outcomes(
    group: Group,
    optimum: Solution,
    limits: CaseLimits,
    *,
    client: Sequence[str] = (),
    rules: Sequence[Constraint] = (),
) -> Iterator[AssignorOutcome]:
    """Run the assignors of a client library and of Kafka on a group, and yield the results.

    Assignors of the old ZooKeeper consumer are skipped. ``rules`` are the constraints of the plan,
    with the capacities, which no assignor knows.

    If the search is stopped, the outcomes of further ports are missing.
    """
    ports = (n for n, port in ASSIGNORS.items() if port.release is not Release.ZOOKEEPER_CONSUMER)
    for assignor in (*client, *ports):
        if limits.is_stopped:
            return
        stable = run_until_stable(group, assignor)
        metrics = movement = minimum = None
        if stable.ending is Ending.OK and stable.assignment is not None:
            metrics = assignment_metrics(group, stable.assignment)
            movement = count_moves(group, stable.assignment)
            if not rules:
                minimum = _minimum_movement(group, metrics, optimum, limits)
        yield AssignorOutcome(
            assignor=assignor,
            ending=str(stable.ending),
            detail=stable.detail,
            rebalances=stable.rounds,
            metrics=metrics,
            movement=movement,
            minimum_movement=minimum,
            is_permitted=is_permitted(group, stable.assignment, rules),
        )


def is_permitted(group: Group, assignment: Assignment | None, rules: Sequence[Constraint]) -> bool:
    """Return whether an assignment of all partitions meets constraints."""
    if assignment is None or not rules:
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
    brief = replace(limits, work=min(limits.work, SECONDARY_WORK))
    return fewest_moves_within(group, imbalance, optimum=optimum, limits=brief)
