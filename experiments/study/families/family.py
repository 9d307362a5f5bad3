"""Base class of the families of groups."""

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
class Family(ABC):
    """Generator of groups. `build` depends on the family and the seed alone."""

    name: str

    @property
    def size(self) -> int | None:
        """Return the number of groups in the family, or None if every seed gives a group."""
        return None

    @property
    def own_history(self) -> bool:
        """Return whether members own the last assignment of the assignor under study."""
        return False

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the family for the manifest."""
        return asdict(self)

    @abstractmethod
    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a seed. In a family with a size, the seed is the group's position.

        With ``own_history``, members own earlier results of the assignor ``start``.
        """
