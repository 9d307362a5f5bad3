"""Exhaustive families: every small group of a size, up to symmetry."""

from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import ClassVar

from kassay.experiments.study.families.exhaustive_groups import exhaustive_groups
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustiveFamily:
    """All groups of up to so many members and partitions; the seed is the position.

    Parameters
    ----------
    name
        Name of the family.
    members, partitions
        The most of each.
    """

    own_history: ClassVar[bool] = False

    name: str
    members: int
    partitions: int

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(_worlds(self.members, self.partitions))

    def parameters(self) -> dict[str, object]:
        """Return the parameters, as a manifest records them."""
        return asdict(self) | {"groups": self.size}

    def expected_seconds(self, seed: int) -> float:  # noqa: ARG002
        """Guess how long all assignors and the optimum take."""
        return 0.006

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Return the group at a position.

        Examples
        --------
        >>> ExhaustiveFamily(name="demo", members=2, partitions=2).size
        27
        """
        group = _worlds(self.members, self.partitions)[seed]
        return replace(group, id=f"{self.name}/{seed}")


@cache
def _worlds(members: int, partitions: int) -> tuple[Group, ...]:
    """Every process makes them once."""
    return tuple(
        group
        for total in range(1, partitions + 1)
        for count in range(1, members + 1)
        for group in exhaustive_groups(members=count, partitions=total)
    )


EXHAUSTIVE_FAMILIES: tuple[ExhaustiveFamily, ...] = (
    ExhaustiveFamily(name="worlds-3x3", members=3, partitions=3),
    ExhaustiveFamily(name="worlds-3x4", members=3, partitions=4),
)
