"""``kassay assign``: what one of Kafka's assignors does, or one of your own."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from kassay.experiments.cli.assignor_options import (
    AssignorCommand,
    AssignorFunction,
    AssignorSeconds,
    OptionalAssignorName,
    only_assignor,
)
from kassay.experiments.cli.group_io import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
)
from kassay.experiments.implementations.runner import RunResult, run
from kassay.experiments.implementations.user_assignors import is_user_assignor
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.assignment import violations
from kassay.reference.model.assignor_result import LivelockError, UpstreamError
from kassay.reference.model.group import Group


def assign(
    file: GroupFile = STDIN,
    *,
    assignor: OptionalAssignorName = None,
    assignor_cmd: AssignorCommand = None,
    assignor_python: AssignorFunction = None,
    assignor_timeout: AssignorSeconds = None,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Assign as one of Kafka's assignors does, to the last tie-break.

    Where the real class would never return, the line says so and shows the state that
    repeats; where it throws, the line names the exception's class. Both are results. Where an
    assignor of your own has no valid answer, the line says why.

    Example: `kassay assign --assignor sticky groups.jsonl`
    """
    name = only_assignor(assignor, assignor_cmd, assignor_python, assignor_timeout)

    def work(group: Group) -> Answer:
        return Answer(_record(group, name, run(group, name)))

    answer_groups(file, work, output=output, table=_table)


def _record(group: Group, assignor: str, verdict: RunResult) -> dict[str, object]:
    record: dict[str, object] = {"id": group.id, "assignor": assignor}
    if verdict.livelock is not None:
        livelock = verdict.livelock
        record["assignment"] = None
        record["terminated"] = False
        if isinstance(livelock, LivelockError):
            record["assignment"] = assignment_document(livelock.state)
            record["cycle_length"] = livelock.cycle_length
            record["circling"] = [list(tp) for tp in livelock.circling]
        record["reason"] = str(livelock)
        return record
    failed: UpstreamError | str | None = verdict.failed
    if is_user_assignor(assignor) and verdict.assignment is not None:
        failed = next(violations(group, verdict.assignment), None)
    record |= {"assignment": None, "terminated": True}
    if isinstance(failed, UpstreamError):
        record |= {"failed": failed.java_class, "reason": failed.detail}
    elif failed is not None:
        record["failed"] = failed
    elif verdict.assignment is not None:
        record["assignment"] = assignment_document(verdict.assignment)
    return record


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group", "member", "partitions", "assigned")
    table.columns[2].justify = "right"
    for record in records:
        if "error" in record or record["assignment"] is None:
            why = record.get("error") or record.get("failed") or record["reason"]
            table.add_row(record["id"], "", "", why)
            continue
        for member, pairs in record["assignment"].items():
            names = " ".join(f"{topic}-{number}" for topic, number in pairs)
            table.add_row(record["id"], member, str(len(pairs)), names)
        if not record["terminated"]:
            table.add_row(record["id"], "", "", record["reason"])
        table.add_section()
    return table
