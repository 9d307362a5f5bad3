"""Registry of all families, which generate the cases of studies, by name."""

from dataclasses import replace

from kassay.experiments.study.families import fixed_groups, random_groups
from kassay.experiments.study.families.document_families import DOCUMENTS, DocumentFamily
from kassay.experiments.study.families.event_streams import EVENT_STREAMS, RANDOM_PAST
from kassay.experiments.study.families.kafka_grid import KAFKA_GRID, KAFKA_GRID_SMALL


def _seeded(prefix: str, *, mixed: bool) -> tuple[random_groups.SeededFamily, ...]:
    one_topic_allowed = random_groups.SeededFamily(name=prefix, mixed=mixed)
    several_topics = replace(one_topic_allowed, topics=random_groups.Range(2, 10))
    base = several_topics if mixed else one_topic_allowed
    one_event = (
        replace(
            several_topics if event is random_groups.MembershipEvent.RESUBSCRIBE else base,
            name=f"{prefix}-{event}",
            event=event,
        )
        for event in random_groups.MembershipEvent
    )
    return (*one_event, replace(base, name=f"{prefix}-churn", steps=5, own_history=True))


_USUAL: tuple[random_groups.Family, ...] = (
    fixed_groups.NamedFamily(),
    *_seeded("equal", mixed=False),
    *_seeded("mixed", mixed=True),
)
_OTHERS: tuple[random_groups.Family, ...] = (
    *random_groups.OVERLAPS,
    *random_groups.WEIGHTED,
    *random_groups.RACKS,
    fixed_groups.SimulatedFamily(name="scenarios"),
    *fixed_groups.EXHAUSTIVE_FAMILIES,
    fixed_groups.JMH_SMALL,
    fixed_groups.JMH,
    fixed_groups.WINDOWS_SMALL,
    KAFKA_GRID,
    KAFKA_GRID_SMALL,
    *random_groups.LARGE,
    EVENT_STREAMS,
    RANDOM_PAST,
)
FAMILIES: dict[str, random_groups.Family] = {family.name: family for family in (*_USUAL, *_OTHERS)}
"""All families of consumer groups by name."""

DOCUMENT_FAMILIES: dict[str, DocumentFamily] = {family.name: family for family in DOCUMENTS}
"""All families of share groups, Streams applications and Connect clusters by name."""

STUDIED: dict[str, random_groups.SeededCases] = {**FAMILIES, **DOCUMENT_FAMILIES}
"""All families that a study can have, by name."""

USUAL: tuple[str, ...] = tuple(family.name for family in _USUAL)
"""Names of the families in a study without a configuration."""
