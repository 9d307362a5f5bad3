"""Evaluate one document of a study: a share group, a Streams application or a Connect cluster."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kassay.experiments.implementations.runner import Ending, run_on_document
from kassay.experiments.kinds.comparison import compare_answer
from kassay.experiments.kinds.events import (
    ending_without_answer,
    measure_cluster,
    run_application_until_stable,
)
from kassay.experiments.kinds.measures import KindMeasure
from kassay.experiments.kinds.streams_comparison import compare_stable_application
from kassay.experiments.study.case import Case
from kassay.experiments.study.families.document_families import DocumentFamily
from kassay.experiments.study.table_rows import (
    AssignmentRow,
    CaseRecord,
    GroupRow,
    MeasureRow,
    TimingRow,
)
from kassay.reference.documents.kind_documents import Kind, KindDocument
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
    rounds = 1
    if document.kind is Kind.STREAMS:
        event = run_application_until_stable(document, assignor)
        seconds = time.perf_counter() - start
        if event.ending is not Ending.OK:
            return _Measured((), event.ending, event.detail, event.rebalances, seconds)
        rounds = event.rebalances
        compared = compare_stable_application(document, event, limits)
        added = [KindMeasure("rebalances", rounds, None, None)]
    else:
        result = run_on_document(document, assignor)
        seconds = time.perf_counter() - start
        if result.answer is None:
            return _Measured((), *ending_without_answer(result), seconds=seconds)
        compared = compare_answer(document, result.answer, limits=limits)[-1]
        added = [*_starts(result.answer)] if document.kind is Kind.CONNECT else []
    if compared.invalid:
        return _Measured((), Ending.INVALID, compared.invalid[0], rounds, seconds)
    return _Measured((*compared.measures, *added), rounds=rounds, seconds=seconds)


def _starts(answer: Any) -> Iterator[KindMeasure]:
    """Yield the number of tasks that workers start after the first step."""
    if "rounds" in answer["steps"][-1]:  # not with the eager protocol
        yield KindMeasure("task_starts", measure_cluster(answer).started_tasks, None, None)


def _group_row(case: Case, document: KindDocument, *, drawn: bool) -> GroupRow:
    content: Any = document.content
    last = content["steps"][-1] if document.kind is Kind.CONNECT else content
    places = next(last[key] for key in ("members", "processes", "workers") if key in last)
    topics = next(last[key] for key in ("topics", "subtopologies", "connectors") if key in last)
    counts = [one if isinstance(one, int) else one["partitions"] for one in topics.values()]
    return GroupRow(
        case=case.name,
        family=case.family,
        seed=case.seed,
        start=None,
        group_id=document.id,
        members=len(places),
        topics=len(topics),
        partitions=sum(counts),
        document=json.dumps(content, separators=(",", ":")) if drawn else None,
    )
