"""Run an assignor and its follow-up rebalances until the assignment is stable."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kassay.experiments.implementations.library_catalogue import uses_cooperative_protocol
from kassay.experiments.implementations.runner import run
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group, topic_starts
from kassay.reference.model.joined_groups import join_assignments, split_group
from kassay.reference.model.ownership import rejoin
from kassay.reference.model.topic_partitions import select

MAX_ROUNDS = 50


class Ending(StrEnum):
    """Outcome of running an assignor on a group."""

    OK = "ok"
    NONTERMINATING = "nonterminating"
    FAILED = "failed"
    INVALID = "invalid"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StableResult:
    """Result of an assignor after its last follow-up rebalance.

    Parameters
    ----------
    ending
        How the run ended. `Ending.ERROR` means a fault of kassay itself; only a study sets it.
    assignment
        The stable assignment; None unless ``ending`` is `Ending.OK`.
    rounds
        Number of rebalances, the first included.
    """

    ending: Ending
    assignment: Assignment | None
    rounds: int
    detail: str | None = None

    @property
    def is_crash(self) -> bool:
        """Return whether a signal ended the process of the assignor."""
        return self.ending is Ending.FAILED and "(signal SIG" in (self.detail or "")


def run_until_stable(group: Group, assignor: str) -> StableResult:
    """Run an assignor and the follow-up rebalances that its protocol requires.

    A cooperative assignor withholds partitions that change owners: the owners revoke them
    first, and the next rebalance assigns them. The result is the assignment of the round that
    withholds nothing. Every other assignor is stable after one rebalance. A round that repeats
    the previous assignment revokes nothing, so that no rebalance follows. A round that repeats
    an earlier assignment is `Ending.NONTERMINATING`, and so are more than 50 rounds. The assignor
    runs for each part of a joined group, see `join_groups`.

    Examples
    --------
    >>> from kassay.reference import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=3),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> run_until_stable(group, "range").assignment.loads()
    {'a': 2, 'b': 1}
    """
    parts = split_group(group)
    if len(parts) > 1:
        return _joined_result({part.id or "": run_until_stable(part, assignor) for part in parts})
    return _run_until_stable(group, assignor)


def _run_until_stable(group: Group, assignor: str) -> StableResult:
    current = group
    first_round: dict[Assignment, int] = {}

    def ended(ending: Ending, detail: str) -> StableResult:
        return StableResult(ending=ending, assignment=None, rounds=round_number, detail=detail)

    for round_number in range(1, MAX_ROUNDS + 1):
        result = run(current, assignor)
        if result.failed is not None:
            return ended(Ending.FAILED, str(result.failed))
        assignment = result.assignment
        if assignment is None:
            return ended(Ending.NONTERMINATING, str(result.livelock))
        repeated = first_round.setdefault(assignment, round_number)
        if (
            not uses_cooperative_protocol(assignor)
            or not count_withheld_partitions(current, assignment)
            or repeated == round_number - 1
        ):
            violation = next(violations(group, assignment), None)
            if violation is not None:
                return ended(Ending.INVALID, violation)
            return StableResult(ending=Ending.OK, assignment=assignment, rounds=round_number)
        if repeated < round_number:
            return ended(
                Ending.NONTERMINATING,
                f"the assignor withholds partitions in every round; "
                f"round {round_number} repeats the assignment of round {repeated}",
            )
        current = rejoin(current, assignment)
    return ended(
        Ending.NONTERMINATING, f"the assignor withholds partitions after {MAX_ROUNDS} rounds"
    )


def _joined_result(parts: Mapping[str, StableResult]) -> StableResult:
    """Join the results of the parts of a group. A part without assignment decides the ending."""
    failed = next((part for part in parts.values() if part.assignment is None), None)
    if failed is not None:
        return failed
    assignments = {id: part.assignment for id, part in parts.items() if part.assignment}
    return StableResult(
        ending=Ending.OK,
        assignment=join_assignments(assignments),
        rounds=max(part.rounds for part in parts.values()),
    )


def count_withheld_partitions(group: Group, assignment: Assignment) -> int:
    """Count the partitions of subscribed topics that are not assigned to any member."""
    starts, subscribers = topic_starts(group), group.subscribers()
    has_subscriber = [bool(subscribers.get(topic.name)) for topic in group.topics]
    is_withheld = np.array(has_subscriber, dtype=bool).repeat(starts.counts)
    rows = starts.rows((0, partitions) for partitions in assignment.values())
    is_withheld[starts.flat(select(rows, starts.exist(rows)))] = False
    return int(np.count_nonzero(is_withheld))
