"""``kassay explain``: find the chains of transfers that improve an assignment."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from kassay.experiments.cli import assignor_options, group_io, output_options
from kassay.reference.assignors import run_assignor
from kassay.reference.documents.json_codec import load_assignment
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.solver.improvement.explanation import Explanation
from kassay.solver.improvement.explanation import explain as explain_group

_REPEATED_STATE = "the assignor does not terminate; its repeated state is explained"


def explain(
    file: group_io.GroupFile = group_io.STDIN,
    *,
    assignor: assignor_options.AssignorName = "sticky",
    assignment: Annotated[
        Path | None,
        typer.Option(
            help="File with the assignment to explain, instead of running an assignor.",
            show_default=False,
        ),
    ] = None,
    plot: output_options.PlotFile = None,
    output_format: output_options.OutputFormat = output_options.Format.JSONL,
) -> None:
    """Explain why an assignment is not optimal, as chains of transfers.

    Each step is a shortest improving chain. After the last step the assignment is optimal.
    A step with "direct" true is one transfer between members with loads that differ by two
    or more. Kafka's sticky assignors search only for such steps; the table shows "yes" for
    them under "by sticky". Every partition has weight 1. If the assignor does not
    terminate, the assignment in its repeated state is explained and a note says so.

    Example: `kassay explain groups.jsonl --assignor sticky --format table`
    """
    given = None if assignment is None else load_assignment(assignment)
    files = output_options.numbered(plot)

    def process(group: Group) -> group_io.GroupResult:
        if given is None:
            record: dict[str, object] = {"id": group.id, "assignor": assignor}
            outcome = run_assignor(group, assignor)
            if outcome.livelock is not None:
                explained: Assignment | str = outcome.livelock.state
                record["note"] = _REPEATED_STATE
            else:
                failed = str(outcome.failed)
                explained = failed if outcome.assignment is None else outcome.assignment
        else:
            record, explained = {"id": group.id}, given
        if isinstance(explained, str):
            return group_io.GroupResult(record | {"failed": explained})
        violation = next(violations(group, explained), None)
        if violation is not None and given is not None:
            raise InputError(f"group {group.id!r}: the assignment is not valid: {violation}")
        if violation is not None:
            return group_io.GroupResult(record | {"optimal": None, "reason": violation})
        steps = explain_group(group, explained)
        if plot is not None:
            from kassay.experiments.plotting.improvement_figure import draw_improvements

            draw_improvements(steps, next(files), title=group.id)
        return group_io.GroupResult(
            record | {"optimal": not steps, "steps": [_step(s) for s in steps]}
        )

    layout = group_io.TableLayout(first=("step", "improving chain", "by sticky"), rows=_rows)
    group_io.process_groups(file, process, output_format=output_format, layout=layout)


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


def _rows(record: group_io.Record) -> Iterator[Sequence[object]]:
    if not record.get("steps"):
        yield (
            "",
            record.get("failed") or record.get("reason") or "none: the assignment is optimal",
            "",
        )
    for number, step in enumerate(record.get("steps", ()), start=1):
        yield number, step["description"], "yes" if step["direct"] else "no"
    if "note" in record:
        yield "", f"note: {record['note']}", ""
