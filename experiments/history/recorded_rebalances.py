"""Find the rebalances of a recorded group, and compare each with the optimum."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Any

from kassay.experiments.comparison import comparison_result
from kassay.experiments.comparison.compare import LIMITS, CaseLimits, compare
from kassay.experiments.history.generations import (
    AssignedNumbers,
    Generation,
    GenerationMember,
    counts_by_generation,
    generation_of,
    reconstruct_generations,
)
from kassay.experiments.history.group_records import Row, from_row
from kassay.experiments.implementations import run_assignor
from kassay.experiments.sources.recognise_library import recognise_library
from kassay.reference.documents import json_codec
from kassay.reference.model.assignment import Assignment, movement, rejoin, violations
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
from kassay.solver.limits import SearchLimits

_Pairs = tuple[tuple[str, int], ...]
_TOPIC_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRebalance:
    """Rebalance of a recorded group, which can take several generations.

    A rebalance ends when every partition has an owner again. ``case`` is
    ``group/incarnation/number``; ``first`` is the number of the first generation, and ``started``
    its timestamp in milliseconds since 1970. ``group`` has the members of the last generation,
    with the partitions that they owned before the first generation. It is None if the records
    contain no valid group. ``unknown`` is the reason why the moves are unknown, or None.
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
    """State of a recorded group before its next generation."""

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
) -> Iterator[RecordedRebalance]:
    """Find the rebalances of a recorded group in its generations, in order of time.

    ``partition_counts`` has given counts. Other topics have the recorded count or, without one, the
    lowest count that the assignments permit.
    """
    for _, group in groupby(generations, key=attrgetter("incarnation")):
        state, same_incarnation = _GroupState(), list(group)
        known = counts_by_generation(same_incarnation, partition_counts or {})
        for generation, counts in zip(same_incarnation, known, strict=True):
            yield from _completed(state, generation, counts)


def _completed(
    state: _GroupState, generation: Generation, counts: Mapping[str, int]
) -> Iterator[RecordedRebalance]:
    """Apply a generation to the state, and yield the rebalance that ends with it, if any."""
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
    state.owned = {identity(member): _pairs(member.assigned or ()) for member in generation.members}
    state.owned_generation = generation.number
    state.claims = state.unknown = state.first = None
    state.rounds = 0
    if generation.members:
        yield rebalance


def _is_intermediate(state: _GroupState, rebalance: RecordedRebalance) -> bool:
    """Return whether members must revoke partitions before the rebalance ends.

    A topic whose partitions no member has ever owned has no withheld partitions.
    """
    group = rebalance.group
    if group is None or not group.members:
        return False
    if not run_assignor.count_withheld_partitions(group, rebalance.assignment):
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


def compare_result(
    group: Group,
    assignment: Assignment,
    *,
    assignor: str,
    rounds: int,
    owners_known: bool,
    limits: CaseLimits = LIMITS,
) -> comparison_result.Comparison:
    """Compare a recorded assignment with the optimum.

    If the previous owners are unknown, the numbers of moves are None.
    """
    violation = next(violations(group, assignment), None)
    result = run_assignor.StableResult(
        ending=run_assignor.Ending.OK if violation is None else run_assignor.Ending.INVALID,
        assignment=assignment if violation is None else None,
        rounds=rounds,
        detail=violation,
    )
    comparison = compare(group, assignor, result=result, limits=limits)
    if owners_known:
        return comparison
    return replace(comparison, movement=comparison_result.UNKNOWN, movement_within=None)


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
    """Return the claimed partitions of each member, or None if they are unknown.

    Members with sticky and cooperative assignors send claims. A member that claims nothing has just
    joined.
    """
    members = generation.members
    states_them = "sticky" in (generation.assignor or "") or generation.cooperative
    if not states_them or any(member.subscription is None for member in members):
        return None
    return {
        identity(member): (
            _pairs(member.claimed or ()),
            NO_GENERATION if member.claimed_generation is None else member.claimed_generation,
        )
        for member in members
    }


