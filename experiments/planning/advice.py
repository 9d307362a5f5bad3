"""Verdict and cheapest effective actions of a plan, as sentences for people."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kassay.experiments.implementations.convergence import Ending, run_until_stable
from kassay.experiments.planning.assignor_outcomes import assignment_metrics
from kassay.experiments.planning.own_assignor import Implementation, own_assignor, runs_in_client
from kassay.experiments.planning.plan import Plan
from kassay.experiments.planning.plan_options import RECOMMENDED
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, movement
from kassay.reference.model.topic_partitions import NO_PARTITIONS
from kassay.reference.model.weight_source import WeightSource
from kassay.solver.solution import LevelValue

_STICKY = ("sticky", "cooperative-sticky", "uniform")
_RESTARTED = 3
"""Number of members, those with the highest loads, of which a restart is tried."""
_EXCESS = 5
"""An action is effective if its maximum load exceeds the planned one by at most 1/20."""
_UNEVEN = 6
"""More partitions are advised if the maximum load exceeds the mean by more than 1/6."""

_WEIGHTS = {
    WeightSource.LAG: "loads are sums of lag, in messages. Lag is a backlog, not a load: this plan "
    "spreads the backlog",
    WeightSource.RATE: "loads are sums of rates, in messages appended between two samples. The "
    "rate is the load of consumers that read new records",
    WeightSource.SIZE: "loads are sums of sizes, in bytes on disk of the largest replica. Size is "
    "the load of consumers that read topics from the beginning; use rates for consumers that read "
    "new records",
    WeightSource.FILE: "loads are sums of the weights in the given file or table",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAction:
    """Something that a person can do, with the maximum load and the moves that follow."""

    text: str
    makespan: int | None
    moves: int | None


def verdict(plan: Plan) -> str:
    """State in one sentence whether the plan is worth its moves."""
    before, after = plan.current.makespan, plan.planned.makespan
    if not plan.moves:
        return f"Nothing to do: {_unchanged(plan)}."
    placed = len(plan.moves) - plan.movement
    parts = []
    if plan.movement:
        parts.append(_count(plan.movement, "move"))
    if placed:
        parts.append(f"{_count(placed, 'partition')} without an owner")
    gain = f" ({(after - before) / before:+.0%})" if before and after != before else ""
    change = (
        f"lower the maximum load from {before:,} to {after:,}{gain}"
        if after < before
        else f"keep the maximum load at {after:,} and even out the other loads"
        if after == before
        else f"give a maximum load of {after:,}"
    )
    return f"{' and '.join(parts)} {change}; {quality(plan)}."


def quality(plan: Plan) -> str:
    """State how far the planned maximum load is from the minimum."""
    bound = plan.makespan.bound
    if plan.makespan.gap == 0:
        return "the maximum load is the proven minimum"
    if not bound:
        return "the minimum is not known"
    return f"that is at most {plan.makespan.gap / bound:.1%} above the minimum"


def _unchanged(plan: Plan) -> str:
    tolerance = next((level.tolerance for level in plan.levels if level.tolerance), None)
    if plan.solution.status != "optimal":
        return "no better assignment was found; optimality is not proven"
    if tolerance is not None:
        share = f"{float(tolerance.relative):.0%}"
        return f"the current assignment is within {share} of the minimum imbalance, with proof"
    return "the current assignment is optimal, with proof"


def actions(plan: Plan) -> list[RecommendedAction]:
    """Return the effective actions, those with the fewest moves first."""
    found = [
        *_assignor_changes(plan),
        *_restarts(plan),
        *_further_partitions(plan),
    ]
    effective = [one for one in found if one.makespan is None or _is_effective(plan, one.makespan)]
    return sorted(effective, key=lambda one: (one.moves is None, one.moves or 0))


def _is_effective(plan: Plan, makespan: int) -> bool:
    planned = plan.planned.makespan
    return makespan < plan.current.makespan and makespan <= planned + planned // (4 * _EXCESS)


def _assignor_changes(plan: Plan) -> Iterator[RecommendedAction]:
    own = own_assignor(plan.group)
    is_other = own.implementation is Implementation.OTHER
    for outcome in plan.assignor_outcomes:
        name = outcome.assignor
        if outcome.metrics is None or outcome.movement is None or not own.offers(name):
            continue
        if name != own.name:
            text = f"switch the assignor to {name}"
        elif is_other:
            continue
        else:
            text = f"trigger a rebalance: {name} then balances the group"
        origin = f"computed with the {name} of Java, " if is_other and runs_in_client(name) else ""
        yield RecommendedAction(
            text=f"{text} ({origin}{_count(outcome.movement, 'move')}, maximum load "
            f"{outcome.metrics.makespan:,})",
            makespan=outcome.metrics.makespan,
            moves=outcome.movement,
        )


def _restarts(plan: Plan) -> Iterator[RecommendedAction]:
    """Try the restart of the members with the highest loads, if the group's assignor is ported."""
    assignor = own_assignor(plan.group)
    own = assignor.port
    if own not in _STICKY or assignor.implementation is Implementation.OTHER:
        return
    hot = sorted(plan.current.loads.items(), key=lambda item: -item[1])[:_RESTARTED]
    for member, _ in hot:
        group = _after_restart(plan.group, member)
        stable = run_until_stable(group, own)
        if stable.ending is not Ending.OK or stable.assignment is None:
            continue
        makespan = assignment_metrics(group, stable.assignment).makespan
        moves = movement(plan.group, stable.assignment)
        yield RecommendedAction(
            text=f"restart {member}, so that {own} redistributes its partitions "
            f"({_count(moves, 'move')}, maximum load {makespan:,})",
            makespan=makespan,
            moves=moves,
        )


