"""``kassay assign``: what one of Kafka's assignors does."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from experiments.cli.documents import (
    STDIN,
    Answer,
    Format,
    GroupFile,
    OutputFormat,
    answer_groups,
)
from experiments.cli.options import AssignorName
from reference.assignors import attempt
from reference.codec import assignment_document
from reference.group import Group
from reference.outcome import Outcome


def assign(
    file: GroupFile = STDIN,
    *,
    assignor: AssignorName,
    output: OutputFormat = Format.JSONL,
) -> None:
    """Assign as one of Kafka's assignors does, to the last tie-break.

    Where the real class would never return, the line says so and shows the state that
    repeats; where it throws, the line names the exception's class. Both are results.

    Example: `kassay assign --assignor sticky groups.jsonl`
    """

    def work(group: Group) -> Answer:
        return Answer(_record(group, attempt(group, assignor)))

    answer_groups(file, work, output=output, table=_table)


def _record(group: Group, outcome: Outcome) -> dict[str, object]:
    record: dict[str, object] = {"id": group.id, "assignor": outcome.assignor}
    if outcome.livelock is not None:
        record["assignment"] = assignment_document(outcome.livelock.state)
        record["terminated"] = False
        record["cycle_length"] = outcome.livelock.cycle_length
        record["circling"] = [list(tp) for tp in outcome.livelock.circling]
        record["reason"] = str(outcome.livelock)
    elif outcome.failed is not None:
        record["assignment"] = None
        record["terminated"] = True
        record["failed"] = outcome.failed.java_class
        record["reason"] = outcome.failed.detail
    elif outcome.assignment is not None:
        record["assignment"] = assignment_document(outcome.assignment)
        record["terminated"] = True
    return record


def _table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("group", "member", "partitions", "assigned")
    table.columns[2].justify = "right"
    for record in records:
        if "error" in record or record["assignment"] is None:
            table.add_row(record["id"], "", "", record.get("error") or record["failed"])
            continue
        for member, pairs in record["assignment"].items():
            names = " ".join(f"{topic}-{number}" for topic, number in pairs)
            table.add_row(record["id"], member, str(len(pairs)), names)
        if not record["terminated"]:
            table.add_row(record["id"], "", "", record["reason"])
        table.add_section()
    return table
