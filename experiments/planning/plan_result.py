"""Describe the result of a plan, and check whether a group can be planned."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kassay.experiments.comparison.compare import keep_owners
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.model.assignment import NO_OWNER, Assignment, movement, ownership
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import Group, Member, Protocol
from kassay.reference.model.group_remarks import condition, is_rebalancing, streams_caveat
from kassay.reference.model.load_metrics import Measure, measures, member_units
from kassay.solver.constraints import (
    Capacity,
    Constraint,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
)
from kassay.solver.counting_bounds import level_bound, makespan_bound_within
from kassay.solver.evaluation import group_constraints, level_value
from kassay.solver.objective import Colocation, CrossRack, Imbalance, Level, MembersUsed, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import LevelValue, Solution, Status

_TEMPLATES = Path(__file__).parent / "templates"
_SEPARABLE = Capacity | MaxPartitions | Pinned | Forbidden
"""Constraints on members or single partitions, with which one optimum minimises all measures."""
_WORDS = {
    "makespan": "maximum load",
    "host_makespan": "maximum load of hosts",
    "movement": "moves",
    "cross_rack": "reads across racks",
    "topic_spread": "spread of topics",
}


def makespan_of(
    group: Group, solution: Solution, constraints: Sequence[Constraint] = ()
) -> LevelValue | None:
    """Return the maximum load of a solution, with a lower bound.

    If members differ in speed, it is the maximum relative load. With equal weights and speeds,
    minimum sum of squares implies minimum maximum load (docs/problem.md), unless a constraint
    limits moves or relates partitions. For any other measure, and if another level precedes
    imbalance, the bound is computed without search.
    """
    if solution.assignment is None:
        return None
    value = measures(group, solution.assignment)[Measure.MAKESPAN]
    first = solution.levels[0]
    if first.name == Measure.MAKESPAN:
        bound = first.bound
    elif (
        first.name in (Measure.SUM_OF_SQUARES, Measure.LEXIMAX)
        and first.gap == 0
        and group.uniform_weight is not None
        and all(isinstance(one, _SEPARABLE) for one in constraints)
    ):
        bound = value
    else:
        problem = build_problem(group)
        bound = level_bound(problem, Imbalance(Measure.MAKESPAN))
        limits = [one.limit for one in constraints if isinstance(one, MaxMoves)]
        if limits:
            bound = makespan_bound_within(problem, min(limits), high=max(value, bound), low=bound)
    return LevelValue("makespan", value, min(value, bound))


def level_words(name: str) -> str:
    """Return the name of a level in sentences, such as ``maximum load``.

    Examples
    --------
    >>> level_words("makespan"), level_words("host_makespan"), level_words("sum_of_squares")
    ('maximum load', 'maximum load of hosts', 'sum of squares')
    """
    return _WORDS.get(name, name.replace("_", " "))


_ADVICE = "describe the group again when its state is Stable"


class UnplannableGroupError(KassayError, LookupError):
    """Error for a group that kassay cannot plan, for example without owners."""


class StreamsApplicationError(UnplannableGroupError):
    """Error for a group that is a Kafka Streams application."""


def check_planning_start(group: Group) -> None:
    """Raise StreamsApplicationError for a Kafka Streams application.

    Raise UnplannableGroupError if the group is rebalancing, and its source shows no owners, or
    members without subscription and partitions.
    """
    caveat = streams_caveat(group)
    if caveat is not None:
        raise StreamsApplicationError(f"{group.label}: {caveat}")
    if not is_rebalancing(group):
        return
    where = f"{group.label} is rebalancing ({group.status.state})"
    if not any(len(member.owned) or member.target for member in group.members):
        raise UnplannableGroupError(f"{where}: the source shows no owners; {_ADVICE}")
    unknown = [member.id for member in group.members if not member.subscription]
    if unknown:
        others = f" and of {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise UnplannableGroupError(
            f"{where}: the source does not show the subscription of {unknown[0]!r}{others}; "
            f"give --subscriptions, or {_ADVICE}"
        )
    if group.status.protocol is Protocol.CONSUMER and group.status.state == "Assigning":
        raise UnplannableGroupError(
            f"{where}: the broker has not computed its target assignment; {_ADVICE}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Result of a plan as a sentence, with its numbers and its condition.

    Parameters
    ----------
    text
        The sentence without the condition.
    quality
        Distance of the planned maximum load from the proven minimum, in words.
    placed
        Partitions without an owner, which the plan assigns.
    condition
        Condition under which the result holds; None for a group without assumed data.
    """

    text: str
    quality: str
    current: int
    makespan: LevelValue
    moves: int
    placed: int
    status: Status
    condition: str | None

    def __str__(self) -> str:
        return under(self.condition, self.text)

    def record(self) -> dict[str, object]:
        """Convert the result to JSON."""
        return {
            "condition": self.condition,
            "status": str(self.status),
            "makespan": {
                "current": self.current,
                "planned": self.makespan.value,
                "bound": self.makespan.bound,
            },
            "moves": self.moves,
            "placed": self.placed,
            "verdict": str(self),
        }


