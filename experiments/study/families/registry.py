"""The families by name."""

from dataclasses import replace
from typing import Protocol

from kassay.experiments.study.families.benchmark_grid import JMH, JMH_SMALL
from kassay.experiments.study.families.exhaustive_groups import EXHAUSTIVE_FAMILIES
from kassay.experiments.study.families.membership_events import MembershipEvent
from kassay.experiments.study.families.named_groups import NamedFamily
from kassay.experiments.study.families.overlapping_subscriptions import OVERLAPS
from kassay.experiments.study.families.seeded_groups import Range, SeededFamily
from kassay.experiments.study.families.simulated_groups import SimulatedFamily
from kassay.experiments.study.families.weighted_groups import RACKS, WEIGHTED
from kassay.reference.model.group import Group


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
            several if mixed or event is MembershipEvent.RESUBSCRIBE else plain,
            name=f"{prefix}-{event}",
            event=event,
        )
        for event in MembershipEvent
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
    SimulatedFamily(name="scenarios"),
    *EXHAUSTIVE_FAMILIES,
    JMH_SMALL,
    JMH,
)
FAMILIES: dict[str, Family] = {family.name: family for family in (*_USUAL, *_OTHERS)}
"""All families by name."""

USUAL: tuple[str, ...] = tuple(family.name for family in _USUAL)
"""Those that a study without a configuration takes."""
