"""Minimum of the maximum load by number of members, and the members needed for a target."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import Imbalance, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.sizing.resized_groups import Resizing
from kassay.solver.solution import LevelValue, Status
from kassay.solver.solve import solve

Progress = Callable[[str], None]
"""Function that is called with the name of each step when the step starts."""
_SHARE = 8
"""Divisor of the work left, which gives the limit of the next decision on a number of members."""


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
    >>> from kassay.reference.model.group import Group, Member, Topic
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
            found[number] = _solve(resizing, number, within).makespan

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


class _Answer(NamedTuple):
    """Minimum of the maximum load in the common unit, or None if no assignment was found."""

    makespan: LevelValue | None
    is_infeasible: bool


def _solve(
    resizing: Resizing, number: int, budget: SearchBudget, up_to: int | None = None
) -> _Answer:
    """Minimise the maximum load of a number of members; one within ``up_to`` ends the search."""
    group = resizing.resized(number)
    factor = resizing.factor(group)
    tolerance = Tolerance(up_to=None if up_to is None else up_to // factor)
    level = Imbalance(Measure.MAKESPAN, tolerance)
    solution = solve(group, levels=(level,), limits=budget.rest(), seed=budget.seed)
    if solution.assignment is None:
        return _Answer(None, solution.status is Status.INFEASIBLE)
    found = solution.imbalance
    makespan = LevelValue(found.name, found.value * factor, found.bound * factor)
    return _Answer(makespan, is_infeasible=False)


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
    >>> from kassay.reference.model.group import Group, Member, Topic
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
    found = _solve(resizing, number, budget, up_to=target)
    if found.makespan is None:
        return False if found.is_infeasible else None
    if found.makespan.value <= target:
        return True
    return False if found.makespan.bound > target else None
