"""The families by name."""

from dataclasses import replace
from typing import Protocol

from experiments.families.events import Event
from experiments.families.grid import JMH, JMH_SMALL
from experiments.families.named import NamedFamily
from experiments.families.overlap import OVERLAPS
from experiments.families.scenarios import ScenarioFamily
from experiments.families.seeded import Range, SeededFamily
from experiments.families.weighted import RACKS, WEIGHTED
from experiments.families.worlds import WORLDS
from reference.group import Group


class Family(Protocol):
    """A generator of groups: a frozen value whose ``build`` is a pure function."""

    @property
    def name(self) -> str:
        """Name, unique among families."""
        ...

    @property
    def size(self) -> int | None:
        """How many groups there are; None where seeds never run out."""
        ...

    @property
    def own_history(self) -> bool:
        """Whether the group depends on whose results its members own."""
        ...

    def parameters(self) -> dict[str, object]:
        """Return the parameters, as a manifest records them."""
        ...

    def expected_seconds(self, seed: int) -> float:
        """Guess how long all assignors and the optimum take on the group of a seed."""
        ...

    def build(self, seed: int, *, start: str | None = None) -> Group:
        """Build the group of a seed."""
        ...


SEVERAL_TOPICS = Range(2, 10)


def _seeded(prefix: str, *, mixed: bool) -> tuple[SeededFamily, ...]:
    plain = SeededFamily(name=prefix, mixed=mixed)
    several = replace(plain, topics=SEVERAL_TOPICS)
    one_event = (
        replace(
            several if mixed or event is Event.RESUBSCRIBE else plain,
            name=f"{prefix}-{event}",
            event=event,
        )
        for event in Event
    )
    churn = replace(several if mixed else plain, name=f"{prefix}-churn", steps=5, own_history=True)
    return (*one_event, churn)


_USUAL: tuple[Family, ...] = (
    NamedFamily(),
    *_seeded("equal", mixed=False),
    *_seeded("mixed", mixed=True),
)
_OTHERS: tuple[Family, ...] = (
    *OVERLAPS,
    *WEIGHTED,
    *RACKS,
    ScenarioFamily(name="scenarios"),
    *WORLDS,
    JMH_SMALL,
    JMH,
)
FAMILIES: dict[str, Family] = {family.name: family for family in (*_USUAL, *_OTHERS)}
"""All families by name."""

USUAL: tuple[str, ...] = tuple(family.name for family in _USUAL)
"""Those that a study without a configuration takes."""
