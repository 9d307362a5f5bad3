"""Sentences and values of a plan for pages, tickets and texts, and commands that follow it."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kassay.experiments.planning.actions import compared_measures
from kassay.experiments.planning.identify_assignor import identify_assignor, runs_in_client
from kassay.experiments.planning.plan import (
    ALMOST_BALANCED,
    BALANCED,
    FEW_MOVES,
    RECOMMENDED,
    Plan,
    PlanOption,
)
from kassay.experiments.planning.plan_verdict import count_of, level_words
from kassay.reference.model.display import shorten_middle
from kassay.reference.model.group import Assumed, Group, Member, WeightSource
from kassay.reference.model.group_remarks import rebalance_caveat, target_assignment
from kassay.reference.model.metrics import Measure, host_units, shown
from kassay.solver.constraints import MaxMoves
from kassay.solver.objective import HOST_LEVELS, Movement
from kassay.solver.solution import LevelValue

_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NAME_WIDTH = 22
_COMPARED_MOVES = (1, 3, 10, 30)
_BACKLOG = "Lag is a backlog, not a load: this plan spreads the backlog"
_WEIGHTS = {
    WeightSource.LAG: f"loads are sums of lag, in messages. {_BACKLOG}",
    WeightSource.RATE: "loads are sums of rates, in messages appended between two samples. The "
    "rate is the load of consumers that read new records",
    WeightSource.SIZE: "loads are sums of sizes, in bytes on disk of the largest replica. Size is "
    "the load of consumers that read topics from the beginning; use rates for consumers that read "
    "new records",
    WeightSource.FILE: "loads are sums of the weights in the given file or table",
}


def verdict(plan: Plan) -> str:
    """Describe the moves of the plan and the change of the maximum load, with all conditions.

    If the other reading of assumed subscriptions has another result, it follows.
    """
    caveat = rebalance_caveat(plan.group)
    sentences = [str(plan.verdict)]
    if plan.other_reading is not None:
        sentences.append(str(plan.other_reading))
    return " ".join(sentences if caveat is None else [*sentences, caveat])


def proofs(levels: Iterable[LevelValue], group: Group | None = None) -> str:
    """Describe which levels of a solution are proven, and the bounds of the others.

    A sum of squares after the maximum load is proven at the maximum load and moves of the solution.

    Examples
    --------
    >>> proofs([LevelValue("makespan", 7, 5, slack=2), LevelValue("movement", 3, 3)])
    'proven: maximum load within its tolerance, moves'
    >>> proofs([LevelValue("makespan", 7, 7), LevelValue("sum_of_squares", 90, 82)])
    'proven: maximum load; not proven: sum of squares at this maximum load 90 (lower bound 82)'
    """
    proven, others, has_makespan = [], [], False
    for level in levels:
        name = level_words(level.name)
        has_makespan = has_makespan or level.name == Measure.MAKESPAN
        if has_makespan and level.name == Measure.SUM_OF_SQUARES:
            name += " at this maximum load"
        if level.is_proven:
            proven.append(f"{name} within its tolerance" if level.gap else name)
        else:
            others.append(f"{name} {value_text(level, group)}")
    parts = (("proven", proven), ("not proven", others))
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in parts if names)


def option_summary(plan: Plan) -> Iterator[str]:
    """Yield one line of text per option of the plan, with its moves and imbalance."""
    group = plan.group
    for option in plan.options:
        name = option_label(plan, option)
        measure = f"maximum load {shown('makespan', option.metrics.makespan, group):,}"
        if option.imbalance.name not in (Measure.MAKESPAN, Measure.LEXIMAX):
            measure += f", {level_words(option.imbalance.name)} "
            measure += f"{shown(option.imbalance.name, option.imbalance.value, group):,}"
        further = ""
        if option.name == RECOMMENDED:
            known = (*Measure, Movement.name)
            further = "".join(
                f", {level_words(level.name)} {value_text(level, group)}"
                for level in plan.solution.levels
                if level.name not in known
            )
        moves, bound = count_of(option.movement.value, "move"), bound_text(option.imbalance, group)
        if option.imbalance.gap and not option.imbalance.name.endswith(Measure.LEXIMAX):
            bound += f" with at most {moves}"
        yield f"{name}: {moves} ({bound_text(option.movement)}), {measure} ({bound}){further}"


def option_label(plan: Plan, option: PlanOption) -> str:
    """Return the name of an option, with the constraint that it ignores."""
    if option.name == RECOMMENDED:
        return "this plan"
    has_limit = any(isinstance(one, MaxMoves) for one in plan.constraints)
    is_unlimited = has_limit and option.name in (BALANCED, ALMOST_BALANCED)
    return option.name + (" without the limit on moves" if is_unlimited else "")


def value_text(level: LevelValue, group: Group | None = None) -> str:
    """Format the value of a level and its bound; the rank of leximax loads is not shown."""
    if level.name.endswith(Measure.LEXIMAX):
        return "(proven)" if level.gap == 0 else "(not proven)"
    return f"{shown(level.name, level.value, group):,} ({bound_text(level, group)})"


def bound_text(level: LevelValue | None, group: Group | None = None) -> str:
    """Format the lower bound of a value, or ``proven`` if the value is optimal."""
    if level is None:
        return "not found within the time limit"
    if level.gap == 0:
        return "proven"
    if level.name.endswith(Measure.LEXIMAX):
        return "not proven"
    return f"lower bound {shown(level.name, level.bound, group):,}"


def not_considered(plan: Plan) -> list[str]:
    """List objectives, such as rack locality, that the plan ignores but the user can add."""
    names = {level.name for level in plan.levels}
    ignored = []
    crossing = plan.racks is not None and (plan.racks.current or plan.racks.planned)
    if plan.racks is not None and "cross_rack" not in names and crossing:
        ignored.append(
            f"racks: {plan.racks.current:,} of {plan.group.partition_count:,} partitions are read "
            f"across racks now, {plan.racks.planned:,} in this plan; consider them with --level "
            "cross_rack --level movement"
        )
    unknown = sum(Assumed.RACK in member.assumed for member in plan.group.members)
    if unknown and "cross_rack" not in names:
        members = count_of(unknown, "member")
        ignored.append(f"racks: the source does not show the racks of {members}")
    hosts = plan.hosts()
    if names.isdisjoint(HOST_LEVELS) and hosts:
        current = shown("host_makespan", plan.current.host_makespan, plan.group)
        planned = shown("host_makespan", plan.planned.host_makespan, plan.group)
        relative = "" if host_units(plan.group).has_equal_speeds else ", relative to its speed,"
        ignored.append(
            f"hosts: the maximum load of a host{relative} is {current:,} now and {planned:,} in "
            "this plan; balance hosts with --level hosts --level imbalance"
        )
    if len(plan.group.topics) > 1 and "topic_spread" not in names:
        ignored.append(
            "spread of each topic over its members; consider it with --level topic_spread"
        )
    return ignored


def _action_note(plan: Plan) -> str | None:
    """Describe the further cost of the recommended actions, or the lack of such actions."""
    if plan.actions:
        if not any(one.changes_assignor for one in plan.actions[:SHOWN_ACTIONS]):
            return None
        text = (
            "The moves are those of one rebalance. The rolling restarts of a change, and later "
            "ones, cause further rebalances and moves"
        )
        if not _has_forecast(plan):
            return f"{text}."
        return (
            f"{text}: kassay forecast compares their costs. It recommends the configuration with "
            "the cheapest later restart, which can be another one."
        )
    if not plan.movement or not plan.assignor_outcomes or plan.interrupted:
        return None
    rules = " under its constraints" if plan.constraints else ""
    ignored = "" if plan.group.common_weight is not None else " Kafka's assignors ignore weights."
    names = compared_measures(plan.current, plan.planned, plan.levels)
    near = "is at most 5 % above that" if len(names) == 1 else "are at most 5 % above those"
    return (
        "No action that kassay checks, such as another assignor, improves the group so that its "
        f"{' and '.join(map(level_words, names))} {near} of this plan{rules}.{ignored}"
    )


def _gaps_of_first_moves(plan: Plan) -> Iterator[str]:
    """Yield a sentence for each number of first moves after which imbalance can be lower."""
    measure = plan.frontier.measure
    for first in plan.first_moves():
        if first.moves in _COMPARED_MOVES and first.imbalance > first.lowest:
            excess = (first.imbalance - first.lowest) / max(1, first.lowest)
            value, lowest = (
                shown(measure, one, plan.group) for one in (first.imbalance, first.lowest)
            )
            moves = count_of(first.moves, "move")
            yield (
                f"After {moves} of the list: {level_words(measure)} {value:,}, {excess:.1%} above "
                f"the lowest found for {moves} ({lowest:,})."
            )


def _weight_text(plan: Plan) -> str:
    """Describe the unit of the loads, and which other weights are available."""
    group = plan.group
    if group.weight_unit is not None:
        text = f"loads are sums of partition weights, in {group.weight_unit}"
        if group.weight_source is WeightSource.LAG:
            text += f". {_BACKLOG}"
    elif group.weight_source is not None:
        text = _WEIGHTS[group.weight_source]
    elif group.common_weight != 1:
        text = "loads are sums of partition weights; the source does not name their quantity"
    else:
        text = (
            "loads are numbers of partitions: every partition counts 1. Use rates (--weights rate "
            "at import) if partitions differ in traffic, sizes if consumers reprocess whole "
            "topics. Lag is a backlog, not a load: use it only to spread an existing backlog"
        )
    if not group.has_equal_speeds:
        text += (
            ". Members differ in speed: maximum loads are loads divided by the speed of the "
            "member, times the speed of the fastest member"
        )
    others = [f"--weights {one}" for one in group.available_weights if one != group.weight_source]
    if not others:
        return text
    text += f". The source of the group allows {' and '.join(others)} at import"
    if "--weights lag" in others and "Lag is a backlog" not in text:
        text += ", but lag is a backlog, not a load"
    return text


SHOWN_ACTIONS = 3
"""Number of effective actions that a plan shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArguments:
    """Arguments of ``kassay plan`` for a group, to be used in further commands.

    ``source`` has the source and the options of its data. ``selected`` selects the group, and
    ``objective`` has the options of the objective.
    """

    source: tuple[str, ...] = ("SOURCE",)
    selected: tuple[str, ...] = ()
    objective: tuple[str, ...] = ()


