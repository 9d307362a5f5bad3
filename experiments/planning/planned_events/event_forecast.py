"""Forecast of planned events: fewest moves over all rebalances, and the moves of each assignor."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.planning.moves.move_schedule import moves_between
from kassay.experiments.planning.planned_events.planned_rebalances import PlannedRebalance
from kassay.experiments.study.unowned_time import UNOWNED_SECONDS, unowned_seconds
from kassay.reference.assignors import ASSIGNORS, NEWEST_ASSIGNORS
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.assignment import Assignment, movement
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import loads as member_loads
from kassay.reference.model.ownership import rejoin, rejoin_each
from kassay.solver.certificate.certificate import value_of
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level, planning_tolerance
from kassay.solver.trajectory.trajectory import (
    Trajectory,
    default_trajectory_levels,
    optimal_trajectory,
)

HINDSIGHT = "hindsight"
"""Name of the assignments with the fewest moves over all rebalances."""


@dataclass(frozen=True, slots=True)
class AssignorCourse:
    """Assignments of one assignor, each with the owners that the previous one leaves.

    Parameters
    ----------
    assignments
        One per rebalance, up to the rebalance at which the assignor fails.
    uneven
        Number of rebalances with an imbalance above its minimum. If weights differ: with a
        maximum load above the tolerance.
    failure
        Error of the assignor, if it fails.
    """

    name: str
    assignments: tuple[Assignment, ...]
    per_rebalance: tuple[int, ...]
    uneven: int
    failure: str | None = None

    @property
    def moves(self) -> int | None:
        """Return the moves over all rebalances, or None if the assignor fails."""
        return sum(self.per_rebalance) if self.failure is None else None


@dataclass(frozen=True, slots=True)
class EventForecast:
    """Fewest moves over the rebalances of planned events, and the courses of assignors."""

    rebalances: tuple[PlannedRebalance, ...]
    fewest: Trajectory
    courses: tuple[AssignorCourse, ...]

    @property
    def rule(self) -> str:
        """Return the limit of the imbalance at each rebalance, as text."""
        level = self.fewest.certificate.levels[0]
        if not self.fewest.load_limits:
            return "minimum imbalance"
        if not level.tolerance:
            return "the minimum of the maximum load"
        share = 100 * float(level.tolerance.relative)
        return f"a maximum load at most {share:g} % above its minimum"

    def all_courses(self) -> Iterator[AssignorCourse]:
        """Yield the fewest moves over all rebalances as a course, and then the assignors."""
        yield AssignorCourse(HINDSIGHT, self.fewest.assignments, self.fewest.per_rebalance, 0)
        yield from self.courses

    def unowned_seconds(self, course: AssignorCourse) -> dict[str, float]:
        """Return the partition-seconds without an owner, per protocol.

        The course of an assignor has the protocol of the assignor only; the course `HINDSIGHT`
        has all protocols. The result is empty if the assignor fails.
        """
        if course.moves is None:
            return {}
        groups = rejoin_each([one.group for one in self.rebalances], course.assignments)
        own = [ASSIGNORS[course.name].protocol] if course.name in ASSIGNORS else UNOWNED_SECONDS
        return unowned_seconds(groups, course.moves, protocols=own)

    def record(self, group: Group, *, current: str | None) -> dict[str, object]:
        """Return the forecast as a JSON object. ``current`` is the assignor of the group."""
        fewest, hindsight = self.fewest, next(self.all_courses())
        return {
            "id": group.id,
            "current": current,
            "moves": {"value": fewest.moves, "bound": fewest.bound},
            "partition_seconds_without_owner": self.unowned_seconds(hindsight),
            "rule": self.rule,
            "one_after_the_other": sum(fewest.one_after_the_other),
            "assignors": {
                one.name: {
                    "moves": one.moves,
                    "partition_seconds_without_owner": self.unowned_seconds(one),
                    "uneven_rebalances": one.uneven,
                    **({} if one.failure is None else {"failed": one.failure}),
                }
                for one in self.courses
            },
            "rebalances": [
                {
                    "at": one.at / 1000,
                    "events": list(one.events),
                    "members": len(one.clients),
                    "partitions": one.group.partition_count,
                    "moves": fewest.per_rebalance[number],
                    "one_after_the_other": fewest.one_after_the_other[number],
                    "assignors": {
                        course.name: course.per_rebalance[number]
                        for course in self.courses
                        if number < len(course.per_rebalance)
                    },
                    "clients": dict(one.clients),
                    "assignments": {
                        course.name: assignment_document(course.assignments[number])
                        for course in self.all_courses()
                        if number < len(course.assignments)
                    },
                }
                for number, one in enumerate(self.rebalances)
            ],
        }


def forecast_events(
    rebalances: Sequence[PlannedRebalance],
    *,
    assignors: Sequence[str] = NEWEST_ASSIGNORS,
    limits: SearchLimits = SearchLimits(),
) -> EventForecast:
    """Find the fewest moves over planned rebalances, and run each assignor on them.

    If weights differ, the maximum load may exceed its minimum by `planning_tolerance`.
    """
    groups = [one.group for one in rebalances]
    tolerance = max((planning_tolerance(group, None) for group in groups), key=bool)
    levels = default_trajectory_levels(groups, tolerance=tolerance)
    fewest = optimal_trajectory(groups, levels=levels, limits=limits)
    most = [one.value for one in fewest.load_limits] or [
        value_of(group, assignment, levels[0])
        for group, assignment in zip(groups, fewest.assignments, strict=True)
    ]
    courses = tuple(_course(name, groups, levels[0], most) for name in assignors)
    return EventForecast(tuple(rebalances), fewest, courses)


def _course(
    name: str, groups: Sequence[Group], level: Level, most: Sequence[int]
) -> AssignorCourse:
    assignments: list[Assignment] = []
    moves: list[int] = []
    uneven, failure = 0, None
    for group, limit in zip(groups, most, strict=True):
        current = rejoin(group, assignments[-1]) if assignments else group
        result = run_until_stable(current, name)
        if result.assignment is None:
            failure = f"{result.ending}: {result.detail}"
            break
        assignments.append(result.assignment)
        moves.append(movement(current, result.assignment))
        uneven += value_of(current, result.assignment, level) > limit
    return AssignorCourse(name, tuple(assignments), tuple(moves), uneven, failure)


@dataclass(frozen=True, slots=True)
class PlannedMemberState:
    """Partitions of a member after a rebalance.

    Parameters
    ----------
    received, given
        Partitions that came from another member of the group, or went to one.
    """

    load: int
    received: tuple[str, ...] = ()
    given: tuple[str, ...] = ()


def member_states(
    rebalances: Sequence[PlannedRebalance], assignments: Sequence[Assignment]
) -> list[dict[str, PlannedMemberState]]:
    """Return the partitions of each member after each rebalance, by client id."""
    current = rejoin_each([one.group for one in rebalances], assignments)
    return [
        _states(rebalance, group, assignment)
        for rebalance, group, assignment in zip(rebalances, current, assignments, strict=False)
    ]


def _states(
    rebalance: PlannedRebalance, group: Group, assignment: Assignment
) -> dict[str, PlannedMemberState]:
    received: dict[str, list[str]] = {member.id: [] for member in group.members}
    given: dict[str, list[str]] = {member.id: [] for member in group.members}
    loads = member_loads(group, assignment)
    for move in moves_between(group, assignment):
        if move.source is not None:
            partition = f"{move.topic}-{move.partition}"
            received[move.target].append(partition)
            given[move.source].append(partition)
    return {
        rebalance.clients[name]: PlannedMemberState(
            loads.get(name, 0), tuple(received[name]), tuple(given[name])
        )
        for name in received
    }