def _after_restart(group: Group, member: str) -> Group:
    members = tuple(
        replace(one, owned=NO_PARTITIONS) if one.id == member else one for one in group.members
    )
    return replace(group, members=members)


def _further_partitions(plan: Plan) -> Iterator[RecommendedAction]:
    """Advise more partitions if the minimum maximum load is far above the mean load."""
    members, total = len(plan.planned.loads), sum(plan.planned.loads.values())
    uneven = plan.makespan.bound * members
    if plan.group.is_weighted or not total or uneven <= total + total // _UNEVEN:
        return
    topic = max(plan.group.topics, key=lambda one: (one.partitions, one.name))
    more = plan.makespan.bound * members - total
    yield RecommendedAction(
        text=f"give topic {topic.name} {_count(more, 'more partition')}: every member then has "
        f"{plan.makespan.bound:,} partitions (keys move between partitions)",
        makespan=None,
        moves=None,
    )


def option_summary(plan: Plan) -> Iterator[str]:
    """Yield one line per option of the plan."""
    for option in plan.options:
        name = "this plan" if option.name == RECOMMENDED else option.name
        measure = (
            f"maximum load {option.imbalance.value:,}"
            if option.imbalance.name == Measure.MAKESPAN
            else f"maximum load {option.metrics.makespan:,}, "
            f"{option.imbalance.name.replace('_', ' ')} {option.imbalance.value:,}"
        )
        yield (
            f"{name}: {_count(option.movement.value, 'move')} ({bound_text(option.movement)}), "
            f"{measure} ({bound_text(option.imbalance)})"
        )


def bound_text(level: LevelValue | None) -> str:
    """State whether a value is proven, else its lower bound."""
    if level is None:
        return "not found within the time limit"
    return "proven" if level.gap == 0 else f"lower bound {level.bound:,}"


def not_considered(plan: Plan) -> list[str]:
    """Return objectives that the plan ignores although the group has the data for them."""
    names = {level.name for level in plan.levels}
    ignored = []
    if plan.racks is not None and "cross_rack" not in names and plan.racks.current:
        ignored.append(
            f"racks: {plan.racks.current:,} of {plan.group.partition_count:,} partitions are read "
            f"across racks now, {plan.racks.planned:,} in this plan; consider them with --racks"
        )
    if len(plan.group.topics) > 1 and "topic_spread" not in names:
        ignored.append(
            "spread of each topic over its members; consider it with --level topic_spread"
        )
    return ignored


def weight_text(plan: Plan) -> str:
    """State the unit of the loads, and the weights that the source of the group shows."""
    group = plan.group
    if group.weight_source is not None:
        text = _WEIGHTS[group.weight_source]
    elif group.common_weight != 1:
        text = "loads are sums of partition weights; the source does not name their quantity"
    else:
        text = (
            "loads are numbers of partitions: every partition counts 1. Use rates (--weights rate "
            "at import) if partitions differ in traffic, sizes if consumers reprocess whole "
            "topics. Lag is a backlog, not a load: use it only to spread an existing backlog"
        )
    others = [f"--weights {one}" for one in group.available_weights if one != group.weight_source]
    if not others:
        return text
    return f"{text}. The source of the group allows {' and '.join(others)} at import"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
