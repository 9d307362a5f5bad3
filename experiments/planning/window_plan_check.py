"""Test on the last cycle of time windows whether a plan for earlier windows holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.planning.plan_result import unowned_partitions
from kassay.reference.model.assignment import Assignment, movement, rejoin
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import (
    Measure,
    load_profiles,
    measures,
    member_units,
    participants,
    shown,
)
from kassay.solver.counting_bounds import level_bound
from kassay.solver.objective import Imbalance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution

DAY, WEEK = 86_400, 604_800
"""Lengths of the default cycles in seconds."""
_MOST_ROWS, _MOST_COLUMNS = 40, 48
"""Maximum size of a drawing of loads per member and window."""
_MOST_DAYS, _SHARE, _EXCESS = 14, 0.1, 1.25
"""Maximum number of compared days, share of the work per further plan, and ratio of the peak to
its bound on the day before, above which one rule plans again (see results/traffic.md)."""
Search = Callable[[Group, float], Solution]
"""Function that plans a group within a share of the work of the plan."""


@dataclass(frozen=True, slots=True)
class Peak:
    """Maximum load of an assignment, with the member and time window where it occurs."""

    member: str
    window: str
    load: float


@dataclass(frozen=True, slots=True)
class PeakWindowPlan:
    """Plan for the time window with the highest total load."""

    window: str
    maximum_load: float
    moves: int


@dataclass(frozen=True, slots=True)
class PeakRatios:
    """Peak loads of an assignment in two cycles, divided by their lower bounds."""

    assignment: str
    planned: float
    tested: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOut:
    """Result of applying a plan for earlier cycles to the last cycle.

    ``planned`` and ``tested`` name the cycles. The plan is compared with the current assignment,
    or with that of range if no partition has an owner. On the last cycle, it must keep half of its
    improvement: a smaller improvement can be chance.
    """

    cycle_seconds: int
    planned: str
    tested: str
    is_better: bool
    ratios: tuple[PeakRatios, ...]


@dataclass(frozen=True, slots=True)
class Replanning:
    """Rule for the days of new plans, with the resulting moves and peak loads.

    ``ratio`` is the mean, over the days, of the daily peak divided by its lower bound.
    """

    dates: str
    moves: int
    maximum_load: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowAdvice:
    """Peak loads of a plan for time windows, and results of tests of the plan."""

    current: Peak
    planned: Peak
    peak_window: PeakWindowPlan | None
    hold_out: HoldOut | None
    replanning: tuple[Replanning, ...]

    @property
    def is_recommended(self) -> bool:
        """Return whether the plan passes its test on the last cycle, or has no test."""
        return self.hold_out is None or self.hold_out.is_better


def window_advice(
    group: Group, planned: Assignment, search: Search, *, cycle: int | None = None
) -> WindowAdvice | None:
    """Find the peak loads of a plan, and test plans on the last cycle.

    A plan without changes has no tests. See `cycle_windows` for ``cycle``. Return None for a group
    with one window, or without members.
    """
    size = cycle_windows(group, cycle)
    if group.window_count == 1 or not participants(group):
        return None
    alone, hold_out, dates = None, None, list[Replanning]()
    if movement(group, planned) or unowned_partitions(group):
        totals = build_problem(group).load_table.sum(axis=0).tolist()
        top = totals.index(max(totals))
        found = search(of_windows(group, slice(top, top + 1)), 1).assignment
        if found is not None:
            load = shown(Measure.MAKESPAN, measures(group, found)[Measure.MAKESPAN], group)
            alone = PeakWindowPlan(window_name(group, top), load, movement(group, found))
        if size is not None:
            hold_out = _hold_out(group, size, search)
            dates = _replannings(group, size, search)
    return WindowAdvice(
        current=peak(group, keep_owners(group)),
        planned=peak(group, planned),
        peak_window=alone,
        hold_out=hold_out,
        replanning=tuple(dates),
    )


def _hold_out(group: Group, size: int, search: Search) -> HoldOut | None:
    parts = [(part, search(part, 1)) for part in split_cycles(group, size)]
    by_range = run_until_stable(group, "range").assignment
    found = {"plan": parts[0][1].assignment, "current assignment": keep_owners(group)}
    if by_range is not None:
        found["range"] = by_range
    if not any(len(member.owned) for member in group.members):
        del found["current assignment"]
    ratios = {
        name: [peak_ratio(part, one, solution) for part, solution in parts]
        for name, one in found.items()
        if one is not None
    }
    is_for_peak = parts[0][1].levels[0].name == Measure.MAKESPAN
    if "plan" not in ratios or len(ratios) == 1 or not is_for_peak:
        return None
    plan, compared, *_ = ratios.values()
    learned, tested = (was - now for was, now in zip(compared, plan, strict=True))
    count, seconds = group.window_count // size, size * (group.windows.seconds or 1)
    name = {DAY: "day", WEEK: "week"}.get(seconds, "cycle")
    return HoldOut(
        cycle_seconds=seconds,
        planned=f"{name} 1" if count == 2 else f"{name}s 1 to {count - 1}",
        tested=f"{name} {count}",
        is_better=tested > 0 and 2 * tested >= learned,
        ratios=tuple(
            PeakRatios(name, *(round(float(one), 4) for one in pair))
            for name, pair in ratios.items()
        ),
    )


def _replannings(group: Group, size: int, search: Search) -> list[Replanning]:
    """Compare rules for the days of new plans, over all days after the first cycle.

    The last entry is one plan for all these days in hindsight, if its values are proven.
    """
    step = min(size, DAY // (group.windows.seconds or DAY) or 1)
    count = min((group.window_count - size) // step, _MOST_DAYS)
    first, start = group.window_count - count * step, keep_owners(group)
    starts = range(first - step, group.window_count, step)
    days = [of_windows(group, slice(begin, begin + step)) for begin in starts]
    rules: dict[str, Callable[[int, Fraction], bool]] = {
        "never": lambda _day, _ratio: False,
        "weekly" if count > WEEK // DAY else "once": lambda day, _ratio: day % (WEEK // DAY) == 0,
        "daily": lambda _day, _ratio: True,
        f"after days above {_EXCESS}": lambda _day, ratio: ratio > _EXCESS,
    }
    found = []

    def add(dates: str, moves: int, used: Sequence[Assignment]) -> None:
        ratios = [peak_ratio(part, one) for part, one in zip(days[1:], used, strict=True)]
        peaks = (
            window_loads(group, one)[:, begin : begin + step].max()
            for begin, one in zip(starts[1:], used, strict=True)
        )
        load = shown(Measure.MAKESPAN, int(max(peaks)), group)
        found.append(Replanning(dates, moves, load, round(float(sum(ratios) / count), 4)))

    for dates, is_due in rules.items():
        now, moves, used = start, 0, list[Assignment]()
        for day, end in enumerate(starts[1:]):
            if is_due(day, peak_ratio(days[day], now)):
                past = rejoin(of_windows(group, slice(end - size, end)), now)
                now = search(past, _SHARE).assignment or now
                moves += movement(past, now)
            used.append(now)
        add(dates, moves, used)
    hindsight = search(of_windows(group, slice(first, group.window_count)), 1)
    if hindsight.assignment and hindsight.imbalance.is_proven and hindsight.movement.is_proven:
        add("once, in hindsight", hindsight.movement.value, [hindsight.assignment] * count)
    return found


def cycle_windows(group: Group, cycle: int | None = None) -> int | None:
    """Return the number of time windows per cycle, or None without two cycles.

    ``cycle`` is its length in seconds. The default is a week if the windows cover two weeks, or a
    day if they cover two days. Raise UsageError if the windows do not cover two such cycles.
    """
    seconds, count = group.windows.seconds or 0, group.window_count
    for length in (WEEK, DAY) if cycle is None else (cycle,):
        if count > 1 and seconds and not length % seconds and 2 * length <= count * seconds:
            return length // seconds
    if cycle is None:
        return None
    known = f"{count_of(count, 'window')} of {seconds:,} seconds" if seconds else "no such windows"
    raise UsageError(
        f"{group.label}: a cycle of {cycle:,} seconds requires at least two cycles, each with a "
        f"whole number of windows, but the group has {known}"
    )


def split_cycles(group: Group, size: int) -> tuple[Group, Group]:
    """Split a group into earlier cycles and the last cycle."""
    end = group.window_count
    return of_windows(group, slice(end % size, end - size)), of_windows(group, slice(-size, end))


def of_windows(group: Group, part: slice) -> Group:
    """Copy a group, with only a part of its time windows."""
    topics = (
        one
        if one.profiles is None
        else replace(one, weights=None, profiles=tuple(row[part] for row in one.profiles))
        for one in group.topics
    )
    members = (
        replace(one, capacity=one.capacity[part]) if isinstance(one.capacity, tuple) else one
        for one in group.members
    )
    names, capacities = group.windows.names[part], group.windows.capacities
    windows = replace(group.windows, names=names, capacities=capacities and capacities[part])
    return replace(group, topics=tuple(topics), members=tuple(members), windows=windows)


def window_name(group: Group, window: int) -> str:
    """Return the name of a time window, or its number (from 1) if windows have no names."""
    return group.windows.names[window] if group.windows.names else str(window + 1)


def peak_ratio(group: Group, assignment: Assignment, solution: Solution | None = None) -> Fraction:
    """Divide the maximum load of an assignment by the lower bound for all assignments."""
    bound = level_bound(build_problem(group), Imbalance(Measure.MAKESPAN))
    if solution is not None and solution.imbalance.name == Measure.MAKESPAN:
        bound = max(bound, solution.imbalance.bound)
    return Fraction(measures(group, assignment)[Measure.MAKESPAN], max(bound, 1))


def window_loads(group: Group, assignment: Assignment) -> Any:
    """Return relative loads as an array with a row per member and a column per window."""
    speeds = np.array(member_units(group).factors, dtype=object)
    windows = np.array(group.window_factors, dtype=object)
    return np.array(load_profiles(group, assignment), dtype=object) * windows * speeds[:, None]


def peak(group: Group, assignment: Assignment) -> Peak:
    """Return the maximum load of an assignment with its member and time window."""
    table = window_loads(group, assignment)
    row, window = divmod(int(table.argmax()), group.window_count)
    load = shown(Measure.MAKESPAN, int(table[row, window]), group)
    return Peak(participants(group)[row], window_name(group, window), load)


def drawn_loads(group: Group, current: Assignment, planned: Assignment) -> dict[str, Any]:
    """Return the loads that a page draws, relative to the speeds and capacities.

    ``rows`` has one row per member with a high peak: for each time of the day, in at most
    `_MOST_COLUMNS` columns, the maximum load over all days, for each assignment. ``lines`` has
    for each assignment the member with the peak, and the member's loads on the day of the peak.
    """
    count, seconds = group.window_count, group.windows.seconds or DAY
    day = min(count, DAY // seconds) if seconds < DAY else count
    width = -(-day // _MOST_COLUMNS)
    times = np.arange(count) % day // width
    tables = [window_loads(group, one) for one in (current, planned)]
    folded = [np.array([one[:, times == n].max(axis=1) for n in set(times)]).T for one in tables]
    peaks = (np.maximum(*tables).max(axis=1) * -1).argsort(kind="stable")[:_MOST_ROWS].tolist()
    members, lines = participants(group), []
    peaks.sort(key=lambda row: (-tables[0][row].max(), members[row]))  # as the table of loads
    for table in tables:
        row, at = divmod(int(table.argmax()), count)
        begin = at - at % day
        lines.append((members[row], table[row, begin : begin + day].tolist()))
    return {
        "rows": [(members[row], *(one[row].tolist() for one in folded)) for row in peaks],
        "hidden": len(members) - len(peaks),
        "times": [window_name(group, at).rpartition(" ")[2] for at in range(0, day, width)],
        "lines": lines,
        "is_folded": day < count,
    }


def headroom(group: Group, search: Search) -> Fraction | None:
    """Return the factor by which a plan's peak load grows in the last cycle, at least 1.

    The plan is for the cycles before the last one. Return None without two cycles of windows.
    """
    size = cycle_windows(group)
    plan = None if size is None else search(split_cycles(group, size)[0], 1).assignment
    if size is None or plan is None:
        return None
    peaks = window_loads(group, plan).max(axis=0).tolist()
    before, last = peaks[len(peaks) % size : -size], peaks[-size:]
    return max(Fraction(1), Fraction(max(last), max(1, *before)))