def _further_commands(plan: Plan, directory: str | None, given: PlanArguments) -> Iterator[str]:
    """Yield commands for the written plan in ``directory``, if given, and for the plan's source."""
    group = [*given.source, *given.selected]
    arguments = shlex.join([*group, *given.objective])
    if directory is None:
        yield f"kassay plan {arguments} -o plan"
    else:
        yield f"kassay compare {shlex.quote(f'{directory}/after.jsonl')} --format table"
    if plan.movement > FEW_MOVES:
        few = f"--max-moves {FEW_MOVES} -o plan-{FEW_MOVES}"
        yield f"kassay plan {arguments} {few}"
    if _has_forecast(plan):
        own = identify_assignor(plan.group).name
        current = "" if own is not None else " --current ASSIGNOR"
        yield f"kassay forecast {shlex.join(group)}{current} --format table"
    if plan.group.weight_source is not WeightSource.LAG:
        like = "" if plan.group.has_equal_speeds else " --like MEMBER"
        yield f"kassay forecast {arguments} --members +0..+2{like} --format table"


def _has_forecast(plan: Plan) -> bool:
    """Return whether an effective action is a change that ``kassay forecast`` simulates."""
    own = identify_assignor(plan.group)
    is_known = own.name is None or (own.port is not None and runs_in_client(own.port))
    return is_known and any(one.changes_assignor for one in plan.actions[:SHOWN_ACTIONS])


