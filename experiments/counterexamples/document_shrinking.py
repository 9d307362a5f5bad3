"""Shrink documents of share groups, Streams and Connect while a condition holds."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    parse_kind_document,
    parse_task,
)
from kassay.reference.model.errors import InputError

_MAX_COUNT = 1000
"""Shrinking keeps larger numbers, which are times and offsets."""
_MAX_NAMES = 4
_PER_PARTITION = ("racks", "changelog_racks", "end_offsets", "assignable")


class DocumentSize(NamedTuple):
    """Size of a document. Sorting puts smaller documents first."""

    places: int
    tasks: int
    entries: int


def document_size(document: KindDocument) -> DocumentSize:
    """Count the members, processes or workers, the tasks or partitions, and all entries."""
    content: Any = document.content
    match document.kind:
        case Kind.CONNECT:
            steps = content["steps"]
            places = sum(len(step["workers"]) for step in steps)
            tasks = max((sum(step["connectors"].values()) for step in steps), default=0)
        case Kind.STREAMS:
            places = sum(1 + one["threads"] for one in content["processes"])
            tasks = sum(one["partitions"] for one in content["subtopologies"].values())
        case _:
            key = "topics" if document.kind is Kind.SHARE else "subtopologies"
            places = len(content["members"])
            tasks = sum(
                one if isinstance(one, int) else one["partitions"] for one in content[key].values()
            )
    return DocumentSize(places, tasks, _entries(content))


def shrink_document(
    document: KindDocument, fails: Callable[[KindDocument], bool], *, attempts: int
) -> KindDocument:
    """Remove parts of a document step by step, as long as ``fails`` is True for the rest."""
    while True:
        for content in _smaller(document.content, document.kind):
            try:
                smaller = parse_kind_document(content, kind=document.kind)
            except InputError:
                continue
            attempts -= 1
            if attempts < 0:
                return document
            if fails(smaller):
                document = smaller
                break
        else:
            return document


def with_plain_names(document: KindDocument, fails: Callable[[KindDocument], bool]) -> KindDocument:
    """Rename and reorder the members, processes, workers and topics, if ``fails`` stays True.

    Documents that differ only in names and order get equal names, unless the assignor depends on
    them or there are more than four names of a kind.
    """
    content: Any = document.content
    key = {Kind.CONNECT: "steps", Kind.STREAMS: "processes"}.get(document.kind, "members")
    if document.kind is Kind.CONNECT:
        first = [*dict.fromkeys(name for step in content[key] for name in step["workers"])]
        second = [*dict.fromkeys(name for step in content[key] for name in step["connectors"])]
    else:
        first = [one["id"] for one in content[key]]
        second = list(content.get("topics", ()))
    processes = [*dict.fromkeys(one.get("process", "") for one in content[key])]
    is_small = max(len(first), len(second)) <= _MAX_NAMES
    candidates = []
    for order in permutations(first) if is_small else [tuple(first)]:
        for topics in permutations(second) if is_small else [tuple(second)]:
            names = {name: _place_name(document.kind, at) for at, name in enumerate(order)}
            names |= {name: f"t{at}" for at, name in enumerate(topics)}
            names |= {name: f"p{at}" for at, name in enumerate(processes) if name}
            renamed = _renamed(content, names)
            if document.kind is not Kind.CONNECT:
                renamed[key] = sorted(renamed[key], key=lambda one: one["id"])
            candidates.append(parse_kind_document(renamed, kind=document.kind))
    candidates.sort(key=lambda one: json.dumps(one.content, sort_keys=True))
    return next(filter(fails, candidates), document)


def _place_name(kind: Kind, at: int) -> str:
    return f"00000000-0000-0000-0000-{at + 1:012x}" if kind is Kind.STREAMS else f"m{at}"


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Replace names in the keys and texts of a JSON value, except those of the label ``id``."""
    if isinstance(value, Mapping):
        table = {names.get(key, key): _renamed(one, names) for key, one in value.items()}
        if isinstance(table.get("topics"), list):
            table["topics"].sort()
        return table
    if isinstance(value, list | tuple):
        return [_renamed(one, names) for one in value]
    return names.get(value, value) if isinstance(value, str) else value


