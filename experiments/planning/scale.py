"""Find the maximum load of a group by number of members."""

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml

from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.planning.identify_assignor import identify_assignor, runs_in_client
from kassay.experiments.planning.window_plan_check import headroom
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.assignors import NEWEST_ASSIGNORS
from kassay.reference.model.assignment import consumed_partitions, movement
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Protocol
from kassay.reference.model.group_remarks import condition, require_group
from kassay.reference.model.load_metrics import Measure, imbalance
from kassay.solver.capacity_planning import (
    Progress,
    Resizing,
    Sizing,
    load_by_member_count,
    members_needed,
)
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.solution import LevelValue, value_and_bound
from kassay.solver.solve import solve

_TEMPLATES = Path(__file__).parent / "templates"
_SHOWN = 40
"""Number of steps by default."""
_SCANNED = 40
"""Numbers of members above the optimum that are tried one by one for an assignor. The loads of
assignors can rise with the number of members. Larger numbers are found by bisection."""
_SCANNED_PARTITIONS = 20_000
"""Number of partitions that an assignor assigns at most, over all tried numbers of members."""
_NAME = re.compile(r"[^a-z0-9]+")
_MAX_NAME = 63
"""Maximum length of a Kubernetes name."""
Load = int | float
"""Load in the unit of the input; if speeds differ, of the fastest member."""


class OptimalLoad(NamedTuple):
    """Lowest possible maximum load, with a proven lower bound."""

    value: Load
    bound: Load


class BestLoad(NamedTuple):
    """Lowest maximum load that one of Kafka's assignors reaches."""

    name: str
    load: Load


