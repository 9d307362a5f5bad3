"""Registry of all families, which generate the cases of studies, by name."""

from dataclasses import replace

from kassay.experiments.study.families.document_families import DOCUMENTS, DocumentFamily
from kassay.experiments.study.families.event_streams import EVENT_STREAMS, RANDOM_PAST
from kassay.experiments.study.families.fixed_groups import (
    EXHAUSTIVE_FAMILIES,
    JMH,
    JMH_SMALL,
    WINDOWS_SMALL,
    NamedFamily,
    SimulatedFamily,
)
from kassay.experiments.study.families.random_groups import (
    LARGE,
    OVERLAPS,
    RACKS,
    WEIGHTED,
    Family,
    MembershipEvent,
    Range,
    SeededCases,
    SeededFamily,
)


def _seeded(prefix: str, *, mixed: bool) -> tuple[SeededFamily, ...]:
    one_topic_allowed = SeededFamily(name=prefix, mixed=mixed)
    several_topics = replace(one_topic_allowed, topics=Range(2, 10))
    base = several_topics if mixed else one_topic_allowed
    one_event = (
        replace(
            several_topics if event is MembershipEvent.RESUBSCRIBE else base,
            name=f"{prefix}-{event}",
            event=event,
        )
        for event in MembershipEvent
    )
    return (*one_event, replace(base, name=f"{prefix}-churn", steps=5, own_history=True))


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
    WINDOWS_SMALL,
    *LARGE,
    EVENT_STREAMS,
    RANDOM_PAST,
)
FAMILIES: dict[str, Family] = {family.name: family for family in (*_USUAL, *_OTHERS)}
"""All families of consumer groups by name."""

DOCUMENT_FAMILIES: dict[str, DocumentFamily] = {family.name: family for family in DOCUMENTS}
"""All families of share groups, Streams applications and Connect clusters by name."""

STUDIED: dict[str, SeededCases] = {**FAMILIES, **DOCUMENT_FAMILIES}
"""All families that a study can have, by name."""

USUAL: tuple[str, ...] = tuple(family.name for family in _USUAL)
"""Names of the families in a study without a configuration."""
