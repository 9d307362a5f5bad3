"""Upstream's hash maps of consumers, for results that depend on their order."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from kassay.reference.java.hash_map import HashMap
from kassay.reference.java.strings import string_hash


def consumer_map(
    members: Sequence[str], consumers: Iterable[int], *, capacity: int | None = None
) -> HashMap[int, None]:
    """Create a map of consumers, given by rank, with their ids as keys.

    Examples
    --------
    >>> list(consumer_map(["c10", "c2", "c9"], [0, 1, 2]))
    [0, 2, 1]
    """
    # Tie-break: ranks are in the order of the ids.
    return HashMap.of(
        consumers,
        lambda consumer: string_hash(members[consumer]),
        sort_key=lambda consumer: consumer,
        capacity=capacity,
    )


class CurrentAssignmentOrder:
    """Order of the general algorithm's map of consumers to partitions.

    Consumers that cannot participate are removed and added again at the end, which can
    change the order within a bin. ``subscribed`` is the initial insertion order.
    """

    def __init__(self, members: Sequence[str], subscribed: Collection[int]) -> None:
        self._members = members
        self._current = consumer_map(members, subscribed)
        # Tie-break: upstream iterates the consumers in the order of this second map.
        self._potential = list(consumer_map(members, subscribed, capacity=len(subscribed)))

    def __iter__(self) -> Iterator[int]:
        """Yield the consumers in the order of the map."""
        return iter(self._current)

    def remove(self, fixed: Collection[int]) -> None:
        """Remove the consumers that cannot participate."""
        for consumer in self._potential:
            if consumer in fixed:
                self._current.remove(consumer)

    def revert(self) -> None:
        """Refill the map from the copy made before balancing."""
        copied = list(consumer_map(self._members, self._current))
        self._current.clear()
        for consumer in copied:
            self._current.put(consumer, None)

    def put_back(self, fixed: Collection[int]) -> None:
        """Add the consumers again that cannot participate."""
        for consumer in consumer_map(self._members, (c for c in self._potential if c in fixed)):
            self._current.put(consumer, None)
