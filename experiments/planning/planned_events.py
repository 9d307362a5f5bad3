"""Predict the rebalances of planned events, and compare the moves of assignors over them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from kassay.experiments.implementations.runner import run_until_stable
from kassay.experiments.planning.predictions import grown_topic, planned_members
from kassay.experiments.simulation.script import (
    Action,
    MemberPlan,
    Script,
    ScriptEvent,
    TopicPlan,
    parse_planned_events,
)
from kassay.experiments.study.unowned_time import UNOWNED_SECONDS, unowned_seconds
from kassay.reference.assignors import ASSIGNORS, NEWEST_ASSIGNORS
from kassay.reference.documents.input_files import read_text
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.assignment import Assignment, movement, rejoin, rejoin_each
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.metrics import Measure
from kassay.solver.certificate.certificate import value_of
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import EXACT, Level, Tolerance, default_tolerance
from kassay.solver.trajectory.trajectory import (
    Trajectory,
    default_trajectory_levels,
    optimal_trajectory,
)


@dataclass(frozen=True, slots=True)
class PlannedRebalance:
    """A rebalance, and the events that cause it.

    ``at`` is its time in ms, None if it is not known. Owned partitions of the ``group`` matter in
    the first rebalance only. ``clients`` has the client id of each member, by member id.
    """

    at: int | None
    events: tuple[str, ...]
    group: Group
    clients: Mapping[str, str]


def load_planned_events(file: Path, group: Group) -> Script:
    """Read planned events of a group from a YAML or JSON file. Members have their client ids."""
    members, _ = planned_members(group)
    topics = [TopicPlan(name=one.name, partitions=one.partitions) for one in group.topics]
    return parse_planned_events(read_text(file), str(file), topics=topics, members=members)


def successive_rebalances(groups: Sequence[Group]) -> list[PlannedRebalance]:
    """Return one rebalance per group; the groups are one group at different times."""
    return [
        PlannedRebalance(
            None,
            (group.id or "",),
            group,
            {one.id: one.client for one in planned_members(group)[1].members},
        )
        for group in groups
    ]


def planned_rebalances(
    group: Group, script: Script, *, new_id: Callable[[str], str] | None = None
) -> list[PlannedRebalance]:
    """Return the rebalances of planned events, in order of time.

    Events at the same time cause one rebalance. A restart causes two: the member leaves, and
    returns with a new member id. A crashed member leaves after the session timeout. A static
    member leaves only if its restart takes longer than the session timeout. If weights differ, new
    partitions of a topic have its mean weight, and those of a new topic that of the group.
    ``new_id`` creates the id of a member that joins, from its client id.

    Raises
    ------
    InputError
        If an event is not supported, a topic shrinks, a rebalance has no members, or the speed of
        a new member is unknown.
    """
    state = _State.start(group, script, new_id or _numbered_ids())
    changes = sorted(_changes(script), key=attrgetter("at"))
    rebalances: list[PlannedRebalance] = []
    events: list[str] = []
    before = state.consumed()
    for at, batch in groupby(changes, key=attrgetter("at")):
        try:
            events += filter(None, map(state.apply, batch))
        except InputError as error:
            raise InputError(f"{script.name}: {error}") from None
        if state.consumed() == before:
            continue
        if not state.members:
            raise InputError(f"{script.name}: at {at} ms, the group has no members")
        after = replace(
            group, topics=tuple(state.topics.values()), members=tuple(state.members.values())
        )
        clients = {member.id: client for client, member in state.members.items()}
        rebalances.append(PlannedRebalance(at, tuple(events), after, clients))
        before, events = state.consumed(), []
    if not rebalances:
        raise InputError(
            f"{script.name}: the events cause no rebalance; add an event that "
            "changes members, subscriptions or partitions"
        )
    return rebalances


def _changes(script: Script) -> Iterator[ScriptEvent]:
    """Yield a join, leave, subscription or growth for each event, at the time of its effect."""
    session = script.settings.session
    static = {plan.id: plan.static for plan in script.members}
    for event in script.events:
        match event.action:
            case Action.RESTART:
                delay = session if static.get(event.member) else 0
                if not static.get(event.member) or event.duration > session:
                    yield replace(event, action=Action.LEAVE, at=event.at + delay)
                    yield replace(event, action=Action.JOIN, at=event.at + event.duration)
            case Action.CRASH:
                yield replace(event, action=Action.LEAVE, at=event.at + session)
            case Action.JOIN:
                if event.new_member is not None:
                    static[event.member] = event.new_member.static
                yield event
            case Action.LEAVE | Action.SUBSCRIBE | Action.GROW:
                yield event
            case _:
                raise InputError(f"{script.name}: planned events cannot have '{event.action}'")


def _numbered_ids() -> Callable[[str], str]:
    """Return a function that numbers the ids of each client, from 1."""
    used: Counter[str] = Counter()

    def new_id(client: str) -> str:
        used[client] += 1
        return f"{client}-{used[client]}"

    return new_id


@dataclass
class _State:
    """Members and topics of the group after some events."""

    has_equal_speeds: bool
    new_id: Callable[[str], str]
    topics: dict[str, Topic]
    members: dict[str, Member]  # by client id
    plans: dict[str, Member]  # members that may return, by client id

    @classmethod
    def start(cls, group: Group, script: Script, new_id: Callable[[str], str]) -> "_State":
        table, known = group.member_table(), group.topic_table()
        members = {one.client: table[one.id] for one in planned_members(group)[1].members}
        # A new topic has the mean weight of the group's partitions if weights differ.
        total = sum(topic.total_weight for topic in group.topics)
        mean = round(Fraction(total, group.partition_count or 1))
        topics = {}
        for plan in script.topics:
            weights = (mean,) * plan.partitions if group.is_weighted else None
            topics[plan.name] = known.get(plan.name) or Topic(
                plan.name, plan.partitions, weights=weights
            )
        # A member that returns has no partitions, and knows nothing of its group.
        plans = {
            client: Member(
                id=one.id,
                subscription=one.subscription,
                rack=one.rack,
                instance_id=one.instance_id,
                capacity=one.capacity,
                speed=one.speed,
                client=one.client,
            )
            for client, one in members.items()
        }
        return cls(group.has_equal_speeds, new_id, topics, members, plans)

    def apply(self, change: ScriptEvent) -> str | None:
        """Apply a join, leave, subscription or growth, and return its description, if any."""
        client = change.member
        match change.action:
            case Action.LEAVE:
                return f"{client} leaves" if self.members.pop(client, None) else None
            case Action.JOIN if client in self.members:
                return None
            case Action.JOIN:
                if change.new_member is not None:
                    self.plans[client] = self._new_member(client, change.new_member)
                self.members[client] = replace(self.plans[client], id=self.new_id(client))
                return f"{client} joins"
            case Action.SUBSCRIBE:
                for members in (self.plans, self.members):
                    if client in members:
                        members[client] = replace(members[client], subscription=change.topics)
                return f"{client} subscribes to {', '.join(change.topics)}"
        # The racks of the new partitions are not known.
        grown = replace(grown_topic(self.topics[change.topic], change.partitions), racks=None)
        self.topics[grown.name] = grown
        return f"{grown.name} grows to {grown.partitions} partitions"

    def _new_member(self, client: str, plan: MemberPlan) -> Member:
        if not self.has_equal_speeds:
            raise InputError(
                f"the speed of the new member {client!r} is unknown, and the speeds of the group "
                "differ; let members of the group join again, or remove the speeds"
            )
        return Member(
            id=client,
            subscription=plan.topics,
            rack=plan.rack,
            instance_id=client if plan.static else None,
            speed=next((one.speed for one in self.plans.values()), 1),
        )

    def consumed(self) -> object:
        """Return the parts of the state whose changes cause a rebalance."""
        names = {name for one in self.members.values() for name in one.subscription}
        return (
            [(one.id, sorted(one.subscription)) for one in self.members.values()],
            [(one.name, one.partitions) for one in self.topics.values() if one.name in names],
        )


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

    def unowned_seconds(
        self, assignments: Sequence[Assignment], moves: int | None, name: str | None = None
    ) -> dict[str, float]:
        """Return the partition-seconds without an owner by the protocol of an assignor.

        Without an assignor, the result has all protocols. It is empty if the assignor fails.
        """
        if moves is None:
            return {}
        groups = rejoin_each([one.group for one in self.rebalances], assignments)
        own = UNOWNED_SECONDS if name is None else [ASSIGNORS[name].protocol]
        return unowned_seconds(groups, moves, protocols=own)

    def record(self, group: Group, *, current: str | None) -> dict[str, object]:
        """Return the forecast as a JSON object. ``current`` is the assignor of the group."""
        fewest = self.fewest
        return {
            "id": group.id,
            "current": current,
            "moves": {"value": fewest.moves, "bound": fewest.bound},
            "partition_seconds_without_owner": self.unowned_seconds(
                fewest.assignments, fewest.moves
            ),
            "proof": str(fewest.proof),
            "rule": self.rule,
            "one_after_the_other": sum(fewest.one_after_the_other),
            "assignors": {
                one.name: {
                    "moves": one.moves,
                    "partition_seconds_without_owner": self.unowned_seconds(
                        one.assignments, one.moves, one.name
                    ),
                    "uneven_rebalances": one.uneven,
                    **({} if one.failure is None else {"failed": one.failure}),
                }
                for one in self.courses
            },
            "rebalances": [
                {
                    "at": None if one.at is None else one.at / 1000,
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
                        name: assignment_document(assignments[number])
                        for name, assignments in (
                            ("hindsight", fewest.assignments),
                            *((course.name, course.assignments) for course in self.courses),
                        )
                        if number < len(assignments)
                    },
                }
                for number, one in enumerate(self.rebalances)
            ],
        }


def forecast_events(
    rebalances: Sequence[PlannedRebalance],
    *,
    assignors: Sequence[str] = NEWEST_ASSIGNORS,
    measure: Measure | None = None,
    tolerance: Tolerance | None = None,
    limits: SearchLimits = SearchLimits(),
) -> EventForecast:
    """Find the fewest moves over rebalances, and run each assignor on them.

    The imbalance at each rebalance is minimum, or within the tolerance. The default of the
    tolerance is `default_tolerance` for the maximum load, and that of the measure
    `default_trajectory_levels`.
    """
    groups = [one.group for one in rebalances]
    if tolerance is None and measure in (None, Measure.MAKESPAN):
        tolerance = max(map(default_tolerance, groups), key=bool)
    levels = default_trajectory_levels(groups, measure=measure, tolerance=tolerance or EXACT)
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
