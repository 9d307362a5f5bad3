"""Racks: who reads what from its own rack, and the least that must be read across."""

from collections import Counter
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.topic_partitions import TopicPartition
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Imbalance, Measure
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

ASIDE_SECONDS = 5.0
"""So long may it take to find the least number of partitions read across racks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackSummary:
    """One rack, and what its members read.

    Parameters
    ----------
    name
        Its name; None for the members that name none.
    members
        How many of the group's members are in it.
    partitions
        How many partitions have a replica in it.
    today, then
        How many partitions its members read, before and after.
    """

    name: str | None
    members: int
    partitions: int
    today: int
    then: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLocality:
    """The racks of a group.

    Parameters
    ----------
    racks
        One after the other by name; members without a rack last.
    today, then
        Partitions read across racks, before and after; see `across_racks`.
    least
        The least possible while loads are as well balanced as the plan makes them,
        whatever it takes to move; None where that was not found in time.
    """

    racks: tuple[RackSummary, ...]
    today: int
    then: int
    least: LevelValue | None


def has_racks(group: Group) -> bool:
    """Whether the racks of any member and of any replica are known."""
    return any(member.rack is not None for member in group.members) and any(
        rack is not None for topic in group.topics for held in topic.racks or () for rack in held
    )


def across_racks(group: Group, assignment: Assignment) -> int | None:
    """Count the partitions whose member is in a known rack that holds no replica of them.

    Partitions without any known rack and members without a rack never count. None for a
    group without racks.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2, racks=(("a",), ("b",))),),
    ...     members=(Member(id="c", subscription=("t",), rack="a"),),
    ... )
    >>> across_racks(group, Assignment({"c": [("t", 0), ("t", 1)]}))
    1
    """
    if not has_racks(group):
        return None
    held = _replicas(group)
    return sum(
        member.rack not in held[tp]
        for member in group.members
        if member.rack is not None and member.id in assignment
        for tp in assignment[member.id]
        if tp in held
    )


def compare_racks(
    group: Group, today: Assignment, optimum: Solution, *, limits: SearchLimits, seed: int
) -> RackLocality | None:
    """Say what is read across racks today, then, and at least; None without racks."""
    crossing, then = across_racks(group, today), optimum.assignment
    if crossing is None or then is None:
        return None
    return RackLocality(
        racks=_racks(group, today, then),
        today=crossing,
        then=across_racks(group, then) or 0,
        least=_least(group, optimum, limits, seed),
    )


def _racks(group: Group, today: Assignment, then: Assignment) -> tuple[RackSummary, ...]:
    members = Counter(member.rack for member in group.members)
    partitions: Counter[str | None] = Counter(
        rack for racks in _replicas(group).values() for rack in racks
    )
    before, after = _reads(group, today), _reads(group, then)
    return tuple(
        RackSummary(
            name=name,
            members=members[name],
            partitions=partitions[name],
            today=before[name],
            then=after[name],
        )
        for name in sorted({*members, *partitions}, key=lambda name: (name is None, name or ""))
    )


def _replicas(group: Group) -> dict[TopicPartition, frozenset[str]]:
    """Return the known racks of each partition that has any."""
    return {
        TopicPartition(topic.name, number): frozenset(known)
        for topic in group.topics
        for number, racks in enumerate(topic.racks or ())
        if (known := [rack for rack in racks if rack is not None])
    }


def _reads(group: Group, assignment: Assignment) -> Counter[str | None]:
    reads: Counter[str | None] = Counter()
    for member in group.members:
        reads[member.rack] += len(assignment.get(member.id, ()))
    return reads


def _least(group: Group, optimum: Solution, limits: SearchLimits, seed: int) -> LevelValue | None:
    found = solve(
        group,
        levels=(Imbalance(measure=Measure(optimum.imbalance.name)), CrossRack()),
        initial_assignment=optimum.assignment,
        limits=replace(limits, time=min(limits.time, ASIDE_SECONDS)),
        seed=seed,
    )
    # The second level speaks of assignments with the value of the first alone.
    if found.assignment is None or found.imbalance.value != optimum.imbalance.value:
        return None
    return found.level(CrossRack.name)
