"""Hash of a group that does not depend on names and order."""

from collections.abc import Iterable
from zlib import crc32

from kassay.reference.model.group import Group

_ROUNDS = 3
_LARGEST = 100_000  # subscriptions, claims and partitions; larger groups have no hash


def renaming_hash(group: Group) -> int | None:
    """Return a hash that is equal for groups that differ only in names and order.

    Names and order are those of members, topics and partitions. Members and topics get colours,
    which are refined by the colours of their neighbours. Groups with different hashes differ;
    groups with equal hashes are nearly always equal. None for large groups.

    Examples
    --------
    >>> from kassay.experiments.study.families.hand_written_groups import NAMED_GROUPS
    >>> group = NAMED_GROUPS["A"].group
    >>> turned = Group(topics=group.topics[::-1], members=group.members[::-1])
    >>> renaming_hash(group) == renaming_hash(turned)
    True
    """
    members, topics = group.members, group.topics
    size = sum(topic.partitions for topic in topics)
    if size + sum(len(m.subscription) + len(m.owned) for m in members) > _LARGEST:
        return None
    colours = [
        hash((member.generation + 2, member.speed, crc32((member.rack or "").encode())))
        for member in members
    ]
    consumers: dict[str, list[int]] = {topic.name: [] for topic in topics}
    claimants: dict[tuple[str, int], list[int]] = {}
    for index, member in enumerate(members):
        for name in member.subscription:
            consumers.setdefault(name, []).append(index)
        for name, number in member.owned:
            claimants.setdefault((name, number), []).append(index)
    fixed = {
        (topic.name, number): hash(
            (
                1 if topic.weights is None else topic.weights[number],
                *sorted(
                    crc32((rack or "").encode()) for rack in (topic.racks or {number: ()})[number]
                ),
            )
        )
        for topic in topics
        for number in range(topic.partitions)
    }
    of_topic: dict[str, int] = {}
    for _ in range(_ROUNDS):
        of_partition = {
            place: hash((fixed.get(place, 0), *_sorted(colours, claimants.get(place, ()))))
            for place in fixed.keys() | claimants.keys()
        }
        parts: dict[str, list[int]] = {name: [] for name in consumers}
        for (name, _), colour in of_partition.items():
            parts.setdefault(name, []).append(colour)
        of_topic = {
            name: hash((tuple(sorted(own)), _sorted(colours, consumers.get(name, ()))))
            for name, own in parts.items()
        }
        colours = [
            hash(
                (
                    colour,
                    tuple(sorted(of_topic[name] for name in member.subscription)),
                    tuple(sorted(of_partition[name, number] for name, number in member.owned)),
                )
            )
            for colour, member in zip(colours, members, strict=True)
        ]
    return hash((tuple(sorted(colours)), tuple(sorted(of_topic.values()))))


def _sorted(colours: list[int], indices: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(colours[index] for index in indices))
