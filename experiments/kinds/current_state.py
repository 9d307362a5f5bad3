"""Current state of a share group, Streams group, Streams application or Connect cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kassay.experiments.kinds.measures import KindComparison, KindMeasure
from kassay.experiments.kinds.registry import KINDS
from kassay.experiments.plotting.page_templates import environment
from kassay.reference.documents.csv_writer import write_csv
from kassay.reference.documents.kind_documents import Kind, KindDocument
from kassay.solver.limits import SearchLimits

_TEMPLATES = Path(__file__).parent / "templates"
_OMITTED = (
    *("movement", "moves", "stopped_ms", "replaced_copies", "unused_directories", "without_copy"),
    *("copy_spread", "standby_spread"),
)
"""Last words of measures that the current state does not have: they need an event, or have no
minimum."""


@dataclass(frozen=True, slots=True)
class KindState:
    """Current state of a group of another kind than consumers, with the minimum per measure.

    ``loads`` has the numbers of partitions, tasks or connectors per member, process or worker.
    """

    id: str | None
    kind: Kind
    loads: Mapping[str, Mapping[str, int]]
    comparison: KindComparison
    condition: str | None

    @property
    def above(self) -> list[KindMeasure]:
        """Return the measures that are above their best known value."""
        return [one for one in self.measures if one.minimum is not None and one.value > one.minimum]

    @property
    def unproven(self) -> list[KindMeasure]:
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
        }

    @property
    def measures(self) -> list[KindMeasure]:
        """Return the measures that need no event and have a minimum."""
        return [one for one in self.comparison.measures if not one.name.endswith(_OMITTED)]


def current_state(document: KindDocument, *, limits: SearchLimits) -> KindState:
    """Compare the assignment that the members, processes or workers of a document have."""
    kind = KINDS[document.kind]
    current = kind.current_state(document)
    compared = kind.compare(current.document, current.answer, limits)[-1]
    return KindState(document.id, document.kind, current.loads, compared, document.condition)


def _minimum(measure: KindMeasure) -> str:
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
    columns = tuple(dict.fromkeys(name for load in state.loads.values() for name in load))
    loads = [
        (place, *(load.get(name, 0) for name in columns)) for place, load in state.loads.items()
    ]
    measures = [
        (one.name.replace("_", " "), one.value, one.minimum, one.bound) for one in state.measures
    ]
    template = environment(_TEMPLATES, autoescape=True).get_template("current_state.html.j2")
    return template.render(
        state=state,
        kind=KINDS[state.kind].title,
        measures=measures,
        loads=PageTable(("name", *columns), loads),
        events=events,
        recommendation=recommendation,
        assumption=assumption,
    )
