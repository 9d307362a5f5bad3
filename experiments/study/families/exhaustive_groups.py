"""Families that contain every small group. Groups that differ only in names count once.

Groups that differ only in the names or numbers of members, topics and partitions are of the
same kind. One group per kind is built.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product

from kassay.experiments.study.families.family import Family
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions

# A topic as one number per member, its owned partitions or _NOT_SUBSCRIBED, and the number of
# partitions without an owner.
_Topic = tuple[tuple[int, ...], int]
_NOT_SUBSCRIBED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustiveFamily(Family):
    """Family of all groups with up to ``members`` members and ``partitions`` partitions."""

    members: int
    partitions: int

    @property
    def size(self) -> int:
        """Return the number of groups in the family."""
        return len(_family_groups(self.members, self.partitions))

    def parameters(self) -> dict[str, object]:
        """Return the parameters of the family, for the manifest of a study."""
        return asdict(self) | {"groups": self.size}

    def build(self, seed: int, *, start: str | None = None) -> Group:  # noqa: ARG002
        """Return the group at position ``seed`` of the family."""
        group = _family_groups(self.members, self.partitions)[seed]
        return replace(group, id=f"{self.name}/{seed}")


@cache
def _family_groups(members: int, partitions: int) -> tuple[Group, ...]:
    return tuple(exhaustive_groups_up_to(members=members, partitions=partitions))


EXHAUSTIVE_FAMILIES: tuple[ExhaustiveFamily, ...] = (
    ExhaustiveFamily(name="worlds-3x3", members=3, partitions=3),
    ExhaustiveFamily(name="worlds-3x4", members=3, partitions=4),
)


def exhaustive_groups_up_to(*, members: int, partitions: int) -> Iterator[Group]:
    """Yield all groups with 1 to ``members`` members and 1 to ``partitions`` partitions."""
    for partition_count in range(1, partitions + 1):
        for member_count in range(1, members + 1):
            yield from exhaustive_groups(members=member_count, partitions=partition_count)


def exhaustive_groups(*, members: int, partitions: int) -> Iterator[Group]:
    """Yield all groups with the given numbers of members and partitions, up to symmetry.

    Every topic has a subscriber, and every member has a subscription.

    Examples
    --------
    >>> sum(1 for _ in exhaustive_groups(members=2, partitions=2))
    17
    """
    for sizes in _descending_sums(partitions, partitions):
        for topics in _topic_combinations(sizes, members):
            if _all_subscribed(topics, members) and _is_canonical(topics, members):
                yield _group(topics, members)


def _descending_sums(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield all non-increasing sequences of positive integers with the given sum."""
    if total == 0:
        yield ()
        return
    for part in range(min(total, largest), 0, -1):
        for rest in _descending_sums(total - part, part):
            yield (part, *rest)


def _topic_combinations(sizes: tuple[int, ...], members: int) -> Iterator[tuple[_Topic, ...]]:
    """Yield all combinations of topics with the given partition counts."""
    by_size = [
        combinations_with_replacement(tuple(_topics(size, members)), sizes.count(size))
        for size in dict.fromkeys(sizes)
    ]
    for chosen in product(*by_size):
        yield tuple(topic for topics in chosen for topic in topics)


def _topics(size: int, members: int) -> Iterator[_Topic]:
    for count in range(1, members + 1):
        for subscribers in combinations(range(members), count):
            for owned in product(range(size + 1), repeat=count):
                if sum(owned) <= size:
                    row = [_NOT_SUBSCRIBED] * members
                    for member, number in zip(subscribers, owned, strict=True):
                        row[member] = number
                    yield tuple(row), size - sum(owned)


def _all_subscribed(topics: tuple[_Topic, ...], members: int) -> bool:
    return all(
        any(row[member] != _NOT_SUBSCRIBED for row, _ in topics) for member in range(members)
    )


def _is_canonical(topics: tuple[_Topic, ...], members: int) -> bool:
    """Return whether no reordering of the members gives a smaller description of the topics."""
    own = _sorted(topics)
    return all(
        own <= _sorted(tuple((tuple(row[m] for m in order), rest) for row, rest in topics))
        for order in permutations(range(members))
    )


def _sorted(topics: tuple[_Topic, ...]) -> tuple[tuple[int, _Topic], ...]:
    sized = ((_size(topic), topic) for topic in topics)
    return tuple(sorted(sized, key=lambda pair: (-pair[0], pair[1])))


def _size(topic: _Topic) -> int:
    row, unowned = topic
    return unowned + sum(number for number in row if number != _NOT_SUBSCRIBED)


def _group(topics: tuple[_Topic, ...], members: int) -> Group:
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    subscriptions: list[list[str]] = [[] for _ in range(members)]
    for index, (row, _) in enumerate(topics):
        name, start = f"t{index}", 0
        for member, number in enumerate(row):
            if number == _NOT_SUBSCRIBED:
                continue
            subscriptions[member].append(name)
            owned[member].extend((name, start + offset) for offset in range(number))
            start += number
    return Group(
        topics=tuple(
            Topic(name=f"t{index}", partitions=_size(topic)) for index, topic in enumerate(topics)
        ),
        members=tuple(
            Member(
                id=f"c{index}",
                subscription=tuple(subscriptions[index]),
                owned=Partitions.of(owned[index]),
                generation=1 if owned[index] else -1,
            )
            for index in range(members)
        ),
    )
