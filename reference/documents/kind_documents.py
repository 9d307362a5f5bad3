"""JSON documents of share groups, Streams groups, Streams applications and Connect clusters.

The key ``kind`` of a document names the kind of its group. A document without it is a consumer
group, see `kassay.reference.documents.json_codec`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn

from kassay.reference.documents.input_files import (
    Parser,
    as_array,
    as_flag,
    as_integer,
    as_object,
    as_optional_text,
    as_text,
    as_texts,
    check_keys,
    document_id,
    format_value,
    items_of,
    parse_fields,
    read_json_documents,
    table_of,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import ASSUMED, MAX_PARTITIONS

_LABELS = ("kind", "id", "family", "scenario", "notes")
"""Keys of every document. ``family``, ``scenario`` and ``notes`` have no effect on an answer."""
_TASK = re.compile(r"(?P<subtopology>0|[1-9]\d{0,8})_(?P<partition>0|[1-9]\d{0,8})")
_CONNECT_TASK = re.compile(r".+-(0|[1-9]\d{0,8})", re.DOTALL)
_MAX_TIME = 2**53  # milliseconds
_MAX_INT = 2**31 - 1
_MAX_LONG = 2**63 - 1


class Kind(StrEnum):
    """Kind of a group: its documents, and the assignors that read them."""

    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS_GROUP = "streams-group"
    STREAMS = "streams"
    CONNECT = "connect"


class TaskId(NamedTuple):
    """Subtopology and partition of a task, upstream ``TaskId`` without a topology name."""

    subtopology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


def parse_task(text: str) -> TaskId:
    """Parse the text of a task."""
    subtopology, _, partition = text.partition("_")
    return TaskId(int(subtopology), int(partition))


def wrong_kind_error(kind: str, where: str) -> InputError:
    """Return the error for a document of another kind where a consumer group is required."""
    return InputError(
        f"{where}: kind: a document of kind {str(kind)!r} is not a consumer group; only kassay "
        "import, plan, survey and forecast read it, and assign, compare and hunt with an assignor "
        "of its kind"
    )


@dataclass(frozen=True, slots=True)
class KindDocument:
    """A checked document of a group of another kind than consumer groups."""

    kind: Kind
    id: str | None
    content: Mapping[str, Any]

    @property
    def condition(self) -> str | None:
        """Return the assumptions about data that the source does not show, or None."""
        notes = self.content.get("notes", ())
        assumed = [note.removeprefix(ASSUMED) for note in notes if note.startswith(ASSUMED)]
        return " and ".join(assumed) or None


class OtherKindError(InputError):
    """Error of a reader of consumer groups that found a valid document of another kind."""

    def __init__(self, document: KindDocument) -> None:
        where = "the input" if document.id is None else f"group {document.id!r}"
        super().__init__(str(wrong_kind_error(document.kind, where)))
        self.document = document


def read_kind_documents(
    stream: Iterable[str], *, name: str, kind: Kind | None
) -> Iterator[tuple[str | None, KindDocument | InputError]]:
    """Yield the id and the document, or the id and an error, of each document in a JSON file.

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
    """Return the id and the checked document, or the id and an error."""
    try:
        return document_id(document), parse_kind_document(document, kind=kind, where=where)
    except InputError as error:
        return document_id(document), error


def parse_kind_document(
    document: object, *, kind: Kind | None, where: str = "group"
) -> KindDocument:
    """Check a document of another kind than consumer groups; errors start with ``where``."""
    table = as_object(document, where)
    found = as_text(table.get("kind", str(Kind.CONSUMER)), f"{where}: kind")
    if kind is None and found in _CHECKS:
        kind = Kind(found)
    if found != kind or kind is None:
        if kind is None:
            _fail(f"{where}: kind", f"one of {', '.join(_CHECKS)}", found)
        raise InputError(
            f"{where}: kind: expected {str(kind)!r}, which the assignor reads, got {found!r}"
            + ("" if "kind" in table else " (the key is missing)")
        )
    as_texts(table.get("notes", ()), f"{where}: notes")
    _CHECKS[kind](table, f"{where}: ")
    return KindDocument(kind, as_optional_text(table.get("id"), f"{where}: id"), table)


def _check_share_group(table: Mapping[str, object], where: str) -> None:
    check_keys(table, (*_LABELS, "topics", "members"), where[:-2], required=("topics", "members"))
    counts: dict[str, int] = {}
    for topic, value in as_object(table["topics"], f"{where}topics").items():
        at = f"{where}topics[{topic!r}]"
        fields = {"partitions": value} if isinstance(value, int) else as_object(value, at)
        check_keys(fields, ("partitions", "assignable"), at, required=("partitions",))
        counts[topic] = _count(fields["partitions"], f"{at}.partitions")
        if "assignable" in fields:
            _numbers(fields["assignable"], f"{at}.assignable", counts[topic])
    for at, member in _entries(table, "members", where, ("id", "topics"), ("owned", "rack")):
        for index, topic in enumerate(as_texts(member["topics"], f"{at}.topics")):
            if topic not in counts:
                _fail(f"{at}.topics[{index}]", "a topic of the document", topic)
        for index, pair in enumerate(as_array(member.get("owned", ()), f"{at}.owned")):
            match pair:
                case [str(), int(number)] if 0 <= number <= MAX_PARTITIONS:
                    pass
                case _:
                    _fail(f"{at}.owned[{index}]", "[topic, partition number]", pair)
        as_optional_text(member.get("rack"), f"{at}.rack")


