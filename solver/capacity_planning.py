"""Compute the number of members needed for a target maximum load."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from math import lcm

from kassay.reference.model.assignment import Assignment, current_partitions, rejoin
from kassay.reference.model.display import by_ordinal, next_names
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member, Topic, WeightSource
from kassay.reference.model.group_remarks import require_single_copies
from kassay.reference.model.load_metrics import LoadUnits, Measure, imbalance
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Tolerance
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import LevelValue, Status
from kassay.solver.solve import solve

Progress = Callable[[str], None]
"""Function that is called with the name of each step when the step starts."""
_SHARE = 8
"""The decision on one number of members gets the work left, divided by this number."""
_NOUNS = {WeightSource.RATE: "traffic", WeightSource.LAG: "lag", WeightSource.SIZE: "data"}


@dataclass(frozen=True, slots=True)
class Resizing:
    """Group with a variable number of members.

    In the common unit, a load is divided by the speed of its member and multiplied by ``multiple``.
    If all speeds are equal, it is the load of the member.
    """

    group: Group
    added: Member
    multiple: int
    """Least common multiple of the speeds of the group and of the added member."""
    fastest: int
    """Maximum speed of the group and of the added member."""

    @classmethod
    def of(cls, group: Group, *, like: str | None = None, allow_lag: bool = False) -> "Resizing":
        """Check the group, and define the members that a scale-out adds.

        ``like`` is the id of the member with the subscription, capacity, speed and rack of added
        members. By default, they subscribe to all topics with subscribers. Raise InputError if
        ``like`` is unknown, if speeds differ without ``like``, or for lag without ``allow_lag``.
        """
        require_single_copies(group)
        if group.weight_source is WeightSource.LAG and not allow_lag:
            raise InputError(
                f"{group.label}: the weights are lag, but lag is a backlog, not a load. Use rates "
                "(kassay import --bootstrap-server HOST:PORT --weights rate), use --weights FILE, "
                "or accept lag as load with --allow-lag (Python: allow_lag=True)"
            )
        added = _new_member(group, like)
        members = (*(group.members[index] for index in group.participant_indices), added)
        speeds = [member.speed for member in members]
        return cls(group, added, lcm(*speeds), max(speeds))

    def resized(self, number: int) -> Group:
        """Add or remove members until the group has ``number`` members.

        Members with the highest ordinals in their names leave first, or the last members of the
        group. Added members continue the ordinals, or have the ids new-1, new-2, ...
        """
        taken = {member.id for member in self.group.members}
        names = {
            member.instance_id or member.client.id or member.id: member
            for member in self.group.members
        }
        ordered = by_ordinal(names) if len(names) == len(taken) else None
        kept = {names[name].id for name in ordered[:number]} if ordered else None
        members = [
            member
            for index, member in enumerate(self.group.members)
            if (index < number if kept is None else member.id in kept)
        ]
        added = max(0, number - len(members))
        free = (name for name in next_names(names, added + len(taken)) if name not in taken)
        members += (replace(self.added, id=name) for name in islice(free, added))
        return replace(self.group, members=tuple(members))

    def without_owners(self) -> "Resizing":
        """Return a copy without owned partitions."""
        return replace(self, group=rejoin(self.group, Assignment({})))

    def unserved(self, number: int) -> tuple[str, ...]:
        """Return the topics that lose all subscribers if the group has ``number`` members."""
        before, after = self.group.subscribers(), self.resized(number).subscribers()
        return tuple(
            topic.name
            for topic in self.group.topics
            if topic.partitions and before[topic.name] and not after[topic.name]
        )

    def factor(self, group: Group) -> int:
        """Return the factor from relative loads of a resized group to the common unit."""
        speeds = (group.members[index].speed for index in group.participant_indices)
        return self.multiple // lcm(*speeds)

    def shown(self, load: int) -> int | float:
        """Convert a relative load to the unit of the fastest member."""
        return LoadUnits((), (), ()).shown(load, Fraction(self.fastest, self.multiple))

    def max_load(self, group: Group, assignment: Assignment) -> int:
        """Return the maximum relative load of an assignment, in the common unit."""
        makespan = imbalance(group, assignment, measure=Measure.MAKESPAN)
        return makespan * self.factor(group)


def grown_topic(topic: Topic, count: int) -> Topic:
    """Add partitions with the mean weight (rounded up) and without racks to a topic."""
    if count < topic.partitions:
        raise InputError(
            f"topic {topic.name!r} has {topic.partitions} partitions; "
            f"Kafka cannot reduce them to {count}; request at least {topic.partitions}"
        )
    added = count - topic.partitions
    weights, racks, profiles = topic.weights, topic.racks, topic.profiles
    if profiles is not None:
        means = tuple(-(-sum(column) // topic.partitions) for column in zip(*profiles, strict=True))
        weights, profiles = None, (*profiles, *[means] * added)
    elif weights is not None:
        mean = -(-topic.total_weight // max(1, topic.partitions))
        weights = (*weights, *[mean] * added)
    if racks is not None:
        racks = (*racks, *[() for _ in range(added)])
    return replace(topic, partitions=count, weights=weights, racks=racks, profiles=profiles)


def with_valid_ownership(group: Group) -> Group:
    """Remove the invalid claims to partitions from a group.

    Otherwise, the removal of a member could make a claim of another member valid. A group with
    valid claims stays as it is.
    """
    owned = {member: Partitions.of(tps) for member, tps in current_partitions(group).items()}
    if all(len(one.owned) == len(owned.get(one.id, ())) for one in group.members):
        return group
    return rejoin(group, owned, generation=0)


def _new_member(group: Group, like: str | None) -> Member:
    if like is not None:
        model = group.member_table().get(like)
        if model is None:
            raise InputError(f"no member {like!r} in {group.label}; give the id of a member")
        return replace(model, owned=Partitions.of(()), instance_id=None)
    if not group.has_equal_speeds:
        raise InputError(
            f"{group.label}: members differ in speed, and the speed of added members is not "
            "known; give --like MEMBER (Python: like) to copy the speed of a member"
        )
    consumed = tuple(topic for topic, members in group.subscribers().items() if members)
    speed = group.members[0].speed if group.members else 1
    return Member(id="new", subscription=consumed, generation=0, speed=speed)


def load_by_member_count(
    resizing: Resizing,
    numbers: Iterable[int],
    *,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> dict[int, LevelValue | None]:
    """Minimise the maximum load for each number of members.

    The loads are in the common unit of the resizing. None means that no assignment within the
    capacities was found. Topics that lose their last subscriber do not count. If the search is
    stopped, further numbers have no result.
    """
    resizing, numbers = resizing.without_owners(), sorted(set(numbers))
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    # A further member never raises the load, unless a topic lost its last subscriber before.
    comparable = [number for number in numbers if not resizing.unserved(number)]
    found: dict[int, LevelValue | None] = {}

    def solve_number(number: int) -> None:
        if number not in found and not budget.limits.is_stopped:
            progress(f"maximum load of {number} members")
            within = budget.part(1 / (len(numbers) - len(found)))
            found[number], _ = _solve(resizing, number, within)

    pending = [(0, len(comparable) - 1)] if comparable else []
    while pending:
        low, high = pending.pop()
        for at in (low, high):
            solve_number(comparable[at])
        least, most = found.get(comparable[high]), found.get(comparable[low])
        if least is not None and most is not None and least.bound == most.value:
            found |= dict.fromkeys(comparable[low:high], replace(most, bound=most.value))
        elif high - low > 1:
            middle = (low + high) // 2
            pending += [(middle, high), (low, middle)]
    for number in numbers:
        solve_number(number)
    known = {number: makespan for number in comparable if (makespan := found.get(number))}
    return {number: found[number] for number in numbers if number in found} | _monotone(known)


def _monotone(found: dict[int, LevelValue]) -> dict[int, LevelValue]:
    """Make values and bounds non-increasing in the number of members."""
    value, bound = None, 0
    bounds = {}
    for number, makespan in reversed(found.items()):
        bounds[number] = bound = max(bound, makespan.bound)
    tightened = {}
    for number, makespan in found.items():
        value = makespan.value if value is None else min(value, makespan.value)
        tightened[number] = LevelValue(makespan.name, value, min(bounds[number], value))
    return tightened


def _solve(
    resizing: Resizing, number: int, budget: SearchBudget, up_to: int | None = None
) -> tuple[LevelValue | None, Status]:
    """Minimise the maximum load of a group with ``number`` members.

    Stop at a load of at most ``up_to``. Return None if no assignment was found.
    """
    group = resizing.resized(number)
    factor = resizing.factor(group)
    tolerance = Tolerance(up_to=None if up_to is None else up_to // factor)
    level = Imbalance(Measure.MAKESPAN, tolerance)
    solution = solve(group, levels=(level,), limits=budget.rest(), seed=budget.seed)
    if solution.assignment is None:
        return None, solution.status
    return _scaled(solution.imbalance, factor), solution.status


def _scaled(level: LevelValue, factor: int) -> LevelValue:
    return LevelValue(level.name, level.value * factor, level.bound * factor)


@dataclass(frozen=True, slots=True)
class Sizing:
    """Number of members needed to keep the maximum load within a target.

    Parameters
    ----------
    needed
        Minimum number that is proven to be enough; the bound is the minimum number that is
        not proven too small. None if no number is enough, or none was found.
    reason
        Why ``needed`` is None; empty otherwise.
    """

    needed: LevelValue | None
    reason: str = ""

    def record(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        if self.needed is None:
            return {"value": None, "reason": self.reason}
        return {"value": self.needed.value, "bound": self.needed.bound}


def members_needed(
    resizing: Resizing,
    *,
    makespan: int,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> Sizing:
    """Find the minimum number of members that keeps the maximum load within a target.

    Capacities of members apply too.

    Parameters
    ----------
    makespan
        Target of the maximum load, in the common unit of the resizing.

    Raises
    ------
    UsageError
        If the target is negative.
    """
    if makespan < 0:
        raise UsageError(f"makespan must be at least 0, got {makespan!r}")
    resizing = resizing.without_owners()
    group = resizing.group
    max_load = makespan * resizing.fastest // resizing.multiple
    problem = build_problem(group)
    reason = _too_heavy(problem, max_load)
    if reason:
        return Sizing(None, reason)
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    most = len(group.members) + problem.partition_count
    share = -(-problem.greatest_total // max_load) if max_load else 0
    bound = min(most, share)
    decided: dict[int, bool | None] = {}

    def is_enough(number: int) -> bool | None:
        if number not in decided:
            progress(f"{number} members")
            decided[number] = _is_enough(resizing, number, makespan, budget.part(1 / _SHARE))
        return decided[number]

    # Steps of doubling size find a sufficient number, and bisection the minimum.
    low, high, step = bound, bound, 1
    while not is_enough(high) and high < most and not budget.limits.is_stopped:
        low, high, step = high + 1, min(most, high + step), 2 * step
    while decided[high] and low < high and not budget.limits.is_stopped:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    if decided[high]:
        refuted = (number + 1 for number, enough in decided.items() if enough is False)
        return Sizing(LevelValue("members", high, max(bound, *refuted, 0)))
    if decided[high] is False and high == most:
        return Sizing(None, "the topics that added members do not consume exceed the maximum load")
    cause = "search was interrupted" if budget.limits.is_stopped else "limit was reached"
    return Sizing(None, f"the {cause} before a sufficient number of members was found")


def _too_heavy(problem: Problem, max_load: int) -> str:
    """Describe a partition heavier than ``max_load``; return an empty text if there is none."""
    heaviest: dict[str, tuple[int, int]] = {}
    for tp, row in zip(problem.partition_index, problem.load_table.tolist(), strict=True):
        found = (max(row), -tp.partition)
        heaviest[tp.topic] = max(heaviest.get(tp.topic, found), found)
    for topic, (peak, number) in heaviest.items():
        if peak > max_load:
            return f"{topic}-{-number} alone has weight {peak}"
    return ""


def _is_enough(resizing: Resizing, number: int, target: int, budget: SearchBudget) -> bool | None:
    """Return whether ``number`` members suffice for the target load, or None if unknown."""
    if resizing.unserved(number):
        return False
    makespan, status = _solve(resizing, number, budget, up_to=target)
    if makespan is None:
        return False if status is Status.INFEASIBLE else None
    if makespan.value <= target:
        return True
    return False if makespan.bound > target else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitingPartition:
    """Heaviest partition, whose weight is the lower bound on the maximum load.

    Parameters
    ----------
    equal
        Number of further partitions with the same weight.
    total, members
        Total weight of all partitions, and number of members that share it.
    """

    topic: str
    partition: int
    weight: int
    equal: int
    total: int
    members: int
    weight_source: WeightSource | None

    def __str__(self) -> str:
        noun = None if self.weight_source is None else _NOUNS.get(self.weight_source)
        ratio = float(Fraction(self.weight * self.members, self.total))
        carry = "carries" if self.equal == 1 else "carry"
        further = f" ({self.equal:,} more {carry} as much)" if self.equal else ""
        them, their = ("them", "their") if self.equal else ("it", "its")
        member = "faster members" if self.equal else "a faster member"
        return (
            f"partition {self.topic}-{self.partition} alone carries {self.weight:,}, "
            f"{self.weight / self.total:.0%} of the {noun or 'total weight'} and {ratio:.1f} times "
            f"the mean load{further}: no assignment has a lower maximum load. Split "
            f"{their} keys, or give {them} {member}."
        )

    def record(self) -> dict[str, object]:
        """Return the partition as a JSON object."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "weight": self.weight,
            "reason": str(self),
        }


def limiting_partition(group: Group) -> LimitingPartition | None:
    """Return the partition whose weight is the lower bound on the maximum load.

    Return None if weights are equal or profiles, if speeds differ, or if another reason determines
    the bound, such as the mean load.
    """
    problem = build_problem(group)
    if (
        problem.profiles is not None
        or not problem.group.is_weighted
        or not group.has_equal_speeds
        or not problem.member_count
    ):
        return None
    heaviest = max(problem.weight.tolist(), default=0)
    total = problem.total
    if makespan_bound(problem) != heaviest or heaviest * problem.member_count <= total:
        return None
    found = [at for at, weight in enumerate(problem.weight.tolist()) if weight == heaviest]
    return LimitingPartition(
        topic=group.topics[problem.topic[found[0]]].name,
        partition=int(problem.number[found[0]]),
        weight=heaviest,
        equal=len(found) - 1,
        total=total,
        members=problem.member_count,
        weight_source=group.weight_source,
    )
