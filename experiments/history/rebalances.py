"""Find the rebalances of a recorded group, and compare each rebalance with the optimum."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter

from kassay.experiments.comparison.compare import compare
from kassay.experiments.comparison.comparison_result import UNKNOWN, Comparison
from kassay.experiments.comparison.optimum import LIMITS, CaseLimits
from kassay.experiments.history.generations import (
    AssignedNumbers,
    Generation,
    GenerationMember,
    counts_by_generation,
)
from kassay.experiments.implementations.runner import (
    Ending,
    StableResult,
    count_withheld_partitions,
)
from kassay.experiments.sources.recognise_library import recognise_library
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import (
    NO_GENERATION,
    Client,
    Group,
    GroupStatus,
    Member,
    Protocol,
    Topic,
)
from kassay.reference.model.topic_partitions import Partitions

_Pairs = tuple[tuple[str, int], ...]
_TOPIC_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """A rebalance of a recorded group, which may take several generations.

    A rebalance ends when every partition has an owner again. ``case`` is
    ``group/incarnation/number``; ``first`` is the number of the first generation, and ``started``
    its timestamp in milliseconds since 1970. ``group`` has the members of the last generation,
    with the partitions they owned before the first one, or is None if the records hold no valid
    group. ``unknown`` is the reason why the moves are unknown: no group, or no previous
    generation.
    """

    case: str
    last: Generation
    first: int
    started: int | None
    rounds: int
    group: Group | None
    assignment: Assignment
    unknown: str | None = None


@dataclass(slots=True)
class _GroupState:
    """State of a group before its next generation.

    ``number`` is the number of the last generation.
    """

    number: int = 0
    owned: dict[str, _Pairs] = field(default_factory=dict)
    owned_generation: int = NO_GENERATION
    claims: dict[str, tuple[_Pairs, int]] | None = None  # replace the owned partitions
    unknown: str | None = None
    first: int | None = None
    started: int | None = None
    rounds: int = 0


def find_rebalances(
    generations: Iterable[Generation], *, partition_counts: Mapping[str, int] | None = None
) -> Iterator[Rebalance]:
    """Find the rebalances in the generations of a group, which are in order of time.

    A topic without a given partition count has the recorded count, or else the count that the
    assignments imply.
    """
    finder = RebalanceFinder()
    for _, group in groupby(generations, key=attrgetter("incarnation")):
        same_incarnation = list(group)
        known = counts_by_generation(same_incarnation, partition_counts or {})
        for generation, counts in zip(same_incarnation, known, strict=True):
            yield from finder.add(generation, counts)


class RebalanceFinder:
    """Finder of rebalances that receives the generations of a group one by one."""

    def __init__(self) -> None:
        self._incarnation = -1
        self._state = _GroupState()

    def add(self, generation: Generation, counts: Mapping[str, int]) -> Iterator[Rebalance]:
        """Add the next generation. Yield a rebalance if this generation completes a rebalance.

        ``counts`` are the partition counts of the topics at the generation.
        """
        if generation.incarnation != self._incarnation:
            self._incarnation, self._state = generation.incarnation, _GroupState()
        state = self._state
        _check_gap(state, generation)
        state.number = generation.number
        if any(member.assigned is None for member in generation.members):
            return
        if state.first is None:
            state.first, state.started = generation.number, generation.timestamp
        state.rounds += 1
        rebalance = _rebalance(state, generation, state.first, counts)
        if generation.cooperative and _is_intermediate(state, rebalance):
            return
        state.owned = {
            _identity(member): _pairs(member.assigned or ()) for member in generation.members
        }
        state.owned_generation = generation.number
        state.claims = state.unknown = state.first = None
        state.rounds = 0
        if generation.members:
            yield rebalance


def _is_intermediate(state: _GroupState, rebalance: Rebalance) -> bool:
    """Return whether members must still revoke partitions before other members get them.

    Partitions of a topic that no member has ever owned are not withheld.
    """
    group = rebalance.group
    if group is None or not group.members:
        return False
    if not count_withheld_partitions(group, rebalance.assignment):
        return False
    assigned = {tp for partitions in rebalance.assignment.values() for tp in partitions}
    consumed = {topic for topic, members in group.subscribers().items() if members}
    if state.unknown is not None:
        known = {topic for topic, _ in assigned} & consumed
        return sum(group.topic_table()[topic].partitions for topic in known) > len(assigned)
    return any(
        (topic, number) not in assigned and number < group.topic_table()[topic].partitions
        for member in group.members
        for topic, number in member.owned
        if topic in consumed
    )


def compare_rebalance(rebalance: Rebalance) -> Comparison | None:
    """Compare a rebalance with the optimum. Return None if the rebalance has no valid group."""
    if rebalance.group is None:
        return None
    return compare_result(
        rebalance.group,
        rebalance.assignment,
        assignor=rebalance.last.assignor or "",
        rounds=rebalance.rounds,
        owners_known=rebalance.unknown is None,
    )


def compare_result(
    group: Group,
    assignment: Assignment,
    *,
    assignor: str,
    rounds: int,
    owners_known: bool,
    limits: CaseLimits = LIMITS,
) -> Comparison:
    """Compare a recorded assignment with the optimum.

    If the previous owners are unknown, the numbers of moves are None.
    """
    violation = next(violations(group, assignment), None)
    result = StableResult(
        ending=Ending.OK if violation is None else Ending.INVALID,
        assignment=assignment if violation is None else None,
        rounds=rounds,
        detail=violation,
    )
    comparison = compare(group, assignor, result=result, limits=limits)
    if owners_known:
        return comparison
    return replace(comparison, movement=UNKNOWN, movement_within=None)


def _check_gap(state: _GroupState, generation: Generation) -> None:
    missing = generation.number - state.number - 1
    if missing > generation.skipped_epochs:
        state.owned = {}
        if len(generation.members) < 2:
            return  # A single member cannot take partitions from another member.
        state.claims = _claims(generation)
        if state.claims is not None:
            return
        first, last = state.number + 1, generation.number - 1
        numbers = f"generation {first}" if missing == 1 else f"generations {first} to {last}"
        state.unknown = f"the previous owners are unknown: the records of {numbers} are missing"


def _claims(generation: Generation) -> dict[str, tuple[_Pairs, int]] | None:
    """Return the partitions that each member claimed, or None if the claims are unknown.

    Members of sticky and cooperative assignors state these partitions. A member without such
    partitions has just joined.
    """
    members = generation.members
    states_them = "sticky" in (generation.assignor or "") or generation.cooperative
    if not states_them or any(member.subscription is None for member in members):
        return None
    return {
        _identity(member): (
            _pairs(member.claimed or ()),
            NO_GENERATION if member.claimed_generation is None else member.claimed_generation,
        )
        for member in members
    }


def _rebalance(
    state: _GroupState, generation: Generation, first: int, counts: Mapping[str, int]
) -> Rebalance:
    group, unknown = None, state.unknown
    unresolved = _unresolved_topic(generation)
    if any(member.subscription is None for member in generation.members):
        unknown = "the records do not contain the members' subscriptions"
    elif unresolved is not None:
        unknown = (
            f"the records contain the topic id {unresolved} without its name; give --metadata "
            "with the output of kafka-topics.sh --describe"
        )
    else:
        try:
            group = Group(
                id=f"{generation.group}/{generation.number}",
                topics=tuple(
                    Topic(name=name, partitions=count) for name, count in sorted(counts.items())
                ),
                members=tuple(
                    _member(state, member, generation.assignor) for member in generation.members
                ),
                notes=tuple(_notes(generation, counts)),
                status=GroupStatus(protocol=generation.protocol, assignor=generation.assignor),
            )
        except InputError as error:
            unknown = str(error)
    return Rebalance(
        case=f"{generation.group}/{generation.incarnation}/{generation.number}",
        last=generation,
        first=first,
        started=state.started,
        rounds=state.rounds,
        group=group,
        assignment=Assignment(
            {member.id: _pairs(member.assigned or ()) for member in generation.members}
        ),
        unknown=unknown,
    )


def _unresolved_topic(generation: Generation) -> str | None:
    """Return a topic id without a known topic name, or None if all names are known."""
    if generation.protocol is not Protocol.CONSUMER:
        return None
    topics = {topic for member in generation.members for topic, _ in member.assigned or ()}
    return next((topic for topic in sorted(topics) if _TOPIC_ID.fullmatch(topic)), None)


def _notes(generation: Generation, counts: Mapping[str, int]) -> Iterator[str]:
    subscribed = {topic for member in generation.members for topic in member.subscription or ()}
    unknown = sorted(topic for topic in subscribed if not counts.get(topic))
    if unknown:
        yield (
            f"no partition of {', '.join(unknown)} is assigned and no partition count is known; "
            "give --metadata"
        )


def _member(state: _GroupState, member: GenerationMember, assignor: str | None) -> Member:
    owned, generation = state.owned.get(_identity(member), ()), state.owned_generation
    if state.claims is not None:
        owned, generation = state.claims.get(_identity(member), ((), NO_GENERATION))
    return Member(
        id=member.id,
        subscription=member.subscription or (),
        owned=Partitions.of(owned),
        generation=generation if owned else NO_GENERATION,
        instance_id=member.instance_id,
        rack=member.rack,
        client=Client(
            id=member.client_id or None,
            host=member.host or None,
            library=recognise_library(
                member.client_id or None, member_id=member.id, assignor=assignor
            ),
        ),
    )


def _identity(member: GenerationMember) -> str:
    """Return the group instance id if the member is static, otherwise its member id."""
    return f"member {member.id}" if member.instance_id is None else f"static {member.instance_id}"


def _pairs(numbers: AssignedNumbers) -> _Pairs:
    return tuple((topic, number) for topic, each in numbers for number in each)
