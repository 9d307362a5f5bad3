"""JSON documents of share groups, Streams groups, Streams applications and Connect clusters.

The key ``kind`` of a document names the kind of its group. A document without it is a consumer
group, see `kassay.reference.documents.json_codec`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from kassay.reference.documents.files import (
    Parser,
    as_array,
    as_flag,
    as_integer,
    as_integers,
    as_object,
    as_optional_text,
    as_text,
    as_texts,
    document_id,
    fields_of,
    items_of,
    optional,
    parse_fields,
    read_json_documents,
    table_of,
    unexpected,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import ASSUMED, MAX_PARTITIONS

_TASK = re.compile(r"(?P<subtopology>0|[1-9]\d{0,8})_(?P<partition>0|[1-9]\d{0,8})")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Kind(StrEnum):
    """Kind of a group, such as consumer group, share group or Connect cluster."""

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS_GROUP = "streams-group"
    STREAMS = "streams"
    CONNECT = "connect"


class TaskId(NamedTuple):
    """Id of a Kafka Streams task: its subtopology and its partition."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


def parse_task(text: str) -> TaskId:
    """Parse the name of a task, such as ``0_1``. The name must be valid."""
    subtopology, _, partition = text.partition("_")
    return TaskId(int(subtopology), int(partition))


def wrong_kind_error(kind: str, where: str) -> InputError:
    """Build the error for a document of another kind than a consumer group."""
    return InputError(
        f"{where}: kind: a document of kind {str(kind)!r} is not a consumer group; only kassay "
        "import, plan, survey and forecast read it, and assign, compare and hunt with an assignor "
        "of its kind"
    )


@dataclass(frozen=True, slots=True)
class KindDocument:
    """Valid document of a group that is not a consumer group."""

    kind: Kind
    id: str | None
    content: Mapping[str, Any]

    @property
    def condition(self) -> str | None:
        """Return the assumptions about missing data as text, or None without assumptions."""
        notes = self.content.get("notes", ())
        assumed = [note.removeprefix(ASSUMED) for note in notes if note.startswith(ASSUMED)]
        return " and ".join(assumed) or None


class OtherKindError(InputError):
    """Error: a consumer group is required, but the document has another kind."""

    def __init__(self, document: KindDocument) -> None:
        where = "the input" if document.id is None else f"group {document.id!r}"
        super().__init__(str(wrong_kind_error(document.kind, where)))
        self.document = document


def read_kind_documents(
    stream: Iterable[str], *, name: str, kind: Kind | None
) -> Iterator[tuple[str | None, KindDocument | InputError]]:
    """Yield the id of each document with the document, or with an InputError if invalid.

    ``stream`` yields the lines. ``name`` is the name of the file in errors. A document of
    another kind than ``kind`` is an error; None accepts all kinds but consumer groups.
    """
    for located in read_json_documents(stream, name=name):
        if located.error is not None:
            yield None, located.error
        else:
            yield kind_document_or_error(located.value, located.where, kind=kind)


def kind_document_or_error(
    document: object, where: str, *, kind: Kind | None = None
) -> tuple[str | None, KindDocument | InputError]:
    """Check a document. Return its id with the document, or with an InputError if invalid."""
    try:
        return document_id(document), parse_kind_document(document, kind=kind, where=where)
    except InputError as error:
        return document_id(document), error


def parse_kind_document(
    document: object, *, kind: Kind | None, where: str = "group"
) -> KindDocument:
    """Check the document of a group that is not a consumer group."""
    table = as_object(document, where)
    found = as_text(table.get("kind", str(Kind.CONSUMER)), f"{where}: kind")
    if kind is None and found in _CHECKS:
        kind = Kind(found)
    if found != kind or kind is None:
        if kind is None:
            raise unexpected(found, f"{where}: kind", f"one of {', '.join(_CHECKS)}")
        raise InputError(
            f"{where}: kind: the assignor requires {str(kind)!r}, got {found!r}"
            + ("" if "kind" in table else " (the key is missing)")
        )
    _CHECKS[kind](table, where)
    return KindDocument(kind, document_id(table), table)


def _check_share_group(table: Mapping[str, object], where: str) -> None:
    required = {"topics": table_of(_share_topic), "members": as_array}
    fields = parse_fields(table, where, required, _LABELS, separator=": ")
    topic = _text_that(fields["topics"].__contains__, "a topic of the document")
    required = {"id": as_text, "topics": items_of(topic)}
    known = {"owned": items_of(_partition), "rack": as_optional_text}
    for _ in _entries(fields["members"], f"{where}: members", required, known):
        pass


