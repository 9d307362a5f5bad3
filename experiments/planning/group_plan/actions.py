"""Recommended manual actions that balance a group, such as a restart of a member."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kassay.experiments.implementations.convergence import Ending, run_until_stable
from kassay.experiments.implementations.library_catalogue import is_library_assignor
from kassay.experiments.planning.group_plan.assignor_outcomes import (
    AssignmentMetrics,
    AssignorOutcome,
    assignment_metrics,
)
from kassay.experiments.planning.preparation.identify_assignor import (
    Implementation,
    identify_assignor,
    runs_in_client,
)
from kassay.experiments.planning.preparation.plan_verdict import count_of
from kassay.reference.assignors import ASSIGNORS, Goal, Release
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import movement
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.solver.solution import LevelValue

_FEW_MOVES = frozenset(
    name
    for name, port in ASSIGNORS.items()
    if port.goal is Goal.BALANCE_AND_FEW_MOVES and port.release is Release.NEWEST
)
_RESTARTED = 3
"""Number of members whose restart is evaluated: those with the highest loads."""
_EXCESS = 20
"""An action is effective if its maximum load exceeds the planned maximum by at most 1/20."""
_UNEVEN = 6
"""More partitions are recommended if the maximum load exceeds the mean by more than 1/6."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAction:
    """Recommended manual action, with the resulting maximum loads and number of moves.

    ``host_makespan`` is the maximum relative load of the hosts.
    """

    text: str
    makespan: int | None
    moves: int | None
    host_makespan: int | None = None


def effective_actions(
    group: Group,
    *,
    current: AssignmentMetrics,
    planned: AssignmentMetrics,
    makespan: LevelValue,
    outcomes: Sequence[AssignorOutcome],
    by_host: bool = False,
) -> tuple[RecommendedAction, ...]:
    """Find manual actions that balance a group, those with the fewest moves first.

    Parameters
    ----------
    makespan
        Maximum load of the planned assignment, and a lower bound on the maximum load.
    outcomes
        Results of Kafka's assignors for the group.
    by_host
        Whether an action must also lower the maximum load of the hosts to that of the plan.
    """
    found = [
        *_assignor_changes(group, outcomes),
        *_restarts(group, current),
        *_further_partitions(group, planned, makespan),
    ]
    effective = [one for one in found if _is_effective(one, current, planned, by_host=by_host)]
    return tuple(sorted(effective, key=lambda one: (one.moves is None, one.moves or 0)))


def _is_effective(
    action: RecommendedAction,
    current: AssignmentMetrics,
    planned: AssignmentMetrics,
    *,
    by_host: bool,
) -> bool:
    """Return whether an action lowers a maximum load, and almost reaches those of the plan."""
    loads = [(action.makespan, current.makespan, planned.makespan)]
    if by_host:
        loads.append((action.host_makespan, current.host_makespan, planned.host_makespan))
    known = [(load, before, after) for load, before, after in loads if load is not None]
    is_near = all(load <= after + after // _EXCESS for load, _, after in known)
    return is_near and (not known or any(load < before for load, before, _ in known))


def _assignor_changes(
    group: Group, outcomes: Sequence[AssignorOutcome]
) -> Iterator[RecommendedAction]:
    own = identify_assignor(group)
    is_other = own.implementation is Implementation.OTHER
    has_client = any(is_library_assignor(one.assignor) for one in outcomes)
    for outcome in outcomes:
        if outcome.metrics is None or outcome.movement is None:
            continue
        origin, of_library, name = "", "", outcome.assignor
        if is_library_assignor(name):
            library, _, name = name.partition(":")
            of_library = f" of {library}"
        elif ASSIGNORS[name].release is not Release.NEWEST or not own.offers(name):
            continue
        elif runs_in_client(name) and has_client:
            continue  # The results of the library itself replace those of the ports.
        elif is_other:
            if name == own.name:
                continue
            origin = f"computed with the {name} of Java, " if runs_in_client(name) else ""
        if name == own.name:
            text = f"trigger a rebalance: {name}{of_library} then balances the group"
        else:
            text = f"switch the assignor to {name}{of_library}"
        yield _change_to(text, outcome.metrics, outcome.movement, origin)


def _change_to(
    text: str, metrics: AssignmentMetrics, moves: int, origin: str = ""
) -> RecommendedAction:
    result = f"{origin}{count_of(moves, 'move')}, maximum load {metrics.makespan:,}"
    return RecommendedAction(
        text=f"{text} ({result})",
        makespan=metrics.makespan,
        moves=moves,
        host_makespan=metrics.host_makespan,
    )


def _restarts(group: Group, current: AssignmentMetrics) -> Iterator[RecommendedAction]:
    """Evaluate a restart of each of the members with the highest loads."""
    assignor = identify_assignor(group)
    own = assignor.port
    if own not in _FEW_MOVES or assignor.implementation is Implementation.OTHER:
        return
    hot = sorted(current.loads.items(), key=lambda item: -item[1])[:_RESTARTED]
    for member, _ in hot:
        restarted = _after_restart(group, member)
        stable = run_until_stable(restarted, own)
        if stable.ending is not Ending.OK or stable.assignment is None:
            continue
        yield _change_to(
            f"restart {member}, so that {own} redistributes its partitions",
            assignment_metrics(restarted, stable.assignment),
            movement(group, stable.assignment),
        )


def _after_restart(group: Group, member: str) -> Group:
    members = tuple(
        replace(one, owned=NO_PARTITIONS) if one.id == member else one for one in group.members
    )
    return replace(group, members=members)


def _further_partitions(
    group: Group, planned: AssignmentMetrics, makespan: LevelValue
) -> Iterator[RecommendedAction]:
    """Recommend more partitions for a topic if the minimum makespan is far above the mean load.

    All members with less than the maximum load must subscribe to the topic: then each new
    partition of the topic goes to such a member, and no partition moves.
    """
    loads, maximum = planned.loads, makespan.value
    total = sum(loads.values())
    more = maximum * len(loads) - total
    if group.common_weight != 1 or makespan.gap or not total or more <= total // _UNEVEN:
        return
    light = [one for one in group.members if loads.get(one.id, maximum) < maximum]
    topics = [t for t in group.topics if all(t.name in one.subscription for one in light)]
    if not topics:
        return
    topic = max(topics, key=lambda one: (one.partitions, one.name))
    yield RecommendedAction(
        text=f"give topic {topic.name} {count_of(more, 'more partition')}: every member then has "
        f"{maximum:,} partitions (keys move between partitions)",
        makespan=None,
        moves=None,
    )