_MAX_LISTED_STEPS = 40
"""Maximum number of moves in the text of a plan without files."""


def plan_summary(plan: Plan, directory: str | None, arguments: PlanArguments) -> dict[str, object]:
    """Return the texts and values at the top of the page, of the ticket and of the text.

    ``directory`` has the files of the plan.
    """
    group, levels, short = plan.group, plan.solution.levels, short_names(plan.group.members)
    names = [level.name for level in levels]
    before = names[: names.index(Movement.name)]
    condition = "" if plan.condition is None else f", if {plan.condition}"
    reason = None if plan.limiting_partition is None else str(plan.limiting_partition)
    if reason is not None and plan.constraints:
        reason += " The constraints of the plan do not apply to these values."
    return {
        "verdict": shorten(verdict(plan), short),
        "quality": plan.verdict.quality + condition,
        "reason": reason,
        "condition": plan.condition,
        "target": target_assignment(group),
        "actions": [replace(one, text=shorten(one.text, short)) for one in plan.actions],
        "action_note": _action_note(plan),
        "is_recommended": any(one.moves is not None for one in plan.actions[:1]) and plan.movement,
        "first_steps": [
            {
                "text": shorten(str(step), short),
                "makespan": [step.units.shown(one) for one in step.makespan],
            }
            for step in plan.steps[:_MAX_LISTED_STEPS]
        ],
        "options": list(option_summary(plan)),
        "gaps": list(_gaps_of_first_moves(plan)),
        "not_considered": not_considered(plan),
        "weights": _weight_text(plan),
        "assignor": identify_assignor(group, client=plan.client),
        "levels": ", then ".join(_level_text(level, group) for level in levels),
        "proofs": proofs(levels, group),
        "before_moves": " and ".join(map(level_words, before)),
        "further_before_moves": " and ".join(
            level_words(name) for name in before if name != plan.solution.imbalance.name
        ),
        "commands": list(_further_commands(plan, directory, arguments)),
    }


def _level_text(level: LevelValue, group: Group) -> str:
    name, slack = level_words(level.name), shown(level.name, level.slack, group)
    tolerance = f", {slack:,} above the bound allowed" if level.slack else ""
    return f"{name} {value_text(level, group).removesuffix(')')}{tolerance})"


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """Map member ids to short names, if these names are unique.

    A short name has no random UUID, and long names are cut in the middle.

    Examples
    --------
    >>> ids = ["billing-1-00000000-0000-0000-0000-000000000000", "checkout-of-the-northern-region"]
    >>> list(short_names(Member(id, ()) for id in ids).values())
    ['billing-1', 'checkout-of…ern-region']
    """
    cut = {member.id: _RANDOM_PART.sub("", member.id) or member.id for member in members}
    short = {id: shorten_middle(name, _NAME_WIDTH) for id, name in cut.items()}
    uses = Counter([*cut.values(), *(name for id, name in short.items() if name != cut[id])])
    return {id: next(n for n in (short[id], cut[id], id) if n == id or uses[n] == 1) for id in cut}


def shorten(text: str, short: Mapping[str, str]) -> str:
    """Replace the member ids in a text by short names."""
    for id in sorted(short, key=len, reverse=True):
        text = text.replace(id, short[id])
    return text
