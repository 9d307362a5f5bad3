"""Sentences and values of a plan for pages, tickets and texts, and commands that follow it."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kassay.experiments.planning.actions import compared_measures
from kassay.experiments.planning.identify_assignor import (
    identify_assignor,
    runs_in_client,
)
from kassay.experiments.planning.plan import (
    ALMOST_BALANCED,
    BALANCED,
    FEW_MOVES,
    RECOMMENDED,
    Plan,
    PlanOption,
    host_loads,
    loads_csv,
    moves_csv,
)
from kassay.experiments.planning.plan_verdict import count_of, level_words
from kassay.experiments.plotting.svg_drawings import FrontierCurve, draw_assignment, frontier_svg
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import Assumed, WeightSource
from kassay.reference.model.group_remarks import rebalance_caveat
from kassay.reference.model.metrics import Measure, host_units, member_units, relative_loads, shown
from kassay.solver.constraints import MaxMoves
from kassay.solver.objective import HOST_LEVELS, Movement
from kassay.solver.solution import LevelValue

MEASURE_DEFINITIONS = {
    Measure.SUM_OF_SQUARES: "sum of the squared loads",
    Measure.SPREAD: "maximum load minus minimum load",
    Measure.DEVIATION: "sum of the differences from the mean load, times the number of members",
    Measure.BALANCE_SCORE: "sum of the load differences of all pairs of members",
}
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


def quality(plan: Plan) -> str:
    """Describe how far the planned maximum load is from the proven minimum."""
    text = plan.verdict.quality
    return text if plan.condition is None else f"{text}, if {plan.condition}"


def lower_limit(plan: Plan) -> str | None:
    """Describe the partition that determines the lowest possible maximum load, or return None."""
    if plan.limiting_partition is None:
        return None
    note = " The constraints of the plan do not apply to these values." if plan.constraints else ""
    return f"{plan.limiting_partition}{note}"


def levels_before_moves(plan: Plan) -> list[str]:
    """Return the words of the levels that precede the moves, which limit their minimum."""
    names = [level.name for level in plan.solution.levels]
    before = names[: names.index(Movement.name)] if Movement.name in names else names
    return [level_words(name) for name in before]


def further_levels_before_moves(plan: Plan) -> list[str]:
    """Return the words of the levels other than the imbalance that precede the moves."""
    own = level_words(plan.solution.imbalance.name)
    return [name for name in levels_before_moves(plan) if name != own]


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
            f"across racks now, {plan.racks.planned:,} in this plan; consider them with --racks"
        )
    unknown = sum(Assumed.RACK in member.assumed for member in plan.group.members)
    if unknown and "cross_rack" not in names:
        members = count_of(unknown, "member")
        ignored.append(f"racks: the source does not show the racks of {members}")
    hosts = host_loads(plan.group, plan.assignment)
    if names.isdisjoint(HOST_LEVELS) and hosts:
        current = shown("host_makespan", plan.current.host_makespan, plan.group)
        planned = shown("host_makespan", plan.planned.host_makespan, plan.group)
        relative = "" if host_units(plan.group).has_equal_speeds else ", relative to its speed,"
        ignored.append(
            f"hosts: the maximum load of a host{relative} is {current:,} now and {planned:,} in "
            "this plan; balance hosts with --by-host"
        )
    if len(plan.group.topics) > 1 and "topic_spread" not in names:
        ignored.append(
            "spread of each topic over its members; consider it with --level topic_spread"
        )
    return ignored


def action_note(plan: Plan) -> str | None:
    """Describe the further cost of the recommended actions, or the lack of such actions.

    The number of moves of an action is that of one rebalance. The rolling restart for another
    assignor has further rebalances.
    """
    if plan.actions:
        if not any(one.changes_assignor for one in plan.actions[:SHOWN_ACTIONS]):
            return None
        text = (
            "The moves are those of one rebalance. The rolling restarts of a change, and later "
            "ones, cause further rebalances and moves"
        )
        if not has_forecast(plan):
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


def gaps_of_first_moves(plan: Plan) -> Iterator[str]:
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


def weight_text(plan: Plan) -> str:
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


NO_ARGUMENTS = PlanArguments()
"""Arguments for a plan whose source is not known."""


def further_commands(plan: Plan, directory: str | None, given: PlanArguments) -> Iterator[str]:
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
    if has_forecast(plan):
        own = identify_assignor(plan.group).name
        current = "" if own is not None else " --current ASSIGNOR"
        yield f"kassay forecast {shlex.join(group)}{current} --format table"
    if plan.group.weight_source is not WeightSource.LAG:
        like = "" if plan.group.has_equal_speeds else " --like MEMBER"
        yield f"kassay what-if {arguments} --members +0..+2{like} --format table"


def has_forecast(plan: Plan) -> bool:
    """Return whether an effective action is a change that ``kassay forecast`` simulates."""
    own = identify_assignor(plan.group)
    is_known = own.name is None or (own.port is not None and runs_in_client(own.port))
    return is_known and any(one.changes_assignor for one in plan.actions[:SHOWN_ACTIONS])


_MAX_DRAWN_PARTITIONS = 150


def page_context(plan: Plan, names: Mapping[str, str]) -> dict[str, object]:
    """Compute the template values that only the HTML page uses.

    ``names`` are short names of the members.
    """
    is_drawn = plan.group.partition_count <= _MAX_DRAWN_PARTITIONS
    rows = _load_rows(plan)
    return {
        "rows": rows,
        "host_of": {one.id: one.client.host for one in plan.group.members},
        "choice": _move_choice(plan, [str(row["member"]) for row in rows]),
        "drawing": draw_assignment(
            plan.group,
            plan.assignment,
            title="Planned assignment",
            names=names,
        )
        if is_drawn
        else "",
        "frontier_svg": frontier_svg(
            frontier_curve(plan), measure=level_words(plan.frontier.measure)
        )
        if len(plan.frontier.points) > 1
        else "",
        "has_prefixes": len(plan.imbalance_by_moves()) > 1,
        "frontier_csv": "moves,imbalance,bound\n"
        + "".join(
            f"{row.moves},{row.imbalance},{row.imbalance_bound}\n" for row in plan.frontier.table()
        ),
        "moves_csv": moves_csv(plan),
        "loads_csv": loads_csv(plan),
    }


def _move_choice(plan: Plan, members: Sequence[str]) -> Markup | None:
    """Return the data with which the page shows the loads after any number of moves, as JSON.

    ``members`` are the members in the order of the load table. The loads before the first
    move include the partitions without an owner, which the plan assigns first. The result is None
    for a plan without moves.
    """
    row_of = {member: row for row, member in enumerate(members)}
    moves = [
        (row_of[move.source], row_of[move.target], move.weight)
        for batch in plan.batches
        for move in batch.moves
        if move.source is not None
    ]
    if not moves:
        return None
    loads = [plan.planned.loads[member] for member in members]
    for source, target, weight in moves:
        loads[source] += weight
        loads[target] -= weight
    measure, units = plan.frontier.measure, member_units(plan.group)
    has_points = measure is Measure.MAKESPAN or (
        measure is Measure.SUM_OF_SQUARES and units.has_equal_speeds
    )
    points = [
        (
            row.moves,
            *(shown(measure, one, plan.group) for one in (row.imbalance, row.imbalance_bound)),
        )
        for row in plan.frontier.table()
        if has_points
    ]
    speed_of = {member.id: member.speed for member in plan.group.members}
    speeds = [speed_of[member] for member in members]
    text = json.dumps(
        {
            "loads": loads,
            "moves": moves,
            "speeds": speeds,
            "measure": str(measure),
            "frontier": points,
        },
        separators=(",", ":"),
    )
    return Markup(text)  # noqa: S704 - only numbers and the name of a measure


def frontier_curve(plan: Plan) -> FrontierCurve:
    """Collect the data for drawing a plan's frontier: points, bounds and planned moves."""
    curve, units = (
        FrontierCurve.of(plan.frontier, plan.imbalance_by_moves()),
        member_units(plan.group),
    )
    if plan.frontier.measure is not Measure.MAKESPAN or units.has_equal_speeds:
        return curve
    points, bounds, prefixes = (
        [(moves, round(units.shown(load))) for moves, load in each]
        for each in (curve.points, curve.bounds, curve.prefixes)
    )
    return FrontierCurve(points=points, bounds=bounds, prefixes=prefixes)


def _load_rows(plan: Plan) -> list[dict[str, object]]:
    """Return the rows of the load table. Percentages refer to the maximum of both assignments.

    If members differ in speed, percentages and overloads are those of relative loads.
    """
    planned = plan.planned
    maximum = max(plan.current.makespan, planned.makespan, 1)
    before, after = (
        relative_loads(plan.group, each) for each in (plan.current.loads, planned.loads)
    )
    return [
        {
            "member": member,
            "current": load,
            "planned": planned.loads[member],
            "current_percent": round(100 * before[member] / maximum, 1),
            "planned_percent": round(100 * after[member] / maximum, 1),
            "is_overloaded": before[member] > planned.makespan,
        }
        for member, load in sorted(plan.current.loads.items(), key=lambda one: (-one[1], one[0]))
    ]
