"""Base class of the families, which generate groups for studies."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from random import Random
from typing import NamedTuple

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
    """Base class of families. A family generates one group or document per seed."""

    name: str

    @property
    def size(self) -> int | None:
        """Return the number of groups in the family, or None if every seed gives a group."""
        return None

    @property
    def is_finite(self) -> bool:
        """Return whether the family has a fixed number of groups, so that none is a sample."""
        return type(self).size is not SeededCases.size

    @property
    def own_history(self) -> bool:
        """Return whether the owned partitions are earlier results of the studied assignor."""
        return False

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the family, for the manifest of a study."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(SeededCases):
    """Base class of families of consumer groups."""

    @abstractmethod
    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a seed. If the family has a size, the seed is a position.

        With ``own_history``, members own earlier results of the assignor ``start``.
        """
