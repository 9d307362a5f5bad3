"""Number of members needed to keep the maximum load within a target."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.sizing.resized_groups import (
    check_sizing_weights,
    new_member,
    with_capacity,
    with_valid_ownership,
)
from kassay.solver.sizing.size_search import MemberCount, Progress, SizeSearch
from kassay.solver.solution import LevelValue

_SHARE = 8
"""Divisor of the time left, which gives the time limit of the next decision."""
_NEIGHBOURS_SHARE = 1 / 16
"""Share of the time limit for the makespans and moves of all numbers that were not requested."""


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
        The optimum for each requested number, ascending.
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
    sweep: Iterable[int] | None = None,
    allow_lag: bool = False,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
    progress: Progress = lambda _: None,
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
        Numbers of members to solve; by default the number needed, its neighbours and the current
        number, with a short search for few moves.
    allow_lag
        Accept weights that are lag. The result is the number of members that share the backlog.
    limits, seed
        As in `solve`. The time limit applies to all numbers of members together.
    progress
        Function that receives the name of each step of the search.

    Raises
    ------
    UsageError
        If not exactly one target is given, or a number is negative.
    InputError
        If ``like`` is not in the group, if the weights are lag without ``allow_lag``, or if
        members differ in speed and ``like`` is None.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=10),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> members_needed(group, makespan=3).needed
    LevelValue(name='members', value=4, bound=4, slack=0)
    """
    require_group(group)
    numbers = None if sweep is None else sorted(set(sweep))
    _check_numbers(makespan, capacity, numbers or [])
    check_sizing_weights(group, allow_lag=allow_lag)
    current = with_capacity(with_valid_ownership(group), capacity)
    added = new_member(current, like, capacity)
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    search = SizeSearch(current, added, makespan)
    return _MembersSearch(search, budget, progress).run(numbers)


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
class _MembersSearch:
    """Search for the number of members by bisection, then for the optima to show."""

    search: SizeSearch
    budget: SearchBudget
    progress: Progress

    def run(self, numbers: list[int] | None) -> Sizing:
        """Find the number of members needed, and solve the group for each requested number."""
        reason = self._why_never_enough()
        needed = None if reason else self._min_number()
        is_stopped = self.budget.limits.is_stopped
        if not reason and needed is None:
            cause = "search was interrupted" if is_stopped else "time limit was reached"
            reason = f"the {cause} before a sufficient number of members was found"
        if numbers is None:
            value = None if needed is None else needed.value
            near = () if value is None else (max(0, value - 1), value, value + 1)
            shown = dict.fromkeys((*near, len(self.search.current.members)))
        else:
            shown = dict.fromkeys(numbers)
        self._solve_all(list(shown), are_requested=numbers is not None)
        sizes = self.search.complete
        return Sizing(needed, reason, tuple(sizes[number] for number in sorted(sizes)))

    def _min_number(self) -> LevelValue | None:
        """Find the minimum sufficient number of members by doubling steps, then bisection."""
        group, added = self.search.current, self.search.added
        problem = build_problem(group)
        most = len(group.members) + problem.partition_count
        max_load = self.search.max_load((*group.members, added))
        bound = min(most, -(-problem.total // max_load)) if max_load else 0
        low, high, step = bound, bound, 1
        while not self.budget.limits.is_stopped and not self._is_enough(high):
            if high == most:
                return None
            low, high, step = high + 1, min(most, high + step), 2 * step
        while low < high and not self.budget.limits.is_stopped:
            middle = (low + high) // 2
            if self._is_enough(middle):
                high = middle
            else:
                low = middle + 1
        decided = self.search.decided.items()
        sufficient = [number for number, is_enough in decided if is_enough]
        refuted = (number + 1 for number, is_enough in decided if is_enough is False)
        if not sufficient:
            return None
        return LevelValue("members", min(sufficient), max(bound, *refuted, 0))

    def _is_enough(self, number: int) -> bool | None:
        self.progress(f"{number} members")
        return self.search.is_enough(number, self.budget.part(1 / _SHARE))

    def _solve_all(self, numbers: list[int], *, are_requested: bool) -> None:
        """Solve numbers of members; those that are not requested with a short time limit."""
        budget = self.budget
        if not are_requested:
            budget = budget.until(budget.limits.work * _NEIGHBOURS_SHARE)
            if self.search.current.is_weighted:
                current = len(self.search.current.members)
                self._solve(current, budget.part(1 / 2))
                numbers = [number for number in numbers if number != current]
        for index, number in enumerate(numbers):
            self._solve(number, budget.part(1 / (len(numbers) - index)))

    def _solve(self, number: int, budget: SearchBudget) -> None:
        """Find the makespan of a number in half of the time, then the fewest moves."""
        if not self.budget.limits.is_stopped:
            self.progress(f"moves to {number} members")
            self.search.lowest_makespan(number, budget.part(1 / 2))
            self.search.optimum(number, budget)

    def _why_never_enough(self) -> str:
        """Return the reason why no number of members can meet the target, otherwise an empty text.

        Partitions that an added member can have alone add no load to the other members.
        """
        group, added = self.search.current, self.search.added
        max_load = self.search.max_load((*group.members, added))
        limit = self.search.max_load((added,))
        if added.capacity is not None:
            limit = min(limit, added.capacity)
        left = []
        for topic in group.topics:
            weights = [topic.weight(p) for p in range(topic.partitions)]
            if topic.name in added.subscription:
                weights = [0 if weight <= limit else weight for weight in weights]
                greatest = max(weights, default=0)
                if greatest > max_load:
                    return f"{topic.name}-{weights.index(greatest)} alone has weight {greatest}"
            if any(weights) and group.subscribers()[topic.name]:
                left.append(replace(topic, weights=tuple(weights)))
        if not left:
            return ""
        best = self.search.optimum_of(
            replace(group, topics=tuple(left)), self.budget.part(1 / _SHARE)
        )
        if best.enough is not False:
            return ""
        names = ", ".join(repr(topic.name) for topic in left)
        load = "" if best.makespan is None else f", makespan at least {best.makespan.bound}"
        return f"added members do not consume {names}{load}"