def _smaller(content: Mapping[str, Any], kind: Kind) -> Iterator[dict[str, Any]]:
    """Yield documents without one part; the removals of named parts come first.

    Some of them are not valid.
    """
    if kind is Kind.CONNECT:
        steps = content["steps"]
        for key in ("workers", "connectors"):
            for name in dict.fromkeys(name for step in steps for name in step[key]):
                rest = [{**step, key: _without(step[key], name)} for step in steps]
                yield {**content, "steps": rest}
        for name in dict.fromkeys(name for step in steps for name in step["connectors"]):
            yield {**content, "steps": [_with_fewer_tasks(step, name) for step in steps]}
    for smaller in _without_a_part(content):
        yield _without_dangling_references(smaller, kind)


def _without_a_part(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value without an element or key, or with a lower count."""
    if not isinstance(value, Mapping | list | tuple):
        return
    is_table = isinstance(value, Mapping)
    pairs = [*value.items()] if isinstance(value, Mapping) else [*enumerate(value)]

    def built(rest: Sequence[tuple[Any, Any]]) -> Any:
        return dict(rest) if is_table else [part for _, part in rest]

    for at in range(len(pairs)):
        yield built([*pairs[:at], *pairs[at + 1 :]])
    for at, (name, part) in enumerate(pairs):
        smaller = _without_a_part(part)
        if is_table and isinstance(part, int) and not isinstance(part, bool):
            smaller = iter([part - 1] if 0 < part <= _MAX_COUNT else [])
        for one in smaller:
            yield built([*pairs[:at], (name, one), *pairs[at + 1 :]])


def _without_dangling_references(content: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """Remove references to topics, subtopologies and partitions that do not exist."""
    key = "topics" if kind is Kind.SHARE else "subtopologies"
    if kind is Kind.CONNECT or key not in content:
        return content
    counts, parts = {}, {}
    for name, one in content[key].items():
        counts[name] = one if isinstance(one, int) else one.get("partitions", 0)
        parts[name] = one
        if not isinstance(one, int):
            kept = {field: one[field][: counts[name]] for field in _PER_PARTITION if field in one}
            if "assignable" in one:
                kept["assignable"] = [n for n in one["assignable"] if n < counts[name]]
            parts[name] = {**one, **kept}
    places = "processes" if kind is Kind.STREAMS else "members"
    if places not in content:
        return content
    rest = [_with_known_tasks(place, counts, kind) for place in content[places]]
    return {**content, key: parts, places: rest}


def _with_known_tasks(
    place: Mapping[str, Any], counts: Mapping[str, int], kind: Kind
) -> dict[str, Any]:
    """Return a member or process with references to known partitions only."""

    def exists(name: str, number: object) -> bool:
        return int(str(number)) < counts.get(name, 0)

    def has(id: str) -> bool:
        subtopology, number = parse_task(id)
        return exists(str(subtopology), number)

    changed = dict(place)
    if kind is Kind.SHARE:
        changed["topics"] = [name for name in place.get("topics", ()) if name in counts]
        if "owned" in place:
            changed["owned"] = [pair for pair in place["owned"] if exists(*pair)]
        return changed
    for key in ("active", "standby", "warmup", "lags", "offsets", "end_offsets"):
        table = place.get(key)
        if isinstance(table, Mapping) and key == "lags":
            changed[key] = {id: lag for id, lag in table.items() if has(id)}
        elif isinstance(table, Mapping):
            changed[key] = {
                name: {n: one for n, one in numbers.items() if exists(name, n)}
                if isinstance(numbers, Mapping)
                else [n for n in numbers if exists(name, n)]
                for name, numbers in table.items()
                if name in counts
            }
        elif table is not None:
            changed[key] = [id for id in table if has(id)]
    return changed


def _without(part: Any, name: str) -> Any:
    """Return a list or table without a name."""
    if isinstance(part, Mapping):
        return {key: value for key, value in part.items() if key != name}
    return [one for one in part if one != name]


def _with_fewer_tasks(step: Mapping[str, Any], name: str) -> dict[str, Any]:
    connectors = dict(step["connectors"])
    if connectors.get(name, 0):
        connectors[name] -= 1
    return {**step, "connectors": connectors}


def _entries(value: Any) -> int:
    """Count the elements and keys of a JSON value."""
    if isinstance(value, Mapping):
        return len(value) + sum(map(_entries, value.values()))
    if isinstance(value, list | tuple):
        return len(value) + sum(map(_entries, value))
    return 0
