"""Register the kinds of groups, and compare their assignors with the optimum."""

from collections.abc import Mapping
from dataclasses import replace

from kassay.experiments.implementations.run_assignor import (
    DocumentRunResult,
    Ending,
    run_on_document,
)
from kassay.experiments.kinds import group_kind
from kassay.experiments.kinds.connect_clusters import CONNECT
from kassay.experiments.kinds.share_groups import SHARE
from kassay.experiments.kinds.streams_kind import STREAMS, STREAMS_GROUP
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.solver.limits import SearchLimits

KINDS: Mapping[Kind, group_kind.GroupKind] = {
    one.kind: one for one in (SHARE, STREAMS_GROUP, STREAMS, CONNECT)
}
"""Kinds of groups, without consumer groups, by `Kind`."""


def compare_assignor(
    document: KindDocument, name: str, *, limits: SearchLimits
) -> tuple[DocumentRunResult, list[group_kind.KindComparison]]:
    """Run an assignor on a document, and compare its answer with the optimum.

    If the answer for a Kafka Streams application requests a further rebalance, the stable
    assignment after the probing rebalances is also compared. Its ``step`` is the number of
    rebalances. Without an answer, there is no comparison.
    """
    result = run_on_document(document, name)
    if result.answer is None:
        return result, []
    compared = KINDS[document.kind].compare(document, result.answer, limits)
    if result.answer.get("followup_rebalance"):
        compared = [replace(one, step=1) for one in compared]
        stable = run_until_stable(document, name)
        if stable.compare is not None and stable.rebalances > 1:
            compared.append(stable.compare(limits))
    return result, compared


def run_until_stable(document: KindDocument, assignor: str) -> group_kind.StableRun:
    """Run an assignor on a document until its answer is stable."""
    kind = KINDS[document.kind]
    if kind.run_until_stable is not None:
        return kind.run_until_stable(document, assignor)
    result = run_on_document(document, assignor)
    answer = result.answer
    if answer is None:
        return group_kind.StableRun(*group_kind.ending_without_answer(result))
    return group_kind.StableRun(
        Ending.OK,
        compare=lambda limits: kind.compare(document, answer, limits)[-1],
        measures=kind.answer_measures(document, answer),
    )
