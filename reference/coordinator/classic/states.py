"""The states of a classic group, and the only ways from one to the next.

Upstream: org.apache.kafka.coordinator.group.classic.ClassicGroupState, group-coordinator 4.x.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from kassay.reference.model.errors import InternalError


class GroupState(StrEnum):
    """State of a group under the classic protocol."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = GroupState
"""The states; Python 3.11 takes ten times as long to look one up as `GroupState.STABLE`."""


class IllegalTransitionError(InternalError):
    """A change of state that Kafka's table does not have: a bug of the caller."""


REACHED_FROM: Mapping[GroupState, tuple[GroupState, ...]] = MappingProxyType(
    {
        EMPTY: (PREPARING_REBALANCE,),
        PREPARING_REBALANCE: (EMPTY, COMPLETING_REBALANCE, STABLE),
        COMPLETING_REBALANCE: (PREPARING_REBALANCE,),
        STABLE: (COMPLETING_REBALANCE,),
        DEAD: tuple(GroupState),
    }
)
"""For each state, the states that a group may come from."""


def check_transition(before: GroupState, after: GroupState) -> None:
    """Refuse a change of state that is not in `REACHED_FROM`.

    Raises
    ------
    IllegalTransitionError
        If a group in ``before`` cannot go to ``after``.

    Examples
    --------
    >>> check_transition(STABLE, PREPARING_REBALANCE)
    >>> check_transition(EMPTY, STABLE)
    Traceback (most recent call last):
    kassay...IllegalTransitionError: no group goes from Empty to Stable
    """
    if before not in REACHED_FROM[after]:
        raise IllegalTransitionError(f"no group goes from {before} to {after}")
