"""How many members it takes to keep the greatest load within a wish."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member
from kassay.reference.model.metrics import loads, sum_of_squares
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Measure, Movement
from kassay.solver.problem import build_problem
from kassay.solver.sizing.resized_groups import (
    new_member,
    resized,
    with_capacity,
    with_valid_ownership,
)
from kassay.solver.solution import LevelValue, Status
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True)
class MemberCount:
    """The best that a number of members can do.

    Parameters
    ----------
    members
        How many there are.
    makespan
        Least greatest load; None where differing capacities admit no assignment, or none
        was found in time. A capacity that all share is compared with it instead.
    movement
        Fewest moves from today to an assignment of that makespan (of the least sum of
        squares, where weights are equal). Partitions of members that left are free.
    imbalance
        Sum of squared loads of that assignment.
    unserved
        Topics that are consumed today and by nobody then.
    enough
        Whether the wish is met: proven, refuted, or None where time was too short.
    assignment
        The assignment.
    """

    members: int
    makespan: LevelValue | None
    movement: LevelValue | None
    imbalance: int | None
    unserved: tuple[str, ...]
    enough: bool | None
    assignment: Assignment | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many members a wish needs.

    Parameters
    ----------
    needed
        Least number of members shown to be enough; the bound is the least number not
        shown to be too few. None if no number is enough, or none was found in time.
    reason
        Why there is none, in words; empty otherwise.
    sizes
        The numbers looked at, ascending.
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
    limits: SearchLimits = SearchLimits(),
    seed: int = 0,
) -> Sizing:
    """Find the least number of members that is enough.

    With more members than today, the further ones subscribe like a member that is there;
    with fewer, the last ones in the group's order have left, and what they owned is
    without an owner. More members are never worse, so the least number is found by
    bisection.

    Parameters
    ----------
    group
        The rebalance as it is today.
    makespan
        The greatest load wanted. Members keep their own capacities.
    capacity
        The most that members can carry that name no capacity of their own; enough is
        what admits an assignment. Exactly one of the two wishes is given.
    like
        The member whose subscription, capacity and rack further ones have. By default
        they subscribe to every topic that is consumed today.
    sweep
        Further numbers of members to look at; without any, those around the one needed.
    limits, seed
        As in `solve`, per number of members.

    Raises
    ------
    ValueError
        If not exactly one wish is given, or a number is negative.
    InvalidGroupError
        If ``like`` is not in the group.

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
    wish = capacity if makespan is None else makespan
    if wish is None or None not in (makespan, capacity):
        raise ValueError("exactly one of makespan and capacity must be given")
    if wish < 0:
        raise ValueError(f"the wish must be 0 or more, got {wish!r}")
    today = with_capacity(with_valid_ownership(group), capacity)
    newcomer = new_member(today, like, capacity)
    ceiling = wish
    if makespan is None:
        ceiling = max(member.capacity or 0 for member in (*today.members, newcomer))
    return _Search(today, newcomer, makespan, ceiling, limits, seed).run(sweep)