class BestNumber(NamedTuple):
    """Smallest number of members with which one of Kafka's assignors meets the target load."""

    name: str
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStep:
    """Maximum loads of a group with one number of members.

    Parameters
    ----------
    optimum
        Minimum of the maximum load, or None if no assignment within the capacities was found.
    assignor
        Maximum load with the group's assignor, or None if it is unknown or fails.
    unserved
        Topics that lose their last subscriber.
    failure
        Reason why the group's known assignor has no load.
    load, is_useful
        Load with the group's assignor (if unknown: with the best of Kafka's), and whether it is
        lower than with all smaller numbers (above the current number: from the current one on).
    """

    members: int
    optimum: OptimalLoad | None
    assignor: Load | None
    best: BestLoad | None
    unserved: tuple[str, ...]
    failure: str | None = None
    load: Load | None = None
    is_useful: bool = False

    def record(self) -> dict[str, object]:
        """Convert the step to JSON."""
        record: dict[str, object] = {
            "members": self.members,
            "optimum": None if self.optimum is None else self.optimum._asdict(),
            "assignor": self.assignor,
            "best": None if self.best is None else self.best._asdict(),
            "useful": self.is_useful,
        }
        if self.unserved:
            record["topics_without_subscribers"] = list(self.unserved)
        if self.failure is not None:
            record["failure"] = self.failure
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededMembers:
    """Smallest numbers of members that keep the maximum load within a target.

    ``optimum`` is a sufficient number; its bound is the smallest one that is not proven too small.
    ``headroom`` is the factor by which a plan's peak load grows in the last cycle of windows.
    ``with_headroom`` is the number for the target divided by it. Both are None without two cycles.
    """

    maximum_load: Load
    optimum: LevelValue | None
    reason: str
    assignor: int | None = None
    best: BestNumber | None = None
    headroom: Fraction | None = None
    with_headroom: LevelValue | None = None

    def record(self) -> dict[str, object]:
        """Convert the numbers of members to JSON."""
        record: dict[str, object] = {
            "maximum_load": self.maximum_load,
            "optimum": None if self.optimum is None else self.optimum.value,
            "assignor": self.assignor,
            "best": None if self.best is None else self.best._asdict(),
        }
        if self.optimum is None:
            return record | {"reason": self.reason}
        record |= {"bound": self.optimum.bound}
        if self.headroom is not None:
            record["headroom"] = round(float(self.headroom), 4)
            record["with_headroom"] = value_and_bound(self.with_headroom)
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maximum loads of a group by number of members.

    ``more`` is the first useful number above the current number.
    """

    id: str | None
    current: int
    more: "MoreMembers"
    assignor: str | None
    steps: tuple[ScaleStep, ...]
    needed: NeededMembers | None

    def record(self) -> dict[str, object]:
        """Convert the result to JSON."""
        return {
            "id": self.id,
            "current": self.current,
            "members_that_help": self.more._asdict(),
            "assignor": self.assignor,
            "steps": [step.record() for step in self.steps],
            "needed": None if self.needed is None else self.needed.record(),
        }


class MoreMembers(NamedTuple):
    """Smallest number of members that lowers the maximum load, with its load and assignor."""

    value: int | None = None
    load: Load | None = None
    assignor: str | None = None


def more_members(group: Group, *, limits: SearchLimits = SearchLimits()) -> MoreMembers:
    """Find the smallest number of members that lowers the maximum load, if one is known."""
    try:
        resizing = Resizing.of(group)
    except InputError:
        return MoreMembers()
    own = identify_assignor(group).port
    return _ScaleSearch(resizing, own, SearchBudget.start(limits), lambda _: None).more_members()


def scale(
    group: Group,
    *,
    maximum_load: Load | None = None,
    first: int | None = None,
    last: int | None = None,
    assignor: str | None = None,
    like: str | None = None,
    allow_lag: bool = False,
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> Scale:
    """Find the maximum load of a group by number of members.

    Added members subscribe to all consumed topics; for smaller numbers, the last members leave.
    Each step has the maximum loads of the optimum, of the group's assignor, and of the best of
    Kafka's assignors. Assignors start from the current owners and run until the result is stable.

    Parameters
    ----------
    maximum_load
        Highest allowed load of a member, in the unit of the weights; if speeds differ, for the
        fastest member.
    first, last
        Smallest and largest number of members of the steps. By default 40 numbers around the
        current one, at most the number of consumed partitions.
    assignor
        The group's assignor: a port, or an assignor of an installed library. The default is the
        port of the assignor that the source of the group shows.
    like
        Id of the member with the subscription, capacity, speed and rack of added members.
        Required if speeds differ.
    allow_lag
        Accept weights that are lag.
    limits, seed
        As in `solve`; the limits apply to all numbers of members together.

    Raises
    ------
    UsageError
        If ``first`` is below 1 or above ``last``, or the maximum load is negative.
    InputError
        If ``like`` is not in the group, if members differ in speed and ``like`` is None, or if
        the weights are lag without ``allow_lag``.

    Examples
    --------
    >>> from kassay import Member, Topic
    >>> topics = tuple(Topic(name=name, partitions=3) for name in "tu")
    >>> group = Group(topics=topics, members=(Member(id="a", subscription=("t", "u")),))
    >>> found = scale(group, maximum_load=2, assignor="range")
    >>> [(step.members, step.optimum.value, step.assignor) for step in found.steps]
    [(1, 6, 6), (2, 3, 4), (3, 2, 2), (4, 2, 2), (5, 2, 2), (6, 1, 2)]
    >>> found.needed.optimum.value, found.needed.assignor
    (3, 3)
    """
    require_group(group)
    resizing = Resizing.of(group, like=like, allow_lag=allow_lag)
    if not group.members:
        raise InputError(f"{group.label} has no members; scale requires at least one member")
    first, last = _numbers(group, first, last)
    own = assignor or identify_assignor(group).port
    budget = SearchBudget.start(SearchLimits.of(limits), seed)
    search = _ScaleSearch(resizing, own, budget, progress)
    more, now = search.more_members(), search.used(len(group.members))
    needed = None if maximum_load is None else search.needed(maximum_load)
    steps, lowest, is_larger = list[ScaleStep](), math.inf, False
    for step in search.steps(range(first, last + 1)):
        if step.members > len(group.members) and now is not None and not is_larger:
            lowest, is_larger = resizing.shown(now[0]), True
        is_useful = step.load is not None and step.load < lowest and not step.unserved
        lowest = step.load if is_useful and step.load is not None else lowest
        steps.append(replace(step, is_useful=is_useful))
    return Scale(
        id=group.id,
        current=len(group.members),
        more=more,
        assignor=None if own is None else shown_name(own),
        steps=tuple(steps),
        needed=needed,
    )


def _numbers(group: Group, first: int | None, last: int | None) -> tuple[int, int]:
    current, partitions = len(group.members), int(consumed_partitions(group).sum())
    if first is None:
        first = 1 if last is not None else max(1, current - _SHOWN // 2 + 1)
    if last is None:
        last = max(first, min(first + _SHOWN - 1, max(partitions, current)))
    if not 1 <= first <= last:
        raise UsageError(f"first must be from 1 to last, got {first!r} and {last!r}")
    return first, last


@dataclass
class _ScaleSearch:
    """Loads of assignors by number of members."""

    resizing: Resizing
    own: str | None
    budget: SearchBudget
    progress: Progress
    known: dict[tuple[int, str], tuple[int, int, int] | None] = field(default_factory=dict)
    failures: dict[tuple[int, str], str] = field(default_factory=dict)

    @cached_property
    def assignors(self) -> list[str]:
        """Return Kafka's assignors in the order in which plans prefer them."""
        own = identify_assignor(self.resizing.group)
        is_broker = self.resizing.group.status.protocol is Protocol.CONSUMER
        order = (self.own, "sticky", "cooperative-sticky", "uniform", *NEWEST_ASSIGNORS)

        def change(name: str) -> tuple[object, ...]:
            is_classic = is_broker and runs_in_client(name)
            return name != self.own, not own.offers(name), is_classic, order.index(name)

        return sorted(NEWEST_ASSIGNORS, key=change)

    def more_members(self) -> MoreMembers:
        """Find the smallest number of members that lowers the maximum load, if one is known."""
        group, current = self.resizing.group, len(self.resizing.group.members)
        tried = min(_SCANNED, _SCANNED_PARTITIONS // max(1, group.partition_count))
        now = self.used(current) if tried and current else None
        if now is None:
            return MoreMembers()
        first = current + 1
        if group.window_count == 1 and group.has_equal_speeds:
            consumed = [one for one in group.topics if group.subscribers()[one.name]]
            if now[0] <= max((max(one.weights or (1,)) for one in consumed), default=0):
                return MoreMembers()
            # Fewer members have a higher mean load than the load that is to be lowered.
            first = max(first, -(-sum(one.total_weight for one in consumed) // (now[0] - 1)))
        found = ((number, self.used(number)) for number in range(first, first + tried))
        lower = ((number, one) for number, one in found if one and one[0] < now[0])
        for number, (load, name) in lower:
            return MoreMembers(number, self.resizing.shown(load), name)
        return MoreMembers()

    def used(self, number: int) -> tuple[int, str] | None:
        """Return the load with the group's assignor, or with the best one if it is unknown."""
        if self.own is None:
            return self._best(number)
        load = self.load(number, self.own)
        return None if load is None else (load, self.own)

    def steps(self, numbers: range) -> Iterator[ScaleStep]:
        """Yield the maximum loads for each number of members, until the search is stopped."""
        resizing, shown = self.resizing, self.resizing.shown
        optima = load_by_member_count(
            resizing,
            numbers,
            limits=self.budget.rest(),
            seed=self.budget.seed,
            progress=self.progress,
        )
        for number, optimum in optima.items():
            if self.budget.limits.is_stopped:
                return
            self.progress(f"assignors with {number} members")
            own = None if self.own is None else self.load(number, self.own)
            best = self._best(number, 0 if optimum is None else optimum.bound)
            used = own if self.own is not None else None if best is None else best[0]
            yield ScaleStep(
                members=number,
                optimum=None
                if optimum is None
                else OptimalLoad(shown(optimum.value), shown(optimum.bound)),
                assignor=None if own is None else shown(own),
                best=None if best is None else BestLoad(best[1], shown(best[0])),
                unserved=resizing.unserved(number),
                failure=None if self.own is None else self.failures.get((number, self.own)),
                load=None if used is None else shown(used),
            )

    def needed(self, maximum_load: Load) -> NeededMembers:
        """Find the smallest numbers of members that keep the maximum load within a target."""
        target = int(maximum_load * self.resizing.multiple // self.resizing.fastest)
        sizing, own = self._sizing(maximum_load), self.own
        least = sizing.needed
        found = NeededMembers(maximum_load=maximum_load, optimum=least, reason=sizing.reason)
        if least is None:
            return found
        if own is not None:
            number = self._first(least.bound, lambda at: self._keeps(at, [own], target))
            found = replace(found, assignor=number)
        members = self._first(least.bound, lambda at: self._keeps(at, self.assignors, target))
        best = None if members is None else self._best(members)
        if best is not None and members is not None:
            found = replace(found, best=BestNumber(best[1], members))
        limits, seed = self.budget.part(1 / 4).rest(), self.budget.seed
        ratio = headroom(
            self.resizing.resized(least.value),
            lambda part, _share: solve(part, limits=limits, seed=seed),
        )
        if ratio is None:
            return found
        return replace(
            found, headroom=ratio, with_headroom=self._sizing(maximum_load / ratio).needed
        )

    def _sizing(self, maximum_load: Load | Fraction) -> Sizing:
        return members_needed(
            self.resizing,
            makespan=int(maximum_load * self.resizing.multiple // self.resizing.fastest),
            limits=self.budget.part(1 / 2).rest(),
            seed=self.budget.seed,
            progress=self.progress,
        )

    def _first(self, start: int, is_enough: Callable[[int], bool]) -> int | None:
        """Return the smallest sufficient number of members, or None."""
        group = self.resizing.group
        most = len(group.members) + int(consumed_partitions(group).sum())
        scanned = range(start, min(start + _SCANNED, most) + 1)
        found = next(filter(is_enough, scanned), None)
        low, step = scanned[-1], _SCANNED
        while found is None and low < most and not self.budget.limits.is_stopped:
            high = min(low + step, most)
            if is_enough(high):
                return low + 1 + bisect_left(range(low + 1, high), True, key=is_enough)
            low, step = high, 2 * step
        return found

    def _keeps(self, number: int, assignors: Sequence[str], target: int) -> bool:
        if self.budget.limits.is_stopped or self.resizing.unserved(number):
            return False
        found = (self.load(number, assignor) for assignor in assignors)
        return any(load is not None and load <= target for load in found)

    def _best(self, number: int, bound: int = 0) -> tuple[int, str] | None:
        """Return the lowest load of Kafka's assignors, and the assignor that reaches it.

        Equal loads are compared by squares, and by moves if the group's assignor is not known.
        """
        best, group = None, self.resizing.group
        low, rest = divmod(group.partition_count, max(number, 1))
        counts = low**2 * (number - rest) + (low + 1) ** 2 * rest
        squares = (group.common_weight or 0) ** 2 * counts
        for name in self.assignors:
            found = self._result(number, name)
            if found is not None and (best is None or found < best[0]):
                best = (found, name)
            if best is not None and best[0][0] <= bound and best[0][1:] <= (squares, 0):
                break
        return None if best is None else (best[0][0], best[1])

    def load(self, number: int, assignor: str) -> int | None:
        """Return the maximum load of an assignor, or None if it has no valid assignment."""
        found = self._result(number, assignor)
        return None if found is None else found[0]

    def _result(self, number: int, assignor: str) -> tuple[int, int, int] | None:
        """Return the maximum load, sum of squares and moves, with 0 for values not compared."""
        key = (number, assignor)
        if key not in self.known:
            group = self.resizing.resized(number)
            result = run_until_stable(group, assignor)
            stable = result.assignment
            if stable is None:
                self.known[key] = None
                self.failures[key] = ": ".join(filter(None, [result.ending, result.detail]))
                return None
            has_squares = group.common_weight is not None and group.has_equal_speeds
            has_moves = self.own is None and number == len(self.resizing.group.members)
            self.known[key] = (
                self.resizing.max_load(group, stable),
                imbalance(group, stable, measure=Measure.SUM_OF_SQUARES) if has_squares else 0,
                movement(group, stable) if has_moves else 0,
            )
        return self.known[key]


class Autoscaler(StrEnum):
    """Kubernetes autoscaler for which kassay writes a manifest."""

    KEDA = "keda"
    HPA = "hpa"


def autoscaler_values(
    group: Group, found: Scale, autoscaler: Autoscaler, *, lag_threshold: int = 10
) -> str:
    """Return the YAML manifest of an autoscaler that uses the useful numbers of members.

    The numbers of replicas are limited to the first and the last useful number. KEDA also rounds
    the number up to the next useful one: its formula maps the lag to a number of replicas, with
    ``lag_threshold`` messages per replica. The HPA cannot round; a comment lists the numbers.
    Raise InputError if the group has no useful number of members.
    """
    useful = [(step.members, step.load) for step in found.steps if step.is_useful]
    if not useful:
        failure = next((step.failure for step in found.steps if step.failure is not None), None)
        raise InputError(
            f"{group.label}: no assignor assigns all topics with "
            f"{found.steps[0].members} to {found.steps[-1].members} members"
            + (f"; {found.assignor} {failure}" if failure else "")
        )
    name = _NAME.sub("-", (group.id or "").lower()).strip("-")[:_MAX_NAME].strip("-") or "group"
    templates = environment(_TEMPLATES, autoescape=False)
    templates.filters["yaml"] = _yaml_text
    return templates.get_template("autoscaler.yaml.j2").render(
        autoscaler=autoscaler,
        assumed=condition(group, with_racks=True),
        assignor=found.assignor or "the best of Kafka's assignors, as the own one is not known",
        useful=useful,
        name=name,
        group=group.id or "",
        topics=[topic for topic, members in group.subscribers().items() if members],
        first=useful[0][0],
        last=useful[-1][0],
        lag_threshold=lag_threshold,
    )


def _yaml_text(text: str) -> str:
    style = '"' if "\n" in text else None
    dumped = yaml.safe_dump(text, width=math.inf, allow_unicode=True, default_style=style)
    return dumped.removesuffix("\n").removesuffix("\n...")
