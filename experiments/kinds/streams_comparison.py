"""Compare assignments of Streams groups and Kafka Streams applications with the optimum.

In the group for the solver, tasks are partitions, subtopologies topics, threads members, and
processes hosts. The threads of a process are holders of the tasks with caught-up state in it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kassay.experiments.kinds.group_kind import (
    KindComparison,
    KindMeasure,
    UnnecessaryMove,
    measure_level,
    unnecessary_moves,
)
from kassay.reference.assignors.streams import AssignmentConfigs
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_task
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Client, Group, Member, Topic
from kassay.reference.model.load_metrics import spread
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.model.topic_partitions import TopicPartition as Task
from kassay.solver.certificate.certificate import value_of
from kassay.solver.evaluation import missing_tag_values, possible_tag_values, standby_costs
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import FlowLevel, MissingTagValues, StandbyMoves, requested_levels
from kassay.solver.solve import solve

_DEFAULTS = {**asdict(AssignmentConfigs()), "probing_rebalance_interval_ms": 600_000}
_COPIES = ("active", "standby", "warmup")
"""Keys with the tasks of a member or process. Only members have warm-up tasks."""


@dataclass(frozen=True, slots=True)
class Process:
    """Process of a Streams application, with its threads and its previous tasks.

    ``active`` has the previous active tasks, ``copies`` the previous active, standby and warm-up
    tasks with state. ``reported`` has the tasks with an offset or a lag of a local directory, and
    ``state`` the tasks with caught-up state.
    """

    id: str
    threads: tuple[str, ...]
    active: tuple[Task, ...]
    copies: tuple[Task, ...]
    reported: tuple[Task, ...]
    state: tuple[Task, ...]
    tags: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Application:
    """Subtopologies and processes of a Streams application before a rebalance.

    ``owned`` has the previous active tasks per thread; it is empty if only processes are known.
    """

    id: str | None
    topics: tuple[Topic, ...]
    processes: tuple[Process, ...]
    owned: Mapping[str, tuple[Task, ...]]

    @property
    def stateful(self) -> tuple[Topic, ...]:
        """Return the subtopologies with state."""
        return tuple(topic for topic in self.topics if topic.is_stateful)

    def standbys(self, topic: Topic) -> int:
        """Return the number of standby tasks per task, at most one per other process."""
        return min(topic.standbys, len(self.processes) - 1)

    def thread_group(self, *, with_tags: bool = True) -> Group:
        """Return the threads as a group that the solver accepts."""
        return self._group(
            self.topics,
            [
                Member(
                    thread,
                    (),
                    holds=Partitions.of(process.state),
                    tags=process.tags if with_tags else (),
                    client=Client(host=process.id),
                )
                for process in self.processes
                for thread in process.threads
            ],
        )

    def place_group(
        self,
        topics: Sequence[Topic],
        holds: Mapping[str, Sequence[Task]],
        *,
        like: Assignment | None = None,
        speeds: Mapping[str, int] | None = None,
    ) -> Group:
        """Return processes or threads (places) as a group that the solver accepts.

        Each place has at most as many tasks as in the assignment ``like``.
        """
        names = {topic.name for topic in topics}
        return self._group(
            tuple(replace(topic, is_stateful=False, standbys=0) for topic in topics),
            [
                Member(
                    place,
                    (),
                    holds=Partitions.of(task for task in held if task.topic in names),
                    capacity=None if like is None else len(like.get(place, ())),
                    speed=1 if speeds is None else speeds[place],
                )
                for place, held in holds.items()
            ],
        )

    def _group(self, topics: tuple[Topic, ...], members: Sequence[Member]) -> Group:
        names = tuple(topic.name for topic in topics)
        return Group(topics, tuple(replace(m, subscription=names) for m in members), id=self.id)


@dataclass(frozen=True, slots=True)
class StreamsAnswer:
    """Active tasks per thread and per process, and standby tasks per process."""

    threads: Assignment
    active: Assignment
    standby: Assignment

    def copies(self, topics: Sequence[Topic]) -> Assignment:
        """Return the active and standby tasks of the given subtopologies, per process."""
        names = {topic.name for topic in topics}
        return Assignment(
            {
                process: [task for task in (*tasks, *self.standby[process]) if task.topic in names]
                for process, tasks in self.active.items()
            }
        )


def read_application(document: KindDocument) -> Application:
    """Convert a valid document of a Streams group or application to an `Application`.

    In a Streams group, a process has the state of its previous tasks and of its local directories.
    """
    content = document.content
    is_group = document.kind is Kind.STREAMS_GROUP
    config = content if is_group else content.get("config", {})
    standbys = config.get("num_standby_replicas") or 0
    tag_keys = config.get("rack_aware_tags" if is_group else "rack_aware_assignment_tags", ())
    topics = tuple(
        Topic(
            name,
            fields["partitions"],
            is_stateful=fields["stateful"],
            standbys=standbys if fields["stateful"] else 0,
        )
        for name, fields in content["subtopologies"].items()
    )
    stateful = {topic.name for topic in topics if topic.is_stateful}
    reported = "offsets" if is_group else "lags"
    caught_up = {} if is_group else caught_up_processes(document)
    inside: dict[str, list[Any]] = {}
    for one in content["members" if is_group else "processes"]:
        inside.setdefault(one["process" if is_group else "id"], []).append(one)
    processes = []
    for id, own in inside.items():
        threads = [one["id"] for one in own]
        state = _stateful(stateful, _tasks(own, *_COPIES, reported))
        if not is_group:
            threads = [f"{id}/{number}" for number in range(own[0]["threads"])]
            state = tuple(_task(task) for task, ids in caught_up.items() if id in ids)
        tags = own[0].get("tags", {})
        processes.append(
            Process(
                id,
                tuple(threads),
                tuple(_tasks(own, "active")),
                _stateful(stateful, _tasks(own, *_COPIES)),
                _stateful(stateful, _tasks(own, reported)),
                state,
                tuple((key, tags[key]) for key in tag_keys if key in tags),
            )
        )
    owned = {one["id"]: tuple(_tasks([one], "active")) for one in content.get("members", ())}
    return Application(document.id, topics, tuple(processes), owned)


def read_answer(application: Application, answer: Mapping[str, Any]) -> StreamsAnswer:
    """Convert the answer of an assignor to tasks per thread and per process.

    Tasks that a process has without a thread are distributed evenly among its threads.
    """
    names = {topic.name for topic in application.stateful}
    active: dict[str, list[Task]] = {}
    standby: dict[str, list[Task]] = {}
    threads: dict[str, list[Task]] = {}
    for process in application.processes:
        if "members" in answer:
            own = [answer["members"].get(thread, {}) for thread in process.threads]
            dealt = [[*_tasks([one], "active")] for one in own]
        else:
            own, count = [answer["processes"].get(process.id, {})], len(process.threads)
            tasks = sorted(_tasks(own, "active"), key=lambda task: (task.topic not in names, task))
            dealt = [tasks[at::count] for at in range(count)]
        active[process.id] = [*_tasks(own, "active")]
        standby[process.id] = [*_tasks(own, "standby")]
        threads |= zip(process.threads, dealt, strict=True)
    return StreamsAnswer(Assignment(threads), Assignment(active), Assignment(standby))


def _task(text: str) -> Task:
    subtopology, number = parse_task(text)
    return Task(str(subtopology), number)


def _stateful(names: Collection[str], tasks: Iterable[Task]) -> tuple[Task, ...]:
    return tuple(dict.fromkeys(task for task in tasks if task.topic in names))


def _tasks(members: Iterable[Mapping[str, Any]], *keys: str) -> Iterator[Task]:
    """Yield the tasks that members or processes list at the keys ``keys``.

    A value is a list of task names, or a table of partition numbers by subtopology.
    """
    for member in members:
        for key in keys:
            entries = member.get(key, ())
            if isinstance(entries, Mapping) and key != "lags":
                for name, numbers in entries.items():
                    yield from (Task(name, int(number)) for number in numbers)
            else:
                yield from map(_task, entries)


STREAMS_LEVELS = {
    "sum_of_squares": "active_sum_of_squares",
    "stateful_sum_of_squares": "stateful_sum_of_squares",
    "movement": "state_moves",
    "missing_tag_values": "missing_tag_values",
    "standby_moves": "standby_moves",
}
"""Names of the measures by level of the optimum, in the order of the levels."""
_ACTIVE_LEVELS = 3
"""Number of levels of active tasks; they come first."""


def compare_streams(
    document: KindDocument, answer: Mapping[str, Any], limits: SearchLimits
) -> list[KindComparison]:
    """Compare an answer for a Streams group or application with the optimum."""
    application = read_application(document)
    found = read_answer(application, answer)
    invalid = tuple(_violations(application, found))
    if invalid or not application.processes:
        return [KindComparison((), invalid=invalid)]
    group = application.thread_group()
    levels = tuple(STREAMS_LEVELS)
    try:
        standby_costs(group)
    except UsageError:  # The standbys have too many choices.
        levels = levels[:_ACTIVE_LEVELS]
    best = solve(group, levels=levels, limits=limits)
    chosen = {STREAMS_LEVELS[level.name]: level.value for level in best.levels}
    loads = [
        measure_level(group, found.threads, best, level, chosen, shown=STREAMS_LEVELS[level])
        for level in ("sum_of_squares", "stateful_sum_of_squares")
    ]
    moves, unnecessary = _moves(application, found, limits)
    moves = [replace(one, optimum=chosen.get(one.name)) for one in moves]
    measures = [*loads, *_spreads(application, found.threads), *moves]
    if application.stateful:
        measures += _standbys(application, found, chosen)
        measures += _copies(application, found, limits)
    return [KindComparison(tuple(measures), unnecessary)]


def _violations(application: Application, answer: StreamsAnswer) -> Iterator[str]:
    """Describe tasks that are not active exactly once, and invalid standby tasks."""
    yield from violations(application.thread_group(), answer.threads)
    names = {topic.name for topic in application.stateful}
    for process, standbys in answer.standby.items():
        copies = Counter([*standbys, *(t for t in answer.active[process] if t in set(standbys))])
        for task, count in copies.items():
            if count > 1:
                yield f"process {process!r} has {count} copies of {task}"
            elif task.topic not in names:
                yield f"process {process!r} has a standby of {task}, which is stateless"


def _spreads(application: Application, threads: Assignment) -> Iterator[KindMeasure]:
    """Yield the spread of the number of tasks per thread, and its minimum.

    All threads can run all tasks. The minimum is therefore 0 if the number of tasks is a multiple
    of the number of threads, else 1.
    """
    tasks = [task for tasks in threads.values() for task in tasks]

    def of(names: Iterable[str]) -> tuple[int, int]:
        chosen = set(names)
        loads = [sum(task.topic in chosen for task in one) for one in threads.values()]
        return spread(loads), int(len(tasks) and sum(loads) % len(threads) > 0)

    for name, topics in (("active", application.topics), ("stateful", application.stateful)):
        value, least = of(topic.name for topic in topics)
        yield KindMeasure(f"{name}_spread", value, least, least)
    each = [of([topic.name]) for topic in application.topics]
    worst = max((value - least for value, least in each), default=0)
    yield KindMeasure("subtopology_spread_above_minimum", worst, 0, 0)


def _moves(
    application: Application, answer: StreamsAnswer, limits: SearchLimits
) -> tuple[list[KindMeasure], tuple[UnnecessaryMove, ...]]:
    """Compare the moves of active tasks with the optimum.

    The minimum is over assignments with the answer's numbers of tasks per process, or per thread.
    """
    measures: list[KindMeasure] = []
    unnecessary: tuple[UnnecessaryMove, ...] = ()
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
            unnecessary = unnecessary_moves(group, tasks, solution)
    return measures, unnecessary


def _standbys(
    application: Application, answer: StreamsAnswer, chosen: Mapping[str, int]
) -> Iterator[KindMeasure]:
    """Yield the measures of standby tasks, with their minimum for the same active tasks.

    The minimum is unknown if the number of a task's standby tasks is not the configured one, or
    if tags permit too many choices of standby tasks.
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
    yield KindMeasure("missing_standbys", absent, 0, 0)
    numbers: list[tuple[str, int, FlowLevel, bool]] = [
        ("standby_moves", moves, StandbyMoves(), False)
    ]
    if any(one.tags for one in application.processes):
        numbers.insert(0, ("missing_tag_values", values, MissingTagValues(), True))
    for name, value, level, with_tags in numbers:
        group = application.thread_group(with_tags=with_tags)
        is_unknown = absent or surplus or (with_tags and name not in chosen)
        least = None if is_unknown else value_of(group, answer.threads, level)
        yield KindMeasure(name, value, least, least, chosen.get(name))