def _share_topic(value: object, where: str) -> int:
    table = {"partitions": value} if isinstance(value, int) else value
    fields = parse_fields(table, where, {"partitions": _count}, {"assignable": as_integers})
    count: int = fields["partitions"]
    _check_numbers(fields.get("assignable", ()), f"{where}.assignable", count)
    return count


def _partition(value: object, where: str) -> None:
    match value:
        case [str(), int(number)] if 0 <= number <= MAX_PARTITIONS:
            pass
        case _:
            raise unexpected(value, where, "[topic, partition number]")


def _check_streams_group(table: Mapping[str, object], where: str) -> None:
    required = {"subtopologies": table_of(_subtopology), "members": as_array}
    known = {**_LABELS, "num_standby_replicas": _count, "rack_aware_tags": as_texts}
    fields = parse_fields(table, where, required, known, separator=": ")
    counts = fields["subtopologies"]
    assigned, offsets = ("active", "standby", "warmup"), ("offsets", "end_offsets")
    known = {
        **dict.fromkeys(("instance_id", "rack"), as_optional_text),
        "tags": table_of(as_text),
        **dict.fromkeys(assigned, table_of(as_integers)),
        **dict.fromkeys(offsets, table_of(table_of(_long))),
    }
    required = {"id": as_text, "process": as_text}
    for at, member in _entries(fields["members"], f"{where}: members", required, known):
        for key in (*assigned, *offsets):
            for name, numbers in member.get(key, {}).items():
                inside = f"{at}.{key}[{name!r}]"
                if name not in counts:
                    raise unexpected(name, f"{at}.{key}", "a subtopology of the document")
                if key in assigned:
                    _check_numbers(numbers, inside, counts[name])
                    continue
                for number in numbers:
                    if not re.fullmatch(r"0|[1-9]\d{0,9}", number) or int(number) >= counts[name]:
                        raise unexpected(number, inside, f"partition numbers below {counts[name]}")


def _check_streams_application(table: Mapping[str, object], where: str) -> None:
    for name in as_object(table.get("subtopologies", {}), f"{where}: subtopologies"):
        if not re.fullmatch(r"0|[1-9]\d{0,8}", name):
            at = f"{where}: subtopologies[{name!r}]"
            raise unexpected(name, at, "a number as the name of the subtopology")
    subtopology = partial(_subtopology, per_partition=_PER_PARTITION)
    required = {"subtopologies": table_of(subtopology), "processes": as_array}
    known = {**_LABELS, "assignor": as_optional_text, "config": fields_of(_CONFIGURATION)}
    fields = parse_fields(table, where, required, known, separator=": ")
    counts = fields["subtopologies"]

    def is_task(text: str) -> bool:
        match = _TASK.fullmatch(text)
        return match is not None and int(match["partition"]) < counts.get(match["subtopology"], 0)

    task = _text_that(is_task, "a task SUBTOPOLOGY_PARTITION of the document")
    process_id = _text_that(_UUID.fullmatch, "a UUID in lower case")
    keys: dict[str, Parser[Any]] = {"id": process_id, "threads": _count}
    known = {
        "rack": as_optional_text,
        "tags": table_of(as_text),
        **dict.fromkeys(("active", "standby"), items_of(task)),
        "lags": table_of(_long),
    }
    for at, process in _entries(fields["processes"], f"{where}: processes", keys, known):
        if process["threads"] == 0:
            raise InputError(f"{at}.threads must be at least 1, got 0")
        for name in process.get("lags", {}):
            task(name, f"{at}.lags")


def _check_connect_cluster(table: Mapping[str, object], where: str) -> None:
    protocol = _text_that(
        ("sessioned", "compatible", "eager").__contains__, "sessioned, compatible or eager"
    )
    known = {**_LABELS, "protocol": protocol, "scheduled_rebalance_max_delay_ms": _count}
    fields = parse_fields(table, where, {"steps": as_array}, known, separator=": ")
    required = {"workers": as_texts, "connectors": table_of(_count)}
    for at, step in _entries(fields["steps"], f"{where}: steps", required, _STEP_FIELDS):
        if len(set(step["workers"])) < len(step["workers"]):
            workers = step["workers"]
            raise InputError(f"{at}.workers: list each worker only once, got {workers}")
        for name in step.get("tasks_max", {}):
            if name not in step["connectors"]:
                raise unexpected(name, f"{at}.tasks_max", "a connector of the step")


