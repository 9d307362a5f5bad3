"""Result of a simulation: rebalances as group documents, and totals."""

from dataclasses import dataclass, field

from kassay.experiments.simulation.ownership_intervals import OwnershipInterval
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group


@dataclass(slots=True, kw_only=True)
class SimulatedRebalance:
    """One rebalance; times in milliseconds.

    Parameters
    ----------
    at
        When the assignor ran.
    generation
        Resulting generation, or epoch under the consumer protocol.
    group
        Input of the assignor, owned partitions included.
    assignment
        Its result; None if it failed or did not terminate.
    client_ids
        Client id by member id.
    complete
        Whether every subscribed partition was assigned. If not, partitions are withheld
        for a further rebalance.
    stable_at
        When the group became stable with the assignment; None if it never did.
    """

    at: int
    generation: int
    group: Group
    assignment: Assignment | None
    client_ids: dict[str, str]
    complete: bool
    stable_at: int | None = None


@dataclass(frozen=True, slots=True)
class TimelineNote:
    """A line of the timeline. ``source`` is a member, a topic, the group or the broker."""

    at: int
    source: str
    text: str


@dataclass(slots=True, kw_only=True)
class SimulationResult:
    """One run of a script under one policy.

    Parameters
    ----------
    until
        Length of the run in milliseconds.
    members
        Client ids in the group after each change, with the time of the change.
    intervals
        Ownership intervals, if they were recorded.
    moves
        Partitions that went from one member of the group to another.
    unowned_ms
        Partition-milliseconds without a consumer.
    unowned_messages
        Messages produced to partitions while they had no consumer.
    reread_messages
        Messages read twice.
    max_lag, lag
        Unread messages: maximum over all polls, and at the end.
    """

    script: str
    policy: str
    until: int
    rebalances: list[SimulatedRebalance] = field(default_factory=list)
    notes: list[TimelineNote] = field(default_factory=list)
    members: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    intervals: list[OwnershipInterval] = field(default_factory=list)
    moves: int = 0
    unowned_ms: int = 0
    unowned_messages: int = 0
    reread_messages: int = 0
    max_lag: int = 0
    lag: int = 0

    @property
    def completed(self) -> list[SimulatedRebalance]:
        """Rebalances after which the group became stable."""
        return [rebalance for rebalance in self.rebalances if rebalance.stable_at is not None]

    def sequences(self) -> list[list[SimulatedRebalance]]:
        """Group the completed rebalances; a sequence ends when nothing is withheld."""
        sequences: list[list[SimulatedRebalance]] = []
        continues = False
        for rebalance in self.completed:
            if continues:
                sequences[-1].append(rebalance)
            else:
                sequences.append([rebalance])
            continues = not rebalance.complete
        return sequences
