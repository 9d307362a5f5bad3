"""What a simulation leaves behind: every rebalance as a group document, and the accounts."""

from dataclasses import dataclass, field

from kassay.experiments.simulation.ownership_intervals import OwnershipInterval
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group


@dataclass(slots=True, kw_only=True)
class Step:
    """One rebalance.

    Parameters
    ----------
    at
        When the assignor ran, in milliseconds.
    generation
        Generation, or epoch, that it led to.
    group
        The group that the assignor saw, prior ownership included.
    assignment
        What it answered; None if it never did.
    names
        Client id of each member id.
    complete
        Whether every subscribed partition was given to somebody. Where it is not, what
        changes hands is withheld, and a rebalance follows.
    settled_at
        When the group was stable with it; None if it never was.
    """

    at: int
    generation: int
    group: Group
    assignment: Assignment | None
    names: dict[str, str]
    complete: bool
    settled_at: int | None = None


@dataclass(frozen=True, slots=True)
class TimelineNote:
    """Something that happened, in words."""

    at: int
    who: str
    what: str


@dataclass(slots=True, kw_only=True)
class SimulationResult:
    """One run of a script under one policy.

    Parameters
    ----------
    script, policy, until
        What was run, and how long in milliseconds of virtual time.
    steps
        Rebalances in their order.
    notes
        What happened, in its order.
    members
        Members by the coordinator's account after every change, with the time.
    stretches
        Who consumed what and when, if that was kept.
    moves
        Partitions that went from one member of the group to another.
    stopped_ms
        Partition-milliseconds without a consumer.
    unread
        Messages that came to partitions while those had no consumer.
    rereads
        Messages read twice.
    lag_peak, lag
        Most messages not read yet at any poll, and those at the end.
    """

    script: str
    policy: str
    until: int
    steps: list[Step] = field(default_factory=list)
    notes: list[TimelineNote] = field(default_factory=list)
    members: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    stretches: list[OwnershipInterval] = field(default_factory=list)
    moves: int = 0
    stopped_ms: int = 0
    unread: int = 0
    rereads: int = 0
    lag_peak: int = 0
    lag: int = 0

    @property
    def settled(self) -> list[Step]:
        """The rebalances that came to an end."""
        return [step for step in self.steps if step.settled_at is not None]

    def episodes(self) -> list[list[Step]]:
        """Group the settled steps: each episode goes on until nothing is withheld any more."""
        episodes: list[list[Step]] = []
        goes_on = False
        for step in self.settled:
            if goes_on:
                episodes[-1].append(step)
            else:
                episodes.append([step])
            goes_on = not step.complete
        return episodes
