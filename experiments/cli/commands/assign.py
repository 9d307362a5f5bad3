"""``kassay assign``: the assignment of one assignor for each group."""

from collections.abc import Iterator, Sequence

from kassay.experiments.cli.assignor_options import (
    DEFAULT_ASSIGNOR_TIMEOUT,
    AssignorCommand,
    AssignorFunction,
    AssignorTimeout,
    OptionalAssignorName,
    single_assignor,
)
from kassay.experiments.cli.group_io import (
    STDIN,
    GroupFile,
    GroupResult,
    Record,
    TableLayout,
    process_groups,
)
from kassay.experiments.cli.output_options import Format, OutputFormat
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
    assignor_timeout: AssignorTimeout = DEFAULT_ASSIGNOR_TIMEOUT,
    output_format: OutputFormat = Format.JSONL,
) -> None:
    """Assign partitions with one of Kafka's assignors or your own.

    If Kafka's class does not terminate, the result shows the repeated state. If it throws,
    the result has the class of the exception. If your own assignor gives no valid
    assignment, the result has the reason.

    Example: `kassay assign --assignor sticky groups.jsonl`
    """
    name = single_assignor(assignor, assignor_cmd, assignor_python, assignor_timeout)

    def process(group: Group) -> GroupResult:
        return GroupResult(_record(group, name, run(group, name)))

    layout = TableLayout(first=("member",), numbers=("partitions",), last=("assigned",), rows=_rows)
    process_groups(file, process, output_format=output_format, layout=layout)


def _record(group: Group, assignor: str, result: RunResult) -> dict[str, object]:
    record: dict[str, object] = {"id": group.id, "assignor": assignor, "assignment": None}
    if result.livelock is not None:
        livelock = result.livelock
        record["terminated"] = False
        if isinstance(livelock, LivelockError):
            record["assignment"] = assignment_document(livelock.state)
            record["cycle_length"] = livelock.cycle_length
            record["circling"] = [list(tp) for tp in livelock.circling]
        record["reason"] = str(livelock)
        return record
    record["terminated"] = True
    failed: UpstreamError | str | None = result.failed
    if is_user_assignor(assignor) and result.assignment is not None:
        failed = next(violations(group, result.assignment), None)
    if isinstance(failed, UpstreamError):
        record |= {"failed": failed.java_class, "reason": failed.detail}
    elif failed is not None:
        record["failed"] = failed
    elif result.assignment is not None:
        record["assignment"] = assignment_document(result.assignment)
    return record


def _rows(record: Record) -> Iterator[Sequence[object]]:
    if record["assignment"] is None:
        yield "", "", record.get("failed") or record["reason"]
        return
    for member, pairs in record["assignment"].items():
        yield member, len(pairs), " ".join(f"{topic}-{number}" for topic, number in pairs)
    if not record["terminated"]:
        yield "", "", record["reason"]
