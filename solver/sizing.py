"""Capacity planning: members needed, loss of a member, and the lower limit of the maximum load."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

import numpy as np

from kassay.reference.model.assignment import NO_OWNER, Assignment, current_partitions, rejoin
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import MAX_WEIGHT, Group, Member, Topic, WeightSource
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import LoadUnits, Measure, loads
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.counting_bounds import makespan_bound
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Tolerance
from kassay.solver.problem import Placement, Problem, build_problem, exact_column
from kassay.solver.solution import LevelValue, Status, value_and_bound
from kassay.solver.solve import solve

Progress = Callable[[str], None]
"""Function that is called with the name of each step when the step starts."""
_SHARE = 8
"""Divisor of the work left, which gives the limit of the next decision on a number of members."""
_SPLIT_WORK = 2.0
"""Maximum work to solve the group with split partitions."""
_NOUNS = {WeightSource.RATE: "traffic", WeightSource.LAG: "lag", WeightSource.SIZE: "data"}


@dataclass(frozen=True, slots=True)
class Resizing:
    """Group, member to add to it, and the common unit of loads for all numbers of members.

    In the common unit, a load is divided by the speed of its member and multiplied by ``multiple``.
    If all speeds are equal, it is the load of the member.
    """

    group: Group
    added: Member
    multiple: int
    """Least common multiple of the speeds of the group and of the added member."""
    fastest: int
    """Maximum of these speeds."""

    @classmethod
    def of(cls, group: Group, *, like: str | None = None, allow_lag: bool = False) -> "Resizing":
        """Check a group, and create the member that is added to it.

        ``like`` is the id of the member with the subscription, capacity, speed and rack of added
        members. By default they subscribe to every topic with subscribers. Raises InputError if
        this member does not exist, if it is not given and members differ in speed, or if the
        weights are lag without ``allow_lag``.
        """
        require_single_copies(group)
        if group.weight_source is WeightSource.LAG and not allow_lag:
            raise InputError(
                f"group {group.id!r}: the weights are lag, and lag is a backlog, not a load: it "
                "does not show how many members the traffic needs. Use rates (kassay import "
                "--bootstrap-server HOST:PORT --weights rate) or --weights FILE; --allow-lag "
                "(Python: allow_lag=True) shares the backlog among members"
            )
        added = _new_member(group, like)
        members = (*(group.members[index] for index in group.participant_indices), added)
        speeds = [member.speed for member in members]
        return cls(group, added, lcm(*speeds), max(speeds))

    def resized(self, number: int) -> Group:
        """Add members, or remove the last members, to reach a number of members."""
        taken = {member.id for member in self.group.members}
        members = list(self.group.members[:number])
        count = 0
        while len(members) < number:
            count += 1
            name = f"new-{count}"
            if name not in taken:
                members.append(replace(self.added, id=name))
        return replace(self.group, members=tuple(members))

    def without_owners(self) -> "Resizing":
        """Return the same group without owned partitions, which do not change the loads."""
        return replace(self, group=rejoin(self.group, Assignment({})))

    def unserved(self, number: int) -> tuple[str, ...]:
        """Return the topics that lose their last subscriber with a number of members."""
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
        """Convert a load in the common unit to the load of the fastest member."""
        return LoadUnits((), (), ()).shown(load, Fraction(self.fastest, self.multiple))

    def max_load(self, group: Group, assignment: Assignment) -> int:
        """Return the maximum load of an assignment of a resized group, in the common unit."""
        members = group.member_table()
        return max(
            (
                load * self.multiple // members[name].speed
                for name, load in loads(group, assignment).items()
            ),
            default=0,
        )


def with_valid_ownership(group: Group) -> Group:
    """Keep only the valid claims of each member.

    Otherwise, the removal of a member could make a claim of another member valid.
    """
    owned = {member: Partitions.of(tps) for member, tps in current_partitions(group).items()}
    return rejoin(group, owned, generation=0)


def _new_member(group: Group, like: str | None) -> Member:
    if like is not None:
        model = group.member_table().get(like)
        if model is None:
            raise InputError(f"no member {like!r} in group {group.id!r}")
        return replace(model, owned=Partitions.of(()), instance_id=None)
    if not group.has_equal_speeds:
        raise InputError(
            f"group {group.id!r}: members differ in speed, and the speed of added members is not "
            "known; give --like MEMBER (Python: like), the member whose speed they get"
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
    """Find the minimum of the maximum load for numbers of members.

    The loads are in the common unit of the resizing. None means that no assignment within the
    capacities was found. Topics that lose their last subscriber do not count. If the search is
    stopped, further numbers have no result.

    Examples
    --------
    >>> topic, member = Topic(name="t", partitions=10), Member(id="a", subscription=("t",))
    >>> resizing = Resizing.of(Group(topics=(topic,), members=(member,)))
    >>> found = load_by_member_count(resizing, range(1, 7))
    >>> {number: makespan.value for number, makespan in found.items()}
    {1: 10, 2: 5, 3: 4, 4: 3, 5: 2, 6: 2}
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
    """Tighten values by those of fewer members, and bounds by those of more members."""
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
    """Minimise the maximum load of a number of members; one within ``up_to`` ends the search.

    Return it in the common unit, or None if no assignment was found.
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

    Examples
    --------
    >>> topic, member = Topic(name="t", partitions=10), Member(id="a", subscription=("t",))
    >>> members_needed(Resizing.of(Group(topics=(topic,), members=(member,))), makespan=3).needed
    LevelValue(name='members', value=4, bound=4, slack=0)
    """
    if makespan < 0:
        raise UsageError(f"makespan must be at least 0, got {makespan!r}")
    resizing = resizing.without_owners()
    group = resizing.group
    max_load = makespan * resizing.fastest // resizing.multiple
    reason = _too_heavy(group, max_load)
    if reason:
        return Sizing(None, reason)
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    problem = build_problem(group)
    most = len(group.members) + problem.partition_count
    bound = min(most, -(-problem.total // max_load)) if max_load else 0
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


def _too_heavy(group: Group, max_load: int) -> str:
    """Return a text on a partition that exceeds a load, or an empty text."""
    subscribers = group.subscribers()
    for topic in group.topics:
        heaviest = max(range(topic.partitions), key=topic.weight, default=None)
        if heaviest is not None and subscribers[topic.name]:
            weight = topic.weight(heaviest)
            if weight > max_load:
                return f"{topic.name}-{heaviest} alone has weight {weight}"
    return ""


def _is_enough(resizing: Resizing, number: int, target: int, budget: SearchBudget) -> bool | None:
    """Return whether a number of members meets the target; None if this is not known."""
    if resizing.unserved(number):
        return False
    makespan, status = _solve(resizing, number, budget, up_to=target)
    if makespan is None:
        return False if status is Status.INFEASIBLE else None
    if makespan.value <= target:
        return True
    return False if makespan.bound > target else None


@dataclass(frozen=True, slots=True)
class MemberLoss:
    """Effect of losing one member: minimum makespan of the others, and unserved partitions.

    If speeds differ, the makespan is the maximum relative load in the whole group. Unserved are
    partitions without subscribers among the other members.
    """

    member: str
    makespan: LevelValue
    unserved: int


@dataclass(frozen=True, slots=True)
class MemberLosses:
    """Effects of losing each member that consumes a topic, in group order.

    If the search was stopped, only the losses before the stop.
    """

    losses: tuple[MemberLoss, ...]

    @property
    def worst(self) -> MemberLoss | None:
        """Return the loss that leads to the highest makespan, or None if there is no loss."""
        return max(self.losses, key=lambda loss: loss.makespan.value, default=None)

    @property
    def makespan(self) -> LevelValue:
        """Makespan after the worst loss, or 0 if there are no losses."""
        return LevelValue(
            "makespan",
            max((loss.makespan.value for loss in self.losses), default=0),
            max((loss.makespan.bound for loss in self.losses), default=0),
        )


def member_loss(
    group: Group,
    assignment: Assignment | None = None,
    *,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> MemberLosses:
    """Find the minimum makespan after the loss of each member.

    Only partitions of the lost member are reassigned. Capacities are ignored.

    Parameters
    ----------
    assignment
        The assignment before the loss. By default the current ownership; partitions without
        an owner are then reassigned with those of the lost member.
    limits, seed
        As in `solve`. The limit applies to all members together. If the search is stopped,
        further members have no result.

    Raises
    ------
    UsageError
        If the assignment is not valid for the group, or partitions can have several members.

    Examples
    --------
    >>> members = tuple(Member(id=name, subscription=("t",)) for name in "abc")
    >>> group = Group(topics=(Topic(name="t", partitions=6),), members=members)
    >>> assignment = Assignment({n: [("t", 2 * i), ("t", 2 * i + 1)] for i, n in enumerate("abc")})
    >>> member_loss(group, assignment).makespan.value
    3
    """
    require_group(group)
    require_single_copies(group)
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    problem = build_problem(group)
    placement = problem.owner if assignment is None else problem.valid_placement(assignment)
    losses = []
    for lost in range(problem.member_count):
        if budget.limits.is_stopped:
            break
        name = group.members[problem.members[lost]].id
        if not budget.has_work:
            losses.append(_without_search(problem, placement, lost))
            continue
        rest, unserved = _after_loss(problem, placement, lost)
        within = budget.part(1 / (problem.member_count - lost)).rest()
        solution = solve(rest, levels=(Imbalance(Measure.MAKESPAN),), limits=within, seed=seed)
        # Members that neither keep nor can take a partition are no participants of the rest.
        speeds = [rest.members[index].speed for index in rest.participant_indices]
        factor = lcm(*problem.member_units.speeds) // lcm(*speeds)
        losses.append(MemberLoss(name, _scaled(solution.imbalance, factor), unserved))
    return MemberLosses(tuple(losses))


def _without_search(problem: Problem, placement: Placement, lost: int) -> MemberLoss:
    """Return the makespan of longest processing time first, with a bound by counting."""
    speeds, factors = problem.member_units.speeds, problem.member_units.factors
    most = max(problem.total, 1) * max(factors)
    weight = exact_column(problem.weight, most)
    factor = exact_column(np.array(factors, dtype=object), most)
    is_free = (placement == lost) | (placement == NO_OWNER)
    loads = np.zeros(problem.member_count, dtype=weight.dtype)
    np.add.at(loads, placement[~is_free], weight[~is_free])
    bound, unserved = max((loads * factor).tolist()), 0
    for partition in sorted(np.flatnonzero(is_free).tolist(), key=lambda at: -weight[at]):
        consumers = problem.consumer_sets[problem.consumer_set[partition]]
        others = consumers[consumers != lost]
        if not len(others):
            unserved += 1
            continue
        relative = (loads[others] + weight[partition]) * factor[others]
        loads[others[np.argmin(relative)]] += weight[partition]
        bound = max(bound, int(weight[partition] * factor[others].min()))
    speed = max(sum(speeds) - speeds[lost], 1)
    mean = -(-sum(loads.tolist()) * lcm(*speeds) // speed)
    makespan = LevelValue("makespan", max((loads * factor).tolist()), max(bound, mean))
    return MemberLoss(problem.member_id(lost), makespan, unserved)


def _after_loss(problem: Problem, placement: Placement, lost: int) -> tuple[Group, int]:
    """Return the group without the lost member, and the number of unserved partitions.

    The partitions that a member keeps are a topic of its own. In weighted groups it has one
    partition with the whole load, unless that exceeds the maximum weight.
    """
    weight = problem.weight
    stays = placement.copy()
    stays[stays == lost] = NO_OWNER
    topics: list[Topic] = []
    subscriptions: list[list[str]] = []
    for member in range(problem.member_count):
        kept = tuple(weight[stays == member].tolist())
        if problem.group.is_weighted and sum(kept) <= MAX_WEIGHT:
            kept = (sum(kept),)
        topics.append(Topic(name=f"kept-{member}", partitions=len(kept), weights=kept))
        subscriptions.append([f"kept-{member}"] if member != lost else [])
    unserved = 0
    for index, consumers in enumerate(problem.consumer_sets):
        others = consumers[consumers != lost].tolist()
        free = np.flatnonzero((problem.consumer_set == index) & (stays == NO_OWNER))
        if not others:
            unserved += len(free)
            continue
        name, weights = f"free-{index}", tuple(weight[free].tolist())
        topics.append(Topic(name=name, partitions=len(free), weights=weights))
        for member in others:
            subscriptions[member].append(name)
    members = tuple(
        Member(id=str(member), subscription=tuple(names), speed=problem.member_units.speeds[member])
        for member, names in enumerate(subscriptions)
    )
    return Group(topics=tuple(topics), members=members), unserved


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitingPartition:
    """Heaviest partition of a group, if no assignment has a lower maximum load than its weight.

    Parameters
    ----------
    equal
        Number of further partitions with the same weight.
    total, members
        Total weight of all partitions, and number of members that share it.
    after_split
        Lowest maximum load if each partition of this weight is split in two of equal weight.
    """

    topic: str
    partition: int
    weight: int
    equal: int
    total: int
    members: int
    weight_source: WeightSource | None
    after_split: LevelValue

    def __str__(self) -> str:
        """Describe the lower limit of the maximum load, and the remedies, in one text."""
        noun = None if self.weight_source is None else _NOUNS.get(self.weight_source)
        ratio = float(Fraction(self.weight * self.members, self.total))
        carry = "carries" if self.equal == 1 else "carry"
        further = f" ({self.equal:,} more {carry} as much)" if self.equal else ""
        split = self.after_split
        them, their = ("them", "their") if self.equal else ("it", "its")
        member = "faster members" if self.equal else "a faster member"
        most = "" if split.gap == 0 else f"at most {split.value:,}, with the lower bound "
        return (
            f"partition {self.topic}-{self.partition} alone carries {self.weight:,}, "
            f"{self.weight / self.total:.0%} of the {noun or 'total weight'} and {ratio:.1f} times "
            f"the mean load{further}: no assignment has a lower maximum. Split "
            f"{their} keys, or give {them} {member}. With {their} keys split in two parts of equal "
            f"{noun or 'weight'}, the lowest maximum load is {most}{split.bound:,}."
        )

    def record(self) -> dict[str, object]:
        """Return the partition as a JSON object."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "weight": self.weight,
            "makespan_after_split": value_and_bound(self.after_split),
            "reason": str(self),
        }


def limiting_partition(
    group: Group, *, limits: SearchLimits = SearchLimits(), seed: int = 0
) -> LimitingPartition | None:
    """Return the partition whose weight is the lower bound on the maximum load.

    Return None if weights are equal, if speeds differ, or if another reason determines the bound,
    such as the mean load.

    Examples
    --------
    >>> members = tuple(Member(id=id, subscription=("t",)) for id in ("a", "b"))
    >>> group = Group(topics=(Topic(name="t", partitions=3, weights=(8, 2, 2)),), members=members)
    >>> print(limiting_partition(group))
    partition t-0 alone carries 8, 67% of the total weight and 1.3 times the mean load: no ...
    """
    problem = build_problem(group)
    if not problem.group.is_weighted or not group.has_equal_speeds or not problem.member_count:
        return None
    heaviest = max(problem.weight.tolist(), default=0)
    total = problem.total
    if makespan_bound(problem) != heaviest or heaviest * problem.member_count <= total:
        return None
    found = [at for at, weight in enumerate(problem.weight.tolist()) if weight == heaviest]
    solution = solve(
        _split(group, heaviest),
        levels=(Imbalance(Measure.MAKESPAN),),
        limits=replace(limits, work=min(limits.work, _SPLIT_WORK)),
        seed=seed,
    )
    if solution.assignment is None:
        return None
    return LimitingPartition(
        topic=group.topics[problem.topic[found[0]]].name,
        partition=int(problem.number[found[0]]),
        weight=heaviest,
        equal=len(found) - 1,
        total=total,
        members=problem.member_count,
        weight_source=group.weight_source,
        after_split=solution.imbalance,
    )


def _split(group: Group, heaviest: int) -> Group:
    """Return the group without owners, with all heaviest partitions split in two."""
    topics = []
    for topic in group.topics:
        weights = [topic.weight(number) for number in range(topic.partitions)]
        halves = [weight // 2 for weight in weights if weight == heaviest]
        kept = [weight - weight // 2 if weight == heaviest else weight for weight in weights]
        topics.append(
            Topic(
                name=topic.name, partitions=topic.partitions + len(halves), weights=(*kept, *halves)
            )
        )
    return rejoin(replace(group, topics=tuple(topics)), Assignment({}))
