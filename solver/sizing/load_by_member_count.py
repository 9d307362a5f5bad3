"""Scaling ladder: numbers of members at which the minimum makespan of a group drops."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, Member
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.sizing.resized_groups import (
    check_sizing_weights,
    new_member,
    resized,
    with_valid_ownership,
)
from kassay.solver.sizing.size_search import MemberCount, Progress, SizeSearch
from kassay.solver.solution import LevelValue

_NUMBERS_SHARE, _PROOF_SHARE, _MOVES_SHARE = 1 / 40, 1 / 120, 1 / 50
"""Shares of the time limit: for the makespans of all numbers of members, for those that are not
proven then, and for the moves to all rungs. Bounds without a search prove most rungs."""
_CURRENT_SHARE = 1 / 20
"""Share of the time limit for the fewest moves to the current number of members."""
_PARTS = 8
"""Divisor of the time left for makespans, which gives the time limit of the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """Number of members with a lower makespan than every smaller number of the ladder.

    Parameters
    ----------
    makespan
        Minimum makespan with this number of members.
    is_proven
        Whether the makespan is proven to be lower than with one member fewer, and every larger
        number up to ``last`` is proven to have no lower makespan. The smallest number of the ladder
        is not compared with one member fewer.
    last
        Largest number of members for which no lower makespan was found. The members beyond
        ``members`` are wasted.
    movement
        Fewest moves from the current owners to the makespan, see `MemberCount`; None if they were
        not searched.
    placed
        Partitions without an owner, for example because their owner was removed.
    moves_from_previous
        Moves from the assignment of the previous rung to the makespan; None for the first rung, or
        if they were not searched.
    """

    members: int
    last: int
    makespan: LevelValue
    is_proven: bool
    movement: LevelValue | None
    placed: int
    moves_from_previous: LevelValue | None
    group: Group = field(repr=False)
    assignment: Assignment = field(repr=False)

    @property
    def limiting_partition(self) -> str | None:
        """Return a partition that alone has the makespan, if weights differ; otherwise None."""
        group, subscribers = self.group, self.group.subscribers()
        if not group.is_weighted or not group.has_equal_speeds:
            return None
        names = (
            f"{topic.name}-{number}"
            for topic in group.topics
            if subscribers[topic.name]
            for number in range(topic.partitions)
            if topic.weight(number) == self.makespan.value
        )
        return next(names, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Scaling ladder of a group from ``first`` to ``last`` members.

    ``rungs`` are empty if a topic has no subscriber, or a capacity is too small, with every number
    of members. ``is_complete`` is false if the search was stopped. After the time limit, drops can
    be missing; then a rung is not proven.
    """

    first: int
    last: int
    rungs: tuple[Rung, ...]
    is_complete: bool


def load_by_member_count(
    group: Group,
    *,
    first: int = 1,
    last: int | None = None,
    like: str | None = None,
    allow_lag: bool = False,
    with_moves: bool = True,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> Ladder:
    """Find the numbers of members at which the minimum makespan of a group drops.

    Members are added and removed as in `members_needed`. The makespan never rises with the number
    of members, so that numbers between two numbers with equal makespan are not solved.

    Parameters
    ----------
    first, last
        Smallest and largest number of members. The default of ``last`` is the current number, or
        the number of consumed partitions if it is higher: no further member lowers the makespan.
        If members differ in subscription, capacity or speed, it is the sum of both numbers.
    like, allow_lag
        As in `members_needed`.
    with_moves
        Whether to minimise the moves to each rung, with short searches. Rungs near the current
        number of members come first. If weights or speeds differ, ``movement`` and
        ``moves_from_previous`` of others may be None.
    limits, seed
        As in `solve`; the time limit applies to the whole ladder.
    progress
        Function that receives the name of each step of the search.

    Raises
    ------
    UsageError
        If ``first`` is below 1 or above ``last``.
    InputError
        As in `members_needed`.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> topic, member = Topic(name="t", partitions=10), Member(id="a", subscription=("t",))
    >>> group = Group(topics=(topic,), members=(member,))
    >>> [(rung.members, rung.makespan.value) for rung in load_by_member_count(group).rungs]
    [(1, 10), (2, 5), (3, 4), (4, 3), (5, 2), (10, 1)]
    """
    check_sizing_weights(group, allow_lag=allow_lag)
    current = with_valid_ownership(group)
    added = new_member(current, like, None)
    most = _useful_members(current, added, first) if last is None else last
    if not 1 <= first <= most:
        raise UsageError(f"first must be from 1 to last, got {first!r} and {most!r}")
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    search = _LadderSearch(SizeSearch(current, added, None), budget, progress)
    return search.ladder(first, most, with_moves=with_moves)


def _useful_members(group: Group, added: Member, first: int) -> int:
    """Return a number of members above which no further member lowers the makespan.

    A member that differs from the added ones, for example by fewer topics, can be without use.
    """
    consumed = {name for name, members in group.subscribers().items() if members}
    kinds = {
        (frozenset(consumed.intersection(one.subscription)), one.capacity, one.speed)
        for one in (*group.members, added)
    }
    members, useful = len(group.members), _consumed_partitions(group)
    return max(first, members + useful if len(kinds) > 1 else max(members, useful))


def _makespan_within_capacities(size: MemberCount) -> int | None:
    """Return the makespan of an assignment within the capacities, or None if none was found."""
    makespan = size.served_makespan
    return makespan.value if makespan is not None and size.enough else None


def _consumed_partitions(group: Group) -> int:
    subscribers = group.subscribers()
    return sum(topic.partitions for topic in group.topics if subscribers[topic.name])


@dataclass(frozen=True, slots=True)
class _LadderSearch:
    """Search for the rungs of a ladder by bisection between numbers with different makespan."""

    search: SizeSearch
    budget: SearchBudget
    progress: Progress

    def ladder(self, first: int, last: int, *, with_moves: bool) -> Ladder:
        """Find all rungs from ``first`` to ``last`` members."""
        self._bisect(first, last)
        self._prove()
        numbers = sorted(self.search.lowest)
        starts = [
            number
            for before, number in zip([None, *numbers], numbers, strict=False)
            if self._value(number) is not None
            and (before is None or self._value(before) != self._value(number))
        ]
        rungs = list(self._rungs(starts, first, last))
        if with_moves:
            rungs = self._with_moves(rungs)
        is_complete = not self.budget.limits.is_stopped
        return Ladder(first=first, last=last, rungs=tuple(rungs), is_complete=is_complete)

    def _bisect(self, low: int, high: int) -> None:
        """Solve two numbers, and the numbers between them until each change is located."""
        budget = self._limited(_NUMBERS_SHARE)
        self._solve(low, budget)
        self._solve(high, budget)
        pending = [(low, high)]
        while pending and self._may_continue(self.budget):
            low, high = pending.pop()
            if high - low < 2 or self._value(low) == self._value(high):
                continue
            middle = (low + high) // 2
            self._solve(middle, budget)
            pending += [(low, middle), (middle, high)]

    def _solve(self, number: int, budget: SearchBudget) -> None:
        if not self.budget.limits.is_stopped:
            self.progress(f"maximum load of {number} members")
            self.search.lowest_makespan(number, budget.part(1 / _PARTS))

    def _prove(self) -> None:
        """Search again for the makespans that are not proven."""
        sizes = self.search.lowest.items()
        open_numbers = [at for at, size in sizes if size.makespan and not size.makespan.is_proven]
        budget = self._limited(_PROOF_SHARE)
        for index, number in enumerate(open_numbers):
            if self._may_continue(self.budget):
                self.progress(f"proof of the maximum load of {number} members")
                within = budget.part(1 / (len(open_numbers) - index))
                self.search.lowest_makespan(number, within)

    def _may_continue(self, budget: SearchBudget) -> bool:
        """Return whether time is left; fast flows have some more time to find all rungs."""
        return budget.has_work or (self._has_fast_flows and not budget.is_interrupted)

    @property
    def _has_fast_flows(self) -> bool:
        """Return whether all weights and all speeds are equal."""
        return bool(self.search.current.uniform_weight)

    def _limited(self, share: float) -> SearchBudget:
        """Return a budget with a share of the limit on work."""
        return self.budget.until(self.budget.limits.work * share)

    def _value(self, number: int) -> int | None:
        """Return the lowest makespan found with at most this number of members.

        Members without partitions do not change the makespan of an assignment.
        """
        values = (
            _makespan_within_capacities(size)
            for at, size in self.search.lowest.items()
            if at <= number
        )
        return min((value for value in values if value is not None), default=None)

    def _bound(self, number: int) -> int:
        """Return the highest proven bound for this number of members or more."""
        makespans = (size.makespan for at, size in self.search.lowest.items() if at >= number)
        return max((one.bound for one in makespans if one is not None), default=0)

    def _rungs(self, starts: list[int], first: int, last: int) -> Iterator[Rung]:
        """Yield the rungs with an assignment of minimum makespan and any number of moves."""
        for start, following in zip(starts, [*starts, last + 1][1:], strict=True):
            value, size = self._value(start), self.search.lowest[start]
            if value is None or size.assignment is None:
                continue
            group = resized(self.search.current, start, self.search.added)
            is_lower = (
                start == first or value < self._bound(start - 1) or self._is_refuted(start - 1)
            )
            has_further = following - 1 > start
            is_proven = is_lower and not (has_further and self._bound(following - 1) < value)
            yield Rung(
                members=start,
                last=following - 1,
                makespan=LevelValue("makespan", value, min(value, self._bound(start))),
                is_proven=is_proven,
                movement=size.movement,
                placed=_consumed_partitions(group) - sum(len(one.owned) for one in group.members),
                moves_from_previous=None,
                group=group,
                assignment=size.assignment,
            )

    def _is_refuted(self, number: int) -> bool:
        """Return whether an assignment with this number of members is proven not to exist."""
        size = self.search.lowest.get(number)
        return size is not None and size.enough is False

    def _with_moves(self, found: list[Rung]) -> list[Rung]:
        """Add few moves from the current owners, and from the assignment of the previous rung.

        Rungs near the current number of members come first. If weights or speeds
        differ, moves are not searched after the time limit.
        """
        current = self.search.current
        number = len(current.members)
        if not self._has_fast_flows and any(rung.members == number for rung in found):
            self.progress(f"moves to {number} members")
            self.search.optimum(number, self._limited(_CURRENT_SHARE))
        budget = self._limited(_MOVES_SHARE)
        order = sorted(range(len(found)), key=lambda at: abs(found[at].members - number))
        first_half = budget.part(1 / 2)
        for left, index in zip(range(len(found), 0, -1), order, strict=True):
            if self._may_continue(first_half):
                rung = found[index]
                self.progress(f"moves to {rung.members} members")
                within = first_half.part(1 / min(left, _PARTS))
                size = self.search.optimum(rung.members, within)
                assignment = size.assignment or rung.assignment
                found[index] = replace(rung, movement=size.movement, assignment=assignment)
        for left, index in zip(range(len(found), 0, -1), order, strict=True):
            if index and self._may_continue(budget):
                rung, previous = found[index], found[index - 1].assignment
                self.progress(f"moves from {found[index - 1].members} to {rung.members} members")
                within = budget.part(1 / min(left, _PARTS))
                moves = self.search.moves_from(previous, rung.members, within)
                found[index] = replace(rung, moves_from_previous=moves)
        return found