def _subtopology(
    value: object, where: str, per_partition: Mapping[str, Parser[Any]] = MappingProxyType({})
) -> int:
    fields = parse_fields(value, where, {"partitions": _count, "stateful": as_flag}, per_partition)
    count: int = fields["partitions"]
    for key in per_partition:
        if key in fields and len(fields[key]) != count:
            expected = f"one entry per partition ({count})"
            raise unexpected(len(fields[key]), f"{where}.{key}", expected)
    return count


def _entries(
    values: Sequence[object],
    where: str,
    required: Mapping[str, Parser[Any]],
    optional: Mapping[str, Parser[Any]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Check a list of JSON objects. Yield the position and the fields of each object."""
    seen: set[str] = set()
    for index, value in enumerate(values):
        at = f"{where}[{index}]"
        entry = parse_fields(value, at, required, optional)
        if "id" in entry:
            if entry["id"] in seen:
                raise InputError(f"{at}.id: {entry['id']!r} is repeated; ids must be unique")
            seen.add(entry["id"])
        yield at, entry


def _text_that(is_valid: Callable[[str], object], expected: str) -> Parser[str]:
    """Return a parser that accepts the texts for which ``is_valid`` is true."""

    def parse(value: object, where: str) -> str:
        if not is_valid(text := as_text(value, where)):
            raise unexpected(text, where, expected)
        return text

    return parse


def _check_numbers(numbers: Sequence[int], where: str, limit: int) -> None:
    for index, number in enumerate(numbers):
        if not 0 <= number < limit:
            raise unexpected(number, f"{where}[{index}]", f"a partition number below {limit}")


def _count(value: object, where: str, maximum: int = MAX_PARTITIONS) -> int:
    number = as_integer(value, where)
    if not 0 <= number <= maximum:
        raise InputError(f"{where} must be from 0 to {maximum}, got {number}")
    return number


_long = partial(_count, maximum=2**63 - 1)
_STRATEGIES = ("none", "min_traffic", "balance_subtopology")
_PER_PARTITION: dict[str, Parser[Any]] = {
    "racks": items_of(as_texts),
    "changelog_racks": items_of(as_texts),
    "end_offsets": items_of(_long),
}
_CONFIGURATION: dict[str, Parser[Any]] = {
    "acceptable_recovery_lag": optional(_long),
    "max_warmup_replicas": optional(_count),
    "num_standby_replicas": optional(_count),
    "probing_rebalance_interval_ms": optional(_long),
    "rack_aware_assignment_traffic_cost": optional(_count),
    "rack_aware_assignment_non_overlap_cost": optional(_count),
    "rack_aware_assignment_strategy": _text_that(
        _STRATEGIES.__contains__, f"one of {', '.join(_STRATEGIES)}"
    ),
    "rack_aware_assignment_tags": as_texts,
}
_CONNECT_TASK = re.compile(r".+-(0|[1-9]\d{0,8})", re.DOTALL)
_RUNNING: dict[str, Parser[Any]] = {
    "connectors": as_texts,
    "tasks": items_of(_text_that(_CONNECT_TASK.fullmatch, "a task such as 'name-0'")),
}
_STEP_FIELDS: dict[str, Parser[Any]] = {
    "event": as_optional_text,
    "wait_ms": partial(_count, maximum=2**53),
    "until_stable": as_flag,
    "new_leader": as_flag,
    "running": table_of(fields_of(_RUNNING)),
    "failed": as_texts,
    "tasks_max": table_of(_count),
}
_LABELS: dict[str, Parser[Any]] = {
    **dict.fromkeys(("kind", "family", "scenario"), lambda value, _: value),
    "id": as_optional_text,
    "notes": as_texts,
}
"""Keys of every document. ``family``, ``scenario`` and ``notes`` have no effect on an answer."""
_CHECKS: dict[Kind, Callable[[Mapping[str, object], str], None]] = {
    Kind.SHARE: _check_share_group,
    Kind.STREAMS_GROUP: _check_streams_group,
    Kind.STREAMS: _check_streams_application,
    Kind.CONNECT: _check_connect_cluster,
}
"""Function that checks the documents of each kind."""
