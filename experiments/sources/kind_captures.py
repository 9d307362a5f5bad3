"""Read captures of share groups, Streams groups and Connect clusters.

``kafka-share-groups.sh`` and ``kafka-streams-groups.sh`` of Kafka 4.1 to 4.3 print tables of
members with ``--describe --members``, with and without ``--verbose``.
"""

import http.client
import re
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.experiments.sources.build_group import ImportOptions
from kassay.experiments.sources.capture_contents import JsonFields
from kassay.experiments.sources.table_rows import OtherRow, ParsedTable, read_assignment
from kassay.reference.assignors.connect import DEFAULT_MAX_DELAY
from kassay.reference.documents.files import as_object, error_at, format_value, parse_json
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.reference.model.errors import InputError, RunError
from kassay.reference.model.group import ASSUMED
from kassay.reference.model.group_remarks import AssumedSubscriptions

Tasks = dict[str, dict[str, list[int]]]
"""Partition numbers by role (active, standby or warmup) and by topic or subtopology."""
_SECTION = re.compile(r"(?P<role>(TARGET-)?(ACTIVE|STANDBY|WARMUP)):(?P<lists>( \S+:\[[\d,]*\];)+)")
_LIST = re.compile(r"(\S+):\[([\d,]*)\];")
_SHARED_CELL = re.compile(r"\S+:\d+(,\d+)*(;\S+:\d+(,\d+)*)*")


@dataclass(frozen=True, slots=True)
class ToolMemberRow:
    """Row of the members table of a share group or Streams group."""

    group: str
    member: str
    process: str | None  # of a Streams group
    assigned: Tasks


def is_share_cell(text: str) -> bool:
    """Return whether a cell has an assignment in the format of kafka-share-groups.sh."""
    return bool(_SHARED_CELL.fullmatch(text))


def kind_member_rows(
    tables: Iterable[ParsedTable], *, name: str
) -> Iterator[tuple[str, ToolMemberRow | InputError]]:
    """Yield each row of the members tables, or its error, with the group id."""
    for table, row in ((one, row) for one in tables for row in one.rows):
        if isinstance(row, OtherRow):
            cells = dict(zip(table.columns, row.cells, strict=True))
            try:
                yield cells["GROUP"], _row(cells, name, row.line)
            except InputError as error:
                yield cells["GROUP"], error


def _row(cells: dict[str, str], name: str, number: int) -> ToolMemberRow:
    if "PROCESS" in cells:
        assigned = read_tasks(cells["ASSIGNMENTS"].strip())
        member, process = cells["MEMBER"], cells["PROCESS"]
    else:
        partitions = read_assignment(cells["ASSIGNMENT"].strip())
        assigned = None if partitions is None else {"active": {t: [*n] for t, n in partitions}}
        member, process = cells["CONSUMER-ID"], None
    if assigned is None:
        raise error_at(name, number, "the assignment is truncated or has an unknown form", member)
    row = ToolMemberRow(cells["GROUP"], member, process, assigned)
    listed = sum(map(len, assigned["active"].values()))
    if "#PARTITIONS" in cells and cells["#PARTITIONS"] != str(listed):
        message = f"member {member!r} has {cells['#PARTITIONS']} partitions but lists {listed}"
        raise error_at(name, number, message)
    return row


def read_tasks(text: str) -> Tasks | None:
    """Parse tasks such as ``ACTIVE: 0:[0,2]; 1:[0];``, or return None."""
    found: Tasks = {"active": {}, "standby": {}, "warmup": {}}
    if " ".join(match[0].strip() for match in _SECTION.finditer(text)) != " ".join(text.split()):
        return None
    for section in _SECTION.finditer(text):
        names = [name for name, _ in _LIST.findall(section["lists"])]
        if len(set(names)) < len(names):
            return None
        if not section["role"].startswith("TARGET-"):
            found[section["role"].lower()] = {
                name: [int(number) for number in numbers.split(",") if number]
                for name, numbers in _LIST.findall(section["lists"])
            }
    return found


