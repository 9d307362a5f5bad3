"""Result of a simulation: rebalances as group documents, and totals; as text and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from kassay.experiments.simulation.results.ownership_intervals import OwnershipInterval
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group


@dataclass(slots=True, kw_only=True)
class SimulatedRebalance:
    """A rebalance of a simulation. Times are in milliseconds."""

    at: int  # when the assignor ran
    generation: int  # resulting generation, or epoch under the consumer protocol
    group: Group  # input of the assignor, owned partitions included
    assignment: Assignment | None  # None if the assignor failed or did not terminate
    client_ids: dict[str, str]  # by member id
    complete: bool  # False if partitions are withheld for a further rebalance
    stable_at: int | None = None  # when the group became stable with the assignment


@dataclass(frozen=True, slots=True)
class TimelineNote:
    """A note on the timeline about a member, a topic, the group or the broker.

    ``source`` names the subject of the note.
    """

    at: int
    source: str
    text: str


@dataclass(slots=True, kw_only=True)
class SimulationResult:
    """Result of the simulation of a script under one policy."""

    script: str
    policy: str
    until: int  # length of the run in ms
    rebalances: list[SimulatedRebalance] = field(default_factory=list)
    notes: list[TimelineNote] = field(default_factory=list)
    # Time of each change of the group, and the client ids after it.
    members: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    intervals: list[OwnershipInterval] = field(default_factory=list)  # empty if not recorded
    moves: int = 0  # partitions that went from one member of the group to another
    unowned_ms: int = 0  # partition-milliseconds without a consumer
    unowned_messages: int = 0  # messages produced to partitions without a consumer
    reread_messages: int = 0  # messages read twice
    max_lag: int = 0  # maximum number of unread messages over all polls
    lag: int = 0  # number of unread messages at the end

    def add_note(self, at: int, source: str, text: str) -> None:
        """Add a note to the timeline."""
        self.notes.append(TimelineNote(at, source, text))

    @property
    def completed(self) -> list[SimulatedRebalance]:
        """Return the rebalances after which the group became stable."""
        return [rebalance for rebalance in self.rebalances if rebalance.stable_at is not None]

    def sequences(self) -> list[list[SimulatedRebalance]]:
        """Split the rebalances into sequences that each end without withheld partitions."""
        sequences: list[list[SimulatedRebalance]] = []
        continues = False
        for rebalance in self.completed:
            if continues:
                sequences[-1].append(rebalance)
            else:
                sequences.append([rebalance])
            continues = not rebalance.complete
        return sequences


def timeline(result: SimulationResult) -> Iterator[str]:
    """Yield one line of text per timeline note and per rebalance, in order of time.

    Examples
    --------
    >>> result = SimulationResult(script="demo", policy="range", until=100_000)
    >>> result.add_note(83_250, "c0", "crash")
    >>> list(timeline(result))
    ['demo, range', '01:23.250  c0       crash']
    """
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
        for member, load in rebalance.assignment.loads().items()
    )
    withheld = "" if rebalance.complete else ", other partitions withheld for the next rebalance"
    return f"{prefix}assigns {loads}{withheld}"


def simulation_document(result: SimulationResult) -> Mapping[str, object]:
    """Return the JSON document of a simulation result, with a group document per rebalance."""
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
