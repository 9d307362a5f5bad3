"""Render a plan as page, ticket and text, and write its files."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import jinja2

from kassay.experiments.planning.actions import AssignmentMetrics
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan import (
    Plan,
    host_loads,
    loads_csv,
    moves_csv,
)
from kassay.experiments.planning.plan_sentences import (
    MEASURE_DEFINITIONS,
    NO_ARGUMENTS,
    PlanArguments,
    action_note,
    bound_text,
    further_commands,
    further_levels_before_moves,
    gaps_of_first_moves,
    levels_before_moves,
    lower_limit,
    not_considered,
    option_label,
    option_summary,
    page_context,
    proofs,
    quality,
    value_text,
    verdict,
    weight_text,
)
from kassay.experiments.planning.plan_verdict import count_of, level_words
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.json_codec import assignment_document, group_document
from kassay.reference.model.display import shorten_middle
from kassay.reference.model.group import Group, Member
from kassay.reference.model.group_remarks import target_assignment
from kassay.reference.model.metrics import host_units, member_units, shown
from kassay.reference.model.ownership import rejoin
from kassay.solver.objective import HostImbalance
from kassay.solver.solution import LevelValue, value_and_bound

_RANDOM_PART = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_TEMPLATES = Path(__file__).parent / "templates"
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>#|!]")
_NAME_WIDTH = 22
_MAX_LISTED_STEPS = 40
"""Maximum number of moves in the text of a plan without files."""
_MAX_LISTED_MOVES = 500
"""Maximum number of moves on the HTML page; ``moves.csv`` has all moves."""


def render_html(
    plan: Plan,
    *,
    directory: str = ".",
    arguments: PlanArguments = NO_ARGUMENTS,
) -> str:
    """Render a plan as an HTML page. Equal plans give equal bytes.

    ``directory`` has the files of the plan; ``arguments`` are those of `kassay plan`.
    """
    context = _context(plan, directory=directory, arguments=arguments)
    context |= page_context(plan, short_names(plan.group.members))
    return _environment(plan, autoescape=True).get_template("plan.html.j2").render(**context)


def render_ticket(
    plan: Plan,
    *,
    directory: str = ".",
    arguments: PlanArguments = NO_ARGUMENTS,
) -> str:
    """Render a plan as Markdown text for an issue tracker ticket.

    The parameters are those of `render_html`.
    """
    template = _environment(plan, autoescape=False).get_template("ticket.md.j2")
    context = _context(plan, directory=directory, arguments=arguments)
    return template.render(**context)


def render_summary(
    plan: Plan,
    *,
    directory: str | None,
    arguments: PlanArguments = NO_ARGUMENTS,
) -> str:
    """Render the summary of a plan as text for a terminal.

    If the plan is not written to a ``directory``, the text has more moves.
    ``arguments`` are those of ``kassay plan``, for further commands.
    """
    context = _context(plan, directory=directory, arguments=arguments)
    context |= {"is_written": directory is not None}
    return _environment(plan, autoescape=False).get_template("summary.txt.j2").render(**context)


def _summary(plan: Plan, short: Mapping[str, str], commands: Sequence[str]) -> dict[str, object]:
    """Return the values at the top of the page, of the ticket and of the text summary."""
    group = plan.group
    return {
        "verdict": _shorten(verdict(plan), short),
        "quality": quality(plan),
        "reason": lower_limit(plan),
        "condition": plan.condition,
        "target": target_assignment(plan.group),
        "actions": [replace(one, text=_shorten(one.text, short)) for one in plan.actions],
        "action_note": action_note(plan),
        "is_recommended": any(one.moves is not None for one in plan.actions[:1]) and plan.movement,
        "first_steps": [
            {
                "text": _shorten(str(step), short),
                "makespan": [step.units.shown(one) for one in step.makespan],
            }
            for step in plan.steps[:_MAX_LISTED_STEPS]
        ],
        "options": list(option_summary(plan)),
        "gaps": list(gaps_of_first_moves(plan)),
        "not_considered": not_considered(plan),
        "weights": weight_text(plan),
        "assignor": identify_assignor(plan.group, client=plan.client),
        "levels": ", then ".join(_level_text(level, group) for level in plan.solution.levels),
        "proofs": proofs(plan.solution.levels, group),
        "before_moves": " and ".join(levels_before_moves(plan)),
        "further_before_moves": " and ".join(further_levels_before_moves(plan)),
        "commands": commands,
    }


def _level_text(level: LevelValue, group: Group) -> str:
    name, slack = level_words(level.name), shown(level.name, level.slack, group)
    tolerance = f", {slack:,} above the bound allowed" if level.slack else ""
    return f"{name} {value_text(level, group).removesuffix(')')}{tolerance})"


def _context(
    plan: Plan,
    *,
    directory: str | None = ".",
    arguments: PlanArguments = NO_ARGUMENTS,
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
        "summary": _summary(plan, short, list(further_commands(plan, directory, arguments))),
        "name": plan.group.id or "the group",
        "batches": batches,
        "unlisted": len(plan.moves) - listed,
        "hosts": host_loads(plan.group, plan.assignment),
        "definitions": MEASURE_DEFINITIONS,
        "equal_speeds": host_units(plan.group).has_equal_speeds,
        "by_host": any(isinstance(level, HostImbalance) for level in plan.levels),
    }


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


def _shorten(text: str, short: Mapping[str, str]) -> str:
    for id in sorted(short, key=len, reverse=True):
        text = text.replace(id, short[id])
    return text


def _environment(plan: Plan, *, autoescape: bool) -> jinja2.Environment:
    templates, units = environment(_TEMPLATES, autoescape=autoescape), member_units(plan.group)
    templates.filters["load"] = units.shown
    templates.filters["commas"] = "{:,}".format
    templates.filters["shown"] = lambda value, name: shown(name, value, plan.group)
    templates.filters["proof"] = partial(bound_text, group=plan.group)
    templates.filters["words"] = level_words
    templates.filters["label"] = partial(option_label, plan)
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


PLAN_PAGE = "report.html"
"""Name of the file with the page of a plan."""
VERSION = 3
"""Format version of ``plan.json``; see ``plan.schema.json``."""


def plan_document(plan: Plan) -> dict[str, object]:
    """Return the content of ``plan.json``, which follows ``plan.schema.json``."""
    target = target_assignment(plan.group)
    document: dict[str, object] = {
        "version": VERSION,
        "id": plan.group.id,
        "verdict": verdict(plan),
        "condition": plan.condition,
        "other_reading": None if plan.other_reading is None else plan.other_reading.record(),
        "state": plan.group.status.state,
        "target": None if target is None else target.record(),
        "actions": [
            {"action": one.text, "makespan": one.makespan, "moves": one.moves}
            for one in plan.actions
        ],
        "not_considered": not_considered(plan),
        "own_assignor": identify_assignor(plan.group, client=plan.client).record(),
        "status": str(plan.solution.status),
        "interrupted": plan.interrupted,
        "is_first": plan.is_first,
        "limiting_partition": None
        if plan.limiting_partition is None
        else plan.limiting_partition.record(),
        "method": plan.solution.method,
        "levels": [_level(level) for level in plan.solution.levels],
        "constraints": [str(constraint) for constraint in plan.constraints],
        "makespan": value_and_bound(plan.makespan),
        "current": {
            **_metrics(plan.current),
            "unowned": len(plan.unowned),
            "idle": list(plan.idle),
        },
        "planned": _metrics(plan.planned),
        "movement": plan.movement,
        "options": [option.record() for option in plan.options],
        "batches": [batch.record() for batch in plan.batches],
        "assignment": assignment_document(plan.assignment),
        "frontier": {
            "measure": str(plan.frontier.measure),
            "complete": plan.frontier.complete,
            "points": [row.record() for row in plan.frontier.table()],
        },
        "first_moves": [one.record() for one in plan.first_moves()],
        "steps": [
            {"step": str(step), "moves": len(step.moves), "makespan": list(step.makespan)}
            for step in plan.steps
        ],
        "assignors": [outcome.record() for outcome in plan.assignor_outcomes],
        "members_needed": [sizing.record() for sizing in plan.growth_sizings],
        "member_losses": list(_losses(plan)),
    }
    if plan.racks is not None:
        document["racks"] = plan.racks.record()
    hosts = host_loads(plan.group, plan.assignment)
    if hosts:
        document["hosts"] = [asdict(one) for one in hosts]
    return document


def to_json(document: object) -> str:
    """Convert a document to indented JSON text."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def static_assignment(plan: Plan) -> dict[str, object]:
    """Return the partitions that each consumer passes to ``KafkaConsumer.assign()``.

    ``client_ids`` has the ``client.id`` of each member for which the source shows it.
    """
    members = {
        member: {
            topic: [one.partition for one in found]
            for topic, found in groupby(sorted(partitions), key=attrgetter("topic"))
        }
        for member, partitions in plan.assignment.items()
    }
    clients = {one.id: one.client.id for one in plan.group.members if one.client.id is not None}
    return {
        "group": plan.group.id,
        "members": members,
        **({"client_ids": clients} if clients else {}),
    }


