"""Search documents on which the answer of an assignor misses a minimum, and shrink them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from kassay.experiments.counterexamples.shrinking import shrink
from kassay.experiments.implementations.runner import run_on_document
from kassay.experiments.kinds.group_kind import KindMeasure
from kassay.experiments.kinds.registry import KINDS, compare_assignor
from kassay.reference.assignors.connect import DEFAULT_MAX_DELAY
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.reference.model.errors import InputError, UsageError
from kassay.solver.limits import SearchLimits

_MAX_COUNT = 1000
"""Shrinking keeps larger numbers, which are times and offsets."""
_REFERENCES = ("topics", "owned", "active", "standby", "warmup", "lags", "offsets", "end_offsets")
"""Keys of members and processes that refer to topics, tasks or partitions."""
_PER_PARTITION = ("racks", "changelog_racks", "end_offsets", "assignable")


class DocumentSize(NamedTuple):
    """Size of a document. Sorting puts smaller documents first."""

    places: int
    tasks: int
    entries: int


def document_size(document: KindDocument) -> DocumentSize:
    """Count the members, processes or workers, the tasks or partitions, and all entries."""
    content: Any = document.content
    kind = KINDS[document.kind]
    steps = content.get("steps", (content,))
    places = [place for step in steps for place in step[kind.places]]
    # Each process counts beside its threads.
    threads = sum(one["threads"] for one in places if isinstance(one, Mapping) and "threads" in one)
    tasks = max((sum(_counts(step[kind.topics]).values()) for step in steps), default=0)
    return DocumentSize(len(places) + threads, tasks, _entries(content))


def _counts(topics: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of partitions or tasks per topic, subtopology or connector."""
    return {
        name: one if isinstance(one, int) else one.get("partitions", 0)
        for name, one in topics.items()
    }


def _smaller_documents(document: KindDocument) -> Iterator[KindDocument]:
    for content in _smaller(document.content, document.kind):
        with suppress(InputError):
            yield parse_kind_document(content, kind=document.kind)


def _smaller(content: Mapping[str, Any], kind: Kind) -> Iterator[dict[str, Any]]:
    """Yield documents without one part; the removals of named parts come first.

    Some of them are not valid.
    """
    if kind is Kind.CONNECT:
        steps = content["steps"]
        for key in ("workers", "connectors"):
            for name in dict.fromkeys(name for step in steps for name in step[key]):
                rest = [{**step, key: _filtered(step[key], name.__ne__)} for step in steps]
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
    key, places = KINDS[kind].topics, KINDS[kind].places
    if key not in content or places not in content:
        return content
    counts, parts = _counts(content[key]), {}
    for name, one in content[key].items():
        parts[name] = one
        if not isinstance(one, int):
            kept = {field: one[field][: counts[name]] for field in _PER_PARTITION if field in one}
            if "assignable" in one:
                kept["assignable"] = [n for n in one["assignable"] if n < counts[name]]
            parts[name] = {**one, **kept}
    rest = [_with_known_references(place, counts) for place in content[places]]
    return {**content, key: parts, places: rest}


def _with_known_references(place: Mapping[str, Any], counts: Mapping[str, int]) -> dict[str, Any]:
    """Return a member or process with references to known topics, tasks and partitions only."""

    def exists(name: str, number: object) -> bool:
        return int(str(number)) < counts.get(name, 0)

    def is_known(reference: Any) -> bool:
        if not isinstance(reference, str):
            return exists(*reference)
        name, _, number = reference.rpartition("_")
        return reference in counts or (number.isdecimal() and exists(name, number))

    changed = dict(place)
    for key in _REFERENCES:
        part = place.get(key)
        if isinstance(part, Mapping) and key != "lags":
            changed[key] = {
                name: _filtered(part[name], partial(exists, name))
                for name in part
                if name in counts
            }
        elif part is not None:
            changed[key] = _filtered(part, is_known)
    return changed


def _filtered(part: Any, keep: Callable[[Any], bool]) -> Any:
    """Return the elements of a list, or the keys of a table, that a function keeps."""
    if isinstance(part, Mapping):
        return {key: value for key, value in part.items() if keep(key)}
    return [one for one in part if keep(one)]


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


VIOLATIONS = "violations"
"""Measure of the hunt: the number of violations of an answer."""


@dataclass(frozen=True, slots=True)
class DocumentCounterexample:
    """A document on which the answer of an assignor is above the minimum of a measure.

    ``step`` is the step of a Connect cluster, None for other documents.
    """

    document: KindDocument
    value: int
    minimum: int
    step: int | None

    @property
    def size(self) -> DocumentSize:
        """Return the size of the document."""
        return document_size(self.document)

    @property
    def text(self) -> str:
        """Return the document without its id as JSON."""
        content = {key: value for key, value in self.document.content.items() if key != "id"}
        return json.dumps(content, sort_keys=True)


