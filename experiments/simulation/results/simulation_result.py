"""Result of a simulation: rebalances as group documents, and totals."""

from dataclasses import dataclass, field

from kassay.experiments.simulation.results.ownership_intervals import OwnershipInterval
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
