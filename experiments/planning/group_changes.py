"""Changes of a group, and predictions of its optimum and its assignors after the changes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from kassay.experiments.planning.actions import AssignorOutcome, rebalance
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_verdict import makespan_of
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Topic
from kassay.reference.model.metrics import (
    load_vector,
    loads,
    member_units,
    participants,
    relative_loads,
)
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.sizing.resized_groups import Resizing, with_valid_ownership
from kassay.solver.solution import LevelValue, Solution, value_and_bound
from kassay.solver.solve import solve

AS_IS, OPTIMUM = "current", "optimum"
"""Names of the current assignment, and of the optimum of the group without changes."""
_RANGE = re.compile(r"(\+?)(\d+)\.\.(\+?)(\d+)(?::(\d+))?")
_NUMBER = re.compile(r"([+-]?)(\d+)")


def add_members(
    group: Group, count: int, *, like: str | None = None, allow_lag: bool = False
) -> Group:
    """Add members to a group, or remove its last members if ``count`` is negative.

    New members copy the subscription, rack and capacity of the member ``like``. By default they
    subscribe to every topic that has a subscriber. Raises InputError if the weights are lag,
    unless ``allow_lag`` is true.

    Examples
    --------
    >>> from kassay.reference.model.group import Member
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),), members=(Member(id="a", subscription=("t",)),)
    ... )
    >>> [member.id for member in add_members(group, 2).members]
    ['a', 'new-1', 'new-2']
    """
    if not count:
        return group
    resizing = Resizing.of(group, like=like, allow_lag=allow_lag)
    number = len(group.members) + count
    if number < 0:
        raise InputError(
            f"cannot remove {-count} members from group {group.id!r}, "
            f"which has {len(group.members)} members"
        )
    return resizing.resized(number)


def mean_weight(topic: Topic) -> int:
    """Return the mean weight of the partitions of a topic, rounded up."""
    return -(-topic.total_weight // max(1, topic.partitions))


def grown_topic(topic: Topic, count: int) -> Topic:
    """Increase the partition count of a topic.

    New partitions get no racks, and the mean weight of the topic.
    """
    if count < topic.partitions:
        raise InputError(
            f"topic {topic.name!r} has {topic.partitions} partitions; "
            f"Kafka cannot reduce them to {count}"
        )
    added = count - topic.partitions
    weights, racks = topic.weights, topic.racks
    if weights is not None:
        weights = (*weights, *[mean_weight(topic)] * added)
    if racks is not None:
        racks = (*racks, *[() for _ in range(added)])
    return replace(topic, partitions=count, weights=weights, racks=racks)


def changed_groups(
    group: Group,
    *,
    members: str | None = None,
    partitions: Sequence[str] = (),
    like: str | None = None,
    allow_lag: bool = False,
) -> dict[str, Group]:
    """Return the changed groups by name, one per number of members.

    Parameters
    ----------
    members
        Numbers of members in the syntax of ``kassay forecast --members``.
    partitions
        New partition counts, each as ``TOPIC=COUNT``. They apply to each number of members.
    like, allow_lag
        As in `add_members`.

    Examples
    --------
    >>> from kassay.reference.model.group import Member
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),), members=(Member(id="a", subscription=("t",)),)
    ... )
    >>> groups = changed_groups(group, members="+0..+3")
    >>> {name: predict(one).makespan.value for name, one in groups.items()}
    {'members +0': 4, 'members +1': 2, 'members +2': 2, 'members +3': 1}
    """
    changed, names = with_valid_ownership(group), []
    for text in partitions:
        topic, separator, count = text.rpartition("=")
        if not separator or not topic or not count.isdecimal():
            raise UsageError(f"--partitions must be TOPIC=COUNT, got {text!r}")
        if topic not in changed.topic_table():
            raise InputError(f"group {group.id!r} has no topic {topic!r}")
        topics = (
            grown_topic(one, int(count)) if one.name == topic else one for one in changed.topics
        )
        changed = replace(changed, topics=tuple(topics))
        names.append(f"{topic} {count} partitions")
    if members is None:
        return {", ".join(names): changed} if names else {}
    groups = {}
    for part in members.split(","):
        for sign, number in _numbers_of_members(part):
            name = f"members {sign}{number}" if sign else f"{number} members"
            added = int(f"{sign}{number}") if sign else number - len(group.members)
            groups[", ".join([*names, name])] = add_members(
                changed, added, like=like, allow_lag=allow_lag
            )
    return groups


def _numbers_of_members(text: str) -> Iterator[tuple[str, int]]:
    """Yield the sign and the number of each number of members."""
    interval, single = _RANGE.fullmatch(text), _NUMBER.fullmatch(text)
    if interval and interval[1] == interval[3]:
        first, last, step = int(interval[2]), int(interval[4]), int(interval[5] or 1)
        if first > last:
            raise UsageError(
                "--members: the second number of a range must not be closer to 0 than the "
                f"first, got {text!r}"
            )
        if not step:
            raise UsageError(f"--members: the step of a range must be above 0, got {text!r}")
        yield from ((interval[1], number) for number in range(first, last + 1, step))
    elif single:
        yield single[1], int(single[2])
    else:
        raise UsageError(f"--members must be a number, +N, -N or FIRST..LAST[:STEP], got {text!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Optimum of a changed group, and the results of assignors.

    ``before`` is the unchanged group. ``makespan`` is the maximum load of the optimum, None
    without an assignment.
    """

    group: Group
    before: Group
    solution: Solution = field(repr=False)
    makespan: LevelValue | None
    outcomes: tuple[AssignorOutcome, ...]

    def shown(self, relative_load: int) -> int | float:
        """Convert a maximum relative load to the unit of the fastest member before the changes.

        The maximum loads of groups with different members are comparable then.
        """
        scale = Fraction(_max_speed(self.before), _max_speed(self.group))
        return member_units(self.group).shown(relative_load, scale)

    def record(self, name: str) -> dict[str, object]:
        """Return the prediction as a JSON object. ``name`` describes the changes."""
        found, group, makespan = self.solution.assignment, self.group, self.makespan
        subscribers, before = group.subscribers(), self.before.subscribers()
        return {
            "configuration": name,
            "change": None,
            "restart": None,
            **_sizes(group),
            "status": str(self.solution.status),
            "makespan": None
            if makespan is None
            else {"value": self.shown(makespan.value), "bound": self.shown(makespan.bound)},
            "movement": None if found is None else value_and_bound(self.solution.movement),
            "levels": self.solution.values_by_level(),
            "idle": None if found is None else load_vector(group, found).count(0),
            "topics_without_subscribers": [
                topic for topic, one in before.items() if one and not subscribers.get(topic)
            ],
            "assignors": [self._outcome_record(one) for one in self.outcomes],
            "seconds": round(self.solution.seconds, 3),
            "proof": self.solution.proof_by_level(),
        }

    def _outcome_record(self, found: AssignorOutcome) -> dict[str, object]:
        metrics = found.metrics
        return {
            "assignor": found.assignor,
            "ending": found.ending,
            "makespan": None if metrics is None else self.shown(metrics.makespan),
            "movement": found.movement,
            "idle": None if metrics is None else list(metrics.loads.values()).count(0),
        }