def verdict_of(
    group: Group,
    solution: Solution,
    levels: Sequence[Level],
    constraints: Sequence[Constraint] = (),
    optimum: Solution | None = None,
) -> Verdict | None:
    """Describe the result of a plan, or return None. ``optimum`` can have a higher bound."""
    assignment, makespan = solution.assignment, makespan_of(group, solution, constraints)
    if assignment is None or makespan is None:
        return None
    if optimum is not None and optimum.imbalance.name == Measure.MAKESPAN:
        bound = min(makespan.value, max(makespan.bound, optimum.imbalance.bound))
        makespan = replace(makespan, bound=bound)
    moves = movement(group, assignment)
    placed = sum(map(len, unowned_partitions(group).values()))
    current = measures(group, keep_owners(group))[Measure.MAKESPAN]
    units, condition = member_units(group), plan_condition(group, levels)
    before, after = units.shown(current), units.shown(makespan.value)
    planned = f"{after:,}" + ("" if group.weight_unit is None else f" {group.weight_unit}")
    restriction = " within the capacities" if group_constraints(group) else ""
    if constraints:
        restriction = " under the constraints"
    texts: Any = environment(_TEMPLATES, autoescape=False).get_template("verdict.j2").make_module()
    quality = texts.quality(makespan, restriction)
    if moves or placed:
        benefit = _benefit(group, assignment, levels) if before == after else None
        text = f"{texts.change(moves, placed, before, after, planned, benefit)}; {quality}."
    elif solution.status is Status.OPTIMAL or not group.members:
        empty = None if group.members else no_members(group)
        reason = texts.unchanged(empty, is_rebalancing(group), _tolerance(levels), restriction)
        text = f"No moves{':' if condition is None else ';'} {reason}."
    else:
        text = "No better assignment was found; optimality is not proven."
    return Verdict(
        text=text,
        quality=quality,
        current=current,
        makespan=makespan,
        moves=moves,
        placed=placed,
        status=solution.status,
        condition=condition,
    )


def under(condition: str | None, text: str) -> str:
    """Add the condition under which a sentence holds, if there is one."""
    start = "" if condition is None else f"If {condition}: "
    is_name = not text.startswith(("A ", "No ", "Partition ", "The "))
    return start + (text if condition is None or is_name else f"{text[0].lower()}{text[1:]}")


def unowned_partitions(group: Group) -> dict[str, list[int]]:
    """List the partitions without an owner, as numbers by subscribed topic."""
    subscribers = group.subscribers()
    return {
        topic: (owners == NO_OWNER).nonzero()[0].tolist()
        for topic, owners in ownership(group).owners.items()
        if subscribers.get(topic)
    }


def has_lost_rebalance(group: Group) -> bool:
    """Return whether partitions lack an owner although no rebalance is in progress."""
    return bool(any(unowned_partitions(group).values()) and not is_rebalancing(group))


def unowned_text(count: int) -> str:
    """Describe ``count`` partitions without an owner."""
    have = "has" if count == 1 else "have"
    return f"{count_of(count, 'partition')} {have} no owner: a rebalance is pending or was lost"


def no_members(group: Group) -> str:
    """Describe why a group has no members."""
    if group.status.protocol is Protocol.SIMPLE:
        return "the group has no members, because its consumers call assign()"
    return "the group has no members"


def plan_condition(group: Group, levels: Sequence[Level]) -> str | None:
    """Return the condition under which a plan holds, or None."""
    return condition(group, with_racks=any(isinstance(level, CrossRack) for level in levels))


def _tolerance(levels: Sequence[Level]) -> str:
    """Describe the distance of an assignment from the optimum, by the tolerances of the levels."""
    match [level for level in levels if level.tolerance]:
        case []:
            if isinstance(levels[0], Imbalance):
                return "optimal"
            return (
                f"optimal for the levels {', '.join(level_words(level.name) for level in levels)}"
            )
        case [Imbalance(tolerance=Tolerance(absolute=0, up_to=None) as tolerance)]:
            return f"within {float(tolerance.relative) * 100:.3g}% of the minimum imbalance"
    return "optimal within the tolerances of the levels"


def _benefit(group: Group, assignment: Assignment, levels: Sequence[Level]) -> str | None:
    """Describe the first level with a lower value in an assignment than now, or return None."""
    problem = build_problem(group)
    before, after = (problem.to_placement(one) for one in (keep_owners(group), assignment))
    if before is None or after is None:
        return None
    for level in (*levels, Imbalance()):
        values = [level_value(problem, level, one) for one in (before, after)]
        if values[1] < values[0]:
            name = level_words(level.name)
            is_count = isinstance(level, CrossRack | MembersUsed | Colocation)
            return f"{name} from {values[0]:,} to {values[1]:,}" if is_count else f"the {name}"
    return None


_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_RANDOM_ID = re.compile(r"[\w-]{22}")
_NAME_WIDTH = 22


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """Map member ids to short unique names, with as few random characters as possible.

    Examples
    --------
    >>> ids = ["billing-1-00000000-0000-0000-0000-000000000000", "checkout-of-the-northern-region"]
    >>> list(short_names(Member(id, ()) for id in ids).values())
    ['billing-1', 'checkout-of…ern-region']
    """
    names = {member.id: _names(member) for member in members}
    uses = Counter(name for found in names.values() for name in set(found))
    return {id: next(n for n in names[id] if n == id or uses[n] == 1) for id in names}


def _names(member: Member) -> list[str]:
    """Return names of a member, the shortest first, and its id last."""
    id, client = member.id, member.client.id
    if client and _RANDOM_ID.fullmatch(id):
        return [_shorten_middle(client, _NAME_WIDTH), client, f"{client}-{id[:4]}", id]
    known = _RANDOM_PART.sub("", id) or id
    return [_shorten_middle(known, _NAME_WIDTH), known, id[: len(known) + 9], id]


def _shorten_middle(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def shorten(text: str, short: Mapping[str, str]) -> str:
    """Replace member ids in a text by short names."""
    for id in sorted(short, key=len, reverse=True):
        text = text.replace(id, short[id])
    return text
