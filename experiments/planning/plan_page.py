"""HTML page and Markdown ticket of a plan."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import jinja2

from kassay.experiments.planning.plan import Plan
from kassay.experiments.planning.plan_files import loads_csv, moves_csv
from kassay.experiments.plotting.assignment_figure import draw_assignment
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.model.group import Member
from kassay.solver.solution import LevelValue

_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_TEMPLATES = Path(__file__).parent / "templates"
_MAX_DRAWN_PARTITIONS = 150
_MAX_LISTED_MOVES = 500
"""Maximum number of moves on the page; ``moves.csv`` has all moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """Row of the table of loads. Percentages refer to the maximum load of both assignments."""

    member: str
    current: int
    planned: int
    current_percent: float
    planned_percent: float
    is_overloaded: bool


def render_html(plan: Plan) -> str:
    """Render a plan as an HTML page. Equal plans give equal bytes."""
    return _environment(autoescape=True).get_template("plan.html.j2").render(**_context(plan))


def render_ticket(plan: Plan) -> str:
    """Render the plan as a ticket in Markdown."""
    return _environment(autoescape=False).get_template("ticket.md.j2").render(**_context(plan))


def _context(plan: Plan) -> dict[str, object]:
    points = [(point.movement.value, point.imbalance.value) for point in plan.frontier.points]
    listed = 0
    batches = []
    for number, batch in enumerate(plan.batches, 1):
        if listed >= _MAX_LISTED_MOVES:
            break
        batches.append((number, batch))
        listed += len(batch.moves)
    short = short_names(plan.group.members)
    is_drawn = plan.group.partition_count <= _MAX_DRAWN_PARTITIONS
    return {
        "plan": plan,
        "short": short,
        "improving_chains": [_shorten(str(chain), short) for chain in plan.improving_chains],
        "name": plan.group.id or "the group",
        "rows": _rows(plan),
        "batches": batches,
        "unlisted": len(plan.moves) - listed,
        "drawing": draw_assignment(plan.group, plan.assignment, title="Planned assignment")
        if is_drawn
        else "",
        "frontier_svg": _draw_frontier(points, measure=str(plan.frontier.measure)),
        "frontier_csv": "moves,imbalance\n" + "".join(f"{x},{y}\n" for x, y in points),
        "moves_csv": moves_csv(plan),
        "loads_csv": loads_csv(plan),
    }


def _draw_frontier(points: Sequence[tuple[int, int]], measure: str) -> str:
    """Draw the frontier if it has at least two points."""
    if len(points) < 2:
        return ""
    from kassay.experiments.plotting.frontier_figure import frontier_svg

    return frontier_svg(points, measure=measure)


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """Return member ids without the random part that brokers add, if they stay unique.

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


def _rows(plan: Plan) -> tuple[MemberRow, ...]:
    current, planned = plan.current, plan.planned
    maximum = max(current.makespan, planned.makespan, 1)
    rows = (
        MemberRow(
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
    templates.filters["proof"] = _proof
    templates.filters["factor"] = _factor
    return templates


def _proof(level: LevelValue | None) -> str:
    if level is None:
        return "not found within the time limit"
    return "proven" if level.gap == 0 else f"lower bound {level.bound}"


def _factor(value: Fraction) -> str:
    return f"{float(value):g}"
