"""Numbers of members at which the maximum load of a group, and of each topic alone, drops."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from kassay.experiments.planning.scenarios.drain_time import Backlog
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.sizing.limiting_partition import limiting_partition
from kassay.solver.sizing.load_by_member_count import Ladder, Rung
from kassay.solver.solution import value_and_bound


def ladder_record(
    group: Group,
    find: Callable[..., Ladder],
    *,
    first: int,
    last: int | None,
    backlog: Backlog | None,
    limits: SearchLimits,
    seed: int,
    progress: Callable[[str], None],
) -> dict[str, object]:
    """Return the ladder of a group, and the numbers of members of each topic alone, as JSON.

    ``find`` is `load_by_member_count` with its options other than the limits and numbers.
    """
    budget = SearchBudget.start(limits, seed)
    # The ladder of the group gets half of the limits; the topics share the other half.
    found = find(group, first=first, last=last, limits=budget.part(1 / 2).rest())
    record = _record(group, found, backlog)
    limiting = limiting_partition(group, limits=budget.rest(), seed=seed)
    record["limiting_partition"] = None if limiting is None else limiting.record()
    topics, not_proven = {}, []
    alone = list(_topics_alone(group))
    has_all_numbers = first == 1 and last is None
    for index, (name, topic) in enumerate(alone):
        if limits.is_stopped:
            break
        rungs = found.rungs
        if len(alone) > 1 or not has_all_numbers:
            progress(f"topic {name}")
            within = budget.part(1 / (len(alone) - index)).rest()
            rungs = find(topic, with_moves=False, limits=within).rungs
        topics[name] = [rung.members for rung in rungs]
        if not all(rung.is_proven for rung in rungs):
            not_proven.append(name)
    return record | {"topics": topics, "topics_not_proven": not_proven}


def _topics_alone(group: Group) -> Iterator[tuple[str, Group]]:
    """Yield each consumed topic, and the group without all other topics."""
    subscribers = group.subscribers()
    for topic in group.topics:
        if subscribers[topic.name] and topic.partitions:
            yield topic.name, replace(group, topics=(topic,))


def _record(group: Group, found: Ladder, backlog: Backlog | None) -> dict[str, object]:
    current = len(group.members)
    wasted = [rung for rung in found.rungs if rung.members <= current <= rung.last]
    return {
        "id": group.id,
        "current": current,
        "from": found.first,
        "to": found.last,
        "wasted_members": current - wasted[0].members if wasted else None,
        "steps": [_step(rung, backlog) for rung in found.rungs],
    }


def _step(rung: Rung, backlog: Backlog | None) -> dict[str, object]:
    step: dict[str, object] = {
        "members": rung.members,
        "equal_up_to": rung.last,
        "makespan": value_and_bound(rung.makespan),
        "drop_proven": rung.is_proven,
        "movement": value_and_bound(rung.movement),
        "placed": rung.placed,
        "limiting_partition": rung.limiting_partition,
        "movement_from_previous": value_and_bound(rung.moves_from_previous),
    }
    if backlog is not None:
        seconds = backlog.drain_seconds(rung.group, rung.assignment)
        step["drain_seconds"] = None if seconds is None else math.ceil(seconds)
    return step