def _rebalance(
    state: _GroupState, generation: Generation, first: int, counts: Mapping[str, int]
) -> RecordedRebalance:
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
    return RecordedRebalance(
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
    owned, generation = state.owned.get(identity(member), ()), state.owned_generation
    if state.claims is not None:
        owned, generation = state.claims.get(identity(member), ((), NO_GENERATION))
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


def identity(member: GenerationMember | Member) -> str:
    """Return a key for a member: the group instance id or, without one, the member id."""
    return f"member {member.id}" if member.instance_id is None else f"static {member.instance_id}"


def _pairs(numbers: AssignedNumbers) -> _Pairs:
    return tuple((topic, number) for topic, each in numbers for number in each)


_NO_COMPARISON = dict.fromkeys(comparison_result.COMPARISON_COLUMNS)


def generation_rows(
    rows: Iterable[Row], *, topic_names: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Convert sorted rows of records to rows of generations."""
    for group, group_rows in groupby(rows, key=itemgetter("group")):
        records = map(from_row, group_rows)
        for generation in reconstruct_generations(group, records, topic_names=topic_names):
            # Arrow stores a pair as an entry with a topic and its partitions.
            yield asdict(generation) | {"protocol": str(generation.protocol)}


def rebalance_rows(
    rows: Iterable[Row], *, partition_counts: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Convert sorted rows of generations to rows of rebalances.

    The columns of the comparison are missing; `compared_row` adds them.
    """
    for _, group_rows in groupby(rows, key=itemgetter("group")):
        generations = map(generation_of, group_rows)
        for rebalance in find_rebalances(generations, partition_counts=partition_counts):
            yield rebalance_row(rebalance)


def compared_row(row: Row, *, limits: CaseLimits = LIMITS) -> dict[str, object]:
    """Compare the assignment of a row with the optimum, and add the columns of the result.

    If kassay itself raises an exception, the columns ending and detail describe it.
    """
    if row["document"] is None:
        return {**_NO_COMPARISON, **row, "ending": "unknown", "detail": row["unknown"]}
    try:
        comparison = compare_result(
            json_codec.parse_group(json.loads(row["document"])),
            json_codec.parse_assignment(json.loads(row["assigned"])),
            assignor=row["assignor"],
            rounds=row["rounds"],
            owners_known=row["unknown"] is None,
            limits=limits,
        )
    except Exception as error:  # noqa: BLE001 - one bad row must not end thousands of others
        failure = {"ending": "error", "detail": f"{type(error).__name__}: {error}"}
        return {**_NO_COMPARISON, **row, **failure}
    return {**comparison_result.comparison_columns(comparison), **row}


def last_document(row: Row) -> dict[str, object] | None:
    """Return the group document after a rebalance, or None if the group is unknown."""
    if row["document"] is None:
        return None
    group = replace(json_codec.parse_group(json.loads(row["document"])), id=row["group"])
    assignment = json_codec.parse_assignment(json.loads(row["assigned"]))
    return json_codec.group_document(rejoin(group, assignment, generation=row["generation"]))


def rebalance_row(rebalance: RecordedRebalance) -> dict[str, object]:
    """Convert a rebalance to a row of the table ``rebalances``.

    ``generation`` and ``timestamp`` are those of the last generation, ``partitions`` the number of
    assigned partitions. ``document`` and ``assigned`` are JSON.
    """
    last, assignment = rebalance.last, rebalance.assignment
    document = None if rebalance.group is None else json_codec.group_document(rebalance.group)
    return {
        **{name: getattr(last, name) for name in ("group", "incarnation", "timestamp")},
        **{name: getattr(rebalance, name) for name in ("case", "first", "started", "rounds")},
        "generation": last.number,
        "protocol": str(last.protocol),
        "assignor": last.assignor or "",
        "members": len(last.members),
        "partitions": sum(assignment.counts().values()),
        "unknown": rebalance.unknown,
        "document": None if document is None else json.dumps(document, ensure_ascii=False),
        "assigned": json.dumps(
            {"assignment": json_codec.assignment_document(assignment)}, ensure_ascii=False
        ),
    }


_MAX_REBALANCES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class HindsightRow:
    """Moves of a recorded group, with the fewest moves at each rebalance and in hindsight.

    The fewest moves have minimum imbalance at each rebalance. In hindsight, they are the fewest in
    total, with a proven lower bound. After a gap in the records, and after 200 rebalances, a new
    sequence starts from the recorded owners. The numbers are sums over the sequences.
    """

    group: str
    hindsight_rebalances: int = 0
    moves_made: int = 0
    fewest_at_each: int = 0
    hindsight: int = 0
    hindsight_bound: int = 0


def hindsight_rows(rows: Iterable[Row], *, limits: SearchLimits) -> Iterator[dict[str, object]]:
    """Convert rows of rebalances, sorted by group and time, to one row per group."""
    for name, group_rows in groupby(rows, key=itemgetter("group")):
        total = HindsightRow(group=name)
        for _, incarnation in groupby(group_rows, key=itemgetter("incarnation")):
            for sequence in _sequences(incarnation):
                total = _added(total, sequence, limits)
        yield asdict(total)


def _sequences(rows: Iterable[Row]) -> Iterator[list[tuple[Group, Assignment]]]:
    for is_known, known in groupby(map(_known_rebalance, rows), key=lambda one: one is not None):
        while is_known and (part := [one for one in islice(known, _MAX_REBALANCES) if one]):
            yield part


def _known_rebalance(row: Row) -> tuple[Group, Assignment] | None:
    if row["document"] is None or row["unknown"] is not None:
        return None
    group = json_codec.parse_group(json.loads(row["document"]))
    assignment = json_codec.parse_assignment(json.loads(row["assigned"]))
    return None if any(violations(group, assignment)) else (group, assignment)


def _added(
    total: HindsightRow, sequence: list[tuple[Group, Assignment]], limits: SearchLimits
) -> HindsightRow:
    # The linear programs of trajectories import SciPy, which takes 40 MB.
    from kassay.solver.trajectory.trajectory import optimal_trajectory  # noqa: PLC0415

    # Unlike a member id, the instance id of a static member outlasts a restart.
    groups = [
        replace(group, members=tuple(replace(one, id=identity(one)) for one in group.members))
        for group, _ in sequence
    ]
    try:
        found = optimal_trajectory(groups, limits=limits)
    except InputError:
        return total
    return replace(
        total,
        hindsight_rebalances=total.hindsight_rebalances + len(sequence),
        moves_made=total.moves_made + sum(movement(*one) for one in sequence),
        fewest_at_each=total.fewest_at_each + sum(found.one_after_the_other),
        hindsight=total.hindsight + found.moves,
        hindsight_bound=total.hindsight_bound + found.bound,
    )
