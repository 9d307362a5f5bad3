"""The uniform assignor's two pointers into its members, sorted by load.

Upstream: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer,
group-coordinator 4.4.0. Methods keep upstream's names.
"""

from collections.abc import Sequence


class MemberAssignmentBalancer:
    """Picks members to take partitions and members to give some, level by level.

    Two ranges of equally loaded members: at the low end those that receive in turn, at
    the high end those that give in turn. When all of a range had their turn, its level
    rises or falls by one and it takes in the members that are on the new level.

    Parameters
    ----------
    sizes
        Load of every member; read while it changes.
    members
        The members to balance.
    """

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._sorted_members = sorted(members, key=lambda member: (sizes[member], member))
        least, most = sizes[self._sorted_members[0]], sizes[self._sorted_members[-1]]
        self.imbalance = most - least
        self._least_loaded_range_end = 0
        self._least_loaded_level = least - 1
        self._next_least_loaded = 0
        self._most_loaded_range_start = len(members)
        self._most_loaded_range_end = len(members)
        self._most_loaded_level = most + 1
        self._next_most_loaded = len(members) - 1

    def next_least_loaded_member(self) -> int:
        """Return the member that takes the next partition."""
        if self._next_least_loaded >= self._least_loaded_range_end:
            self._least_loaded_level += 1
            while (
                self._least_loaded_range_end < len(self._sorted_members)
                and self._size_at(self._least_loaded_range_end) == self._least_loaded_level
            ):
                self._least_loaded_range_end += 1
            self._next_least_loaded = 0
        self._next_least_loaded += 1
        return self._sorted_members[self._next_least_loaded - 1]

    def next_most_loaded_member(self) -> int:
        """Return the member that gives the next partition, -1 if nobody can."""
        if self._next_most_loaded < self._most_loaded_range_start:
            emptied = self._most_loaded_range_end <= self._most_loaded_range_start
            if emptied and self._most_loaded_range_start > 0:
                self._most_loaded_level = self._size_at(self._most_loaded_range_start - 1)
            else:
                self._most_loaded_level -= 1
            while (
                self._most_loaded_range_start > 0
                and self._size_at(self._most_loaded_range_start - 1) == self._most_loaded_level
            ):
                self._most_loaded_range_start -= 1
            self._next_most_loaded = self._most_loaded_range_end - 1
        if self._next_most_loaded < 0:
            return -1
        self._next_most_loaded -= 1
        return self._sorted_members[self._next_most_loaded + 1]

    def exclude_most_loaded_member(self) -> None:
        """Leave out the member just returned: it has nothing to give."""
        members, place, end = (
            self._sorted_members,
            self._next_most_loaded + 1,
            self._most_loaded_range_end - 1,
        )
        members[place], members[end] = members[end], members[place]
        self._most_loaded_range_end = end

    def is_balanced(self) -> bool:
        """Tell whether the levels of the two ranges differ by one at most."""
        return self._most_loaded_level - self._least_loaded_level <= 1

    def _size_at(self, place: int) -> int:
        return self._sizes[self._sorted_members[place]]
