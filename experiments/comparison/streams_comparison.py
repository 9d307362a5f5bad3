"""Compare the answers of assignors of Streams with the optimum."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import lcm
from typing import Any

from kassay.experiments.comparison.family_measures import (
    FamilyComparison,
    FamilyMeasure,
    UnneededMove,
    measure_level,
    unneeded_moves,
)
from kassay.experiments.comparison.streams_application import (
    Application,
    StreamsAnswer,
    read_answer,
    read_application,
)
from kassay.experiments.implementations.streams_and_connect_events import StreamsEvent, setting
from kassay.reference.documents.family_documents import FamilyDocument
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import spread
from kassay.reference.model.topic_partitions import TopicPartition as Task
from kassay.solver.certificate.certificate import value_of
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import FlowLevel, MissingTagValues, StandbyMoves, requested_levels
from kassay.solver.solve import solve
from kassay.solver.standby_costs import missing_tag_values, possible_tag_values, standby_costs

STREAMS_LEVELS = {
    "sum_of_squares": "active_sum_of_squares",
    "stateful_sum_of_squares": "stateful_sum_of_squares",
    "movement": "state_moves",
    "missing_tag_values": "missing_tag_values",
    "standby_moves": "standby_moves",
}
"""Levels of the optimum in their order, and the names of their measures."""
_ACTIVE_LEVELS = 3
"""Number of levels of active tasks; they come first."""


def compare_streams(
    document: FamilyDocument, answer: Mapping[str, Any], limits: SearchLimits
) -> FamilyComparison:
    """Compare an answer for a Streams group or a Kafka Streams application with the optimum."""
    application = read_application(document)
    found = read_answer(application, answer)
    invalid = tuple(_violations(application, found))
    if invalid or not application.processes:
        return FamilyComparison((), invalid=invalid)
    group = application.thread_group()
    best = solve(group, levels=_levels(group), limits=limits)
    chosen = {STREAMS_LEVELS[level.name]: level.value for level in best.levels}
    loads = [
        measure_level(group, found.threads, best, level, chosen, shown=STREAMS_LEVELS[level])
        for level in ("sum_of_squares", "stateful_sum_of_squares")
    ]
    moves, unneeded = _moves(application, found, limits)
    moves = [replace(one, optimum=chosen.get(one.name)) for one in moves]
    measures = [*loads, *_spreads(application, found.threads), *moves]
    if application.stateful:
        measures += _standbys(application, found, chosen)
        measures += _copies(application, found, limits)
    return FamilyComparison(tuple(measures), unneeded)


def compare_stable_application(
    document: FamilyDocument, event: StreamsEvent, limits: SearchLimits
) -> FamilyComparison:
    """Compare the stable assignment after the probing rebalances of an event with the optimum.

    A task that moves needs a warm-up, and each warm-up lasts until the next probing rebalance. So
    the minimum time follows from the fewest state moves and the maximum number of warm-ups.
    """
    content: Any = event.application.content
    answer = {"processes": {one["id"]: one for one in content["processes"]}}
    compared = compare_streams(document, answer, limits)
    interval = setting(event.application, "probing_rebalance_interval_ms")
    warmups = setting(event.application, "max_warmup_replicas")
    least = next((one.bound for one in compared.measures if one.name == "state_moves"), None)
    if least is not None:
        least = -(-least // warmups) * interval if warmups else None
    probing = FamilyMeasure("probing_ms", event.probing_ms, least, least)
    return replace(compared, measures=(*compared.measures, probing), step=event.rebalances)


def _levels(group: Group) -> tuple[str, ...]:
    """Return the levels of the optimum, without those of standbys with too many choices."""
    try:
        standby_costs(group)
    except UsageError:
        return tuple(STREAMS_LEVELS)[:_ACTIVE_LEVELS]
    return tuple(STREAMS_LEVELS)


def _violations(application: Application, answer: StreamsAnswer) -> Iterator[str]:
    """Yield a message per task not active exactly once, and per standby on a wrong process."""
    yield from violations(application.thread_group(), answer.threads)
    names = {topic.name for topic in application.stateful}
    for process, standbys in answer.standby.items():
        copies = Counter([*standbys, *(t for t in answer.active[process] if t in set(standbys))])
        for task, count in copies.items():
            if count > 1:
                yield f"process {process!r} has {count} copies of {task}"
            elif task.topic not in names:
                yield f"process {process!r} has a standby of {task}, which is stateless"


def _spreads(application: Application, threads: Assignment) -> Iterator[FamilyMeasure]:
    """Yield the differences of the maximum and the minimum load per thread, which Kafka measures.

    All threads can run all tasks, so the minimum is 0 if the number of tasks is a multiple of the
    number of threads, else 1.
    """
    tasks = [task for tasks in threads.values() for task in tasks]

    def of(names: Iterable[str]) -> tuple[int, int]:
        chosen = set(names)
        loads = [sum(task.topic in chosen for task in one) for one in threads.values()]
        return spread(loads), int(len(tasks) and sum(loads) % len(threads) > 0)

    for name, topics in (("active", application.topics), ("stateful", application.stateful)):
        value, least = of(topic.name for topic in topics)
        yield FamilyMeasure(f"{name}_spread", value, least, least)
    each = [of([topic.name]) for topic in application.topics]
    worst = max((value - least for value, least in each), default=0)
    yield FamilyMeasure("subtopology_spread_above_minimum", worst, 0, 0)


def _moves(
    application: Application, answer: StreamsAnswer, limits: SearchLimits
) -> tuple[list[FamilyMeasure], tuple[UnneededMove, ...]]:
    """Return the moves of active tasks, and the unneeded moves of stateful tasks.

    The minimum belongs to the numbers of tasks per process, or per thread, of the answer.
    """
    measures: list[FamilyMeasure] = []
    unneeded: tuple[UnneededMove, ...] = ()
    places: list[tuple[str, Assignment, Mapping[str, Any]]] = [
        ("state_moves", answer.active, {one.id: one.state for one in application.processes}),
        ("process_moves", answer.active, {one.id: one.active for one in application.processes}),
    ]
    if application.owned:
        places.append(("thread_moves", answer.threads, application.owned))
    for name, tasks, holds in places:
        group = application.place_group(application.topics, holds, like=tasks)
        solution = solve(group, levels=("movement",), limits=limits)
        measures.append(measure_level(group, tasks, solution, "movement", {}, shown=name))
        if name == "state_moves":
            unneeded = unneeded_moves(group, tasks, solution)
    return measures, unneeded


def _standbys(
    application: Application, answer: StreamsAnswer, chosen: Mapping[str, int]
) -> Iterator[FamilyMeasure]:
    """Yield the measures of standbys, with the minimum for the active tasks of the answer.

    The minimum is unknown if a task has another number of standbys than configured, or if the tags
    permit too many choices of standbys.
    """
    processes = {one.id: one for one in application.processes}
    hosts: dict[Task, list[str]] = {}
    for process, tasks in answer.standby.items():
        for task in tasks:
            hosts.setdefault(task, []).append(process)
    active = {task: process for process, tasks in answer.active.items() for task in tasks}
    state = {process: set(one.state) for process, one in processes.items()}
    absent = surplus = values = moves = 0
    for topic in application.stateful:
        count = application.standbys(topic)
        possible = possible_tag_values([one.tags for one in processes.values()], count + 1)
        for number in range(topic.partitions):
            task = Task(topic.name, number)
            placed = hosts.get(task, [])
            absent += max(0, count - len(placed))
            surplus += max(0, len(placed) - count)
            tags = [processes[process].tags for process in (active[task], *placed)]
            values += missing_tag_values(tags, possible)
            moves += sum(task not in state[process] for process in placed)
    yield FamilyMeasure("missing_standbys", absent, 0, 0)
    numbers: list[tuple[str, int, FlowLevel, bool]] = [
        ("standby_moves", moves, StandbyMoves(), False)
    ]
    if any(one.tags for one in application.processes):
        numbers.insert(0, ("missing_tag_values", values, MissingTagValues(), True))
    for name, value, level, with_tags in numbers:
        group = application.thread_group(with_tags=with_tags)
        is_unknown = absent or surplus or (with_tags and name not in chosen)
        least = None if is_unknown else value_of(group, answer.threads, level)
        yield FamilyMeasure(name, value, least, least, chosen.get(name))


def _copies(
    application: Application, answer: StreamsAnswer, limits: SearchLimits
) -> Iterator[FamilyMeasure]:
    """Yield the measures of active and standby tasks together, for the copies of the answer.

    The minimum numbers of moves belong to the numbers of copies per process of the answer.
    """
    counts = Counter(task for tasks in answer.copies(application.topics).values() for task in tasks)
    numbers = {
        topic.name: [counts[Task(topic.name, number)] for number in range(topic.partitions)]
        for topic in application.topics
    }
    topics = [
        replace(topic, copies=tuple((count, count) for count in numbers[topic.name]))
        for topic in application.topics
    ]
    stateful = [topic for topic in topics if topic.is_stateful]
    copies = answer.copies(stateful)
    before = {one.id: one.copies for one in application.processes}
    previous = Counter(task for tasks in before.values() for task in tasks)
    reported = {one.id: one.reported for one in application.processes}
    found = Counter(task for tasks in reported.values() for task in tasks)
    state = {one.id: one.state for one in application.processes}
    # Each measure is a constant plus the number of copies on a process that does not hold the task.
    for name, holds, constant in (
        ("copy_moves", state, 0),
        ("replaced_copies", before, -sum(max(0, counts[t] - n) for t, n in previous.items())),
        ("unused_directories", reported, sum(n - counts[t] for t, n in found.items())),
    ):
        group = application.place_group(stateful, holds, like=copies)
        level = solve(group, levels=("movement",), limits=limits).level("movement")
        value = value_of(group, copies, requested_levels(group, "movement")[0])
        yield FamilyMeasure(name, *(n + constant for n in (value, level.value, level.bound)))
    lost = sum(topic.partitions for topic in stateful) - len(previous)
    yield FamilyMeasure("tasks_without_copy", lost, lost, lost)
    yield from _copy_spreads(application, answer)
    speeds = {one.id: len(one.threads) for one in application.processes}
    group = application.place_group(topics, state, speeds=speeds)
    solution = solve(group, levels=("sum_of_squares",), limits=limits)
    name = "copy_sum_of_squares"
    copies = answer.copies(topics)
    yield measure_level(group, copies, solution, "sum_of_squares", {}, shown=name)


def _copy_spreads(application: Application, answer: StreamsAnswer) -> Iterator[FamilyMeasure]:
    """Yield the spreads of copies and of standbys, which have no proven minimum.

    Those of processes are per thread, times the least common multiple of the numbers of threads.
    """
    factor = lcm(*(len(one.threads) for one in application.processes))
    yield FamilyMeasure("copy_spread", spread(answer.thread_copies), None, None)
    for name, both in (("process_copy_spread", True), ("process_standby_spread", False)):
        loads = [
            (len(answer.standby[one.id]) + both * len(answer.active[one.id]))
            * (factor // len(one.threads))
            for one in application.processes
        ]
        yield FamilyMeasure(name, spread(loads), None, None)
