"""Streams groups and Kafka Streams applications as groups of the one model.

A task is a partition, and its subtopology a topic. A thread is a member, and its process a host.
The threads of a process hold the tasks with caught-up state in the process.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kassay.experiments.implementations.streams_and_connect_events import caught_up_processes
from kassay.reference.documents.family_documents import FamilyDocument, Kind
from kassay.reference.documents.task_ids import parse_task
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.group_annotations import Client
from kassay.reference.model.topic_partitions import Partitions
from kassay.reference.model.topic_partitions import TopicPartition as Task

_COPIES = ("active", "standby", "warmup")
"""Keys of the tasks of which a member or a process has a copy; only members have warm-ups."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process with its threads and its stateful tasks before a rebalance.

    Parameters
    ----------
    active
        Previous active tasks, also stateless ones.
    copies
        Previous active, standby and warm-up tasks with state.
    reported
        Tasks with an offset or a lag of a local directory.
    state
        Tasks with caught-up state.
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
    """A Streams application before a rebalance.

    Parameters
    ----------
    owned
        Previous active tasks per thread; empty if only those of the processes are known.
    """

    id: str | None
    topics: tuple[Topic, ...]
    processes: tuple[Process, ...]
    owned: Mapping[str, tuple[Task, ...]]

    @property
    def threads(self) -> dict[str, str]:
        """Return the process of each thread."""
        return {thread: one.id for one in self.processes for thread in one.threads}

    @property
    def stateful(self) -> tuple[Topic, ...]:
        """Return the stateful subtopologies."""
        return tuple(topic for topic in self.topics if topic.is_stateful)

    def standbys(self, topic: Topic) -> int:
        """Return the number of standbys of a task: at most one per other process."""
        return min(topic.standbys, len(self.processes) - 1)

    def thread_group(self, *, with_tags: bool = True) -> Group:
        """Return a group with one member per thread, for the active tasks and their standbys."""
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
        """Return the group of some places, processes or threads, that hold given tasks.

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
    """Active tasks per thread and per process, and standby tasks per process.

    ``thread_copies`` is the number of active and standby tasks of each thread.
    """

    threads: Assignment
    active: Assignment
    standby: Assignment
    thread_copies: tuple[int, ...]

    def copies(self, topics: Sequence[Topic]) -> Assignment:
        """Return the active and standby tasks of some subtopologies per process."""
        names = {topic.name for topic in topics}
        return Assignment(
            {
                process: [task for task in (*tasks, *self.standby[process]) if task.topic in names]
                for process, tasks in self.active.items()
            }
        )


def read_application(document: FamilyDocument) -> Application:
    """Convert a checked document of a Streams group or of a Kafka Streams application."""
    content: Any = document.content
    if document.kind is Kind.STREAMS_GROUP:
        topics = _topics(content, content.get("num_standby_replicas", 0))
        keys = content.get("rack_aware_tags", ())
        processes = [*_group_processes(content["members"], topics, keys)]
        owned = {one["id"]: tuple(_tasks(one.get("active", {}))) for one in content["members"]}
        return Application(document.id, topics, tuple(processes), owned)
    config = content.get("config", {})
    topics = _topics(content, config.get("num_standby_replicas") or 0)
    stateful = {topic.name for topic in topics if topic.is_stateful}
    state: dict[str, list[Task]] = {one["id"]: [] for one in content["processes"]}
    for task, ids in caught_up_processes(document).items():
        for id in ids:
            state[id].append(_task(task))
    processes = [
        Process(
            one["id"],
            tuple(f"{one['id']}/{number}" for number in range(one["threads"])),
            tuple(map(_task, one.get("active", ()))),
            _stateful(stateful, (_task(t) for k in _COPIES for t in one.get(k, ()))),
            _stateful(stateful, map(_task, one.get("lags", ()))),
            tuple(state[one["id"]]),
            _tags(one, config.get("rack_aware_assignment_tags", ())),
        )
        for one in content["processes"]
    ]
    return Application(document.id, topics, tuple(processes), {})


def read_answer(application: Application, answer: Mapping[str, Any]) -> StreamsAnswer:
    """Convert the answer of an assignor.

    The tasks of a process that are not assigned to threads are dealt to them, stateful tasks
    first and standbys last: no other distribution is more even.
    """
    if "members" in answer:
        process_of = application.threads
        threads = {
            thread: [*_tasks(answer["members"].get(thread, {}).get("active", {}))]
            for thread in process_of
        }
        active: dict[str, list[Task]] = {one.id: [] for one in application.processes}
        standby: dict[str, list[Task]] = {one.id: [] for one in application.processes}
        copies = []
        for thread, process in process_of.items():
            active[process] += threads[thread]
            standbys = [*_tasks(answer["members"].get(thread, {}).get("standby", {}))]
            standby[process] += standbys
            copies.append(len(threads[thread]) + len(standbys))
        return StreamsAnswer(
            Assignment(threads), Assignment(active), Assignment(standby), tuple(copies)
        )
    active, standby = (
        {
            one.id: [*map(_task, answer["processes"].get(one.id, {}).get(key, ()))]
            for one in application.processes
        }
        for key in ("active", "standby")
    )
    names = {topic.name for topic in application.stateful}
    threads, copies = {}, []
    for one in application.processes:
        tasks = sorted(active[one.id], key=lambda task: (task.topic not in names, task))
        count = len(one.threads)
        threads |= {thread: tasks[at::count] for at, thread in enumerate(one.threads)}
        dealt = range(len(tasks) + len(standby[one.id]))
        copies += [len(dealt[at::count]) for at in range(count)]
    return StreamsAnswer(
        Assignment(threads), Assignment(active), Assignment(standby), tuple(copies)
    )


def _task(text: str) -> Task:
    subtopology, number = parse_task(text)
    return Task(str(subtopology), number)


def _topics(content: Mapping[str, Any], standbys: int) -> tuple[Topic, ...]:
    return tuple(
        Topic(
            name,
            fields["partitions"],
            is_stateful=fields["stateful"],
            standbys=standbys if fields["stateful"] else 0,
        )
        for name, fields in content["subtopologies"].items()
    )


def _group_processes(
    members: Sequence[Mapping[str, Any]], topics: Sequence[Topic], keys: Sequence[str]
) -> Iterator[Process]:
    """Yield the processes of a Streams group.

    A process has the state of its previous tasks and of its local directories.
    """
    stateful = {topic.name for topic in topics if topic.is_stateful}
    for id in dict.fromkeys(member["process"] for member in members):
        inside = [member for member in members if member["process"] == id]

        def of(*names: str, inside: Sequence[Mapping[str, Any]] = inside) -> Iterator[Task]:
            for member in inside:
                for key in names:
                    yield from _tasks(member.get(key, {}))

        yield Process(
            id,
            tuple(member["id"] for member in inside),
            tuple(of("active")),
            _stateful(stateful, of(*_COPIES)),
            _stateful(stateful, of("offsets")),
            _stateful(stateful, of(*_COPIES, "offsets")),
            _tags(inside[0], keys),
        )


def _stateful(names: Collection[str], tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return each task of some subtopologies once."""
    return tuple(dict.fromkeys(task for task in tasks if task.topic in names))


def _tasks(table: Mapping[str, Any]) -> Iterator[Task]:
    """Yield the tasks of a table from subtopologies to partition numbers."""
    for name, numbers in table.items():
        for number in numbers:
            yield Task(name, int(number))


def _tags(one: Mapping[str, Any], keys: Sequence[str]) -> tuple[tuple[str, str], ...]:
    tags = one.get("tags", {})
    return tuple((key, tags[key]) for key in keys if key in tags)
