"""Rebalances of a recorded group, and the comparison of each rebalance with the optimum."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kassay.experiments.compare import LIMITS, UNKNOWN_GAP, CaseLimits, Comparison, compare
from kassay.experiments.history.generations import AssignedNumbers, Generation, GenerationMember
from kassay.experiments.implementations.convergence import Ending, StableResult, withheld_partitions
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions

_Pairs = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """A rebalance: the generations of a group until every partition has an owner again.

    ``case`` is ``group/incarnation/number``; ``first`` is the number of the first generation.
    ``group`` has the members of the last generation, with the partitions they owned before
    the first one, or is None if the records hold no valid group. ``unknown`` is the reason
    why the moves are unknown: no group, or no previous generation.
    """

    case: str
    last: Generation
    first: int
    rounds: int
    group: Group | None
    assignment: Assignment
    unknown: str | None = None


@dataclass(slots=True)
class _State:
    """State of a group before its next generation; ``number`` is the last generation number."""

    incarnation: int
    number: int = 0
    owned: dict[str, _Pairs] = field(default_factory=dict)
    owned_generation: int = NO_GENERATION
    unknown: str | None = None
    first: int | None = None
    rounds: int = 0
    partition_counts: dict[str, int] = field(default_factory=dict)


def find_rebalances(
    generations: Iterable[Generation], *, partition_counts: Mapping[str, int] | None = None
) -> Iterator[Rebalance]:
    """Yield the rebalances of a group from its generations in order of time.

    A topic without a given count has the recorded count, or that of the assignments.
    """
    state = _State(incarnation=-1)
    for generation in generations:
        if generation.incarnation != state.incarnation:
            state = _State(generation.incarnation)
        _check_gap(state, generation)
        state.number = generation.number
        if any(member.assigned is None for member in generation.members):
            continue
        _update_partition_counts(state, generation, partition_counts or {})
        state.first = generation.number if state.first is None else state.first
        state.rounds += 1
        rebalance = _rebalance(state, generation, state.first)
        group = rebalance.group
        if group and group.members and withheld_partitions(group, rebalance.assignment):
            continue
        if generation.members:
            yield rebalance
        state.owned = {
            _identity(member): _pairs(member.assigned or ()) for member in generation.members
        }
        state.owned_generation = generation.number
        state.unknown, state.first, state.rounds = None, None, 0


def compare_rebalance(rebalance: Rebalance, *, limits: CaseLimits = LIMITS) -> Comparison | None:
    """Compare a rebalance with the optimum; return None if the rebalance has no group document."""
    if rebalance.group is None:
        return None
    return compare_result(
        rebalance.group,
        rebalance.assignment,
        assignor=rebalance.last.assignor or "",
        rounds=rebalance.rounds,
        owners_known=rebalance.unknown is None,
        limits=limits,
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
    """Compare a recorded assignment with the optimum; moves are None if owners are unknown."""
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
    return replace(comparison, movement=UNKNOWN_GAP, movement_within=None)


def _check_gap(state: _State, generation: Generation) -> None:
    missing = generation.number - state.number - 1
    if missing > generation.skipped_epochs:
        state.owned = {}
        if len(generation.members) < 2:
            return  # A single member cannot take partitions from another one.
        first, last = state.number + 1, generation.number - 1
        numbers = f"generation {first}" if missing == 1 else f"generations {first} to {last}"
        state.unknown = f"the previous owners are unknown: the records of {numbers} are missing"


def _update_partition_counts(
    state: _State, generation: Generation, given: Mapping[str, int]
) -> None:
    counts = state.partition_counts
    for member in generation.members:
        for topic, numbers in member.assigned or ():
            counts[topic] = max([counts.get(topic, 0), *(number + 1 for number in numbers)])
    counts.update(generation.partition_counts)
    counts.update({topic: count for topic, count in given.items() if topic in counts})


def _rebalance(state: _State, generation: Generation, first: int) -> Rebalance:
    group, unknown = None, state.unknown
    if any(member.subscription is None for member in generation.members):
        unknown = "the records do not contain the members' subscriptions"
    else:
        try:
            counts = sorted(state.partition_counts.items())
            group = Group(
                id=f"{generation.group}/{generation.number}",
                topics=tuple(Topic(name=name, partitions=count) for name, count in counts),
                members=tuple(_member(state, member) for member in generation.members),
            )
        except InputError as error:
            unknown = str(error)
    return Rebalance(
        case=f"{generation.group}/{generation.incarnation}/{generation.number}",
        last=generation,
        first=first,
        rounds=state.rounds,
        group=group,
        assignment=Assignment(
            {member.id: _pairs(member.assigned or ()) for member in generation.members}
        ),
        unknown=unknown,
    )


def _member(state: _State, member: GenerationMember) -> Member:
    owned = state.owned.get(_identity(member), ())
    return Member(
        id=member.id,
        subscription=member.subscription or (),
        owned=Partitions.of(owned),
        generation=state.owned_generation if owned else NO_GENERATION,
        instance_id=member.instance_id,
        rack=member.rack,
    )


def _identity(member: GenerationMember) -> str:
    """Return the group instance id of a static member, otherwise the member id."""
    return f"member {member.id}" if member.instance_id is None else f"static {member.instance_id}"


def _pairs(numbers: AssignedNumbers) -> _Pairs:
    return tuple((topic, number) for topic, each in numbers for number in each)
