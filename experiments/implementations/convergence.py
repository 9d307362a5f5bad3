"""Rebalance after rebalance: an assignor on its own last result, until it is settled."""

from dataclasses import dataclass
from enum import StrEnum

from kassay.experiments.implementations.runner import run
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import rejoin

INCREMENTAL = frozenset({"cooperative-sticky"})
MAX_ROUNDS = 16


class Ending(StrEnum):
    """How an assignor's attempt at a group ended."""

    OK = "ok"
    NONTERMINATING = "nonterminating"
    FAILED = "failed"
    INVALID = "invalid"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class StableResult:
    """What an assignor made of a group once nothing was in transit any more.

    Parameters
    ----------
    ending
        How it ended. `Ending.ERROR` is never set here: it stands for our own bugs, which
        a study records.
    assignment
        The assignment settled on; None unless ``ending`` is `Ending.OK`.
    rounds
        Rebalances it took, the first included.
    detail
        What went wrong, in words; None if nothing did.
    """

    ending: Ending
    assignment: Assignment | None
    rounds: int
    detail: str | None = None


def run_until_stable(group: Group, assignor: str) -> StableResult:
    """Run an assignor as its members would, follow-up rebalances included.

    ``cooperative-sticky`` withholds partitions that change hands: their owners give them
    up first, and the rebalance that follows hands them out. What it arrives at when
    nothing is withheld any more is what it is judged by. Every other assignor is settled
    after one rebalance.

    Parameters
    ----------
    group
        The rebalance.
    assignor
        One of `kassay.reference.assignors.ASSIGNORS`, or the name of a custom one.

    Returns
    -------
    Settled
        The settled assignment, or why there is none.

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
    now = group
    for round_number in range(1, MAX_ROUNDS + 1):
        outcome = run(now, assignor)
        if outcome.failed is not None:
            return StableResult(
                ending=Ending.FAILED,
                assignment=None,
                rounds=round_number,
                detail=str(outcome.failed),
            )
        if outcome.assignment is None:
            return StableResult(
                ending=Ending.NONTERMINATING,
                assignment=None,
                rounds=round_number,
                detail=str(outcome.livelock),
            )
        if assignor not in INCREMENTAL or not withheld_partitions(now, outcome.assignment):
            return _judged(group, outcome.assignment, round_number)
        now = rejoin(now, outcome.assignment)
    return StableResult(
        ending=Ending.NONTERMINATING,
        assignment=None,
        rounds=MAX_ROUNDS,
        detail=f"still withholds partitions after {MAX_ROUNDS} rounds",
    )


def withheld_partitions(group: Group, assignment: Assignment) -> int:
    """Count the partitions that somebody consumes and nobody was given."""
    consumed = {topic for topic, members in group.subscribers().items() if members}
    wanted = sum(topic.partitions for topic in group.topics if topic.name in consumed)
    return wanted - sum(len(partitions) for partitions in assignment.values())


def _judged(group: Group, assignment: Assignment, rounds: int) -> StableResult:
    fault = next(violations(group, assignment), None)
    if fault is not None:
        return StableResult(ending=Ending.INVALID, assignment=None, rounds=rounds, detail=fault)
    return StableResult(ending=Ending.OK, assignment=assignment, rounds=rounds)
