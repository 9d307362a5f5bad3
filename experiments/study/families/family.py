"""Base class of the families of groups."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from random import Random
from typing import NamedTuple

from kassay.reference.model.group import Group


class Range(NamedTuple):
    """Range of integers, both ends included."""

    low: int
    high: int

    def draw(self, rng: Random) -> int:
        """Draw a number with a log-uniform distribution, so that small and large ones occur."""
        return min(self.high, int(self.low * ((self.high + 1) / self.low) ** rng.random()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Family(ABC):
    """A generator of groups. `build` is a pure function of the family and the seed."""

    name: str

    @property
    def size(self) -> int | None:
        """Number of groups; None if every seed gives a group."""
        return None

    @property
    def own_history(self) -> bool:
        """Whether members own earlier results of the assignor under study."""
        return False

    def parameters(self) -> dict[str, object]:
        """Return the parameters for the manifest."""
        return asdict(self)

    @abstractmethod
    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a seed, or at this position in a family with a size.

        With ``own_history``, members own earlier results of the assignor ``start``.
        """