def _sizes(group: Group) -> Mapping[str, int]:
    """Return the numbers of consuming members, consumed partitions, and those without owner."""
    subscribers = group.subscribers()
    partitions = sum(topic.partitions for topic in group.topics if subscribers[topic.name])
    owned = sum(len(member.owned) for member in with_valid_ownership(group).members)
    return {
        "members": len(participants(group)),
        "partitions": partitions,
        "placed": partitions - owned,
    }


def _max_speed(group: Group) -> int:
    """Return the maximum speed of the members that subscribe to a topic with partitions."""
    return max((group.members[index].speed for index in group.participant_indices), default=1)


def current_record(group: Group) -> dict[str, object]:
    """Return the loads of the owned partitions as a JSON object like those of predictions."""
    owned = with_valid_ownership(group)
    kept = Assignment({member.id: member.owned for member in owned.members})
    held = loads(group, kept)
    makespan = member_units(group).shown(max(relative_loads(group, held).values(), default=0))
    return {
        "configuration": AS_IS,
        "change": None,
        "restart": None,
        **_sizes(group),
        "status": "current",
        "makespan": {"value": makespan, "bound": makespan},
        "movement": {"value": 0, "bound": 0},
        "idle": load_vector(group, kept).count(0),
        "loads": held,
    }


def predict(
    group: Group,
    *,
    before: Group | None = None,
    levels: Sequence[Level] | None = None,
    constraints: Iterable[Constraint] = (),
    assignors: Sequence[str] = (),
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Prediction:
    """Find the optimal assignment of a changed group, and run assignors for comparison.

    ``before`` is the unchanged group. The default assignor is the port with the name of the
    assignor that the group runs, see `identify_assignor`.
    """
    constraints, own = tuple(constraints), identify_assignor(group).port
    solution = solve(
        group,
        levels=default_levels(group) if levels is None else levels,
        constraints=constraints,
        limits=limits,
        seed=seed,
    )
    names = assignors or ([] if own is None else [own])
    return Prediction(
        group=group,
        before=group if before is None else before,
        solution=solution,
        makespan=makespan_of(group, solution, constraints),
        outcomes=() if limits.is_stopped else tuple(rebalance(group, name) for name in names),
    )
