"""Find the cause of the imbalance of a group: each kind of cause has a test.

A cause is reported only if its test holds for the group. The imbalance above an even division has
two parts: the plan avoids one, and no assignment of the group avoids the other. The larger part
decides which tests come first. A balanced group has no cause.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kassay.experiments.implementations.client_libraries import is_library_assignor
from kassay.experiments.implementations.run_assignor import Ending, run_until_stable
from kassay.experiments.planning.assignor_outcomes import AssignorOutcome
from kassay.experiments.planning.cause_evidence import (
    CIRCULAR,
    RANGES,
    Cause,
    CauseKind,
    Evidence,
    topic_counts,
    worst_share,
)
from kassay.experiments.planning.identify_assignor import Implementation
from kassay.experiments.planning.moves import move_steps, schedule_moves
from kassay.experiments.planning.plan_result import unowned_partitions, unowned_text
from kassay.reference.assignors import ASSIGNORS, NEWEST_ASSIGNORS, Goal, kafka_name
from kassay.reference.model import load_metrics as metrics
from kassay.reference.model.assignment import Assignment, ownership
from kassay.reference.model.display import count_of
from kassay.reference.model.group import Assumed, Group
from kassay.reference.model.group_remarks import assignor_caveat, has_target
from kassay.solver.capacity_planning import LimitingPartition
from kassay.solver.counting_bounds import level_bound
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Imbalance, Level, TopicSpread
from kassay.solver.problem import build_problem
from kassay.solver.solve import solve

_NOTABLE = 7, 6
"""Ratio of a load to the mean load, as a fraction, from which a cause names the load."""
_RACK_WORK = 2.0
"""Maximum work of the search that compares the imbalance with the reads across racks."""


def find_cause(
    group: Group,
    planned: Assignment,
    *,
    levels: Sequence[Level] = (),
    limiting: LimitingPartition | None = None,
    outcomes: Sequence[AssignorOutcome] = (),
    limits: SearchLimits = SearchLimits(),
) -> Cause | None:
    """Find the cause of the imbalance of a group, or return None.

    If the spread of topics is the first of the levels, the cause is one of this spread.
    """
    if not any(len(one.owned) for one in group.members):
        unowned = sum(map(len, unowned_partitions(group).values()))
        why = "No partition has an owner: the group has no assignment."
        return Cause(CauseKind.NO_OWNER, why) if unowned else None
    given = Evidence(group, planned, tuple(levels), limiting, tuple(outcomes), limits)
    for kind, test in _rules(given):
        text = test(given)
        if text is not None:
            is_slight = given.is_slight and any(kind is one for one, _ in _BY_ASSIGNOR)
            return Cause(kind, text, is_slight)
    return None


def _rules(given: Evidence) -> Iterable["_Rule"]:
    """Return the kinds of causes to test, each with its test, in the order of the tests."""
    now, then = given.value(given.current), given.value(given.planned)
    has_gap = then < now or given.unowned > 0
    first = _ALWAYS if has_gap else ()
    if given.levels and isinstance(given.levels[0], TopicSpread):
        first = (*first, _TOPICS_IGNORED)
    by_assignor = _BY_ASSIGNOR if then < now else ()
    is_unavoidable = then - given.ideal > max(0, now - then)
    if is_unavoidable or not has_gap:
        return (*first, *_UNAVOIDABLE, *by_assignor)
    return (*first, *by_assignor)


def _failed_assignor(given: Evidence) -> str | None:
    own = given.own.name
    if own is None:
        return None
    name, ending, detail = own, "", ""
    for outcome in given.outcomes:
        library, _, assignor = outcome.assignor.rpartition(":")
        if assignor == own and is_library_assignor(outcome.assignor):
            name, ending = f"{own} of {library}", outcome.ending
            detail = outcome.detail or ""
    is_other = given.own.implementation is Implementation.OTHER
    if not ending and given.own.port and not is_other and not given.is_large:
        stable = run_until_stable(given.group, given.own.port)
        ending, detail = str(stable.ending), stable.detail or ""
    if ending in ("", Ending.OK):
        return None
    fails = {
        Ending.NONTERMINATING: "does not end for this group",
        Ending.INVALID: "gives an invalid assignment for this group",
    }
    text = f"The group's own assignor {name} {fails.get(Ending(ending), 'fails for this group')}"
    reason = f" ({' '.join(detail.split())})" if detail else ""
    return f"{text}{reason}."


def _library_claims(given: Evidence) -> str | None:
    if given.has_even_counts and not given.unowned:
        return None
    contested = ownership(given.group).contested
    if contested:
        _, topic, number, _ = contested[0]
        claims = [one for one in given.group.members if (topic, number) in one.owned]
        first, other = sorted(claims, key=lambda one: -one.generation)[:2]
        return (
            f"{first.id} and {other.id} both claim {topic}-{number} in one generation: the claims "
            "of a client library are wrong, and assignors ignore such claims."
        )
    names = given.own.libraries
    goal = ASSIGNORS[given.port].goal if given.port is not None else None
    is_client = given.own.implementation is Implementation.OTHER
    if len(names) < 2 or not is_client or goal is not Goal.BALANCE_AND_FEW_MOVES:
        return None
    return (
        f"The members use {' and '.join(names)}: the leader of one library cannot rely on the "
        f"owned partitions that {given.name} of another library claims."
    )


def _incomplete_rebalance(given: Evidence) -> str | None:
    if not given.group.status.is_rebalancing and not has_target(given.group):
        return None
    state = given.group.status.state or "Reconciling"
    return f"A rebalance is not complete (state {state}): the loads change without any action."


def _partitions_without_owner(given: Evidence) -> str | None:
    return f"{unowned_text(given.unowned)}." if given.unowned else None


def _heavy_partition(given: Evidence) -> str | None:
    found, (over, under) = given.limiting, _NOTABLE
    if found is None or found.weight * found.members * under < over * found.total:
        return None
    ratio = found.weight * found.members / found.total
    return (
        f"Partition {found.topic}-{found.partition} alone carries {found.weight:,}, "
        f"{ratio:.1f} times the mean load of a member, and no assignor can split it."
    )


def _limited_members(given: Evidence) -> str | None:
    group, (over, under) = given.group, _NOTABLE
    if not group.has_equal_speeds:
        return None
    held = dict.fromkeys((one.id for one in group.members), 0) | metrics.loads(group, given.planned)
    total, high = sum(held.values()), max(held.values())
    topics = {topic: len(found) for topic, found in given.topics.items()}
    limited = [
        one
        for one in group.members
        if held[one.id] * len(held) < total
        and Assumed.TOPICS not in one.assumed
        and any(topic not in one.subscription for topic in topics)
    ]
    if not limited or not total:
        return None
    free = replace(group, members=tuple(replace(one, capacity=None) for one in group.members))
    if group.is_weighted:
        bound = level_bound(build_problem(free), Imbalance(metrics.Measure.MAKESPAN))
        heaviest = 0 if given.limiting is None else given.limiting.weight
        is_uneven = bound * len(held) * under > over * total and bound > heaviest
    else:
        # Subscriptions are the reason only if the loads are as uneven without any constraint.
        best = solve(free, limits=given.limits).assignment
        is_uneven = best is not None and high - min(held.values()) > max(
            group.common_weight or 1, 1
        )
        is_uneven = is_uneven and given.value(best or given.planned) == given.value(given.planned)
    if not is_uneven:
        return None
    first = min(limited, key=lambda one: (held[one.id], one.id))
    mine = [topic for topic in topics if topic in first.subscription]
    what = f"only {len(mine)} of {len(topics)} topics" if mine else "none of the topics"
    loaded = max(held, key=lambda one: held[one])
    few = min(topics.keys() & set(given.planned[loaded].topics), key=lambda one: (topics[one], one))
    return (
        f"{first.id} consumes {what} (its pattern, ACL or subscription). {loaded} has {high:,}: "
        f"its topic {few} has {count_of(topics[few], 'subscriber')}."
    )


def _surplus_members(given: Evidence) -> str | None:
    count = sum(given.counts.values())
    surplus = len(given.group.members) - count
    if surplus <= 0 or not count:
        return None
    verb = "stays" if surplus == 1 else "stay"
    return (
        f"The group has {count_of(len(given.group.members), 'member')} and only "
        f"{count_of(count, 'partition')}: {count_of(surplus, 'member')} {verb} idle with any "
        "assignor."
    )


def _weights_ignored(given: Evidence) -> str | None:
    if not given.is_weighted:
        return None
    # With uneven counts, weights are the cause only if the assignor leaves such counts, and even
    # counts leave most of the gap.
    if not given.has_even_counts and (not given.has_own_shape or given.explains(given.balanced)):
        return None
    low, high = min(given.counts.values()), max(given.counts.values())
    relative = metrics.relative_loads(given.group, metrics.loads(given.group, given.current))
    shown = metrics.member_units(given.group).shown
    lightest, heaviest = shown(min(relative.values())), shown(max(relative.values()))
    ignored = "weights" if given.group.is_weighted else "speeds"
    counts = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return (
        f"Kafka's assignors count partitions and ignore {ignored}: the members have {counts} "
        f"{'partition' if high == 1 else 'partitions'} each, but loads from {lightest:,} to "
        f"{heaviest:,}."
    )


def _racks(given: Evidence) -> str | None:
    """Describe the imbalance that results from reads within racks, or return None."""
    group = given.group
    if not metrics.has_racks(group) or given.is_large:
        return None
    if given.port is not None and given.has_own_shape:
        without = replace(group, members=tuple(replace(one, rack=None) for one in group.members))
        free = run_until_stable(without, given.port).assignment
        now, then = given.squares(given.current), given.squares(given.planned)
        if free is not None and now > then and 2 * (now - given.squares(free)) >= now - then:
            return (
                f"{given.name} prefers members in the racks of the replicas to equal loads: "
                f"{given.extremes()}."
            )
    more = metrics.off_rack(group, given.planned) - metrics.off_rack(group, given.current)
    if more <= 0:
        return None
    local = solve(
        group,
        levels=(CrossRack(), Imbalance(given.measure)),
        limits=replace(given.limits, work=min(given.limits.work, _RACK_WORK)),
    ).assignment
    if local is None or metrics.off_rack(group, local) < metrics.off_rack(group, given.current):
        return None
    now, then = given.value(given.current), given.value(given.planned)
    if 2 * (now - given.value(local)) >= now - then:
        return None
    return (
        f"The assignment follows the racks: the plan reads {count_of(more, 'partition')} more "
        "across racks."
    )


def _range_remainders(given: Evidence) -> str | None:
    if given.port not in RANGES or not given.has_equal_subscriptions:
        return None
    members = len(given.group.members)
    if not given.has_own_shape and not _is_even_per_topic(given):
        return None
    topics = [topic for topic in given.group.topics if topic.name in given.topics]
    uneven = [topic for topic in topics if topic.partitions % members]
    if len(uneven) < 2:
        return None
    verb = "divides" if given.own.name else "would give this assignment: it divides"
    return (
        f"{given.name} {verb} each of {len(uneven)} topics among {members} members, and gives the "
        f"remainders to the same members: {given.extremes()}."
    )


def _is_even_per_topic(given: Evidence) -> bool:
    counts = topic_counts(given.group, given.current)
    return all(max(found.values()) - min(found.values()) <= 1 for found in counts.values())


def _mixed_subscriptions(given: Evidence) -> str | None:
    if given.port not in CIRCULAR or given.has_equal_subscriptions or not given.has_own_shape:
        return None
    how = (
        "divides each topic among its own subscribers"
        if given.port in RANGES
        else "takes the next subscriber in a circle"
    )
    would = "" if given.own.name else ", which would give this assignment,"
    return (
        f"The members have different subscriptions, and {given.name}{would} {how} without regard "
        f"to their loads: {given.extremes()}."
    )


def _static_members(given: Evidence) -> str | None:
    """Describe static members that keep their partitions, or return None."""
    static = sum(one.instance_id is not None for one in given.group.members)
    if not static or not given.rebalance_helps:
        return None
    return (
        f"{count_of(static, 'static member')} {'keeps' if static == 1 else 'keep'} "
        f"{'its' if static == 1 else 'their'} old partitions, because a restart of a static member "
        f"causes no rebalance; {given.name} would divide the partitions more evenly now."
    )


def _contradiction(given: Evidence) -> str | None:
    """Describe loads that the group's assignor cannot cause, or return None."""
    status = given.group.status
    if given.own.name is None or given.port is None or status.state != "Stable" or given.unowned:
        return None
    status = replace(status, assignor=kafka_name(given.port))
    return assignor_caveat(replace(given.group, status=status))


