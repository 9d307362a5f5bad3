"""Generations of a consumer group, their table rows, and their partition counts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kassay.reference.model.group_annotations import Protocol

AssignedNumbers = tuple[tuple[str, tuple[int, ...]], ...]
"""Partition numbers by topic, in the order of the assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationMember:
    """A member in one generation of a group, with its subscription and assignment.

    ``subscription`` is None if the group does not consist of consumers. ``assigned`` is
    None if the records do not contain it. ``claimed`` are the partitions that the member
    claimed to own when it joined, and ``claimed_generation`` is their generation. Both are None
    if the assignor sends no claims.
    """

    id: str
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    rack: str | None = None
    subscription: tuple[str, ...] | None = ()
    assigned: AssignedNumbers | None = None
    claimed: AssignedNumbers | None = None
    claimed_generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generation of a group. Each field is a column of the table ``generations``.

    ``incarnation`` counts earlier deletions and restarts of the generations. ``number`` is the
    generation id or the epoch of the target assignment. ``timestamp`` is in milliseconds
    since 1970, ``partition`` and ``offset`` are those of the last record. ``skipped_epochs``
    counts directly preceding epochs that never had an assignment. Under a ``cooperative``
    assignor, a rebalance can take several generations. Members are sorted by id.
    """

    group: str
    incarnation: int
    number: int
    protocol: Protocol
    assignor: str | None
    timestamp: int | None
    partition: int | None
    offset: int | None
    members: tuple[GenerationMember, ...]
    partition_counts: tuple[tuple[str, int], ...] = ()
    skipped_epochs: int = 0
    cooperative: bool = False


def generation_row(generation: Generation) -> dict[str, object]:
    """Convert a generation to a row of the table ``generations``."""
    row = asdict(generation)
    row["protocol"] = str(generation.protocol)
    row["members"] = [_member_row(member) for member in generation.members]
    row["partition_counts"] = [
        {"topic": topic, "partitions": count} for topic, count in generation.partition_counts
    ]
    return row


def _member_row(member: GenerationMember) -> dict[str, object]:
    row = asdict(member)
    if member.subscription is not None:
        row["subscription"] = list(member.subscription)
    for name in ("assigned", "claimed"):
        if row[name] is not None:
            row[name] = [
                {"topic": topic, "partitions": list(numbers)} for topic, numbers in row[name]
            ]
    return row


def generation_of(row: Mapping[str, Any]) -> Generation:
    """Convert a row of the table ``generations`` to a generation."""
    return Generation(
        **{
            **row,
            "protocol": Protocol(row["protocol"]),
            "members": tuple(map(_member_of, row["members"])),
            "partition_counts": tuple(
                (each["topic"], each["partitions"]) for each in row["partition_counts"]
            ),
        }
    )


def _member_of(row: Mapping[str, Any]) -> GenerationMember:
    subscription = row["subscription"]
    lists = {name: row[name] for name in ("assigned", "claimed")}
    return GenerationMember(
        **{
            **row,
            "subscription": None if subscription is None else tuple(subscription),
            **{k: None if each is None else assigned_numbers(each) for k, each in lists.items()},
        }
    )


def assigned_numbers(entries: Iterable[Mapping[str, Any]]) -> AssignedNumbers:
    """Convert dicts with the keys ``topic`` and ``partitions`` to partition numbers by topic."""
    return tuple((each["topic"], tuple(each["partitions"])) for each in entries)


def counts_by_generation(
    generations: Sequence[Generation], given: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield the partition counts of topics at each generation of a group.

    The generations are from one incarnation of the group: it is not deleted between them.
    ``given`` are the counts at the end. They apply to assigned and to subscribed topics. A topic
    has fewer partitions before a generation in which new ones are assigned: then the count is that
    of the assignments so far. Partitions that are never assigned exist from the start.
    """
    final: dict[str, int] = {}
    for generation in generations:
        _observe(final, generation)
    observed: dict[str, int] = {}
    for generation in generations:
        _observe(observed, generation)
        counts = dict(observed)
        subscribed = {t for member in generation.members for t in member.subscription or ()}
        for topic in sorted((subscribed | observed.keys()) & given.keys()):
            if observed.get(topic, 0) == final.get(topic, 0):
                counts[topic] = max(given[topic], observed.get(topic, 0))
        yield counts


def _observe(counts: dict[str, int], generation: Generation) -> None:
    """Update partition counts from the assignments and recorded counts of a generation."""
    for member in generation.members:
        for topic, numbers in member.assigned or ():
            counts[topic] = max([counts.get(topic, 0), *(number + 1 for number in numbers)])
    counts.update(generation.partition_counts)