def _check_streams_group(table: Mapping[str, object], where: str) -> None:
    keys = (*_LABELS, "subtopologies", "members", "num_standby_replicas", "rack_aware_tags")
    check_keys(table, keys, where[:-2], required=("subtopologies", "members"))
    counts = _subtopologies(table, where, {})
    _count(table.get("num_standby_replicas", 0), f"{where}num_standby_replicas")
    as_texts(table.get("rack_aware_tags", ()), f"{where}rack_aware_tags")
    assigned, offsets = ("active", "standby", "warmup"), ("offsets", "end_offsets")
    optional = ("instance_id", "rack", "tags", *assigned, *offsets)
    for at, member in _entries(table, "members", where, ("id", "process"), optional):
        as_text(member["process"], f"{at}.process")
        as_optional_text(member.get("instance_id"), f"{at}.instance_id")
        as_optional_text(member.get("rack"), f"{at}.rack")
        table_of(as_text)(member.get("tags", {}), f"{at}.tags")
        for key in assigned:
            for name, numbers in as_object(member.get(key, {}), f"{at}.{key}").items():
                _numbers(numbers, f"{at}.{key}[{name!r}]", _known(counts, name, f"{at}.{key}"))
        for key in offsets:
            for name, values in as_object(member.get(key, {}), f"{at}.{key}").items():
                inside = f"{at}.{key}[{name!r}]"
                limit = _known(counts, name, f"{at}.{key}")
                for number, offset in as_object(values, inside).items():
                    if not re.fullmatch(r"0|[1-9]\d{0,9}", number) or int(number) >= limit:
                        _fail(inside, f"partition numbers below {limit}", number)
                    _count(offset, f"{inside}[{number!r}]", _MAX_LONG)


def _check_streams_application(table: Mapping[str, object], where: str) -> None:
    keys = (*_LABELS, "assignor", "subtopologies", "config", "processes")
    check_keys(table, keys, where[:-2], required=("subtopologies", "processes"))
    as_optional_text(table.get("assignor"), f"{where}assignor")
    counts = _subtopologies(table, where, _PER_PARTITION)
    _check_streams_configuration(as_object(table.get("config", {}), f"{where}config"), where)
    optional = ("rack", "tags", "active", "standby", "lags")
    for at, process in _entries(table, "processes", where, ("id", "threads"), optional):
        text = as_text(process["id"], f"{at}.id")
        if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", text):
            _fail(f"{at}.id", "a UUID in lower case", text)
        if _count(process["threads"], f"{at}.threads") == 0:
            raise InputError(f"{at}.threads must be at least 1, got 0")
        as_optional_text(process.get("rack"), f"{at}.rack")
        table_of(as_text)(process.get("tags", {}), f"{at}.tags")
        for key in ("active", "standby"):
            for index, task in enumerate(as_texts(process.get(key, ()), f"{at}.{key}")):
                _check_task(counts, task, f"{at}.{key}[{index}]")
        for task, lag in as_object(process.get("lags", {}), f"{at}.lags").items():
            _check_task(counts, task, f"{at}.lags")
            _count(lag, f"{at}.lags[{task!r}]", _MAX_LONG)


def _check_streams_configuration(config: Mapping[str, object], where: str) -> None:
    where = f"{where}config"
    numbers = (
        "acceptable_recovery_lag",
        "max_warmup_replicas",
        "num_standby_replicas",
        "probing_rebalance_interval_ms",
        "rack_aware_assignment_traffic_cost",
        "rack_aware_assignment_non_overlap_cost",
    )
    strategy, tags = "rack_aware_assignment_strategy", "rack_aware_assignment_tags"
    check_keys(config, (*numbers, strategy, tags), where)
    for key in numbers:
        if config.get(key) is not None:
            is_long = key in ("acceptable_recovery_lag", "probing_rebalance_interval_ms")
            _count(config[key], f"{where}.{key}", _MAX_LONG if is_long else _MAX_INT)
    known = ("none", "min_traffic", "balance_subtopology")
    if as_text(config.get(strategy, "none"), f"{where}.{strategy}") not in known:
        _fail(f"{where}.{strategy}", f"one of {', '.join(known)}", config[strategy])
    as_texts(config.get(tags, ()), f"{where}.{tags}")


