"""Columns and scopes of the summary tables of a study, and the order of assignors and families.

Queries write the tables, and reports read them.
"""

from collections.abc import Iterable
from enum import StrEnum

from kassay.reference.assignors import ASSIGNORS, Goal, Release

COMPARED_ASSIGNORS = tuple(
    name
    for name, port in ASSIGNORS.items()
    if port.goal is Goal.BALANCE_AND_FEW_MOVES and port.release is Release.NEWEST
)
"""Assignors of the newest Kafka release that aim at balance and at few moves."""
NAMED_FAMILY = "named"
"""Name of the family of hand-written groups, which are excluded from all statistics."""
GENERATED = "generated"
"""Scope of the random groups with equal weights and without racks: the groups of all totals."""
APART = {
    "weights": "weights",
    "racks": "racks",
    "imported": "imported",
    "finite": "finite families",
    "named": "hand-written",
}
"""Scopes of the other groups. Each scope has results of its own, and groups of one unit."""
WORST_CANDIDATES = 16
"""Number of stored candidates for the worst groups, per assignor and kind of shortcoming."""
_ASSIGNOR_ORDER = tuple(
    sorted(
        ASSIGNORS,
        key=lambda name: (
            ASSIGNORS[name].release is Release.ZOOKEEPER_CONSUMER,
            ASSIGNORS[name].goal,
        ),
    )
)
_FAMILY_ORDER = tuple(
    f"{subscriptions}-{event}"
    for subscriptions in ("equal", "mixed")
    for event in ("fresh", "join", "leave", "resubscribe", "grow", "churn")
)


def assignors_of(names: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicate assignor names, and sort the names for tables of the report."""
    return _ordered(names, _ASSIGNOR_ORDER)


def compared_assignors(names: Iterable[str]) -> tuple[str, ...]:
    """Select, from the assignors of a study, those that the report compares in pairs."""
    ordered = assignors_of(names)
    return tuple(name for name in COMPARED_ASSIGNORS if name in ordered) or ordered[:3]


def families_of(names: Iterable[str]) -> tuple[str, ...]:
    """Remove duplicate family names, and sort the names: equal-* first, then mixed-*."""
    return _ordered(names, _FAMILY_ORDER)


def _ordered(names: Iterable[str], order: tuple[str, ...]) -> tuple[str, ...]:
    rank = {name: position for position, name in enumerate(order)}
    return tuple(sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name)))


class SumColumn(StrEnum):
    """Number of groups, or sum over groups, of an assignor.

    The optimum of all groups is proven. Unnecessary moves are known in groups with owned
    partitions in which the fewest moves within the assignor's imbalance are proven.
    """

    GROUPS = "groups"
    ANSWERED = "answered"  # groups on which the assignor has a result
    MISSED = "missed"  # of them: groups with more than the minimum imbalance
    MISSED_MAXIMUM = "missed_maximum"  # of them: with more than the minimum maximum load
    KNOWN = "known"  # groups on which the unnecessary moves are known
    WASTEFUL = "wasteful"  # of them: groups with unnecessary moves
    NONTERMINATING = "nonterminating"
    FAILED = "failed"  # groups with an exception or an invalid assignment
    INVALID = "invalid"
    CRASHED = "crashed"
    EXCESS_PPM = "excess_ppm"  # maximum load above its minimum, in millionths of the minimum
    LARGEST_EXCESS = "largest_excess"  # in partitions, or in units of weight
    LARGEST_EXCESS_PPM = "largest_excess_ppm"
    MOVES = "moves"  # in the groups of `KNOWN`, like the next two
    UNNECESSARY_MOVES = "unnecessary_moves"
    OWNED_PARTITIONS = "owned_partitions"