@dataclass(frozen=True, slots=True)
class _Search:
    """Solves for one number of members after the other, each once.

    Parameters
    ----------
    ceiling
        The most that any member may carry.
    """

    today: Group
    newcomer: Member
    makespan: int | None
    ceiling: int
    limits: SearchLimits
    seed: int
    done: dict[int, MemberCount] = field(default_factory=dict)

    def run(self, sweep: Iterable[int]) -> Sizing:
        """Find the number needed and look at those asked for."""
        numbers = sorted(set(sweep))
        if numbers and numbers[0] < 0:
            raise ValueError(f"numbers of members must be 0 or more, got {numbers[0]!r}")
        reason = self._obstacle()
        needed = None if reason else self._least_number()
        if not reason and needed is None:
            reason = "no number of members was found to be enough in time"
        if needed is not None and not numbers:
            numbers = [max(0, needed.value - 1), needed.value + 1]
        for number in (*numbers, len(self.today.members)):
            self.look(number)
        return Sizing(needed, reason, tuple(self.done[number] for number in sorted(self.done)))

    def _least_number(self) -> LevelValue | None:
        """Gallop up from the mean load to a number that is enough, then bisect."""
        problem = build_problem(self.today)
        most = len(self.today.members) + problem.size
        floor = min(most, -(-problem.total // self.ceiling)) if self.ceiling else 0
        low = high = floor
        stride = 1
        while not self.look(high).enough:
            if high == most:
                return None
            low, high, stride = high + 1, min(most, high + stride), 2 * stride
        while low < high:
            middle = (low + high) // 2
            if self.look(middle).enough:
                high = middle
            else:
                low = middle + 1
        refuted = (size.members + 1 for size in self.done.values() if size.enough is False)
        return LevelValue("members", high, max(floor, *refuted, 0))

    def look(self, number: int) -> MemberCount:
        """Solve for one number of members."""
        if number not in self.done:
            self.done[number] = self._solve(number)
        return self.done[number]

    def _solve(self, number: int) -> MemberCount:
        group = resized(self.today, number, self.newcomer)
        before, after = self.today.subscribers(), group.subscribers()
        unserved = tuple(
            topic.name
            for topic in self.today.topics
            if topic.partitions and before[topic.name] and not after[topic.name]
        )
        best = _best(group, self.makespan, self.limits, self.seed)
        plan = best.assignment
        return MemberCount(
            members=number,
            makespan=best.makespan,
            movement=best.movement,
            imbalance=None if plan is None else sum_of_squares(loads(group, plan).values()),
            unserved=unserved,
            enough=False if unserved else best.fits,
            assignment=plan,
        )

    def _obstacle(self) -> str:
        """Say why not even a newcomer for every partition would be enough; else nothing.

        What a newcomer could carry alone weighs nothing then; today's members have the rest.
        """
        offered = set(self.newcomer.subscription)
        limits = (self.makespan, self.newcomer.capacity, self.ceiling)
        light = min(limit for limit in limits if limit is not None)
        left = []
        for topic in self.today.topics:
            weights = [topic.weight(p) for p in range(topic.partitions)]
            if topic.name in offered:
                weights = [0 if weight <= light else weight for weight in weights]
                greatest = max(weights, default=0)
                if greatest > self.ceiling:
                    return f"{topic.name}-{weights.index(greatest)} alone weighs {greatest}"
            if any(weights) and self.today.subscribers()[topic.name]:
                left.append(replace(topic, weights=tuple(weights)))
        best = _best(replace(self.today, topics=tuple(left)), self.makespan, self.limits, self.seed)
        if best.fits is not False:
            return ""
        names = ", ".join(repr(topic.name) for topic in left)
        least = "" if best.makespan is None else f", at best {best.makespan.bound} on one of them"
        return f"further members cannot relieve today's of {names}{least}"


@dataclass(frozen=True, slots=True)
class _Best:
    """The best of one number of members; ``fits`` is None where time was too short to say."""

    makespan: LevelValue | None
    movement: LevelValue | None
    assignment: Assignment | None
    fits: bool | None


def _best(group: Group, wish: int | None, limits: SearchLimits, seed: int) -> _Best:
    """Find the least makespan, then the fewest moves; say whether they fit the wish."""
    capacities = {member.capacity for member in group.members}
    # A capacity that all share is a wish on the makespan; the exact flow takes it as such.
    shared = next(iter(capacities)) if len(capacities) == 1 else None
    if shared is not None:
        wish = shared if wish is None else min(wish, shared)
        members = tuple(replace(member, capacity=None) for member in group.members)
        group = replace(group, members=members)
    even = bool(group.common_weight) and (shared is not None or capacities <= {None})
    solution = solve(
        group,
        levels=(Imbalance(Measure.SUM_OF_SQUARES if even else Measure.MAKESPAN), Movement()),
        limits=limits,
        seed=seed,
    )
    if solution.assignment is None:
        return _Best(None, None, None, False if solution.status is Status.INFEASIBLE else None)
    greatest = solution.imbalance
    if even:
        # The least sum of squares has the least makespan too: see docs/problem.md.
        most = max(loads(group, solution.assignment).values(), default=0)
        greatest = LevelValue("makespan", most, most)
    return _Best(greatest, solution.movement, solution.assignment, _within(greatest, wish))


def _within(greatest: LevelValue, wish: int | None) -> bool | None:
    if wish is None or greatest.value <= wish:
        return True
    return False if greatest.bound > wish else None
