"""``kassay assign``: run one assignor on each group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kassay.experiments.cli.application import option
from kassay.experiments.cli.process_groups import GroupResult, GroupSource, process_each_group
from kassay.experiments.cli.process_kind_documents import assigned_documents
from kassay.experiments.cli.shared_options import required_assignor
from kassay.experiments.cli.write_results import Format, Record, TableLayout
from kassay.experiments.implementations.assignor_names import shown_name, uses_cooperative_protocol
from kassay.experiments.implementations.client_libraries import split_alias
from kassay.experiments.implementations.run_assignor import run
from kassay.reference.assignors import ASSIGNORS, AssignorResult
from kassay.reference.documents.json_codec import assignment_document
from kassay.reference.model.assignment import LivelockError, violations
from kassay.reference.model.errors import UpstreamError
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignOptions:
    """Command-line options of ``kassay assign``."""

    assignor: str = required_assignor()
    output_format: Format = option(Format.JSONL, "--format")


def assign(options: AssignOptions, source: GroupSource) -> None:
    """Run ``kassay assign`` with parsed options."""
    name = options.assignor
    others = assigned_documents(name)

    def process(group: Group) -> GroupResult:
        record = _record(group, name, run(group, name))
        return GroupResult(
            record, reached=record["assignment"] is not None and not record.get("failed")
        )

    layout = TableLayout(first=("member",), numbers=("partitions",), last=("assigned",), rows=_rows)
    process_each_group(source, process, options.output_format, layout, others=others)


def _record(group: Group, assignor: str, result: AssignorResult) -> dict[str, object]:
    record: dict[str, object] = {
        "id": group.id,
        "assignor": shown_name(assignor),
        "assignment": None,
    }
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
    if result.assignment is not None and not uses_cooperative_protocol(assignor):
        failed = next(violations(group, result.assignment), None)
    if isinstance(failed, UpstreamError):
        record |= {"failed": failed.java_class, "reason": failed.detail}
    elif failed is not None:
        record["failed"] = failed
    if result.assignment is not None and (failed is None or split_alias(assignor)[1] in ASSIGNORS):
        # Kafka's group gets the assignment of its assignor, even if it is not valid.
        record["assignment"] = assignment_document(result.assignment)
    return record


def _rows(record: Record) -> Iterator[Sequence[object]]:
    if record["assignment"] is None:
        yield "", "", record.get("failed") or record["reason"]
        return
    for member, pairs in record["assignment"].items():
        yield member, len(pairs), " ".join(f"{topic}-{number}" for topic, number in pairs)
    if not record["terminated"] or "failed" in record:
        yield "", "", record.get("failed") or record["reason"]
