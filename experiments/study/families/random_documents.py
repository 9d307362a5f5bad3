"""Families of random share groups, Streams applications and Connect clusters.

A document has the state after an event. The state before the event is an earlier assignment by a
port. `kassay.experiments.study.evaluate_case` compares assignments with the optimum.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from uuid import UUID

from kassay.experiments.implementations.run_assignor import run_on_document
from kassay.experiments.kinds import streams_forecast
from kassay.experiments.study.families.base_family import SeededCases
from kassay.reference.assignors.connect import DEFAULT_MAX_DELAY
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document

HIGH_AVAILABILITY = "streams-high-availability"
DOWNTIME_MS = 30_000
"""Time in ms from the stop of a Connect worker to its return."""
JOIN, LEAVE, RESTART, START = "join", "leave", "restart", "start"
_THREADS = 2
WARMUPS = 2
_END_OFFSET = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFamily(SeededCases):
    """Base class of families of share groups, Streams applications or Connect clusters.

    ``places`` is the range of the number of members, processes or workers. ``topics`` is the range
    of the number of topics, subtopologies or connectors, ``partitions`` that of partitions or
    tasks in each.
    """

    kind: Kind
    event: str
    places: tuple[int, int] = (2, 6)
    topics: tuple[int, int] = (1, 4)
    partitions: tuple[int, int] = (1, 12)

    @abstractmethod
    def document(self, seed: int) -> KindDocument:
        """Build the document of a seed. Equal seeds give equal documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroups(DocumentFamily):
    """Family of share groups with random members, topics and partitions."""

    kind: Kind = Kind.SHARE
    places: tuple[int, int] = (3, 8)
    mixed: bool

    def document(self, seed: int) -> KindDocument:
        """Build the share group of a seed, at its start or after a member joins or leaves."""
        rng = Random(seed)  # noqa: S311 - reproducible cases
        topics = {f"t{n}": rng.randint(*self.partitions) for n in range(rng.randint(*self.topics))}
        members = []
        extra = int(self.event == LEAVE)
        for number in range(rng.randint(*self.places) + extra):
            names = sorted(topics)
            if self.mixed:
                names = sorted(rng.sample(names, rng.randint(1, len(names))))
            members.append({"id": f"m{number}", "topics": names, "owned": []})
        if self.event != START:
            # The order of the ids decides ties.
            changed = rng.randrange(len(members))
            others = members[:changed] + members[changed + 1 :]
            before, after = (others, members) if self.event == JOIN else (members, others)
            answer = run_on_document(_share(topics, before), "share").answer or {}
            members = [
                {**member, "owned": answer["members"].get(member["id"], [])} for member in after
            ]
        return _share(topics, members)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectClusters(DocumentFamily):
    """Family of Connect clusters with random workers, connectors and tasks.

    At a restart, a worker that is not the leader is back after `DOWNTIME_MS`.
    """

    kind: Kind = Kind.CONNECT
    partitions: tuple[int, int] = (1, 10)
    delay_ms: int = DEFAULT_MAX_DELAY

    def document(self, seed: int) -> KindDocument:
        """Build the cluster of a seed, with its states before and after a random event."""
        rng = Random(seed)  # noqa: S311 - reproducible cases
        workers = [f"w{number}" for number in range(rng.randint(*self.places))]
        count = rng.randint(*self.topics)
        connectors = {f"c{number}": rng.randint(*self.partitions) for number in range(count)}
        changes: Mapping[str, Sequence[Mapping[str, object]]] = {
            JOIN: [{"workers": [*workers, "new"]}],
            LEAVE: [{"workers": workers[:-1]}],
            RESTART: [
                {"workers": workers[:-1], "until_stable": False},
                {"workers": [*workers[:-1], "new"], "wait_ms": DOWNTIME_MS},
            ],
        }
        steps = [{"workers": workers}, *changes[self.event]]
        content = {
            "kind": str(self.kind),
            "scheduled_rebalance_max_delay_ms": self.delay_ms,
            "steps": [{**step, "connectors": connectors} for step in steps],
        }
        return parse_kind_document(content, kind=self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsApplications(DocumentFamily):
    """Family of Streams applications with two threads per process and stateful subtopologies.

    The defaults are 2 to 6 processes and 1 to 3 subtopologies of 3 to 12 partitions. Before the
    event, the application is stable under the high availability assignor.
    """

    kind: Kind = Kind.STREAMS
    topics: tuple[int, int] = (1, 3)
    partitions: tuple[int, int] = (3, 12)
    standbys: int = 0

    def document(self, seed: int) -> KindDocument:
        """Build the application of a seed at the rebalance after a random event."""
        rng = Random(seed)  # noqa: S311 - reproducible cases
        application = self._stable_application(rng)
        chosen = rng.choice(application.content["processes"])["id"]
        changes: Mapping[str, Callable[[], KindDocument]] = {
            JOIN: lambda: streams_forecast.join_process(application, _uuid(rng), threads=_THREADS),
            LEAVE: lambda: streams_forecast.leave_process(application, chosen),
            RESTART: lambda: streams_forecast.restart_process(application, chosen),
        }
        return changes[self.event]()

    def _stable_application(self, rng: Random) -> KindDocument:
        subtopologies = {}
        for number in range(rng.randint(*self.topics)):
            partitions = rng.randint(*self.partitions)
            subtopologies[str(number)] = {
                "partitions": partitions,
                "stateful": True,
                "end_offsets": [_END_OFFSET] * partitions,
            }
        processes = [
            {"id": _uuid(rng), "threads": _THREADS} for _ in range(rng.randint(*self.places))
        ]
        content = {
            "kind": str(self.kind),
            "subtopologies": subtopologies,
            "config": {"num_standby_replicas": self.standbys, "max_warmup_replicas": WARMUPS},
            "processes": processes,
        }
        fresh = parse_kind_document(content, kind=self.kind)
        return streams_forecast.run_application_until_stable(fresh, HIGH_AVAILABILITY).application


def _share(topics: Mapping[str, int], members: Sequence[object]) -> KindDocument:
    content = {"kind": str(Kind.SHARE), "topics": topics, "members": members}
    return parse_kind_document(content, kind=None)


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128)))
