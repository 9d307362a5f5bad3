"""Upstream's hash maps of consumers, where a result hangs on their order."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from kassay.reference.java.hash_map import HashMap
from kassay.reference.java.strings import string_hash


def consumer_map(
    members: Sequence[str], consumers: Iterable[int], *, capacity: int | None = None
) -> HashMap[int, None]:
    """Put consumers, given by rank, into a map keyed by their ids.

    Examples
    --------
    >>> list(consumer_map(["c10", "c2", "c9"], [0, 1, 2]))
    [0, 2, 1]
    """
    # Ranks are in the order of the ids.
    return HashMap.of(
        consumers,
        lambda consumer: string_hash(members[consumer]),
        sort_key=lambda consumer: consumer,
        capacity=capacity,
    )


class CurrentAssignmentOrder:
    """Follows the order of the general algorithm's map of consumers to partitions.

    Consumers that take no part are taken out of the map and put back at the end, which
    can change the order within a bin.

    Parameters
    ----------
    members
        Ids of the consumers, by rank.
    subscribed
        Consumers in the order of the subscriptions, in which they were first put.
    """

    def __init__(self, members: Sequence[str], subscribed: Collection[int]) -> None:
        self._members = members
        self._current = consumer_map(members, subscribed)
        # Upstream goes over the consumers as this map of its has them.
        self._potential = list(consumer_map(members, subscribed, capacity=len(subscribed)))

    def __iter__(self) -> Iterator[int]:
        """Yield the consumers as the map has them now."""
        return iter(self._current)

    def remove(self, fixed: Collection[int]) -> None:
        """Take out the consumers that cannot take part."""
        for consumer in self._potential:
            if consumer in fixed:
                self._current.remove(consumer)

    def revert(self) -> None:
        """Fill the map anew from the copy made before balancing."""
        copied = list(consumer_map(self._members, self._current))
        self._current.clear()
        for consumer in copied:
            self._current.put(consumer, None)

    def put_back(self, fixed: Collection[int]) -> None:
        """Put in again the consumers that could not take part."""
        for consumer in consumer_map(self._members, (c for c in self._potential if c in fixed)):
            self._current.put(consumer, None)
