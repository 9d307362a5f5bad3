"""Search documents on which the answer of an assignor misses a minimum, and shrink them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from kassay.experiments.counterexamples.shrinking import shrink
from kassay.experiments.kinds.group_kind import KindMeasure
from kassay.experiments.kinds.registry import KINDS, compare_assignor
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