def group_after(plan: Plan) -> dict[str, object]:
    """Return the group document that describes the group after the planned moves."""
    return group_document(rejoin(plan.group, plan.assignment))


def _losses(plan: Plan) -> Iterator[dict[str, object]]:
    for loss in plan.member_losses.losses:
        yield {
            "member": loss.member,
            "makespan": value_and_bound(loss.makespan),
            "partitions_without_consumer": loss.unserved,
        }


def _metrics(metrics: AssignmentMetrics) -> dict[str, object]:
    return {"loads": metrics.loads, "measures": metrics.measures}


def _level(level: LevelValue) -> dict[str, object]:
    return {
        "level": level.name,
        **(value_and_bound(level) or {}),
        "tolerance": level.slack,
        "proof": str(level.proof),
    }


def directory_names(ids: Iterable[str | None]) -> list[str]:
    """Derive a unique directory name from the id of each group.

    Examples
    --------
    >>> directory_names(["orders", "a b/c", "orders", None])
    ['orders', 'a-b-c', 'orders-3', 'group-4']
    """
    names: dict[str, None] = {}
    for number, id in enumerate(ids, 1):
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", id or "").strip(".-")
        names[name if name and name not in names else f"{name or 'group'}-{number}"] = None
    return list(names)


def write_plan(
    plan: Plan,
    directory: Path,
    *,
    arguments: PlanArguments = NO_ARGUMENTS,
) -> None:
    """Write the page and the files of a plan. Create the directory if it does not exist.

    ``arguments`` are those of ``kassay plan``, for further commands.
    """
    place = str(directory)
    files = {
        PLAN_PAGE: render_html(plan, directory=place, arguments=arguments),
        "plan.json": to_json(plan_document(plan)),
        "moves.csv": moves_csv(plan),
        "loads.csv": loads_csv(plan),
        "ticket.md": render_ticket(plan, directory=place, arguments=arguments),
        "static-assignment.json": to_json(static_assignment(plan)),
        "after.jsonl": json.dumps(group_after(plan), ensure_ascii=False) + "\n",
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
