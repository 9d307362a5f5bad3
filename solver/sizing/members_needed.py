"""Number of members needed to keep the maximum load within a target."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import lcm

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, Member
from kassay.reference.model.group_checks import require_group
from kassay.reference.model.metrics import Measure, loads, participant_indices, sum_of_squares
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement
from kassay.solver.problem import build_problem
from kassay.solver.sizing.resized_groups import (
    check_sizing_weights,
    new_member,
    resized,
    with_capacity,
    with_valid_ownership,
)
from kassay.solver.solution import LevelValue, Status
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True)
class MemberCount:
    """Optimum of a group that is resized to a given number of members.

    Parameters
    ----------
    makespan
        Minimum makespan; None if no assignment within different capacities was found.
    movement
        Fewest moves to an assignment of that makespan (for equal weights, of the minimum sum
        of squares). Partitions of members that left have no owner.
    imbalance
        Sum of squared loads of the assignment.
    unserved
        Topics that lose their last subscriber.
    enough
        Whether the target is met; None if this is neither proven nor refuted in time.
    """

    members: int
    makespan: LevelValue | None
    movement: LevelValue | None
    imbalance: int | None
    unserved: tuple[str, ...]
    enough: bool | None
    assignment: Assignment | None = field(repr=False)

    @property
    def served_makespan(self) -> LevelValue | None:
        """Return the makespan, or None if topics are unserved or no assignment was found."""
        return None if self.unserved else self.makespan


@dataclass(frozen=True, slots=True)
class Sizing:
    """Result of sizing: number of members needed to keep the maximum load within a target.

    Parameters
    ----------
    needed
        Minimum number that is proven to be enough; the bound is the minimum number that is
        not proven too small. None if no number is enough, or none was found in time.
    reason
        Why ``needed`` is None; empty otherwise.
    sizes
        The optimum for each number that was solved, ascending.
    """

    needed: LevelValue | None
    reason: str
    sizes: tuple[MemberCount, ...]


def members_needed(
    group: Group,
    *,
    makespan: int | None = None,
    capacity: int | None = None,
    like: str | None = None,
    sweep: Iterable[int] = (),
    allow_lag: bool = False,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> Sizing:
    """Find the minimum number of members that keeps the maximum load within a target.

    Members are added with the subscription of an existing member, or removed from the end
    of the group; partitions of removed members have no owner.

    Parameters
    ----------
    makespan
        Target of the maximum load. Capacities of members apply too. If speeds differ, the
        target is a relative load: load divided by speed, times the least common multiple of the
        speeds of all members.
    capacity
        Capacity of members without one; the target is that an assignment exists. Exactly
        one of makespan and capacity is required.
    like
        Id of the member with the subscription, capacity, speed and rack of added members. By
        default they subscribe to every topic with subscribers. Required if speeds differ.
    sweep
        Further numbers of members to solve; by default those around the one needed.
    allow_lag
        Accept weights that are lag. The result is the number of members that share the backlog.
    limits, seed
        As in `solve`, per number of members.

    Raises
    ------
    UsageError
        If not exactly one target is given, or a number is negative.
    InputError
        If ``like`` is not in the group, if the weights are lag without ``allow_lag``, or if
        members differ in speed and ``like`` is None.

    Examples
    --------
    >>> from kassay.reference.model.group import Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=10),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> members_needed(group, makespan=3).needed
    LevelValue(name='members', value=4, bound=4, slack=0)
    """
    require_group(group)
    numbers = sorted(set(sweep))
    _check_numbers(makespan, capacity, numbers)
    check_sizing_weights(group, allow_lag=allow_lag)
    current = with_capacity(with_valid_ownership(group), capacity)
    added = new_member(current, like, capacity)
    return SizeSearch(current, added, makespan, SearchLimits.of(limits), seed).run(numbers)


def _check_numbers(makespan: int | None, capacity: int | None, numbers: list[int]) -> None:
    """Raise UsageError unless exactly one target is given, and no number is negative."""
    if (makespan is None) == (capacity is None):
        raise UsageError(
            f"exactly one of makespan and capacity must be given, got makespan={makespan!r} and "
            f"capacity={capacity!r}"
        )
    named = [("makespan", makespan), ("capacity", capacity)]
    for name, number in (*named, *(("numbers of members", number) for number in numbers)):
        if number is not None and number < 0:
            raise UsageError(f"{name} must be at least 0, got {number!r}")


@dataclass(frozen=True, slots=True)
class SizeSearch:
    """Search for the number of members by bisection. Each number of members is solved only once.

    ``makespan`` is None for a search without a target of the maximum load. Relative loads of all
    numbers of members refer to the speeds of the current members and of the added member.
    """

    current: Group
    added: Member
    makespan: int | None
    limits: SearchLimits
    seed: int
    done: dict[int, MemberCount] = field(default_factory=dict)

    @property
    def _speed_multiple(self) -> int:
        return lcm(self.added.speed, _speed_multiple(self.current))

    def _max_load(self, members: Iterable[Member]) -> int:
        if self.makespan is None:
            return max(member.capacity or 0 for member in members)
        speed = max(member.speed for member in members)
        return self.makespan * speed // self._speed_multiple

    def run(self, numbers: list[int]) -> Sizing:
        """Find the number of members needed, and solve the group for each requested number."""
        reason = self._why_never_enough()
        needed = None if reason else self._min_number()
        if not reason and needed is None:
            cause = "search was interrupted" if self.limits.is_stopped else "time limit was reached"
            reason = f"the {cause} before a sufficient number of members was found"
        if needed is not None and not numbers:
            numbers = [max(0, needed.value - 1), needed.value + 1]
        for number in (*numbers, len(self.current.members)):
            if not self.limits.is_stopped:
                self.solve(number)
        return Sizing(needed, reason, tuple(self.done[number] for number in sorted(self.done)))

    def _min_number(self) -> LevelValue | None:
        """Find the minimum sufficient number of members by doubling steps, then bisection."""
        problem = build_problem(self.current)
        most = len(self.current.members) + problem.partition_count
        max_load = self._max_load((*self.current.members, self.added))
        bound = min(most, -(-problem.total // max_load)) if max_load else 0
        low, high, step = bound, bound, 1
        while not self.limits.is_stopped and not self.solve(high).enough:
            if high == most:
                return None
            low, high, step = high + 1, min(most, high + step), 2 * step
        while low < high and not self.limits.is_stopped:
            middle = (low + high) // 2
            if self.solve(middle).enough:
                high = middle
            else:
                low = middle + 1
        sufficient = [size.members for size in self.done.values() if size.enough]
        refuted = (size.members + 1 for size in self.done.values() if size.enough is False)
        if not sufficient:
            return None
        return LevelValue("members", min(sufficient), max(bound, *refuted, 0))

    def solve(self, number: int) -> MemberCount:
        """Return the optimum of the group after resizing it to a number of members."""
        if number not in self.done:
            group = resized(self.current, number, self.added)
            before, after = self.current.subscribers(), group.subscribers()
            unserved = tuple(
                topic.name
                for topic in self.current.topics
                if topic.partitions and before[topic.name] and not after[topic.name]
            )
            best = self._optimum(group)
            enough = False if unserved else best.enough
            self.done[number] = replace(best, unserved=unserved, enough=enough)
        return self.done[number]

    def _why_never_enough(self) -> str:
        """Return the reason why no number of members can meet the target, otherwise an empty text.

        Partitions that an added member can have alone add no load to the other members.
        """
        max_load = self._max_load((*self.current.members, self.added))
        limit = self._max_load((self.added,))
        if self.added.capacity is not None:
            limit = min(limit, self.added.capacity)
        left = []
        for topic in self.current.topics:
            weights = [topic.weight(p) for p in range(topic.partitions)]
            if topic.name in self.added.subscription:
                weights = [0 if weight <= limit else weight for weight in weights]
                greatest = max(weights, default=0)
                if greatest > max_load:
                    return f"{topic.name}-{weights.index(greatest)} alone has weight {greatest}"
            if any(weights) and self.current.subscribers()[topic.name]:
                left.append(replace(topic, weights=tuple(weights)))
        best = self._optimum(replace(self.current, topics=tuple(left)))
        if best.enough is not False:
            return ""
        names = ", ".join(repr(topic.name) for topic in left)
        load = "" if best.makespan is None else f", makespan at least {best.makespan.bound}"
        return f"added members do not consume {names}{load}"

    def _optimum(self, group: Group) -> MemberCount:
        """Find the minimum makespan, then the fewest moves, and whether the target is met."""
        target = self.makespan
        capacities = {member.capacity for member in group.members}
        # A capacity that all members share is a target of the makespan, which the flow can solve.
        has_equal_speeds = self.current.has_equal_speeds and group.has_equal_speeds
        shared = next(iter(capacities)) if len(capacities) == 1 and has_equal_speeds else None
        if shared is not None:
            target = shared if target is None else min(target, shared)
            members = tuple(replace(member, capacity=None) for member in group.members)
            group = replace(group, members=members)
        by_flow = bool(group.uniform_weight) and (shared is not None or capacities <= {None})
        imbalance = Imbalance(Measure.SUM_OF_SQUARES if by_flow else Measure.MAKESPAN)
        levels = (imbalance, Movement())
        solution = solve(group, levels=levels, limits=self.limits, seed=self.seed)
        if solution.assignment is None:
            enough = False if solution.status is Status.INFEASIBLE else None
            return MemberCount(len(group.members), None, None, None, (), enough, None)
        makespan, member_loads = solution.imbalance, loads(group, solution.assignment).values()
        value, bound = makespan.value, makespan.bound
        if by_flow:
            # The minimum sum of squares has the minimum makespan: see docs/problem.md.
            value = bound = max(member_loads, default=0)
        scale = self._speed_multiple // _speed_multiple(group)
        makespan = LevelValue("makespan", value * scale, bound * scale)
        return MemberCount(
            members=len(group.members),
            makespan=makespan,
            movement=solution.movement,
            imbalance=sum_of_squares(member_loads),
            unserved=(),
            enough=_is_within(makespan, target),
            assignment=solution.assignment,
        )


def _is_within(makespan: LevelValue, target: int | None) -> bool | None:
    """Return whether a makespan within the target exists; None if this is not known."""
    if target is None or makespan.value <= target:
        return True
    return False if makespan.bound > target else None


def _speed_multiple(group: Group) -> int:
    return lcm(*(group.members[index].speed for index in participant_indices(group)))
