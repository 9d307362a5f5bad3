"""The planning report: a self-contained page, and a ticket in Markdown."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import jinja2

from kassay.experiments.planning.plan import Plan
from kassay.experiments.planning.plan_files import loads_csv, moves_csv, unowned_names
from kassay.experiments.plotting.assignment_figure import draw_assignment
from kassay.experiments.plotting.page_templates import environment
from kassay.experiments.plotting.tradeoff_plots import frontier_svg
from kassay.reference.model.group import Member
from kassay.solver.solution import LevelValue

_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_TEMPLATES = Path(__file__).parent / "templates"
_DRAWN = 150
"""Groups with at most so many partitions are drawn."""
_LISTED = 500
"""At most so many moves are listed on the page; the files have all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A member's line in the table of loads.

    Parameters
    ----------
    member
        Its id.
    today, then
        Load before and after.
    before, after
        The same as percentages of the greatest load of all.
    mark
        ``"hot"`` above the greatest load of the optimum, else nothing.
    """

    member: str
    today: int
    then: int
    before: float
    after: float
    mark: str


def render_html(plan: Plan) -> str:
    """Render the page. Equal plans give equal bytes."""
    return _environment(autoescape=True).get_template("plan.html.j2").render(**_context(plan))


def render_ticket(plan: Plan) -> str:
    """Render the plan for a ticket."""
    return _environment(autoescape=False).get_template("ticket.md.j2").render(**_context(plan))


def _context(plan: Plan) -> dict[str, object]:
    small = plan.group.partition_count <= _DRAWN
    points = [(point.movement.value, point.imbalance.value) for point in plan.frontier.points]
    listed = 0
    batches = []
    for number, batch in enumerate(plan.batches, 1):
        if listed >= _LISTED:
            break
        batches.append((number, batch))
        listed += len(batch.moves)
    short = short_names(plan.group.members)
    return {
        "plan": plan,
        "short": short,
        "reasons": [_shortened(str(reason), short) for reason in plan.reasons],
        "name": plan.group.id or "the group",
        "rows": _rows(plan),
        "unowned": unowned_names(plan),
        "batches": batches,
        "unlisted": sum(len(batch.moves) for batch in plan.batches) - listed,
        "drawing": draw_assignment(
            plan.group, plan.assignment, title="Who has what, and what moves"
        )
        if small
        else "",
        "frontier_svg": frontier_svg(points, measure=str(plan.frontier.measure)),
        "frontier_csv": "moves,imbalance\n" + "".join(f"{x},{y}\n" for x, y in points),
        "moves_csv": moves_csv(plan),
        "loads_csv": loads_csv(plan),
        "worst_loss": plan.resilience.worst,
        "is_best_already": not plan.moves,
    }


def short_names(members: Iterable[Member]) -> dict[str, str]:
    """Return names to read: ids without the random part that brokers add, while unique.

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


def _shortened(text: str, short: Mapping[str, str]) -> str:
    for id in sorted(short, key=len, reverse=True):
        text = text.replace(id, short[id])
    return text


def _rows(plan: Plan) -> tuple[MemberRow, ...]:
    greatest = max(plan.today.makespan, plan.then.makespan, 1)
    rows = (
        MemberRow(
            member=member,
            today=load,
            then=plan.then.loads[member],
            before=round(100 * load / greatest, 1),
            after=round(100 * plan.then.loads[member] / greatest, 1),
            mark="hot" if load > plan.then.makespan else "",
        )
        for member, load in plan.today.loads.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.today, row.member)))


def _environment(*, autoescape: bool) -> jinja2.Environment:
    made = environment(_TEMPLATES, autoescape=autoescape)
    made.filters["proven"] = _proven
    made.filters["factor"] = _factor
    return made


def _proven(value: LevelValue | None) -> str:
    """Say what is proven of a value."""
    if value is None:
        return "not found in time"
    return "proven" if value.gap == 0 else f"at least {value.bound} is proven"


def _factor(value: Fraction) -> str:
    return f"{float(value):g}"