def _copies(
    application: Application, answer: StreamsAnswer, limits: SearchLimits
) -> Iterator[KindMeasure]:
    """Yield the measures of active and standby tasks together.

    The minimum of moves is over assignments with the answer's numbers of copies per process.
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
        yield KindMeasure(name, *(n + constant for n in (value, level.value, level.bound)))
    speeds = {one.id: len(one.threads) for one in application.processes}
    group = application.place_group(topics, state, speeds=speeds)
    solution = solve(group, levels=("sum_of_squares",), limits=limits)
    name = "copy_sum_of_squares"
    copies = answer.copies(topics)
    yield measure_level(group, copies, solution, "sum_of_squares", {}, shown=name)


def caught_up_processes(document: KindDocument) -> dict[str, list[str]]:
    """Return the processes that have caught-up state, by stateful task.

    A process has it if the task is active there, or if the process's lag of the task is acceptable.
    """
    acceptable = setting(document, "acceptable_recovery_lag")
    found: dict[str, list[str]] = {}
    for task, end in stateful_tasks(document.content):
        found[task] = []
        for process in document.content["processes"]:
            lag = process.get("lags", {}).get(task)
            if lag is None:
                lag = 0 if task in process.get("active", ()) else end
            if lag <= acceptable:
                found[task].append(process["id"])
    return found


def setting(document: KindDocument, key: str) -> int:
    """Return a setting of a Streams application, or its default if it is missing or null."""
    value = document.content.get("config", {}).get(key)
    return int(_DEFAULTS[key] if value is None else value)


def stateful_tasks(content: Any) -> Iterator[tuple[str, int]]:
    """Yield the id and the end offset of each stateful task (0 if the source has no offset)."""
    for name, fields in content["subtopologies"].items():
        if fields["stateful"]:
            ends = fields.get("end_offsets", [0] * fields["partitions"])
            yield from ((f"{name}_{number}", end) for number, end in enumerate(ends))
