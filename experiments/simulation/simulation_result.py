"""Result of a simulation: rebalances, consumed partitions, totals and cost."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from kassay.experiments.comparison.compare import compare
from kassay.experiments.implementations.run_assignor import Ending, StableResult
from kassay.experiments.simulation.assignor_policies import Policy
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import InternalError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure
from kassay.reference.model.topic_partitions import Partitions

NO_OWNER, NEVER_OWNED = -1, -2


class OverlapError(InternalError):
    """Internal error: two simulated members consume the same partition at the same time."""


@dataclass(slots=True)
class _Topic:
    """Owners of a topic's partitions, indexed by partition number.

    ``last`` is the last consumer of a partition. Before the first consumer, it is `NO_OWNER` for a
    partition that was added to a topic later, and `NEVER_OWNED` for other partitions. The time with
    `NO_OWNER` counts as time without a consumer, the time with `NEVER_OWNED` does not.
    """

    name: str
    rate: int
    owner: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    released_at: list[int] = field(default_factory=list)
    lost_ms: list[int] = field(default_factory=list)
    lost_messages: int = 0

    def grow(self, partitions: int, last: int, now: int) -> None:
        added = partitions - len(self.owner)
        self.owner += [NO_OWNER] * added
        self.last += [last] * added
        self.released_at += [now] * added
        self.lost_ms += [0] * added

    def unowned_since(self) -> Iterator[tuple[int, int]]:
        """Yield each partition that has lost its consumer, with the time of the loss in ms."""
        for number, owner in enumerate(self.owner):
            if owner == NO_OWNER and self.last[number] != NEVER_OWNED:
                yield number, self.released_at[number]

    def messages(self, start: int, end: int) -> int:
        """Return the number of messages produced to one partition between two times in ms."""
        return self.rate * end // 1000 - self.rate * start // 1000


class ConsumedPartitions:
    """Totals of the moves of partitions, and of their time without a consumer.

    A partition has a consumer while a member to which it is assigned runs and polls. The
    time before the first consumer is not counted.
    """

    def __init__(self) -> None:
        self.moves = 0
        self._topics: dict[str, _Topic] = {}
        self._members: dict[str, int] = {}
        self._absent: set[int] = set()
        self._now = 0
        self._consumed = 0
        self._stopped_at: int | None = None
        self._stopped_ms = 0

    def add_topic(self, name: str, partitions: int, *, rate: int, now: int) -> None:
        """Add a topic, or add partitions to an existing topic."""
        self._now = now
        last = NO_OWNER if name in self._topics else NEVER_OWNED
        self._topics.setdefault(name, _Topic(name, rate)).grow(partitions, last, now)

    def acquire(self, member: str, partitions: Partitions, now: int) -> None:
        """Record that a member starts to consume partitions, or raise OverlapError."""
        new_owner, absent = self._number(member), self._absent
        self._now = now
        if not self._consumed and self._stopped_at is not None:
            self._stopped_ms += now - self._stopped_at
        self._consumed += len(partitions)
        for topic, numbers in self._columns(partitions):
            owner, last = topic.owner, topic.last
            lost, released_at = topic.lost_ms, topic.released_at
            for number in numbers:
                if owner[number] != NO_OWNER:
                    raise OverlapError(
                        f"internal error: {member!r} acquires {topic.name}-{number} at {now} ms, "
                        f"but {list(self._members)[owner[number]]!r} consumes it; report a bug"
                    )
                owner[number] = new_owner
                previous = last[number]
                if previous != NEVER_OWNED:
                    lost[number] += now - released_at[number]
                    if topic.rate:  # Most predictions count no messages.
                        topic.lost_messages += topic.messages(released_at[number], now)
                last[number] = new_owner
                # Former members, and the numbers below 0 of partitions without one, do not count.
                if previous >= 0 and previous != new_owner and previous not in absent:
                    self.moves += 1

    def release(self, partitions: Partitions, now: int) -> None:
        """Record that the current consumers of partitions stop consuming them."""
        self._now = now
        self._consumed -= len(partitions)
        if not self._consumed:
            self._stopped_at = now
        for topic, numbers in self._columns(partitions):
            owner, released_at = topic.owner, topic.released_at
            for number in numbers:
                owner[number] = NO_OWNER
                released_at[number] = now

    def set_members(self, members: Iterable[str]) -> None:
        """Set the current members, because partitions of former members do not count as moves."""
        present = {self._number(member) for member in members}
        self._absent = set(self._members.values()) - present

    def close(self, now: int) -> None:
        """Set the time in ms up to which the totals count."""
        self._now = now

    @property
    def unowned_ms(self) -> int:
        """Return the total time of partitions without a consumer, in partition-milliseconds."""
        return sum(map(sum, self.unowned_ms_by_partition().values()))

    @property
    def stopped_ms(self) -> int:
        """Return the time in ms in which no partition has a consumer, from the first one on."""
        if self._consumed or self._stopped_at is None:
            return self._stopped_ms
        return self._stopped_ms + self._now - self._stopped_at

    def unowned_ms_by_partition(self) -> dict[str, list[int]]:
        """Return the time in ms without a consumer, by topic and partition number."""
        found = {name: topic.lost_ms.copy() for name, topic in self._topics.items()}
        for name, topic in self._topics.items():
            for number, start in topic.unowned_since():
                found[name][number] += self._now - start
        return found

    @property
    def unowned_messages(self) -> int:
        """Return the number of messages produced to partitions without a consumer."""
        return sum(
            topic.lost_messages
            + sum(topic.messages(start, self._now) for _, start in topic.unowned_since())
            for topic in self._topics.values()
        )

    def _columns(self, partitions: Partitions) -> list[tuple[_Topic, list[int]]]:
        names, numbers = partitions.topics, partitions.numbers
        if len(names) == 1:
            return [(self._topics[names[0]], numbers.tolist())]
        return [
            (self._topics[name], numbers[partitions.codes == code].tolist())
            for code, name in enumerate(names)
        ]

    def _number(self, member: str) -> int:
        return self._members.setdefault(member, len(self._members))


@dataclass(slots=True, kw_only=True)
class SimulatedRebalance:
    """Rebalance of a simulation. Times are in milliseconds."""

    at: int  # when the assignor ran
    generation: int  # resulting generation, or epoch under the consumer protocol
    group: Group  # input of the assignor, owned partitions included
    assignment: Assignment | None  # None if the assignor failed or did not terminate
    client_ids: dict[str, str]  # by member id
    complete: bool  # False if partitions are withheld for a further rebalance
    stable_at: int | None = None  # when the group became stable with the assignment


@dataclass(frozen=True, slots=True)
class TimelineNote:
    """Note on the timeline of a simulation, about a member, topic, group or broker."""

    at: int
    source: str
    text: str


@dataclass(slots=True, kw_only=True)
class SimulationResult:
    """Result of the simulation of a script with one policy."""

    script: str
    policy: str
    until: int  # length of the run in ms
    rebalances: list[SimulatedRebalance] = field(default_factory=list)
    notes: list[TimelineNote] = field(default_factory=list)
    moves: int = 0  # partitions that went from one member of the group to another
    unowned_ms: int = 0  # partition-milliseconds without a consumer
    unowned_messages: int = 0  # messages produced to partitions without a consumer
    reread_messages: int = 0  # messages read twice
    max_lag: int = 0  # maximum number of unread messages over all polls
    lag: int = 0  # number of unread messages at the end

    @property
    def completed(self) -> list[SimulatedRebalance]:
        """Return the rebalances after which the group was stable."""
        return [rebalance for rebalance in self.rebalances if rebalance.stable_at is not None]

    def sequences(self) -> list[list[SimulatedRebalance]]:
        """Divide the completed rebalances into parts that end with one that withholds nothing."""
        sequences: list[list[SimulatedRebalance]] = [[]]
        for rebalance in self.completed:
            sequences[-1].append(rebalance)
            if rebalance.complete:
                sequences.append([])
        return [one for one in sequences if one]


def timeline(result: SimulationResult) -> Iterator[str]:
    """Yield one line of text per timeline note and per rebalance, in order of time."""
    yield f"{result.script}, {result.policy}"
    lines = [(note.at, index, note.source, note.text) for index, note in enumerate(result.notes)]
    lines += [(r.at, len(lines), "assignor", _describe(r)) for r in result.rebalances]
    for at, _, source, text in sorted(lines):
        seconds, milliseconds = divmod(at, 1000)
        yield f"{seconds // 60:02d}:{seconds % 60:02d}.{milliseconds:03d}  {source:8} {text}"


def _describe(rebalance: SimulatedRebalance) -> str:
    prefix = f"generation {rebalance.generation}: "
    if rebalance.assignment is None:
        return prefix + "no assignment"
    loads = " ".join(
        f"{rebalance.client_ids[member]}:{load}"
        for member, load in rebalance.assignment.counts().items()
    )
    withheld = "" if rebalance.complete else ", other partitions withheld for the next rebalance"
    return f"{prefix}assigns {loads}{withheld}"


def simulation_document(result: SimulationResult) -> Mapping[str, object]:
    """Convert a simulation result to JSON, with a group document per rebalance."""
    totals = ["moves", "unowned_ms", "unowned_messages", "reread_messages", "max_lag"]
    return {
        **{name: getattr(result, name) for name in ["script", "policy", "until", *totals]},
        "rounds": [len(sequence) for sequence in result.sequences()],
        "notes": [asdict(note) for note in result.notes],
        "rebalances": [
            {
                "at": rebalance.at,
                "stable_at": rebalance.stable_at,
                "generation": rebalance.generation,
                "complete": rebalance.complete,
                "group": group_document(rebalance.group),
                "assignment": None
                if rebalance.assignment is None
                else assignment_document(rebalance.assignment),
            }
            for rebalance in result.rebalances
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationCost:
    """Costs of a simulation since its first event, with the minimum numbers of moves."""

    result: SimulationResult
    protocol: str
    rebalances: int  # generations, or target assignments under the consumer protocol
    # Summed over the rebalances:
    needed_moves: int  # fewest moves to minimum imbalance
    unnecessary_moves: int  # moves beyond the fewest that give the same imbalance
    imbalance_gap: int  # sum of squared loads above the minimum
    proven: bool  # whether every optimum in these sums is proven

    @property
    def unowned_seconds(self) -> float:
        """Return the total time of partitions without a consumer, in partition-seconds."""
        return self.result.unowned_ms / 1000


def cost_of(result: SimulationResult, policy: Policy, *, measured_from: int) -> SimulationCost:
    """Compare the rebalances from ``measured_from`` (ms) with the optimum, and add up the costs."""
    sequences = [s for s in result.sequences() if s[0].at >= measured_from]
    needed = unnecessary = gap = 0
    proven = True
    for group, assignment in filter(None, map(_combined, sequences)):
        stable = StableResult(ending=Ending.OK, assignment=assignment, rounds=1)
        comparison = compare(group, policy.name, result=stable)
        proven = proven and comparison.unnecessary_moves is not None
        needed += comparison.movement.optimum or 0
        unnecessary += comparison.unnecessary_moves or 0
        gap += comparison.imbalance[Measure.SUM_OF_SQUARES].gap or 0
    return SimulationCost(
        result=result,
        protocol=str(policy.protocol),
        rebalances=sum(map(len, sequences)),
        needed_moves=needed,
        unnecessary_moves=unnecessary,
        imbalance_gap=gap,
        proven=proven,
    )


def _combined(sequence: list[SimulatedRebalance]) -> tuple[Group, Assignment] | None:
    """Return the first group and last assignment of a sequence, or None if it is incomplete.

    The first group is the one after the last change of members or topics.
    """
    last = sequence[-1]
    if last.assignment is None or not last.complete or not last.group.members:
        return None
    final = _membership(last.group)
    first = next(rebalance for rebalance in sequence if _membership(rebalance.group) == final)
    return first.group, last.assignment


def _membership(group: Group) -> object:
    return group.topics, [(member.id, member.subscription) for member in group.members]
