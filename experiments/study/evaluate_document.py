"""Evaluate one document of a study: a share group, a Streams application or a Connect cluster."""

import json
import time
from typing import Any

from kassay.experiments.implementations.runner import Ending
from kassay.experiments.kinds.registry import KINDS, run_until_stable
from kassay.experiments.study.cases import Case
from kassay.experiments.study.families.document_families import DocumentFamily
from kassay.experiments.study.tables import (
    AssignmentRow,
    CaseRecord,
    GroupRow,
    MeasureRow,
    TimingRow,
)
from kassay.reference.documents.kind_documents import KindDocument
from kassay.solver.limits import SearchLimits


def evaluate_document(
    case: Case, family: DocumentFamily, *, limits: SearchLimits, drawn: bool
) -> CaseRecord:
    """Run the assignors of a case on its document, and compare their answers with the optimum.

    An application of Kafka Streams runs until no probing rebalance follows. The last stable answer
    is compared. The record contains the document if ``drawn`` is true, so that reports can draw it.
    """
    document = family.document(case.seed)
    assignments, timings, measures = [], [], []
    for name in case.assignors:
        start = time.perf_counter()
        run = run_until_stable(document, name)
        seconds = time.perf_counter() - start
        timings.append(TimingRow(case=case.name, contestant=name, seconds=seconds))
        ending, detail = run.ending, run.detail
        if run.compare is not None:
            compared = run.compare(limits)
            if compared.invalid:
                ending, detail = Ending.INVALID, compared.invalid[0]
            else:
                measures += [
                    MeasureRow(name, one.name, one.value, one.minimum, one.bound)
                    for one in (*compared.measures, *run.measures)
                ]
        assignments.append(
            AssignmentRow.of(case.name, name, ending, detail=detail, rounds=run.rebalances)
        )
    return CaseRecord(
        group=_group_row(case, document, drawn=drawn),
        assignments=tuple(assignments),
        timings=tuple(timings),
        measures=tuple(measures),
    )


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