def _check_connect_cluster(table: Mapping[str, object], where: str) -> None:
    delay = "scheduled_rebalance_max_delay_ms"
    check_keys(table, (*_LABELS, "protocol", delay, "steps"), where[:-2], required=("steps",))
    protocols = ("sessioned", "compatible", "eager")
    if as_text(table.get("protocol", "sessioned"), f"{where}protocol") not in protocols:
        _fail(f"{where}protocol", "sessioned, compatible or eager", table["protocol"])
    _count(table.get(delay, 0), f"{where}{delay}")
    optional = ("event", "wait_ms", "until_stable", "new_leader", "running", "failed", "tasks_max")
    for at, step in _entries(table, "steps", where, ("workers", "connectors"), optional):
        workers = as_texts(step["workers"], f"{at}.workers")
        if len(set(workers)) < len(workers):
            raise InputError(f"{at}.workers: a worker is repeated")
        connectors = table_of(_count)(step["connectors"], f"{at}.connectors")
        as_optional_text(step.get("event"), f"{at}.event")
        as_texts(step.get("failed", ()), f"{at}.failed")
        for name in table_of(_count)(step.get("tasks_max", {}), f"{at}.tasks_max"):
            if name not in connectors:
                _fail(f"{at}.tasks_max", "a connector of the step", name)
        _count(step.get("wait_ms", 0), f"{at}.wait_ms", _MAX_TIME)
        for key in ("until_stable", "new_leader"):
            as_flag(step.get(key, False), f"{at}.{key}")
        for worker, value in as_object(step.get("running", {}), f"{at}.running").items():
            inside = f"{at}.running[{worker!r}]"
            running = parse_fields(value, inside, {}, {"connectors": as_texts, "tasks": as_texts})
            for index, task in enumerate(running.get("tasks", ())):
                if not _CONNECT_TASK.fullmatch(task):
                    _fail(f"{inside}.tasks[{index}]", "a task such as 'name-0'", task)


def _subtopologies(
    table: Mapping[str, object], where: str, per_partition: Mapping[str, Parser[Any]]
) -> dict[str, int]:
    """Check subtopologies, with optional lists per partition; return their partition counts."""
    counts: dict[str, int] = {}
    for name, value in as_object(table["subtopologies"], f"{where}subtopologies").items():
        at = f"{where}subtopologies[{name!r}]"
        if per_partition and not re.fullmatch(r"0|[1-9]\d{0,8}", name):
            _fail(at, "a number as the name of the subtopology", name)
        fields = parse_fields(value, at, {"partitions": _count, "stateful": as_flag}, per_partition)
        counts[name] = fields["partitions"]
        for key in per_partition.keys() & fields.keys():
            if len(fields[key]) != counts[name]:
                expected = f"one entry per partition, {counts[name]}"
                _fail(f"{at}.{key}", expected, len(fields[key]))
    return counts


_PER_PARTITION = {
    "racks": items_of(as_texts),
    "changelog_racks": items_of(as_texts),
    "end_offsets": items_of(lambda value, where: _count(value, where, _MAX_LONG)),
}


def _entries(
    table: Mapping[str, object],
    key: str,
    where: str,
    required: Sequence[str],
    optional: Sequence[str],
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the position and the object of each entry of a list, with checked keys and ids."""
    seen: set[str] = set()
    for index, value in enumerate(as_array(table[key], f"{where}{key}")):
        at = f"{where}{key}[{index}]"
        entry = as_object(value, at)
        check_keys(entry, (*required, *optional), at, required=required)
        if "id" in required:
            id = as_text(entry["id"], f"{at}.id")
            if id in seen:
                raise InputError(f"{at}.id: {id!r} is repeated")
            seen.add(id)
        yield at, entry


def _check_task(counts: Mapping[str, int], task: str, where: str) -> None:
    match = _TASK.fullmatch(task)
    if match is None or int(match["partition"]) >= counts.get(match["subtopology"], 0):
        _fail(where, "a task SUBTOPOLOGY_PARTITION of the document", task)


def _known(counts: Mapping[str, int], name: str, where: str) -> int:
    if name not in counts:
        _fail(where, "a subtopology of the document", name)
    return counts[name]


def _numbers(value: object, where: str, limit: int) -> None:
    for index, number in enumerate(items_of(as_integer)(value, where)):
        if not 0 <= number < limit:
            _fail(f"{where}[{index}]", f"a partition number below {limit}", number)


def _count(value: object, where: str, maximum: int = _MAX_INT) -> int:
    number = as_integer(value, where)
    if not 0 <= number <= maximum:
        raise InputError(f"{where} must be from 0 to {maximum}, got {number}")
    return number


def _fail(where: str, expected: str, value: object) -> NoReturn:
    raise InputError(f"{where}: expected {expected}, got {format_value(value)}")


_CHECKS: dict[Kind, Callable[[Mapping[str, object], str], None]] = {
    Kind.SHARE: _check_share_group,
    Kind.STREAMS_GROUP: _check_streams_group,
    Kind.STREAMS: _check_streams_application,
    Kind.CONNECT: _check_connect_cluster,
}
"""Function that checks the documents of each kind."""