_SUBSCRIPTIONS_NOTE = {
    AssumedSubscriptions.ASSIGNED: (
        f"{ASSUMED}each member subscribes only to the topics of its partitions"
    ),
    AssumedSubscriptions.EQUAL: f"{ASSUMED}each member subscribes to every topic of the group",
}
_COUNTS_NOTE = f"{ASSUMED}the highest partition of each topic is assigned"
_TASKS_NOTE = f"{ASSUMED}the highest task of each subtopology is assigned"
_STATE_NOTE = f"{ASSUMED}every subtopology has state"
ROLES = ("active", "standby", "warmup")


def document_of_rows(
    group: str, rows: Sequence[ToolMemberRow], options: ImportOptions
) -> KindDocument:
    """Convert the members table of a share group or Streams group to a document."""
    if rows[0].process is None:
        return _share_group_of_rows(group, rows, options)
    if most_copies(row.assigned["active"] for row in rows) > 1:
        raise InputError(
            f"group {group!r}: two members have the same active task; capture the group again"
        )
    counts = _highest(row.assigned[role] for row in rows for role in ROLES)
    standby = most_copies(row.assigned["standby"] for row in rows)
    return checked_document(
        {
            "kind": str(Kind.STREAMS_GROUP),
            "id": group,
            "notes": [_STATE_NOTE, _TASKS_NOTE, standby_note(standby)],
            "num_standby_replicas": standby,
            "subtopologies": {
                name: {"partitions": count, "stateful": True}
                for name, count in sorted(counts.items())
            },
            "members": [{"id": row.member, "process": row.process, **row.assigned} for row in rows],
        }
    )


def _share_group_of_rows(
    group: str, rows: Sequence[ToolMemberRow], options: ImportOptions
) -> KindDocument:
    seen = _highest(row.assigned["active"] for row in rows)
    known = options.content.partition_counts
    counts = {name: known.get(name, count) for name, count in seen.items()}
    given = (options.subscriptions or {}).get(group)
    reading = options.assumed_subscriptions or AssumedSubscriptions.EQUAL
    notes = [] if given is not None else [_SUBSCRIPTIONS_NOTE[reading]]
    if counts.keys() - known.keys():
        notes.append(_COUNTS_NOTE)
    members: list[dict[str, Any]] = []
    for row in rows:
        owned = row.assigned["active"]
        topics = sorted(counts if reading is AssumedSubscriptions.EQUAL else owned)
        if given is not None:
            if row.member not in given:
                raise InputError(
                    f"group {group!r}: the --subscriptions file lacks member {row.member!r}; add it"
                )
            topics = list(given[row.member])
        pairs = [[name, number] for name, numbers in owned.items() for number in numbers]
        members.append({"id": row.member, "topics": topics, "owned": pairs})
    for name in sorted({topic for member in members for topic in member["topics"]} - counts.keys()):
        if name not in known:
            raise InputError(
                f"group {group!r}: the number of partitions of topic {name!r} is not known; add "
                "it with --metadata"
            )
        counts[name] = known[name]
    content = {"kind": str(Kind.SHARE), "id": group, "notes": notes, "topics": counts}
    return checked_document({**content, "members": members})


