"""What-if scenarios: changes to a group, and the optimum of the changed group."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import product
from pathlib import Path
from time import perf_counter

from kassay.experiments.planning.actions import AssignorOutcome, rebalance
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_verdict import makespan_of
from kassay.reference.documents.json_codec import load_weights
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member, Topic, WeightSource
from kassay.reference.model.metrics import (
    load_vector,
    loads,
    member_units,
    participants,
    relative_loads,
)
from kassay.solver.constraints import Constraint
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Level, default_levels
from kassay.solver.sizing.resized_groups import Resizing, with_valid_ownership
from kassay.solver.solution import LevelValue, Solution, value_and_bound
from kassay.solver.solve import solve

Change = Callable[[Group], Group]
"""Function that takes a group and returns a changed copy of it."""


def add_members(
    group: Group, count: int, *, like: str | None = None, allow_lag: bool = False
) -> Group:
    """Add members to a group, or remove its last members if ``count`` is negative.

    New members copy the subscription, rack and capacity of the member ``like``. By default they
    subscribe to every topic that has a subscriber. Raises InputError if the weights are lag,
    unless ``allow_lag`` is true.

    Examples
    --------
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),), members=(Member(id="a", subscription=("t",)),)
    ... )
    >>> [member.id for member in add_members(group, 2).members]
    ['a', 'new-1', 'new-2']
    """
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


def repartition(group: Group, topic: str, count: int) -> Group:
    """Increase the partition count of a topic.

    New partitions get no racks, and the mean weight of the topic.
    """
    old = _topic(group, topic)
    if count < old.partitions:
        raise InputError(
            f"topic {topic!r} has {old.partitions} partitions; Kafka cannot reduce them to {count}"
        )
    added = count - old.partitions
    weights, racks = old.weights, old.racks
    if weights is not None:
        weights = (*weights, *[mean_weight(old)] * added)
    if racks is not None:
        racks = (*racks, *[() for _ in range(added)])
    new = replace(old, partitions=count, weights=weights, racks=racks)
    return replace(group, topics=tuple(new if one is old else one for one in group.topics))


def reweigh(group: Group, weights: Mapping[str, Sequence[int]]) -> Group:
    """Set partition weights from a mapping of topic to a list of integers.

    The list of a topic has one integer per partition.

    Topics that are not in the group are ignored.
    """
    missing = [topic.name for topic in group.topics if topic.name not in weights]
    if missing:
        raise InputError(f"the weight table has no weights for topic {missing[0]!r}")
    topics = (replace(topic, weights=tuple(weights[topic.name])) for topic in group.topics)
    return replace(group, topics=tuple(topics), weight_source=WeightSource.FILE, weight_unit=None)


def _topic(group: Group, name: str) -> Topic:
    topic = group.topic_table().get(name)
    if topic is None:
        raise InputError(f"group {group.id!r} has no topic {name!r}")
    return topic


def find_member(group: Group, name: str) -> Member:
    """Find a member by its id, instance id, client id or host, or by a unique prefix.

    Raises
    ------
    InputError
        If no member, or more than one member, matches the name.
    """
    exact = group.member_table().get(name)
    if exact is not None:
        return exact
    keys = [
        (key, member)
        for member in group.members
        for key in (member.id, member.instance_id, member.client.id, member.client.host)
        if key
    ]
    hosts = [(key, member) for key, member in keys if key.lstrip("/") == name.lstrip("/")]
    found = {m.id: m for _, m in hosts or [pair for pair in keys if pair[0].startswith(name)]}
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise InputError(f"group {group.id!r} has no member {name!r}")
    raise InputError(
        f"group {group.id!r} has {len(found)} members that match {name!r}: "
        f"{', '.join(list(found)[:4])}; give a longer prefix or the member id"
    )


NamedChange = tuple[str, Change]

_RANGE = re.compile(r"(\+?)(\d+)\.\.(\+?)(\d+)(?::(\d+))?")
_NUMBER = re.compile(r"([+-]?)(\d+)")


def named_changes(
    *,
    partitions: Sequence[str] = (),
    members: str | None = None,
    like: str | None = None,
    weights: Path | None = None,
    allow_lag: bool = False,
) -> list[Sequence[NamedChange]]:
    """Parse changes in the option syntax of ``kassay what-if``.

    Return a list of alternatives for each kind of change.
    """
    kinds: list[Sequence[NamedChange]] = [[_partitions(text)] for text in partitions]
    if members is not None:
        # The file of weights, which applies next, replaces lag.
        add = partial(add_members, like=like, allow_lag=allow_lag or weights is not None)
        kinds.append([change for part in members.split(",") for change in _members(part, add)])
    if weights is not None:
        table = load_weights(weights)
        kinds.append([(f"weights {weights.name}", partial(reweigh, weights=table))])
    return kinds


def _partitions(text: str) -> NamedChange:
    topic, separator, count = text.rpartition("=")
    if not separator or not topic or not count.isdecimal():
        raise UsageError(f"--partitions must be TOPIC=COUNT, got {text!r}")
    return f"{topic} {count} partitions", partial(repartition, topic=topic, count=int(count))


def _members(text: str, add: Callable[..., Group]) -> Iterable[NamedChange]:
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
        for number in range(first, last + 1, step):
            yield _resized(interval[1], number, add)
    elif single:
        yield _resized(single[1], int(single[2]), add)
    else:
        raise UsageError(f"--members must be a number, +N, -N or FIRST..LAST[:STEP], got {text!r}")


def _resized(sign: str, number: int, add: Callable[..., Group]) -> NamedChange:
    if sign:
        count = -number if sign == "-" else number
        return f"members {sign}{number}", partial(add, count=count)
    return f"{number} members", lambda group: add(group, number - len(group.members))


AS_IS, OPTIMUM = "current", "optimum"
"""Names of the first two scenarios: the current group, and the optimum without changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What-if scenario: a changed group, with a name that lists the changes."""

    name: str
    group: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioResult:
    """Result of a what-if scenario: the optimum, and the result of an assignor.

    ``before`` is the unchanged group. ``makespan`` is the maximum load of the optimum, None
    without an assignment.
    """

    scenario: Scenario
    before: Group
    solution: Solution = field(repr=False)
    makespan: LevelValue | None
    rebalance: AssignorOutcome | None
    seconds: float

    def shown(self, relative_load: int) -> int | float:
        """Convert a maximum relative load to the unit of the fastest member before the changes.

        The maximum loads of groups with different members are comparable then.
        """
        group = self.scenario.group
        scale = Fraction(_max_speed(self.before), _max_speed(group))
        return member_units(group).shown(relative_load, scale)

    def topics_without_subscribers(self) -> list[str]:
        """Return the topics that have a subscriber in the unchanged group only."""
        subscribers = self.scenario.group.subscribers()
        before = self.before.subscribers()
        return [name for name, members in before.items() if members and not subscribers.get(name)]

    def record(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        found, group, makespan = self.solution.assignment, self.scenario.group, self.makespan
        return {
            "scenario": self.scenario.name,
            **_sizes(group),
            "status": str(self.solution.status),
            "makespan": None
            if makespan is None
            else {"value": self.shown(makespan.value), "bound": self.shown(makespan.bound)},
            "movement": None if found is None else value_and_bound(self.solution.movement),
            "levels": self.solution.values_by_level(),
            "idle": None if found is None else load_vector(group, found).count(0),
            "topics_without_subscribers": self.topics_without_subscribers(),
            "assignor": None if self.rebalance is None else self._shown_rebalance(self.rebalance),
            "seconds": round(self.seconds, 3),
            "proof": self.solution.proof_by_level(),
        }

    def _shown_rebalance(self, found: AssignorOutcome) -> dict[str, object]:
        metrics = found.metrics
        return {
            "assignor": found.assignor,
            "ending": found.ending,
            "makespan": None if metrics is None else self.shown(metrics.makespan),
            "movement": found.movement,
            "idle": None if metrics is None else list(metrics.loads.values()).count(0),
        }


def _sizes(group: Group) -> dict[str, int]:
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
    consuming = set(participants(group))
    return max((one.speed for one in group.members if one.id in consuming), default=1)


def scenarios(
    group: Group, alternatives: Iterable[Sequence[tuple[str, Change]]]
) -> Iterator[Scenario]:
    """Yield one scenario for each combination of alternative changes, one of each kind.

    ``alternatives`` has the named changes per kind. The kinds apply in this order.

    Examples
    --------
    >>> from functools import partial
    >>> from kassay.experiments.planning.what_if import add_members
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=4),), members=(Member(id="a", subscription=("t",)),)
    ... )
    >>> kinds = [[(f"members +{n}", partial(add_members, count=n)) for n in (0, 1, 3)]]
    >>> [(one.scenario.name, one.makespan.value) for one in map(what_if, scenarios(group, kinds))]
    [('members +0', 4), ('members +1', 2), ('members +3', 1)]
    """
    current = with_valid_ownership(group)
    for combination in product(*alternatives):
        changed = reduce(lambda result, change: change[1](result), combination, current)
        yield Scenario(name=", ".join(name for name, _ in combination) or OPTIMUM, group=changed)


def current_state(group: Group) -> dict[str, object]:
    """Return the loads of the owned partitions as a JSON object like those of the scenarios."""
    owned = with_valid_ownership(group)
    kept = Assignment({member.id: member.owned for member in owned.members})
    held = loads(group, kept)
    makespan = member_units(group).shown(max(relative_loads(group, held).values(), default=0))
    return {
        "scenario": AS_IS,
        **_sizes(group),
        "status": "current",
        "makespan": {"value": makespan, "bound": makespan},
        "movement": {"value": 0, "bound": 0},
        "idle": load_vector(group, kept).count(0),
        "loads": held,
    }


def what_if(
    scenario: Scenario,
    *,
    before: Group | None = None,
    levels: Sequence[Level] | None = None,
    constraints: Iterable[Constraint] = (),
    assignor: str | None = None,
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> ScenarioResult:
    """Find the optimal assignment of a scenario, and run an assignor for comparison.

    ``before`` is the unchanged group. The default assignor is the port with the name of the
    assignor that the group runs, see `identify_assignor`.
    """
    group, constraints = scenario.group, tuple(constraints)
    begin = perf_counter()
    solution = solve(
        group,
        levels=default_levels(group) if levels is None else levels,
        constraints=constraints,
        limits=limits,
        seed=seed,
    )
    seconds = perf_counter() - begin
    assignor = None if limits.is_stopped else assignor or identify_assignor(group).port
    return ScenarioResult(
        scenario=scenario,
        before=group if before is None else before,
        solution=solution,
        makespan=makespan_of(group, solution, constraints),
        rebalance=None if assignor is None else rebalance(group, assignor),
        seconds=seconds,
    )


def solve_scenarios(
    group: Group,
    alternatives: Sequence[Scenario],
    *,
    levels: Callable[[Group], Sequence[Level]],
    constraints: Callable[[Group], Iterable[Constraint]],
    assignor: str | None,
    limits: SearchLimits,
    seed: int,
    progress: Callable[[str], None],
) -> list[ScenarioResult]:
    """Solve the scenarios of a group within common limits, equal scenarios only once.

    ``levels`` and ``constraints`` return those of a changed group. If the limits stop the search,
    the further scenarios have no result.
    """
    budget = SearchBudget.start(limits, seed)
    results: list[ScenarioResult] = []
    for index, scenario in enumerate(alternatives):
        if limits.is_stopped:
            break
        progress(scenario.name)
        known = [one for one in results if one.scenario.group == scenario.group]
        if known:
            results.append(replace(known[0], scenario=scenario, seconds=0.0))
            continue
        results.append(
            what_if(
                scenario,
                before=group,
                levels=levels(scenario.group),
                constraints=constraints(scenario.group),
                assignor=assignor,
                limits=budget.part(1 / (len(alternatives) - index)).rest(),
                seed=seed,
            )
        )
    return results