def _lost_rebalance(given: Evidence) -> str | None:
    """Describe a rebalance that would improve the loads but did not occur, or return None."""
    if given.own.name is None and given.port is None and not given.is_large:
        if not all(given.explains(given.run(name)) for name in NEWEST_ASSIGNORS):
            return None
        who = "each of Kafka's assignors"
    elif given.rebalance_helps and given.own.name is not None:
        who = given.name
    else:
        return None
    return f"A rebalance is pending or was lost: {who} would divide the partitions more evenly now."


def _local_optimum(given: Evidence) -> str | None:
    """Describe a chain of moves that a sticky assignor does not find, or return None."""
    result = given.own_result
    if given.port in CIRCULAR or result is None or given.has_equal_subscriptions:
        return None
    if given.squares(result) < given.squares(given.current):
        return None  # The assignor does not stop here.
    optimum = given.balanced
    if optimum is None or given.has_even_counts:
        return None
    steps = move_steps(given.counted, schedule_moves(given.counted, optimum))
    if not steps:
        return None
    chain = str(max(steps, key=lambda one: len(one.moves))).partition(":")[0]
    why = (
        "no single move improves the assignment, but a chain does"
        if _needs_chain(given)
        else "moves improve the assignment"
    )
    return f"{given.name} stops at a local optimum, because subscriptions differ; {why}: {chain}."