@dataclass(slots=True)
class DocumentHunt:
    """Search for counterexamples of one assignor on one measure.

    Parameters
    ----------
    measure
        Name of a measure of the comparison, or ``violations``.
    limits
        Limits of the search for the minimum of a measure.
    excess
        Minimum difference between the value and the minimum of the measure in a counterexample.
    attempts
        Maximum number of documents to try while one document is shrunk.
    searched, above
        Number of documents searched, and number of counterexamples among them.
    names
        Names of the measures in all results, as keys in the order of their first occurrence.
    """

    assignor: str
    measure: str
    limits: SearchLimits
    excess: int = 1
    attempts: int = 1_000
    searched: int = 0
    above: int = 0
    names: dict[str, None] = field(default_factory=dict)

    def search(self, documents: Iterable[KindDocument]) -> Iterator[DocumentCounterexample]:
        """Yield the shrunk counterexamples that differ from all before.

        Raises
        ------
        UsageError
            If no answer has the measure.
        """
        found: dict[str, None] = {}
        for document in documents:
            self.searched += 1
            if self.measured(document) is None:
                continue
            self.above += 1
            smallest = self._shrink(document)
            if smallest is not None and smallest.text not in found:
                found[smallest.text] = None
                yield smallest
        if self.searched and self.measure not in self.names:
            names = ", ".join(self.names) or "none"
            raise UsageError(f"no answer has the measure {self.measure!r}; measures: {names}")

    def measured(self, document: KindDocument) -> DocumentCounterexample | None:
        """Return the counterexample of a document, or None if the excess is too small."""
        worst: DocumentCounterexample | None = None
        for state in compare_assignor(document, self.assignor, limits=self.limits)[1]:
            violations = KindMeasure(VIOLATIONS, len(state.invalid), 0, 0)
            for one in (*state.measures, violations):
                self.names[one.name] = None
                if one.name != self.measure or one.minimum is None:
                    continue
                if one.value - one.minimum < self.excess:
                    continue
                if worst is None or one.value - one.minimum > worst.value - worst.minimum:
                    worst = DocumentCounterexample(document, one.value, one.minimum, state.step)
        return worst

    def _shrink(self, document: KindDocument) -> DocumentCounterexample | None:
        def fails(one: KindDocument) -> bool:
            return self.measured(one) is not None

        smallest = shrink(document, fails, _smaller_documents, attempts=self.attempts)
        content = {**smallest.content, "id": document.id}
        return self.measured(replace(smallest, id=document.id, content=content))


_END_OFFSET = 50_000
_MAX_TOPICS = 3
"""A topic without subscribers beside different subscriptions requires three topics."""
_EVENTS = ("join", "leave", "restart")


def random_case(kind: Kind, seed: int, *, assignor: str, places: int, tasks: int) -> KindDocument:
    """Return a random document: the state after an answer of the assignor, and then an event.

    Parameters
    ----------
    assignor
        If it has no answer, the state is that before the first answer.
    places
        Maximum number of members, processes or workers.
    tasks
        Maximum number of partitions or tasks.
    """
    rng = Random(f"{kind}/{seed}")  # noqa: S311 - reproducible cases
    if kind is Kind.CONNECT:
        return _document(kind, seed, _connect_steps(rng, places, tasks))
    ends = sorted(rng.sample(range(1, tasks + 1), rng.randint(1, min(_MAX_TOPICS, tasks))))
    sizes = [end - start for start, end in pairwise((0, *ends))]
    build = {
        Kind.SHARE: _share_group,
        Kind.STREAMS_GROUP: _streams_group,
        Kind.STREAMS: _streams_application,
    }[kind]
    content, key = build(rng, sizes, rng.randint(1, places))
    answer: Any = run_on_document(_document(kind, seed, content), assignor).answer
    if answer is None:
        return _document(kind, seed, content)
    if kind is Kind.SHARE:
        before = [{**one, "owned": answer["members"][one["id"]]} for one in content[key]]
    else:
        before = [{**one, **answer[key][one["id"]]} for one in content[key]]
    if kind is Kind.STREAMS:
        # Standbys have restored their state.
        before = [{**one, "lags": dict.fromkeys(one["standby"], 0)} for one in before]
    after = _after_event(rng, kind, content, before)[: max(places, 1)]
    return _document(kind, seed, {**content, key: after})


def _document(kind: Kind, seed: int, content: Mapping[str, Any]) -> KindDocument:
    table = {"kind": str(kind), "id": f"{kind}/{seed}", **content}
    return parse_kind_document(table, kind=kind)


def _share_group(rng: Random, sizes: list[int], count: int) -> tuple[dict[str, Any], str]:
    names = [f"t{index}" for index in range(len(sizes))]
    members = [
        {"id": f"m{index}", "topics": rng.sample(names, rng.randint(1, len(names)))}
        for index in range(count)
    ]
    return {"topics": dict(zip(names, sizes, strict=True)), "members": members}, "members"


