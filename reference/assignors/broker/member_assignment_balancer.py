"""Selection of the least and most loaded members in the uniform assignor.

Upstream: UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer,
group-coordinator 4.4.0. Methods keep upstream's names.
"""

from collections.abc import Sequence


class MemberAssignmentBalancer:
    """Selects members to receive partitions and members to give some, level by level.

    There are two ranges of equally loaded members. The members of the low range receive in
    turn, those of the high range give in turn. After a full turn the level of the range
    changes by one, and members on the new level join the range. ``sizes`` may change.
    """

    def __init__(self, sizes: Sequence[int], members: Sequence[int]) -> None:
        self._sizes = sizes
        self._sorted_members = sorted(members, key=lambda member: (sizes[member], member))
        min_size, max_size = sizes[self._sorted_members[0]], sizes[self._sorted_members[-1]]
        self.imbalance = max_size - min_size
        self._least_loaded_range_end = 0
        self._least_loaded_level = min_size - 1
        self._next_least_loaded = 0
        self._most_loaded_range_start = len(members)
        self._most_loaded_range_end = len(members)
        self._most_loaded_level = max_size + 1
        self._next_most_loaded = len(members) - 1

    def next_least_loaded_member(self) -> int:
        """Return the member that receives the next partition."""
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
        """Return the member that gives the next partition, -1 if there is none."""
        if self._next_most_loaded < self._most_loaded_range_start:
            is_empty = self._most_loaded_range_end <= self._most_loaded_range_start
            if is_empty and self._most_loaded_range_start > 0:
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
        """Exclude the member returned last, which has no partition to give."""
        self._most_loaded_range_end -= 1
        members, index, end = (
            self._sorted_members,
            self._next_most_loaded + 1,
            self._most_loaded_range_end,
        )
        members[index], members[end] = members[end], members[index]

    def is_balanced(self) -> bool:
        """Return whether the levels of the two ranges differ by at most one."""
        return self._most_loaded_level - self._least_loaded_level <= 1

    def _size_at(self, index: int) -> int:
        return self._sizes[self._sorted_members[index]]