def _needs_chain(given: Evidence) -> bool:
    """Return whether no single move improves the partition counts."""
    for found in topic_counts(given.group, given.current).values():
        lowest = min(given.counts[id] for id in found)
        if any(count and given.counts[id] > lowest + 1 for id, count in found.items()):
            return False
    return True


def _topics_ignored(given: Evidence) -> str | None:
    counts = [topic_counts(given.group, one) for one in (given.current, given.planned)]
    now, then = (sum(n * n for found in each.values() for n in found.values()) for each in counts)
    if now <= then:
        return None
    share = worst_share(given.group, given.current)
    if share is None:
        return None
    goal = ASSIGNORS[given.port].goal if given.port is not None else None
    if goal is Goal.BALANCE_PER_TOPIC or given.own.name is None:
        return None
    return f"{given.name} balances the number of partitions per member, not each topic: {share}."


_Rule = tuple[CauseKind, Callable[[Evidence], str | None]]
"""Kind of cause and its test. A test returns a sentence if it holds, otherwise None."""
_ALWAYS: tuple[_Rule, ...] = (
    (CauseKind.FAILED_ASSIGNOR, _failed_assignor),
    (CauseKind.LIBRARY_CLAIMS, _library_claims),
    (CauseKind.INCOMPLETE_REBALANCE, _incomplete_rebalance),
    (CauseKind.PENDING_REBALANCE, _partitions_without_owner),
)
_UNAVOIDABLE: tuple[_Rule, ...] = (
    (CauseKind.HEAVY_PARTITION, _heavy_partition),
    (CauseKind.LIMITED_MEMBERS, _limited_members),
    (CauseKind.SURPLUS_MEMBERS, _surplus_members),
)
_BY_ASSIGNOR: tuple[_Rule, ...] = (
    (CauseKind.WEIGHTS_IGNORED, _weights_ignored),
    (CauseKind.RACKS, _racks),
    (CauseKind.RANGE_REMAINDERS, _range_remainders),
    (CauseKind.MIXED_SUBSCRIPTIONS, _mixed_subscriptions),
    (CauseKind.STATIC_MEMBERS, _static_members),
    (CauseKind.CONTRADICTION, _contradiction),
    (CauseKind.PENDING_REBALANCE, _lost_rebalance),
    (CauseKind.LOCAL_OPTIMUM, _local_optimum),
)
_TOPICS_IGNORED: _Rule = (CauseKind.TOPICS_IGNORED, _topics_ignored)
