"""Evaluate one document of a study: a share group, a Streams application or a Connect cluster."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kassay.experiments.implementations.runner import Ending
from kassay.experiments.kinds.measures import KindMeasure
from kassay.experiments.kinds.registry import KINDS, run_until_stable
from kassay.experiments.study.case import Case
from kassay.experiments.study.families.document_families import DocumentFamily
from kassay.experiments.study.table_rows import (
    AssignmentRow,
    CaseRecord,
    GroupRow,
    MeasureRow,
    TimingRow,
)
from kassay.reference.documents.kind_documents import KindDocument
from kassay.solver.limits import SearchLimits


@dataclass(frozen=True, slots=True)
class _Measured:
    """Measures of the last stable answer of an assignor, or the reason why it has none."""

    measures: Sequence[KindMeasure] = ()
    ending: Ending = Ending.OK
    detail: str | None = None
    rounds: int = 1
    seconds: float = 0.0


def evaluate_document(
    case: Case, family: DocumentFamily, *, limits: SearchLimits, drawn: bool
) -> CaseRecord:
    """Run the assignors of a case on its document, and compare their answers with the optimum.

    An application of Kafka Streams runs until no probing rebalance follows. The last stable answer
    is compared. The record contains the document if ``drawn`` is true, so that reports can draw it.
    """
    document = family.document(case.seed)
    found = {name: _measure(document, name, limits) for name in case.assignors}
    return CaseRecord(
        group=_group_row(case, document, drawn=drawn),
        assignments=tuple(
            AssignmentRow.of(case.name, name, one.ending, detail=one.detail, rounds=one.rounds)
            for name, one in found.items()
        ),
        timings=tuple(
            TimingRow(case=case.name, contestant=name, seconds=one.seconds)
            for name, one in found.items()
        ),
        measures=tuple(
            MeasureRow(name, measure.name, measure.value, measure.minimum, measure.bound)
            for name, one in found.items()
            for measure in one.measures
        ),
    )


def _measure(document: KindDocument, assignor: str, limits: SearchLimits) -> _Measured:
    start = time.perf_counter()
    run = run_until_stable(document, assignor)
    seconds = time.perf_counter() - start
    if run.compare is None:
        return _Measured((), run.ending, run.detail, run.rebalances, seconds)
    compared = run.compare(limits)
    if compared.invalid:
        return _Measured((), Ending.INVALID, compared.invalid[0], run.rebalances, seconds)
    measures = (*compared.measures, *run.measures)
    return _Measured(measures, rounds=run.rebalances, seconds=seconds)


def _group_row(case: Case, document: KindDocument, *, drawn: bool) -> GroupRow:
    content: Any = document.content
    kind = KINDS[document.kind]
    last = content.get("steps", (content,))[-1]
    topics = last[kind.topics]
    counts = [one if isinstance(one, int) else one["partitions"] for one in topics.values()]
    return GroupRow(
        case=case.name,
        family=case.family,
        seed=case.seed,
        start=None,
        group_id=document.id,
        members=len(last[kind.places]),
        topics=len(topics),
        partitions=sum(counts),
        document=json.dumps(content, separators=(",", ":")) if drawn else None,
    )
