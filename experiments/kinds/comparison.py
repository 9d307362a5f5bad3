"""Compare the answers of assignors of share groups, Streams and Connect with the optimum.

A share group is a group with several members per partition. Each stable state of a Connect
cluster is two groups: a connector is a topic, a task a partition, and a worker a member; the
connectors themselves are the partitions of one topic.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from kassay.experiments.implementations.runner import DocumentRunResult, Ending, run_on_document
from kassay.experiments.kinds.events import (
    run_application_until_stable,
)
from kassay.experiments.kinds.measures import (
    KindComparison,
    KindMeasure,
    UnneededMove,
    measure_level,
    unneeded_moves,
)
from kassay.experiments.kinds.streams_comparison import (
    compare_stable_application,
    compare_streams,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument, wrong_kind_error
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.ownership import rejoin
from kassay.reference.model.topic_partitions import Partitions
from kassay.solver.certificate.certificate import value_of
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import requested_levels
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

SHARE_LEVELS = ("idle_members", "members_per_partition", "sum_of_squares", "movement", "slots")
_BALANCE_LEVELS = ("sum_of_squares", "movement")
_SLOT_LEVELS = ("idle_members", "slots")
_TASK_LEVELS = ("sum_of_squares", "topic_spread", "movement")


def compare_assignor(
    document: KindDocument, name: str, *, limits: SearchLimits
) -> tuple[DocumentRunResult, list[KindComparison]]:
    """Run an assignor on a document, and compare its answer with the optimum.

    If the answer for a Kafka Streams application requests a further rebalance, the stable
    assignment after the probing rebalances is compared as well. ``step`` is then the number of the
    rebalance. Without an answer, there is no comparison.
    """
    result = run_on_document(document, name)
    if result.answer is None:
        return result, []
    compared = compare_answer(document, result.answer, limits=limits)
    if result.answer.get("followup_rebalance"):
        compared = [replace(one, step=1) for one in compared]
        event = run_application_until_stable(document, name)
        if event.ending is Ending.OK and event.rebalances > 1:
            compared.append(compare_stable_application(document, event, limits))
    return result, compared


def compare_answer(
    document: KindDocument, answer: Mapping[str, Any], *, limits: SearchLimits
) -> list[KindComparison]:
    """Compare an answer with the optimum: once, or once per stable state of a Connect cluster."""
    if document.kind is Kind.SHARE:
        lists = {m: [(t, n) for t, n in pairs] for m, pairs in answer["members"].items()}
        return [_compare_share(document, Assignment(lists), limits)]
    if document.kind is Kind.CONNECT:
        return _compare_connect(document, answer["steps"], limits)
    if document.kind in (Kind.STREAMS_GROUP, Kind.STREAMS):
        return [compare_streams(document, answer, limits)]
    raise wrong_kind_error(document.kind, "group")


def share_group(document: KindDocument, copies: Mapping[tuple[str, int], int] | None) -> Group:
    """Return the group of a share group, with a number of members per partition.

    By default, each assignable partition has at least one member, and the others have none.
    """
    topics: Any = document.content["topics"]
    members: Any = document.content["members"]
    subscribed = {name for member in members for name in member["topics"]}
    built, known = [], set()
    for name, fields in topics.items():
        count = fields if isinstance(fields, int) else fields["partitions"]
        assignable = range(count) if isinstance(fields, int) else fields.get("assignable")
        numbers = set(range(count) if assignable is None else assignable)
        known |= {(name, number) for number in range(count)}
        ranges = [(1, len(members)) if number in numbers else (0, 0) for number in range(count)]
        if copies is not None:
            given = [copies.get((name, number), 0) for number in range(count)]
            ranges = [(number, number) for number in given]
        built.append(Topic(name, count, copies=tuple(ranges) if name in subscribed else None))
    return Group(
        tuple(built),
        tuple(
            Member(
                one["id"],
                tuple(one["topics"]),
                holds=Partitions.of(tp for tp in map(tuple, one.get("owned", ())) if tp in known),
            )
            for one in members
        ),
        id=document.id,
    )


def _compare_share(
    document: KindDocument, answer: Assignment, limits: SearchLimits
) -> KindComparison:
    """Compare an answer with the fewest slots, and with the optimum for its copies."""
    free = share_group(document, None)
    invalid = tuple(violations(free, answer))
    uncovered = sum(text.endswith("is not assigned") for text in invalid)
    coverage = KindMeasure("uncovered_partitions", uncovered, 0, 0, 0)
    if invalid:
        return KindComparison((coverage,), invalid=invalid)
    pairs = chain.from_iterable(answer.values())
    fixed = share_group(document, Counter((tp.topic, tp.partition) for tp in pairs))
    best = solve(free, levels=SHARE_LEVELS, limits=limits)
    fewest = solve(free, levels=_SLOT_LEVELS, limits=limits)
    balance = solve(fixed, levels=_BALANCE_LEVELS, limits=limits)
    chosen = {level.name: level.value for level in best.levels}
    measures = [
        measure_level(free, answer, solution, name, chosen)
        for solution, name in (
            (fewest, "idle_members"),
            (fewest, "slots"),
            (best, "members_per_partition"),
        )
    ]
    measures += _balance(fixed, answer, balance, chosen)
    return KindComparison((coverage, *measures), _unneeded(fixed, answer, balance))


def _compare_connect(
    document: KindDocument, states: Sequence[Mapping[str, Any]], limits: SearchLimits
) -> list[KindComparison]:
    """Compare each stable state with the optimum after the previous stable state."""
    steps: Any = document.content["steps"]
    found: list[KindComparison] = []
    previous, stopped = [Assignment({}), Assignment({})], 0
    for number, (step, state) in enumerate(zip(steps, states, strict=True)):
        if not state.get("stable", True) or not step["workers"]:
            continue
        connectors = step["connectors"]
        topics = (
            tuple(Topic(name, count) for name, count in connectors.items()),
            tuple(Topic(name, 1) for name in connectors),
        )
        placed = [_tasks(state["state"]), _connectors(state["state"])]
        both = [
            _compare_state(list(step["workers"]), *parts, limits)
            for parts in zip(topics, placed, previous, strict=True)
        ]
        measures = [
            replace(one, name=f"{kind}_{one.name}")
            for kind, comparison in zip(("task", "connector"), both, strict=True)
            for one in comparison.measures
        ]
        if "task_downtime_ms" in state:
            # A rebalance takes no time in the simulation, so no task has to stop.
            wait = state["task_downtime_ms"] - stopped
            measures.append(KindMeasure("task_stopped_ms", wait, 0, 0))
            stopped = state["task_downtime_ms"]
        unneeded = chain.from_iterable(one.unneeded for one in both)
        invalid = chain.from_iterable(one.invalid for one in both)
        found.append(KindComparison(tuple(measures), tuple(unneeded), number, tuple(invalid)))
        previous = placed
    return found


def _compare_state(
    workers: list[str],
    topics: tuple[Topic, ...],
    answer: Assignment,
    before: Assignment,
    limits: SearchLimits,
) -> KindComparison:
    """Compare the tasks, or the connectors, of a state with the optimum."""
    names = tuple(topic.name for topic in topics)
    bare = Group(topics, tuple(Member(worker, names) for worker in workers))
    group = rejoin(bare, {worker: before[worker] for worker in workers if worker in before})
    invalid = tuple(violations(group, answer))
    if invalid:
        return KindComparison((), invalid=invalid)
    best = solve(group, levels=_TASK_LEVELS, limits=limits)
    chosen = {level.name: level.value for level in best.levels}
    fewest = solve(group, levels=_BALANCE_LEVELS, limits=limits)
    measures = _balance(group, answer, fewest, chosen)
    if any(topic.partitions > 1 for topic in topics):
        measures.insert(1, measure_level(group, answer, best, "topic_spread", chosen))
    return KindComparison(tuple(measures), _unneeded(group, answer, fewest))


def _balance(
    group: Group, answer: Assignment, solution: Solution, chosen: Mapping[str, int]
) -> list[KindMeasure]:
    """Return the measures of loads and moves.

    The fewest moves belong to the minimum imbalance, so they are unknown for another imbalance.
    """
    loads = measure_level(group, answer, solution, "sum_of_squares", chosen)
    moves = measure_level(group, answer, solution, "movement", chosen)
    if loads.value > solution.imbalance.bound:
        moves = replace(moves, minimum=None, bound=None)
    return [loads, moves]


def _unneeded(group: Group, answer: Assignment, solution: Solution) -> tuple[UnneededMove, ...]:
    """Return the moves that the optimum does not make, if the loads of the answer are minimum."""
    loads = value_of(group, answer, requested_levels(group, "sum_of_squares")[0])
    return unneeded_moves(group, answer, solution) if loads <= solution.imbalance.bound else ()


def _tasks(state: Mapping[str, Any]) -> Assignment:
    """Return the tasks of each worker as partitions of their connectors."""
    lists = {}
    for worker, running in state.items():
        split = [task.rpartition("-") for task in running["tasks"]]
        lists[worker] = [(name, int(number)) for name, _, number in split]
    return Assignment(lists)


def _connectors(state: Mapping[str, Any]) -> Assignment:
    """Return the connectors of each worker, each as the partition 0 of a topic."""
    return Assignment(
        {worker: [(name, 0) for name in running["connectors"]] for worker, running in state.items()}
    )
