"""``kassay explain``: why an assignment is not optimal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kassay.experiments.cli.common_options import AssignorName
from kassay.experiments.cli.group_io import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
)
from kassay.experiments.cli.plot_options import PictureFile, numbered
from kassay.experiments.plotting.plot_files import draw_improvements
from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import load_assignment
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.improvement.explanation import Explanation
from kassay.solver.improvement.explanation import explain as explain_group


def explain(
    file: GroupFile = STDIN,
    *,
    assignor: AssignorName = "sticky",
    assignment: Annotated[
        Path | None,
        typer.Option(help="A given assignment instead.", show_default=False),
    ] = None,
    plot: PictureFile = None,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Say why an assignment is not optimal: the chains of transfers that improve it.

    Each step is a shortest chain; after the last the assignment is optimal. A direct step
    is one transfer that evens two loads: Kafka's sticky assignors could have seen it. They
    look for no others. Partitions count 1, whatever they weigh.

    Example: `kassay explain groups.jsonl --assignor sticky --format table`
    """
    given = None if assignment is None else load_assignment(assignment)

    drawn = 0

    def work(group: Group) -> Answer:
        nonlocal drawn
        explained = given or _assigned(group, assignor)
        answer, steps = _explained(group, explained, assignor, given is not None)
        if plot is not None and steps is not None:
            drawn += 1
            draw_improvements(steps, numbered(plot, drawn), title=group.id)
        return answer

    answer_groups(file, work, output=output, table=_table)


def _assigned(group: Group, assignor: str) -> Assignment | str:
    outcome = run_assignor(group, assignor)
    if outcome.livelock is not None:
        return outcome.livelock.state
    if outcome.assignment is None:
        return str(outcome.failed)
    return outcome.assignment


def _explained(
    group: Group, assignment: Assignment | str, assignor: str, given: bool
) -> tuple[Answer, tuple[Explanation, ...] | None]:
    record: dict[str, object] = {"id": group.id}
    if not given:
        record["assignor"] = assignor
    if isinstance(assignment, str):
        return Answer(record | {"failed": assignment}), None
    broken = next(violations(group, assignment), None)
    if broken is not None and given:
        raise InputError(f"group {group.id!r}: the assignment is not valid: {broken}")
    if broken is not None:
        return Answer(record | {"optimal": None, "reason": broken}), None
    steps = explain_group(group, assignment)
    record["optimal"] = not steps
    record["steps"] = [_step(step) for step in steps]
    return Answer(record), steps


def _step(step: Explanation) -> dict[str, object]:
    return {
        "description": str(step),
        "direct": step.is_direct,
        "transfers": [
            {"partition": list(t.partition), "from": t.giver, "to": t.taker} for t in step.transfers
        ],
        "loads": {member: [before, after] for member, before, after in step.loads},
        "moves": step.moves,
        "imbalance": list(step.imbalance),
    }


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group", "step", "what would improve it", "direct")
    for record in records:
        steps = record.get("steps", [])
        if not steps:
            said = record.get("error") or record.get("failed") or record.get("reason")
            table.add_row(record["id"], "", said or "nothing: it is optimal", "")
        for number, step in enumerate(steps, start=1):
            direct = "yes" if step["direct"] else "no"
            table.add_row(record["id"], str(number), step["description"], direct)
    return table
