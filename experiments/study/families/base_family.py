"""Base classes of families, which generate the groups of a study from seeds."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from kassay.experiments.implementations.assignor_names import shown_name
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group


class Range(NamedTuple):
    """Range of integers that includes both ends."""

    low: int
    high: int

    def draw(self, rng: Random) -> int:
        """Draw a number from the range with a log-uniform distribution."""
        return min(self.high, int(self.low * ((self.high + 1) / self.low) ** rng.random()))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededCases(ABC):
    """Base class of families, which generate one group or document per seed."""

    name: str
    # Members own earlier results of the studied assignor, so that it has cases of its own.
    own_history: bool = False

    @property
    def size(self) -> int | None:
        """Return the number of groups in the family, or None for one group per seed."""
        return None

    @property
    def is_finite(self) -> bool:
        """Return whether the family has a fixed number of groups."""
        return type(self).size is not SeededCases.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(SeededCases):
    """Base class of families of consumer groups."""

    def id_of(self, seed: int, start: str | None = None) -> str:
        """Return the id of the group that `build` returns for a seed."""
        return f"{self.name}/{seed}" + (f"@{shown_name(start)}" if start else "")

    @abstractmethod
    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a seed or, in a family of fixed size, of a position.

        In families with ``own_history``, members own earlier results of the assignor ``start``.
        """


def random_even_assignment(group: Group, rng: Random) -> Assignment:
    """Assign partitions in random order, each to a random member with minimum load."""
    subscribers = group.subscribers()
    partitions = [
        (topic.name, number)
        for topic in group.topics
        if subscribers.get(topic.name)
        for number in range(topic.partitions)
    ]
    rng.shuffle(partitions)
    lists: list[list[tuple[str, int]]] = [[] for _ in group.members]
    for partition in partitions:
        candidates = subscribers[partition[0]]
        least = min(len(lists[member]) for member in candidates)
        lists[rng.choice([m for m in candidates if len(lists[m]) == least])].append(partition)
    return Assignment(
        {member.id: sorted(tps) for member, tps in zip(group.members, lists, strict=True)}
    )
