"""Render a plan as an HTML page, a Markdown ticket and a text summary."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import jinja2

from kassay.experiments.planning.group_plan.actions import RecommendedAction, count_of
from kassay.experiments.planning.group_plan.host_loads import host_loads
from kassay.experiments.planning.group_plan.plan_alternatives import scheduled_measure
from kassay.experiments.planning.group_plan.plan_result import Plan
from kassay.experiments.planning.plan_output.move_choice import move_choice
from kassay.experiments.planning.plan_output.plan_files import loads_csv, moves_csv
from kassay.experiments.planning.plan_output.plan_sentences import (
    bound_text,
    further_commands,
    not_considered,
    option_summary,
    quality,
    verdict,
    weight_text,
)
from kassay.experiments.planning.preparation.identify_assignor import (
    IdentifiedAssignor,
    identify_assignor,
)
from kassay.experiments.plotting.assignment_figure import draw_assignment
from kassay.experiments.plotting.frontier_drawing import FrontierCurve, frontier_svg
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.model.group import Member
from kassay.reference.model.metrics import host_units
from kassay.solver.objective import HostImbalance
from kassay.solver.solution import LevelValue

_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_TEMPLATES = Path(__file__).parents[1] / "templates"
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|!]")
_FIRST_STEPS = 3
_MAX_DRAWN_PARTITIONS = 150
_MAX_LISTED_MOVES = 500
"""Maximum number of moves on the HTML page; ``moves.csv`` has all moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLoadRow:
    """Row of the page's load table: current and planned load of one member.

    Percentages refer to the maximum load of both assignments.
    """

    member: str
    current: int
    planned: int
    current_percent: float
    planned_percent: float
    is_overloaded: bool


def render_html(plan: Plan) -> str:
    """Render a plan as an HTML page. Equal plans give equal bytes."""
    context = _context(plan) | _page_context(plan)
    return _environment(autoescape=True).get_template("plan.html.j2").render(**context)


def render_ticket(plan: Plan) -> str:
    """Render a plan as Markdown text for an issue tracker ticket."""
    return _environment(autoescape=False).get_template("ticket.md.j2").render(**_context(plan))


def render_summary(
    plan: Plan,
    *,
    directory: str,
    source: Sequence[str] = ("SOURCE",),
    selected: Sequence[str] = (),
) -> str:
    """Render the summary of a plan as text for a terminal.

    ``source`` are the arguments of further commands for the same source, and ``selected`` those
    that select the group in ``kassay plan``.
    """
    context = _context(plan, directory=directory, source=source, selected=selected)
    return _environment(autoescape=False).get_template("summary.txt.j2").render(**context)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """One of the first steps of a plan, with the maximum load before and after the step."""

    text: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstScreen:
    """Summary at the top of the plan page and in the terminal."""

    verdict: str
    quality: str
    actions: Sequence[RecommendedAction]
    first_steps: Sequence[FirstStep]
    options: Sequence[str]
    not_considered: Sequence[str]
    weights: str
    assignor: IdentifiedAssignor
    levels: str
    commands: Sequence[str]


def _summary(plan: Plan, short: Mapping[str, str], commands: Sequence[str]) -> FirstScreen:
    steps = [
        FirstStep(text=_shorten(str(step), short), before=step.makespan[0], after=step.makespan[1])
        for step in plan.steps[:_FIRST_STEPS]
    ]
    return FirstScreen(
        verdict=_shorten(verdict(plan), short),
        quality=quality(plan),
        actions=[replace(one, text=_shorten(one.text, short)) for one in plan.actions],
        first_steps=steps,
        options=list(option_summary(plan)),
        not_considered=not_considered(plan),
        weights=weight_text(plan),
        assignor=identify_assignor(plan.group, client=plan.client),
        levels=", then ".join(_level_text(level) for level in plan.solution.levels),
        commands=commands,
    )


def _level_text(level: LevelValue) -> str:
    name = level.name.replace("_", " ")
    tolerance = f", {level.slack:,} above the bound allowed" if level.slack else ""
    return f"{name} {level.value:,} ({bound_text(level)}{tolerance})"


def _context(
    plan: Plan,
    *,
    directory: str = ".",
    source: Sequence[str] = ("SOURCE",),
    selected: Sequence[str] = (),
) -> dict[str, object]:
    listed = 0
    batches = []
    for number, batch in enumerate(plan.batches, 1):
        if listed >= _MAX_LISTED_MOVES:
            break
        batches.append((number, batch))
        listed += len(batch.moves)
    short = short_names(plan.group.members)
    return {
        "plan": plan,
        "short": short,
        "steps": [_shorten(str(step), short) for step in plan.steps],
        "summary": _summary(plan, short, list(further_commands(plan, directory, source, selected))),
        "name": plan.group.id or "the group",
        "batches": batches,
        "unlisted": len(plan.moves) - listed,
        "hosts": host_loads(plan.group, plan.assignment),
        "equal_speeds": host_units(plan.group).has_equal_speeds,
        "by_host": any(isinstance(level, HostImbalance) for level in plan.levels),
    }


