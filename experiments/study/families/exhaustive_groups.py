"""Every small group there is, one of each kind up to symmetry.

Members are alike but for what they consume and own, topics of one size are alike but for
who consumes and owns them, and partitions of a topic are alike but for their owner. Two
groups that differ by names alone are the same kind; of each kind one is built.
"""

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, permutations, product

from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions

# A topic: for each member, None if it does not consume it, else how many it owns; and how
# many partitions have no owner.
_Topic = tuple[tuple[int, ...], int]
_ABSENT = -1


def exhaustive_groups(*, members: int, partitions: int) -> Iterator[Group]:
    """Yield all groups with exactly so many members and partitions, up to symmetry.

    Every topic has a consumer and every member consumes something.

    Parameters
    ----------
    members
        Number of members, 1 or more.
    partitions
        Number of partitions of all topics together, 1 or more.

    Examples
    --------
    >>> sum(1 for _ in exhaustive_groups(members=1, partitions=2))
    6
    >>> sum(1 for _ in exhaustive_groups(members=2, partitions=2))
    17
    """
    for sizes in _splits(partitions, partitions):
        for topics in _topic_sets(sizes, members):
            if _everybody_consumes(topics, members) and _is_first_of_its_kind(topics, members):
                yield _group(topics, members)


def _splits(total: int, most: int) -> Iterator[tuple[int, ...]]:
    """Ways to write a number as a sum of descending parts."""
    if total == 0:
        yield ()
        return
    for part in range(min(total, most), 0, -1):
        for rest in _splits(total - part, part):
            yield (part, *rest)


def _topic_sets(sizes: tuple[int, ...], members: int) -> Iterator[tuple[_Topic, ...]]:
    """Choose a kind for every topic; topics of one size in ascending order of their kinds."""
    runs = [(size, sizes.count(size)) for size in dict.fromkeys(sizes)]
    choices = [
        combinations_with_replacement(tuple(_kinds(size, members)), count) for size, count in runs
    ]
    for chosen in product(*choices):
        yield tuple(topic for run in chosen for topic in run)


def _kinds(size: int, members: int) -> Iterator[_Topic]:
    for count in range(1, members + 1):
        for consumers in combinations(range(members), count):
            for owned in product(range(size + 1), repeat=count):
                if sum(owned) <= size:
                    row = [_ABSENT] * members
                    for member, number in zip(consumers, owned, strict=True):
                        row[member] = number
                    yield tuple(row), size - sum(owned)


def _everybody_consumes(topics: tuple[_Topic, ...], members: int) -> bool:
    return all(any(row[member] != _ABSENT for row, _ in topics) for member in range(members))


def _is_first_of_its_kind(topics: tuple[_Topic, ...], members: int) -> bool:
    """Whether no renaming of the members gives a description that sorts before this one."""
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
    return unowned + sum(number for number in row if number != _ABSENT)


def _group(topics: tuple[_Topic, ...], members: int) -> Group:
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    wanted: list[list[str]] = [[] for _ in range(members)]
    for index, (row, _) in enumerate(topics):
        name, start = f"t{index}", 0
        for member, number in enumerate(row):
            if number == _ABSENT:
                continue
            wanted[member].append(name)
            owned[member].extend((name, start + offset) for offset in range(number))
            start += number
    return Group(
        topics=tuple(
            Topic(name=f"t{index}", partitions=_size(topic)) for index, topic in enumerate(topics)
        ),
        members=tuple(
            Member(
                id=f"c{index}",
                subscription=tuple(wanted[index]),
                owned=Partitions.of(owned[index]),
                generation=1 if owned[index] else -1,
            )
            for index in range(members)
        ),
    )