def _streams_group(rng: Random, sizes: list[int], count: int) -> tuple[dict[str, Any], str]:
    members = [{"id": f"m{n}", "process": f"p{rng.randint(0, n)}"} for n in range(count)]
    content = {"num_standby_replicas": rng.randint(0, 1), "subtopologies": _topology(rng, sizes)}
    return {**content, "members": members}, "members"


def _streams_application(rng: Random, sizes: list[int], count: int) -> tuple[dict[str, Any], str]:
    topology = _topology(rng, sizes)
    for one in topology.values():
        one["end_offsets"] = [_END_OFFSET] * one["partitions"]
    processes = [_process(rng, index) for index in range(count)]
    config = {"num_standby_replicas": rng.randint(0, 1)}
    return {"config": config, "subtopologies": topology, "processes": processes}, "processes"


def _process(rng: Random, index: int) -> dict[str, Any]:
    order = rng.randint(0, 0xFFFF)  # processes are ordered by id
    return {"id": f"00000000-0000-0000-{order:04x}-{index:012x}", "threads": rng.randint(1, 2)}


def _topology(rng: Random, sizes: list[int]) -> dict[str, dict[str, Any]]:
    stateful = [rng.random() < 0.6 for _ in sizes]
    stateful[rng.randrange(len(sizes))] = True
    return {
        str(index): {"partitions": size, "stateful": is_stateful}
        for index, (size, is_stateful) in enumerate(zip(sizes, stateful, strict=True))
    }


def _after_event(
    rng: Random, kind: Kind, content: Mapping[str, Any], places: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the places after a join, a leave, or a restart that keeps the local state.

    A member of a share group can also change its subscription.
    """
    event = rng.choice((*_EVENTS, "resubscribe") if kind is Kind.SHARE else _EVENTS)
    if event == "join":
        return [*places, _joined(rng, kind, content, len(places))]
    left = rng.randrange(len(places))
    rest = places[:left] + places[left + 1 :]
    if event == "leave":
        return rest or places
    if event == "resubscribe":
        changed = _joined(rng, kind, content, left)["topics"]
        return [*places[:left], {**places[left], "topics": changed}, *rest[left:]]
    together = [places[left]]
    if kind is Kind.STREAMS_GROUP:
        # All threads of a process restart together, and one of them reports the local state.
        process = places[left]["process"]
        together = [one for one in places if one["process"] == process]
        rest = [one for one in places if one["process"] != process]
    restarted = [
        {key: value for key, value in one.items() if key not in ("owned", "active", "standby")}
        for one in together
    ]
    if kind is Kind.STREAMS_GROUP:
        restarted[0]["offsets"] = _local_offsets(content, together)
    if kind is Kind.STREAMS:
        restarted[0]["lags"] |= dict.fromkeys(places[left]["active"], 0)
    return [*rest, *restarted]


def _local_offsets(
    content: Mapping[str, Any], members: list[dict[str, Any]]
) -> dict[str, dict[str, int]]:
    """Return the offsets of the stateful tasks of members by subtopology and partition."""
    found: dict[str, dict[str, int]] = {}
    for name, one in content["subtopologies"].items():
        held = (n for m in members for key in ("active", "standby") for n in m[key].get(name, ()))
        if one["stateful"]:
            found[name] = {str(number): _END_OFFSET for number in sorted(held)}
    return found


def _joined(rng: Random, kind: Kind, content: Mapping[str, Any], index: int) -> dict[str, Any]:
    if kind is Kind.STREAMS:
        return _process(rng, index)
    if kind is Kind.STREAMS_GROUP:
        return {"id": f"m{index}", "process": f"p{rng.randint(0, index)}"}
    names = list(content["topics"])
    return {"id": f"m{index}", "topics": rng.sample(names, rng.randint(1, len(names)))}


def _connect_steps(rng: Random, places: int, tasks: int) -> dict[str, Any]:
    """Return a sequence of joins, leaves and restarts with one or two connectors."""
    first = rng.randint(1, tasks)
    connectors = {"a": first}
    if tasks > first:
        connectors["b"] = rng.randint(1, tasks - first)
    workers = [f"w{index}" for index in range(rng.randint(1, places))]
    steps: list[dict[str, Any]] = [{"workers": workers, "connectors": connectors}]
    for number in range(rng.randint(1, 2)):
        event = rng.choice(_EVENTS)
        workers = list(steps[-1]["workers"])
        if event == "join" and len(workers) < places:
            workers.append(f"w{places + number}")
        elif len(workers) > 1:
            workers.pop(rng.randrange(len(workers)))
        step = {"workers": workers, "connectors": connectors, "wait_ms": 600_000}
        if event == "restart":
            steps.append({**step, "until_stable": False})
            step = {**step, "workers": [*workers, f"w{places + number}"], "wait_ms": 30_000}
        steps.append(step)
    return {"scheduled_rebalance_max_delay_ms": DEFAULT_MAX_DELAY, "steps": steps}