def _page_context(plan: Plan) -> dict[str, object]:
    """Compute the template values that only the HTML page uses."""
    is_drawn = plan.group.partition_count <= _MAX_DRAWN_PARTITIONS
    rows = _rows(plan)
    return {
        "rows": rows,
        "host_of": {one.id: one.client.host for one in plan.group.members},
        "choice": move_choice(plan, {row.member: number for number, row in enumerate(rows)}),
        "drawing": draw_assignment(
            plan.group,
            plan.assignment,
            title="Planned assignment",
            names=short_names(plan.group.members),
        )
        if is_drawn
        else "",
        "frontier_svg": _draw_frontier(plan),
        "frontier_csv": "moves,imbalance,bound\n"
        + "".join(
            f"{point.movement.value},{point.imbalance.value},{point.imbalance.bound}\n"
            for point in plan.frontier.points
        ),
        "moves_csv": moves_csv(plan),
        "loads_csv": loads_csv(plan),
    }


def _draw_frontier(plan: Plan) -> str:
    """Draw the frontier of a plan as SVG, or return "" for fewer than two points."""
    if len(plan.frontier.points) < 2:
        return ""
    return frontier_svg(frontier_curve(plan), measure=str(plan.frontier.measure))


def frontier_curve(plan: Plan) -> FrontierCurve:
    """Collect the data for drawing a plan's frontier: points, bounds and planned moves."""
    return FrontierCurve.of(plan.frontier, _prefixes(plan))


def _prefixes(plan: Plan) -> list[tuple[int, int]]:
    """Compute the number of moves and the imbalance after each batch of the plan."""
    if plan.frontier.measure is not scheduled_measure(plan.frontier.measure):
        return []
    moved, prefixes = 0, []
    if not any(move.source is None for move in plan.moves):
        prefixes.append((0, plan.current.measures[str(plan.frontier.measure)]))
    for batch in plan.batches:
        moved += sum(move.source is not None for move in batch.moves)
        prefixes.append((moved, batch.imbalance))
    return prefixes


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """Map member ids to short names without the random UUID, if these names are unique.

    Examples
    --------
    >>> id = "billing-1-00000000-0000-0000-0000-000000000000"
    >>> list(short_names([Member(id=id, subscription=())]).values())
    ['billing-1']
    """
    ids = [member.id for member in members]
    cut = {id: _RANDOM_PART.sub("", id) or id for id in ids}
    uses = Counter(cut.values())
    return {id: name if uses[name] == 1 else id for id, name in cut.items()}


def _shorten(text: str, short: Mapping[str, str]) -> str:
    for id in sorted(short, key=len, reverse=True):
        text = text.replace(id, short[id])
    return text


def _rows(plan: Plan) -> tuple[MemberLoadRow, ...]:
    current, planned = plan.current, plan.planned
    maximum = max(current.makespan, planned.makespan, 1)
    rows = (
        MemberLoadRow(
            member=member,
            current=load,
            planned=planned.loads[member],
            current_percent=round(100 * load / maximum, 1),
            planned_percent=round(100 * planned.loads[member] / maximum, 1),
            is_overloaded=load > planned.makespan,
        )
        for member, load in current.loads.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.current, row.member)))


def _environment(*, autoescape: bool) -> jinja2.Environment:
    templates = environment(_TEMPLATES, autoescape=autoescape)
    templates.filters["proof"] = bound_text
    templates.filters["md"] = escape_markdown
    templates.filters["code"] = markdown_code
    templates.filters["factor"] = _factor
    templates.filters["counted"] = count_of
    templates.filters["address"] = lambda host: host.removeprefix("/")
    return templates


def escape_markdown(text: str) -> str:
    r"""Escape the characters that have a meaning in Markdown and HTML.

    Examples
    --------
    >>> print(escape_markdown("a|b `c`"))
    a\|b \`c\`
    """
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(text.split()))


def markdown_code(text: str) -> str:
    """Format a name as inline code in Markdown, even if it contains backticks.

    Examples
    --------
    >>> print(markdown_code("t-0"), markdown_code("a`b"))
    `t-0` ``a`b``
    """
    text = " ".join(text.split())
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", r"\|")


def _factor(value: Fraction) -> str:
    return f"{float(value):g}"
