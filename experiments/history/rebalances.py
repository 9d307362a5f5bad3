"""Rebalances between generations, as groups that can be solved, and what came of each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kassay.experiments.compare import LIMITS, UNKNOWN_GAP, CaseLimits, Comparison, compare
from kassay.experiments.history.group_state import Generation, GenerationMember, Numbers
from kassay.experiments.implementations.convergence import Ending, StableResult, withheld_partitions
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import NO_GENERATION, Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions

Pairs = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """What a group went through until every partition had a consumer again.

    Parameters
    ----------
    case
        ``group/life/number``, which no other rebalance has.
    last
        The generation that it led to.
    first
        Number of its first generation. Cooperative members give up in one what others
        get in a later one.
    rounds
        How many generations it took.
    group
        The group as its assignor saw it first, prior ownership included, with the
        members that were there in the end; None where it cannot be put as one.
    assignment
        What the members had in the end.
    unknown
        Why moves are not known, in words: without a group, or because the generation
        before is not recorded, and nobody in ``group`` owns anything for that reason only.
    """

    case: str
    last: Generation
    first: int
    rounds: int
    group: Group | None
    assignment: Assignment | None
    unknown: str | None = None


@dataclass(slots=True)
class _Past:
    """What is known of a group before its next generation."""

    life: int
    number: int | None = None
    """The last generation seen; None before the first."""
    owned: dict[str, Pairs] = field(default_factory=dict)
    generation: int = NO_GENERATION
    reason: str | None = None
    first: int | None = None
    rounds: int = 0
    counts: dict[str, int] = field(default_factory=dict)


def rebalances(
    past: Iterable[Generation], *, counts: Mapping[str, int] | None = None
) -> Iterator[Rebalance]:
    """Tell the rebalances between the generations of one group.

    Parameters
    ----------
    past
        Its generations in their order.
    counts
        Partition counts of topics. Of others they are as the records tell, or else
        what has been assigned up to then shows.
    """
    now = _Past(-1)
    for generation in past:
        if generation.life != now.life:
            now = _Past(generation.life)
        _note_gap(now, generation)
        now.number = generation.number
        if not generation.assigned:
            continue
        _count(now, generation, counts or {})
        now.first = generation.number if now.first is None else now.first
        now.rounds += 1
        found = _rebalance(now, generation)
        if found.group is None or not _withholds(found.group, found.assignment):
            if generation.members:
                yield found
            _remember(now, generation)


def judge(rebalance: Rebalance, *, limits: CaseLimits = LIMITS) -> Comparison | None:
    """Hold a rebalance against the optimum; None where it cannot be put as a group.

    Where it is not known who had what before, no moves are told.
    """
    group, assignment = rebalance.group, rebalance.assignment
    if group is None or assignment is None:
        return None
    fault = next(violations(group, assignment), None)
    outcome = StableResult(
        ending=Ending.OK if fault is None else Ending.INVALID,
        assignment=assignment if fault is None else None,
        rounds=rebalance.rounds,
        detail=fault,
    )
    found = compare(group, rebalance.last.assignor or "", result=outcome, limits=limits)
    if rebalance.unknown is None:
        return found
    return replace(found, movement=UNKNOWN_GAP, movement_within=None)


def _note_gap(now: _Past, generation: Generation) -> None:
    before = 0 if now.number is None else now.number
    between = generation.number - before - 1
    if between > generation.passed:
        now.owned = {}
        if len(generation.members) < 2:
            return  # nobody can take anything from anybody, whoever had it
        gone = f"{before + 1}" if between == 1 else f"{before + 1} to {generation.number - 1}"
        now.reason = f"who had what before is not recorded: generation {gone} is missing"


def _count(now: _Past, generation: Generation, given: Mapping[str, int]) -> None:
    seen = now.counts
    for member in generation.members:
        for topic, numbers in member.assigned or ():
            seen[topic] = max([seen.get(topic, 0), *(number + 1 for number in numbers)])
    seen.update(generation.counts)
    seen.update({topic: count for topic, count in given.items() if topic in seen})


def _rebalance(now: _Past, generation: Generation) -> Rebalance:
    group, reason = None, now.reason
    pairs = {member.id: _pairs(member.assigned or ()) for member in generation.members}
    try:
        group = _group(now, generation)
    except InputError as error:
        reason = str(error)
    if any(member.subscription is None for member in generation.members):
        group, reason = None, "what its members subscribed to is not told"
    return Rebalance(
        case=f"{generation.group}/{generation.life}/{generation.number}",
        last=generation,
        first=generation.number if now.first is None else now.first,
        rounds=now.rounds,
        group=group,
        assignment=Assignment(pairs),
        unknown=reason,
    )


def _group(now: _Past, generation: Generation) -> Group:
    return Group(
        id=f"{generation.group}/{generation.number}",
        topics=tuple(Topic(name=name, partitions=now.counts[name]) for name in sorted(now.counts)),
        members=tuple(_member(now, member) for member in generation.members),
    )


def _member(now: _Past, member: GenerationMember) -> Member:
    owned = now.owned.get(_identity(member), ())
    return Member(
        id=member.id,
        subscription=member.subscription or (),
        owned=Partitions.of(owned),
        generation=now.generation if owned else NO_GENERATION,
        instance_id=member.instance_id,
        rack=member.rack,
    )


def _withholds(group: Group, assignment: Assignment | None) -> bool:
    return (
        assignment is not None
        and bool(group.members)
        and withheld_partitions(group, assignment) > 0
    )


def _remember(now: _Past, generation: Generation) -> None:
    now.owned = {_identity(member): _pairs(member.assigned or ()) for member in generation.members}
    now.generation = generation.number
    now.reason, now.first, now.rounds = None, None, 0


def _identity(member: GenerationMember) -> str:
    """Name a member for good: a static one gets a new member id whenever it restarts."""
    return f"member {member.id}" if member.instance_id is None else f"static {member.instance_id}"


def _pairs(numbers: Numbers | Sequence[tuple[str, Sequence[int]]]) -> Pairs:
    return tuple((topic, number) for topic, each in numbers for number in each)
