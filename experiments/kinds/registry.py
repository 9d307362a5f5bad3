"""The kinds of groups: comparisons of assignors and of current states with the optimum."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kassay.experiments.implementations.runner import DocumentRunResult, Ending, run_on_document
from kassay.experiments.kinds import group_kind
from kassay.experiments.kinds.connect import CONNECT
from kassay.experiments.kinds.share import SHARE
from kassay.experiments.kinds.streams import STREAMS, STREAMS_GROUP
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.solver.limits import SearchLimits

KINDS: Mapping[Kind, group_kind.GroupKind] = {
    one.kind: one for one in (SHARE, STREAMS_GROUP, STREAMS, CONNECT)
}
"""Every kind of groups other than consumer groups."""


def compare_assignor(
    document: KindDocument, name: str, *, limits: SearchLimits
) -> tuple[DocumentRunResult, list[group_kind.KindComparison]]:
    """Run an assignor on a document, and compare its answer with the optimum.

    If the answer for a Kafka Streams application requests a further rebalance, the stable
    assignment after the probing rebalances is compared as well. ``step`` is then the number of the
    rebalance. Without an answer, there is no comparison.
    """
    result = run_on_document(document, name)
    if result.answer is None:
        return result, []
    compared = compare_answer(document, result.answer, limits=limits)
    if result.answer.get("followup_rebalance"):
        compared = [replace(one, step=1) for one in compared]
        stable = run_until_stable(document, name)
        if stable.compare is not None and stable.rebalances > 1:
            compared.append(stable.compare(limits))
    return result, compared


def compare_answer(
    document: KindDocument, answer: group_kind.Answer, *, limits: SearchLimits
) -> list[group_kind.KindComparison]:
    """Compare an answer with the optimum: once, or once per stable state of a Connect cluster."""
    return KINDS[document.kind].compare(document, answer, limits)


def run_until_stable(document: KindDocument, assignor: str) -> group_kind.StableRun:
    """Run an assignor until its answer is stable. The last stable state is compared."""
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


_TEMPLATES = Path(__file__).parent / "templates"
_OMITTED = ("movement", "moves", "stopped_ms", "replaced_copies", "unused_directories")
"""Last words of measures that the current state does not have: they need an event."""


@dataclass(frozen=True, slots=True)
class KindState:
    """Current state of a group of another kind than consumers, with the minimum per measure.

    ``loads`` has the numbers of partitions, tasks or connectors per member, process or worker.
    ``matrix`` has the numbers per topic, connector or subtopology, without standby tasks.
    """

    id: str | None
    kind: Kind
    loads: Mapping[str, Mapping[str, int]]
    matrix: Mapping[str, Mapping[str, int]]
    comparison: group_kind.KindComparison
    condition: str | None

    @property
    def above(self) -> list[group_kind.KindMeasure]:
        """Return the measures that are above their best known value."""
        return [one for one in self.measures if one.minimum is not None and one.value > one.minimum]

    @property
    def unproven(self) -> list[group_kind.KindMeasure]:
        """Return the measures without a better known value and without a proof."""
        return [
            one
            for one in self.measures
            if one not in self.above and one.bound is not None and one.value > one.bound
        ]

    @property
    def verdict(self) -> str:
        """Return the result in one sentence, with the condition of assumed data."""
        return self._result if self.condition is None else f"If {self.condition}: {self._result}"

    @property
    def _result(self) -> str:
        invalid = self.comparison.invalid
        size = f"{len(self.loads)} {KINDS[self.kind].places}"
        if invalid:
            more = f" and {len(invalid) - 1} more" if len(invalid) > 1 else ""
            return f"The current state of {size} is not valid: {invalid[0]}{more}."
        if not self.above and self.unproven:
            names = ", ".join(one.name.replace("_", " ") for one in self.unproven)
            return f"{size}: no better state is known; not proven: {names}."
        if not self.above:
            return f"Nothing to do: {size}, and each measure has its minimum."
        texts = [
            f"{one.name.replace('_', ' ')} {one.value} (minimum {_minimum(one)})"
            for one in self.above
        ]
        return f"{size} are not at the minimum: {', '.join(texts)}; {KINDS[self.kind].lever}."

    def record(self) -> dict[str, object]:
        """Return the state as a JSON object."""
        return {
            "id": self.id,
            "kind": str(self.kind),
            KINDS[self.kind].places: len(self.loads),
            "verdict": self.verdict,
            "condition": self.condition,
            "measures": {
                one.name: {"value": one.value, "minimum": one.minimum, "bound": one.bound}
                for one in self.measures
            },
            "matrix": self.matrix,
        }

    @property
    def measures(self) -> list[group_kind.KindMeasure]:
        """Return the measures that need no event and have a minimum."""
        return [one for one in self.comparison.measures if not one.name.endswith(_OMITTED)]


def current_state(document: KindDocument, *, limits: SearchLimits) -> KindState:
    """Compare the assignment that the members, processes or workers of a document have."""
    kind = KINDS[document.kind]
    current = kind.current_state(document)
    compared = kind.compare(current.document, current.answer, limits)[-1]
    steps = current.answer.get("steps")
    places = steps[-1]["state"] if steps else current.answer[kind.places]
    loads = {place: _load(own) for place, own in places.items()}
    matrix = {place: _per_topic(own) for place, own in places.items()}
    return KindState(document.id, document.kind, loads, matrix, compared, document.condition)


def _load(own: Any) -> dict[str, int]:
    """Return the numbers of partitions, or of tasks or connectors per key."""
    if isinstance(own, list):
        return {"partitions": len(own)}
    return {
        key: len(entries) if isinstance(entries, list) else sum(map(len, entries.values()))
        for key, entries in own.items()
    }


def _per_topic(own: Any) -> dict[str, int]:
    """Return the numbers of partitions per topic, or of tasks per connector or subtopology."""
    tasks = own if isinstance(own, list) else own.get("tasks", own.get("active", ()))
    if isinstance(tasks, Mapping):
        return {name: len(numbers) for name, numbers in tasks.items()}
    # A task is a name such as archive-0 or 1_3, or a list of a topic and a number.
    names = (re.split(r"[-_](?=\d+$)", one)[0] if isinstance(one, str) else one[0] for one in tasks)
    return dict(Counter(names))


def _minimum(measure: group_kind.KindMeasure) -> str:
    if measure.minimum == measure.bound:
        return str(measure.minimum)
    return f"at least {measure.bound}"


@dataclass(frozen=True, slots=True)
class PageTable:
    """Table of a page; the first column has names."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    @property
    def csv(self) -> str:
        """Return the table as CSV text."""
        return write_csv(self.columns, self.rows)


def _page_table(numbers: Mapping[str, Mapping[str, int]]) -> PageTable:
    columns = tuple(dict.fromkeys(name for row in numbers.values() for name in row))
    rows = [(place, *(row.get(name, 0) for name in columns)) for place, row in numbers.items()]
    return PageTable(("name", *columns), rows)


def render_state_page(
    state: KindState,
    *,
    events: PageTable | None = None,
    recommendation: str | None = None,
    assumption: str | None = None,
) -> str:
    """Render the page of a current state, with the costs of events if they are known.

    ``assumption`` describes the simulated events. Equal states give equal bytes.
    """
    measures = [
        (one.name.replace("_", " "), one.value, one.minimum, one.bound) for one in state.measures
    ]
    template = environment(_TEMPLATES, autoescape=True).get_template("current_state.html.j2")
    return template.render(
        state=state,
        kind=KINDS[state.kind].title,
        measures=measures,
        loads=_page_table(state.loads),
        topics=KINDS[state.kind].topics,
        matrix=_page_table(state.matrix),
        events=events,
        recommendation=recommendation,
        assumption=assumption,
    )
