"""Search for the smallest documents on which the answer of an assignor misses a minimum."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from kassay.experiments.counterexamples.document_shrinking import (
    DocumentSize,
    document_size,
    shrink_document,
    with_plain_names,
)
from kassay.experiments.kinds.measures import KindMeasure
from kassay.experiments.kinds.registry import compare_assignor
from kassay.reference.documents.kind_documents import KindDocument
from kassay.reference.model.errors import UsageError
from kassay.solver.limits import SearchLimits

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

        smallest = with_plain_names(shrink_document(document, fails, attempts=self.attempts), fails)
        content = {**smallest.content, "id": document.id}
        return self.measured(replace(smallest, id=document.id, content=content))