def _highest(lists: Iterable[Mapping[str, Sequence[int]]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in lists:
        for name, numbers in one.items():
            counts[name] = max(counts.get(name, 0), *(number + 1 for number in numbers), 0)
    return counts


def most_copies(lists: Iterable[Mapping[str, Sequence[int]]]) -> int:
    """Return the maximum number of members that have the same task."""
    tasks = ((name, number) for one in lists for name in one for number in one[name])
    return max(Counter(tasks).values(), default=0)


def standby_note(copies: int) -> str:
    """Return a note on the assumed number of standby tasks."""
    return f"{ASSUMED}num.standby.replicas is {copies}, the most standby tasks of a task"


def checked_document(content: Mapping[str, Any]) -> KindDocument:
    """Check the content of a document, and create the document."""
    return parse_kind_document(content, kind=None, where=f"group {content['id']!r}")


_PATH = "/connectors?expand=status&expand=info"
_STOPPED = ("UNASSIGNED", "DESTROYED")
_NOTES = [
    f"{ASSUMED}every worker runs a connector or a task",
    f"{ASSUMED}scheduled.rebalance.max.delay.ms is {DEFAULT_MAX_DELAY // 1000} s",
]
"""Notes on data that the REST interface does not show: idle workers and their settings."""


def is_connect_status(value: object) -> bool:
    """Return whether a JSON value is a response to ``/connectors?expand=status``."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(
            isinstance(one, Mapping) and isinstance(one.get("status"), Mapping)
            for one in value.values()
        )
    )


def is_connector_status(value: object) -> bool:
    """Return whether a JSON value is a response to ``/connectors/NAME/status``."""
    return isinstance(value, Mapping) and value.keys() >= {"name", "connector", "tasks"}


def connect_result(
    value: object, *, where: str, id: str | None
) -> tuple[str | None, KindDocument | InputError]:
    """Convert a Connect REST response to a document or an error, and return it after ``id``."""
    try:
        return id, connect_document(value, where=where, id=id)
    except InputError as error:
        return id, error


def connect_document(value: object, *, where: str, id: str | None) -> KindDocument:
    """Convert a response to ``/connectors?expand=status`` to a Connect document.

    The document has one step with the connectors and tasks that each worker runs. Errors contain
    ``where``, the name of the response.
    """
    counts: dict[str, int] = {}
    running: dict[str, dict[str, list[str]]] = {}
    failed: list[str] = []
    maximum: dict[str, int] = {}
    notes = list(_NOTES)
    for name, entry in as_object(value, where).items():
        status = JsonFields(as_object(entry, f"{where}: {name!r}"), f"{where}: {name!r}").inner(
            "status"
        )
        numbers = []
        for task in status.each("tasks"):
            number = task.count("id")
            numbers.append(number)
            _add(running, task, "tasks", f"{name}-{number}")
            if task.text("state") == "FAILED":
                failed.append(f"{name}-{number}")
        if status.inner("connector").text("state") == "FAILED":
            failed.append(name)
        counts[name] = max(numbers, default=-1) + 1
        most = _tasks_max(entry)
        if most is not None:
            maximum[name] = most
            if most != len(numbers):
                notes.append(f"connector {name} has {len(numbers)} tasks, and tasks.max is {most}")
        _add(running, status.inner("connector"), "connectors", name)
    if not running:
        raise InputError(f"{where}: no worker runs a connector or a task; start a connector")
    if failed:
        notes.append(f"tasks that have failed still count for their worker: {', '.join(failed)}")
    workers = sorted(running)
    content = {
        "kind": str(Kind.CONNECT),
        "id": id,
        "notes": notes,
        "steps": [
            {
                "workers": workers,
                "connectors": dict(sorted(counts.items())),
                "running": {worker: running[worker] for worker in workers},
                **({"failed": failed} if failed else {}),
                **({"tasks_max": maximum} if maximum else {}),
            }
        ],
    }
    return KindDocument(Kind.CONNECT, id, content)


def _tasks_max(entry: object) -> int | None:
    config: Any = entry.get("info", {}).get("config", {}) if isinstance(entry, dict) else {}
    most = str(config.get("tasks.max")) if isinstance(config, Mapping) else ""
    return int(most) if most.isdecimal() else None


def read_connect_cluster(url: str, *, timeout: float, id: str | None) -> KindDocument:
    """Read a running Connect cluster from the REST interface of one worker.

    ``timeout`` is in seconds. Raise RunError if no valid response arrives, and InputError for a
    URL without HTTP or for a response of another server.
    """
    host = url.partition("://")[2].partition("/")[0]
    if not url.lower().startswith(("http://", "https://")) or not host:
        raise InputError(
            f"--connect-url must be http://HOST:PORT or https://HOST:PORT, got {url!r}"
        )
    address = url.rstrip("/") + _PATH
    try:
        with urllib.request.urlopen(address, timeout=timeout) as answer:  # noqa: S310 - checked above
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        text = f"{address} answers HTTP {error.code} {error.reason}; correct --connect-url"
        raise RunError(text) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise RunError(f"{address} does not answer; check the worker: {reason}") from None
    value = parse_json(text, where=address)
    if value != {} and not is_connect_status(value):
        raise InputError(
            f"{address}: expected the response of a Kafka Connect worker, got {format_value(value)}"
        )
    return connect_document(value, where=address, id=id or host)


def _add(running: dict[str, dict[str, list[str]]], entry: JsonFields, key: str, name: str) -> None:
    """Add a connector or task to its worker, unless it is stopped."""
    if entry.text("state") in _STOPPED:
        return
    lists = running.setdefault(entry.text("worker_id"), {"connectors": [], "tasks": []})
    lists[key].append(name)
