"""Find and shrink documents on which an assignor misses the minimum of a measure."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from kassay.experiments.counterexamples import shrinking
from kassay.experiments.kinds.group_kind import KindMeasure
from kassay.experiments.kinds.registry import KINDS, compare_assignor
from kassay.reference.documents.kind_documents import Kind, KindDocument, parse_kind_document
from kassay.reference.model.errors import InputError, UsageError
from kassay.solver.limits import SearchLimits


class DocumentSize(NamedTuple):
    """Size of a document, as a sort key for smaller documents first."""

    places: int
    tasks: int
    entries: int


def _smaller_documents(document: KindDocument) -> Iterator[KindDocument]:
    for content in _smaller(document.content, document.kind):
        with suppress(InputError):
            yield parse_kind_document(content, kind=document.kind)


def _smaller(content: shrinking.Content, kind: Kind) -> Iterator[shrinking.Content]:
    """Yield smaller copies of a document, of which some are not valid."""
    if kind is not Kind.CONNECT:
        yield from shrinking.smaller_contents(
            content, shrinking.Keys(KINDS[kind].places, KINDS[kind].topics)
        )
        return
    steps = content["steps"]
    for key in ("workers", "connectors"):
        for name in dict.fromkeys(name for step in steps for name in step[key]):
            rest = [{**step, key: _without(step[key], name)} for step in steps]
            yield {**content, "steps": rest}
    for name in dict.fromkeys(name for step in steps for name in step["connectors"]):
        yield {**content, "steps": [_with_fewer_tasks(step, name) for step in steps]}
    yield from shrinking.without_a_part(content)


def _without(part: Any, removed: str) -> Any:
    if isinstance(part, Mapping):
        return {key: value for key, value in part.items() if key != removed}
    return [one for one in part if one != removed]


def _with_fewer_tasks(step: Mapping[str, Any], name: str) -> dict[str, Any]:
    connectors = dict(step["connectors"])
    if connectors.get(name, 0):
        connectors[name] -= 1
    return {**step, "connectors": connectors}


def _entries(value: Any) -> int:
    if isinstance(value, Mapping):
        return len(value) + sum(map(_entries, value.values()))
    if isinstance(value, list | tuple):
        return len(value) + sum(map(_entries, value))
    return 0


VIOLATIONS = "violations"
"""Name of the measure that counts the violations of an answer."""


@dataclass(frozen=True, slots=True)
class DocumentCounterexample:
    """Document for which a measure of an assignor's answer is above the minimum of the measure.

    ``step`` is the step of a Connect cluster, or None for other documents.
    """

    document: KindDocument
    value: int
    minimum: int
    step: int | None

    @property
    def size(self) -> DocumentSize:
        """Return the size of the document."""
        kind, content = KINDS[self.document.kind], self.document.content
        steps = content.get("steps", (content,))
        places = [place for step in steps for place in step[kind.places]]
        # Each process counts beside its threads.
        threads = sum(one.get("threads", 0) for one in places if isinstance(one, Mapping))
        tasks = (sum(shrinking.partition_counts(step[kind.topics]).values()) for step in steps)
        return DocumentSize(len(places) + threads, max(tasks, default=0), _entries(content))

    @property
    def text(self) -> str:
        """Return the document without its id as JSON."""
        content = {key: value for key, value in self.document.content.items() if key != "id"}
        return json.dumps(content, sort_keys=True)


@dataclass(slots=True)
class DocumentHunt:
    """Search for counterexamples of one assignor on one measure.

    A counterexample exceeds the minimum of the measure by at least ``excess``. While one is shrunk,
    at most ``attempts`` documents are tried.
    """

    assignor: str
    measure: str  # name of a measure of the comparison, or ``violations``
    limits: SearchLimits  # of the search for the minimum of a measure
    excess: int = 1
    attempts: int = 1_000
    searched: int = 0  # number of documents
    above: int = 0  # number of counterexamples among them
    names: dict[str, None] = field(default_factory=dict)  # of the measures in all results

    def search(self, documents: Iterable[KindDocument]) -> Iterator[DocumentCounterexample]:
        """Yield each shrunk counterexample once. Raise UsageError for an unknown measure."""
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
            raise UsageError(f"the results have no measure {self.measure!r}; choose from: {names}")

    def measured(self, document: KindDocument) -> DocumentCounterexample | None:
        """Return the counterexample of a document, or None if the document is none."""
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

        smallest = shrinking.shrink(document, fails, _smaller_documents, attempts=self.attempts)
        content = {**smallest.content, "id": document.id}
        return self.measured(replace(smallest, id=document.id, content=content))
