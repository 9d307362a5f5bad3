"""Columns of the summary tables of a study, which queries write and reports read."""

from enum import StrEnum


class SumColumn(StrEnum):
    """Number of groups, or sum over groups, of an assignor.

    The optimum of all groups is proven. Unnecessary moves are known in groups with owned
    partitions in which the fewest moves within the assignor's imbalance are proven.
    """

    GROUPS = "groups"
    ANSWERED = "answered"  # groups on which the assignor has a result
    MISSED = "missed"  # of them: groups with more than the minimum imbalance
    MISSED_MAXIMUM = "missed_maximum"  # of them: with more than the minimum maximum load
    ABOVE_MAXIMUM = "above_maximum"  # the same, of the table of cells
    KNOWN = "known"  # groups on which the unnecessary moves are known
    WASTEFUL = "wasteful"  # of them: groups with unnecessary moves
    NONTERMINATING = "nonterminating"
    FAILED = "failed"  # groups with an exception or an invalid assignment
    INVALID = "invalid"
    CRASHED = "crashed"
    EXCESS_PPM = "excess_ppm"  # maximum load above its minimum, in millionths of the minimum
    EXCESS_SQUARES = "excess_squares"  # the squares of the excess in units of 100 millionths
    LARGEST_EXCESS = "largest_excess"  # in partitions, or in units of weight
    LARGEST_EXCESS_PPM = "largest_excess_ppm"
    MOVES = "moves"  # in the groups of `KNOWN`, like the next two
    UNNECESSARY_MOVES = "unnecessary_moves"
    OWNED_PARTITIONS = "owned_partitions"
